"""Findings computed from the tables of the open questions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import median
from typing import Any

import numpy as np

from judgesense.statistics.ranks import spearman_matrix
from judgesense.studies.common.result import Table
from judgesense.studies.judge_sensitivity.grid import LANGUAGE
from judgesense.text import join, number, percent, span

Row = Mapping[str, Any]

FEWEST = 10
"""A row with fewer items or pairs than this is in the table but makes no sentence."""


def open_findings(tables: Mapping[str, Table]) -> list[str]:
    """One or two sentences for each question with a table; a case is a judge, task and scoring."""
    return [
        text for name, say in _FINDINGS.items() if name in tables for text in say(tables[name].rows)
    ]


def _named(row: Row) -> str:
    scoring = f", {row['scoring']} scoring" if "scoring" in row else ""
    return f"{row['judge']} on {row['task']}{scoring}"


def _known(rows: Sequence[Row], *fields: str) -> list[Row]:
    return [row for row in rows if all(row[field] is not None for field in fields)]


def _orders(rows: Sequence[Row]) -> Iterator[str]:
    known = _known(rows, "flips_reworded", "flips_swapped", "flips_both")
    if not known:
        return
    more = sum(row["flips_swapped"] > row["flips_reworded"] for row in known)
    most = max(known, key=lambda row: row["flips_swapped"] - row["flips_reworded"])
    yield (
        "order randomisation: swapping the options flips more verdicts than rewording in "
        f"{more} of {len(known)} cases. The largest difference is {_named(most)}: a swap alone "
        f"flips {percent(most['flips_swapped'])}, a rewording alone "
        f"{percent(most['flips_reworded'])}; with a random order per prompt, two wordings would "
        f"agree on {percent(1 - (most['flips_reworded'] + most['flips_both']) / 2)}"
    )


def _consensus(rows: Sequence[Row]) -> Iterator[str]:
    known = [row for row in _known(rows, "agreement", "mean_jss") if row["n_items"] >= FEWEST]
    if not known:
        return
    less = sum(row["agreement"] < row["mean_jss"] for row in known)
    shares = span([row["agreement"] for row in known], percent)
    yield (
        f"consensus: judges agree with each other on {shares} of prompts, by task and scoring; in "
        f"{less} of {len(known)} cases less often than with themselves under another wording"
    )
    panels = _known(known, "panel_jss")
    if panels:
        better = [row for row in panels if row["panel_jss_low"] > row["mean_jss"]]
        tied = sum(
            row["panel_jss_low"] <= row["mean_jss"] < row["panel_jss_high"] for row in panels
        )
        yield (
            "the majority of the judges is more consistent than the average judge in "
            f"{len(better)} of {len(panels)} cases"
            + (f"; in {tied} more, it depends on the tied votes" if tied else "")
        )


def _variance(rows: Sequence[Row]) -> Iterator[str]:
    moved = [row for row in _known(rows, "polarity") if abs(row["polarity"]) > 0]
    if moved:
        changes = [
            f"{_named(row)} ({number(row['flips_raw'])} raw, {number(row['flips'])} mapped)"
            for row in moved
        ]
        yield f"label maps change the flip rate of {join(changes)}"
    shares = [row["template_share"] for row in _known(rows, "template_share")]
    if shares:
        yield (
            "the share of mapped flips that move all items alike is "
            f"{span(shares, percent)}, median {percent(median(shares))} ({len(shares)} cases with "
            "flips); in the other flips, the wording acts on single items"
        )


def _sampled(rows: Sequence[Row]) -> Iterator[str]:
    known = _known(rows, "jss", "jss_t1")
    if not known:
        return
    lost = [row["jss"] - row["jss_t1"] for row in known]
    shares = [row["wording"] / (1 - row["jss_t1"]) for row in known if row["jss_t1"] < 1]
    yield (
        "drawing verdicts at T = 1 from the option probabilities lowers JSS by "
        f"{number(min(lost))} to {number(max(lost))} (median {number(median(lost))}); the wording "
        f"causes a median of {percent(median(shares)) if shares else '–'} of those flips, the draw "
        "the rest"
    )


def _tokens(rows: Sequence[Row]) -> Iterator[str]:
    few, many = (median(row[f"undecided_{name}"] for row in rows) for name in ("few", "many"))
    yield (
        f"answers of {join(sorted({str(row['tokens']) for row in rows}))} tokens: the median share "
        f"of prompts without a decision goes from {percent(few)} to {percent(many)}; {_clear(rows)}"
    )


def _clear(rows: Sequence[Row]) -> str:
    known = _known(rows, "ci_low", "ci_high")
    clear = [row for row in known if row["ci_low"] > 0 or row["ci_high"] < 0]
    if not known:
        return "no case has enough pairs for an interval of the difference in JSS"
    named = f" ({join([_named(row) for row in clear])})" if clear else ""
    return (
        f"the interval of the difference in JSS excludes 0 in {len(clear)} of {len(known)} "
        f"cases{named}"
    )


def _temperature(rows: Sequence[Row]) -> Iterator[str]:
    known = _known(rows, "jss", "jss_t1")
    if not known:
        return
    lower = sum(row["jss_t1"] < row["jss"] for row in known)
    text = (
        f"text drawn at T = 1 is less consistent than greedy text in {lower} of {len(known)} cases"
    )
    again = _known(known, "wording", "same_prompt")
    if again:
        beyond = sum(row["wording_ci_low"] > 0 for row in _known(again, "wording_ci_low"))
        text += (
            "; rewording flips more verdicts than drawing the same prompt again, with an interval "
            f"above 0, in {beyond} of {len(again)}"
        )
    yield text


def _scale(rows: Sequence[Row]) -> Iterator[str]:
    rows = [row for row in rows if min(row["n_pairs"], row["n_pairs_scale"]) >= FEWEST]
    known = _known(rows, "jss", "jss_scale", "jss_3_steps")
    if not known:
        return
    exact = sum(row["jss_scale"] < row["jss"] for row in known)
    three = sum(row["jss_3_steps"] < row["jss"] for row in known)
    yield (
        f"on a scale from 1 to 5, JSS is lower than on the binary question in {exact} of "
        f"{len(known)} cases, and in {three} with levels merged to three steps"
    )
    graded = _known(rows, "accuracy", "accuracy_scale")
    if graded:
        better = sum(row["accuracy_scale"] > row["accuracy"] for row in graded)
        yield (
            f"the scale is right more often than the binary question in {better} of {len(graded)} "
            "cases"
        )


def _language(rows: Sequence[Row]) -> Iterator[str]:
    both = ("jss_english", "jss_translated")
    known = _known([row for row in rows if row["n_pairs"] >= FEWEST], *both)
    if not known:
        return
    lower = sum(row["jss_translated"] < row["jss_english"] for row in known)
    same = [row["same_verdict"] for row in _known(known, "same_verdict")]
    yield (
        f"in {LANGUAGE}, JSS is lower than in English in {lower} of {len(known)} cases; "
        f"{_clear(known)}; the same prompt gets the same verdict in both languages in a median of "
        f"{percent(median(same)) if same else '–'}"
    )
    for task, scoring in dict.fromkeys((row["task"], row["scoring"]) for row in known):
        own = [row for row in known if (row["task"], row["scoring"]) == (task, scoring)]
        points = np.array([[row[field] for row in own] for field in both], dtype=float)
        if len(own) >= 3 and (np.ptp(points, axis=1) > 0).all():
            rho = float(spearman_matrix(points)[0, 1])
            yield (
                f"{task}, {scoring} scoring: Spearman's ρ of the judges' JSS in {LANGUAGE} and in "
                f"English is {number(rho, 2)} (n = {len(own)})"
            )


def _validators(rows: Sequence[Row]) -> Iterator[str]:
    shares = {}
    for name in dict.fromkeys(row["validator"] for row in rows):
        own = [row for row in rows if row["validator"] == name]
        no = sum(row["not_equivalent"] for row in own)
        said = no + sum(row["equivalent"] for row in own)
        shares[name] = f"{name} {no} of {said}"
    yield f"pairs rejected as not equivalent, of those with a verdict: {', '.join(shares.values())}"


_FINDINGS: Mapping[str, Callable[[Sequence[Row]], Iterator[str]]] = {
    "orders": _orders,
    "consensus": _consensus,
    "variance": _variance,
    "sampled": _sampled,
    "tokens": _tokens,
    "temperature": _temperature,
    "scale": _scale,
    "language": _language,
    "validators": _validators,
}
