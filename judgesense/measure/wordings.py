"""The wordings of a judge and task one by one, and which one to use."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from judgesense.log.answers import Answers, distinct, has_foreign_gold
from judgesense.measure.card import TrustCard
from judgesense.measure.checks import fair, readable, right
from judgesense.measure.figures import Recommendation, WordingRow
from judgesense.measure.thresholds import FEW_CLUSTERS
from judgesense.statistics.arrays import Bools, Codes
from judgesense.statistics.selection import Choice, choose
from judgesense.statistics.wordings import NOT_JUDGED, UNDECIDED, WordingFigures, screen
from judgesense.tasks import ERROR
from judgesense.text import brackets, join, number, p_value, percent, plural_s, quoted


@dataclass(frozen=True)
class Wordings:
    """A judge's decisions by wording and cell (item and option order).

    ``decisions`` has shape (wordings, cells): codes of ``labels``, ``NOT_JUDGED`` (also for a
    failed request) or ``UNDECIDED``. ``gold``, ``clusters`` and ``items`` have one entry per cell.
    ``inverted`` are the wordings that the run itself declares as inverted: they have a row, but no
    part in the consensus or in a recommendation. ``family`` is the number of choices of a wording
    in the report, for which each is corrected.
    """

    answers: Answers
    templates: tuple[str, ...]
    labels: tuple[str, ...]
    decisions: Codes
    gold: Codes
    clusters: Codes
    items: Codes
    family: int = 1

    @classmethod
    def of(cls, answers: Answers, family: int = 1) -> Wordings:
        """The wordings of a judge's answers (equivalent variants only)."""
        log, labels = answers.log, [*answers.task.labels]
        for code in np.unique(answers.decision).tolist() if not answers.task.ordinal else ():
            # An answer outside the task's labels (a tie) is a verdict of its own.
            if code >= 0 and not log.undecided[code] and log.labels[code] not in labels:
                labels.append(str(log.labels[code]))
        place = log.codes_of(tuple(labels))
        code_of = np.where(place < 0, UNDECIDED, place)
        code_of[:-1][log.labels == ERROR] = NOT_JUDGED
        code_of[-1] = NOT_JUDGED
        cube = answers.cube
        shape = len(cube.wordings), len(cube.items) * len(cube.orders)
        places = cube.places.transpose(1, 0, 2).reshape(shape)
        places = places[:, (places >= 0).any(axis=0)]
        gold = np.full(places.shape[1], -1)
        if not has_foreign_gold(answers):
            gold = np.append(place[log.gold[answers.rows]], -1)[places].max(axis=0, initial=-1)
        some = answers.rows[places.max(axis=0, initial=-1)]
        return cls(
            answers=answers,
            templates=tuple(log.templates[code] for code in cube.wordings),
            labels=tuple(labels),
            decisions=code_of[np.append(answers.decision, -1)[places]],
            gold=gold,
            clusters=log.cluster[some],
            items=log.item[some],
            family=family,
        )

    @cached_property
    def inverted(self) -> Bools:
        """Which wordings have a label map that inverts the others'."""
        is_inverted: Bools = np.isin(self.templates, list(self.answers.inverted))
        return is_inverted

    @cached_property
    def pair_counts(self) -> Codes:
        """How many pairs of two wordings agree, and how many are decided on both sides.

        Shape (2, T, T), wordings as in the log: JSS without some wordings is a ratio of sums.
        """
        answers, pairs = self.answers, self.answers.pairs
        n = len(answers.log.templates)
        decided = answers.decided()
        cell = pairs.template_a[decided] * n + pairs.template_b[decided]
        same = answers.mapped_a[decided] == answers.mapped_b[decided]
        agreed, every = np.bincount(cell[same], minlength=n * n), np.bincount(cell, minlength=n * n)
        return np.stack([agreed, every]).reshape(2, n, n)

    @cached_property
    def screened(self) -> tuple[list[WordingFigures], list[list[str]]]:
        """Every wording beside the consensus of the others, and the camps that they form.

        Camps are groups of wordings that agree among themselves and not with each other.
        """
        figures, camps = screen(
            self.decisions,
            self.clusters,
            n_labels=len(self.labels),
            ordinal=self.answers.task.ordinal,
            voters=~self.inverted,
            gold=self.gold,
            family=self.family,
        )
        return figures, [[self.templates[j] for j in camp] for camp in camps]

    @property
    def figures(self) -> list[WordingFigures]:
        """Every wording beside the consensus of the others."""
        return self.screened[0]

    @cached_property
    def graded(self) -> bool:
        """Whether gold labels can tell which wordings are right."""
        return bool((self.gold >= 0).any())

    @cached_property
    def candidates(self) -> list[int]:
        """The wordings that may be recommended: fine, not inverted, and with answers."""
        return [
            j
            for j, row in enumerate(self.figures)
            if row.flag == "fine" and not self.inverted[j] and row.n_prompts
        ]

    @cached_property
    def compared(self) -> tuple[tuple[int, ...], Codes]:
        """The wordings that can be recommended, and the cells on which they are compared.

        These are the fine wordings, on the items and orders that all of them judged. Where some
        were judged on few of those, they are left out if that leaves more answers to compare.
        """
        left = [*self.candidates]
        judged = self.decisions != NOT_JUDGED
        if self.graded:
            judged &= self.gold >= 0
        most, largest = 0, left
        while len(left) > 1:
            size = len(left) * int(judged[left].all(axis=0).sum())
            if size > most:
                most, largest = size, list(left)
            del left[int(judged[left].sum(axis=1).argmin())]
        cells = np.flatnonzero(judged[largest].all(axis=0)) if largest else np.zeros(0, np.intp)
        return tuple(largest), cells

    @cached_property
    def choice(self) -> Choice | None:
        """What accuracy says about the compared wordings; None with fewer than two or no gold.

        An answer without a verdict is wrong.
        """
        compared, cells = self.compared
        if len(compared) < 2 or not len(cells) or not self.graded:
            return None
        hits = self.decisions[list(compared)][:, cells] == self.gold[cells]
        return choose(hits, self.clusters[cells], family=self.family)

    @property
    def best(self) -> tuple[str, ...]:
        """The wordings that cannot be told from the best one."""
        names = np.array(self.templates, dtype=object)[list(self.compared[0])]
        return tuple(names if self.choice is None else names[list(self.choice.best)])

    @property
    def mislabelled(self) -> frozenset[str]:
        """The wordings that ask the opposite, or whose label map is wrong.

        A declared inversion that the judge overlooks is not among them: that tells of the judge.
        """
        names = set()
        for name, row, inverted in zip(self.templates, self.figures, self.inverted, strict=True):
            if row.flag == "inverted" and not inverted:
                names.add(name)
        return frozenset(names)


