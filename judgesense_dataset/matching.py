"""Choose items on which no shallow rule finds the gold label.

Items of public sets carry shortcuts: in MT-Bench the longer answer wins 3 times in 4. From a
source's items, :func:`match_items` takes the number that you ask for such that every rule of the
audit is at chance. It draws items with balanced gold labels, then exchanges items for others of the
same label until no rule is ahead. The search is random and stops as soon as every rule is near
chance. An exact balance would be worse: a rule learnt on a part of such a set is wrong on the rest.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np

from judgesense.statistics.arrays import Codes, Floats
from judgesense.tasks import Item
from judgesense_dataset.audit.shortcuts import (
    BAND,
    GradedText,
    feature_table,
    fitted_scores,
    rules,
    shortcuts,
    system_table,
    word_scores,
    words,
)
from judgesense_dataset.pairing import judged_text
from judgesense_dataset.recognition import OPTIONS
from judgesense_dataset.sources.loader import Collected, generator, quotas, shuffled
from judgesense_dataset.templates import TaskTemplates

TOLERANCE = 0.025
"""How far from chance the search leaves a rule; the audit's band is 0.06 wide on each side."""

FEWEST = 24
"""The search gives up items for balance down to this number."""

MOST_OF_A_LEVEL = 1.25
"""How many times its even share a level of a scale may have, where another is scarce."""

_PARTS = (1.0, 0.8, 0.6)
"""The parts of a scarce level's items to use: all of them leave nothing to choose from."""

_POOL = 10_000
"""A larger source is sampled down to this number first."""

_MARGIN = 0.005
"""How far within the audit's band a rule must be: the audit reads the query from the prompts."""

_EACH_SYSTEM = 1.25
"""Weight of the mean level of each system's texts: one ranking of systems is not the only one."""

_ATTEMPTS = 40
_TRIED = 24
"""How many items of the set a step tries to exchange."""


def match_items(entry: TaskTemplates, items: Sequence[Item], n: int, seed: int) -> Collected:
    """Choose ``n`` of a source's items, or the most for which every rule can be at chance, and say
    how they were chosen.

    Labels are balanced, items come from as many clusters as possible, and no text is shown in two
    clusters. Below 24 items the rules are balanced as well as the number allows.

    Args:
        entry: the task with its templates.
        items: all items of the source, with gold labels.
        n: the number of items, at least 1.
        seed: draws the items.
    """
    rng = generator(seed, f"match:{entry.task.name}")
    if len(items) > _POOL:
        items = shuffled(items, rng)[:_POOL]
    pool = _Pool(entry, items)
    size, best = pool.most(n), None
    while best is None or not best[0]:
        for wanted in pool.wanted(size):
            best = _best(pool, wanted, rng)
            if best[0]:
                break
        assert best is not None
        if best[0] or size <= FEWEST:
            break
        size = max(FEWEST, min(size - 1, int(size * 0.93)))
    balanced, chosen = best
    note = (
        f"{len(chosen)} of {len(items)} items were chosen such that position, length, shared "
        "words, sentences, punctuation and source system do not give the gold label away"
    )
    if not balanced:
        note += ", as far as so few items allow"
    elif size < n:
        note += f"; {n} were requested, but no larger number could be balanced"
    return Collected(shuffled([items[at] for at in chosen], rng), [note + " (see the audit)."])


