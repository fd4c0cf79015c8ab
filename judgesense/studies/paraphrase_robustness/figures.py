"""The figures of paraphrase robustness."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from judgesense.statistics.robustness import TOLERANCES, Robustness
from judgesense.studies.common.drawing import heatmap, scatter, slopes
from judgesense.studies.common.result import Picture
from judgesense.studies.paraphrase_robustness.measures import Configuration, kinds_of, mean
from judgesense.studies.paraphrase_robustness.mitigations import SINGLE, Outcome


def gap_picture(points: Sequence[tuple[str, Robustness]], point: str, wordings: str) -> Picture:
    """Accuracy against the gap; ``points`` are (series, configuration)."""
    by_series: dict[str, list[tuple[float, float]]] = {}
    for name, one in points:
        by_series.setdefault(name, []).append((one.accuracy, one.win_rate_gap or 0.0))
    return Picture(
        "accuracy_gap",
        f"Accuracy against the gap between {wordings}; each point is {point}.",
        lambda: scatter(by_series, xlabel="accuracy", ylabel=f"gap between {wordings}"),
    )


def accuracy_picture(
    cells: Sequence[tuple[str, str, Robustness]],
    caption: str,
    constant: Mapping[str, float] | None = None,
) -> Picture:
    """A heatmap of accuracies from (row, judge, configuration), with a column of constants."""
    rows = list(dict.fromkeys(row for row, _, _ in cells))
    judges = list(dict.fromkeys(judge for _, judge, _ in cells))
    accuracy: dict[tuple[str, str], float | None] = {(r, j): one.accuracy for r, j, one in cells}
    if constant is not None:
        judges.append("constant score")
        accuracy |= {(row, "constant score"): value for row, value in constant.items()}
    table = [[accuracy.get((row, judge)) for judge in judges] for row in rows]
    return Picture(
        "accuracy_heatmap", caption, lambda: heatmap(table, rows, judges, label="accuracy")
    )


def pictures(found: Sequence[Configuration], outcomes: Sequence[Outcome]) -> list[Picture]:
    """Accuracy against gap, attribute × judge, accuracy by τ, and the gains of the strategies."""
    made = [
        gap_picture(
            [(kind, one.found) for kind in kinds_of(found) for one in found if one.kind == kind],
            "a judge on an attribute",
            "paraphrases",
        ),
        accuracy_picture(
            [(one.scores.attribute.name, one.scores.judge, one.found) for one in found],
            "Accuracy of each judge and of a constant score, over all paraphrases.",
            {one.scores.attribute.name: one.constant for one in found},
        ),
        Picture(
            "tolerance",
            "Share of scores at most τ from the raters' mean, by kind of attribute.",
            lambda: slopes(
                {
                    kind: [mean(one.unrounded for one in own) or 0.0,
                           *(mean(one.within[tau] for one in own) or 0.0 for tau in TOLERANCES)]
                    for kind in [*kinds_of(found), "all"]
                    if (own := [one for one in found if kind in (one.kind, "all")])
                },
                ["τ = 0", *(f"τ = {tau:g}" for tau in TOLERANCES)],
                ylabel="share of scores",
            ),
        ),
    ]  # fmt: skip
    single = {one.attribute: one for one in outcomes if one.strategy == SINGLE}
    tried = [n for n in dict.fromkeys(o.strategy for o in outcomes) if n != SINGLE]
    gains = {(o.attribute, o.strategy): o.gain(single[o.attribute])[0] for o in outcomes}
    if tried and outcomes:
        most = max(map(abs, gains.values())) or 1.0
        made.append(
            Picture(
                "strategies",
                "Gain in exact accuracy over the mean single judge.",
                lambda: heatmap(
                    [[gains.get((a, s)) for s in tried] for a in single], list(single), tried,
                    label="gain in accuracy", limits=(-most, most),
                ),
            )
        )  # fmt: skip
    return made
