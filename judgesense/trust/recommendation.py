"""Which wording to use, if the data support one: the list ``recommendation`` of a report."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from judgesense.decisions.stream import Stream, distinct
from judgesense.text import join, number, p_value, percent, s
from judgesense.trust.card import TrustCard
from judgesense.trust.thresholds import FEW_CLUSTERS
from judgesense.trust.verdicts import fair, readable, right
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
    if card is not None and card.trust == "avoid":
        named, reason = _of_failing(table, named, reason, card)
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
    if (~table.turned).sum() < 2:
        return None, "no wording to compare: judge each item under at least two wordings"
    if not able:
        asked = any(row.n_prompts for row in table.figures)
        return None, "none: every wording is flagged" if asked else "none: no prompt got an answer"
    if choice is None and (len(able) > 1 or len(_left_out(table)) > 0):
        return None, "no wording to compare: no item was judged under all of them"
    n_items = distinct(table.items[cells])
    if choice is None:
        if distinct(table.clusters[cells]) < FEW_CLUSTERS:
            return None, f"too few items to recommend a wording ({n_items})"
        return best[0], f"use {best[0]}: every other wording is flagged"
    if choice.p_any_difference is None:
        return None, f"too few independent items to compare wordings ({choice.n_clusters})"
    shown = f"{p_value(choice.p_any_difference)}, {n_items} item{s(n_items)}"
    rest = len(able) - len(best)
    apart = _apart(table)
    if not rest:
        return None, f"no evidence that {_count(len(able))} wordings differ ({shown}){apart}"
    others = "the other" if rest == 1 else f"the other {rest}"
    if len(best) > 1:
        return None, (
            f"any of {join(best, 'or')} may be the best wording; {others} "
            f"{'is' if rest == 1 else 'are'} worse ({shown}){apart}"
        )
    if choice.n_clusters < FEW_CLUSTERS:
        return None, f"too few items to recommend a wording ({shown}){apart}"
    what = "is right" if table.graded else "agrees with the consensus of the other wordings"
    return best[0], (
        f"use {best[0]}: it is better than {others} ({shown}){apart}. A wording chosen this way "
        f"{what} on {percent(choice.score)} of prompts [{percent(choice.ci_low)}, "
        f"{percent(choice.ci_high)}], scored on items not used to choose"
    )


def _of_failing(
    table: Wordings, named: str | None, reason: str, card: TrustCard
) -> tuple[str | None, str]:
    """The recommendation for a judge to avoid: only a wording that passes what the judge fails."""
    fails = join(list(card.because))
    if named is None:
        return None, f"none: the judge fails {fails}; {reason}"
    failed = [name for name in card.because if not _passes(table, named, name, card)]
    if not failed:
        return named, f"{reason}. Keep to this wording: the judge fails {fails} on all of them"
    return None, f"none: the judge fails {fails}, and {named} alone does not pass {join(failed)}"


def _count(n: int) -> str:
    return "the two" if n == 2 else f"these {n}"


def _apart(table: Wordings) -> str:
    """Fine wordings that could not be compared, because they were judged on other items."""
    left_out = _left_out(table)
    return f"; {join(left_out)} not compared: judged on too few of these items" if left_out else ""


def _left_out(table: Wordings) -> list[str]:
    able, _ = table.compared
    return [
        name
        for j, (name, row) in enumerate(zip(table.templates, table.figures, strict=True))
        if row.flag == "fine" and not table.turned[j] and row.n_prompts and j not in able
    ]


def _passes(table: Wordings, template: str, check: str, card: TrustCard) -> bool:
    """Whether a wording by itself passes a check that the judge fails.

    One wording is not reworded: in place of `steady` it has to be right. Whether it is responsive
    cannot be seen.
    """
    alone = {"readable": readable, "steady": right, "right": right, "fair": fair}.get(check)
    if alone is None:
        return False
    stream, log = table.stream, table.stream.log
    own = log.template[stream.rows] == log.templates.index(template)
    only = replace(stream, rows=stream.rows[own], decision=stream.decision[own])
    name = "right" if alone is right else check
    return alone(only, card.checks[name].threshold).state == "pass"


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
