"""The records of an assessment's figures; see `judgesense.measure.assessment`.

The fields of a record are its keys in ``report.json``, in that order. An undefined figure is None.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

Counts = Mapping[str, int]
"""A number by name."""


@dataclass(frozen=True)
class WordingRow:
    """A wording beside the others.

    ``text`` is None where it is unknown. ``agreement`` is that with the consensus of the others,
    ``kappa`` quadratic on a scale; for ``p_adjusted`` and ``flag`` see
    `judgesense.statistics.wordings.WordingFigures`. ``jss_without`` is the JSS of the other
    equivalent wordings. With gold, an answer without a verdict is wrong (``accuracy``).
    ``n_prompts`` leaves failed requests out. ``in_best_set`` marks the wordings that cannot be told
    from the best one.
    """

    template: str
    text: str | None
    flag: str
    agreement: float | None
    ci_low: float | None
    ci_high: float | None
    kappa: float | None
    p_adjusted: float | None
    n_prompts: int
    jss_without: float | None
    accuracy: float | None
    in_best_set: bool


@dataclass(frozen=True)
class Recommendation:
    """The wording to use, or why none is recommended.

    ``template`` is None if no wording can be told to be the best, ``best_set`` has the wordings
    that cannot be told from the best. ``accuracy_crossfit`` with ``ci_low`` and ``ci_high`` is what
    taking the best wording of some items scores on others. ``measure`` is ``gold``, or
    ``consensus`` without gold labels. ``camps`` are groups of wordings that agree among themselves
    and not with each other; empty if there are none.
    """

    template: str | None = None
    best_set: tuple[str, ...] = ()
    p_any_difference: float | None = None
    accuracy_crossfit: float | None = None
    ci_low: float | None = None
    ci_high: float | None = None
    measure: str = "consensus"
    camps: tuple[tuple[str, ...], ...] = ()
    n_items: int = 0
    n_clusters: int = 0
    text: str = "no recommendation"


@dataclass(frozen=True)
class LabelFigures:
    """How the items of one label were judged."""

    n: int
    recall: float | None
    recall_ci_low: float | None
    recall_ci_high: float | None
    precision: float | None
    precision_ci_low: float | None
    precision_ci_high: float | None


NO_RANDOM_PART = (
    "It is not corrected: the judge's verdicts differ between labelled and other items, so the "
    "labels are no random part of them. Label a random part, or pick items with judgesense label."
)
"""Why the share of a label is not corrected for the judge's errors."""


@dataclass(frozen=True)
class CorrectedShare:
    """The share of a label among all verdicts, and that corrected for the judge's errors.

    ``share`` and its ends are None where the labelled items are no random part of all items.
    """

    verdicts: float
    share: float | None
    ci_low: float | None
    ci_high: float | None


@dataclass(frozen=True)
class PairOfPeople:
    """How two people agree; ``kappa`` has quadratic weights on a scale."""

    a: str
    b: str
    n: int
    agreement: float | None
    kappa: float | None


@dataclass(frozen=True)
class BetweenPeople:
    """How several people agree. ``ties`` are items on which no label has a majority.

    ``kappa`` is that of two people, ``kappa_with_judge`` that of the judge and a person, each the
    mean over pairs weighted by their items, and ``gap`` the judge's less people's.
    ``like_judge`` are people who agree with the judge far more than a common truth explains.
    """

    people: int
    alpha: float | None
    ties: int
    pairs: tuple[PairOfPeople, ...]
    kappa: float | None = None
    kappa_with_judge: float | None = None
    gap: float | None = None
    gap_ci_low: float | None = None
    gap_ci_high: float | None = None
    like_judge: tuple[str, ...] = ()


@dataclass(frozen=True)
class AltTest:
    """The alternative annotator test, by person
    (`judgesense.statistics.alternative_annotator.AlternativeAnnotator`).

    ``constant`` is an answer that would pass if it was always given, and that the judge does not
    reliably beat.
    """

    epsilon: float
    winning_rate: float
    advantage_probability: float
    p_values: Mapping[str, float | None]
    p_adjusted: Mapping[str, float | None]
    n_items: Counts
    constant: str | None = None


