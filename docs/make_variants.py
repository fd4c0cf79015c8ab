"""Write ``docs/results/variants.md``: ``python docs/make_variants.py RUN...``.

Each RUN is the folder of a run with ``--variants all``. The page has the trust card, the variance
budget and every variant of each judge and task.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from page_tables import card_row, percent, table, with_ends

from judgesense.reporting.build import measure_run
from judgesense.run_folder import read_run
from judgesense.text import short_names

PAGE = Path(__file__).parent / "results" / "variants.md"
CHECKS = ("steady", "responsive", "right", "fair")
BESIDES = (None, "rewording")
SOURCES = ("item", "wording", "format", "order", "rerun")

TEXT = """# Variants: which lever moves which judge

Small judges on public sets, asked with every [variant](../variants.md): other formats, orders and
structures, contrasts, and interventions. Read this page for what the levers do, not as a ranking:
RANKING

```bash
judgesense dataset build --source truthfulqa,summeval --limit 100 --no-match --design prompts \\
    --out real
judgesense run --judge JUDGE --dataset real --tasks TASK --limit N --variants all \\
    --set dtype=bfloat16 --scoring options --out JUDGE-TASK   # one for each row below
python docs/make_variants.py JUDGE-TASK...
```

The sets are TruthfulQA (factuality) and SummEval (coherence), from a mirror. Models are GGUF files
of 4 bits, read as bfloat16 on a 2-core AMD EPYC that other work shared ({versions}, seed 0).
`options` scoring reads the probability of each option, so `reasoning` variants show what the
request alone does: no reasoning is written.

## The judges

{cards}

Estimates with their state: JSS over the rewordings and every equivalent variant, the ratio of
contrast to rewording, and κ with gold. *fair* needs two options.

## Where the variance comes from

Parts of the variance of a verdict, in percent of all. *item* is what should decide; the last column
says what buys most.

{budget}

## Equivalent variants

The share of verdicts that stay as under the base wording, with 95% intervals. *rewordings* are the
five templates among each other.

{equivalent}

## Contrasts

How often the answer changes when the right answer does. Compare with *rewordings, moved*: a judge
that reads the question moves more often here.

{contrast}

## Interventions

The share of verdicts that change, and the net shift: for YES and NO in points towards YES, on a
scale in levels.

{intervention}

## What to read from it

FINDINGS
"""

Row = dict[str, Any]


def runs(folders: Sequence[Path]) -> Iterator[tuple[str, Row]]:
    """The name and the report of each judge and task, in the order of the folders."""
    for folder in folders:
        report = measure_run(folder)
        names = short_names(sorted({card["judge"] for card in report["trust"]}))
        for card in report["trust"]:
            yield f"{names[card['judge']]}, {card['task']}", {**report, "card": card}


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
    elif row["net_shift"] and "YES" in row["net_shift"]:
        net = f", {100 * row['net_shift']['YES']:+.0f}"
    return percent(row["shift_rate"], 0) + net


def budget_rows(reports: dict[str, Row]) -> list[list[str]]:
    """A row per judge and task: the part of each source, and the advice."""
    rows = []
    for name, report in reports.items():
        parts = {row["source"]: row for row in own(report, "variance_budget")}
        total = sum(part["variance"] or 0 for part in parts.values())
        shares = [
            percent(parts[source]["variance"] / total, 0)
            if source in parts and parts[source]["variance"] is not None and total
            else "-"
            for source in SOURCES
        ]
        clusters = str(parts["item"]["n_clusters"]) if parts else "-"
        rows.append([name, clusters, *shares, parts["item"]["text"] if parts else "-"])
    return rows


def write(folders: Sequence[Path]) -> None:
    """Measure the runs and write the page."""
    reports = dict(runs(folders))
    record = read_run(folders[0]).record
    versions = ", ".join(f"{name} {record['versions'][name]}" for name in ("torch", "transformers"))
    cards = [
        [name, str(reworded(report)["n_items"]), *card_row(report["card"], CHECKS)[1:]]
        for name, report in reports.items()
    ]
    PAGE.write_text(
        TEXT.format(
            versions=versions,
            cards=table(["judge and task", "items", "trust", *CHECKS], cards),
            budget=table(
                ["judge and task", "clusters", *SOURCES, "what buys most"], budget_rows(reports)
            ),
            equivalent=variant_table(
                reports, "equivalent", jss_text, ("rewordings", lambda r: jss_text(reworded(r)))
            ),
            contrast=variant_table(
                reports, "contrast", follows_text, ("rewordings, moved", moved_text)
            ),
            intervention=variant_table(reports, "intervention", shift_text),
        ).rstrip()
        + "\n",
        "utf-8",
    )


if __name__ == "__main__":
    write([Path(name) for name in sys.argv[1:]])
