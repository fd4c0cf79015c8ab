"""What ``judgesense estimate`` found, and how it reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from judgesense.statistics.result import ResultMapping, data_frame, html_table
from judgesense.text import UNDEFINED, aligned, brackets, join, number, p_value, percent, signed

MOST_PAIRS = 28
"""Comparisons printed, those that labels change first; `to_dict` has all."""


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
    None without a corrected one), ``by_wording`` (``wording``, ``naive``, ``ci_low``, ``ci_high``,
    ``decision``), ``n_labels``, ``labels_needed`` with ``labels_needed_low`` and
    ``labels_needed_high`` (labels in all that decide with 80% probability; None if labels on every
    output do not), ``win_rate_naive``, ``win_rate``, ``win_rate_ci_low``, ``win_rate_ci_high`` (how
    often A's output beats B's on the same item, ties half; None where outputs cannot be paired) and
    ``text``.

    ``alpha`` is Krippendorff's alpha between raters, None with one. ``picked`` says whether the
    labels were picked by a plan (``--next``). Scores are on the judge's scale, or shares for two
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
        return render_estimate(self)

    def _repr_html_(self) -> str:
        found = html_table(*_split(system_table(self)))
        if self.comparisons:
            found += html_table(*_split(comparison_table(self)))
        return found + html_table((), [(note,) for note in self.notes])


def _split(table: Sequence[Sequence[str]]) -> tuple[Sequence[str], Sequence[Sequence[str]]]:
    return table[0], table[1:]


def render_estimate(found: Mapping[str, Any]) -> str:
    """The estimate as plain text."""
    level = percent(found["confidence_level"])
    who = " on ".join(name for name in (found["judge"], found["task"]) if name) or "Verdicts"
    heading = f"{who}: {found['n_outputs']} outputs, {found['n_labels']} with a label"
    if found["n_raters"] > 1:
        heading += f" ({found['n_raters']} raters, Krippendorff's alpha {number(found['alpha'])})"
    right = [False] * 9
    lines = [heading, "", f"Scores ({level} intervals)"]
    lines += aligned(system_table(found), [True, *right[: len(system_table(found)[0]) - 1]])
    if found["comparisons"]:
        lines += ["", "Decisions"]
        table = comparison_table(found)
        lines += aligned(table, [True, False, False, True, True, False])
        lines += ["", *(f"  - {each['text']}" for each in shown_pairs(found))]
    if found["notes"]:
        lines += ["", *(f"Note: {note}." for note in found["notes"])]
    return "\n".join(lines)


def shown_pairs(found: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The comparisons to print: changed decisions first where there are many."""
    pairs: list[Mapping[str, Any]] = list(found["comparisons"])
    if len(pairs) > MOST_PAIRS:
        pairs.sort(key=lambda each: (not each["changed"], each["decision"] is not None))
    return pairs[:MOST_PAIRS]


def system_table(found: Mapping[str, Any]) -> list[list[str]]:
    """Heading and rows of the systems' scores."""
    binary = any(each["sensitivity"] is not None for each in found["systems"])
    heading = ["system", "outputs", "labels", "judge alone", "corrected by labels"]
    rows = [heading + (["Rogan-Gladen"] if binary else [])]
    for each in found["systems"]:
        row = [
            each["system"],
            str(each["n_outputs"]),
            str(each["n_labels"]),
            _with_ends(each["naive"], each["naive_ci_low"], each["naive_ci_high"]),
            _with_ends(each["corrected"], each["ci_low"], each["ci_high"]),
        ]
        if binary:
            row.append(_with_ends(each["rogan_gladen"], each["rg_ci_low"], each["rg_ci_high"]))
        rows.append(row)
    return rows


