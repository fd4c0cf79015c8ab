"""The outcome of a check: the decision, its figures, and the tables and findings beside it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa

from judgesense.errors import MissingExtraError
from judgesense.files.disk import write_text
from judgesense.files.documents import OwnShape, fit, parse_json
from judgesense.reporting.report import Report
from judgesense.reporting.result import Record, Result, Table
from judgesense.reporting.run_tables import (
    cost_table,
    flips_table,
    jss_table,
    ranking_finding,
    sensitivity,
    systems_table,
    wordings_table,
)
from judgesense.run_folder.report import identity, main_cells
from judgesense.statistics.result import ResultMapping
from judgesense.trust.baseline import BaselineComparison, against_baseline
from judgesense.trust.card import TRUST, Gate, gate
from judgesense.trust.thresholds import MARGIN

if TYPE_CHECKING:
    from judgesense_dataset.templates import TaskTemplates
    from judgesense_dataset.validators import Measure

RUNS = Path("runs/check")
Inconclusive = Literal["pass", "fail"]


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
    """The share of the pairs that got two verdicts; None without any pair."""
    failed: int
    """Prompts without an answer."""
    gate: Gate
    """The decision, PASS, FAIL or INCONCLUSIVE, and why."""
    card: Mapping[str, Any]
    """The trust card, as in ``report.json``: ``trust``, ``text`` and ``checks``."""
    next_step: str
    """What to do next, with one command."""
    inconclusive: Inconclusive | None = None
    """What INCONCLUSIVE counts as; None: as neither."""
    change: BaselineComparison | None = None
    """What is better or worse than the baseline, which then decides the gate."""

    @classmethod
    def of(
        cls, report: Report, out: Path, result: Result, inconclusive: Inconclusive | None = None
    ) -> CheckResult:
        """The outcome of a check with this report in the folder ``out``; ``result`` has the tables
        and findings after the verdict."""
        card = max(report.trust, key=lambda card: TRUST.index(card["trust"]))
        key, steady = identity(card), card["checks"]["steady"]
        cell = main_cells(report)[key]["mapped"]
        failed = sum(len(judge.get("failed", ())) for run in report.runs for judge in run["judges"])
        constant = cell["degenerate"] is not None
        (step,) = (step for step in report.next if identity(step) == key)
        command = f" `{step['command']}`" if step["command"] else ""
        found = cls(
            result=result, report=report, out=out, jss=steady["estimate"],
            ci_low=steady["ci_low"], ci_high=steady["ci_high"], threshold=steady["threshold"],
            degenerate=constant, coverage=cell["coverage"], failed=failed,
            gate=gate(card, failed=failed, coverage=cell["coverage"], constant=constant),
            card=card, next_step=f"Next: {step['text']}{command}", inconclusive=inconclusive,
        )  # fmt: skip
        result.findings[:0] = [found.verdict, found.next_step]
        return found

    @property
    def trust(self) -> list[dict[str, Any]]:
        """The trust card of each judge and task."""
        return self.report.trust

    @property
    def next(self) -> list[dict[str, Any]]:
        """The next step of each judge and task: ``kind``, ``text`` and ``command``."""
        return self.report.next

    def against(self, baseline: str | Path, margin: float = MARGIN) -> CheckResult:
        """The result, whose gate is what changed since an earlier check or run.

        Raises JudgeSenseError as :func:`judgesense.trust.baseline.against_baseline`.
        """
        change = against_baseline(self.out, baseline, margin=margin)
        return replace(self, gate=change.gate, change=change)

    def to_dict(self) -> dict[str, Any]:
        """The figures, `decision`, `passed` and `verdict`, and the tables (`study.json`) under
        `study`."""
        kept = {name: self[name] for name in self if name not in ("result", "report", "out")}
        gate = {"decision": self.decision, "cause": self.gate.cause, "because": self.gate.because}
        return {
            "passed": self.passed, "verdict": self.verdict, "out": str(self.out),
            "decision": self.decision, **kept, "gate": gate, "card": dict(self.card),
            "change": None if self.change is None else self.change.to_dict(),
            "study": self.result.as_json(),
        }  # fmt: skip

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
        change = "" if self.change is None else f"{self.change}\n"
        return f"{self.verdict}.\n{change}\n{self.report}"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(str(self))

    def _repr_html_(self) -> str:
        return f"<p>{escape(self.verdict)}</p>{self.report._repr_html_()}"

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


class _Kept(OwnShape):
    """The distances of pairs of wordings, kept beside a check."""

    texts: str
    measures: list[tuple[float, float]]


def result_of(
    report: Mapping[str, Any],
    cell: Mapping[str, Any],
    log: pa.Table,
    entry: TaskTemplates,
    ranked: bool,
    kept: Path,
) -> Result:
    """The result of a check, from its report, its judge's cell and its log.

    ``ranked`` says whether the order of the labels ranks the systems. ``kept`` is the file that
    holds the wordings' distances once they are measured.
    """
    result = Result("check", f"Check of {cell['judge']}", {})
    systems, consequences = systems_table(log, {entry.task.name: entry.task.labels})
    tables = [jss_table(report), wordings_table(report)]
    if ranked:
        tables.append(systems)
    elif systems.rows:
        # The gold labels do not say which answer is better.
        consequences = {}
        result.limits.append("to rank the systems, give --answers, best first")
    tables += [
        flips_table(report),
        _equivalence(entry, result.limits, kept),
        cost_table(report, log),
    ]
    result.tables = [table for table in tables if table.rows]
    result.findings = [_trust(report), sensitivity(report["trust"][0])]
    result.findings += map(ranking_finding, consequences.values())
    result.findings += [finding["text"] for finding in report["findings"][1:]]
    return result


def _trust(report: Mapping[str, Any]) -> str:
    """The trust card in one sentence; what the verdict says already is left out."""
    (card,) = report["trust"]
    states = ", ".join(
        f"{name} {check['state']}" for name, check in card["checks"].items() if check["applies"]
    )
    told = f"trust: {card['trust']} ({states})"
    others = [name for name in card["because"] if name != "steady"]
    return (
        f"{told}: {'; '.join(card['checks'][name]['text'] for name in others)}" if others else told
    )


def _measured(pairs: Sequence[tuple[str, str]], kept: Path) -> list[Measure]:
    """The distances of pairs of wordings; read from ``kept`` if it holds those of the same pairs,
    because measuring loads a model."""
    from judgesense_dataset.validators import Measure, measure

    digest = hashlib.sha256(json.dumps(pairs, ensure_ascii=False).encode()).hexdigest()
    if kept.is_file():
        held = fit(_Kept, parse_json(kept.read_bytes(), str(kept)), str(kept), "measured distances")
        if held.texts == digest and len(held.measures) == len(pairs):
            return [Measure(*row) for row in held.measures]
    found = measure(pairs)
    rows = [(each.edit_distance, each.cosine) for each in found]
    kept.parent.mkdir(parents=True, exist_ok=True)
    write_text(kept, json.dumps({"texts": digest, "measures": rows}) + "\n")
    return found


def _equivalence(entry: TaskTemplates, limits: list[str], kept: Path) -> Table:
    """The distance of each wording from the rubric's own; empty, with a limit, if not measured."""
    from judgesense_dataset.polarity import DIRECT, INVERTED, cue
    from judgesense_dataset.validators import EmbedderMissing

    own, *others = entry.templates
    rows: list[Record] = []
    measured: Sequence[Any] = ()
    try:
        measured = _measured([(own.text, other.text) for other in others], kept)
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
