"""``judgesense check``: is a judge right, and does rewording your rubric change its verdicts?"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from inspect import signature
from pathlib import Path
from typing import Any

from judgesense.checking.result import RUNS, CheckResult, Inconclusive, result_of
from judgesense.checking.rubric import PARAPHRASES, read_items, with_quick_attacks, writer_of
from judgesense.checking.verdicts import check_file
from judgesense.comparison.baseline import items_of_baseline, what_it_finds
from judgesense.errors import JudgeSenseError
from judgesense.files.data import Data, kept, kept_text
from judgesense.files.disk import require_file, sha256_of
from judgesense.files.tables import SUFFIXES
from judgesense.log.folder import RUN_FILE, read_record, save_run
from judgesense.log.invocation import invocation
from judgesense.log.schema import SCORINGS, read_log
from judgesense.measure.thresholds import MARGIN, STEADY_JSS, Thresholds
from judgesense.pipeline import (
    Settings,
    execute,
    folder_for,
    require_known,
    resolve_all,
    to_stderr,
)
from judgesense.pipeline.data import DataReference, attacked, varied
from judgesense.reporting.report import Report, write_report
from judgesense.reporting.run_tables import cases
from judgesense.statistics.alternative_annotator import EPSILON


def check(
    source: Data | None = None,
    data: Data | None = None,
    judge: Any = None,
    *,
    rubric: str | Path | None = None,
    verdict: str | Sequence[str] = (),
    human: str | Sequence[str] = (),
    columns: Mapping[str, str] | None = None,
    map: Mapping[str, str] | None = None,
    pick: str | None = None,
    epsilon: float = EPSILON,
    wordings: str | Path | None = None,
    paraphraser: Any = None,
    paraphrases: int | None = None,
    answers: Sequence[str] | None = None,
    options: Mapping[str, str] | None = None,
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
    baseline: Data | None = None,
    margin: float = MARGIN,
    note: Callable[[str], None] | None = None,
    **judge_options: Any,
) -> CheckResult:
    """Measure verdicts that you have; or judge data under several wordings of a rubric.

    Data are a file, a list of dicts, a pandas or polars DataFrame, or a ``datasets.Dataset``. Data
    and rubrics in memory are kept in files beside ``out``.

    Args:
        source: verdicts that exist already, with people's labels if there are any: data as above, a
            log from Inspect, promptfoo or DeepEval, or scores of Langfuse or LangSmith. Or,
            with ``data`` and ``judge``, a rubric: its file or its text, in which column names
            in braces mark where the columns are shown.
        data: the rows to judge; the columns ``item_id``, ``cluster_id`` and ``system_id`` are
            optional.
        judge: a name, Hub id, folder, function or loaded judge.
        rubric: the rubric, instead of ``source``.
        verdict: for existing verdicts, their columns, one per judge; recognised by default.
        human: the columns with people's labels, one per person; their majority is the gold label.
            By default they are recognised: ``gold``, ``label``, ``annotator_1``, ...
        columns: for existing verdicts, other columns: ``{"item_id": "question"}``.
        map: for existing verdicts, their words to labels: ``{"good": "PASS"}``.
        pick: the scorer or score to read, if a log of verdicts has several.
        epsilon: what replacing a person is worth in the alternative annotator test, in [0, 1].
        wordings: other wordings (see :func:`judgesense_dataset.rubric.read_wordings`). Without
            it, ``<rubric>.wordings.yaml`` next to the rubric is read, and written if missing.
        paraphraser: the model that proposes wordings; by default the judge. Not used if there are
            wordings already.
        paraphrases: the number of wordings to propose; by default 4.
        answers: the decisions, best first; by default the gold labels in the data. Systems are
            then ranked only if the labels are numbers.
        options: for a choice between two, the column shown under each answer.
        threshold: PASS if the whole interval of JSS lies above it, FAIL if it lies below; in
            [0, 1]. The trust card and the report use the same threshold. A judge whose JSS equals
            the threshold passes in at most 5% of runs.
        inconclusive: ``pass`` or ``fail``: what an inconclusive run counts as.
        scoring: ``generate`` (text) or ``options`` (log-probabilities).
        variants: other ways to ask the rubric, as in :func:`judgesense.run`, beside the wordings
            (``["rewording", "format", "contrast"]``).
        attacks: texts that try to win a verdict, added to what should lose: ``quick``, ``all``, a
            YAML file, or ``none``. By default ``quick`` where it adds at most a third more prompts.
        repeats: times each prompt is asked; 2 or more give a noise floor.
        seed: fixes every random draw.
        limit: judge only the first ``limit`` items.
        out: the folder; by default one in ``runs``, named by a hash of the question, so that
            rerunning an unchanged check reads its answer. It is the result's ``out``.
        runs: where that folder lies.
        baseline: the folder of an earlier check or run, or earlier verdicts with the same columns.
            The decision is then what changed since, item by item: FAIL only if something is
            reliably worse, PASS if it is no worse.
        margin: with a baseline, the largest loss that counts as no worse.
        note: called with progress messages; by default they go to stderr.
        judge_options: options of the judge (``system_prompt``, ``base_url``, ``max_cost``, ...).

    Raises:
        JudgeSenseError: for bad input, before the data are judged.

    >>> import tempfile
    >>> rows = [{"reply": "Go away.", "verdict": "RUDE", "label": "RUDE"},
    ...         {"reply": "Gladly!", "verdict": "RUDE", "label": "POLITE"}]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     found = check(rows, out=f"{folder}/out", note=str)
    >>> found.report.people[0]["confusion"]["RUDE"]
    {'POLITE': 1, 'RUDE': 1}
    """
    human = [human] if isinstance(human, str) else human
    verdict = [verdict] if isinstance(verdict, str) else verdict
    given = dict(locals())
    tell, beside = note or to_stderr, Path(runs) if out is None else Path(out).parent
    source = rubric if source is None else source
    if source is None:
        raise JudgeSenseError("nothing to check; use check(verdicts) or check(rubric, data, judge)")
    if callable(source):
        raise JudgeSenseError("the judge is the third argument: check(rubric, data, judge)")
    is_rubric = data is not None or judge is not None or rubric is not None
    parameters = signature(check).parameters
    for name in _OF_VERDICTS if is_rubric else _OF_RUBRICS:
        if given[name] and given[name] != parameters[name].default:
            other = "verdicts that you have" if is_rubric else "a rubric, with data= and judge="
            raise JudgeSenseError(f"{name}= is for {other}")
    require_known(check, judge_options)
    if not is_rubric:
        shared: dict[str, Any] = {name: given[name] for name in (*_OF_VERDICTS, "human", "answers")}
        if isinstance(source, str) and _is_text(source):
            raise JudgeSenseError("a rubric needs data= and judge=: check(rubric, data, judge)")
        found = check_file(
            kept(source, beside, "data"),
            out=out,
            runs=runs,
            note=note,
            inconclusive=inconclusive,
            **shared,
        )
        if baseline is None:
            return found
        earlier = kept(baseline, beside, "baseline")
        if not (earlier / RUN_FILE).is_file():
            earlier = check_file(earlier, runs=runs, note=lambda _: None, **shared).out
        return found.against(earlier, margin)

    if data is None or judge is None:
        absent = "data" if data is None else "judge"
        raise JudgeSenseError(
            f"{absent}= is missing; call check(rubric, data, judge) or check(verdicts)"
        )
    if baseline is not None:
        baseline = kept(baseline, beside, "baseline")
        tell(f"baseline {baseline}: {what_it_finds(items_of_baseline(baseline))}")
    from judgesense_dataset.pairing import build
    from judgesense_dataset.rubric import propose_wordings, read_wordings

    path, file = _rubric_file(source, beside), kept(data, beside, "data")
    if scoring not in SCORINGS:
        raise JudgeSenseError(f"unknown scoring {scoring!r}; choose one of {', '.join(SCORINGS)}")
    if not 0 <= threshold <= 1:
        raise JudgeSenseError(f"the threshold must be between 0 and 1, got {threshold}")
    if inconclusive not in (None, "pass", "fail"):
        raise JudgeSenseError(f"inconclusive is {inconclusive!r}; choose pass or fail")
    (spec,) = resolve_all([judge], scoring, judge_options)
    if getattr(spec, "engine", None) == "systemone":
        given["scoring"] = scoring = "options"  # It writes no text.
    settings = Settings.of(scoring, None, None, repeats, seed, limit)
    entry, items = read_items(path, file, human, answers, options, tell)
    own, task = entry, entry.task
    place, spent = Path(wordings or path.with_suffix(".wordings.yaml")), 0.0
    if wordings is not None or place.exists():
        if paraphraser is not None or paraphrases is not None:
            tell(
                f"using the wordings in {place}; no new ones are proposed. To propose new ones, "
                "remove the file or leave out --wordings"
            )
        entry = read_wordings(place, own)
    elif paraphrases != 0:
        # The judge's settings (endpoint, key) do not apply to another paraphraser.
        proposer = (judge, judge_options) if paraphraser is None else (paraphraser, {})
        with writer_of(*proposer, seed) as writer:
            before = getattr(writer, "spent", 0.0)
            entry = propose_wordings(own, writer, paraphrases or PARAPHRASES, place, tell)
            spent = getattr(writer, "spent", 0.0) - before
    identity = {
        "rubric": sha256_of(path),
        "data": sha256_of(file),
        **({"human": list(human)} if human else {}),
        # Without a file there is the rubric's own wording alone.
        "wordings": sha256_of(place) if place.exists() else None,
        "answers": list(task.labels),
        "options": dict(task.options),
    }
    benchmark = build({task.name: entry}, items, "full", seed=seed)
    reference = DataReference(identity, lambda: benchmark, lambda: ({task.name: entry}, items))
    judged = attacked(varied(reference, variants), attacks)
    if attacks is None:
        judged = with_quick_attacks(judged, settings, tell)
    facts: list[Any] = [identity, scoring, repeats, seed, limit]
    facts += [list(variants)] if variants else []
    facts += [judged.attacks] if judged.attacks else []
    folder = Path(out or folder_for(Path(runs), path.stem, [spec], facts))
    asked = {"rubric": path, "data": file, "judge": judge, "human": tuple(human)}
    more = ("answers", *_OF_RUBRICS, "inconclusive", "out", "runs", "judge_options")
    asked |= {name: given[name] for name in more}
    started = invocation("check", check, asked)
    report = execute([spec], judged, settings, folder, tell, spent=spent, started=started)
    # The thresholds are kept in run.json for every later report.
    record, thresholds = read_record(folder) or {}, {"steady": threshold}
    if Thresholds().but(record.get("thresholds")) != Thresholds().but(thresholds):
        save_run(folder, {**record, "thresholds": thresholds})
        report = write_report(folder)
    ((_, _, cell),) = cases(report)
    ranked = answers is not None or task.ordinal
    result = result_of(report, cell, read_log(folder), entry, ranked)
    result.settings = {
        "rubric": str(path),
        "data": str(file),
        "judge": cell["judge"],
        "items": min(limit or len(items), len(items)),
        "wordings": len(entry.templates),
        "repeats": repeats,
        "scoring": scoring,
        "signature": cell["signature"],
    }
    found = CheckResult.of(Report.of(report, folder), folder, result, inconclusive)
    result.write(folder / "check")
    return found if baseline is None else found.against(baseline, margin)


_OF_VERDICTS = ("verdict", "columns", "map", "pick", "epsilon")
_OF_RUBRICS = (
    "options",
    "wordings",
    "paraphraser",
    "paraphrases",
    "threshold",
    "scoring",
    "variants",
    "attacks",
    "repeats",
    "seed",
    "limit",
)
"""Arguments of `check` that verdicts, or rubrics, alone have."""


def _is_text(rubric: str) -> bool:
    return ("\n" in rubric or "{" in rubric) and not os.path.exists(rubric)


def _rubric_file(rubric: Any, folder: Path) -> Path:
    if not isinstance(rubric, (str, Path)):
        raise JudgeSenseError(
            f"the rubric has the type {type(rubric).__name__}; with data= and judge=, pass the "
            "rubric's file or its text. To check data alone, call check(verdicts)"
        )
    if isinstance(rubric, str) and _is_text(rubric):
        return kept_text(rubric.strip() + "\n", folder, "rubric", ".txt")
    path = Path(rubric)
    if path.suffix.lower() in SUFFIXES:
        raise JudgeSenseError(
            f"{path} is a table, not a rubric; pass a rubric with {path} as data, or {path} alone "
            "if it has verdicts"
        )
    if not path.is_file():
        require_file(path)
    return path
