"""``judgesense check``: does rewording your rubric change its judge's verdicts?"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from judgesense.checking.logs import compared, judge_of, question_of
from judgesense.checking.question import PARAPHRASES, Question, run_check
from judgesense.checking.result import CheckResult
from judgesense.checking.terms import RUNS, Inconclusive, Terms
from judgesense.checking.verdicts import labelled_rows
from judgesense.files.disk import sha256_of
from judgesense.importers.log import read_graded
from judgesense.pipeline import to_stderr
from judgesense.trust.baseline import items_of_baseline, what_it_finds
from judgesense.trust.planning import assumed
from judgesense.trust.thresholds import MARGIN, STEADY_JSS

MAX_TOKENS = 1024
"""The cap on an answer to a log's grading prompt: graders write their reasons before the grade."""


def check(
    rubric: str | Path,
    data: str | Path,
    judge: Any,
    *,
    human: Sequence[str] = (),
    wordings: str | Path | None = None,
    paraphraser: Any = None,
    n_paraphrases: int | None = None,
    answers: Sequence[str] | None = None,
    options: Mapping[str, str] | None = None,
    threshold: float = STEADY_JSS,
    inconclusive: Inconclusive | None = None,
    scoring: str = "generate",
    variants: Sequence[str] | None = None,
    repeats: int = 2,
    seed: int = 0,
    limit: int | None = None,
    out: str | Path | None = None,
    runs: str | Path = RUNS,
    baseline: str | Path | None = None,
    margin: float = MARGIN,
    note: Callable[[str], None] | None = None,
    **judge_options: Any,
) -> CheckResult:
    """Judge the data under several wordings of a rubric, and measure how the verdicts change.

    Args:
        rubric: a text file; names of the data's columns in braces mark where they are shown.
        data: JSONL, CSV or Parquet; the columns ``item_id``, ``cluster_id`` and ``system_id`` are
            optional.
        human: the columns with people's labels, one per person; their majority is the gold label.
            By default they are recognised: ``gold``, ``label``, ``annotator_1``, ...
        judge: a name, Hub id, folder, function or loaded judge.
        wordings: other wordings (see :func:`judgesense_dataset.rubric.read_wordings`). Without
            it, ``<rubric>.wordings.yaml`` next to the rubric is read, and written if missing.
        paraphraser: the model that proposes wordings; by default the judge. Not used if there are
            wordings already.
        n_paraphrases: the number of wordings to propose; by default 4.
        answers: the decisions, best first; by default the gold labels in the data. Systems are
            then ranked only if the labels are numbers.
        options: for a choice between two, the column shown under each answer.
        threshold: PASS if the whole interval of JSS lies above it, FAIL if it lies below; in
            [0, 1]. The trust card and the report use the same threshold. A judge whose JSS equals
            the threshold passes in at most 5% of runs.
        inconclusive: ``pass`` or ``fail``: what a run counts as that settles neither.
        scoring: ``generate`` (text) or ``options`` (log-probabilities).
        variants: other ways to ask the rubric, as in :func:`judgesense.run`, beside the wordings
            (``["rewording", "format", "contrast"]``).
        repeats: times each prompt is asked; 2 or more give a noise floor.
        seed: fixes every random draw.
        limit: judge only the first ``limit`` items.
        out: the folder; by default one in ``runs``, named by a hash of the question, so that
            rerunning an unchanged check reads its answer.
        runs: where that folder lies.
        baseline: the folder of an earlier check or run. The decision is then what changed since,
            item by item: FAIL only if something is reliably worse, PASS if it is no worse.
        margin: with a baseline, the loss that counts as no worse.
        note: called with progress messages; by default they go to stderr.
        judge_options: options of the judge (``system_prompt``, ``base_url``, ``max_cost``, ...).

    Raises:
        JudgeSenseError: for bad input, before the data are judged.

    >>> import pathlib, tempfile
    >>> def judge(messages):
    ...     return ["YES" if "Go away" in text else "NO" for text in messages]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     home = pathlib.Path(folder)
    ...     _ = (home / "rude.txt").write_text("Is this rude? YES or NO.\\n\\n{reply}\\n")
    ...     _ = (home / "other.txt").write_text("Is the reply impolite? YES or NO.\\n")
    ...     _ = (home / "replies.csv").write_text("reply,gold\\nGo away.,YES\\nGladly!,NO\\n")
    ...     files = {"wordings": home / "other.txt", "out": home / "out"}
    ...     result = check(home / "rude.txt", home / "replies.csv", judge, note=str, **files)
    >>> result.jss
    1.0
    """
    from judgesense_dataset.items import items_of
    from judgesense_dataset.rubric import read_rubric, shown_in

    rubric, data = Path(rubric), Path(data)
    terms = Terms(
        rubric=rubric, data=data, judge=judge, answers=answers, options=options,
        wordings=wordings, paraphraser=paraphraser, n_paraphrases=n_paraphrases,
        threshold=threshold, inconclusive=inconclusive, scoring=scoring,
        variants=variants, repeats=repeats, seed=seed, limit=limit, out=out, runs=runs,
    )  # fmt: skip

    tell = note or to_stderr
    if baseline is not None:
        tell(f"baseline {baseline}: {what_it_finds(items_of_baseline(baseline))}")

    def question() -> Question:
        rows = labelled_rows(data, human, shown_in(rubric), tell)
        own = read_rubric(rubric, data, answers, options, rows)
        return Question(
            own=own,
            items=items_of(rows, str(data), own.task, own.fields),
            identity={
                "rubric": sha256_of(rubric), "data": sha256_of(data),
                **({"human": list(human)} if human else {}),
            },
            name=rubric.stem,
            wordings=rubric.with_suffix(".wordings.yaml"),
            ranked=answers is not None or own.task.ordinal,
            settings={"rubric": str(rubric), "data": str(data)},
        )  # fmt: skip

    found = run_check(question, terms, judge, judge_options, tell)
    return found if baseline is None else found.against(baseline, margin)


