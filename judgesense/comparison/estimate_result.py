"""What ``judgesense estimate`` found, and how it reads."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from judgesense.statistics.result import ResultMapping, data_frame, html_table
from judgesense.text import UNDEFINED, aligned, brackets, number, p_value, percent, signed


@dataclass(frozen=True, eq=False)
class Estimate(ResultMapping):
    """Systems' scores and differences from many verdicts and some human labels.

    ``systems`` has one entry per system with the keys ``system``, ``n_outputs``, ``n_labels``,
    ``n_undecided``, ``naive`` (mean verdict) with ``naive_ci_low`` and ``naive_ci_high``,
    ``corrected`` (prediction-powered) with ``ci_low`` and ``ci_high``, ``weight`` (of the verdicts,
    0 to 1), ``labels_only`` (mean label), ``rogan_gladen`` with ``rg_ci_low`` and ``rg_ci_high``,
    ``sensitivity``, ``specificity`` (two labels only) and ``degenerate`` (why a figure is None).

    ``comparisons`` has one entry per pair of systems with the keys ``system_a``, ``system_b``,
    ``measure`` (``difference`` of mean scores, or ``win_rate`` where verdicts compare two outputs),
    ``naive``, ``naive_ci_low``, ``naive_ci_high``, ``corrected``, ``ci_low``, ``ci_high``,
    ``p_value``, ``p_holm`` (Holm-corrected over the comparisons), ``decision_naive`` and
    ``decision`` (the better system, None if open), ``changed`` (whether labels change the decision;
    None without a corrected one), ``n_labels``, ``labels_needed`` (labels in all that
    decide with 80% probability; None if labels on every output do not) and ``text``.

    ``alpha`` is Krippendorff's alpha between raters, None with one. ``picked`` says whether the
    labels were picked by ``judgesense label``. Scores are on the judge's scale, or shares for two
    labels.
    """

    systems: list[dict[str, Any]]
    comparisons: list[dict[str, Any]]
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
            lines += ["", *(f"  - {each['text']}" for each in self.comparisons)]
        if self.notes:
            lines += ["", *(f"Note: {note}." for note in self.notes)]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        tables = [self._system_table(), *([self._comparison_table()] if self.comparisons else [])]
        html = "".join(html_table(heading, rows) for heading, *rows in tables)
        return html + html_table((), [(note,) for note in self.notes])

    def _system_table(self) -> list[list[str]]:
        columns: dict[str, Callable[[dict[str, Any]], str]] = {
            "system": lambda each: each["system"],
            "outputs": lambda each: str(each["n_outputs"]),
            "labels": lambda each: str(each["n_labels"]),
            "judge alone": lambda each: _with_ends(each, "naive", "naive_"),
            "corrected by labels": lambda each: _with_ends(each, "corrected", ""),
        }
        if any(each["sensitivity"] is not None for each in self.systems):
            columns["Rogan-Gladen"] = lambda each: _with_ends(each, "rogan_gladen", "rg_")
        return [
            list(columns),
            *([cell(each) for cell in columns.values()] for each in self.systems),
        ]

    def _comparison_table(self) -> list[list[str]]:
        rows = [
            [
                "A, B",
                "judge alone",
                "corrected by labels",
                "decision",
                "judge alone says",
                "labels to decide",
            ]
        ]
        for each in self.comparisons:
            form = number if each["measure"] == "win_rate" else signed
            rows.append(
                [
                    f"{each['system_a']}, {each['system_b']}",
                    _with_ends(each, "naive", "naive_", form),
                    _with_ends(each, "corrected", "", form),
                    UNDEFINED if each["corrected"] is None else each["decision"] or "open",
                    each["decision_naive"] or "open",
                    _needed(each),
                ]
            )
        return rows


def _with_ends(row: Mapping[str, Any], name: str, prefix: str, form: Any = number) -> str:
    if row[name] is None:
        return UNDEFINED
    return f"{form(row[name])} {brackets(row[f'{prefix}ci_low'], row[f'{prefix}ci_high'], form)}"


def _needed(each: Mapping[str, Any]) -> str:
    if each["corrected"] is None or each["ci_low"] is None:
        return UNDEFINED
    if each["decision"] is not None:
        return "decided"
    if each["labels_needed"] is None:
        return "more outputs"
    return str(each["labels_needed"])


def comparison_text(row: Mapping[str, Any]) -> str:
    """One sentence or two on a comparison: what labels do to the judge's decision, and what next.

    >>> comparison_text({"system_a": "a", "system_b": "b", "decision_naive": "a",
    ...                  "corrected": None})
    'The judge alone prefers a to b. Label outputs of both systems to check this.'
    """
    one, two = row["system_a"], row["system_b"]
    other = {one: two, two: one}
    winner = row["decision_naive"]
    alone = f"The judge alone shows no difference between {one} and {two}"
    if winner is not None:
        alone = f"The judge alone prefers {winner} to {other[winner]}"
    if row["corrected"] is None:
        return f"{alone}. Label outputs of both systems to check this."
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
        )
        text += "Judge more outputs."
    elif winner is None:
        text += f" About {row['labels_needed']} labels would show which is better; there are "
        text += f"{row['n_labels']}."
    return text
