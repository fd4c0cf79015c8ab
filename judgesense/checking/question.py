"""What a check asks, how it is judged under other wordings, and how it is decided."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.compute as pc

from judgesense.checking.result import CheckResult, result_of
from judgesense.checking.terms import Terms
from judgesense.decisions.log import read_log
from judgesense.errors import JudgeSenseError
from judgesense.files.disk import sha256_of
from judgesense.pipeline import Settings, execute, folder_for, resolve_all
from judgesense.pipeline.data import DataReference, attacked, varied
from judgesense.reporting.report import Report, write_report
from judgesense.reporting.run_tables import cases
from judgesense.run_folder.folder import read_record, save_run
from judgesense.run_folder.invocation import invocation
from judgesense.tasks import Item, Template
from judgesense.trust.thresholds import Thresholds

if TYPE_CHECKING:
    from judgesense_dataset.templates import TaskTemplates

PARAPHRASES = 4
"""The default number of proposed wordings."""


@dataclass(frozen=True, kw_only=True)
class Question:
    """What a check asks: a rubric as a task with one template, and the items to judge.

    ``identity`` holds the hashes of what it was read from, and ``settings`` names them for the
    result. ``wordings`` is the file of the other wordings, unless another is asked for.
    """

    own: TaskTemplates
    items: Sequence[Item]
    identity: Mapping[str, Any]
    name: str
    wordings: Path
    ranked: bool
    settings: Mapping[str, Any]


def run_check(
    read: Callable[[], Question],
    terms: Terms,
    judge_options: Mapping[str, Any],
    note: Callable[[str], None],
) -> CheckResult:
    """Judge a question under its wordings and decide, as :func:`judgesense.check` describes.

    ``read`` makes the question, once the judge's name and options are known to be right.
    """
    from judgesense_dataset.pairing import build

    (spec,) = resolve_all([terms.judge], terms.scoring, judge_options)
    if getattr(spec, "engine", None) == "systemone":
        terms = replace(terms, scoring="options")  # It writes no text.
    settings = Settings.of(terms.scoring, None, None, terms.repeats, terms.seed, terms.limit)
    question = read()
    entry, place, spent = with_wordings(question, terms, judge_options, note)
    task, items = entry.task, question.items
    file = place if place.exists() else None
    identity = {
        **question.identity,
        "wordings": sha256_of(file) if file else digest_of(entry.templates),
        "answers": list(task.labels), "options": dict(task.options),
    }  # fmt: skip
    benchmark = build({task.name: entry}, items, "full", seed=terms.seed)
    reference = DataReference(identity, lambda: benchmark, lambda: ({task.name: entry}, items))
    data = attacked(varied(reference, terms.variants or ()), terms.attacks)
    if terms.attacks is None:
        data = _with_quick_attacks(data, settings, note)
    asked = [identity, terms.scoring, terms.repeats, terms.seed, terms.limit]
    asked += [list(terms.variants)] if terms.variants else []
    asked += [data.attacks] if data.attacks else []
    out = Path(terms.out or folder_for(Path(terms.runs), question.name, [spec], asked))
    started = invocation("check", Terms, {**vars(terms), "judge_options": judge_options})
    report = execute([spec], data, settings, out, note, spent=spent, started=started)
    # The thresholds are kept in run.json for every later report.
    record, thresholds = read_record(out) or {}, {"steady": terms.threshold}
    if Thresholds().but(record.get("thresholds")) != Thresholds().but(thresholds):
        save_run(out, {**record, "thresholds": thresholds})
        report = write_report(out)
    ((_, _, cell),) = cases(report)
    kept = out / "check" / "distances.json"
    result = result_of(report, cell, read_log(out), entry, question.ranked, kept)
    result.settings = {
        **question.settings, "judge": cell["judge"],
        "items": min(terms.limit or len(items), len(items)), "wordings": len(entry.templates),
        "repeats": terms.repeats, "scoring": terms.scoring, "signature": cell["signature"],
    }  # fmt: skip
    found = CheckResult.of(Report.of(report, out), out, result, terms.inconclusive)
    result.write(out / "check")
    return found


def _with_quick_attacks(
    data: DataReference, settings: Settings, note: Callable[[str], None]
) -> DataReference:
    """The data with the quick attacks where they add at most a third more prompts; a note says
    how many, or why there are none."""
    tried = attacked(data, "quick")
    try:
        rows = [each.selected(settings).prompts for each in (data, tried)]
    except JudgeSenseError as error:
        note(f"attacks not tried: {error}")
        return data
    asked, more = (len(pc.unique(table["prompt_id"])) for table in rows)
    asked, more = asked * settings.repeats, more - asked
    if 3 * more > asked:
        note(f"attacks not tried: --attacks quick adds {more} prompts to {asked}")
        return data
    note(
        f"also trying three kinds of attack: {more} more prompts ({asked} without them); "
        "--attacks none leaves them out"
    )
    return tried


def with_wordings(
    question: Question,
    terms: Terms,
    judge_options: Mapping[str, Any],
    note: Callable[[str], None],
) -> tuple[TaskTemplates, Path, float]:
    """The question with its other wordings, their file, and the US dollars spent on proposals."""
    from judgesense_dataset.rubric import propose_wordings, read_wordings

    own = question.own
    place = question.wordings if terms.wordings is None else Path(terms.wordings)
    if terms.wordings is not None or place.exists():
        if terms.paraphraser is not None or terms.n_paraphrases is not None:
            note(
                f"using the wordings in {place}; no new ones are proposed. To propose new ones, "
                "remove the file or leave out --wordings"
            )
        return read_wordings(place, own), place, 0.0
    if terms.n_paraphrases == 0:
        return own, place, 0.0
    writer, options = terms.paraphraser, {}
    if writer is None:
        # The judge's settings (endpoint, key) do not apply to another paraphraser.
        writer, options = terms.judge, dict(judge_options)
    with _loaded(writer, options, terms.seed) as writer:
        before = getattr(writer, "spent", 0.0)
        entry = propose_wordings(own, writer, terms.n_paraphrases or PARAPHRASES, place, note)
        spent = getattr(writer, "spent", 0.0) - before
    return entry, place, spent


def digest_of(templates: Sequence[Template]) -> str:
    """The SHA-256 of wordings: their ids, texts, layouts and answers."""
    parts = [
        [t.template_id, t.text, t.layout, dict(t.label_map),
         {answer: list(texts) for answer, texts in t.aliases.items()}]
        for t in templates
    ]  # fmt: skip
    return hashlib.sha256(json.dumps(parts, ensure_ascii=False).encode()).hexdigest()


@contextmanager
def _loaded(judge: Any, options: Mapping[str, Any], seed: int) -> Iterator[Any]:
    """The model that proposes wordings: a name for paraphrase() to load, or the judge with the
    user's options."""
    from local_judges.registry import load_writer

    if not (isinstance(judge, (str, Path)) and options):
        yield judge
        return
    own = {**options, "temperature": 0.7, "seed": seed, "max_tokens": 512, "system_prompt": ""}
    writer = load_writer(judge, **own)
    try:
        yield writer
    finally:
        writer.close()
