"""``judgesense check --log``: is another tool's grading steady when its rubric is reworded?"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from judgesense.decisions import REWORDING, read_log
from judgesense.files.disk import sha256_of
from judgesense.importers.graded import TASK, GradedLog
from judgesense.importers.graded_logs import read_graded
from judgesense.pipeline import to_stderr
from judgesense.statistics.kappa import cohen_kappa
from judgesense.studies.check import CheckResult, run_check
from judgesense.studies.check_command import CheckCommand
from judgesense.studies.check_question import RUNS, Inconclusive, Question, Terms
from judgesense.studies.common.result import Record, Table
from judgesense.studies.log_judges import judge_of
from judgesense.tasks import UNDECIDED
from judgesense.text import percent
from judgesense.trust.thresholds import STEADY_JSS
from local_judges.parsing import parse

MAX_TOKENS = 1024
"""The cap on an answer unless you set one: graders write their reasons before the grade."""


def check_log(
    log: str | Path,
    judge: Any = None,
    *,
    pick: str | None = None,
    wordings: str | Path | None = None,
    paraphraser: Any = None,
    n_paraphrases: int | None = None,
    threshold: float = STEADY_JSS,
    confidence: float = 0.95,
    inconclusive: Inconclusive | None = None,
    scoring: str = "generate",
    variants: Sequence[str] | None = None,
    repeats: int = 2,
    seed: int = 0,
    limit: int | None = None,
    out: str | Path | None = None,
    runs: str | Path = RUNS,
    note: Callable[[str], None] | None = None,
    **judge_options: Any,
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
        judge_options: options of the judge. By default the system prompt is that of the log and
            ``max_tokens`` is 1024.

    The others (``paraphraser`` to ``note``) are as for :func:`judgesense.check`.

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
    note = note or to_stderr
    graded = read_graded(log, pick)
    asked, options = (judge, {}) if judge is not None else judge_of(graded)
    if isinstance(asked, (str, Path)) and Path(asked).suffix not in (".yaml", ".yml"):
        judge_options = {"max_tokens": MAX_TOKENS, **graded.options, **options, **judge_options}
    terms = Terms(
        wordings=wordings, paraphraser=paraphraser, n_paraphrases=n_paraphrases,
        threshold=threshold, confidence=confidence, inconclusive=inconclusive, scoring=scoring,
        variants=variants, repeats=repeats, seed=seed, limit=limit, out=out, runs=runs,
    )  # fmt: skip
    command = CheckCommand(None, Path(log), judge, terms, pick=pick)
    found = run_check(lambda: _question(graded, pick), asked, command, note, judge_options)
    return _compared(found, graded)


def _question(graded: GradedLog, pick: str | None) -> Question:
    from judgesense_dataset.templates import TaskTemplates

    where = graded.where
    return Question(
        own=TaskTemplates(graded.task, (graded.template,)),
        items=graded.items,
        identity={"log": sha256_of(where), "pick": pick},
        name=where.stem.lstrip("."),
        wordings=where.with_suffix(".wordings.yaml"),
        ranked=False,
        told={"log": str(where), "tool": graded.tool, "graded by": graded.judge or "unknown"},
        known=graded.known,
    )


def _compared(found: CheckResult, graded: GradedLog) -> CheckResult:
    """The result with the comparison of its verdicts and the log's grades."""
    stored = dict(zip((item.item_id for item in graded.items), graded.stored, strict=True))
    rows = stored_rows(read_log(found.out), stored)
    result, own = found.result, rows[0]
    result.tables.insert(0, Table.from_records(
        "stored", "Compared with the log's grades", rows,
        f"The grades are those of {graded.judge or 'the judge of the log'} in "
        f"{graded.where.name}. n: samples with a verdict in both; undecided: without one in "
        "either. The wording `rubric` is the log's own.",
    ))  # fmt: skip
    result.findings.insert(2, _finding(own, found))
    result.limits += graded.notes
    told = [(text, label) for text, label in zip(graded.texts, graded.stored, strict=True) if text]
    options, aliases = graded.task.labels, graded.template.aliases
    other = sum(
        parse(text, options, aliases) != label for text, label in told if label not in UNDECIDED
    )
    if other:
        result.limits.append(
            f"JudgeSense reads {other} of the log's {len(told)} answers otherwise than "
            f"{graded.tool} did"
        )
    result.write(found.out / "check")
    return replace(found, stored={"n": own["n"], "same": own["same"], "share": own["share"]})


def stored_rows(log: pa.Table, stored: Mapping[str, str]) -> list[Record]:
    """How often the verdicts under each wording are the stored grades, the log's own first.

    ``stored`` maps items to labels. Each prompt counts once, as it was first asked.
    """
    by_wording: dict[str, dict[str, str]] = {}
    names = ["template_id", "item_id", "repeat", "decision", "variant"]
    for row in log.select(names).to_pylist():
        if row["repeat"] == 0 and row["variant"] in (None, REWORDING):
            by_wording.setdefault(row["template_id"], {})[row["item_id"]] = row["decision"]
    order = sorted(by_wording, key=lambda name: name != TASK)
    found: list[Record] = []
    for wording in order:
        told = [(said, stored[item]) for item, said in by_wording[wording].items()]
        both = [pair for pair in told if not {*pair} & {*UNDECIDED}]
        same = sum(said == grade for said, grade in both)
        found.append({
            "wording": wording, "n": len(both), "same": same,
            "share": same / len(both) if both else None,
            "kappa": cohen_kappa([a for a, _ in both], [b for _, b in both]) if both else None,
            "undecided": len(told) - len(both),
        })  # fmt: skip
    return found


def _finding(own: Record, found: CheckResult) -> str:
    n, same = own["n"], own["same"]
    if not n:
        return "no sample has both a verdict and a grade in the log, so they cannot be compared"
    share = own["share"]
    assert isinstance(share, float)
    told = f"under the log's own wording, {found.card['judge']} gives {same} of {n} grades again"
    return told if same == n else f"{told} ({percent(share)})"
