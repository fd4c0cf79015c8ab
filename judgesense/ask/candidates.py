"""Candidates: ways to ask and read, what they cost, and their verdicts on the answers so far.

A candidate is a name, the prompts that it needs (a judge's wordings in some orders) and how their
answers become a verdict: a :class:`~judgesense.recipes.rules.Rule`, or several candidates that
decide together. `first_candidates` lists those of one judge, `combinations_of` what is built from
the good ones; a new kind of candidate belongs in one of the two.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations

import numpy as np

from judgesense.ask.forms import Wording
from judgesense.recipes.fitting import AS_ASKED
from judgesense.recipes.rules import Decided, Read, Rule, averaged, sure, voted
from judgesense.statistics.arrays import Bools, Codes, Floats
from judgesense.statistics.calibration import batch_offsets
from judgesense.tasks import Task, is_scale
from local_judges.stabilised_file import Combine

PANELS = (2, 3, 5)
"""Sizes of panels of wordings; two votes that differ decide nothing."""

PASSED_ON = (0.15, 0.3, 0.5)
"""Shares of items that a cascade's first judge passes on."""

Column = tuple[int, int, int]
"""A prompt on each item: the numbers of its voice, wording and order."""

_JUDGES = 4
"""The best candidates of so many judges form juries and cascades."""


@dataclass(frozen=True)
class Voice:
    """A judge with a scoring: ``judge`` is its number, ``price`` what a prompt costs in the
    budget's unit."""

    judge: int
    name: str
    scoring: str
    price: float = 1.0


@dataclass(frozen=True)
class Candidate:
    """A way to ask and read.

    ``voice`` and ``wordings`` are indices of the answers; ``members`` decide together, as
    ``combine`` says. ``margins`` are those below which a cascade's next member is asked, in nats
    or shares of votes.
    """

    name: str
    voice: int = 0
    wordings: tuple[int, ...] = ()
    orders: tuple[str, ...] = ()
    read: Read = "most probable"
    calibrated: bool = False
    combine: Combine | None = None
    members: tuple[Candidate, ...] = ()
    margins: tuple[float, ...] = ()

    @property
    def leaves(self) -> tuple[Candidate, ...]:
        """The candidates of one judge that it consists of: itself, or its members."""
        return self.members or (self,)