def wordings(table: Wordings, texts: Mapping[str, str] | None = None) -> tuple[WordingRow, ...]:
    """The wordings of a judge and task by name, each with what the others say about it."""
    rows = []
    for name, decisions, figures in zip(
        table.templates, table.decisions, table.figures, strict=True
    ):
        cells = (decisions != NOT_JUDGED) & (table.gold >= 0)
        hits = decisions[cells] == table.gold[cells]
        rows.append(
            WordingRow(
                template=name,
                text=(texts or {}).get(name),
                flag=figures.flag,
                agreement=figures.agreement,
                ci_low=figures.ci_low,
                ci_high=figures.ci_high,
                kappa=figures.kappa,
                p_adjusted=figures.p_adjusted,
                n_prompts=figures.n_prompts,
                jss_without=jss_without(table, {name}),
                accuracy=float(hits.mean()) if len(hits) else None,
                in_best_set=name in table.best,
            )
        )
    return tuple(rows)


def jss_without(table: Wordings, left_out: Collection[str]) -> float | None:
    """JSS of the equivalent wordings of one polarity without some of them; None without pairs."""
    out = np.isin(table.answers.log.templates, [*left_out, *table.answers.inverted])
    same, decided = table.pair_counts[:, ~out][:, :, ~out].sum(axis=(1, 2))
    return float(same / decided) if decided else None


