"""Findings computed from the main tables, and the paper's statements with the same figures here."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from judgesense import published
from judgesense.reporting.tables import undecided_share
from judgesense.statistics.ranks import spearman_matrix
from judgesense.studies.common.result import Column, Table
from judgesense.studies.judge_sensitivity.beside import (
    FIRST,
    PAPER,
    beside_note,
    published_figures,
)
from judgesense.studies.judge_sensitivity.log import Judged, JudgedCase, ranked
from judgesense.text import interval, join, number, percent, span
from judgesense.trust.thresholds import STEADY_JSS


def size_of(name: str, sizes: Mapping[str, float]) -> float | None:
    """A judge's number of parameters: as given, or as stated in its name (``135m``, ``70b``)."""
    if name in sizes:
        return sizes[name]
    found = re.search(r"(?:^|[-_/ ])(\d+(?:\.\d+)?)([mb])(?=$|[-_/ @.])", name, re.IGNORECASE)
    if found is None:
        return None
    return float(found.group(1)) * (1e6 if found.group(2).lower() == "m" else 1e9)


def size_against_jss(
    cases: Sequence[JudgedCase], sizes: Mapping[str, float]
) -> tuple[float | None, int]:
    """Spearman's correlation of size and mapped JSS over judges, and the number with both.

    None with fewer than three judges, or if size or JSS does not vary.
    """
    points = [
        (size, case.cells["mapped"]["jss"])
        for case in cases
        if (size := size_of(case.judge, sizes)) is not None
        and case.cells["mapped"]["jss"] is not None
    ]
    varied = all(len({point[side] for point in points}) > 1 for side in (0, 1))
    if len(points) < 3 or not varied:
        return None, len(points)
    return float(spearman_matrix(np.array(points, dtype=float).T)[0, 1]), len(points)


def findings(judged: Judged, sizes: Mapping[str, float]) -> list[str]:
    """The paper's findings for these judges: threshold, kappa, position, polarity, size, spread."""
    found: list[str] = []
    for task, scoring, cases in judged.groups():
        said = [
            *_under_threshold(cases), *_negative_kappa(cases), *_one_sided(cases),
            *_polarity(cases), *_unread(cases), *_size(cases, sizes),
        ]  # fmt: skip
        found += [f"{task}, {scoring} scoring: {text}" for text in said]
    return found + _spread(judged)


def _values(
    cases: Sequence[JudgedCase], key: str, labels: str = "mapped"
) -> list[tuple[str, float]]:
    """The judges with a defined figure, and the figure."""
    cells = ((case.judge, case.cells[labels][key]) for case in cases)
    return [(judge, value) for judge, value in cells if value is not None]


def _under_threshold(cases: Sequence[JudgedCase]) -> Iterator[str]:
    known = [case for case in cases if case.cells["mapped"]["jss"] is not None]
    if not known:
        yield "no judge decided both sides of a pair"
        return
    under = [case for case in known if case.cells["mapped"]["jss"] < STEADY_JSS]
    named = []
    for case in under:
        cell = case.cells["mapped"]
        ends = "" if cell["ci_low"] is None else f" {interval(cell, 2)}"
        named.append(f"{case.judge} ({number(cell['jss'])}{ends})")
    sure = sum(high < STEADY_JSS for _, high in _values(under, "ci_high"))
    yield f"{len(under) or 'none'} of {len(known)} judges with a JSS fall below {STEADY_JSS}" + (
        f": {join(named)}; {sure or 'none'} of them with the whole interval" if under else ""
    )
    if one := [case.judge for case in known if case.cells["mapped"]["degenerate"]]:
        yield f"every decision of {join(one)} is the same, so JSS says nothing"


def _negative_kappa(cases: Sequence[JudgedCase]) -> Iterator[str]:
    known = _values(cases, "kappa", "raw")
    if below := [f"{judge} ({number(kappa)})" for judge, kappa in known if kappa < 0]:
        yield f"κ is negative for {join(below)} (raw decisions)"


