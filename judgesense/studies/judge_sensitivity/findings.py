"""Findings computed from the main run, and the paper's statements with the same figures here."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from judgesense import published
from judgesense.reporting.tables import undecided_share
from judgesense.studies.common.study import Record, Tables, table
from judgesense.studies.judge_sensitivity.runs import JudgedCase, ranked
from judgesense.studies.judge_sensitivity.tables import (
    FIRST,
    PAPER,
    Sensitivity,
    published_note,
    v1_figures,
)
from judgesense.text import interval, join, number, percent, span
from judgesense.trust.thresholds import STEADY_JSS


def findings(study: Sensitivity, _: Tables) -> Iterator[str]:
    """The paper's findings for these judges: threshold, kappa, position, polarity, spread."""
    spread: dict[str, list[tuple[float, str]]] = {}
    for task, scoring, cases in study.main.groups():
        for text in _of_group(cases):
            yield f"{task}, {scoring} scoring: {text}"
        values = [jss for _, jss in _values(cases, "jss")]
        if len(values) > 1:
            spread.setdefault(scoring, []).append((max(values) - min(values), task))
    for scoring, gaps in spread.items():
        if len(gaps) > 1:
            (most, where), (least, elsewhere) = max(gaps), min(gaps)
            yield (
                f"{scoring} scoring: judges differ most on {where} (highest less lowest mapped "
                f"JSS: {number(most)}) and least on {elsewhere} ({number(least)})"
            )


def _values(
    cases: Sequence[JudgedCase], key: str, labels: str = "mapped"
) -> list[tuple[str, float]]:
    """The judges with a defined figure, and the figure."""
    cells = ((case.judge, case.raw if labels == "raw" else case.mapped) for case in cases)
    return [(judge, cell[key]) for judge, cell in cells if cell[key] is not None]


def _of_group(cases: Sequence[JudgedCase]) -> Iterator[str]:
    """The findings on the judges of one task and scoring."""
    known = [case for case in cases if case.mapped["jss"] is not None]
    under = [case for case in known if case.mapped["jss"] < STEADY_JSS]
    if not known:
        yield "no judge decided both sides of a pair"
    elif under:
        sure = sum(high < STEADY_JSS for _, high in _values(under, "ci_high"))
        named = [
            f"{case.judge} ({number(case.mapped['jss'])} {interval(case.mapped, 2)})"
            for case in under
        ]
        yield (
            f"{len(under)} of {len(known)} judges with a JSS fall below {STEADY_JSS}: "
            f"{join(named)}; {sure or 'none'} of them with the whole interval"
        )
    else:
        yield f"none of {len(known)} judges with a JSS fall below {STEADY_JSS}"
    if same := [case.judge for case in known if case.mapped["degenerate"]]:
        yield f"every decision of {join(same)} is the same, so JSS says nothing"
    kappas = _values(cases, "kappa", "raw")
    if below := [f"{judge} ({number(kappa)})" for judge, kappa in kappas if kappa < 0]:
        yield f"κ is negative for {join(below)} (raw decisions)"
    rates = _values([case for case in cases if case.comparative], "first_position_rate")
    if sided := [f"{judge} ({percent(r)})" for judge, r in rates if not 0.1 < r < 0.9]:
        yield (
            "over nine in ten verdicts choose one position; the share for the option shown first "
            f"is {join(sided)}. A high JSS does not show that these judges read the options"
        )
    for case in cases:
        stream, mixed = case.stream, case.stream.with_inverted
        raw, mapped = stream.agreement("raw", mixed), stream.agreement("mapped", mixed)
        if stream.inverted and mapped.n_pairs:
            yield (
                f"on pairs with the inverted wording, JSS of {case.judge} is {number(raw.jss)} raw "
                f"and {number(mapped.jss)} through the label maps; on the other pairs it is "
                f"{number(stream.agreement('mapped', ~mixed).jss)}"
            )
    shares = {case.judge: undecided_share(case.mapped) or 0.0 for case in cases}
    if much := [f"{judge} ({percent(share)})" for judge, share in shares.items() if share > 0.1]:
        yield (
            f"more than a tenth of the pairs is undecided for {join(much)}; JSS covers only the "
            "rest"
        )


@table(
    "claims",
    "The paper's statements, and these judges",
    lambda study: (
        "Published figures are of nine judges. Counts of judges are recomputed from "
        f"published/metrics_summary.json.{published_note(study, v2=False)}"
    ),
    published=FIRST,
)
def claims(study: Sensitivity) -> Iterator[Record]:
    """The paper's statements, each with the same figure for these judges."""
    if not study.with_published:
        return
    for scoring in dict.fromkeys(case.scoring for case in study.main.cases):
        cases = ranked([case for case in study.main.cases if case.scoring == scoring])
        for statement, section, theirs, ours in _claims(cases):
            yield {
                "statement": statement, "section": section, "published": theirs,
                "scoring": scoring, "here": ours,
            }  # fmt: skip