@dataclass(frozen=True)
class HumanAgreement:
    """A judge beside one person, the gold labels, or the majority of several people.

    An answer without a verdict is wrong. ``confusion`` counts labels by verdict. ``weighted`` says
    whether the labelled items were picked with known probabilities, which weight the figures.
    ``corrected`` is empty where nothing can be corrected. ``between_people``, ``alt_test`` and
    ``accuracy_with_ties`` are those of the majority: the last has the items, too, on which people
    tie between k labels, of which each is right to 1 / k; None without such items.
    """

    human: str
    n: int
    kappa: float | None
    kappa_ci_low: float | None
    kappa_ci_high: float | None
    accuracy: float | None
    accuracy_ci_low: float | None
    accuracy_ci_high: float | None
    constant_label: str | None
    constant_accuracy: float | None
    n_items: int
    confusion: Mapping[str, Counts]
    per_label: Mapping[str, LabelFigures]
    weighted: bool = False
    corrected: Mapping[str, CorrectedShare] = field(default_factory=dict)
    between_people: BetweenPeople | None = None
    alt_test: AltTest | None = None
    alt_test_reason: str | None = None
    accuracy_with_ties: float | None = None
    with_ties_ci_low: float | None = None
    with_ties_ci_high: float | None = None


@dataclass(frozen=True)
class GroupFigures:
    """A group of items on which a judge fares worse than on the rest
    (`judgesense.statistics.groups.compare_groups`)."""

    by: str
    name: str
    n: int
    estimate: float
    rest: float
    difference: float
    ci_low: float
    ci_high: float
    p_value: float
    p_holm: float


@dataclass(frozen=True)
class GroupShare:
    """The share of a group's items that are right, or have the same verdict."""

    by: str
    name: str
    n: int
    estimate: float
    ci_low: float | None
    ci_high: float | None


@dataclass(frozen=True)
class Shared:
    """What some disagreements have in common (`judgesense.measure.disputes`).

    Of the ``n`` items to which ``one`` gives ``label``, and which have the trait ``name`` of the
    kind ``by`` (a column, the length, "word"), ``two`` gives ``other`` to the ``share``; ``rest``
    is the share of those without the trait. On a scale, ``other`` may be "more" or "less", and
    ``label`` is None between people: any but ``other``. With a ``source``, a column that says in
    which round a label was given, or by whom, ``one`` is the judge, ``two`` a group of labels, and
    ``rest`` the share in the others. ``examples`` are up to three items.
    """

    one: str
    two: str
    label: str | None
    other: str
    by: str = ""
    name: str = ""
    n: int = 0
    share: float = 0.0
    rest: float = 0.0
    p_adjusted: float = 1.0
    examples: tuple[str, ...] = ()
    source: str | None = None


@dataclass(frozen=True)
class WhereWrong:
    """What is wrong with a judge's verdicts, and the groups of items that fare worse.

    ``kinds`` counts the items of each kind (`judgesense.measure.disagreements.KINDS`), ``measure``
    is what the ``n_groups`` groups were compared by, and ``shares`` is that of every group.
    ``shared`` is what the judge's disagreements with people have in common (exploratory), of
    ``n_traits`` traits; ``policies`` are kinds of items that people label by different policies.
    ``no_words`` says why no words are among the traits.
    """

    n_listed: int
    n_judged: int
    kinds: Counts
    measure: str | None
    n_groups: int
    groups: tuple[GroupFigures, ...]
    shares: tuple[GroupShare, ...] = ()
    shared: tuple[Shared, ...] = ()
    policies: tuple[Shared, ...] = ()
    n_traits: int = 0
    no_words: str | None = None


@dataclass(frozen=True)
class VariantFigures:
    """The figures of a variant; those of another class are None.

    ``variant`` None pools all equivalent variants with the rewordings. ``jss`` is the agreement of
    an equivalent variant with the base wording, ``follows`` how often the answer follows a contrast
    and ``ratio`` that rate over the rate of rewording, ``shift_rate`` to ``score_shift`` what an
    intervention does, and ``gain`` by how much it moves verdicts towards the labels, with an
    interval for all interventions together. ``left_out`` is the sentence that it leaves out.
    ``unreadable`` is the share of prompts that were answered without a verdict.
    """

    variant: str | None
    variant_class: str
    n_prompts: int
    n_items: int
    unreadable: float | None
    unreadable_ci_low: float | None
    unreadable_ci_high: float | None
    jss: float | None = None
    ci_low: float | None = None
    ci_high: float | None = None
    follows: float | None = None
    follows_ci_low: float | None = None
    follows_ci_high: float | None = None
    ratio: float | None = None
    ratio_ci_low: float | None = None
    ratio_ci_high: float | None = None
    shift_rate: float | None = None
    shift_ci_low: float | None = None
    shift_ci_high: float | None = None
    net_shift: Mapping[str, float] | None = None
    score_shift: float | None = None
    score_shift_ci_low: float | None = None
    score_shift_ci_high: float | None = None
    n_pairs: int = 0
    gain: float | None = None
    gain_ci_low: float | None = None
    gain_ci_high: float | None = None
    left_out: str | None = None