def _one_sided(cases: Sequence[JudgedCase]) -> Iterator[str]:
    rates = _values([case for case in cases if case.stream.task.comparative], "first_position_rate")
    if sided := [f"{judge} ({percent(r)})" for judge, r in rates if not 0.1 < r < 0.9]:
        yield (
            "over nine in ten verdicts choose one position; the share for the option shown first "
            f"is {join(sided)}. A high JSS does not show that these judges read the options"
        )


def _polarity(cases: Sequence[JudgedCase]) -> Iterator[str]:
    for case in cases:
        stream, turned = case.stream, case.stream.with_inverted
        raw, mapped = stream.agreement("raw", turned), stream.agreement("mapped", turned)
        if stream.inverted and mapped.n_pairs:
            rest = stream.agreement("mapped", ~turned)
            yield (
                f"on pairs with the inverted wording, JSS of {case.judge} is {number(raw.jss)} raw "
                f"and {number(mapped.jss)} through the label maps; on the other pairs it is "
                f"{number(rest.jss)}"
            )


def _unread(cases: Sequence[JudgedCase]) -> Iterator[str]:
    shares = {case.judge: undecided_share(case.cells["mapped"]) or 0.0 for case in cases}
    much = [f"{judge} ({percent(share)})" for judge, share in shares.items() if share > 0.1]
    if much:
        yield (
            f"more than a tenth of the pairs is undecided for {join(much)}; JSS covers only the "
            "rest"
        )


def _size(cases: Sequence[JudgedCase], sizes: Mapping[str, float]) -> Iterator[str]:
    rho, n = size_against_jss(cases, sizes)
    if rho is not None:
        yield f"Spearman's ρ of the judges' size and JSS is {number(rho, 2)} (n = {n})"


def _spread(judged: Judged) -> list[str]:
    found: dict[str, list[tuple[float, str]]] = {}
    for task, scoring, cases in judged.groups():
        values = [jss for _, jss in _values(cases, "jss")]
        if len(values) > 1:
            found.setdefault(scoring, []).append((max(values) - min(values), task))
    return [
        f"{scoring} scoring: judges differ most on {max(gaps)[1]} (highest less lowest mapped JSS: "
        f"{number(max(gaps)[0])}) and least on {min(gaps)[1]} ({number(min(gaps)[0])})"
        for scoring, gaps in found.items()
        if len(gaps) > 1
    ]


def size_note(judged: Judged, sizes: Mapping[str, float]) -> str | None:
    """Why size and JSS are not correlated here; None if they are."""
    known = [name for name in judged.judges if size_of(name, sizes) is not None]
    if len(known) >= 3:
        return None
    return (
        f"too few judges to correlate size and JSS: {len(known)} of {len(judged.judges)} have a "
        "known size, and Spearman's ρ needs three"
    )


def claims(judged: Judged, sizes: Mapping[str, float]) -> Table:
    """The paper's statements, each with the same figure for these judges."""
    rows = [
        (text, place, theirs, scoring, ours)
        for scoring in dict.fromkeys(case.scoring for case in judged.cases)
        for text, place, theirs, ours in _claims(
            ranked([case for case in judged.cases if case.scoring == scoring]), sizes
        )
    ]
    return Table(
        "claims",
        "The paper's statements, and these judges",
        ("statement", "section", Column("published", FIRST), "scoring", "here"),
        rows,
        "Published figures are of nine judges. Counts of judges are recomputed from "
        f"published/metrics_summary.json. {beside_note(judged, v2=False)}",
    )


