"""A question that the paper leaves open (section 7), answered from any log."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from judgesense.statistics.flips import flip_sources
from judgesense.studies.common.study import Record, Tables, table
from judgesense.studies.judge_sensitivity.tables import Sensitivity, difference
from judgesense.tasks import ORDERS

_ENDS = ("ci_low", "ci_high")


def _interval(sources: Any, name: str) -> dict[str, float | None]:
    """The interval of a difference of shares, cut to [-1, 1]."""
    ends = {f"{name}_{end}": getattr(sources, f"{name}_{end}") for end in _ENDS}
    return {key: None if end is None else max(-1.0, min(1.0, end)) for key, end in ends.items()}


@table(
    "orders",
    "Position against wording",
    "Verdicts follow the item. Flips: how often two prompts on one item differ if only the wording "
    "changes, only the option order, or both, over all pairs of wordings, every item counting "
    "alike; so `flips, reworded` is not 1 - JSS, which covers the pairs of the run. `flips, both` "
    "is a sum: `wording` is what rewording adds to a swap; `position` what a swap adds to "
    "rewording; `together` what either does alone; `asked again` the flips of the same prompt "
    "(undefined without repeats). 95% intervals over clusters (the item, or what items share). A "
    "part can be slightly negative.",
    flips_reworded="flips, reworded", flips_swapped="flips, swapped", flips_both="flips, both",
)  # fmt: skip
def orders(study: Sensitivity) -> Iterator[Record]:
    """Do flips come from the wording or from the place of an option (section 7)?

    Only comparative tasks asked in both orders.
    """
    for case in study.main.cases:
        if case.comparative and set(case.answers.order.tolist()) == set(ORDERS):
            answers = case.stream.answers(repeats=True)
            sources = flip_sources(
                answers.label, answers.item, answers.template, answers.order,
                cluster_ids=answers.cluster, options=case.stream.task.labels[:2],
            )  # fmt: skip
            yield {
                **case.ids, "jss": case.mapped["jss"],
                "flips_reworded": difference(sources.flip_rate, sources.position),
                "flips_swapped": difference(sources.flip_rate, sources.wording),
                "flips_both": sources.flip_rate,
                "wording": sources.wording, **_interval(sources, "wording"),
                "position": sources.position, **_interval(sources, "position"),
                "together": sources.interaction, "asked_again": sources.rerun,
                "first_position": case.mapped["first_position_rate"], "n_items": sources.n_items,
            }  # fmt: skip


def findings(_: Sensitivity, tables: Tables) -> Iterator[str]:
    """What flips more verdicts; a case is a judge, task and scoring."""
    if "orders" in tables:
        flips = [(row["flips_reworded"], row["flips_swapped"]) for row in tables["orders"].rows]
        known = [(one, two) for one, two in flips if one is not None and two is not None]
        more = sum(swapped > reworded for reworded, swapped in known)
        yield (
            f"swapping the options flips more verdicts than rewording in {more} of {len(known)} "
            "cases"
        )
