"""The outcome of a check: the decision, its figures, and the tables and findings beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from judgesense.checking.options import Inconclusive
from judgesense.checking.requirements import Requirement, required
from judgesense.comparison.baseline import against_baseline
from judgesense.comparison.baseline_result import BaselineComparison
from judgesense.log.folder import read_record
from judgesense.measure.assessment import Assessment, ReportContents
from judgesense.measure.card import TRUST
from judgesense.measure.cost import costs
from judgesense.measure.gate import Gate, combined, gate
from judgesense.measure.rankings import rankings
from judgesense.measure.thresholds import MARGIN
from judgesense.reporting.change_page import CHANGE_PAGE, write_change_page
from judgesense.reporting.report import Report
from judgesense.reporting.run_tables import (
    cost_table,
    flips_table,
    jss_table,
    ranking_finding,
    systems_table,
    wordings_table,
)
from judgesense.reporting.study_result import Result
from judgesense.statistics.result import ResultMapping

if TYPE_CHECKING:
    from judgesense_dataset.templates import TaskTemplates


@dataclass(frozen=True, eq=False)
class CheckResult(ResultMapping):
    """The outcome of a check: the gate's decision, its figures and tables, and the run's folder.

    The figures are those of the judge and task that deserve the least trust, if there are several;
    ``trust`` and ``next`` have the card and the next step of each. ``jss`` with ``ci_low`` and
    ``ci_high`` is that of the card's check `steady`: over equivalent wordings of one polarity; from
    four wordings on, the interval is for wordings like these.
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
    coverage: float | None
    """The share of the pairs that got two different verdicts; None without pairs."""
    unanswered: int
    """Prompts without an answer."""
    gate: Gate
    """The decision, PASS, FAIL or INCONCLUSIVE, and why."""
    card: Mapping[str, Any]
    """The trust card, as in ``report.json``: ``trust``, ``text`` and ``checks``."""
    next_step: str
    """What to do next, with one command."""
    inconclusive: Inconclusive | None = None
    """What INCONCLUSIVE counts as; None for neither."""
    change: BaselineComparison | None = None
    """What is better or worse than the baseline, which then decides the gate."""
    is_gate: bool = True
    """Whether anything was to be decided: not for verdicts without baseline and requirements."""

    @classmethod
    def of(
        cls, report: Report, out: Path, result: Result, inconclusive: Inconclusive | None = None
    ) -> CheckResult:
        """The outcome of a check with this report in the folder ``out``; ``result`` has the tables
        and findings after the verdict."""
        entry = max(report.assessments, key=lambda entry: TRUST.index(entry.card.trust))
        steady, cell, step = entry.card.checks["steady"], entry.mapped, entry.next_step
        runs = report.contents.runs
        failed = sum(len(judge.get("failed", ())) for run in runs for judge in run["judges"])
        constant = cell.degenerate is not None
        next_step = "" if step is None else f"Next: {step.text}"
        if step is not None and step.command:
            next_step += f" `{step.command}`"
        found = cls(
            result=result,
            report=report,
            out=out,
            jss=steady.estimate,
            ci_low=steady.ci_low,
            ci_high=steady.ci_high,
            threshold=steady.threshold,
            degenerate=constant,
            coverage=cell.coverage,
            unanswered=failed,
            gate=gate(entry.card, failed=failed, coverage=cell.coverage, constant=constant),
            card=report.trust[report.assessments.index(entry)],
            next_step=next_step,
            inconclusive=inconclusive,
        )
        others = (text for text in result.findings if text != f"{found.gate.because}.")
        result.findings = [found.verdict, found.next_step, *others]
        return found

    @property
    def trust(self) -> list[dict[str, Any]]:
        """The trust card of each judge and task."""
        return self.report.trust

    @property
    def next(self) -> list[dict[str, Any]]:
        """The next step of each judge and task: ``kind``, ``text`` and ``command``."""
        return self.report.next

    @property
    def people(self) -> list[dict[str, Any]]:
        """How well the judge agrees with each person: ``accuracy``, ``kappa`` and more."""
        return self.report.people

    @property
    def scores(self) -> list[dict[str, Any]]:
        """Each judge's scores beside people's, where both are numbers: ``spearman``, ``mae``,
        ``bias`` and ``factor`` with intervals."""
        return list((read_record(self.out) or {}).get("scores") or ())

    def against(self, baseline: str | Path, margin: float = MARGIN, looks: int = 1) -> CheckResult:
        """The result, whose gate is what changed since an earlier check or run.

        Raises JudgeSenseError as :func:`judgesense.comparison.baseline.against_baseline`.
        """
        change = against_baseline(self.out, baseline, margin=margin, looks=looks)
        title = f"{change.gate.decision}: {change.gate.because}."
        page = self.out / CHANGE_PAGE
        write_change_page(page, Path(baseline), self.out, title, change.sentences(), change.moved)
        return replace(self, gate=change.gate, change=change, is_gate=True)

    def requiring(self, requirements: Sequence[str]) -> CheckResult:
        """The result that also has to reach the requirements; itself without any.

        With a baseline, the worse of both decisions counts. Raises JudgeSenseError for a malformed
        requirement, and for an unknown task.
        """
        if not requirements:
            return self
        reached = required(self.report, [Requirement.parse(text) for text in requirements])
        gates = [reached] if self.change is None else [self.gate, reached]
        return replace(self, gate=combined(gates), is_gate=True)

    def to_dict(self) -> dict[str, Any]:
        """The figures, `decision`, `passed` and `verdict`, and the tables (`study.json`) under
        `study`."""
        kept = {name: self[name] for name in self if name not in ("result", "report", "out")}
        gate = {"decision": self.decision, "cause": self.gate.cause, "because": self.gate.because}
        return {
            "passed": self.passed,
            "verdict": self.verdict,
            "out": str(self.out),
            "decision": self.decision,
            **kept,
            "gate": gate,
            "card": dict(self.card),
            "change": None if self.change is None else self.change.to_dict(),
            "study": self.result.as_json(),
        }

    def to_pandas(self) -> Any:
        """The trust cards as a `pandas.DataFrame`, as that of the report."""
        return self.report.to_pandas()

    def disagreements(self) -> Any:
        """Where the judge is wrong or unsure (:meth:`judgesense.Report.disagreements`)."""
        return self.report.disagreements()

    def plot(self) -> Any:
        """The figure of the report (:meth:`judgesense.Report.plot`)."""
        return self.report.plot()

    def __repr__(self) -> str:
        return f"<CheckResult {self.decision}: {self.report!r}>"

    def __str__(self) -> str:
        change = "".join(f"{line}\n" for line in self.change_lines())
        return f"{self.verdict}.\n{change}\n{self.report}"

    def change_lines(self) -> list[str]:
        """What changed since the baseline, beside what the verdict has said; empty without one."""
        lines = [] if self.change is None else str(self.change).splitlines()
        return [line for line in lines if line not in self.verdict]

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(str(self))

    def _repr_html_(self) -> str:
        return f"<p>{escape(self.verdict)}</p>{self.report._repr_html_()}"

    @property
    def decision(self) -> str:
        """``PASS``, ``FAIL`` or ``INCONCLUSIVE``."""
        return self.gate.decision

    @property
    def passed(self) -> bool | None:
        """Whether the decision is PASS, or INCONCLUSIVE and counts as that; None where nothing was
        to be decided."""
        return self.exit_code == 0 if self.is_gate else None

    @property
    def exit_code(self) -> int:
        """0 for PASS, 1 for FAIL, 3 for INCONCLUSIVE unless that counts as one of the others; 0
        where nothing was to be decided."""
        if not self.is_gate:
            return 0
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


