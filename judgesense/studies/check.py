"""``judgesense check``: does rewording your rubric change its judge's verdicts?"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from judgesense.decisions import SCORINGS, read_log
from judgesense.errors import JudgeSenseError, MissingExtraError
from judgesense.pipeline import Settings, identity_of, resolve_all, to_stderr
from judgesense.reporting.report import Report
from judgesense.run_folder import sha256_of
from judgesense.statistics.consequence import Consequence
from judgesense.statistics.result import ResultMapping
from judgesense.studies.common.measures import (
    cases,
    cost_table,
    flips_table,
    jss_table,
    sensitivity,
    systems_table,
    wording_table,
)
from judgesense.studies.common.result import Record, Result, Table, judged
from judgesense.text import join, number, percent
from judgesense.trust.thresholds import LEAST_COVERAGE, STEADY_JSS

if TYPE_CHECKING:
    from judgesense_dataset.templates import TaskTemplates

RUNS = Path("runs/check")
PARAPHRASES = 4
"""The default number of proposed wordings."""


@dataclass(frozen=True, eq=False)
class CheckResult(ResultMapping):
    """The outcome of a check: its figures, whether they pass, its tables, and the run's folder."""

    result: Result
    report: Report
    out: Path
    jss: float | None
    ci_low: float | None
    ci_high: float | None
    threshold: float
    degenerate: bool
    """Whether the judge gave one label throughout, or always the option shown first."""
    coverage: float
    """The share of the pairs that got two verdicts."""
    failed: int
    """Prompts without an answer."""

    def to_dict(self) -> dict[str, Any]:
        """The figures, `passed` and `verdict`, and the tables (`study.json`) under `study`."""
        kept = {name: self[name] for name in self if name not in ("result", "report", "out")}
        told = {"passed": self.passed, "verdict": self.verdict, "out": str(self.out)}
        return {**told, **kept, "study": self.result.as_json()}

    def to_pandas(self) -> Any:
        """The cells of the report as a `pandas.DataFrame`."""
        return self.report.to_pandas()

    def lines(self) -> list[tuple[str, str]]:
        """The verdict, then every finding."""
        told = (text for text in self.result.findings if text != self.verdict)
        return [("check", self.verdict), *(("finding", text) for text in told)]

    @property
    def passed(self) -> bool:
        """Whether JSS is defined and not below the threshold, every prompt has an answer, at least
        half of the pairs are decided, and the judge is not degenerate (a judge that never reads
        also agrees with itself)."""
        enough = self.jss is not None and self.jss >= self.threshold
        known = not self.failed and self.coverage >= LEAST_COVERAGE
        return enough and known and not self.degenerate

    @property
    def verdict(self) -> str:
        """One line: passed or failed, and why."""
        if self.failed:
            return f"FAILED: {self.failed} prompts have no answer"
        if self.jss is None:
            return "FAILED: no pair of wordings got two verdicts, so JSS is undefined"
        if self.coverage < LEAST_COVERAGE:
            return (
                f"FAILED: only {percent(self.coverage)} of the pairs got two verdicts (JSS "
                f"{number(self.jss)} covers only these)"
            )
        if self.degenerate:
            return (
                f"FAILED: JSS {number(self.jss)} says nothing about a judge that always gives one "
                "label, or always the option shown first"
            )
        sign, word = (">=", "PASSED") if self.passed else ("<", "FAILED")
        interval = "no interval"
        if self.ci_low is not None:
            interval = f"95% interval {number(self.ci_low)} to {number(self.ci_high)}"
        return f"{word}: JSS {number(self.jss)} {sign} {self.threshold:g} ({interval})"


