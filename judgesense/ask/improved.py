"""What ``judgesense improve`` found: the table of ways to ask, the row written, and why."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from judgesense.statistics.result import ResultMapping, data_frame, html_table
from judgesense.text import aligned, brackets, number, percent, plural_s, signed

Row = Mapping[str, Any]


@dataclass(frozen=True, eq=False, repr=False)
class Improved(ResultMapping):
    """The judge that `judgesense.improve` wrote to ``out``, and how it was found.

    ``rows`` has one entry per way to ask, measured on ``n_held_out`` items that the search did not
    use. Keys: ``way``, ``prompts_per_item``, ``usd_per_item``; ``right``, ``gain`` (over your
    wording), ``steady`` (same verdict under other wordings), ``resistant`` (right on the items'
    attacked copies) and ``resistant_gain``, each with ``_ci_low`` and ``_ci_high``; ``fair`` (same
    choice in both orders), ``decided`` (share with a verdict), ``pareto`` (no other row is as right
    for less) and ``written``. Figures that were not measured are None. ``better`` is true if the
    written way is shown to be better than yours, false if yours was written, and None if neither
    is shown. ``ask_person`` bounds the errors among verdicts that no person checks. Unless
    ``labelled``, ``right`` is about outputs and copies of them that were made wrong on purpose.
    """

    out: Path
    run_folder: Path
    way: str
    better: bool | None
    text: str
    rows: list[dict[str, Any]]
    n_candidates: int
    n_search: int
    n_held_out: int
    prompts: int
    usd: float | None
    budget: str
    seed: int
    ask_person: dict[str, Any]
    notes: list[str]
    labelled: bool = True

    @property
    def written(self) -> dict[str, Any]:
        """The row of the way that was written."""
        return next(row for row in self.rows if row["written"])

    def to_dict(self) -> dict[str, Any]:
        """The fields by name, as JSON values."""
        return {**super().to_dict(), "out": str(self.out), "run_folder": str(self.run_folder)}

    def to_pandas(self) -> Any:
        """The rows as a `pandas.DataFrame`."""
        return data_frame(self.rows)

    def __repr__(self) -> str:
        right = figure(self.written, "right", percent)
        return f"<Improved {self.out}: {self.way}, right on {right}>"

    def __str__(self) -> str:
        lines = [f"{self.text}.", ""]
        table = as_table(self.rows, self.labelled)
        lines += aligned(table, [True, *[False] * (len(table[0]) - 1)])
        lines += ["", *(f"  {line}" for line in footnotes(self))]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        heading, *rows = as_table(self.rows, self.labelled)
        return html_table((), [(self.text,)]) + html_table(heading, rows)

    def plot(self, path: str | Path | None = None) -> Any:
        """Prompts per item against right, with intervals; written to ``path`` (PNG or SVG) if
        given. Returns the figure. Raises MissingExtraError without matplotlib."""
        from judgesense.reporting.plots import save, ways

        drawn = ways(self.rows)
        if path is not None:
            save(drawn, Path(path).parent, Path(path).stem, [Path(path).suffix.lstrip(".")])
        return drawn


def figure(row: Row, key: str, form: Callable[[float | None], str]) -> str:
    """A figure of a row with its interval."""
    return f"{form(row[key])} {brackets(row[f'{key}_ci_low'], row[f'{key}_ci_high'], form)}"


def _points(value: float | None) -> str:
    return signed(None if value is None else 100 * value, 0)


def as_table(rows: Sequence[Row], labelled: bool = True) -> list[list[str]]:
    """The table for people: a heading, then a row per way to ask. * marks the one in the file,
    + each one that is right more often than every cheaper one."""
    priced = any(row["usd_per_item"] is not None for row in rows)
    attacked = any(row["resistant"] is not None for row in rows)
    table = [
        [
            "way",
            "USD per item" if priced else "prompts per item",
            "right" if labelled else "tells damage",
            "against yours",
            *(["resistant"] if attacked else []),
            "steady",
            "fair",
            "decided",
            "",
        ]
    ]
    for row in sorted(rows, key=lambda row: (row["prompts_per_item"], -row["right"])):
        cost = row["usd_per_item"] if priced else row["prompts_per_item"]
        gain = "" if row["gain"] is None else figure(row, "gain", _points)
        table.append(
            [
                row["way"],
                f"{cost:.3g}",
                figure(row, "right", percent),
                gain,
                *([figure(row, "resistant", percent)] if attacked else []),
                figure(row, "steady", percent) if row["steady"] is not None else "–",
                percent(row["fair"]) if row["fair"] is not None else "–",
                percent(row["decided"]),
                "*" * row["written"] + "+" * row["pareto"],
            ]
        )
    return table


def footnotes(result: Improved) -> list[str]:
    """What the table's figures are about, the promise, and what was spent."""
    spent = f"{result.prompts} prompts"
    if result.usd is not None:
        spent += f", ${result.usd:.4f}"
    return [
        f"The figures are from {result.n_held_out} items that were not used to choose a way to "
        "ask.",
        "* marks the row written to the file. + marks each row that is right more often than every "
        "cheaper row.",
        f"The search tried {result.n_candidates} ways to ask on up to {result.n_search} other "
        "items.",
        f"{result.run_folder} contains {spent} (budget: {result.budget}).",
        *([promise(result.ask_person)] if result.labelled else []),
        *(f"Note: {note}." for note in result.notes),
    ]


