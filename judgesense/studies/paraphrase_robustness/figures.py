"""The figures of paraphrase robustness."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from judgesense.statistics.robustness import TOLERANCES
from judgesense.studies.common.figures import heatmap, scatter, slopes
from judgesense.studies.common.result import Picture
from judgesense.studies.paraphrase_robustness.measures import Configuration, kinds_of, mean
from judgesense.studies.paraphrase_robustness.mitigations import SINGLE, Outcome


def pictures(found: Sequence[Configuration], outcomes: Sequence[Outcome]) -> list[Picture]:
    """Accuracy against gap, attribute × judge, accuracy by τ, and the gains of the strategies."""
    names = list(dict.fromkeys(one.scores.judge for one in found))
    attributes = list(dict.fromkeys(one.scores.attribute.name for one in found))
    cell: Mapping[tuple[str, str], float] = {
        (one.scores.attribute.name, one.scores.judge): one.found.accuracy for one in found
    }
    constant = {one.scores.attribute.name: one.constant for one in found}
    made = [
        Picture(
            "accuracy_gap",
            "Accuracy against win-rate gap; each point is a judge on an attribute.",
            lambda: scatter(
                {
                    kind: [
                        (one.found.accuracy, one.found.win_rate_gap or 0.0)
                        for one in found if one.kind == kind
                    ]
                    for kind in kinds_of(found)
                },
                xlabel="accuracy (exact, rounded human mean)", ylabel="win-rate gap",
            ),
        ),
        Picture(
            "accuracy_heatmap",
            "Accuracy of each judge and of a constant score, over all paraphrases.",
            lambda: heatmap(
                [[*(cell.get((a, j)) for j in names), constant[a]] for a in attributes], attributes,
                [*names, "constant score"], label="accuracy",
            ),
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
