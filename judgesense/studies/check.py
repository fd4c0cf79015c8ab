"""``judgesense check``: does rewording your rubric change its judge's verdicts?"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from judgesense.decisions import read_log
from judgesense.files.disk import sha256_of
from judgesense.pipeline import Settings, identity_of, resolve_all, to_stderr
from judgesense.reporting.build import write_report
from judgesense.reporting.report import Report
from judgesense.reporting.screen import next_steps
from judgesense.run_folder.folder import read_record, save_run
from judgesense.statistics.result import ResultMapping
from judgesense.studies.check_command import CheckCommand
from judgesense.studies.check_question import (
    RUNS,
    Inconclusive,
    Question,
    Terms,
    digest_of,
    with_wordings,
)  # fmt: skip
from judgesense.studies.check_tables import result_of
from judgesense.studies.common.measures import cases
from judgesense.studies.common.result import Result, judged
from judgesense.trust.gate import Gate, gate
from judgesense.trust.thresholds import STEADY_JSS, Thresholds


@dataclass(frozen=True, eq=False)
class CheckResult(ResultMapping):
    """The outcome of a check: the gate's decision, its figures and tables, and the run's folder.

    ``jss`` with ``ci_low`` and ``ci_high`` is that of the trust card's check `steady`: over
    equivalent wordings of one polarity; from four wordings on, the interval is for wordings like
    these.
    """

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
    gate: Gate
    """The decision, PASS, FAIL or INCONCLUSIVE, and why."""
    card: Mapping[str, Any]
    """The trust card, as in ``report.json``: ``trust``, ``text`` and ``checks``."""
    next_step: str
    """What to do next, with one command."""
    confidence: float = 0.95
    """The level of the interval of JSS."""
    inconclusive: Inconclusive | None = None
    """What INCONCLUSIVE counts as; None: as neither."""
    stored: Mapping[str, Any] | None = None
    """For a check of a log: how many of its ``n`` grades the judge gives again (``same``,
    ``share``) under the log's own wording."""

    def to_dict(self) -> dict[str, Any]:
        """The figures, `decision`, `passed` and `verdict`, and the tables (`study.json`) under
        `study`."""
        kept = {name: self[name] for name in self if name not in ("result", "report", "out")}
        told = {"passed": self.passed, "verdict": self.verdict, "out": str(self.out)}
        gate = {"decision": self.decision, "cause": self.gate.cause, "because": self.gate.because}
        plan = self.gate.plan.to_dict() if self.gate.plan else None
        kept |= {"gate": {**gate, "plan": plan}, "card": dict(self.card)}
        return {**told, "decision": self.decision, **kept, "study": self.result.as_json()}

    def to_pandas(self) -> Any:
        """The cells of the report as a `pandas.DataFrame`."""
        return self.report.to_pandas()

    def lines(self) -> list[tuple[str, str]]:
        """The verdict, then every finding."""
        told = (text for text in self.result.findings if text != self.verdict)
        return [("check", self.verdict), *(("finding", text) for text in told)]

    @property
    def decision(self) -> str:
        """``PASS``, ``FAIL`` or ``INCONCLUSIVE``."""
        return self.gate.decision

    @property
    def passed(self) -> bool:
        """Whether the decision is PASS, or INCONCLUSIVE and counts as that."""
        return self.exit_code == 0

    @property
    def exit_code(self) -> int:
        """0 for PASS, 1 for FAIL, 3 for INCONCLUSIVE unless that counts as one of the others."""
        codes = {"PASS": 0, "FAIL": 1, "pass": 0, "fail": 1}
        if self.decision == "INCONCLUSIVE":
            return 3 if self.inconclusive is None else codes[self.inconclusive]
        return codes[self.decision]

    @property
    def verdict(self) -> str:
        """One line: the decision, and why."""
        if self.decision != "INCONCLUSIVE" or self.inconclusive is None:
            return self.gate.text
        return f"{self.gate.text} (counts as {self.inconclusive})"


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
        threshold: PASS if the whole interval of JSS lies above it, FAIL if it lies below; in
            [0, 1]. The trust card and the report use the same threshold.
        confidence: level of that interval, within (0, 1). With 0.95, a judge whose JSS equals the
            threshold passes in at most 5% of runs.
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
    from judgesense_dataset.rubric import read_rubric

    rubric, data = Path(rubric), Path(data)
    terms = Terms(
        wordings=wordings, paraphraser=paraphraser, n_paraphrases=n_paraphrases,
        threshold=threshold, confidence=confidence, inconclusive=inconclusive, scoring=scoring,
        variants=variants, repeats=repeats, seed=seed, limit=limit, out=out, runs=runs,
    )  # fmt: skip
    command = CheckCommand(rubric, data, judge, terms, answers, options)

    def question() -> Question:
        own = read_rubric(rubric, data, answers, options)
        return Question(
            own=own,
            items=load_items(data, own.task, own.fields),
            identity={"rubric": sha256_of(rubric), "data": sha256_of(data)},
            name=rubric.stem,
            wordings=rubric.with_suffix(".wordings.yaml"),
            ranked=answers is not None or own.task.ordinal,
            told={"rubric": str(rubric), "data": str(data)},
        )

    return run_check(question, judge, command, note or to_stderr, judge_options)


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
    report = judged(
        [spec], benchmark, identity, settings, out, note, spent, terms.variants or (),
        lambda: ({task.name: entry}, items), None,
    )  # fmt: skip
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
