"""What the tables say, as computed sentences, and the paper's statements beside them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from judgesense import published
from judgesense.statistics.ranking import spearman_matrix
from judgesense.studies.common.result import Table, Value
from judgesense.studies.common.result import published as stated
from judgesense.studies.judge_sensitivity.log import Case, Judged, ranked
from judgesense.studies.judge_sensitivity.tables import PAPER, published_figures
from judgesense.text import join, number, percent
from judgesense.trust.thresholds import STEADY_JSS

STUDY = "judge-sensitivity"


def size_of(name: str, sizes: Mapping[str, float]) -> float | None:
    """A judge's number of parameters: as given, else as its name states it (``135m``, ``70b``)."""
    if name in sizes:
        return sizes[name]
    found = re.search(r"(?:^|[-_/ ])(\d+(?:\.\d+)?)([mb])(?=$|[-_/ @.])", name, re.IGNORECASE)
    if found is None:
        return None
    return float(found.group(1)) * (1e6 if found.group(2).lower() == "m" else 1e9)


def size_against_jss(cases: Sequence[Case], sizes: Mapping[str, float]) -> tuple[float | None, int]:
    """Spearman's correlation of size and mapped JSS over judges, and how many have both.

    None under three judges, and where one of the two does not vary.
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
    """The paper's findings, computed anew for these judges: thresholds, kappa, spread, size."""
    found: list[str] = []
    for task, scoring, cases in judged.groups():
        place = f"{task}, {scoring} scoring"
        found += [*_under_threshold(place, cases), *_negative_kappa(place, cases)]
        found += [*_one_sided(place, cases), *_polarity(place, cases)]
        found += [*_unread(place, cases), *_size(place, cases, sizes)]
    found += _spread(judged)
    return found


def _jss(case: Case) -> str:
    cell = case.cells["mapped"]
    if cell["ci_low"] is None:
        return f"{case.judge} ({number(cell['jss'])})"
    ends = f"{number(cell['ci_low'], 2)}, {number(cell['ci_high'], 2)}"
    return f"{case.judge} ({number(cell['jss'])} [{ends}])"


def _under_threshold(place: str, cases: Sequence[Case]) -> Iterator[str]:
    known = [case for case in cases if case.cells["mapped"]["jss"] is not None]
    under = [case for case in known if case.cells["mapped"]["jss"] < STEADY_JSS]
    if not known:
        yield f"{place}: no judge has a pair that is decided on both sides"
        return
    if under:
        high = [case.cells["mapped"]["ci_high"] for case in under]
        sure = sum(end is not None and end < STEADY_JSS for end in high)
        yield (
            f"{place}: {len(under)} of {len(known)} judges with a JSS fall under {STEADY_JSS}: "
            f"{join([_jss(case) for case in under])}, {sure or 'none'} of them with the whole "
            "interval"
        )
    else:
        yield f"{place}: none of {len(known)} judges with a JSS falls under {STEADY_JSS}"
    if one := [case.judge for case in known if case.cells["mapped"]["degenerate"]]:
        yield f"{place}: every decision of {join(one)} is the same, so that JSS tells nothing"


def _negative_kappa(place: str, cases: Sequence[Case]) -> Iterator[str]:
    below = [
        f"{case.judge} ({number(case.cells['raw']['kappa'])})"
        for case in cases
        if (case.cells["raw"]["kappa"] or 0) < 0
    ]
    if below:
        yield f"{place}: κ is negative for {join(below)} (raw decisions)"


def _one_sided(place: str, cases: Sequence[Case]) -> Iterator[str]:
    rates = {
        case.judge: case.cells["mapped"]["first_position_rate"]
        for case in cases
        if case.comparative
    }
    sided = [
        f"{judge} ({percent(rate)})"
        for judge, rate in rates.items()
        if rate is not None and not 0.1 < rate < 0.9
    ]
    if sided:
        yield (
            f"{place}: over nine verdicts in ten fall on one place: {join(sided)} on the option "
            "shown first; a high JSS is then no sign of attention"
        )


def _polarity(place: str, cases: Sequence[Case]) -> Iterator[str]:
    for case in cases:
        if not case.inverted:
            continue
        turned = case.with_inverted
        raw, mapped = case.agreement("raw", turned), case.agreement("mapped", turned)
        rest = case.agreement("mapped", ~turned)
        if not mapped.n_pairs:
            continue
        yield (
            f"{place}: on pairs with the inverted wording {case.judge} has a JSS of "
            f"{number(raw.jss)} raw and {number(mapped.jss)} through the label maps, against "
            f"{number(rest.jss)} on the other pairs"
        )


def _unread(place: str, cases: Sequence[Case]) -> Iterator[str]:
    shares = {}
    for case in cases:
        cell = case.cells["mapped"]
        lost = cell["n_unclear"] + cell["n_refused"] + cell["n_error"]
        shares[case.judge] = lost / (lost + cell["n_pairs"]) if lost else 0.0
    much = [f"{judge} ({percent(share)})" for judge, share in shares.items() if share > 0.1]
    if much:
        yield (
            f"{place}: more than a tenth of the pairs is undecided for {join(much)}; their JSS is "
            "of the rest alone"
        )


def _size(place: str, cases: Sequence[Case], sizes: Mapping[str, float]) -> Iterator[str]:
    rho, n = size_against_jss(cases, sizes)
    if rho is not None:
        yield f"{place}: Spearman's ρ of the judges' size and JSS is {number(rho, 2)} (n = {n})"


