"""Write ``docs/results/flakyjudge.md``: ``python docs/make_flakyjudge.py FOLDER``.

FOLDER holds flakyjudge's tables. They are imported, each judge is measured, and the figures are
compared with the published ones in ``supplementary.json`` beside the tables.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Sequence
from math import comb
from pathlib import Path
from typing import Any

import numpy as np
from page_tables import card_row, percent, table, write_csv
from recipes import CONTROLS, FIELDS_REVERSED, ORIGINAL, import_flakyjudge

from judgesense.decisions.log import REWORDING
from judgesense.decisions.view import Stream, agreement, view
from judgesense.reporting.report import measure_run
from judgesense.run_folder.folder import read_run
from judgesense.statistics.intervals import mean_t_cluster, wilson_cluster
from judgesense.tasks import UNCLEAR

CHECKS = ("readable", "steady", "responsive", "right")
PAGE = Path(__file__).parent / "results" / "flakyjudge.md"
REWORDINGS = (
    "lexical", "syntactic", "register_formal", "register_casual", "form_question",
    "form_imperative",
)  # fmt: skip

TEXT = """# flakyjudge: rewordings against changed criteria

[flakyjudge](https://github.com/ShivaSankeerth/flakyjudge) (MIT; 28,644 scores of six judges) asked
each judge to score answers from 1 to 5 by a criterion, in up to seven wordings and with a negated
and a swapped criterion. A score above 2.5 is a pass. The verdict should stay under rewording, and
change with the criterion. This page and [its other tables](flakyjudge.csv) come from one command,
which imports the log ({rows} decisions):

```sh
python docs/make_flakyjudge.py ../shared/logs/flakyjudge
```

Under flakyjudge's own rules {equal} of {compared} published figures are equal to the digit printed.
JudgeSense leaves out a comparison if either score is missing ({missing}), and clusters intervals by
the {clusters} queries. Verdicts that change, in percent:

{own}

- **llama-8b is the steadiest, because it hardly reads the criterion**: it changes {llama}
  times as many verdicts with the criterion as with the wording, the others 3 to 6 times.
- **Reordering the fields moves more verdicts than rewording**, except those of claude-sonnet.
- **right**: always saying PASS is right in {constant}% of {items} items; {below} are below that.

The trust cards (JSS, the share of verdicts that the negated criterion turns, κ with people):

{cards}
"""


def any_of(table: Any, k: int, clusters: Any) -> tuple[float, float | None, float | None]:
    """How often k verdicts on an item are not all the same, over every choice of k, with ends."""
    same = sum(
        np.array([comb(int(count), k) for count in (table == label).sum(1)])
        / comb(table.shape[1], k)
        for label in np.unique(table)
    )
    apart = 1 - np.asarray(same)
    whole = np.isin(apart, (0, 1)).all()
    ends = wilson_cluster(apart == 1, clusters) if whole else mean_t_cluster(apart, clusters)
    ends = ends.within(0.0, 1.0)
    return float(apart.mean()), ends.low, ends.high


def flips(stream: Stream, pairs: tuple[Any, Any]) -> dict[str, Any]:
    """How often two rows of the log differ, among those with a verdict."""
    log = stream.log
    found = agreement(log, log.raw[pairs[0]], log.raw[pairs[1]], log.cluster[pairs[0]])
    low, high = found.ci_low, found.ci_high
    return {
        "rate": found.flip_rate,
        "text": f"{percent(found.flip_rate)} [{percent(1 - high)}, {percent(1 - low)}]"
        if high is not None and low is not None
        else percent(found.flip_rate),
    }


def counted_as_fail(stream: Stream, pairs: tuple[Any, Any]) -> float:
    """How often the verdict differs by flakyjudge's rule: no score on the original is a fail."""
    log = stream.log
    unclear, fail = (int(np.flatnonzero(log.labels == name)[0]) for name in (UNCLEAR, "FAIL"))
    base, other = log.raw[pairs[0]], log.raw[pairs[1]]
    base = np.where(base == unclear, fail, base)
    return float((base != other)[other != unclear].mean())


def complete(stream: Stream, columns: Sequence[tuple[Any, Any]]) -> tuple[Any, Any]:
    """The verdicts of the items with a score in every column, and their clusters.

    ``columns`` are (original, other) rows of the log, as from `against_original`.
    """
    log = stream.log
    verdicts: list[dict[int, int]] = [{}, *({} for _ in columns)]
    clusters = {}
    for number, (base, other) in enumerate(columns, 1):
        for first, second in zip(base, other, strict=True):
            item = int(log.item[first])
            clusters[item] = int(log.cluster[first])
            verdicts[0][item], verdicts[number][item] = int(log.raw[first]), int(log.raw[second])
    whole = [
        item
        for item in clusters
        if all(item in column and not log.undecided[column[item]] for column in verdicts)
    ]
    table = np.array([[column[item] for column in verdicts] for item in whole])
    return table, np.array([clusters[item] for item in whole])


def repeats(stream: Stream) -> list[tuple[Any, Any]]:
    """The first answer and each later one at temperature 0."""
    assert stream.reruns is not None
    first, later = stream.reruns
    own = stream.log.repeat[later]
    return [(first[own == n], later[own == n]) for n in np.unique(own)]


def against_original(stream: Stream, wording: str) -> tuple[Any, Any]:
    """The rows of the pairs of the original and another wording."""
    one, two = stream.templates
    used = stream.known & (
        ((one == ORIGINAL) & (two == wording)) | ((one == wording) & (two == ORIGINAL))
    )
    assert stream.row_a is not None
    assert stream.row_b is not None
    return stream.row_a[used], stream.row_b[used]


def controls(stream: Stream) -> list[tuple[Any, Any]]:
    """The rows of the original wording and of each control."""
    assert stream.contrast is not None
    base, contrast = stream.contrast
    kind = np.array(stream.log.variants)[stream.log.variant[contrast]]
    return [(base[kind == name], contrast[kind == name]) for name in CONTROLS]


def mean_flips(stream: Stream, kinds: Sequence[tuple[Any, Any]]) -> float:
    """The mean over kinds of how often the verdict differs, by flakyjudge's rule."""
    return float(np.mean([counted_as_fail(stream, kind) for kind in kinds]))


def printed(published: Sequence[float], own: Sequence[float]) -> tuple[list[str], int]:
    """Both figures of each pair as the tables print them, and how many pairs are equal."""
    both = [(percent(p, 2), percent(o, 2)) for p, o in zip(published, own, strict=True)]
    return [" / ".join(pair) for pair in both], sum(p == o for p, o in both)


def ratio_text(above: float, below: float) -> str:
    """A ratio with one decimal."""
    return f"{above / below:.1f}" if below else "-"


def judge_rows(stream: Stream, hot: Stream, known: dict[str, Any]) -> dict[str, Any]:
    """A judge's rows of the tables, and the figures that the text names."""
    log = stream.log
    wordings = [against_original(stream, name) for name in REWORDINGS]
    changed_rows = controls(stream)
    reworded, changed = mean_flips(stream, wordings), mean_flips(stream, changed_rows)
    assert stream.reruns is not None
    assert hot.reruns is not None
    again, again_hot = flips(stream, stream.reruns), flips(hot, hot.reruns)
    five, its_clusters = complete(stream, repeats(stream))
    seven, own_clusters = complete(stream, wordings)
    asked_again = any_of(five, 5, its_clusters)
    any_5, any_7 = (any_of(seven, k, own_clusters) for k in (5, 7))
    floor = float(np.mean([(five[:, 0] != five[:, n]).mean() for n in range(1, 5)]))
    resolution, headline = known["B_resolution"][stream.judge], known["A_headline"][stream.judge]
    first, n_first = printed(
        [resolution["per_variant_paraphrase"], resolution["per_variant_control"],
         headline["per_variant_floor"]],
        [reworded, changed, floor],
    )  # fmt: skip
    second, n_second = printed(
        [headline["any7_flip"], headline["any5_matched_paraphrase"], headline["any5_noise_floor"]],
        [any_7[0], any_5[0], asked_again[0]],
    )
    ratios = ratio_text(resolution["ratio_ctrl_over_para"], 1), ratio_text(changed, reworded)

    base, contrast = (np.concatenate(side) for side in zip(*changed_rows, strict=True))
    under_contrast = flips(stream, (base, contrast))
    names = [np.char.find(side.astype(str), "+") < 0 for side in stream.templates]
    jss = stream.agreement("mapped", names[0] & names[1])
    assert jss.jss is not None
    reordered = flips(stream, against_original(stream, f"{ORIGINAL}+{FIELDS_REVERSED}"))
    rows = stream.rows[log.template[stream.rows] == log.templates.index(ORIGINAL)]
    rows = rows[log.gold[rows] >= 0]
    right = float((log.decision[rows] == log.gold[rows]).mean())
    originals = np.unique(np.concatenate([base for base, _ in (*wordings, *changed_rows)]))
    return {
        "published": [stream.judge, *first, " / ".join(ratios)],
        "again": [
            stream.judge, str(len(seven)), *second,
            f"[{percent(any_5[1])}, {percent(any_5[2])}]",
            f"[{percent(asked_again[1])}, {percent(asked_again[2])}]",
        ],
        "own": [
            stream.judge,
            f"{percent(1 - jss.jss)} [{percent(1 - jss.ci_high)}, {percent(1 - jss.ci_low)}]",
            under_contrast["text"],
            f"{under_contrast['rate'] / (1 - jss.jss):.1f}",
            again["text"],
            again_hot["text"],
            reordered["text"],
            percent(right),
        ],
        "equal": n_first
        + n_second
        + (ratios[0] == ratios[1])
        + (len(seven) == headline["n_complete"]),
        "missing": int(log.undecided[log.raw[originals]].sum()),
        "ratio": under_contrast["rate"] / (1 - jss.jss),
        "their_ratio": ratios[1],
        "right": right,
        "items": len(rows),
        "constant": float((log.labels[log.gold[rows]] == "PASS").mean()),
        "clusters": len(np.unique(log.cluster[base])),
    }  # fmt: skip


def length_rows(scores: dict[str, Stream], known: dict[str, Any]) -> tuple[list[list[str]], int]:
    """A row per judge of how padding and condensing move its score, and the equal figures."""
    published = {(row["judge"], row["kind"]): row for row in known["I_verbosity"]}
    rows, equal = [], 0
    for judge in known["A_headline"]:
        stream, row = scores[judge], [judge]
        log = stream.log
        at = stream.rows[log.template[stream.rows] == log.templates.index(ORIGINAL)]
        at = at[(log.variant[at] == log.variants.index(REWORDING)) & ~log.undecided[log.raw[at]]]
        said = {log.items[log.item[r]]: (int(log.labels[log.raw[r]]), log.cluster[r]) for r in at}
        for kind in ("padded", "condensed"):
            both = [(name.rpartition("/")[0], name) for name in said if name.endswith(f"/{kind}")]
            moved = [(said[b][0] - said[a][0], said[a][1]) for a, b in both if a in said]
            drift = np.array([move for move, _ in moved], float)
            ends = mean_t_cluster(drift, [cluster for _, cluster in moved])
            theirs = published[judge, kind]
            texts = f"{theirs['mean_drift']:+.2f}", f"{drift.mean():+.2f}"
            equal += (texts[0] == texts[1]) + (theirs["n"] == len(drift))
            row += [str(len(drift)), " / ".join(texts), f"[{ends.low:+.2f}, {ends.high:+.2f}]"]
        rows.append(row)
    return rows, equal


def write(folder: Path) -> None:
    """Import the tables, measure, and write the page."""
    known = json.loads((folder / "supplementary.json").read_text("utf-8"))
    streams = {}
    with tempfile.TemporaryDirectory() as out:
        for pick in ("verdict", "score"):
            place = Path(out) / pick
            record = import_flakyjudge(folder, place, verdicts=pick == "verdict")
            run = read_run(place)
            streams[pick] = {s.judge: s for s in view(run.log, None, run.record).judged}
        report = measure_run(Path(out) / "verdict")
        cards = {card["judge"]: card for card in report["trust"]}
    judges = list(known["A_headline"])
    verdicts = streams["verdict"]
    found = {
        judge: judge_rows(verdicts[judge], verdicts[f"{judge}@T=1"], known) for judge in judges
    }
    lengths, n_equal = length_rows(streams["score"], known)
    counts = record["counts"]["criterion"]
    first = found[judges[0]]
    below = [judge for judge in judges if found[judge]["right"] < first["constant"]]
    n_equal += sum(row["equal"] for row in found.values())
    missing = [f"{row['missing']} of {judge}" for judge, row in found.items() if row["missing"]]
    write_csv(
        PAGE.with_suffix(".csv"),
        {
            "verdicts that change, published / from the log": table(
                ["judge", "reworded", "changed criterion", "asked again", "ratio"],
                [found[judge]["published"] for judge in judges],
            ),
            "any of several verdicts differs, published / from the log": table(
                ["judge", "items", "any of 7 wordings", "any of 5 wordings", "any of 5 reruns",
                 "95%, wordings", "95%, reruns"],
                [found[judge]["again"] for judge in judges],
            ),
            "score minus that of the original answer, published / from the log": table(
                ["judge", "items", "padded", "95%", "items", "condensed", "95%"], lengths
            ),
        },
    )  # fmt: skip
    PAGE.write_text(
        TEXT.format(
            rows=f"{sum(counts.values()):,}",
            own=table(
                ["judge", "another verdict, reworded", "changed criterion", "times",
                 "asked again, T = 0", "asked again, T = 1", "fields reordered", "right"],
                [found[judge]["own"] for judge in judges],
            ),
            cards=table(
                ["judge", "trust", *CHECKS],
                [card_row(cards[judge], CHECKS) for judge in judges],
            ),
            equal=n_equal,
            compared=len(judges) * 12,
            missing=" and ".join(missing),
            clusters=first["clusters"],
            items=first["items"],
            constant=percent(first["constant"]),
            below=f"{', '.join(below[:-1])} and {below[-1]}",
            llama=f"{found['llama-8b']['ratio']:.1f}",
        ).rstrip() + "\n",
        "utf-8",
    )  # fmt: skip


if __name__ == "__main__":
    write(Path(sys.argv[1]))