def comparison_table(found: Mapping[str, Any]) -> list[list[str]]:
    """Heading and rows of the comparisons."""
    rows = [["A, B", "judge alone", "corrected by labels", "decision", "judge alone says",
             "labels to decide"]]  # fmt: skip
    for each in shown_pairs(found):
        form = number if each["measure"] == "win_rate" else signed
        rows.append(
            [
                f"{each['system_a']}, {each['system_b']}",
                _with_ends(each["naive"], each["naive_ci_low"], each["naive_ci_high"], form),
                _with_ends(each["corrected"], each["ci_low"], each["ci_high"], form),
                _decision(each["decision"], each["corrected"]),
                _decision(each["decision_naive"], each["naive"]),
                _needed(each),
            ]
        )
    return rows


def _with_ends(value: Any, low: Any, high: Any, form: Any = number) -> str:
    return UNDEFINED if value is None else f"{form(value)} {brackets(low, high, form)}"


def _decision(name: str | None, value: float | None) -> str:
    if value is None:
        return UNDEFINED
    return name or "open"


def _needed(each: Mapping[str, Any]) -> str:
    if each["corrected"] is None or each["ci_low"] is None:
        return UNDEFINED
    if each["decision"] is not None:
        return "decided"
    if each["labels_needed"] is None:
        return "more outputs"
    return f"{each['labels_needed']} ({_range(each)})"


def _range(each: Mapping[str, Any]) -> str:
    low, high = each["labels_needed_low"], each["labels_needed_high"]
    return f"{low} or more" if high is None else f"{low} to {high}"


def comparison_text(each: Mapping[str, Any]) -> str:
    """One sentence or two on a comparison: what labels do to the judge's decision, and what next.

    >>> told = {"system_a": "a", "system_b": "b", "measure": "difference", "naive": 0.1,
    ...         "decision_naive": "a", "corrected": None, "ci_low": None, "decision": None,
    ...         "by_wording": [], "n_labels": 0}
    >>> comparison_text(told)
    'The judge alone decides for a over b; label outputs of both systems to check that.'
    """
    one, two = each["system_a"], each["system_b"]

    def said(winner: str | None) -> str:
        if winner is None:
            return f"does not decide between {one} and {two}"
        return f"decides for {winner} over {two if winner == one else one}"

    alone = f"The judge alone {said(each['decision_naive'])}"
    if each["corrected"] is None:
        return f"{alone}; label outputs of both systems to check that."
    if each["ci_low"] is None:
        return f"{one} and {two}: no interval, so no decision."
    if not each["changed"]:
        text = f"{alone}; {'labels agree' if each['decision'] else 'nor do labels'}."
    elif each["decision"] is None:
        text = f"{alone}; corrected by labels, neither is shown to be better."
    else:
        winner, loser = each["decision"], two if each["decision"] == one else one
        text = f"{alone}; corrected by labels, {winner} is better than {loser}"
        text += f" ({p_value(each['p_holm'], 'p')})."
    told = _wordings_text(each)
    if told:
        text += f" {told}"
    if each["decision"] is None:
        if each["labels_needed"] is None:
            text += " Labels on all outputs would not decide; judge more outputs."
        else:
            text += (
                f" About {each['labels_needed']} labels decide ({_range(each)}); there are "
                f"{each['n_labels']}."
            )
    return text


def _wordings_text(each: Mapping[str, Any]) -> str:
    by_wording = each["by_wording"]
    if len(by_wording) < 2:
        return ""
    counts: dict[str | None, int] = {}
    for row in by_wording:
        counts[row["decision"]] = counts.get(row["decision"], 0) + 1
    if len(counts) == 1:
        (winner,) = counts
        which = "Both" if len(by_wording) == 2 else f"All {len(by_wording)}"
        if winner is None:
            return "No wording decides on its own."
        return f"{which} wordings, each on its own, are for {winner}."
    parts = [
        f"{count} {'decide nothing' if winner is None else f'are for {winner}'}"
        for winner, count in sorted(counts.items(), key=lambda pair: (-pair[1], pair[0] or ""))
    ]
    return f"Of {len(by_wording)} wordings, each on its own, {join(parts)}."
