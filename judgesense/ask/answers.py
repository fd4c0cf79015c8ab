"""The answers of several judges so far, what recipes make of them, and what they cost."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from judgesense.ask.wordings import WordingToTry
from judgesense.log.array import AnswerArray
from judgesense.log.rows import TaskWords
from judgesense.recipes.recipe import Recipe, RecipeVerdicts
from judgesense.statistics.arrays import Bools, Codes, Floats
from judgesense.statistics.calibration import most_probable
from judgesense.tasks import Task

Column = tuple[int, int, int]
"""A prompt on each item: the numbers of its judge and scoring, its wording and its order."""


@dataclass(frozen=True)
class JudgeScoring:
    """A judge with a scoring: ``judge`` is its number, ``price`` what a prompt costs in the
    budget's unit."""

    judge: int
    name: str
    scoring: str
    price: float = 1.0


@dataclass(frozen=True)
class AnswersSoFar:
    """The answers so far: an array for each judge and scoring, filled in place.

    The arrays have the same items, ``wordings`` and orders. ``attacked``, shape (n,), are copies of
    items whose text tries to win: they race, but no offset is learned from them. Unless
    ``labelled``, people labelled nothing: what is right is which outputs were made wrong.
    """

    task: Task
    judges: Sequence[JudgeScoring]
    wordings: Sequence[WordingToTry]
    arrays: tuple[AnswerArray, ...]
    attacked: Bools
    labelled: bool = True

    @classmethod
    def empty(
        cls,
        task: Task,
        judges: Sequence[JudgeScoring],
        wordings: Sequence[WordingToTry],
        gold: Codes,
        clusters: Codes,
        attacked: Bools | None = None,
        labelled: bool = True,
    ) -> AnswersSoFar:
        """No answers yet. ``gold``, shape (n,), are codes of the labels in the item's own order."""
        words = TaskWords(task.name, task.labels, task.comparative, task.ordinal)
        names = [wording.template.template_id for wording in wordings]
        arrays = tuple(
            AnswerArray.empty(words, each.scoring, gold, clusters, names, task.orders)
            for each in judges
        )
        attacked = np.zeros(len(gold), bool) if attacked is None else attacked
        return cls(task, judges, wordings, arrays, attacked, labelled)

    @property
    def gold(self) -> Codes:
        """The label of each item."""
        return self.arrays[0].gold

    @property
    def clusters(self) -> Codes:
        """The cluster of each item."""
        return self.arrays[0].clusters

    @property
    def several(self) -> bool:
        """Whether several judges are asked."""
        return len({each.judge for each in self.judges}) > 1

    def record(self, column: Column, items: Codes | int, logprobs: Floats) -> None:
        """Fill in answers, shape (..., L), as log-probabilities of the labels as shown."""
        judge, wording, order = column
        self.arrays[judge].logprobs[items, wording, order] = logprobs
        self.arrays[judge].verdicts[items, wording, order] = most_probable(logprobs)

    def unanswered(self, column: Column, items: Codes) -> Bools:
        """Which of some items lack an answer."""
        judge, wording, order = column
        missing: Bools = ~self.arrays[judge].asked[items, wording, order]
        return missing

    def plain(self, items: Codes) -> Codes:
        """The items that are no attacked copies."""
        return items[~self.attacked[items]]

    def columns(self, *recipes: Recipe) -> frozenset[Column]:
        """The prompts per item behind recipes."""
        return frozenset(
            (part.judge, self.arrays[0].place(wording), self.task.orders.index(order))
            for recipe in recipes
            for part in recipe.leaves
            for wording in part.wordings
            for order in part.orders
        )

    def price_of(self, columns: Iterable[Column]) -> float:
        """What columns cost on an item."""
        return sum(self.judges[judge].price for judge, _, _ in columns)

    def price(self, *recipes: Recipe) -> float:
        """What the prompts of recipes cost on an item, each counted once."""
        return self.price_of(self.columns(*recipes))

    @property
    def spent(self) -> float:
        """What all answers cost."""
        counts = [float(array.asked.sum()) for array in self.arrays]
        return float(np.dot(counts, [each.price for each in self.judges]))

    def fitted(self, recipe: Recipe, fit: Codes) -> Recipe:
        """A recipe with offsets learned from the items ``fit``, without attacked copies."""
        return recipe.fitted(*self.arrays, items=self.plain(fit))

    def decide(self, recipe: Recipe, items: Codes, fit: Codes) -> RecipeVerdicts:
        """The verdicts of a recipe on some items, with offsets learned from ``fit``."""
        return self.fitted(recipe, fit).decide(*self.arrays, items=items)

    def right(self, recipe: Recipe, items: Codes, fit: Codes) -> Bools:
        """Whether a recipe's verdicts are right; an undecided one is wrong."""
        right: Bools = self.decide(recipe, items, fit).codes == self.gold[items]
        return right

    def scores(self, recipe: Recipe, items: Codes) -> Floats:
        """How well a recipe does on each item, from 0 to 1: the mean of whether it is right, and of
        how far the gold label is ahead of the best other one, Phi(margin / its spread).

        Votes have no such margin. On few items it ranks recipes better than right or wrong does.
        Without people's labels, half of the score is how steady the verdict is.
        """
        scores = self._right_and_ahead(recipe, items)
        if self.labelled or (steady := self._steady(recipe, items)) is None:
            return scores
        return (scores + steady) / 2

    def _steady(self, recipe: Recipe, items: Codes) -> Floats | None:
        """How many of the judge's other wordings so far give each item the verdict of a recipe;
        None without any."""
        if recipe.members:
            return None
        asked, orders = self.arrays[recipe.judge].asked, self.task.orders
        at = [orders.index(order) for order in recipe.orders]
        names = [each.template.template_id for each in self.wordings]
        others = [
            name
            for n, name in enumerate(names)
            if name not in recipe.wordings and asked[items][:, n][:, at].all()
        ]
        if not others:
            return None
        own = self.decide(recipe, items, items).codes
        same = [
            self.decide(replace(recipe, wordings=(name,)), items, items).codes == own
            for name in others
        ]
        steady: Floats = np.mean(same, axis=0) * (own >= 0)
        return steady

    def _right_and_ahead(self, recipe: Recipe, items: Codes) -> Floats:
        """How right each verdict is, and how far ahead."""
        from scipy.special import ndtr

        verdicts, gold, rows = self.decide(recipe, items, items), self.gold[items], len(items)
        right: Floats = (verdicts.codes == gold).astype(float)
        decided = verdicts.codes >= 0
        if recipe.read == "vote" or not decided.any():
            return right
        others = np.maximum(np.nan_to_num(verdicts.logprobs, nan=-50.0), -50.0)
        of_gold = others[np.arange(rows), gold]
        others[np.arange(rows), gold] = -np.inf
        margin = of_gold - others.max(axis=1)
        spread = margin[decided].std()
        ahead = np.where(decided, ndtr(margin / spread), 0.0) if spread > 1e-9 else right
        scores: Floats = (right + ahead) / 2
        return scores

    def cost(self, recipe: Recipe, items: Codes, fit: Codes) -> tuple[float, float]:
        """Prompts, and their price, per item; a cascade's later judges are asked as often as on
        these items."""
        left, prompts, price = np.ones(len(items), bool), 0.0, 0.0
        paid: set[Column] = set()
        for part, margin in zip(recipe.leaves, recipe.margins or (None,), strict=True):
            fresh = self.columns(part) - paid
            paid |= fresh
            prompts += len(fresh) * float(left.mean())
            price += self.price_of(fresh) * float(left.mean())
            if margin is not None:
                left = left & ~self.decide(part, items, fit).is_confident(margin)
        return prompts, price