def _claims(
    cases: Sequence[JudgedCase],
) -> Iterator[tuple[str, str, str, str]]:
    """Statement, section, the paper's figure, and the figure here."""
    by_task: dict[str, list[JudgedCase]] = {}
    for case in cases:
        by_task.setdefault(case.task, []).append(case)

    def stated(key: str) -> Any:
        return published.statement(PAPER, key).value

    def values(task: str, key: str, labels: str = "raw") -> list[float]:
        return [value for _, value in _values(by_task.get(task, []), key, labels)]

    def share(flags: list[bool]) -> str:
        return f"{sum(flags)} of {len(flags)}"

    coherence = values("coherence", "jss")
    if coherence:
        theirs, kappas = v1_figures("coherence"), values("coherence", "kappa")
        gap = number(max(coherence) - min(coherence)) if len(coherence) > 1 else "–"
        yield "highest less lowest coherence JSS", "5.1", number(stated("coherence_gap")), gap
        yield (
            f"judges with a coherence JSS below {STEADY_JSS}", "3.1, 5.1",
            share([figure.jss < STEADY_JSS for figure in theirs]),
            share([jss < STEADY_JSS for jss in coherence]),
        )  # fmt: skip
        yield (
            "judges with a negative κ on coherence", "5.1",
            share([(figure.kappa or 0) < 0 for figure in theirs]),
            share([kappa < 0 for kappa in kappas]),
        )  # fmt: skip
        yield (
            "judges with a positive κ on coherence", "5.1",
            f"{stated('judges_with_positive_kappa'):g} of 9, reliably",
            share([kappa > 0 for kappa in kappas]),
        )  # fmt: skip
    factuality = values("factuality", "jss")
    if factuality:
        yield "factuality JSS, raw", "5.1", span(stated("factuality_range")), span(factuality)
        yield (
            "factuality JSS, corrected", "5.3",
            f"about {stated('corrected_factuality_jss'):g} or more",
            span(values("factuality", "jss", "mapped")),
        )  # fmt: skip
        yield (
            "raw disagreement on pairs of templates 3 and 4", "5.3",
            f"about {percent(stated('t3_t4_raw_disagreement'))}",
            ", ".join(map(percent, _disagreement(by_task["factuality"]))) or "–",
        )  # fmt: skip
        for word, about, inverted in (("with", "", True), ("without", "about ", False)):
            yield (
                f"judges that flip, raw, on a pair {word} template 4", "5.3",
                f"{about}{stated(f'flips_{word}_t4'):g} of 9",
                _flips(by_task["factuality"], inverted),
            )  # fmt: skip
    refused = sum(case.raw["n_refused"] for case in cases)
    yield "refusals", "5.2", f"{stated('refusals'):g} of 26,924 calls", f"{refused} pairs"
    for task in ("preference", "relevance"):
        rates = values(task, "first_position_rate", "mapped")
        if rates:
            orders = {order for case in by_task[task] for order in case.answers.order.tolist()}
            which = "both orders" if len(orders) > 1 else f"order {join(sorted(orders))} only"
            yield (
                f"judges that always say A on {task}", "5.2",
                f"{stated('always_a_judges')} of 9 (one order)",
                f"{share([rate == 1.0 for rate in rates])} ({which})",
            )  # fmt: skip


def _flips(cases: Sequence[JudgedCase], inverted: bool) -> str:
    """The mean number of judges that flip on a pair with an inverted wording, or without."""
    streams = [case.stream for case in cases]
    rates = [one.agreement("raw", one.with_inverted == inverted).flip_rate for one in streams]
    known = [rate for rate in rates if rate is not None]
    return f"{number(sum(known), 1)} of {len(known)}" if known else "–"


def _disagreement(cases: Sequence[JudgedCase]) -> Iterator[float]:
    """Each judge's raw flip rate on the pairs of templates 3 and 4."""
    for case in cases:
        # The published pairs' wordings have ids of their own (published-factuality-3).
        names = zip(*case.stream.templates, strict=True)
        pairs = [{name.removeprefix("published-") for name in pair} for pair in names]
        chosen = np.array([pair == {"factuality-3", "factuality-4"} for pair in pairs], dtype=bool)
        if (rate := case.stream.agreement("raw", chosen).flip_rate) is not None:
            yield rate
