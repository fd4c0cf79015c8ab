"""What a check asks, how it is judged under other wordings, and how it is decided."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from judgesense.checking.command import CheckCommand, Terms
from judgesense.checking.result import CheckResult, result_of
from judgesense.decisions.log import read_log
from judgesense.files.disk import sha256_of
from judgesense.pipeline import Settings, execute, identity_of, resolve_all
from judgesense.pipeline.data import DataReference, varied
from judgesense.reporting.report import Report, write_report
from judgesense.reporting.run_tables import cases
from judgesense.reporting.summary import next_steps
from judgesense.run_folder.folder import read_record, save_run
from judgesense.tasks import Item, Template
from judgesense.trust.card import gate
from judgesense.trust.thresholds import Thresholds

if TYPE_CHECKING:
    from judgesense_dataset.templates import TaskTemplates

PARAPHRASES = 4
"""The default number of proposed wordings."""


@dataclass(frozen=True, kw_only=True)
class Question:
    """What a check asks: a rubric as a task with one template, and the items to judge.

    ``identity`` holds the hashes of what it was read from, and ``told`` names them for the result.
    ``wordings`` is the file of the other wordings, unless another is asked for, and ``known`` are
    wordings that come with JudgeSense.
    """

    own: TaskTemplates
    items: Sequence[Item]
    identity: Mapping[str, Any]
    name: str
    wordings: Path
    ranked: bool
    told: Mapping[str, Any]
    known: tuple[Template, ...] = ()


def run_check(
    read: Callable[[], Question],
    judge: Any,
    command: CheckCommand,
    note: Callable[[str], None],
    judge_options: Mapping[str, Any],
) -> CheckResult:
    """Judge a question under its wordings and decide, as :func:`check` describes.

    ``read`` makes the question, once the judge's name and options are known to be right.
    """
    from judgesense_dataset.pairing import build

    terms = command.terms
    (spec,) = resolve_all([judge], terms.scoring, judge_options)
    settings = Settings.of(terms.scoring, None, None, terms.repeats, terms.seed, terms.limit)
    question = read()
    entry, place, spent = with_wordings(question, terms, judge, judge_options, note)
    task, items = entry.task, question.items
    file = place if place.exists() else None
    identity = {
        **question.identity,
        "wordings": sha256_of(file) if file else digest_of(entry.templates),
        "answers": list(task.labels), "options": dict(task.options),
    }  # fmt: skip
    if terms.out is None:
        asked = [identity, identity_of(spec), terms.scoring, terms.repeats, terms.seed, terms.limit]
        asked += [list(terms.variants)] if terms.variants else []
        digest = hashlib.sha256(json.dumps(asked, sort_keys=True, default=str).encode())
        out = Path(terms.runs) / f"{question.name}-{digest.hexdigest()[:8]}"
    else:
        out = Path(terms.out)
    benchmark = build({task.name: entry}, items, "full", seed=terms.seed)
    reference = DataReference(identity, lambda: benchmark, lambda: ({task.name: entry}, items))
    data = varied(reference, terms.variants or ())
    report = execute([spec], data, settings, out, note, spent=spent)
    thresholds = {"steady": terms.threshold, "confidence": terms.confidence}
    report = _with_thresholds(report, out, thresholds)
    ((_, _, cell),) = cases(report)
    (card,) = report["trust"]
    kept = out / "check" / "distances.json"
    result = result_of(report, cell, read_log(out), entry, question.ranked, kept)
    result.settings = {
        **question.told, "judge": cell["judge"],
        "items": min(terms.limit or len(items), len(items)), "wordings": len(entry.templates),
        "repeats": terms.repeats, "scoring": terms.scoring, "signature": cell["signature"],
    }  # fmt: skip
    failed = sum(len(each["failed"]) for run in report["runs"] for each in run["judges"])
    steady = card["checks"]["steady"]
    decided = gate(
        card, failed=failed, coverage=cell["coverage"], constant=cell["degenerate"] is not None
    )
    found = CheckResult(
        result, Report.of(report, out), out, steady["estimate"], steady["ci_low"],
        steady["ci_high"],
        terms.threshold, cell["degenerate"] is not None, cell["coverage"], failed, decided, card,
        command.next_step(decided, len(items), file, out, _flagged(report), _remedy(report, out)),
        terms.confidence, terms.inconclusive,
    )  # fmt: skip
    result.findings[:0] = [found.verdict, found.next_step]
    result.write(out / "check")
    return found


def _flagged(report: Mapping[str, Any]) -> list[str]:
    """The wordings that stand out from the others."""
    return [row["template"] for row in report["wordings"] if row["flag"] != "fine"]


def _remedy(report: Mapping[str, Any], out: Path) -> Mapping[str, Any] | None:
    """The step that makes the judge usable as it is not when asked plainly, if one passes."""
    (step,) = next_steps(report, out).values()
    return step if step.get("remedy") else None


def _with_thresholds(
    report: dict[str, Any], out: Path, thresholds: Mapping[str, float]
) -> dict[str, Any]:
    """The report with these thresholds; they are kept in ``run.json`` for every later report."""
    record = read_record(out) or {}
    if Thresholds().but(record.get("thresholds")) == Thresholds().but(thresholds):
        return report
    save_run(out, {**record, "thresholds": dict(thresholds)})
    return write_report(out)


def with_wordings(
    question: Question,
    terms: Terms,
    judge: Any,
    judge_options: Mapping[str, Any],
    note: Callable[[str], None],
) -> tuple[TaskTemplates, Path, float]:
    """The question with its other wordings, their file, and the US dollars spent on proposals."""
    from judgesense_dataset.rubric import propose_wordings, read_wordings
    from judgesense_dataset.templates import TaskTemplates

    own = question.own
    place = question.wordings if terms.wordings is None else Path(terms.wordings)
    if terms.wordings is not None or place.exists():
        if terms.paraphraser is not None or terms.n_paraphrases is not None:
            note(
                f"using the wordings in {place}; no new ones are proposed. To propose new ones, "
                "remove the file or leave out --wordings"
            )
        return read_wordings(place, own), place, 0.0
    if question.known and terms.paraphraser is None and terms.n_paraphrases is None:
        return TaskTemplates(own.task, (*own.templates, *question.known)), place, 0.0
    # The judge's settings (endpoint, key) do not apply to another paraphraser.
    asked_of, options = (
        (judge, judge_options) if terms.paraphraser is None else (terms.paraphraser, {})
    )
    with _writer(asked_of, options, terms.seed) as writer:
        before = getattr(writer, "spent", 0.0)
        count = PARAPHRASES if terms.n_paraphrases is None else terms.n_paraphrases
        entry = propose_wordings(own, writer, count, place, note)
        spent = getattr(writer, "spent", 0.0) - before
    return entry, place, spent


def digest_of(templates: Sequence[Template]) -> str:
    """The SHA-256 of wordings: their ids, texts, layouts and answers."""
    told = [
        [
            t.template_id,
            t.text,
            t.layout,
            dict(t.label_map),
            {k: list(v) for k, v in t.aliases.items()},
        ]
        for t in templates
    ]
    return hashlib.sha256(json.dumps(told, ensure_ascii=False).encode()).hexdigest()


@contextmanager
def _writer(judge: Any, options: Mapping[str, Any], seed: int) -> Iterator[Any]:
    """The model that proposes wordings: a name for paraphrase() to load, or the judge with the
    user's options."""
    from local_judges.registry import load_judge

    if not (isinstance(judge, (str, Path)) and options):
        yield judge
        return
    own = {**options, "temperature": 0.7, "seed": seed, "max_tokens": 512, "system_prompt": ""}
    writer = load_judge(judge, **own)
    try:
        yield writer
    finally:
        writer.close()