@dataclass(frozen=True)
class AttackText:
    """One text of a kind of attack: the share of right verdicts that it leaves right."""

    variant: str
    text: str | None
    language: str | None
    split: str | None
    n: int
    kept: float
    source: str | None = None


@dataclass(frozen=True)
class TurnedItem:
    """An item whose right verdict an attack turned; ``text`` is the attacked prompt."""

    item_id: str
    order: str
    variant: str
    gold: str | None
    before: str
    after: str
    prompt_id: str | None
    text: str | None = None


@dataclass(frozen=True)
class AttackFigures:
    """What a kind of attack does to a judge's verdicts (`judgesense.measure.resistant.attacks`).

    ``certified`` is the share of the right verdicts that no added sentence can change by
    construction; None for a judge that is not ablated.
    """

    kind: str
    defence: str | None
    about: str
    place: str | None
    n_prompts: int
    n_items: int
    accuracy_before: float | None
    accuracy: float | None
    n_right: int
    kept: float | None
    ci_low: float | None
    ci_high: float | None
    turned: float | None
    levels_gained: float | None
    reworded: float | None
    texts: tuple[AttackText, ...]
    turned_items: tuple[TurnedItem, ...]
    p_adjusted: float | None
    effective: bool | None
    ci_high_corrected: float | None
    certified: float | None = None


@dataclass(frozen=True)
class MissedItem:
    """An output that was made wrong without the judge noticing, and what was changed."""

    item_id: str
    before: str
    after: str
    prompt_id: str | None
    change: str | None = None


@dataclass(frozen=True)
class DamageFigures:
    """What a judge makes of a kind of damage, or of a harmless edit
    (`judgesense.measure.notices.damage`).

    ``n_counted`` of the ``n_copies`` could be marked down; ``lowered`` is the share of them that
    was, ``noticed`` the same corrected for harmless edits, with the ends of an interval at a level
    divided by the number of kinds. ``changed`` is the share of harmless edits with another verdict.
    ``blind`` says that the interval lies below the threshold.
    """

    kind: str
    about: str
    harmless: bool
    n_copies: int
    n_counted: int
    n_items: int
    lowered: float | None
    changed: float | None
    noticed: float | None
    ci_low_corrected: float | None
    ci_high_corrected: float | None
    blind: bool
    missed_items: tuple[MissedItem, ...]


@dataclass(frozen=True)
class TemplatePair:
    """JSS of two templates; ``template_a`` comes first in the alphabet."""

    order: str
    labels: str
    template_a: str
    template_b: str
    jss: float | None
    ci_low: float | None
    ci_high: float | None
    n_pairs: int


@dataclass(frozen=True)
class TemplateFigures:
    """A template by itself.

    ``agreement`` is the mean JSS (mapped) of its pairs with others, ``accuracy`` the share of its
    decided prompts that match gold, ``inverted`` whether an answer means the opposite of what it
    means to most templates.
    """

    order: str
    template: str
    agreement: float | None
    accuracy: float | None
    inverted: bool
    n_prompts: int


@dataclass(frozen=True)
class ExampleSide:
    """One wording of a flipped example; prompt and answer are None where they are unknown."""

    template: str
    prompt_id: str | None
    text: str | None
    answer: str | None
    raw: str
    decision: str
    margin: float | None


@dataclass(frozen=True)
class Example:
    """An item whose verdict flipped, under two wordings."""

    order: str
    item_id: str
    gold: str | None
    a: ExampleSide
    b: ExampleSide


@dataclass(frozen=True)
class Diagnostics:
    """What advice needs beside the cells.

    ``gold_share`` is the share of the commonest gold label: what a constant answer would score.
    ``n_cut_off`` counts answers that the token cap ended before they decided anything.
    ``n_planned`` and ``n_judged`` are pairs. ``option_mass`` is the median probability of all
    options together.
    """

    order: str = "-"
    n_prompts: int = 0
    n_cut_off: int = 0
    n_planned: int = 0
    n_judged: int = 0
    gold_label: str | None = None
    gold_share: float | None = None
    n_items: int = 0
    accuracy_ci: tuple[float | None, float | None] | None = None
    option_mass: float | None = None
    orders: tuple[str, ...] = ()
    comparative: bool = False
    n_labels: int = 0


@dataclass(frozen=True)
class RepeatFigures:
    """JSS over every draw of prompts that were asked several times
    (`judgesense.statistics.agreement.sampled_jss`)."""

    labels: str
    jss: float | None
    ci_low: float | None
    ci_high: float | None
    noise_floor: float | None
    net_flip_rate: float | None
    net_ci_low: float | None
    net_ci_high: float | None
    n_pairs: int
    n_items: int
    n_draws: int
    n_undecided: int | None = None
    temperature: float | int | None = None