def planned(
    rubric: Path,
    data: Path,
    *,
    human: Sequence[str] = (),
    answers: Sequence[str] | None = None,
    options: Mapping[str, str] | None = None,
    wordings: str | Path | None = None,
    n_paraphrases: int | None = None,
    limit: int | None = None,
) -> str:
    """What a check of this size can settle, from assumed figures; nothing is loaded or judged.

    Raises JudgeSenseError for bad input, as :func:`check` does.
    """
    from judgesense_dataset.items import items_of
    from judgesense_dataset.rubric import read_rubric, read_wordings, shown_in

    rows = labelled_rows(data, human, shown_in(rubric), to_stderr)
    own = read_rubric(rubric, data, answers, options, rows)
    items = items_of(rows, str(data), own.task, own.fields)[:limit]
    place = Path(wordings) if wordings is not None else rubric.with_suffix(".wordings.yaml")
    n_wordings = 1 + (n_paraphrases or PARAPHRASES)
    if place.exists():
        n_wordings = len(read_wordings(place, own).templates)
    labelled = sum(item.gold is not None for item in items)
    return assumed(len(items), n_wordings, 2 if own.task.comparative else 1, labelled)


def check_log(
    log: str | Path,
    judge: Any = None,
    *,
    pick: str | None = None,
    wordings: str | Path | None = None,
    baseline: str | Path | None = None,
    margin: float = MARGIN,
    note: Callable[[str], None] | None = None,
    **options: Any,
) -> CheckResult:
    """Grade a log's samples again under other wordings of its rubric, and measure what changes.

    The rubric, the graded outputs and the judge come from the log. The log's own wording is asked
    too, and the table ``stored`` compares the verdicts under each wording with the log's grades.

    Args:
        log: an Inspect log (``.eval`` or ``.json``), promptfoo's ``results.json`` or DeepEval's
            ``.latest_test_run.json``.
        judge: the judge to ask; by default the one that the log names.
        pick: the scorer (Inspect) or metric (promptfoo, DeepEval), if the log has several.
        wordings: other wordings (see :func:`judgesense_dataset.rubric.read_wordings`). Without it,
            ``<log>.wordings.yaml`` is read if it is there; else Inspect's and promptfoo's own
            prompts have wordings in JudgeSense, and for others the judge proposes some.
        baseline: the folder of an earlier check, with ``margin``: as for `judgesense.check`.
        note: called with progress messages; by default they go to stderr.
        options: ``paraphraser`` to ``runs`` as for :func:`judgesense.check`, and options of the
            judge. By default the system prompt is that of the log and ``max_tokens`` is 1024.

    Raises:
        JudgeSenseError: for bad input, before anything is judged.

    >>> import json, pathlib, tempfile
    >>> def sample(n, answer, grade):
    ...     prompt = f"Is this a number?\\n\\nText: {answer}"
    ...     grading = [{"role": "user", "content": prompt}, {"content": grade, "model": "m/g"}]
    ...     score = {"g": {"value": grade, "metadata": {"grading": grading}}}
    ...     return {"id": n, "input": "?", "output": {"completion": answer}, "scores": score}
    >>> samples = [sample(1, "twelve", "C"), sample(2, "a house", "I")]
    >>> content = {"version": 2, "eval": {"model": "m/x", "task": "t"}, "samples": samples}
    >>> def judge(messages):
    ...     return ["C" if "twelve" in text else "I" for text in messages]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     home = pathlib.Path(folder)
    ...     _ = (home / "log.json").write_text(json.dumps(content))
    ...     _ = (home / "other.txt").write_text("Does the text name a number?")
    ...     files = {"wordings": home / "other.txt", "out": home / "out"}
    ...     found = check_log(home / "log.json", judge, note=str, **files)
    >>> [(row["wording"], row["same"], row["n"]) for row in found.result.table("stored").rows]
    [('rubric', 2, 2), ('wording-1', 2, 2)]
    """
    shared = {field.name for field in fields(Terms)} - {"rubric", "data", "answers", "options"}
    given = {name: options.pop(name) for name in shared & options.keys()}
    terms = Terms(data=Path(log), judge=judge, pick=pick, wordings=wordings, **given)
    graded = read_graded(log, pick)
    asked, own = (judge, {}) if judge is not None else judge_of(graded)
    if isinstance(asked, (str, Path)) and Path(asked).suffix not in (".yaml", ".yml"):
        options = {"max_tokens": MAX_TOKENS, **graded.options, **own, **options}
    question = question_of(graded, pick)
    tell = note or to_stderr
    if baseline is not None:
        tell(f"baseline {baseline}: {what_it_finds(items_of_baseline(baseline))}")
    found = compared(run_check(lambda: question, terms, asked, options, tell), graded)
    return found if baseline is None else found.against(baseline, margin)
