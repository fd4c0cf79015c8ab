"""``judgesense check RUBRIC --data FILE --judge J``: a rubric's data under several wordings."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.compute as pc

from judgesense.checking.result import RUNS, CheckResult, Inconclusive, result_of
from judgesense.checking.verdicts import labelled_rows
from judgesense.decisions.log import SCORINGS, read_log
from judgesense.errors import JudgeSenseError
from judgesense.files.disk import sha256_of
from judgesense.pipeline import Settings, execute, folder_for, resolve_all
from judgesense.pipeline.data import DataReference, attacked, varied
from judgesense.reporting.report import Report, write_report
from judgesense.reporting.run_tables import cases
from judgesense.run_folder.folder import read_record, save_run
from judgesense.run_folder.invocation import invocation
from judgesense.trust.planning import assumed
from judgesense.trust.thresholds import STEADY_JSS, Thresholds

if TYPE_CHECKING:
    from judgesense.tasks import Item
    from judgesense_dataset.templates import TaskTemplates

PARAPHRASES = 4
"""The default number of proposed wordings."""


def check_rubric(
    rubric: Path,
    data: Path,
    judge: Any,
    *,
    human: Sequence[str] = (),
    answers: Sequence[str] | None = None,
    options: Mapping[str, str] | None = None,
    wordings: str | Path | None = None,
    paraphraser: Any = None,
    paraphrases: int | None = None,
    threshold: float = STEADY_JSS,
    inconclusive: Inconclusive | None = None,
    scoring: str = "generate",
    variants: Sequence[str] | None = None,
    attacks: str | Path | None = None,
    repeats: int = 2,
    seed: int = 0,
    limit: int | None = None,
    out: str | Path | None = None,
    runs: str | Path = RUNS,
    note: Callable[[str], None],
    judge_options: Mapping[str, Any],
) -> CheckResult:
    """Judge data under a rubric's wordings and decide, as :func:`judgesense.check` describes."""
    given = {name: value for name, value in locals().items() if name != "note"}
    from judgesense_dataset.pairing import build
    from judgesense_dataset.rubric import propose_wordings, read_wordings

    if scoring not in SCORINGS:
        raise JudgeSenseError(f"unknown scoring {scoring!r}; choose one of {', '.join(SCORINGS)}")
    if not 0 <= threshold <= 1:
        raise JudgeSenseError(f"the threshold must be between 0 and 1, got {threshold}")
    if inconclusive not in (None, "pass", "fail"):
        raise JudgeSenseError(f"inconclusive is {inconclusive!r}: choose pass or fail")
    (spec,) = resolve_all([judge], scoring, judge_options)
    if getattr(spec, "engine", None) == "systemone":
        given["scoring"] = scoring = "options"  # It writes no text.
    settings = Settings.of(scoring, None, None, repeats, seed, limit)
    own, items = _read(rubric, data, human, answers, options, note)
    entry, task = own, own.task
    place, spent = Path(wordings or rubric.with_suffix(".wordings.yaml")), 0.0
    if wordings is not None or place.exists():
        if paraphraser is not None or paraphrases is not None:
            note(
                f"using the wordings in {place}; no new ones are proposed. To propose new ones, "
                "remove the file or leave out --wordings"
            )
        entry = read_wordings(place, own)
    elif paraphrases != 0:
        # The judge's settings (endpoint, key) do not apply to another paraphraser.
        proposer = (judge, judge_options) if paraphraser is None else (paraphraser, {})
        with _loaded(*proposer, seed) as writer:
            before = getattr(writer, "spent", 0.0)
            entry = propose_wordings(own, writer, paraphrases or PARAPHRASES, place, note)
            spent = getattr(writer, "spent", 0.0) - before
    identity = {
        "rubric": sha256_of(rubric), "data": sha256_of(data),
        **({"human": list(human)} if human else {}),
        # Without a file there is the rubric's own wording alone.
        "wordings": sha256_of(place) if place.exists() else None,
        "answers": list(task.labels), "options": dict(task.options),
    }  # fmt: skip
    benchmark = build({task.name: entry}, items, "full", seed=seed)
    reference = DataReference(identity, lambda: benchmark, lambda: ({task.name: entry}, items))
    judged = attacked(varied(reference, variants), attacks)
    if attacks is None:
        judged = _with_quick_attacks(judged, settings, note)
    facts: list[Any] = [identity, scoring, repeats, seed, limit]
    facts += [list(variants)] if variants else []
    facts += [judged.attacks] if judged.attacks else []
    folder = Path(out or folder_for(Path(runs), rubric.stem, [spec], facts))
    started = invocation("check", check_rubric, given)
    report = execute([spec], judged, settings, folder, note, spent=spent, started=started)
    # The thresholds are kept in run.json for every later report.
    record, thresholds = read_record(folder) or {}, {"steady": threshold}
    if Thresholds().but(record.get("thresholds")) != Thresholds().but(thresholds):
        save_run(folder, {**record, "thresholds": thresholds})
        report = write_report(folder)
    ((_, _, cell),) = cases(report)
    ranked = answers is not None or task.ordinal
    result = result_of(report, cell, read_log(folder), entry, ranked)
    result.settings = {
        "rubric": str(rubric), "data": str(data), "judge": cell["judge"],
        "items": min(limit or len(items), len(items)), "wordings": len(entry.templates),
        "repeats": repeats, "scoring": scoring, "signature": cell["signature"],
    }  # fmt: skip
    found = CheckResult.of(Report.of(report, folder), folder, result, inconclusive)
    result.write(folder / "check")
    return found


def planned(
    rubric: Path,
    data: Path,
    *,
    human: Sequence[str] = (),
    answers: Sequence[str] | None = None,
    options: Mapping[str, str] | None = None,
    wordings: Path | None = None,
    paraphrases: int | None = None,
    limit: int | None = None,
    note: Callable[[str], None],
) -> str:
    """What a check of this size can settle, from assumed figures; nothing is loaded or judged.

    Raises JudgeSenseError for bad input, as `check_rubric` does.
    """
    from judgesense_dataset.rubric import read_wordings

    own, items = _read(rubric, data, human, answers, options, note)
    items = items[:limit]
    place = wordings or rubric.with_suffix(".wordings.yaml")
    n_wordings = 1 + (PARAPHRASES if paraphrases is None else paraphrases)
    if place.exists():
        n_wordings = len(read_wordings(place, own).templates)
    labelled = sum(item.gold is not None for item in items)
    return assumed(len(items), n_wordings, 2 if own.task.comparative else 1, labelled)


def _read(
    rubric: Path,
    data: Path,
    human: Sequence[str],
    answers: Sequence[str] | None,
    options: Mapping[str, str] | None,
    note: Callable[[str], None],
) -> tuple[TaskTemplates, list[Item]]:
    """The rubric as a task with one template, and the items to judge."""
    from judgesense_dataset.rubric import read_rubric, shown_in
    from judgesense_dataset.templates import items_of

    rows = labelled_rows(data, human, shown_in(rubric), note)
    own = read_rubric(rubric, data, answers, options, rows)
    return own, items_of(rows, str(data), own.task, own.fields)


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
