"""Two questions that the paper leaves open (section 7), answered from any log."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean
from typing import Any

from judgesense.statistics.flips import consensus, flip_sources
from judgesense.studies.common.study import Record, Tables, table
from judgesense.studies.judge_sensitivity.tables import Sensitivity, difference
from judgesense.tasks import ERROR, ORDERS, UNDECIDED
from judgesense.text import percent, span

Row = Mapping[str, Any]

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


@table(
    "consensus",
    "Cross-judge consensus",
    "Agreement of two judges on one prompt, averaged over judges and prompts (mapped decisions, as "
    "shown), with its t interval over clusters (the item, or what items share); α is "
    "Krippendorff's, nominal. Mean JSS: how often one judge agrees with itself under another "
    "wording.",
)
def agreement_of_judges(study: Sensitivity) -> Iterator[Record]:
    """Do judges agree with each other under the same prompts (section 7)?"""
    for task, scoring, cases in study.main.groups():
        if len(cases) < 2:
            continue
        verdicts = {case.judge: case.first_verdicts for case in cases}
        keys = list(dict.fromkeys(key for own in verdicts.values() for key in own))
        decisions = {name: [own.get(key, ERROR) for key in keys] for name, own in verdicts.items()}
        clusters: dict[str, int] = {}
        for case in cases:
            clusters |= zip(case.answers.item, case.answers.cluster.tolist(), strict=True)
        agreed = consensus(decisions, [clusters[item] for item, *_ in keys])
        decided = Counter(
            key for own in verdicts.values() for key, word in own.items() if word not in UNDECIDED
        )
        alone = [jss for case in cases if (jss := case.mapped["jss"]) is not None]
        yield {
            "task": task, "scoring": scoring, "n_judges": len(cases),
            "agreement": agreed.agreement, "ci_low": agreed.ci_low, "ci_high": agreed.ci_high,
            "alpha": agreed.alpha, "mean_jss": fmean(alone) if alone else None,
            "n_prompts": agreed.n_prompts,
            "n_items": len({item for (item, *_), n in decided.items() if n > 1}),
        }  # fmt: skip


def findings(_: Sensitivity, tables: Tables) -> Iterator[str]:
    """A sentence for each answered question; a case is a judge, task and scoring."""
    if "orders" in tables:
        known = _known(tables["orders"].rows, "flips_reworded", "flips_swapped")
        more = sum(row["flips_swapped"] > row["flips_reworded"] for row in known)
        yield (
            f"swapping the options flips more verdicts than rewording in {more} of {len(known)} "
            "cases"
        )
    if "consensus" in tables:
        known = _known(tables["consensus"].rows, "agreement", "mean_jss")
        less = sum(row["agreement"] < row["mean_jss"] for row in known)
        shares = span([row["agreement"] for row in known], percent)
        yield (
            f"judges agree with each other on {shares} of prompts, by task and scoring; in {less} "
            f"of {len(known)} less often than with themselves under another wording"
        )


def _known(rows: Sequence[Row], *fields: str) -> list[Row]:
    return [row for row in rows if all(row[field] is not None for field in fields)]