def _claims(
    cases: Sequence[JudgedCase], sizes: Mapping[str, float]
) -> Iterator[tuple[str, str, str, str]]:
    def said(key: str) -> Any:
        return published.statement(PAPER, key).value

    by_task: dict[str, list[JudgedCase]] = {}
    for case in cases:
        by_task.setdefault(case.task, []).append(case)

    def values(task: str, key: str, labels: str = "raw") -> list[float]:
        return [value for _, value in _values(by_task.get(task, []), key, labels)]

    coherence, theirs = values("coherence", "jss"), published_figures("coherence")
    if coherence:
        yield (
            "highest less lowest coherence JSS", "5.1", number(said("coherence_gap")),
            number(max(coherence) - min(coherence)) if len(coherence) > 1 else "–",
        )  # fmt: skip
        yield (
            f"judges with a coherence JSS below {STEADY_JSS}", "3.1, 5.1",
            f"{sum(f.jss < STEADY_JSS for f in theirs)} of {len(theirs)}",
            f"{sum(v < STEADY_JSS for v in coherence)} of {len(coherence)}",
        )  # fmt: skip
        kappas = values("coherence", "kappa")
        yield (
            "judges with a negative κ on coherence", "5.1",
            f"{sum((f.kappa or 0) < 0 for f in theirs)} of {len(theirs)}",
            f"{sum(k < 0 for k in kappas)} of {len(kappas)}",
        )  # fmt: skip
        yield (
            "judges with a positive κ on coherence", "5.1",
            f"{said('judges_with_positive_kappa'):g} of 9, reliably",
            f"{sum(k > 0 for k in kappas)} of {len(kappas)}",
        )  # fmt: skip
        rho, n = size_against_jss(by_task["coherence"], sizes)
        yield (
            "Spearman's ρ of size and coherence JSS", "5.1", "not stated",
            f"{number(rho, 2)} (n = {n})",
        )  # fmt: skip
    factuality = values("factuality", "jss")
    if factuality:
        yield (
            "factuality JSS, raw", "5.1", span(said("factuality_range")), span(factuality),
        )  # fmt: skip
        corrected = values("factuality", "jss", "mapped")
        yield (
            "factuality JSS, corrected", "5.3",
            f"about {said('corrected_factuality_jss'):g} or more", span(corrected),
        )  # fmt: skip
        yield (
            "raw disagreement on pairs of templates 3 and 4", "5.3",
            f"about {percent(said('t3_t4_raw_disagreement'))}", _disagreement(by_task),
        )  # fmt: skip
        for word, inverted in (("with", True), ("without", False)):
            about = "" if inverted else "about "
            yield (
                f"judges that flip, raw, on a pair {word} template 4", "5.3",
                f"{about}{said(f'flips_{word}_t4'):g} of 9",
                _flips(by_task["factuality"], inverted),
            )  # fmt: skip
    refused = sum(case.cells["raw"]["n_refused"] for case in cases)
    yield (
        "refusals", "5.2", f"{said('refusals'):g} of 26,924 calls",
        f"{refused} pairs",
    )  # fmt: skip
    for task in ("preference", "relevance"):
        rates = values(task, "first_position_rate", "mapped")
        if rates:
            yield (
                f"judges that always say A on {task}", "5.2",
                f"{said('always_a_judges')} of 9 (one order)",
                f"{sum(rate == 1.0 for rate in rates)} of {len(rates)} ({_orders(by_task[task])})",
            )  # fmt: skip


def _orders(cases: Sequence[JudgedCase]) -> str:
    asked = {order for case in cases for order in case.stream.answers().order.tolist()}
    return "both orders" if len(asked) > 1 else f"order {join(sorted(asked))} only"


def _flips(cases: Sequence[JudgedCase], inverted: bool) -> str:
    """The mean number of judges that flip on a pair with an inverted wording, or without."""
    streams = [case.stream for case in cases]
    rates = [own.agreement("raw", own.with_inverted == inverted).flip_rate for own in streams]
    known = [rate for rate in rates if rate is not None]
    return f"{number(sum(known), 1)} of {len(known)}" if known else "–"


def _disagreement(by_task: Mapping[str, Sequence[JudgedCase]]) -> str:
    shares = []
    for case in by_task["factuality"]:
        one, two = case.stream.templates
        # The published pairs' wordings have ids of their own (published-factuality-3).
        pair = {"factuality-3", "factuality-4"}
        chosen = np.array(
            [
                {a.removeprefix("published-"), b.removeprefix("published-")} == pair
                for a, b in zip(one, two, strict=True)
            ],
            dtype=bool,
        )
        if (rate := case.stream.agreement("raw", chosen).flip_rate) is not None:
            shares.append(percent(rate))
    return join(shares) if shares else "–"
