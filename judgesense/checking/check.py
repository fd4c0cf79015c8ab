"""``judgesense check``: is a judge right, and does rewording your rubric change its verdicts?"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from inspect import signature
from pathlib import Path
from typing import Any, TypeVar

from judgesense.checking.file import check_file
from judgesense.checking.options import (
    RUNS,
    FileOptions,
    Inconclusive,
    ResultOptions,
    RubricOptions,
)
from judgesense.checking.result import CheckResult
from judgesense.checking.rubric import check_rubric, is_text
from judgesense.errors import JudgeSenseError
from judgesense.files.data import Data
from judgesense.measure.thresholds import MARGIN, STEADY_JSS
from judgesense.pipeline import require_known, to_stderr
from judgesense.statistics.alternative_annotator import EPSILON

Options = TypeVar("Options", FileOptions, RubricOptions)


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
    positive: str | None = None,
    options: Mapping[str, str] | None = None,
    threshold: float = STEADY_JSS,
    inconclusive: Inconclusive | None = None,
    scoring: str = "generate",
    variants: Sequence[str] | None = None,
    attacks: str | Path | None = None,
    damage: int | str | None = None,
    repeats: int = 2,
    seed: int = 0,
    limit: int | None = None,
    out: str | Path | None = None,
    runs: str | Path = RUNS,
    baseline: Data | None = None,
    margin: float = MARGIN,
    require: str | Sequence[str] = (),
    looks: int = 1,
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
        map: words of the judge and of people to labels: ``{"good": "PASS"}``, or a scale's limits:
            ``{">=4": "PASS", "<4": "FAIL"}``.
        positive: the label that 1, yes or true means.
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
        damage: how many outputs to make wrong on purpose, to see whether the judge notices, or
            ``none``. By default as many as add at most a third more prompts.
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
        looks: with a baseline, how many comparisons share the error of one: 30 for a daily gate
            that calls an unchanged judge worse in at most 3% of months.
        require: shares that the checks must reach, ``["right=0.8", "tone:readable=0.95"]``; they
            decide whether the result passes.
        note: called with progress messages; by default they go to stderr.
        judge_options: options of the judge (``system_prompt``, ``base_url``, ``max_cost``, ...).

    Raises:
        JudgeSenseError: for bad input, before the data are judged.

    >>> import tempfile
    >>> rows = [{"reply": "Go away.", "verdict": "RUDE", "label": "RUDE"},
    ...         {"reply": "Gladly!", "verdict": "RUDE", "label": "POLITE"}]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     result = check(rows, out=f"{folder}/out", note=str)
    >>> result.report.people[0]["confusion"]["RUDE"]
    {'POLITE': 1, 'RUDE': 1}
    """
    human = [human] if isinstance(human, str) else human
    verdict = [verdict] if isinstance(verdict, str) else verdict
    arguments = dict(locals())
    source = rubric if source is None else source
    if source is None:
        raise JudgeSenseError("nothing to check; use check(verdicts) or check(rubric, data, judge)")
    if callable(source):
        raise JudgeSenseError("the judge is the third argument: check(rubric, data, judge)")
    require_known(check, judge_options)
    require = [require] if isinstance(require, str) else require
    result = ResultOptions(
        out, runs, inconclusive, baseline, margin, require, note or to_stderr, looks
    )
    if data is None and judge is None and rubric is None:
        what = "a rubric, with data= and judge="
        file_options = _options(FileOptions, arguments, RubricOptions, what)
        if judge_options:
            raise JudgeSenseError(f"{next(iter(judge_options))}= is for {what}")
        if isinstance(source, str) and is_text(source):
            raise JudgeSenseError("a rubric needs data= and judge=: check(rubric, data, judge)")
        return check_file(source, file_options, result)
    rubric_options = _options(RubricOptions, arguments, FileOptions, "verdicts that you have")
    if data is None or judge is None:
        absent = "data" if data is None else "judge"
        raise JudgeSenseError(
            f"{absent}= is missing; call check(rubric, data, judge) or check(verdicts)"
        )
    return check_rubric(source, data, judge, rubric_options, result, judge_options)


def _options(
    kind: type[Options], arguments: Mapping[str, Any], other: type[Any], what: str
) -> Options:
    """The options of one kind of check. Raises JudgeSenseError for one that only ``what`` has."""
    names, parameters = {field.name for field in fields(kind)}, signature(check).parameters
    for name in {field.name for field in fields(other)} - names:
        if arguments[name] not in (None, (), [], {}, parameters[name].default):
            raise JudgeSenseError(f"{name}= is for {what}")
    return kind(**{name: arguments[name] for name in names})
