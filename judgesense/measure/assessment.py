"""What is measured and concluded about a judge: the records behind every page and ``report.json``.

The fields of a record are its keys in ``report.json``, in that order
(`judgesense.measure.report_file`). An undefined figure is None. Fields that files of earlier
versions lack have a default.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from judgesense.measure.card import USABLE, Check, Trust, TrustCard
from judgesense.measure.figures import (
    AttackFigures,
    DamageFigures,
    Diagnostics,
    Example,
    HumanAgreement,
    Recommendation,
    RepeatFigures,
    TemplateFigures,
    TemplatePair,
    VariantFigures,
    WhereWrong,
    WordingRow,
)
from judgesense.measure.wins import ModelWins


class Subject(NamedTuple):
    """What an assessment or a finding is about."""

    run_id: str
    judge: str
    task: str
    scoring: str


@dataclass(frozen=True)
class SubjectFields:
    """Fields that identify the run, judge, task and scoring (``-`` for a baseline)."""

    run_id: str
    judge: str
    task: str
    scoring: str

    @property
    def subject(self) -> Subject:
        """The subject, as a key."""
        return Subject(self.run_id, self.judge, self.task, self.scoring)


@dataclass(frozen=True)
class Cell:
    """The figures of a judge, task and scoring in one option order, raw or mapped.

    For a comparative task, order ``both`` pools AB and BA. ``ci_low`` and ``ci_high`` hold for
    these wordings, ``ci_low_random`` and ``ci_high_random`` for wordings like these. ``kappa`` is
    between the two wordings of each pair; the kappa with the gold labels is the estimate of the
    check ``right``. ``accuracy`` is that of the decided prompts; the check counts those without a
    verdict as wrong. ``jss_repeat`` is the JSS of the same prompt asked again, ``delta_jss`` is
    ``jss - jss_repeat``. ``position_ci_low`` and ``position_ci_high`` belong to
    ``position_consistency``. ``coverage`` is the share of planned pairs that are decided on both
    sides.
    """

    order: str
    labels: str
    jss: float | None
    ci_low: float | None = None
    ci_high: float | None = None
    ci_low_random: float | None = None
    ci_high_random: float | None = None
    flip_rate: float | None = None
    kappa: float | None = None
    kappa_ci_low: float | None = None
    kappa_ci_high: float | None = None
    jss_low: float | None = None
    jss_high: float | None = None
    jss_repeat: float | None = None
    delta_jss: float | None = None
    delta_ci_low: float | None = None
    delta_ci_high: float | None = None
    soft_jss: float | None = None
    noise_floor: float | None = None
    accuracy: float | None = None
    accuracy_ci_low: float | None = None
    accuracy_ci_high: float | None = None
    first_position_rate: float | None = None
    position_consistency: float | None = None
    position_ci_low: float | None = None
    position_ci_high: float | None = None
    n_pairs: int = 0
    n_items: int = 0
    n_clusters: int = 0
    n_unclear: int = 0
    n_refused: int = 0
    n_error: int = 0
    coverage: float | None = None
    degenerate: str | None = None
    signature: str = ""

    @property
    def n_undecided(self) -> int:
        """The judged pairs in which a prompt has no decision."""
        return self.n_unclear + self.n_refused + self.n_error

    @property
    def undecided_share(self) -> float | None:
        """The share of judged pairs in which a prompt has no decision."""
        judged = self.n_pairs + self.n_undecided
        return self.n_undecided / judged if judged else None


@dataclass(frozen=True)
class RemedyFigures:
    """What a recipe buys a judge on a task.

    Figures are cross-fitted over clusters, on the items that both ways of asking share.
    ``accuracy`` counts an undecided verdict as wrong and averages wordings (and panels) per item;
    ``accuracy_decided`` leaves undecided verdicts out. ``ties`` is the share of verdicts between
    equally probable labels, which take the first. ``jss`` compares wordings of one polarity, or
    disjoint panels. ``trust``, ``because`` and ``checks`` are the card of the recipe's verdicts.
    What the log cannot measure has a row without figures, whose text says what to run.
    """

    remedy: str
    prompts_per_item: int | None = None
    usd_per_item: float | None = None
    accuracy_before: float | None = None
    accuracy: float | None = None
    accuracy_decided: float | None = None
    gain: float | None = None
    gain_ci_low: float | None = None
    gain_ci_high: float | None = None
    jss: float | None = None
    same_choice: float | None = None
    readable: float | None = None
    ties: float | None = None
    n_items: int = 0
    trust: Trust | None = None
    because: tuple[str, ...] = ()
    checks: Mapping[str, Check] | None = None
    jss_before: float | None = None
    same_choice_before: float | None = None
    text: str = ""

    @property
    def passes(self) -> bool:
        """Whether the card allows to use the recipe: steady, and in agreement with people.

        Without gold labels nothing passes: steadier is not righter.
        """
        return (
            self.trust in USABLE
            and self.checks is not None
            and self.checks["right"].state == "pass"
        )


@dataclass(frozen=True)
class NextStep:
    """The one thing to do now (`judgesense.measure.next`); no command where none would run."""

    kind: str
    text: str
    command: str | None


@dataclass(frozen=True)
class Chance:
    """With a number of items in all, the probabilities that the open checks are settled
    (``chance``), and that the judge passes (``passes``)."""

    items: int
    chance: float
    passes: float


@dataclass(frozen=True)
class Plan:
    """What settles the ``open`` checks of a card (`judgesense.measure.planning.plan`).

    ``items_needed`` is the smallest number of items with 80% probability, or None;
    ``labels_needed`` the same in labels where only `right` is open and fewer items have labels than
    verdicts; ``wordings_needed`` the wordings that settle `steady` on the largest number of items
    where no number of items does. ``n_items`` and ``n_labels`` are those so far.
    """

    open: tuple[str, ...]
    n_items: int
    n_labels: int
    chances: tuple[Chance, ...]
    items_needed: int | None
    labels_needed: int | None
    wordings_needed: int | None


@dataclass(frozen=True)
class GateOutlook:
    """How a gate on `steady` behaves on as many other items: the true JSS from which it passes with
    80% probability (None if no JSS does), and the probabilities that this judge passes or fails."""

    passes_from: float | None
    passes: float
    fails: float


@dataclass(frozen=True)
class Outlook:
    """What a larger run would show: what ``settles`` the card, and how a ``gate`` behaves."""

    settles: Plan | None
    gate: GateOutlook | None


@dataclass(frozen=True)
class JudgeCells(SubjectFields):
    """The cells of a judge, task and scoring; a baseline (`judgesense.log.view.BASELINES`) has
    nothing else, because no conclusion is drawn from it."""

    cells: tuple[Cell, ...]

    @property
    def raw(self) -> Cell:
        """The raw cell, over both option orders if both were judged."""
        return self._main("raw")

    @property
    def mapped(self) -> Cell:
        """The mapped cell, over both option orders if both were judged."""
        return self._main("mapped")

    def _main(self, labels: str) -> Cell:
        # A pooled cell follows those of the single orders.
        cells = [cell for cell in self.cells if cell.labels == labels]
        return cells[-1] if cells else Cell("-", labels, None)


@dataclass(frozen=True)
class Assessment(JudgeCells):
    """Everything measured and concluded about one judge on one task under one scoring."""

    card: TrustCard
    wordings: tuple[WordingRow, ...] = ()
    recommendation: Recommendation = field(default_factory=Recommendation)
    remedies: tuple[RemedyFigures, ...] = ()
    people: tuple[HumanAgreement, ...] = ()
    where_wrong: WhereWrong | None = None
    variants: tuple[VariantFigures, ...] = ()
    attacks: tuple[AttackFigures, ...] = ()
    damage: tuple[DamageFigures, ...] = ()
    wins: tuple[ModelWins, ...] = ()
    template_pairs: tuple[TemplatePair, ...] = ()
    templates: tuple[TemplateFigures, ...] = ()
    examples: tuple[Example, ...] = ()
    diagnostics: Diagnostics = field(default_factory=Diagnostics)
    next_step: NextStep | None = None
    outlook: Outlook | None = None
    repeated: tuple[RepeatFigures, ...] = ()


@dataclass(frozen=True)
class Finding(SubjectFields):
    """A sentence on a judge, task and scoring (`judgesense.measure.advice`)."""

    kind: str
    text: str


@dataclass(frozen=True)
class Search:
    """What ``judgesense improve`` tried: its conclusion, a row for each way to ask, and the table
    with its footnotes as people read them."""

    text: str
    rows: tuple[Mapping[str, str | float | int | bool | None], ...]
    table: tuple[tuple[str, ...], ...]
    footnotes: tuple[str, ...]


@dataclass(frozen=True)
class ReportContents:
    """The contents of ``report.json``: what was measured in one run, or in several.

    ``measured`` has the assessments and the baselines in the order of the file. ``runs`` are the
    runs' records (``run.json``).
    """

    measured: tuple[JudgeCells, ...] = ()
    findings: tuple[Finding, ...] = ()
    runs: tuple[Mapping[str, Any], ...] = ()
    notes: tuple[str, ...] = ()
    search: Search | None = None

    @property
    def assessments(self) -> tuple[Assessment, ...]:
        """The judges' assessments."""
        return tuple(entry for entry in self.measured if isinstance(entry, Assessment))


def task_rank(name: str) -> tuple[bool, str]:
    """Sort key of tasks: coherence first, where judges differ most (JudgeSense, section 5.1)."""
    return name != "coherence", name