class _Pool:
    """The candidates with what each adds to every rule's lead over chance."""

    def __init__(self, entry: TaskTemplates, items: Sequence[Item]) -> None:
        self.entry, self.items = entry, items
        self.labels = entry.task.labels
        self.cases = _cases(entry, items)
        comparative = entry.task.comparative
        gold = np.array([self.labels.index(case.gold) for case in self.cases])
        self.gold = gold
        # Rules point to the first of two labels and to the higher level of a scale.
        top = len(self.labels) - 1
        side = 1 - 2 * gold / top if len(self.labels) == 2 else 2 * gold / top - 1
        systems = system_table(self.cases)
        table = feature_table(self.cases)
        scores = [*table.T, fitted_scores(table, gold, comparative)]
        if (by_words := word_scores(self.cases, self.labels)) is not None:
            scores.append(by_words)
        ranked = [_ranks(values, comparative) for values in scores]
        if systems is not None:
            # Few systems have few scores: of two, only which one is better counts.
            scores.append(fitted_scores(systems, gold, comparative))
            if not comparative:
                ranked += [_ranks(scores[-1], comparative), *(_EACH_SYSTEM * systems.T)]
        if comparative:
            ranked += [np.sign(values) / 2 for values in scores]
        self.leads: Floats = np.stack([side * values for values in ranked], axis=1)
        names = {name: at for at, name in enumerate(sorted({c.cluster_id for c in self.cases}))}
        self.cluster = np.array([names[case.cluster_id] for case in self.cases])
        self.shared = _shared_texts(self.cases, self.cluster)
        self.counts = np.bincount(gold, minlength=len(self.labels)).tolist()

    def most(self, n: int) -> int:
        """The largest number up to n for which labels are as balanced as they have to be.

        Of two labels each is half. On a scale no level may have more than :data:`MOST_OF_A_LEVEL`
        times its even share, so that a scarce level does not make the whole set small.
        """
        if len(self.labels) == 2:
            return min(n, 2 * min(self.counts))
        return next((size for size in range(n, 0, -1) if self.wanted(size)), 0)

    def wanted(self, n: int) -> list[list[int]]:
        """The numbers of items of each label to try, the most balanced first."""
        even = list(quotas(n, self.labels).values())
        if len(self.labels) == 2:
            return [even]
        tried = [self._shared(even, part) for part in _PARTS]
        most = max(1, MOST_OF_A_LEVEL * n / len(self.labels))
        fits = [shares for shares in tried if shares and max(shares) <= most]
        if n >= len(self.labels):
            fits = [shares for shares in fits if min(shares) > 0]
        return [shares for at, shares in enumerate(fits) if shares not in fits[:at]]

    def _shared(self, even: list[int], part: float) -> list[int] | None:
        """Even shares where a label may use only part of its items; the others take the rest."""
        free = [math.floor(part * count) for count in self.counts]
        if sum(free) < sum(even):
            return None
        shares = [min(pair) for pair in zip(even, free, strict=True)]
        for _ in range(sum(even) - sum(shares)):
            open_ = [at for at, of in enumerate(free) if shares[at] < of]
            shares[min(open_, key=lambda at: shares[at])] += 1
        return shares


