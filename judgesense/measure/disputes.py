"""Is it the judge, a label or the policy? What disagreements share, and labels in doubt."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, permutations
from typing import Any, NamedTuple

import numpy as np

from judgesense.measure.figures import Shared
from judgesense.measure.raters import GOLD, Raters
from judgesense.measure.thresholds import SIGNIFICANT
from judgesense.measure.words import ItemWords
from judgesense.statistics.arrays import Bools, Codes, Floats, Words
from judgesense.statistics.comparison import holm
from judgesense.statistics.groups import SMALLEST
from judgesense.statistics.traits import enriched

WORD = "word"
"""The kind of a trait that is a word or phrase of the item."""

RATER = "rater"
"""What groups items of which each has one person's label."""

POLICY = "Decide the policy first: no prompt can satisfy both"

_MOST_LISTED = 12
_MOST_PEOPLE = 12
"""Of more, the pairs are too many to compare."""

_SYSTEMATIC, _CONTRAST, _OF_KIND = 0.5, 0.5, 0.2
"""A policy differs where one person gives another label to at least this share of the items of a
kind to which the other gives one label; to at most this part of that share elsewhere; and where
this share of all items of the kind are disputed so."""

_FDR, _ONE_WAY = 0.05, 0.001
"""The false discovery rate of what is exploratory, and the error of calling disputes one-way that
go both ways; it is small, because only kinds that have many are tested."""

_SOURCES = re.compile(
    r"(annotator|batch|campaign|guidelines?|label+ed|label+er|phase|rater|round|vendor|wave)s?",
    re.IGNORECASE,
)
"""In a column's name: it says in which round a label was given, or by whom."""

MORE, LESS = "more", "less"
"""Disagreements on a scale, whichever the labels are."""

_EXAMPLES = 3
_SAME = 0.5
"""Two traits say the same if they share more than this part of their items."""


def is_source(column: str) -> bool:
    """Whether a column may say in which round a label was given, or by whom."""
    words = re.findall(r"[A-Z]?[a-z]+", column)
    return any(map(_SOURCES.fullmatch, words))


class _Cell(NamedTuple):
    """Of the items that are ``among``, the ``hits``: what one gives, and what the other gives."""

    label: str | None
    other: str
    among: Bools
    hits: Bools
    reverse: Bools
    """The opposite disagreements."""
    both: Bools
    """The items with both labels."""


def _cells(
    one: Codes, two: Codes, labels: Sequence[str], ordinal: bool, by_label: bool = False
) -> Iterator[_Cell]:
    """The kinds of disagreement of two raters, of those with enough items; on a scale of items with
    the same label where ``by_label``: a trait of items labelled 3 is no reason that they are."""
    both = (one >= 0) & (two >= 0)
    more, less = both & (two > one), both & (two < one)
    if ordinal and len(labels) > 2 and by_label:
        cells = [
            _Cell(label, other, both & (one == x), way & (one == x), reverse & (two == x), both)
            for x, label in enumerate(labels)
            for other, way, reverse in ((MORE, more, less), (LESS, less, more))
        ]
    elif ordinal and len(labels) > 2:
        cells = [
            _Cell(None, MORE, both & (one < len(labels) - 1), more, less, both),
            _Cell(None, LESS, both & (one > 0), less, more, both),
        ]
        for y, label in enumerate(labels):
            own, others = both & (one == y), both & (two == y)
            cells.append(_Cell(None, label, both & ~own, others & ~own, own & ~others, both))
    else:
        cells = [
            _Cell(
                labels[x],
                labels[y],
                both & (one == x),
                (one == x) & (two == y),
                (one == y) & (two == x),
                both,
            )
            for x, y in permutations(range(len(labels)), 2)
        ]
    yield from (cell for cell in cells if cell.hits.sum() >= SMALLEST)


@dataclass(frozen=True)
class Traits:
    """What items have: ``names`` are the kind and the name of each trait, ``among`` says which
    items have it, shape (traits, n)."""

    names: Sequence[tuple[str, str]]
    among: Bools

    @classmethod
    def of(cls, groups: Mapping[str, Words], words: Sequence[str], among: Bools) -> Traits:
        """The groups of items (by what groups them), and their words."""
        names = [(by, n) for by, of in groups.items() for n in dict.fromkeys(of.tolist()) if n]
        rows = [groups[by] == name for by, name in names]
        grouped = np.array(rows, dtype=np.bool_).reshape(len(rows), among.shape[1])
        return cls([*names, *((WORD, word) for word in words)], np.concatenate([grouped, among]))


