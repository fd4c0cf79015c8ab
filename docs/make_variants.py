"""Write ``docs/results/variants.md``: ``python docs/make_variants.py FLAKYJUDGE RUN...``.

FLAKYJUDGE is the folder of flakyjudge's tables, which are imported. Each RUN is the folder of a run
with ``--variants all``.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from page_tables import card_row, percent, table, with_ends
from recipes import CONTROLS, import_flakyjudge

from judgesense.reporting.report import measure_run
from judgesense.run_folder.folder import read_run
from judgesense.text import join, short_names

PAGE = Path(__file__).parent / "results" / "variants.md"
CHECKS = ("steady", "responsive", "right")
GOOD = ("YES", "PASS", "A")
"""The label whose gain is shown."""
BESIDES = (None, "rewording")

SHORT = """\
- **The order of the fields moves more verdicts than the wording does**, for five of the six judges:
  7% to 14% of verdicts, the wording 2% to 8%. For claude-sonnet both count about alike.
- **Keep one format and average over wordings.** Asking the same prompt again at temperature 0 buys
  little for any of them.
- **llama-8b hardly reads the criterion.** It moves no more when the criterion is
  negated (1%) than when it is reworded (2%). The two Claude judges follow a negated criterion most
  often (47% and 54%).
- **A rubric with a reference answer changes 2% to 13% of verdicts.** It makes gpt-4o and
  gpt-4o-mini stricter (7 and 4 points fewer PASS) and moves the others by at most 3 points.
- **Casing, spacing and separators move the two Qwen judges least**: 2% to 15% of verdicts, where
  the rewordings move 11% to 42%. The instruction behind the fields moves 28% on TruthfulQA, and on
  SummEval 53% of the 0.5B's and 6% of the 1.5B's.
- **JSON and a request to reason move verdicts that are read too early.** The label is read where
  the model would begin its JSON or its reasoning: on TruthfulQA and SummEval, JSON moves 33% to
  100% of the Qwen judges' verdicts, and a request to reason lowers summaries by about 3 levels.
  Both are interventions here, outside JSS.
- **Interventions shift in one direction.** A closing sentence without content adds 34 and 23 points
  of YES on TruthfulQA. Two examples take 28 points from the 0.5B and give 43 to the 1.5B. An
  intervention makes another judge, so measure it as one.
- **The same judge is responsive on one task and not on another.** On TruthfulQA the 1.5B follows
  contrasts 3.3 times as often as rewordings, on SummEval 0.9 times. None of them is right
  more often than chance, so being steady or responsive does not make a judge right.
- **A judge can be steady because it does not read.** SmolLM2 answers YES to nearly everything on
  TruthfulQA, and Gemma gives nearly all summaries of SummEval one level: a JSS of 1.00, and hardly
  an answer that changes with the question.
- **Where two answers are compared, the order decides.** At most 23% of the
  answers follow a contrast on SciFact and MT-Bench. Ask in both orders and
  average ([remedies](remedies.md)): the 1.5B is then right about 78% of SciFact's items instead of
  50% (15 items, gain 28 points [10, 40]).
- **Other names for the options can turn the answers round.** On MT-Bench the 1.5B chooses the first
  answer in every prompt if the answers are called A and B, and the second in 75% and 85% if they
  are called 1 and 2 or I and II."""
TEXT = """# Variants: which lever moves which judge

What [variants](../variants.md) do to a verdict: for six judges that people use, from flakyjudge's
log, and for four small judges on public sets. This page is written by one command:

```bash
python docs/make_variants.py ../shared/logs/flakyjudge RUN...
```

## In short

{short}

## Six judges that people use

flakyjudge's verdicts (PASS or FAIL by a criterion; [the log](flakyjudge.md)) have seven wordings,
one other format (the criterion before the query and the response), reruns at temperature 0, two
contrasts and one intervention (a rubric and a reference answer).

{flaky_variants}

*JSS* is with the original wording. *follows* is how often the verdict changes when the criterion
does, in percent; compare it with *reworded*, the verdicts that a rewording changes. *rubric* is the
percentage of verdicts that the rubric and reference answer change, and the net shift towards PASS
in points.

## Four small judges on public sets

{missing}