def _spread(judged: Judged) -> list[str]:
    found: dict[str, list[tuple[float, str]]] = {}
    for task, scoring, cases in judged.groups():
        known = [c for c in cases if c.cells["mapped"]["jss"] is not None]
        if len(known) > 1:
            values = [case.cells["mapped"]["jss"] for case in known]
            found.setdefault(scoring, []).append((max(values) - min(values), task))
    return [
        f"{scoring} scoring: judges differ most on {max(gaps)[1]} (mapped JSS, highest less lowest "
        f"{number(max(gaps)[0])}) and least on {min(gaps)[1]} ({number(min(gaps)[0])})"
        for scoring, gaps in found.items()
        if len(gaps) > 1
    ]


def size_note(judged: Judged, sizes: Mapping[str, float]) -> str | None:
    """Why there is no correlation of size and JSS, if there is none."""
    known = [name for name in judged.judges if size_of(name, sizes) is not None]
    if len(known) >= 3:
        return None
    return (
        f"whether size predicts JSS cannot be said: {len(known)} of {len(judged.judges)} judges "
        "have a known size, and Spearman's ρ needs three"
    )


def claims(judged: Judged, sizes: Mapping[str, float]) -> Table:
    """The paper's statements, each beside the same figure of these judges."""
    rows: list[Sequence[Value]] = []
    for scoring in dict.fromkeys(case.scoring for case in judged.cases):
        cases = [case for case in judged.cases if case.scoring == scoring]
        for text, place, theirs, ours in _claims(ranked(cases), sizes):
            rows.append((text, place, theirs, scoring, ours))
    columns = ("statement", "section", "published", "scoring", "here")
    note = (
        "Published figures were measured on nine judges and with other wordings. Counts of judges "
        "are recomputed from published/metrics_summary.json."
    )
    return Table("claims", "The paper's statements, and here", columns, rows, note)


def _claims(
    cases: Sequence[Case], sizes: Mapping[str, float]
) -> Iterator[tuple[str, str, str, str]]:
    def said(key: str) -> Any:
        return published.statement(PAPER, key).value

    by_task: dict[str, list[Case]] = {}
    for case in cases:
        by_task.setdefault(case.task, []).append(case)

    def values(task: str, key: str, labels: str = "raw") -> list[float]:
        cells = (case.cells[labels] for case in by_task.get(task, []))
        return [cell[key] for cell in cells if cell[key] is not None]

    coherence, theirs = values("coherence", "jss"), published_figures("coherence")
    if coherence:
        yield (
            "highest less lowest coherence JSS", "5.1", number(said("coherence_gap")),
            number(max(coherence) - min(coherence)) if len(coherence) > 1 else "–",
        )  # fmt: skip
        yield (
            f"judges with a coherence JSS under {STEADY_JSS}", "3.1, 5.1",
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
            f"{stated(STUDY)['judges_with_positive_kappa'].value:g} of 9, reliably",
            f"{sum(k > 0 for k in kappas)} of {len(kappas)}",
        )  # fmt: skip
        rho, n = size_against_jss(by_task["coherence"], sizes)
        yield (
            "Spearman's ρ of size and coherence JSS", "5.1", "not stated",
            f"{number(rho, 2)} (n = {n})",
        )  # fmt: skip
    factuality = values("factuality", "jss")
    if factuality:
        low, high = said("factuality_range")
        yield (
            "factuality JSS, raw", "5.1", f"{number(low)} to {number(high)}", _range(factuality),
        )  # fmt: skip
        corrected = values("factuality", "jss", "mapped")
        yield (
            "factuality JSS, corrected", "5.3",
            f"about {stated(STUDY)['corrected_factuality_jss'].value:g} or more", _range(corrected),
        )  # fmt: skip
        yield (
            "raw disagreement on pairs of templates 3 and 4", "5.3",
            f"about {percent(said('t3_t4_raw_disagreement'))}", _disagreement(by_task),
        )  # fmt: skip
        with_four, without = _flip_shares(by_task["factuality"])
        yield (
            "judges that flip, raw, on a pair with template 4", "5.3",
            f"{said('flips_with_t4')} of 9", with_four,
        )  # fmt: skip
        yield (
            "judges that flip, raw, on a pair without template 4", "5.3",
            f"about {stated(STUDY)['flips_without_t4'].value:g} of 9", without,
        )  # fmt: skip
    refused = sum(case.cells["raw"]["n_refused"] for case in cases)
    yield (
        "refusals", "5.2", f"{stated(STUDY)['refusals'].value:g} of 26,924 calls",
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


def _orders(cases: Sequence[Case]) -> str:
    asked = {order for case in cases for order in case.prompts().order.tolist()}
    return "both orders" if len(asked) > 1 else f"order {join(sorted(asked))} alone"


def _flip_shares(cases: Sequence[Case]) -> tuple[str, str]:
    """The mean number of judges that flip on a pair with an inverted wording, and without."""
    found = []
    for turned in (True, False):
        rates = [case.agreement("raw", case.with_inverted == turned).flip_rate for case in cases]
        known = [rate for rate in rates if rate is not None]
        found.append(f"{number(sum(known), 1)} of {len(known)}" if known else "–")
    return found[0], found[1]


def _range(values: Sequence[float]) -> str:
    if min(values) == max(values):
        return number(values[0])
    return f"{number(min(values))} to {number(max(values))}"


def _disagreement(by_task: Mapping[str, Sequence[Case]]) -> str:
    shares = []
    for case in by_task["factuality"]:
        one, two = case.templates
        pair = {"factuality-3", "factuality-4"}
        chosen = np.array([{a, b} == pair for a, b in zip(one, two, strict=True)], dtype=bool)
        found = case.agreement("raw", chosen)
        if found.flip_rate is not None:
            shares.append(found.flip_rate)
    if not shares:
        return "–"
    return join([percent(share) for share in shares])
