"""Compare flakyjudge's published figures with the imported log, and draw the figure of its page.

    python docs/make_flakyjudge.py ../shared/logs/flakyjudge

Writes ``docs/results/data/flakyjudge-published.csv`` (every published figure, ours and whether they
print alike), ``flakyjudge-variants.csv`` (the table of the page) and
``docs/images/flakyjudge.png``. The published ones are in ``supplementary.json`` beside the tables.
"""

from __future__ import annotations

import csv
import json
import sys
import tempfile
from collections.abc import Iterator, Sequence
from math import comb
from pathlib import Path
from typing import Any

import numpy as np
from recipes import CONTROLS, ORIGINAL, import_flakyjudge

from judgesense.log.answers import Answers
from judgesense.log.folder import read_run
from judgesense.log.schema import REWORDING
from judgesense.log.view import view
from judgesense.measure.assessment import ReportContents
from judgesense.reporting.report import measure_run
from judgesense.studies.common.figures import Points
from judgesense.tasks import UNCLEAR

DOCS = Path(__file__).parent
REWORDINGS = (
    "lexical",
    "syntactic",
    "register_formal",
    "register_casual",
    "form_question",
    "form_imperative",
)

Figure = tuple[str, str, float, float, str]
"""Judge, figure, published, ours, and the format in which both are printed."""


def any_of(table: Any, k: int) -> float:
    """How often k verdicts on an item are not all the same, over every choice of k."""
    same = sum(
        np.array([comb(int(count), k) for count in (table == label).sum(1)])
        / comb(table.shape[1], k)
        for label in np.unique(table)
    )
    return float(1 - np.asarray(same).mean())


def counted_as_fail(stream: Answers, pairs: tuple[Any, Any]) -> float:
    """How often the verdict differs by flakyjudge's rule: no score on the original is a fail."""
    log = stream.log
    unclear, fail = (int(np.flatnonzero(log.labels == name)[0]) for name in (UNCLEAR, "FAIL"))
    base, other = log.raw[pairs[0]], log.raw[pairs[1]]
    base = np.where(base == unclear, fail, base)
    return float((base != other)[other != unclear].mean())


def complete(stream: Answers, columns: Sequence[tuple[Any, Any]]) -> Any:
    """The verdicts of the items with a score in every column.

    ``columns`` are (original, other) rows of the log, as from `against_original`.
    """
    log = stream.log
    verdicts: list[dict[int, int]] = [{}, *({} for _ in columns)]
    for number, (base, other) in enumerate(columns, 1):
        for first, second in zip(base, other, strict=True):
            item = int(log.item[first])
            verdicts[0][item], verdicts[number][item] = int(log.raw[first]), int(log.raw[second])
    return np.array(
        [
            [column[item] for column in verdicts]
            for item in verdicts[0]
            if all(item in column and not log.undecided[column[item]] for column in verdicts)
        ]
    )


def repeats(stream: Answers) -> list[tuple[Any, Any]]:
    """The first answer and each later one at temperature 0."""
    assert stream.reruns is not None
    first, later = stream.reruns
    own = stream.log.repeat[later]
    return [(first[own == n], later[own == n]) for n in np.unique(own)]


def against_original(stream: Answers, wording: str) -> tuple[Any, Any]:
    """The rows of the pairs of the original and another wording."""
    one, two = stream.templates
    used = stream.known & (
        ((one == ORIGINAL) & (two == wording)) | ((one == wording) & (two == ORIGINAL))
    )
    assert stream.row_a is not None
    assert stream.row_b is not None
    return stream.row_a[used], stream.row_b[used]


def controls(stream: Answers) -> list[tuple[Any, Any]]:
    """The rows of the original wording and of each control."""
    assert stream.contrast is not None
    base, contrast = stream.contrast
    kind = np.array(stream.log.variants)[stream.log.variant[contrast]]
    return [(base[kind == name], contrast[kind == name]) for name in CONTROLS]


def verdict_figures(stream: Answers, known: dict[str, Any]) -> Iterator[Figure]:
    """The published shares of verdicts that differ, in percent, and ours by flakyjudge's rules.

    A missing score on the original wording counts as a fail in the first two; the others leave out
    items with a missing score. Each kind of rewording or control has the same weight.
    """
    judge = stream.judge
    wordings = [against_original(stream, name) for name in REWORDINGS]
    reworded, changed = (
        float(np.mean([counted_as_fail(stream, kind) for kind in kinds]))
        for kinds in (wordings, controls(stream))
    )
    five, seven = complete(stream, repeats(stream)), complete(stream, wordings)
    again = float(np.mean([(five[:, 0] != five[:, n]).mean() for n in range(1, 5)]))
    resolution, headline = known["B_resolution"][judge], known["A_headline"][judge]
    for name, published, ours in (
        ("reworded", resolution["per_variant_paraphrase"], reworded),
        ("changed criterion", resolution["per_variant_control"], changed),
        ("asked again", headline["per_variant_floor"], again),
        ("any of 7 wordings", headline["any7_flip"], any_of(seven, 7)),
        ("any of 5 wordings", headline["any5_matched_paraphrase"], any_of(seven, 5)),
        ("any of 5 reruns", headline["any5_noise_floor"], any_of(five, 5)),
    ):
        yield judge, name, 100 * published, 100 * ours, ".2f"
    ratio = changed / reworded if reworded else 0.0
    yield judge, "ratio", resolution["ratio_ctrl_over_para"], ratio, ".1f"
    yield judge, "items", headline["n_complete"], len(seven), ".0f"