```bash
judgesense dataset build --source all --mirror hub_mirror --limit 100 --design full \\
    --orders AB,BA --out real
judgesense run --judge smollm2-135m --dataset real --tasks factuality --variants all \\
    --limit 100 --set dtype=bfloat16 --scoring options --out RUN
```

The relevance and preference sets are from the 100 shortest items of SciFact (abstracts cut to 60
words) and of MT-Bench (`docs/short_items.py`; [how](remedies.md#judges-before-and-after)), in one
wording and both orders: all of them or, to save time, the first 30 or 15 (`--limit 30`).
Qwen2.5-Coder and Gemma are 4-bit GGUF files, read as bfloat16 on a 2-core AMD EPYC that other work
shared ({versions}, seed 0). In these runs the option is read
before any reasoning or JSON, so `reasoning` and `json` show what the request alone does.
Options are now scored inside the JSON, [which changes the
figure](../variants.md#the-variants-of-the-package).

{cards}

*steady* is the JSS, *responsive* how many times as often a contrast changes the answer as a
rewording, and *right* the agreement with the gold labels (κ).

The tables below have a column per judge.

- **Equivalent**: the share of verdicts that stay as under the base wording, with 95% intervals.
  *rewordings* are the templates among each other.
- **Contrast**: how often the answer changes, in percent. A judge that reads the question moves more
  often here than under *rewordings, moved*.
- **Intervention**: the share of verdicts that change, in percent, and the net shift: in points
  towards YES or A, or in levels on a scale.

{tasks}
"""
TASK = """### {task}: {source}

{equivalent}

{contrast}

{intervention}
"""
SOURCES_OF = {
    "factuality": "TruthfulQA",
    "coherence": "SummEval",
    "relevance": "SciFact",
    "preference": "MT-Bench",
}
JUDGES = ("smollm2-135m", "gemma3-270m", "qwen2.5-coder-0.5b", "qwen2.5-coder-1.5b")
MISSING = (
    "Not finished when this page was written, because a run takes up to an hour on two shared "
    "cores: {pairs}."
)
COMPLETE = "All four judges were asked about all four sets."

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


def task_text(task: str, reports: dict[str, Row]) -> str:
    """The tables of a task, with a column per judge; tables without a row are left out."""
    tables = {
        "equivalent": variant_table(
            reports, "equivalent", jss_text, ("rewordings", lambda r: jss_text(reworded(r)))
        ),
        "contrast": variant_table(
            reports, "contrast", follows_text, ("rewordings, moved", moved_text)
        ),
        "intervention": variant_table(reports, "intervention", shift_text),
    }
    return TASK.format(task=task, source=SOURCES_OF[task], **tables)


def missing_text(found: Sequence[tuple[str, str]]) -> str:
    """Which judges were not asked about which sets."""
    pairs = [
        f"{judge} on {source}"
        for task, source in SOURCES_OF.items()
        for judge in JUDGES
        if (judge, task) not in found
    ]
    return MISSING.format(pairs=join(pairs)) if pairs else COMPLETE


def write(flakyjudge: Path, folders: Sequence[Path]) -> None:
    """Import and measure the log and the runs, and write the page."""
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
    record = read_run(folders[0]).record
    versions = ", ".join(f"{name} {record['versions'][name]}" for name in ("torch", "transformers"))
    named = {f"{judge}, {task}": report for (judge, task), report in reports.items()}
    cards = [
        [name, str(reworded(report)["n_items"]), *card_row(report["card"], CHECKS)[1:]]
        for name, report in named.items()
    ]
    texts = [
        task_text(task, {judge: r for (judge, own), r in reports.items() if own == task})
        for task in dict.fromkeys(task for _, task in reports)
    ]
    PAGE.write_text(
        TEXT.format(
            short=SHORT,
            flaky_variants=table(
                ["judge", "fields reordered, JSS", "reworded, %", "negated, follows",
                 "swapped, follows", "rubric"],
                flaky_rows(large),
            ),
            missing=missing_text(list(reports)),
            versions=versions,
            cards=table(["judge and task", "items", "trust", *CHECKS], cards),
            tasks="\n".join(texts),
        ).rstrip() + "\n",
        "utf-8",
    )  # fmt: skip


if __name__ == "__main__":
    write(Path(sys.argv[1]), [Path(name) for name in sys.argv[2:]])