def result_of(
    report: ReportContents,
    assessment: Assessment,
    log: pa.Table,
    entry: TaskTemplates,
    labels: Mapping[str, Sequence[str]],
    ranked: bool,
) -> Result:
    """The result of a check, from its report, its judge's assessment and its log.

    ``labels`` are those of each task of the log; ``entry`` has the wordings. ``ranked`` says
    whether the order of the labels ranks the systems.
    """
    from judgesense_dataset.polarity import DIRECT, INVERTED, polarity_cue

    result = Result("check", f"Check of {assessment.judge}", {})
    ranked_systems = rankings(log, labels)
    tables = [jss_table(report), wordings_table(report)]
    if ranked:
        tables.append(systems_table(ranked_systems))
    elif ranked_systems:
        # The gold labels do not say which answer is better.
        ranked_systems = {}
        result.limits.append("to rank the systems, name the labels with --answers, best first")
    for other in entry.templates[1:]:
        if polarity_cue(other.text, entry.task.labels) not in (
            None,
            INVERTED if other.inverted else DIRECT,
        ):
            result.limits.append(f"{other.template_id} may ask a different question; read it")
    tables += [flips_table(report), cost_table(costs(log, report.runs))]
    result.tables = [table for table in tables if table.rows]
    result.findings = [finding.text for finding in report.findings]
    result.findings += map(ranking_finding, ranked_systems.values())
    return result
