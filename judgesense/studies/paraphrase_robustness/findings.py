"""The findings and limits of paraphrase robustness, as sentences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from judgesense.reporting.result import Record
from judgesense.run_folder.folder import Run
from judgesense.studies.common.study import Tables
from judgesense.studies.paraphrase_robustness.grid import Grid
from judgesense.studies.paraphrase_robustness.measures import gap_finding
from judgesense.studies.paraphrase_robustness.strategies import FUSER, SINGLE, Outcome
from judgesense.text import join, number, p_value, short_names, signed

FEW_WORDINGS = 4
"""With fewer wordings of your own, the gap is about these only."""


@dataclass(frozen=True)
class Measured:
    """What the study measured: a record per configuration, the outcomes of the strategies in the
    order of the attributes, and the records of the same-prompt control with how it was made."""

    grid: Grid
    run: Run
    rows: Sequence[dict[str, Any]]
    outcomes: Sequence[Outcome]
    controls: Sequence[Record]
    how: str
    tolerance: float

    def strategies(self) -> dict[str, list[Outcome]]:
        """The outcomes by strategy."""
        found: dict[str, list[Outcome]] = {}
        for one in self.outcomes:
            found.setdefault(one.strategy, []).append(one)
        return found


def findings(s: Measured, tables: Tables) -> Iterator[str]:
    """What the tables show."""
    yield "accuracy: " + ", ".join(
        f"{number(row['accuracy'], 2)} on {row['kind']} attributes" for row in tables["kinds"].rows
    )
    above = sum((row["ci_low"] or 0.0) > row["constant_accuracy"] for row in s.rows)
    at_all = sum(row["accuracy"] > row["constant_accuracy"] for row in s.rows)
    yield (
        f"in {at_all} of {len(s.rows)} configurations the judge is right more often than always "
        f"giving the most frequent score, in {above} with the whole interval"
    )
    yield gap_finding(s.rows, "paraphrases")
    for row in tables["correlations"].rows:
        if row["among"] == "all" and row["pearson"] is not None:
            yield (
                f"accuracy against {row['figure']}: r = {number(row['pearson'], 2)} "
                f"({p_value(row['pearson_p'])}, n = {row['n']})"
            )
    if insensitive := [row["judge"] for row in tables["judges"].rows if row["finding"]]:
        yield (
            f"{join(insensitive)}: insensitive, not robust: most scores stay the same under every "
            "paraphrase and are right no more often than a constant score"
        )
    if s.controls and s.controls[-1]["p"] is not None:
        last: Mapping[str, Any] = s.controls[-1]
        yield (
            f"rewording moves accuracy by {number(last['gap_reworded'])}, asking the same prompt "
            f"again by {number(last['gap_same'])} (Wilcoxon {p_value(last['p'])}, "
            f"{last['n_configurations']} configurations)"
        )
    for row in tables["strategies"].rows if s.outcomes else ():
        if row["strategy"] != SINGLE:
            yield (
                f"{row['strategy']}: {signed(row['gain'])} exact accuracy against the mean single "
                f"judge (from {signed(row['least_gain'])} to {signed(row['most_gain'])} over "
                f"{row['n_attributes']} attributes)"
            )


def limits(s: Measured, tables: Tables) -> Iterator[str]:
    """What the figures do not show."""
    plan = s.grid.plan
    counts = {name: len(plan.paraphrases_of(one)) for name, one in plan.attributes.items()}
    yield (
        f"{plan.limit} texts per task: an accuracy of a configuration has an interval of about "
        f"±{1 / np.sqrt(plan.limit):.2f}, and a largest difference of {plan.paraphrases} "
        "accuracies is biased upwards; compare the gap with the gap by chance"
    )
    few = [name for name, n in counts.items() if n < FEW_WORDINGS]
    if plan.templates is None:
        yield "the wordings are this project's, not the paper's, which prints only a few of its own"
    elif few:
        yield f"{join(few)}: with so few wordings, the gap says little about others"
    yield (
        "texts are drawn equally from bands of the human score, so low scores are more frequent "
        "here than in the sets; accuracies do not describe the sets' own mix"
    )
    if plan.scoring == "options":
        yield (
            "the most probable level is the score, even for a judge that would rather write "
            "something else"
        )
    elif not s.controls:
        yield (
            "the same prompt was not asked again: greedy text repeats itself, so rewording is not "
            "compared with it; --set temperature=1 draws the text, as the paper's judges do"
        )
    if absent := 12 - len(plan.attributes):
        yield f"{absent} of the paper's 12 attributes were not judged"
    if plan.data.get("summarisation") == "summeval":
        yield "the summaries are SummEval's, not TL;DR's; quality is a mean of four ratings"
    for names in one_model(s.grid.report):
        yield (
            f"{join(names)} are one model under several settings: they share their errors, so "
            "their votes in a panel are not independent"
        )
    yield from _undecided(s)


def _undecided(s: Measured) -> Iterator[str]:
    """The texts that no strategy, or not the fuser, is measured on."""
    for name in s.grid.plan.attributes:
        cells = s.grid.of(name)
        own = {one.strategy: one.n for one in s.outcomes if one.name == name}
        if any(cell.left_out for cell in cells):
            asked, kept = len(cells[0].items) + cells[0].left_out, own.get(SINGLE, 0)
            by_judge = ", ".join(f"{cell.judge} {cell.left_out}" for cell in cells if cell.left_out)
            yield (
                f"{name}: strategies are compared on {kept} of {asked} texts, those that every "
                f"judge decided under every paraphrase (undecided: {by_judge})"
            )
        if any(one.strategy == FUSER for one in s.outcomes) and own.get(FUSER, 0) < own.get(
            SINGLE, 0
        ):
            yield (
                f"{name}: the fuser had a rating to read and decided in both wordings on "
                f"{own.get(FUSER, 0)} of {own[SINGLE]} texts, and is compared on these"
            )


def one_model(report: Mapping[str, Any]) -> list[list[str]]:
    """The judges of a report that share their weights, or their model at an endpoint.

    Functions are never counted as one model.
    """
    described = {
        judge["name"]: judge.get("describe", {})
        for run in report.get("runs", ())
        for judge in (run or {}).get("judges", ())
    }
    names = short_names(set(described))
    models: dict[str, list[str]] = {}
    for name, fixed in described.items():
        if model := fixed.get("weights") or fixed.get("model"):
            models.setdefault(model, []).append(names[name])
    return [own for own in models.values() if len(own) > 1]