def length_figures(stream: Answers, known: dict[str, Any]) -> Iterator[Figure]:
    """How padding and condensing an answer move its score."""
    log, judge = stream.log, stream.judge
    at = stream.rows[log.template[stream.rows] == log.templates.index(ORIGINAL)]
    at = at[(log.variant[at] == log.variants.index(REWORDING)) & ~log.undecided[log.raw[at]]]
    score = {log.items[log.item[row]]: int(log.labels[log.raw[row]]) for row in at}
    for published in known["I_verbosity"]:
        kind = published["kind"]
        pairs = [(n.rpartition("/")[0], n) for n in score if n.endswith(f"/{kind}")]
        moved = [score[b] - score[a] for a, b in pairs if a in score]
        if published["judge"] == judge:
            yield judge, kind, published["mean_drift"], float(np.mean(moved)), "+.2f"
            yield judge, f"{kind}, items", published["n"], len(moved), ".0f"


def variant_rows(report: ReportContents, judges: Sequence[str]) -> Iterator[dict[str, Any]]:
    """A row per judge: trust, and the shares of verdicts that each change moves, with intervals."""
    by_judge = {entry.judge: entry for entry in report.assessments}
    for judge in judges:
        entry = by_judge[judge]
        by_name = {variant.variant: variant for variant in entry.variants}
        row: dict[str, Any] = {"judge": judge, "trust": entry.card.trust}
        for name, variant in (("reworded", REWORDING), ("fields reordered", "fields_reversed")):
            own = by_name[variant]
            ends = own.jss, own.ci_high, own.ci_low
            row |= dict(
                zip((name, f"{name}, low", f"{name}, high"), (1 - x for x in ends), strict=True)
            )
        for name, variant, key in (
            ("negated criterion", CONTROLS[0], "follows"),
            ("swapped criterion", CONTROLS[1], "follows"),
            ("rubric and reference", "rubric_and_reference", "shift"),
        ):
            own = by_name[variant]
            row |= {
                name: own.shift_rate if key == "shift" else own.follows,
                f"{name}, low": getattr(own, f"{key}_ci_low"),
                f"{name}, high": getattr(own, f"{key}_ci_high"),
            }
        row["asked again"] = entry.mapped.noise_floor
        for name in ("readable", "steady", "responsive", "right"):
            check = entry.card.checks[name]
            row |= {name: check.estimate, f"{name}, state": check.state}
        yield row


def write_csv(name: str, rows: Sequence[dict[str, Any]]) -> None:
    """Write records as a data file of the results."""
    (DOCS / "results" / "data").mkdir(exist_ok=True)
    with (DOCS / "results" / "data" / name).open("w", newline="", encoding="utf-8") as sink:
        writer = csv.DictWriter(sink, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(
            {k: round(v, 4) if isinstance(v, float) else v for k, v in row.items()} for row in rows
        )


def write(folder: Path) -> None:
    """Import the tables, measure, and write the files."""
    known = json.loads((folder / "supplementary.json").read_text("utf-8"))
    figures: list[Figure] = []
    with tempfile.TemporaryDirectory() as out:
        for pick, figures_of in (("verdict", verdict_figures), ("score", length_figures)):
            place = Path(out) / pick
            import_flakyjudge(folder, place, verdicts=pick == "verdict")
            run = read_run(place)
            for stream in view(run.log, None, run.record).judged:
                if stream.judge in known["A_headline"]:
                    figures += figures_of(stream, known)
        report = measure_run(Path(out) / "verdict")
    rows = [
        {
            "judge": judge,
            "figure": name,
            "published": format(theirs, kind),
            "ours": format(ours, kind),
            "equal": format(theirs, kind) == format(ours, kind),
        }
        for judge, name, theirs, ours, kind in figures
    ]
    write_csv("flakyjudge-published.csv", rows)
    variants = list(variant_rows(report, list(known["A_headline"])))
    write_csv("flakyjudge-variants.csv", variants)
    changes = ("reworded", "fields reordered", "swapped criterion", "negated criterion")
    lines = [
        {
            "judge": row["judge"],
            "change": name,
            "share": row[name],
            "low": row[f"{name}, low"],
            "high": row[f"{name}, high"],
        }
        for row in variants
        for name in changes
    ]
    kind = Points(
        group="judge",
        name="change",
        values={"": ("share", "low", "high")},
        limits=(0.0, 0.65),
        xlabel="share of verdicts that change",
    )
    figure = kind.draw(lines)
    figure.savefig(DOCS / "images" / "flakyjudge.png", dpi=150, bbox_inches="tight")
    print(f"{sum(row['equal'] for row in rows)} of {len(rows)} published figures print alike")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