def recommendation(table: Wordings, card: TrustCard) -> Recommendation:
    """The wording to use, or why none is recommended.

    Wordings are compared by accuracy with gold labels, on the items and orders that all of them
    judged; an answer without a verdict is wrong. Without gold labels nothing tells which wording is
    right: the one that agrees most with the others shares their bias. Flagged wordings, and those
    declared as inverted, are never recommended. Of a judge to avoid, a wording is recommended only
    if it passes by itself every check that failed.
    """
    choice, (_, cells) = table.choice, table.compared
    best = list(table.best)
    named, reason = _advised(table, best)
    if card.trust == "avoid":
        fails = quoted(card.because)
        failed = [name for name in card.because if named and not _passes(table, named, name, card)]
        if named is None:
            reason = f"no wording is recommended, because the judge fails {fails}"
        elif failed:
            also = "them either" if failed == list(card.because) else quoted(failed)
            reason = f"no wording is recommended: the judge fails {fails}, and {named} by itself "
            named, reason = None, f"{reason}does not pass {also}"
        else:
            reason += f". Use only this wording: over all wordings, the judge fails {fails}"
    out = {}
    for name, row in zip(table.templates, table.figures, strict=True):
        if row.flag != "fine":
            out[name] = f"{name} ({row.flag})"
    if out and (jss := jss_without(table, out)) is not None:
        left_out = f"wording{plural_s(len(out))} {join(list(out.values()))}"
        reason += f". Without the flagged {left_out}, JSS is {number(jss)}"
    if table.screened[1] and table.graded:
        reason += f". The wordings contradict each other: {_camps(table)}"
    choice = choice or Choice(None, (), None, None, None)
    return Recommendation(
        template=named,
        best_set=tuple(best),
        p_any_difference=choice.p_any_difference,
        accuracy_crossfit=choice.score,
        ci_low=choice.ci_low,
        ci_high=choice.ci_high,
        measure="gold" if table.graded else "consensus",
        camps=tuple(map(tuple, table.screened[1])),
        n_items=distinct(table.items[cells]),
        n_clusters=distinct(table.clusters[cells]),
        text=reason,
    )


def _advised(table: Wordings, best: list[str]) -> tuple[str | None, str]:
    """The wording to recommend, and the sentence that says so or why not."""
    choice, (compared, cells) = table.choice, table.compared
    n_items = distinct(table.items[cells])
    if (~table.inverted).sum() < 2:
        return None, "wordings cannot be compared, because each item was judged under one wording"
    if not compared:
        return None, "no wording is left to recommend"
    # Fine wordings may have been judged on other items.
    others = [table.templates[j] for j in table.candidates if j not in compared]
    if (len(compared) > 1 or others) and not table.graded:
        camps = _camps(table)
        which = f". The wordings contradict each other: {camps}" if camps else ""
        return None, f"without gold labels it is unknown which wording is right{which}"
    if choice is None and (len(compared) > 1 or others):
        return None, "wordings cannot be compared, because no item was judged under all of them"
    n_clusters = distinct(table.clusters[cells])
    if n_clusters < FEW_CLUSTERS and len(best) == 1:
        return None, f"{n_items} items are too few to recommend a wording"
    if choice is None:
        return best[0], f"use {best[0]}: every other wording is flagged"
    if choice.p_any_difference is None:
        return None, f"{n_clusters} independent items are too few to compare wordings"
    name = "p" if table.family == 1 else f"p corrected for {table.family} comparisons"
    evidence = f"({p_value(choice.p_any_difference, name)}, {n_items} item{plural_s(n_items)})"
    if others:
        evidence += f". Too few of these items were judged under {join(others)} for a comparison"
    rest = len(compared) - len(best)
    if not rest:
        return (
            None,
            f"there is no evidence that {len(compared)} wordings differ in accuracy {evidence}",
        )
    if len(best) > 1:
        return (
            None,
            f"{join(best, 'or')} may be the best wording, and {rest} other wording{plural_s(rest)} "
            f"did worse {evidence}",
        )
    return best[0], (
        f"use {best[0]}: it is right more often than the other {rest} {evidence}. On items that "
        "were not used to choose it, a wording chosen this way is right on "
        f"{percent(choice.score)} of prompts {brackets(choice.ci_low, choice.ci_high, percent)}"
    )


def _camps(table: Wordings) -> str:
    """The names in each camp, the first three of many."""
    camps = []
    for names in table.screened[1]:
        few = len(names) <= 4
        camps.append(join(names) if few else f"{', '.join(names[:3])} and {len(names) - 3} more")
    return " against ".join(camps)


def _passes(table: Wordings, template: str, check: str, card: TrustCard) -> bool:
    """Whether a wording by itself passes a check that the judge fails.

    One wording is not reworded: in place of `steady` it has to be right. Whether it is responsive
    cannot be seen.
    """
    alone = {"readable": readable, "steady": right, "right": right, "fair": fair}.get(check)
    if alone is None:
        return False
    answers, log = table.answers, table.answers.log
    of_wording = log.template[answers.rows] == log.templates.index(template)
    only = replace(answers, rows=answers.rows[of_wording], decision=answers.decision[of_wording])
    name = "right" if alone is right else check
    return alone(only, card.checks[name].threshold).state == "pass"
