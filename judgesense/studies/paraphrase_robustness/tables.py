"""The tables of paraphrase robustness, with the paper's figures beside."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from judgesense.log.folder import Run
from judgesense.reporting.study_result import Record
from judgesense.statistics.robustness import TOLERANCES
from judgesense.studies.common.study import mean, published, table
from judgesense.studies.common.study import paper as paper_of
from judgesense.studies.paraphrase_robustness.grid import Grid
from judgesense.studies.paraphrase_robustness.measures import grouped, means, stability
from judgesense.studies.paraphrase_robustness.scored_sets import SOURCES
from judgesense.studies.paraphrase_robustness.strategies import (
    CONSTANT,
    SINGLE,
    Outcome,
    crossfit_accuracy,
)
from judgesense.text import number, p_value
from judgesense_dataset.embedded import VERIFIABILITIES

NAME = "paraphrase-robustness"

paper = partial(paper_of, NAME)


@dataclass(frozen=True)
class StudyMeasurements:
    """What the study measured: a record per configuration, and the outcomes of the strategies in
    the order of the attributes."""

    grid: Grid
    run: Run
    rows: Sequence[dict[str, Any]]
    outcomes: Sequence[Outcome]
    tolerance: float


@table(
    "kinds",
    "By verifiability (the paper's Table 6)",
    lambda s: _stability_note(s),
    paper_accuracy="paper",
    paper_stable="paper's share",
    constant_accuracy="constant score",
)
def kinds(s: StudyMeasurements) -> Iterator[Record]:
    """Accuracy and stability by verifiability."""
    counts, _ = stability(s.rows)
    for kind, members in grouped(s.rows, "kind", VERIFIABILITIES).items():
        stable, n = counts[kind]
        yield {
            "kind": kind,
            **means(members, "accuracy"),
            "paper_accuracy": paper(f"kind.{kind}.accuracy"),
            **means(members, "constant_accuracy", "gap", "sensitivity", "consistency"),
            "n_stable": stable,
            "n_configurations": n,
            "share_stable": stable / n,
            "paper_stable": paper(f"kind.{kind}.stable"),
        }


def _stability_note(s: StudyMeasurements) -> str:
    counts, test = stability(s.rows)
    total, n = (sum(column) for column in zip(*counts.values(), strict=True))
    by_kind = "not tested (one kind, or no difference)"
    if test is not None:
        by_kind = f"χ²({test.dof}) = {number(test.statistic, 2)}, {p_value(test.pvalue)}"
    return (
        f"Stability by kind: {by_kind}. The paper: χ²(2) = 1.46, p = 0.482, 41.1% stable; here "
        f"{total} of {n}. A judge that always gives the same score is stable, so first compare "
        "its accuracy with that of the constant score."
    )


@table(
    "tasks",
    "By task (the paper's Table 5)",
    "Means over judges and attributes. The paper's figures come from eight other judges and ten "
    "other wordings.",
    paper_accuracy="paper",
    paper_sensitivity="paper's sensitivity",
    paper_gap="paper's gap",
)
def tasks(s: StudyMeasurements) -> Iterator[Record]:
    """Accuracy and robustness by task."""
    for group, members in grouped(s.rows, "group", SOURCES).items():
        row: dict[str, Any] = {"task": group}
        for name in ("accuracy", "sensitivity", "gap"):
            row |= means(members, name) | {f"paper_{name}": paper(f"task.{group}.{name}")}
        yield row | means(members, "gap_by_chance") | {"n_configurations": len(members)}


@table(
    "attributes",
    "By attribute (the paper's Table 2)",
    "accuracy: mean over judges. best accuracy: exact accuracy of the best strategy, where other "
    "items choose the strategy that scores each item (undefined with fewer than ten texts). The "
    "paper chose and measured on the same items, and its best accuracy may allow a tolerance.",
    paper_accuracy="paper",
    paper_best="paper's best",
    constant_accuracy="constant score",
)
def attributes(s: StudyMeasurements) -> Iterator[Record]:
    """Accuracy by attribute: the mean over judges, and the best strategy."""
    for name, members in grouped(s.rows, "attribute").items():
        tried = [o for o in s.outcomes if o.name == name and o.strategy not in (SINGLE, CONSTANT)]
        best = max(tried, key=lambda outcome: outcome.mean("exact"), default=None)
        yield {
            "attribute": name,
            "kind": members[0]["kind"],
            **means(members, "accuracy"),
            "paper_accuracy": paper(f"attribute.{name}.accuracy"),
            **means(members, "constant_accuracy"),
            "best_strategy": None if best is None else best.strategy,
            "best_accuracy": crossfit_accuracy(tried),
            "paper_best": paper(f"attribute.{name}.best"),
        }


@table(
    "judges",
    "The judges",
    "insensitive: the share of a judge's attributes on which at least 90% of items get the same "
    "score under every paraphrase while accuracy is no better than a constant score's. A judge is "
    "called insensitive if that share is at least half: it ignores both the wording and the text. "
    "option mass: the probability of all levels together; where it is small, the judge tends to "
    "write something else.",
    constant_accuracy="constant score",
)
def judges(s: StudyMeasurements) -> Iterator[Record]:
    """Judges by accuracy."""
    figures = ("accuracy", "constant_accuracy", "gap", "sensitivity")
    rows = []
    for name, members in grouped(s.rows, "judge").items():
        share = sum(row["insensitive"] for row in members) / len(members)
        rows.append(
            {
                "judge": name,
                **means(members, *figures, "consistency", "top_score", "option_mass"),
                "n_attributes": len(members),
                "insensitive": share,
                "finding": "insensitive, not robust" if share >= 0.5 else "",
            }
        )
    yield from sorted(rows, key=lambda row: -row["accuracy"])


@table(
    "tolerance",
    "Accuracy by tolerance (the paper's appendix D)",
    "unrounded: equal to the raters' mean. rounded: equal to the mean rounded to a level. within "
    "τ: at most τ from the mean. Compared with rounding, a tolerance of 0.5 adds only the second "
    "neighbour of a mean that ends in .5.",
    within_0_25="within 0.25",
    within_0_5="within 0.5",
)
def tolerance(s: StudyMeasurements) -> Iterator[Record]:
    """Accuracy by tolerance."""
    for kind, members in {**grouped(s.rows, "kind", VERIFIABILITIES), "all": s.rows}.items():
        within = {
            f"within_{tau:g}".replace(".", "_"): mean(row["within"][tau] for row in members)
            for tau in TOLERANCES
        }
        rounded = mean(row["accuracy"] for row in members)
        yield {"kind": kind, **means(members, "unrounded"), "rounded": rounded, **within}


@table(
    "published",
    "What the paper states of its judges and people (section 4), beside this study's",
    "Judges and texts differ, so the figures cannot be compared directly. ours: the lowest and "
    "the highest of this study's judges. quoted: cannot be recomputed here, because it needs the "
    "paper's judges or people, or a measure that the paper does not name.",
    paper="paper",
    lowest="ours, lowest",
    highest="ours, highest",
)
def stated(s: StudyMeasurements) -> Iterator[Record]:
    """The figures of single judges, of proprietary ones, and of people."""
    by_judge = list(grouped(s.rows, "judge").values())
    accuracies = [[row["accuracy"] for row in members] for members in by_judge]

    def above(level: float, attribute: str) -> list[float]:
        is_above = [r["accuracy"] > level for r in s.rows if r["attribute"].endswith(attribute)]
        return [float(sum(is_above))] if is_above else []

    ours = {
        "accuracy": [float(np.mean(members)) for members in accuracies],
        "lowest attribute": [min(members) for members in accuracies],
        "highest attribute": [max(members) for members in accuracies],
        "above 0.90 on understandability": above(0.90, "understandability"),
        "above 0.51 on interestingness": above(0.51, "interestingness"),
    }
    for key, figure in published(NAME).items():
        group, _, measure = key.partition("/")
        if measure:
            values = ours.get(measure) or []
            yield {
                "who": group,
                "figure": measure,
                **figure.beside(values),
                "status": "beside ours" if values else "not asked" if measure in ours else "quoted",
            }


@table(
    "configurations",
    "Every judge on every attribute",
    lambda s: (
        "accuracy: scores equal to the human mean rounded to a level (halves up), with Wilson's "
        "95% interval clustered by what items share. constant score: the accuracy of always giving "
        "the most frequent human level. unrounded: scores equal to the unrounded human mean. "
        f"within τ: scores at most {s.tolerance:g} from the human mean. gap by chance: the gap if "
        "each item's scores were assigned to the paraphrases at random. stable: gap and "
        "sensitivity below 0.15. top score: the share of the judge's most frequent score. left "
        "out: items with an undecided paraphrase."
    ),
    near="within τ",
    constant_accuracy="constant score",
)
def configurations(s: StudyMeasurements) -> Iterator[Record]:
    """Every judge on every attribute."""
    inner_fields = ("cell", "group", "within", "gaps", "insensitive")
    for row in sorted(s.rows, key=lambda row: str(row["attribute"])):
        yield {name: value for name, value in row.items() if name not in inner_fields}