def disputes_of(
    raters: Raters, names: Sequence[str], groups: Mapping[str, Words], words: ItemWords
) -> dict[str, Any]:
    """The fields of `WhereWrong` that say what disagreements share.

    ``names`` are the items of the raters, ``groups`` theirs by what groups them. Where only a part
    of the items is read for its words, only that part is compared.
    """
    is_read, among = words.at(names)
    at = np.flatnonzero(is_read) if words.names else np.arange(len(names))
    raters, here = raters.at(raters.items[at]), {by: of[at] for by, of in groups.items()}
    given = np.stack([*raters.people.values()]) >= 0
    if len(given) > 1 and (given.sum(axis=0) == 1).all():
        here[RATER] = np.array([*raters.people], dtype=object)[given.argmax(axis=0)]
    traits = Traits.of(here, words.names, among[:, at])
    disputes = Disputes(raters, traits, [names[n] for n in at.tolist()])
    return {
        "shared": disputes.shared(),
        "policies": disputes.policies(here),
        "n_traits": len(traits.names),
        "no_words": words.missing,
    }


class _Found(NamedTuple):
    """A trait that passes a test, the kind of disagreement, and what is said of both."""

    shared: Shared
    trait: int
    cell: _Cell


@dataclass(frozen=True)
class Disputes:
    """Two raters at a time, compared over traits; ``names`` are the items'."""

    raters: Raters
    traits: Traits
    names: Sequence[str]

    def shared(self) -> tuple[Shared, ...]:
        """What the items have in common to which the judge gives another label than people.

        Of each kind of disagreement, such as PASS where people say FAIL, the items are compared
        with the others to which people give the same label. Benjamini and Hochberg's false
        discovery rate over all kinds and traits, so that the list is exploratory.
        """
        from scipy.stats import false_discovery_control

        raters, n = self.raters, len(self.traits.names)
        verdicts = raters.judges[raters.judge]
        tested = list(self._tested(GOLD, raters.gold, raters.judge, verdicts))
        if not tested or not n:
            return ()
        adjusted = false_discovery_control(np.concatenate([p for _, p in tested])).reshape(-1, n)
        found = [
            self._found(shared, cell, trait, p[trait])
            for ((shared, cell), _), p in zip(tested, adjusted, strict=True)
            for trait in np.flatnonzero(p <= _FDR).tolist()
        ]
        return self._apart(found)

    def policies(self, groups: Mapping[str, Words]) -> tuple[Shared, ...]:
        """The kinds of items that people, or rounds of labels, label by different policies.

        Two people differ in policy if one gives another label to at least half of a kind of items,
        to at most half that share elsewhere, and reliably not as often the other way round: hard
        items are those on which both vary. Holm's correction over all pairs of people, kinds of
        disagreement and traits. ``groups`` are those of the items, of which some say in which round
        a label was given (`is_source`); they are a family of their own.
        """
        people, tested = self.raters.people, []
        if len(people) <= _MOST_PEOPLE:
            for (a, one), (b, two) in combinations(people.items(), 2):
                tested += list(self._tested(a, one, b, two))
        found = [
            self._found(shared, cell, trait, p[trait])
            for (shared, cell), p in tested
            for trait in np.flatnonzero(p <= SIGNIFICANT).tolist()
        ]
        found = self._claims(found, len(tested) * len(self.traits.names))
        found = [each for each in found if self._p_one_way(each) <= _ONE_WAY]
        sources = [name for name in groups if is_source(name)]
        return self._apart(found) + self._apart(self._between_rounds(groups, sources))

    def _tested(
        self, a: str, one: Codes, b: str, two: Codes
    ) -> Iterator[tuple[tuple[Shared, _Cell], Floats]]:
        """Each kind of disagreement of two raters, and the p-value of each trait."""
        raters, among = self.raters, self.traits.among
        for cell in _cells(one, two, raters.labels, raters.ordinal, by_label=a == GOLD):
            at = cell.among
            p = enriched(cell.hits[at], among[:, at], raters.clusters[at]).p
            yield (Shared(a, b, cell.label, cell.other), cell), p

    def _found(self, shared: Shared, cell: _Cell, trait: int, p: float) -> _Found:
        """A trait of a kind of disagreement, with its figures and examples."""
        by, name = self.traits.names[trait]
        own = self.traits.among[trait]
        hits = np.flatnonzero(cell.hits & own)
        shared = replace(
            shared,
            by=by,
            name=name,
            n=int((cell.among & own).sum()),
            share=float(cell.hits[cell.among & own].mean()),
            rest=shared.rest if shared.source else float(cell.hits[cell.among & ~own].mean()),
            p_adjusted=float(p),
            examples=tuple(self.names[at] for at in hits[:_EXAMPLES]),
        )
        return _Found(shared, trait, cell)

    def _p_one_way(self, found: _Found) -> float:
        """The p-value of "items with the trait are as often disputed the other way round", by the
        sign test over clusters."""
        from scipy.stats import binomtest

        own, clusters = self.traits.among[found.trait], self.raters.clusters
        one, two = (
            len(np.unique(clusters[own & way])) for way in (found.cell.hits, found.cell.reverse)
        )
        return float(binomtest(one, one + two, alternative="greater").pvalue)

    def _between_rounds(self, groups: Mapping[str, Words], sources: Sequence[str]) -> list[_Found]:
        """The traits of items that one round of labels treats otherwise than the others do.

        The judge's verdict is what rounds have in common: of the items with the trait and one
        verdict, people give another label more often in this round than in others, and by more than
        on items without the trait.
        """
        raters, traits, n_tests = self.raters, self.traits.among, 0
        found = []
        for source in sources:
            for group in dict.fromkeys(groups[source].tolist()):
                own = groups[source] == group
                for cell in _cells(
                    raters.judges[raters.judge], raters.gold, raters.labels, raters.ordinal
                ):
                    n_tests += len(traits)
                    inside, outside = (_shares(cell, traits, side) for side in (own, ~own))
                    # What is no claim in the end needs no test.
                    likely = (inside >= _SYSTEMATIC) & (outside <= _CONTRAST * inside)
                    for trait in np.flatnonzero(likely).tolist():
                        p = _p_interaction(cell, traits[trait], own, raters.clusters)
                        if p <= SIGNIFICANT:
                            among = cell.among & own & traits[trait]
                            here = cell._replace(among=among, hits=cell.hits & own, both=own)
                            shared = Shared(raters.judge, group, cell.label, cell.other)
                            shared = replace(shared, rest=float(outside[trait]), source=source)
                            found.append(self._found(shared, here, trait, p))
        return self._claims(found, n_tests)

    def _claims(self, found: Sequence[_Found], n_tests: int) -> list[_Found]:
        """Those that are a different policy, after Holm's correction over all tests."""
        claims = []
        adjusted = holm([each.shared.p_adjusted for each in found], n_tests)
        for each, p in zip(found, adjusted, strict=True):
            shared, cell, own = each.shared, each.cell, self.traits.among[each.trait]
            if (
                p is not None
                and p <= SIGNIFICANT
                and shared.share >= _SYSTEMATIC
                and shared.rest <= _CONTRAST * shared.share
                and (cell.hits & own).sum() >= _OF_KIND * (cell.both & own).sum()
            ):
                claims.append(each._replace(shared=replace(shared, p_adjusted=p)))
        return claims

    def _apart(self, found: Sequence[_Found]) -> tuple[Shared, ...]:
        """The clearest traits, without those of mostly the same items as a clearer one."""
        kept: list[tuple[_Found, Bools]] = []
        for each in sorted(found, key=lambda each: (each.shared.p_adjusted, -each.shared.share)):
            own = self.traits.among[each.trait] & each.cell.hits
            raters = (each.shared.one, each.shared.two)
            if not any(
                (other.shared.one, other.shared.two) == raters
                and (own & items).sum() > _SAME * (own | items).sum()
                for other, items in kept
            ):
                kept.append((each, own))
        return tuple(each.shared for each, _ in kept[:_MOST_LISTED])