def promise(ask: Mapping[str, Any]) -> str:
    """The promise of a file's ``ask_person`` in words."""
    if ask.get("threshold") is not None:
        return (
            f"{percent(ask['answered'])} of items get a verdict without a person. With 95% "
            f"confidence, at most {percent(ask['error_bound'])} of these verdicts are wrong, on "
            f"items like the {ask.get('verdicts', 0)} held out."
        )
    needed, n = ask.get("needed"), ask.get("verdicts", 0)
    text = (
        "ask_person stays empty, because no threshold limits wrong verdicts to "
        f"{percent(ask['max_error'])} with 95% confidence."
    )
    if needed and needed > n:
        text += f" That needs at least {needed} verdicts with gold labels."
    return text


def conclusion(rows: Sequence[Row], n: int, *, labelled: bool = True) -> tuple[bool | None, str]:
    """Whether the written way is better than the first row, and a sentence that says so."""
    yours = rows[0]
    is_right, items = "is right on", "held-out items"
    if not labelled:
        is_right, items = "tells damage from the output on", "held-out outputs and damaged copies"
    row = next(each for each in rows if each["written"])
    right, cost = figure(row, "right", percent), number(row["prompts_per_item"], 1)
    cost = cost.removesuffix(".0")
    attacked = ""
    if row["resistant"] is not None:
        attacked = f". On attacked copies it is right on {figure(row, 'resistant', percent)}"
    if row is yours:
        return False, (
            f"No way of asking was better than yours, which {is_right} {right} of {n} {items}"
            f"{attacked}"
        )
    if attacked:
        attacked += f", and yours on {percent(yours['resistant'])} "
        attacked += f"({_gain(row, 'resistant_gain')})"
    text = (
        f"{row['way']!r} ({cost} prompt{plural_s(2 if cost != '1' else 1)} per item) "
        f"{is_right} {right} of {n} {items}, and yours on "
        f"{percent(yours['right'])} ({_gain(row, 'gain')})"
    )
    if row["gain_ci_low"] is not None and row["gain_ci_low"] > 0:
        return True, f"{text}. It is better than yours{attacked}"
    if row["gain_ci_high"] is not None and row["gain_ci_high"] < 0:
        return None, f"{text}. It is worse, so keep yours{attacked}"
    return None, (
        f"{text}. This does not show that it is better than yours; label more items{attacked}"
    )


def _gain(row: Row, key: str) -> str:
    return f"{figure(row, key, _points)} points"
