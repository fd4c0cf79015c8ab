"""Write ``docs/results/variants.csv``: ``python docs/make_variants.py FLAKYJUDGE RUN...``.

FLAKYJUDGE is the folder of flakyjudge's tables, which are imported. Each RUN is the folder of a run
with ``--variants all``.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from page_tables import card_row, percent, table, with_ends, write_csv
from recipes import CONTROLS, import_flakyjudge

from judgesense.reporting.report import measure_run
from judgesense.text import short_names

PAGE = Path(__file__).parent / "results" / "variants.csv"
CHECKS = ("steady", "responsive", "right")
GOOD = ("YES", "PASS", "A")
"""The label whose gain is shown."""
BESIDES = (None, "rewording")

SOURCES_OF = {
    "factuality": "TruthfulQA",
    "coherence": "SummEval",
    "relevance": "SciFact",
    "preference": "MT-Bench",
}
JUDGES = ("smollm2-135m", "gemma3-270m", "qwen2.5-coder-0.5b", "qwen2.5-coder-1.5b")
Row = dict[str, Any]


def runs(folders: Sequence[Path]) -> Iterator[tuple[str, str, Row]]:
    """The judge, the task and the report of each card, in the order of the folders."""
    for folder in folders:
        report = measure_run(folder)
        names = short_names(sorted({card["judge"] for card in report["trust"]}))
        for card in report["trust"]:
            yield names[card["judge"]], card["task"], {**report, "card": card}


def own(report: Row, listed: str) -> list[Row]:
    """The rows of a list that belong to the card's judge and task."""
    card = report["card"]
    keys = ("judge", "task", "scoring")
    return [row for row in report[listed] if all(row[key] == card[key] for key in keys)]


def variant_table(
    reports: dict[str, Row], kind: str, cell: Any, first: tuple[str, Any] | None = None
) -> str:
    """A row per variant of a class, a column per judge and task."""
    names: dict[str, None] = {}
    for report in reports.values():
        of_kind = [r for r in own(report, "variants") if r["variant_class"] == kind]
        names.update({r["variant"]: None for r in of_kind if r["variant"] not in BESIDES})
    rows = [] if first is None else [[first[0], *(first[1](r) for r in reports.values())]]
    if rows and set(rows[0][1:]) == {"-"}:
        rows = []  # one wording
    for name in names:
        cells = []
        for report in reports.values():
            found = [r for r in own(report, "variants") if r["variant"] == name]
            cells.append(cell(found[0]) if found else "-")
        rows.append([name, *cells])
    return table(["variant", *reports], rows)


def reworded(report: Row) -> Row:
    """The row of the rewordings."""
    return next(row for row in own(report, "variants") if row["variant"] == "rewording")


def jss_text(row: Row) -> str:
    """JSS with its interval."""
    return with_ends(row["jss"], row["ci_low"], row["ci_high"])


def moved_text(report: Row) -> str:
    """How often a verdict moves under rewording, in percent."""
    jss = reworded(report)["jss"]
    return "-" if jss is None else percent(1 - jss, 0)


def follows_text(row: Row) -> str:
    """How often the answer follows a contrast, in percent, with its interval."""
    if row["follows"] is None:
        return "-"
    ends = f" [{percent(row['follows_ci_low'], 0)}, {percent(row['follows_ci_high'], 0)}]"
    return percent(row["follows"], 0) + ends


def shift_text(row: Row) -> str:
    """The shift rate of an intervention in percent, with the net shift."""
    if row["shift_rate"] is None:
        return "-"
    net = ""
    if row["score_shift"] is not None:
        net = f", {row['score_shift']:+.2f}"
    elif row["net_shift"]:
        net = f", {100 * next(row['net_shift'][n] for n in GOOD if n in row['net_shift']):+.0f}"
    return percent(row["shift_rate"], 0) + net


def flaky_rows(reports: dict[str, Row]) -> list[list[str]]:
    """A row per judge of flakyjudge's log: what each of its variants does."""
    rows = []
    for name, report in reports.items():
        by_name = {row["variant"]: row for row in own(report, "variants")}
        rows.append(
            [
                name,
                jss_text(by_name["fields_reversed"]),
                moved_text(report),
                *(follows_text(by_name[control]) for control in CONTROLS),
                shift_text(by_name["rubric_and_reference"]),
            ]
        )
    return rows


def task_tables(task: str, reports: dict[str, Row]) -> dict[str, str]:
    """The tables of a task, with a column per judge."""
    found = {
        "equivalent, same verdict": variant_table(
            reports, "equivalent", jss_text, ("rewordings", lambda r: jss_text(reworded(r)))
        ),
        "contrast, follows (%)": variant_table(
            reports, "contrast", follows_text, ("rewordings, moved", moved_text)
        ),
        "intervention, changed (%) and net shift": variant_table(
            reports, "intervention", shift_text
        ),
    }
    return {f"{SOURCES_OF[task]}: {kind}": text for kind, text in found.items()}


def write(flakyjudge: Path, folders: Sequence[Path]) -> None:
    """Import and measure the log and the runs, and write the tables."""
    with tempfile.TemporaryDirectory() as out:
        import_flakyjudge(flakyjudge, Path(out) / "flaky")
        large = {
            judge: report for judge, _, report in runs([Path(out) / "flaky"]) if "@T=1" not in judge
        }
    found = {(judge.partition("@")[0], task): report for judge, task, report in runs(folders)}
    reports = {
        (judge, task): found[judge, task]
        for task in SOURCES_OF
        for judge in JUDGES
        if (judge, task) in found
    }
    named = {f"{judge}, {task}": report for (judge, task), report in reports.items()}
    cards = [
        [name, str(reworded(report)["n_items"]), *card_row(report["card"], CHECKS)[1:]]
        for name, report in named.items()
    ]
    tables = {
        "flakyjudge": table(
            ["judge", "fields reordered, JSS", "reworded, %", "negated, follows",
             "swapped, follows", "rubric"],
            flaky_rows(large),
        ),
        "trust cards": table(["judge and task", "items", "trust", *CHECKS], cards),
    }  # fmt: skip
    for task in dict.fromkeys(task for _, task in reports):
        own_reports = {judge: r for (judge, name), r in reports.items() if name == task}
        tables |= task_tables(task, own_reports)
    write_csv(PAGE, tables)


if __name__ == "__main__":
    write(Path(sys.argv[1]), [Path(name) for name in sys.argv[2:]])