def check(
    rubric: str | Path,
    data: str | Path,
    judge: Any,
    *,
    wordings: str | Path | None = None,
    paraphraser: Any = None,
    n_paraphrases: int | None = None,
    answers: Sequence[str] | None = None,
    options: Mapping[str, str] | None = None,
    threshold: float = STEADY_JSS,
    scoring: str = "generate",
    repeats: int = 2,
    seed: int = 0,
    limit: int | None = None,
    out: str | Path | None = None,
    note: Callable[[str], None] | None = None,
    **judge_options: Any,
) -> CheckResult:
    """Judge the data under several wordings of a rubric, and measure how the verdicts change.

    Args:
        rubric: a text file; names of the data's columns in braces mark where they are shown.
        data: JSONL, CSV or Parquet; the columns ``gold``, ``item_id``, ``cluster_id`` and
            ``system_id`` are optional.
        judge: a name, Hub id, folder, function or loaded judge.
        wordings: other wordings (see :func:`judgesense_dataset.rubric.read_wordings`). Without
            it, ``<rubric>.wordings.yaml`` next to the rubric is read, and written if missing.
        paraphraser: the model that proposes wordings; by default the judge. Not used if there are
            wordings already.
        n_paraphrases: the number of wordings to propose; by default `PARAPHRASES`.
        answers: the decisions, best first; by default the gold labels in the data. Systems are
            then ranked only if the labels are numbers.
        options: for a choice between two, the column shown under each answer.
        threshold: the JSS, in [0, 1], below which the check fails.
        scoring: ``generate`` (text) or ``options`` (log-probabilities).
        repeats: times each prompt is asked; 2 or more give a noise floor.
        seed: fixes every random draw.
        limit: judge only the first ``limit`` items.
        out: the folder; by default one under ``runs/check`` named by a hash of the question, so
            that rerunning an unchanged check reads its answer.
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
    from judgesense_dataset.items import load_items
    from judgesense_dataset.pairing import build
    from judgesense_dataset.rubric import propose_wordings, read_rubric, read_wordings

    note = note or to_stderr
    rubric, data = Path(rubric), Path(data)
    if scoring not in SCORINGS:
        raise JudgeSenseError(f"unknown scoring {scoring!r}; choose one of {', '.join(SCORINGS)}")
    if not 0 <= threshold <= 1:
        raise JudgeSenseError(f"the threshold must be between 0 and 1, got {threshold}")
    (spec,) = resolve_all([judge], scoring, judge_options)
    settings = Settings.of(scoring, None, None, repeats, seed, limit)
    own = read_rubric(rubric, data, answers, options)
    items = load_items(data, own.task, own.fields)
    place = rubric.with_suffix(".wordings.yaml") if wordings is None else Path(wordings)
    spent = 0.0
    if wordings is not None or place.exists():
        entry = read_wordings(place, own)
        if paraphraser is not None or n_paraphrases is not None:
            note(
                f"using the wordings in {place}; no new ones are proposed. To propose new ones, "
                "remove the file or leave out --wordings"
            )
    else:
        # The judge's settings (endpoint, key) do not apply to another paraphraser.
        asked_of, own_options = (judge, judge_options) if paraphraser is None else (paraphraser, {})
        with _writer(asked_of, own_options, seed) as writer:
            before = getattr(writer, "spent", 0.0)
            count = PARAPHRASES if n_paraphrases is None else n_paraphrases
            entry = propose_wordings(own, writer, count, place, note)
            spent = getattr(writer, "spent", 0.0) - before
    identity = {
        "rubric": sha256_of(rubric), "data": sha256_of(data), "wordings": sha256_of(place),
        "answers": list(own.task.labels), "options": dict(own.task.options),
    }  # fmt: skip
    if out is None:
        asked = [identity, identity_of(spec), scoring, repeats, seed, limit]
        digest = hashlib.sha256(json.dumps(asked, sort_keys=True, default=str).encode())
        out = RUNS / f"{rubric.stem}-{digest.hexdigest()[:8]}"
    out = Path(out)
    benchmark = build({entry.task.name: entry}, items, "full", seed=seed)
    report = judged([spec], benchmark, identity, settings, out, note, spent)
    ((_, _, cell),) = cases(report)
    ranked = answers is not None or own.task.ordinal
    result = _result(report, cell, read_log(out), entry, ranked)
    result.settings = {
        "rubric": str(rubric), "data": str(data), "judge": cell["judge"],
        "items": min(limit or len(items), len(items)), "wordings": len(entry.templates),
        "repeats": repeats, "scoring": scoring, "signature": cell["signature"],
    }  # fmt: skip
    failed = sum(len(each["failed"]) for run in report["runs"] for each in run["judges"])
    found = CheckResult(
        result, Report.of(report), out, cell["jss"], cell["ci_low"], cell["ci_high"], threshold,
        cell["degenerate"] is not None, cell["coverage"], failed,
    )  # fmt: skip
    result.findings.insert(0, found.verdict)
    result.write(out / "check")
    return found


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


def _result(
    report: Mapping[str, Any],
    cell: Mapping[str, Any],
    log: pa.Table,
    entry: TaskTemplates,
    ranked: bool,
) -> Result:
    result = Result("check", f"Check of {cell['judge']}", {})
    scores, chosen = wording_table(log)
    systems, consequences = systems_table(log, {entry.task.name: entry.task.labels})
    tables = [jss_table(report), scores]
    if ranked:
        tables.append(systems)
    elif systems.rows:
        # The gold labels do not say which answer is better.
        consequences = {}
        result.limits.append("to rank the systems, give --answers, best first")
    tables += [flips_table(report), _equivalence(entry, result.limits), cost_table(report, log)]
    result.tables = [table for table in tables if table.rows]
    result.findings = [sensitivity(cell), *_ranking(consequences.values())]
    if chosen:
        result.findings.append(
            f"use the wording {join(sorted(set(chosen.values())))}: it has the highest lower bound"
        )
    else:
        result.limits.append(
            "no wording is recommended: there are too few items, or the best wording leaves most "
            "answers without a verdict"
        )
    result.findings += [
        finding["text"] for finding in report["findings"] if finding["kind"] != "prefer"
    ]
    return result


def _ranking(found: Iterable[Consequence]) -> list[str]:
    lines = []
    for each in found:
        if each.winner_change_rate is None:
            lines.append(f"cannot tell whether the ranking of systems survives: {each.degenerate}")
        elif each.ranking_change_rate == 0:
            lines.append(f"all {each.n_templates} wordings rank the systems alike")
        else:
            lines.append(
                f"the ranking of the systems does not survive rewording: it differs in "
                f"{percent(each.ranking_change_rate)} of the pairs of wordings, the winner in "
                f"{percent(each.winner_change_rate)} (most often: {join(each.modal_winner)})"
            )
    return lines


def _equivalence(entry: TaskTemplates, limits: list[str]) -> Table:
    """The distance of each wording from the rubric's own; empty, with a limit, if not measured."""
    from judgesense_dataset.polarity import DIRECT, INVERTED, cue
    from judgesense_dataset.similarity import EmbedderMissing, measure

    own, *others = entry.templates
    rows: list[Record] = []
    measured: Sequence[Any] = ()
    try:
        measured = measure([(own.text, other.text) for other in others])
    except (MissingExtraError, EmbedderMissing) as error:
        limits.append(f"not measured whether the wordings mean the same: {error}")
    said = {True: "same", False: "different", None: "unclear"}
    for other, found in zip(others, measured, strict=False):
        polarity = cue(other.text, entry.task.labels)
        turned = polarity not in (None, INVERTED if other.inverted else DIRECT)
        rows.append({
            "template": other.template_id, "edit_distance": found.edit_distance,
            "cosine": found.cosine, "meaning": said[found.verdict],
            "polarity": "inverted" if turned else "–",
        })  # fmt: skip
        if found.verdict is False or turned:
            limits.append(f"check {other.template_id}: it may ask a different question")
    return Table.from_records(
        "equivalence", "Do the wordings mean the same?", rows,
        "Compared with the rubric's own wording: Levenshtein distance over the longer text's "
        "length, and the cosine of all-MiniLM-L6-v2 embeddings.",
        template="wording",
    )  # fmt: skip
