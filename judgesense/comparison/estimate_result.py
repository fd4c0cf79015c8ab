"""The result of ``judgesense estimate``, and how it reads."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypedDict

import numpy as np

from judgesense.comparison.human_labels import Labels
from judgesense.comparison.verdicts import Verdicts
from judgesense.measure.agreement import position
from judgesense.statistics.arrays import Floats
from judgesense.statistics.result import ResultMapping, data_frame, html_table
from judgesense.text import UNDEFINED, aligned, brackets, number, p_value, percent, signed

_RARE = 0.03
"""Rarer errors than this move a mean less than the interval is wide."""


class SystemScore(TypedDict):
    """A system's score: the judge's alone (``naive``), and corrected by labels.

    ``corrected`` is the prediction-powered estimate, None with too few labels; ``weight`` is that
    of the verdicts in it, from 0 to 1. ``labels_only`` is the mean label. ``rogan_gladen`` (with
    ``rg_ci_low`` and ``rg_ci_high``), ``sensitivity`` and ``specificity`` are for two labels only.
    ``degenerate`` says why a figure is None.
    """

    system: str
    n_outputs: int
    n_labels: int
    n_undecided: int
    naive: float
    naive_ci_low: float | None
    naive_ci_high: float | None
    corrected: float | None
    ci_low: float | None
    ci_high: float | None
    weight: float | None
    labels_only: float | None
    rogan_gladen: float | None
    rg_ci_low: float | None
    rg_ci_high: float | None
    sensitivity: float | None
    specificity: float | None
    degenerate: str | None


class SystemComparison(TypedDict):
    """Two systems: the ``difference`` of their scores, or the ``win_rate`` of the first.

    ``p_holm`` is corrected over all comparisons. ``decision_naive`` is the better system by the
    verdicts alone, ``decision`` that with the labels; None if it is open. ``changed`` says whether
    labels change the decision, None without one, as where raters labelled other systems.
    ``labels_needed`` are the labels in all that decide with 80% probability, None if labels on
    every output do not.
    """

    system_a: str
    system_b: str
    measure: Literal["difference", "win_rate"]
    naive: float | None
    naive_ci_low: float | None
    naive_ci_high: float | None
    corrected: float | None
    ci_low: float | None
    ci_high: float | None
    p_value: float | None
    n_labels: int
    p_holm: float | None
    decision_naive: str | None
    decision: str | None
    changed: bool | None
    labels_needed: int | None
    text: str


@dataclass(frozen=True, eq=False)
class Estimate(ResultMapping):
    """Systems' scores and differences from many verdicts and some human labels.

    ``systems`` has a `SystemScore` for each system, the best first, and ``comparisons`` a
    `SystemComparison` for each pair of systems. ``alpha`` is Krippendorff's alpha between raters,
    None with one. ``picked`` says whether the labels were picked by ``judgesense label``. Scores
    are on the judge's scale, or shares for two labels.
    """

    systems: list[SystemScore]
    comparisons: list[SystemComparison]
    judge: str
    task: str
    positive: str | None
    wordings: list[str]
    n_outputs: int
    n_items: int
    n_labels: int
    n_raters: int
    alpha: float | None
    n_ties: int
    picked: bool
    confidence_level: float
    sources: list[str]
    notes: list[str]

    def to_pandas(self) -> Any:
        """The systems as a `pandas.DataFrame`, one row each."""
        return data_frame(self.systems)

    def __str__(self) -> str:
        who = " on ".join(name for name in (self.judge, self.task) if name) or "Verdicts"
        heading = f"{who}: {self.n_outputs} outputs, {self.n_labels} with a label"
        if self.n_raters > 1:
            heading += f" ({self.n_raters} raters, Krippendorff's alpha {number(self.alpha)})"
        table = self._system_table()
        lines = [heading, "", f"Scores ({percent(self.confidence_level)} intervals)"]
        lines += aligned(table, [True, *[False] * (len(table[0]) - 1)])
        if self.comparisons:
            lines += ["", "Decisions"]
            lines += aligned(self._comparison_table(), [True, False, False, True, True, False])
            lines += ["", *(f"  - {row['text']}" for row in self.comparisons)]
        if self.notes:
            lines += ["", *(f"Note: {note}." for note in self.notes)]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        tables = [self._system_table(), *([self._comparison_table()] if self.comparisons else [])]
        html = "".join(html_table(heading, rows) for heading, *rows in tables)
        return html + html_table((), [(note,) for note in self.notes])

    def _system_table(self) -> list[list[str]]:
        columns: dict[str, Callable[[SystemScore], str]] = {
            "system": lambda row: row["system"],
            "outputs": lambda row: str(row["n_outputs"]),
            "labels": lambda row: str(row["n_labels"]),
            "judge alone": lambda row: _with_ends(row, "naive", "naive_"),
            "corrected by labels": lambda row: _with_ends(row, "corrected", ""),
        }
        if any(row["sensitivity"] is not None for row in self.systems):
            columns["Rogan-Gladen"] = lambda row: _with_ends(row, "rogan_gladen", "rg_")
        return [[*columns], *([cell(row) for cell in columns.values()] for row in self.systems)]

    def _comparison_table(self) -> list[list[str]]:
        heading = ["A, B", "judge alone", "corrected by labels", "decision", "judge alone says"]
        rows = [[*heading, "labels to decide"]]
        for row in self.comparisons:
            form = number if row["measure"] == "win_rate" else signed
            rows.append(
                [
                    f"{row['system_a']}, {row['system_b']}",
                    _with_ends(row, "naive", "naive_", form),
                    _with_ends(row, "corrected", "", form),
                    UNDEFINED if row["changed"] is None else row["decision"] or "open",
                    row["decision_naive"] or "open",
                    _needed(row),
                ]
            )
        return rows


def _with_ends(row: Mapping[str, Any], name: str, prefix: str, form: Any = number) -> str:
    if row[name] is None:
        return UNDEFINED
    return f"{form(row[name])} {brackets(row[f'{prefix}ci_low'], row[f'{prefix}ci_high'], form)}"


def _needed(row: SystemComparison) -> str:
    if row["corrected"] is None or row["ci_low"] is None or row["changed"] is None:
        return UNDEFINED
    if row["decision"] is not None:
        return "decided"
    return "more outputs" if row["labels_needed"] is None else str(row["labels_needed"])


def comparison_text(
    row: SystemComparison, condition: str, n_common: int | None, is_apart: bool, is_confounded: bool
) -> str:
    """What labels do to the judge's decision, and what to do next, in one or two sentences.

    ``condition`` is what no file shows of the labels; ``n_common`` the prompts of both systems,
    None for all; ``is_apart`` says that these are too few to compare them.
    """
    one, two = row["system_a"], row["system_b"]
    if is_confounded:
        return (
            f"{one} and {two} cannot be compared: some raters labelled more outputs of the one, "
            "others of the other, so a difference may be that of strict and lenient raters. Let "
            "each rater label outputs of both in equal shares."
        )
    if is_apart:
        return (
            f"{one} and {two} answered other prompts ({n_common} in common), which may have been "
            "easier for one: their scores are of other prompts, and neither is shown to be better. "
            "Judge both on the same prompts, with the same item_id."
        )
    other, alone_says, says = {one: two, two: one}, row["decision_naive"], row["decision"]
    alone = f"The judge alone shows no difference between {one} and {two}"
    if alone_says is not None:
        alone = f"The judge alone prefers {alone_says} to {other[alone_says]}"
    if n_common is not None:
        alone = f"On the {n_common} prompts that both answered: {alone[0].lower()}{alone[1:]}"
    if row["corrected"] is None:
        return f"{alone}. Label a random part of the outputs of both systems to check this."
    if row["ci_low"] is None:
        return f"{one} and {two} cannot be compared, because their difference has no interval."
    if says is not None:
        if not row["changed"]:
            return f"{alone}, and the labels agree{condition}."
        p = p_value(row["p_holm"], "p")
        better = f"{says} is better than {other[says]} ({p})"
        return f"{alone}. Corrected with the labels, {better}{condition}."
    if row["labels_needed"] is None:
        following = (
            "Even with labels on all outputs, the chance to show which is better is below 80%. "
            "Judge more outputs."
        )
    else:
        following = (
            f"About {row['labels_needed']} labels would show which is better, if the difference "
            f"is as measured; there are {row['n_labels']}. Look again only then: looking after "
            "every few labels is wrong up to four times as often."
        )
    return f"{alone}. Corrected with the labels, neither is shown to be better. {following}"


def notes_of(people: Labels, n_wordings: int, rows: Sequence[SystemScore]) -> list[str]:
    """What the figures of all systems assume, and why one has none."""
    undecided = sum(row["n_undecided"] for row in rows)
    notes = {
        f"{undecided} outputs have no verdict. The 'judge alone' column leaves them out, and the "
        "correction gives them the mean verdict": undecided,
        f"{len(people.unmatched)} labels match no verdict and were left out. The first is in "
        f"{''.join(people.unmatched[:1])}": people.unmatched,
        f"the raters agree no better than chance (alpha {number(people.alpha)}). Discuss with them "
        "what a label means before you rely on the figures": (
            people.alpha is not None and people.alpha <= 0
        ),
        f"the raters tie on {people.ties} outputs, which count as the mean of the tied labels": (
            people.ties
        ),
        f"the intervals are for these {people.raters} raters; others may be stricter": (
            people.raters > 1
        ),
        "there is one wording, so the intervals say nothing about other wordings": n_wordings < 2,
        "there are two wordings, and the intervals are for these alone. Three or more would show "
        "how much wordings differ": n_wordings == 2,
        "the correction assumes that the labelled outputs are a random sample of each system's "
        "outputs" + ", except those that judgesense label picked" * people.picked: (
            people.sampled and np.isnan(people.values).any()
        ),
    }
    return [note for note, applies in notes.items() if applies] + [
        f"{row['system']}: {row['degenerate']}" for row in rows if row["degenerate"]
    ]


def unseen_errors(name: str, errors: Floats, step: float, width: float) -> Iterator[str]:
    """What a corrected score's interval leaves out: errors of more than a step of the scale, where
    no label shows one in a direction. ``errors``, verdict less label, are NaN without either."""
    known = errors[~np.isnan(errors)]
    if width <= step or not len(known) or (share := 1 - 0.05 ** (1 / len(known))) < _RARE:
        return
    # A judge that is too low somewhere shows nothing of how often it is too high.
    unseen = [what for what, off in (("lower", known), ("higher", -known)) if off.max() <= step]
    if unseen:
        yield (
            f"{name}: no label is {' or '.join(unseen)} than its verdict by more than "
            f"{number(step, 1)}. Larger errors on up to {percent(share)} of the outputs would show "
            f"in none of {len(known)} labels, and the interval leaves them out"
        )


def position_bias(read: Verdicts) -> list[str]:
    """What the order of the options does to choices that were asked in both orders."""
    both = position(read.answers) if read.answers.task.comparative else None
    if both is None or both.same_choice is None:
        return []
    first = both.first_position_rate
    takes = "" if first is None else f", and takes the first option {percent(first)} of the time"
    return [
        f"the judge makes the same choice in both orders on {percent(both.same_choice)} of "
        f"{both.n_items} items{takes}"
    ]