def _cases(entry: TaskTemplates, items: Sequence[Item]) -> list[GradedText]:
    """The items as the audit reads them."""
    shown: list[tuple[str, ...]] = []
    around: list[set[str]] = []
    for item in items:
        judged = judged_text(entry.task, item, "AB")
        options = OPTIONS.match(judged) if entry.task.comparative else None
        texts = tuple(part.strip() for part in (options.groups() if options else (judged,)))
        shown.append(texts)
        rest = (value for value in item.fields.values() if value.strip() not in texts)
        around.append({word for value in rest for word in words(value)})
    frequency = Counter(word for of_item in around for word in of_item)
    common = {word for word, times in frequency.items() if times > max(1, len(items) // 10)}
    cases = []
    for item, texts, context in zip(items, shown, around, strict=True):
        systems = tuple(item.system_id.split("|")) if item.system_id else ()
        cases.append(
            GradedText(
                item.cluster_id,
                item.gold or "",
                texts,
                frozenset(context - common),
                systems if len(systems) == len(texts) else (),
            )
        )
    return cases


def _ranks(values: Floats, comparative: bool) -> Floats:
    """Ranks within -1 to 1 (halves for ties), or signed ranks within -0.5 to 0.5."""
    from scipy.stats import rankdata

    if comparative:
        signed: Floats = np.sign(values) * rankdata(np.abs(values)) / (2 * len(values))
        return signed
    ranked: Floats = (2 * rankdata(values) - 1) / len(values) - 1
    return ranked


def _shared_texts(cases: Sequence[GradedText], cluster: Codes) -> list[list[int]]:
    """By case, those of other clusters that show one of its texts."""
    owners: dict[str, list[int]] = {}
    for at, case in enumerate(cases):
        for text in case.texts:
            owners.setdefault(text, []).append(at)
    return [
        [o for text in case.texts for o in owners[text] if cluster[o] != cluster[at]]
        for at, case in enumerate(cases)
    ]


class _Draw:
    """A set of chosen candidates, and which others could still be added."""

    def __init__(self, pool: _Pool, cap: int) -> None:
        self.pool, self.cap = pool, cap
        self.inside = np.zeros(len(pool.cases), dtype=bool)
        self.used = np.zeros(int(pool.cluster.max()) + 1, dtype=np.intp)
        self.blocked = np.zeros(len(pool.cases), dtype=np.intp)

    def change(self, at: int, by: int) -> None:
        """Add (1) or remove (-1) a candidate."""
        self.inside[at] = by > 0
        self.used[self.pool.cluster[at]] += by
        for other in self.pool.shared[at]:
            self.blocked[other] += by

    def free(self, gold: int) -> Codes:
        """The candidates of a label that may be added."""
        open_ = ~self.inside & (self.blocked == 0) & (self.used[self.pool.cluster] < self.cap)
        return np.flatnonzero(open_ & (self.pool.gold == gold))


def _best(pool: _Pool, wanted: Sequence[int], rng: np.random.Generator) -> tuple[bool, list[int]]:
    """Whether a draw of these numbers has every rule at chance; it, or else the nearest."""
    nearest: tuple[float, list[int]] | None = None
    n, stuck = sum(wanted), 0
    for _ in range(_ATTEMPTS):
        lead, chosen = _balanced_draw(pool, wanted, rng)
        full = lead == 0 and len(chosen) == n
        stuck += not full
        worst = _worst(pool, chosen) if full or nearest is None else 1 + lead
        if full and worst <= BAND[1] - 0.5 - _MARGIN:
            return True, chosen
        if nearest is None or worst < nearest[0]:
            nearest = (worst, chosen)
        if stuck > 3:
            break
    assert nearest is not None
    return False, nearest[1]


def _balanced_draw(
    pool: _Pool, wanted: Sequence[int], rng: np.random.Generator
) -> tuple[float, list[int]]:
    """Draw items at random and exchange some; what is left of the rules' leads, and the items."""
    n, clusters = sum(wanted), len(set(pool.cluster.tolist()))
    draw = _Draw(pool, 1 if 2 * n <= clusters else -(-n // clusters) + 1)
    # Scarce labels first: they have the fewest clusters to choose from.
    for gold in sorted(range(len(wanted)), key=lambda g: int((pool.gold == g).sum())):
        for _ in range(wanted[gold]):
            free = draw.free(gold)
            if not len(free):
                break
            least = free[draw.used[pool.cluster[free]] == draw.used[pool.cluster[free]].min()]
            draw.change(int(rng.choice(least)), 1)
    size = int(draw.inside.sum())
    slack = max(TOLERANCE * size, 1)
    total = pool.leads[draw.inside].sum(axis=0)
    lead = float(_excess(total, slack))
    idle = 0
    while lead > 0 and idle < 6:
        chosen = np.flatnonzero(draw.inside)
        exchange: tuple[float, int, int] | None = None
        for out in rng.choice(chosen, min(_TRIED, len(chosen)), replace=False).tolist():
            draw.change(out, -1)
            free = draw.free(int(pool.gold[out]))
            left = _excess(total - pool.leads[out] + pool.leads[free], slack)
            at = int(left.argmin())
            if left[at] < lead - 1e-9 and (exchange is None or left[at] < exchange[0]):
                exchange = (float(left[at]), out, int(free[at]))
            draw.change(out, 1)
        if exchange is None:
            idle += 1
            continue
        idle = 0
        lead, out, into = exchange
        draw.change(out, -1)
        draw.change(into, 1)
        total += pool.leads[into] - pool.leads[out]
    return lead, np.flatnonzero(draw.inside).tolist()


def _excess(total: Floats, slack: float) -> Floats:
    """How far leads exceed the slack, squared and summed over the rules (the last axis)."""
    excess: Floats = (np.maximum(np.abs(total) - slack, 0) ** 2).sum(axis=-1)
    return excess


def _worst(pool: _Pool, chosen: Sequence[int]) -> float:
    """How far the audit would find the worst rule from chance; 1 more if it is no accident."""
    cases = _cases(pool.entry, [pool.items[at] for at in chosen])
    measured = shortcuts(cases, pool.labels).values()
    worst = max((abs(one.accuracy - 0.5) for one in measured), default=0.0)
    notable = any(rule.notable for rule in rules(cases, pool.labels))
    return worst + (notable or not all(one.contains_chance for one in measured))