def _shares(cell: _Cell, traits: Bools, side: Bools) -> Floats:
    """The share of hits with each trait on one side; NaN of too few items."""
    n = traits[:, cell.among & side].sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        share: Floats = traits[:, cell.hits & side].sum(axis=1) / np.where(n < SMALLEST, 0, n)
    return np.where(n < SMALLEST, np.nan, share)


def _p_interaction(cell: _Cell, trait: Bools, own: Bools, clusters: Codes) -> float:
    """The larger p-value of two: that a round has no more hits with the trait than others have, and
    that the difference is no larger than without it. One item counts of a cluster, trait and
    round."""
    from scipy.special import ndtr
    from scipy.stats import hypergeom

    at = np.random.default_rng(0).permutation(np.flatnonzero(cell.among))
    _, first = np.unique(clusters[at] * 4 + trait[at] * 2 + own[at], return_index=True)
    at = at[first]
    cells = trait[at] * 2 + own[at]
    n, hits = np.bincount(cells, minlength=4), np.bincount(cells, cell.hits[at], minlength=4)
    if n[3] < SMALLEST or n[2] < SMALLEST:
        return 1.0
    p = hypergeom.sf(hits[3] - 1, n[2] + n[3], hits[2] + hits[3], n[3])
    # Agresti and Caffo's shares, which have a variance also where all or none are hits.
    share = (hits + 1) / (n + 2)
    gap = (share[3] - share[2]) - (share[1] - share[0])
    return float(max(p, ndtr(-gap / np.sqrt((share * (1 - share) / (n + 2)).sum()))))