@dataclass
class Answers:
    """The answers so far, by voice (V), item (n), wording (T), order (O) and label (L).

    ``logprobs`` are log-probabilities of the task's labels as shown, NaN where nothing was read;
    for text, 0 for the verdict and -inf for the others. ``asked`` says which prompts have an
    answer, shape (V, n, T, O). ``gold`` are codes of the labels in the item's own order;
    ``attacked`` are copies whose text tries to win: they race, but no offset is learned from them.
    """

    task: Task
    voices: Sequence[Voice]
    wordings: Sequence[Wording]
    gold: Codes
    clusters: Codes
    attacked: Bools = field(default_factory=lambda: np.zeros(0, bool))
    logprobs: Floats = field(init=False)
    asked: Bools = field(init=False)

    def __post_init__(self) -> None:
        if not len(self.attacked):
            self.attacked = np.zeros(len(self.gold), bool)
        shape = (len(self.voices), len(self.gold), len(self.wordings), len(self.task.orders))
        self.logprobs = np.full((*shape, len(self.task.labels)), np.nan)
        self.asked = np.zeros(shape, bool)

    def plain(self, items: Codes) -> Codes:
        """The items that are no attacked copies."""
        return items[~self.attacked[items]]

    def columns(self, *candidates: Candidate) -> frozenset[Column]:
        """The prompts per item behind candidates."""
        return frozenset(
            (own.voice, wording, self.task.orders.index(order))
            for each in candidates
            for own in each.leaves
            for wording in own.wordings
            for order in own.orders
        )

    def price_of(self, columns: Iterable[Column]) -> float:
        """What columns cost on an item."""
        return sum(self.voices[voice].price for voice, _, _ in columns)

    def price(self, *candidates: Candidate) -> float:
        """What the prompts of candidates cost on an item, each counted once."""
        return self.price_of(self.columns(*candidates))

    def rule(self, candidate: Candidate, fit: Codes) -> Rule:
        """The rule of a candidate of one judge, its offsets learned from the items ``fit``, whose
        labels play no part."""
        fit = self.plain(fit)
        names = tuple(self.wordings[w].template.template_id for w in candidate.wordings)
        offsets: dict[str, Mapping[str, float]] = {}
        places = [self.task.orders.index(order) for order in candidate.orders]
        for name, w in zip(names, candidate.wordings, strict=True) if candidate.calibrated else ():
            told = self.logprobs[candidate.voice][fit, w][:, places].reshape(-1, len(self.labels))
            learned = batch_offsets(told).round(6).tolist()
            offsets[name] = dict(zip(self.labels, learned, strict=True))
        return Rule(candidate.name, names, candidate.orders, self.labels, candidate.read, offsets)

    @property
    def labels(self) -> tuple[str, ...]:
        """The task's labels."""
        return self.task.labels

    def decided(self, candidate: Candidate, items: Codes, fit: Codes) -> Decided:
        """The verdicts of a candidate on some items, with offsets learned from ``fit``."""
        if candidate.members:
            each = [self.decided(member, items, fit) for member in candidate.members]
            if candidate.combine == "jury":
                return _jury(each, candidate.members[0].read == "vote")
            return _cascade(each, candidate.margins)
        places = [self.task.orders.index(order) for order in candidate.orders]
        told = self.logprobs[candidate.voice][items][:, list(candidate.wordings)][:, :, places]
        return self.rule(candidate, fit).decide(told)

    def right(self, candidate: Candidate, items: Codes, fit: Codes) -> Bools:
        """Whether a candidate's verdicts are right; an undecided one is wrong."""
        right: Bools = self.decided(candidate, items, fit).codes == self.gold[items]
        return right

    def scores(self, candidate: Candidate, items: Codes) -> Floats:
        """How well a candidate does on each item, from 0 to 1: the mean of whether it is right, and
        of how far the gold label is ahead of the best other one, Phi(margin / its own spread).

        Votes have no such margin. On few items it ranks candidates better than right or wrong does.
        """
        from scipy.special import ndtr

        decided, gold, rows = self.decided(candidate, items, items), self.gold[items], len(items)
        right: Floats = (decided.codes == gold).astype(float)
        read = decided.codes >= 0
        if candidate.leaves[0].read == "vote" or not read.any():
            return right
        others = np.maximum(np.nan_to_num(decided.logprobs, nan=-50.0), -50.0)
        own = others[np.arange(rows), gold]
        others[np.arange(rows), gold] = -np.inf
        margin = own - others.max(axis=1)
        spread = margin[read].std()
        ahead = np.where(read, ndtr(margin / spread), 0.0) if spread > 1e-9 else right
        scores: Floats = (right + ahead) / 2
        return scores

    def cost(self, candidate: Candidate, items: Codes, fit: Codes) -> tuple[float, float]:
        """Prompts, and their price, per item; a cascade's later judges are asked as often as on
        these items."""
        share, prompts, price = np.ones(len(items), bool), 0.0, 0.0
        seen: set[Column] = set()
        for n, leaf in enumerate(candidate.leaves):
            fresh = self.columns(leaf) - seen
            seen |= fresh
            prompts += len(fresh) * float(share.mean())
            price += self.price_of(fresh) * float(share.mean())
            if candidate.combine == "cascade" and n < len(candidate.margins):
                share = share & ~sure(self.decided(leaf, items, fit), candidate.margins[n])
        return prompts, price


def _jury(each: Sequence[Decided], votes: bool) -> Decided:
    if votes:
        codes = np.stack([one.codes for one in each], axis=1)
        return voted(codes, each[0].logprobs.shape[1])
    return averaged(np.stack([one.logprobs for one in each], axis=1))


def _cascade(each: Sequence[Decided], margins: Sequence[float]) -> Decided:
    final = each[0]
    for margin, more in zip(margins, each[1:], strict=True):
        kept = sure(final, margin)
        final = Decided(
            np.where(kept, final.codes, more.codes),
            np.where(kept[:, None], final.logprobs, more.logprobs),
            np.where(kept, final.margin, more.margin),
        )
    return final


def first_candidates(answers: Answers) -> list[Candidate]:
    """The candidates of one wording and one judge; the first one is the judge as it is asked.

    Those listed first take part if the budget is short.
    """
    task = answers.task
    several = len({voice.judge for voice in answers.voices}) > 1
    probable = {voice.judge for voice in answers.voices if voice.scoring == "options"}
    ranked: list[tuple[int, int, Candidate]] = []
    for v, voice in enumerate(answers.voices):
        read: Read = "most probable" if voice.scoring == "options" else "vote"
        for w, wording in enumerate(answers.wordings):
            # Reasons need text; where there are probabilities, text is for reasons alone.
            wanted = (
                wording.kind != "reasoning"
                if read != "vote"
                else (
                    wording.kind == "reasoning"
                    or (wording.kind != "alone" and voice.judge not in probable)
                )
            )
            if not wanted:
                continue
            name = "" if w == 0 else wording.template.template_id
            name = ", ".join(part for part in (voice.name if several else "", name) if part)
            rank = {"given": 2, "alone": 2, "form": 3, "paraphrase": 4, "reasoning": 5}
            place = 0 if w == 0 else rank[wording.kind]
            plain = Candidate(name, v, (w,), task.orders[:1], read)
            made = [] if wording.kind == "alone" else [(place, plain)]
            if read == "most probable":
                if wording.kind != "alone":
                    made.append((place, _also(plain, "calibrated", calibrated=True)))
                if is_scale(task.labels) and len(task.labels) > 2:
                    scored = _also(plain, "expected score", read="expected score")
                    made += [(place, scored), (place, _also(scored, "calibrated", calibrated=True))]
                if task.comparative:
                    both = "each option alone" if wording.kind == "alone" else "both orders"
                    later = min(place + 1, 4) if w else 1
                    made.append((later, _also(plain, both, orders=task.orders)))
            ranked += [(each_place, v, each) for each_place, each in made]
    ranked.sort(key=lambda each: (each[0], each[1]))
    found = [each for _, _, each in ranked]
    return [replace(found[0], name=AS_ASKED), *found[1:]]


