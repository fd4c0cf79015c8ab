"""Which wording to use, if the data support one: the list ``recommendation`` of a report."""

from __future__ import annotations

from typing import Any

import numpy as np

from judgesense.decisions.streams import Stream, distinct
from judgesense.statistics.intervals import wilson_cluster
from judgesense.statistics.kappa import wilson_kappa
from judgesense.statistics.wordings import NOT_JUDGED
from judgesense.text import join, number, p_value, percent
from judgesense.trust.card import TrustCard
from judgesense.trust.thresholds import FEW_CLUSTERS
from judgesense.trust.wordings import Wordings, jss_without


def recommendation(stream: Stream | Wordings, card: TrustCard | None = None) -> dict[str, Any]:
    """The wording to use, or why none is recommended.

    Wordings are compared by accuracy with gold labels, or, without any, by agreement with the
    consensus of the other wordings, on the items and orders that all of them judged; an answer
    without a verdict is wrong. Flagged wordings, and those declared as inverted, are never
    recommended.

    Args:
        stream: a judge's decisions, or the `Wordings` made of them.
        card: the judge's trust card; with ``avoid``, a wording is recommended only if it passes
            by itself every check that failed.

    Returns:
        ``template`` (None if no wording can be told to be the best), ``best_set`` (the wordings
        that cannot be told from the best), ``p_any_difference``, ``accuracy_crossfit`` with
        ``ci_low`` and ``ci_high`` (what taking the best wording of some items scores on others),
        ``measure`` (``gold`` or ``consensus``), ``n_items``, ``n_clusters`` and ``text``.

    >>> import pyarrow as pa
    >>> from judgesense.decisions import SCHEMA
    >>> from judgesense.decisions.streams import view
    >>> row = {"judge": "j", "task": "t", "scoring": "generate", "gold": "Y"}
    >>> said = [{**row, "template_id": t, "item_id": f"i{n}", "decision": "YN"[n % int(t) > 0]}
    ...         for t in "12" for n in range(80)]
    >>> (stream,) = view(pa.Table.from_pylist(said, schema=SCHEMA)).judged
    >>> found = recommendation(stream)
    >>> found["template"], found["accuracy_crossfit"]
    ('1', 1.0)
    """
    table = stream if isinstance(stream, Wordings) else Wordings.of(stream)
    choice = table.choice
    best = list(table.best)
    named, reason = _named(table, best)
    if card is not None and card.trust == "avoid" and named is not None:
        failed = [name for name in card.because if not _passes(table, named, name, card)]
        if failed:
            named, reason = (
                None,
                (
                    f"none: the judge fails {join(list(card.because))}, and {named} alone does not "
                    f"pass {join(failed)}"
                ),
            )
    elif card is not None and card.trust == "avoid":
        reason = f"none: the judge fails {join(list(card.because))}; {reason}"
    _, cells = table.compared
    return {
        "template": named,
        "best_set": best,
        "p_any_difference": None if choice is None else choice.p_any_difference,
        "accuracy_crossfit": None if choice is None else choice.score,
        "ci_low": None if choice is None else choice.ci_low,
        "ci_high": None if choice is None else choice.ci_high,
        "measure": "gold" if table.graded else "consensus",
        "n_items": distinct(table.items[cells]),
        "n_clusters": distinct(table.clusters[cells]),
        "text": f"{reason}{_without_flagged(table)}",
    }


def _named(table: Wordings, best: list[str]) -> tuple[str | None, str]:
    """The wording to recommend, and the sentence that says so or why not."""
    choice = table.choice
    able, cells = table.compared
    if len(table.templates) < 2:
        return None, "no wording to compare: judge each item under at least two wordings"
    if not able:
        return None, "none: no wording is fit for use"
    if len(able) == 1:
        return best[0], f"use {best[0]}: it is the only wording that is fit for use"
    if choice is None:
        return None, "no wording to compare: no item was judged under all of them"
    n_items = distinct(table.items[cells])
    shown = f"{p_value(choice.p_any_difference)}, {n_items} items"
    what = "right on" if table.graded else "agrees with the consensus of the others on"
    ends = f"[{percent(choice.ci_low)}, {percent(choice.ci_high)}]"
    if len(best) == len(able):
        return None, f"no evidence that the wordings differ ({shown})"
    if len(best) > 1:
        return None, (
            f"{join(best)} cannot be told apart, and are better than the other "
            f"{len(able) - len(best)} ({shown})"
        )
    if choice.n_clusters < FEW_CLUSTERS:
        return None, f"too few items to recommend a wording ({shown})"
    return best[0], (
        f"use {best[0]}: better than the other {len(able) - 1} ({shown}); on items not used to "
        f"choose it, it is {what} {percent(choice.score)} {ends} of prompts"
    )


def _passes(table: Wordings, template: str, check: str, card: TrustCard) -> bool:
    """Whether a wording by itself passes a check that the judge fails.

    The intervals are corrected for the number of wordings it was chosen from (Bonferroni).
    """
    threshold = card.checks[check].threshold
    own = table.decisions[table.templates.index(template)]
    level = 1 - 0.05 / max(1, len(table.compared[0]))
    asked = own != NOT_JUDGED
    if check == "readable":
        low = wilson_cluster(own[asked] >= 0, table.clusters[asked], level).low
    elif check == "right":
        cells = asked & (table.gold >= 0)
        low = None
        if cells.any():
            decided = np.where(own < 0, len(table.labels), own)[cells]
            low = wilson_kappa(decided, table.gold[cells], table.clusters[cells], level).low
    elif check == "steady":
        # One wording is never reworded: what remains is whether it is right.
        return "right" in card.checks and _passes(table, template, "right", card)
    else:
        return False
    return low is not None and low > threshold


def _without_flagged(table: Wordings) -> str:
    flagged = {
        flag: [
            name
            for name, row in zip(table.templates, table.figures, strict=True)
            if row.flag == flag
        ]
        for flag in ("inverted", "outlier", "unreadable")
    }
    named = [f"{join(names)} ({flag})" for flag, names in flagged.items() if names]
    if not named:
        return ""
    out = frozenset(name for names in flagged.values() for name in names)
    jss = jss_without(table, out)
    return f". Without {join(named)}, JSS is {number(jss)}" if jss is not None else ""
