"""``judgesense plan``: how many items or wordings settle a question."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from judgesense.cli import options as opt
from judgesense.errors import JudgeSenseError

_ASSUMED = "Assumed figures, instead of runs"


def plan(
    runs: Annotated[
        list[str] | None,
        typer.Argument(metavar="[DIR [DIR]]", help="A run; or two, whose judges are compared."),
    ] = None,
    jss: Annotated[
        float | None, opt.option("SHARE", "Same verdict after rewording.", panel=_ASSUMED)
    ] = None,
    fair: Annotated[
        float | None, opt.option("SHARE", "Same choice in both orders.", panel=_ASSUMED)
    ] = None,
    kappa: Annotated[
        float | None, opt.option("KAPPA", "Agreement with the gold labels.", panel=_ASSUMED)
    ] = None,
    difference: Annotated[
        float | None, opt.option("SHARE", "Judge B minus judge A.", panel=_ASSUMED)
    ] = None,
    base: Annotated[
        float, opt.option("SHARE", "With --difference: judge A's share.", panel=_ASSUMED)
    ] = 0.85,
    correlation: Annotated[
        float, opt.option("R", "With --difference: of the judges over items.", panel=_ASSUMED)
    ] = 0.3,
    commonest: Annotated[
        float, opt.option("SHARE", "With --kappa: the commonest gold label.", panel=_ASSUMED)
    ] = 0.5,
    threshold: Annotated[
        float | None, opt.option("VALUE", "JSS 0.8, fair 0.7, kappa 0.2 by default.")
    ] = None,
    wordings: Annotated[int, opt.option("N", "With --jss: wordings.", panel=_ASSUMED, min=2)] = 2,
    icc: Annotated[
        float, opt.option("ICC", "With --jss: how alike the pairs of an item are.", panel=_ASSUMED)
    ] = 0.3,
    wording_sd: Annotated[
        float,
        opt.option("SD", "With --jss: how much JSS differs between wordings.", panel=_ASSUMED),
    ] = 0.0,
    items: Annotated[
        int | None,
        opt.option("N", "Show the smallest difference of this many items.", panel=_ASSUMED, min=2),
    ] = None,
    confidence: Annotated[float, opt.option("LEVEL", "Level of the interval.")] = 0.95,
    format: opt.Format = "text",
) -> None:
    """How many items, or wordings, settle a question with 80% probability.

    From a run: what settles each open check of its trust cards, as a range, and the smallest
    distance from a threshold that the run could show. From two runs: the same for the difference
    of their judges. Without a run, name one assumed figure.
    """
    from judgesense.trust import plans

    assumed = {"jss": jss, "fair": fair, "kappa": kappa, "difference": difference}
    given = [name for name, value in assumed.items() if value is not None]
    if bool(runs) == bool(given) or len(runs or ()) > 2 or len(given) > 1:
        raise JudgeSenseError(
            "name one run, two runs, or one of --jss, --fair, --kappa and --difference"
        )
    found: list[dict[str, Any]]
    if runs:
        if threshold is not None or confidence != 0.95:
            raise JudgeSenseError(
                "--threshold and --confidence are for assumed figures; a run's are those of its "
                "report (judgesense report DIR --threshold NAME=VALUE)"
            )
        found = plans.plan_run(runs[0]) if len(runs) == 1 else plans.plan_difference(*runs)
    else:
        found = [
            plans.plan_assumed(
                jss=jss, fair=fair, kappa=kappa, difference=difference, base=base,
                correlation=correlation, commonest=commonest, threshold=threshold,
                wordings=wordings, icc=icc, wording_sd=wording_sd, items=items,
                confidence_level=confidence,
            )
        ]  # fmt: skip
    nothing = "nothing to plan: no check has an interval; add items"
    opt.output(
        format,
        lambda: {"plans": found},
        lambda: "\n".join(map(plans.plan_text, found)) or nothing,
    )
