"""What the tables of the open questions say, as computed sentences."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import median
from typing import Any

import numpy as np

from judgesense.statistics.ranking import spearman_matrix
from judgesense.studies.common.result import Table
from judgesense.text import join, number, percent

Row = Mapping[str, Any]

FEWEST = 10
"""What rests on fewer items or pairs is in the table, not in a sentence."""


def open_findings(tables: Mapping[str, Table]) -> list[str]:
    """One or two sentences for each question that has a table; a case is a judge, task, scoring."""
    known: dict[str, Callable[[Sequence[Row]], Iterator[str]]] = {
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
    return [
        sentence
        for name, say in known.items()
        if name in tables
        for sentence in say(
            [dict(zip(tables[name].columns, row, strict=True)) for row in tables[name].rows]
        )
    ]


def _named(row: Row) -> str:
    scoring = f", {row['scoring']} scoring" if "scoring" in row else ""
    return f"{row['judge']} on {row['task']}{scoring}"


def _range(shares: Sequence[float]) -> str:
    low, high = percent(min(shares)), percent(max(shares))
    return low if low == high else f"{low} to {high}"


def _known(rows: Sequence[Row], *columns: str) -> list[Row]:
    return [row for row in rows if all(row[column] is not None for column in columns)]


def _orders(rows: Sequence[Row]) -> Iterator[str]:
    known = _known(rows, "flips, reworded", "flips, swapped", "flips, both")
    if not known:
        return
    more = sum(row["flips, swapped"] > row["flips, reworded"] for row in known)
    most = max(known, key=lambda row: row["flips, swapped"] - row["flips, reworded"])
    yield (
        "order randomisation: showing the options in the other order flips more verdicts than "
        f"another wording in {more} of {len(known)} cases; most for {_named(most)}, where a swap "
        f"alone flips {percent(most['flips, swapped'])}, a rewording alone "
        f"{percent(most['flips, reworded'])}, and JSS with orders drawn anew would be "
        f"{number(1 - (most['flips, reworded'] + most['flips, both']) / 2)}"
    )


def _consensus(rows: Sequence[Row]) -> Iterator[str]:
    known = [row for row in _known(rows, "agreement", "mean JSS") if row["items"] >= FEWEST]
    if not known:
        return
    less = sum(row["agreement"] < row["mean JSS"] for row in known)
    shares = [row["agreement"] for row in known]
    yield (
        f"consensus: judges agree with each other on {_range(shares)} of prompts, by task and "
        f"scoring; in {less} of {len(known)} cases less often than with themselves under another "
        "wording"
    )
    panels = _known(known, "panel JSS")
    if panels:
        better = [row for row in panels if row["panel JSS low"] > row["mean JSS"]]
        tied = [
            row for row in panels if row not in better and row["panel JSS high"] > row["mean JSS"]
        ]
        yield (
            f"the judges' majority is more consistent than they are on average in {len(better)} of "
            f"{len(panels)} cases"
            + (f"; in {len(tied)} more, tied votes would decide it" if tied else "")
        )


def _variance(rows: Sequence[Row]) -> Iterator[str]:
    moved = [row for row in _known(rows, "polarity") if abs(row["polarity"]) > 0]
    if moved:
        shares = [
            f"{_named(row)} ({number(row['flips, raw'])} raw, "
            f"{number(row['flips, mapped'])} mapped)"
            for row in moved
        ]
        yield f"label maps change the flip rate of {join(shares)}"
    known = _known(rows, "template share")
    if known:
        shares_of = [row["template share"] for row in known]
        yield (
            "of the mapped flips, the share that moves all items alike is "
            f"{_range(shares_of)}, median {percent(median(shares_of))} ({len(known)} cases with "
            "flips); the rest is wording "
            "that acts on single items"
        )


def _sampled(rows: Sequence[Row]) -> Iterator[str]:
    known = _known(rows, "JSS, most probable", "JSS at T = 1")
    if not known:
        return
    lost = [row["JSS, most probable"] - row["JSS at T = 1"] for row in known]
    shares = [
        row["wording"] / (1 - row["JSS at T = 1"]) for row in known if row["JSS at T = 1"] < 1
    ]
    due = percent(median(shares)) if shares else "–"
    yield (
        "verdicts drawn at T = 1 from the options' probabilities cost a JSS of "
        f"{number(min(lost))} to {number(max(lost))} (median {number(median(lost))}); of the flips "
        f"then, a median of {due} is due to the wording, the rest to the draw"
    )


def _tokens(rows: Sequence[Row]) -> Iterator[str]:
    if not rows:
        return
    few, many = (median(row[f"undecided, {name}"] for row in rows) for name in ("few", "many"))
    yield (
        f"answers of {join(sorted({str(row['tokens']) for row in rows}))} tokens: the median share "
        f"of prompts without a decision goes from {percent(few)} to {percent(many)}; "
        f"{_clear(rows)}"
    )


def _clear(rows: Sequence[Row]) -> str:
    known = _known(rows, "low", "high")
    clear = [row for row in known if row["low"] > 0 or row["high"] < 0]
    if not known:
        return "no case has pairs enough for an interval of the difference in JSS"
    named = f" ({join([_named(row) for row in clear])})" if clear else ""
    return (
        f"the interval of the difference in JSS leaves out 0 in {len(clear)} of {len(known)} "
        f"cases{named}"
    )


def _temperature(rows: Sequence[Row]) -> Iterator[str]:
    known = _known(rows, "JSS at T = 0", "JSS at T = 1")
    if not known:
        return
    lower = sum(row["JSS at T = 1"] < row["JSS at T = 0"] for row in known)
    text = (
        f"text drawn at T = 1 is less consistent than greedy text in {lower} of {len(known)} cases"
    )
    again = _known(known, "wording", "same prompt again at T = 1")
    if again:
        beyond = [row for row in _known(again, "low ") if row["low "] > 0]
        text += (
            f"; rewording flips more than drawing the same prompt again, with an interval above 0, "
            f"in {len(beyond)} of {len(again)}"
        )
    yield text


def _scale(rows: Sequence[Row]) -> Iterator[str]:
    rows = [row for row in rows if min(row["N binary"], row["N scale"]) >= FEWEST]
    known = _known(rows, "binary JSS", "scale JSS", "scale JSS, 3 steps")
    if not known:
        return
    exact = sum(row["scale JSS"] < row["binary JSS"] for row in known)
    three = sum(row["scale JSS, 3 steps"] < row["binary JSS"] for row in known)
    yield (
        f"on a scale from 1 to 5 JSS is lower than on the binary question in {exact} of "
        f"{len(known)} cases, and in {three} when levels are joined to three steps"
    )
    graded = _known(rows, "binary accuracy", "scale accuracy")
    if graded:
        better = sum(row["scale accuracy"] > row["binary accuracy"] for row in graded)
        yield (
            f"the scale is right more often than the binary question in {better} of {len(graded)} "
            "cases"
        )


def _language(rows: Sequence[Row]) -> Iterator[str]:
    rows = [row for row in rows if row["N both"] >= FEWEST]
    both = [column for column in rows[0] if column.startswith("JSS, ")] if rows else []
    if not both:
        return
    known = _known(rows, *both)
    foreign = both[1].removeprefix("JSS, ")
    lower = sum(row[both[1]] < row[both[0]] for row in known)
    same = [row["same verdict"] for row in _known(rows, "same verdict")]
    yield (
        f"in {foreign} JSS is lower than in English in {lower} of {len(known)} cases; "
        f"{_clear(rows)}; the same prompt gets the same verdict in both languages in a median of "
        f"{percent(median(same)) if same else '–'}"
    )
    cases = dict.fromkeys((row["task"], row.get("scoring")) for row in known)
    for task, scoring in cases:
        own = [row for row in known if (row["task"], row.get("scoring")) == (task, scoring)]
        points = np.array([[row[column] for row in own] for column in both], dtype=float)
        if len(own) >= 3 and (np.ptp(points, axis=1) > 0).all():
            rho = float(spearman_matrix(points)[0, 1])
            yield (
                f"{task}, {scoring} scoring: the judges' ranking by JSS in {foreign} and in "
                f"English has a Spearman's ρ of {number(rho, 2)} (n = {len(own)})"
            )


def _validators(rows: Sequence[Row]) -> Iterator[str]:
    shares = {}
    for name in dict.fromkeys(row["validator"] for row in rows):
        own = [row for row in rows if row["validator"] == name]
        no = sum(row["not equivalent"] for row in own)
        said = no + sum(row["equivalent"] for row in own)
        shares[name] = f"{name} {no} of {said}"
    yield f"pairs rejected as not equivalent, of those with a verdict: {', '.join(shares.values())}"
