"""The result of ``judgesense estimate``, and how it reads."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypedDict

from judgesense.statistics.result import ResultMapping, data_frame, html_table
from judgesense.text import UNDEFINED, aligned, brackets, number, p_value, percent, signed


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


def confounded_text(row: SystemComparison) -> str:
    """Why there is no decision between two systems whose labels other people gave."""
    return (
        f"{row['system_a']} and {row['system_b']} cannot be compared: some raters labelled more "
        "outputs of the one, others of the other, so a difference may be that of strict and "
        "lenient raters. Let each rater label outputs of both in equal shares."
    )


def comparison_text(row: SystemComparison) -> str:
    """What labels do to the judge's decision, and what to do next, in one or two sentences."""
    one, two = row["system_a"], row["system_b"]
    other = {one: two, two: one}
    winner = row["decision_naive"]
    alone = f"The judge alone shows no difference between {one} and {two}"
    if winner is not None:
        alone = f"The judge alone prefers {winner} to {other[winner]}"
    if row["corrected"] is None:
        return f"{alone}. Label a random part of the outputs of both systems to check this."
    if row["ci_low"] is None:
        return f"{one} and {two} cannot be compared, because their difference has no interval."
    winner = row["decision"]
    if not row["changed"]:
        text = f"{alone}, {'and the labels agree' if winner else 'nor do the labels'}."
    elif winner is None:
        text = f"{alone}. Corrected with the labels, neither is shown to be better."
    else:
        text = (
            f"{alone}. Corrected with the labels, {winner} is better than {other[winner]} "
            f"({p_value(row['p_holm'], 'p')})."
        )
    if winner is None and row["labels_needed"] is None:
        text += (
            " Even with labels on all outputs, the chance to show which is better is below 80%. "
            "Judge more outputs."
        )
    elif winner is None:
        text += (
            f" About {row['labels_needed']} labels would show which is better, if the difference "
            f"is as measured; there are {row['n_labels']}. Look again only then: looking after "
            "every few labels is wrong up to four times as often."
        )
    return text