def _also(candidate: Candidate, more: str, **changes: object) -> Candidate:
    name = ", ".join(part for part in (candidate.name, more) if part)
    return replace(candidate, name=name, **changes)  # type: ignore[arg-type]


def combinations_of(
    answers: Answers, alive: Sequence[Candidate], items: Codes, known: set[str]
) -> list[Candidate]:
    """Panels, juries and cascades of candidates that are still in the race.

    Their parts, and the margins of cascades, are chosen by the items so far. ``known`` are names
    that exist.
    """
    singles = [each for each in alive if not each.members and len(each.wordings) == 1]
    score = {each.name: answers.right(each, items, items).mean() for each in alive}
    best = sorted(alive, key=lambda each: (-score[each.name], len(each.wordings)))
    made: list[Candidate] = []
    styles: dict[tuple[object, ...], list[Candidate]] = {}
    for each in best:
        if each in singles:
            styles.setdefault((each.voice, each.orders, each.read, each.calibrated), []).append(
                each
            )
    for own in styles.values():
        for k in PANELS:
            if k > len(own) or (k == 2 and own[0].read == "vote"):
                continue
            wordings = tuple(each.wordings[0] for each in own[:k])
            names = "+".join(answers.wordings[w].template.template_id for w in wordings)
            made.append(
                replace(
                    own[0],
                    name=f"{_style(answers, own[0])}panel of {k} ({names})",
                    wordings=wordings,
                )
            )
    tops = [each for each in best if not each.members and each.read != "expected score"]
    by_judge: dict[int, Candidate] = {}
    for each in tops:
        by_judge.setdefault(answers.voices[each.voice].judge, each)
    leaders = list(by_judge.values())[:_JUDGES]
    for k in range(2, len(leaders) + 1):
        for members in combinations(leaders, k):
            votes = {each.read == "vote" for each in members}
            if len(votes) == 1 and (k > 2 or votes == {False}):
                named = " + ".join(_label(answers, each) for each in members)
                made.append(Candidate(f"jury ({named})", combine="jury", members=members))
    for dear in [*leaders, *(each for each in tops[:3] if each not in leaders)]:
        for cheap in [*leaders, *(each for each in tops[:3] if each not in leaders)]:
            if answers.cost(cheap, items, items)[1] < answers.cost(dear, items, items)[1] and (
                (cheap.read == "vote") == (dear.read == "vote")
            ):
                made += _cascades(answers, cheap, dear, items)
    return [each for each in made if each.name not in known]


def _cascades(answers: Answers, cheap: Candidate, dear: Candidate, items: Codes) -> list[Candidate]:
    first = answers.decided(cheap, items, items)
    margins = np.where(first.codes >= 0, first.margin, 0.0)
    levels = {float(np.quantile(margins, share).round(6)): share for share in PASSED_ON}
    named = f"{_label(answers, cheap)} > {_label(answers, dear)}"
    return [
        Candidate(
            f"cascade ({named}), passing on {share:.0%}",
            combine="cascade",
            members=(cheap, dear),
            margins=(level,),
        )
        for level, share in levels.items()
        if level > 0
    ]


def _label(answers: Answers, candidate: Candidate) -> str:
    own = answers.voices[candidate.voice].name
    if len({voice.judge for voice in answers.voices}) == 1:
        return candidate.name
    return candidate.name if candidate.name.startswith(own) else f"{own}, {candidate.name}"


def _style(answers: Answers, candidate: Candidate) -> str:
    several = len({voice.judge for voice in answers.voices}) > 1
    parts = [
        answers.voices[candidate.voice].name if several else "",
        "calibrated" if candidate.calibrated else "",
        "expected score" if candidate.read == "expected score" else "",
        "both orders" if len(candidate.orders) > 1 else "",
    ]
    return "".join(f"{part}, " for part in parts if part)
