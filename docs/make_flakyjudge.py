"""Write ``docs/results/flakyjudge.md``: ``python docs/make_flakyjudge.py FOLDER``.

FOLDER holds flakyjudge's tables. They are imported, each judge is measured, and the figures are
compared with the published ones in ``supplementary.json`` beside the tables.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from judgesense.decisions.streams import Stream, agreement, view
from judgesense.importers import import_log
from judgesense.importers.flakyjudge import CONTROLS, FIELDS_REVERSED, ORIGINAL
from judgesense.run_folder import read_run

PAGE = Path(__file__).parent / "results" / "flakyjudge.md"
REWORDINGS = (
    "lexical", "syntactic", "register_formal", "register_casual", "form_question",
    "form_imperative",
)  # fmt: skip

TEXT = """# flakyjudge: rewordings against changed criteria

[flakyjudge](https://github.com/ShivaSankeerth/flakyjudge) (MIT; 28,644 scores of six judges)
asked each judge to score answers from 1 to 5 by a criterion, such as "Is the response creative?",
and calls a score above 2.5 a pass. It asked about 150 items in up to seven wordings and with two
*controls*, a negated and a swapped criterion. The verdict should stay under rewording, and change
under a control.

This page is written by one command:

```bash
python docs/make_flakyjudge.py ../shared/logs/flakyjudge
```

It imports the tables (`judgesense import logs/flakyjudge --format flakyjudge --pick verdict --out
flaky`: {rows} decisions, {unclear} of them UNCLEAR) and reads every figure from the imported log.

## The published figures

Verdicts that differ from the one on the original wording, in percent. *Published* is from
flakyjudge's `supplementary.json`; *log* is the same figure from the imported log.

{published}

Four judges agree to the last digit. claude-haiku and claude-sonnet have missing scores and differ
by at most {apart} points: flakyjudge counts a missing score on the original wording as a fail (1
and 14 items) and leaves out items without all five repeats; here a comparison is left out if
either score is missing. In both, each kind of rewording or control has the same weight. "Asked
again" compares the first of five identical prompts at temperature 0 with the other four.

## What JudgeSense makes of it

{own}

95% intervals, clustered by the {clusters} queries, in brackets.

- **another verdict, reworded**: 1 − JSS over all pairs of the seven wordings.
- **changed criterion**: both controls against the original wording. A judge that reads the
  criterion has a far larger figure here than under rewording; *times* is their ratio. llama-8b
  has {llama}: it looks steady because it hardly reads the criterion.
- **asked again**: the first of five identical prompts against the other four, at temperature 0
  and 1.
- **fields reordered**: criterion, query, response instead of query, response, criterion. It moves
  more verdicts than a rewording does, except those of claude-sonnet.
- **right**: verdicts on the original wording that equal people's (mean rating above 2.5), over
  {items} items. Always saying PASS is right in {constant}% of them; {below} are below that.
"""


def percent(share: float | None, digits: int = 1) -> str:
    """A share as a percentage."""
    return "-" if share is None else f"{100 * share:.{digits}f}"


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table with numbers on the right."""
    lines = [heads, ["---", *["---:"] * (len(heads) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


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
    """The mean over kinds of how often the verdict differs."""
    return float(np.mean([flips(stream, kind)["rate"] for kind in kinds]))


def judge_rows(stream: Stream, hot: Stream, known: dict[str, Any]) -> dict[str, Any]:
    """A judge's rows of both tables, and the figures that the text names."""
    log = stream.log
    reworded = mean_flips(stream, [against_original(stream, name) for name in REWORDINGS])
    changed = mean_flips(stream, controls(stream))
    assert stream.reruns is not None
    assert hot.reruns is not None
    again, again_hot = flips(stream, stream.reruns), flips(hot, hot.reruns)
    base, contrast = (np.concatenate(side) for side in zip(*controls(stream), strict=True))
    under_contrast = flips(stream, (base, contrast))
    names = [np.char.find(side.astype(str), "+") < 0 for side in stream.templates]
    jss = stream.agreement("mapped", names[0] & names[1])
    assert jss.jss is not None
    reordered = flips(stream, against_original(stream, f"{ORIGINAL}+{FIELDS_REVERSED}"))
    rows = stream.rows[log.template[stream.rows] == log.templates.index(ORIGINAL)]
    rows = rows[log.gold[rows] >= 0]
    ratio = under_contrast["rate"] / (1 - jss.jss)
    resolution, headline = known["B_resolution"][stream.judge], known["A_headline"][stream.judge]
    published = [resolution["per_variant_paraphrase"], resolution["per_variant_control"]]
    published.append(headline["per_variant_floor"])
    own = [reworded, changed, again["rate"]]
    right = float((log.decision[rows] == log.gold[rows]).mean())
    return {
        "published": [
            stream.judge,
            *(percent(x, 2) for both in zip(published, own, strict=True) for x in both),
        ],
        "own": [
            stream.judge,
            f"{percent(1 - jss.jss)} [{percent(1 - jss.ci_high)}, {percent(1 - jss.ci_low)}]",
            under_contrast["text"],
            f"{ratio:.1f}",
            again["text"],
            again_hot["text"],
            reordered["text"],
            percent(right),
        ],
        "apart": max(abs(a - b) for a, b in zip(published, own, strict=True)),
        "ratio": ratio,
        "right": right,
        "items": len(rows),
        "constant": float((log.labels[log.gold[rows]] == "PASS").mean()),
        "clusters": len(np.unique(log.cluster[base])),
    }


def write(folder: Path) -> None:
    """Import the tables, measure, and write the page."""
    known = json.loads((folder / "supplementary.json").read_text("utf-8"))
    with tempfile.TemporaryDirectory() as out:
        record = import_log(folder, "flakyjudge", Path(out) / "flaky", pick="verdict")
        run = read_run(Path(out) / "flaky")
        streams = {stream.judge: stream for stream in view(run.log, None, run.record).judged}
    judges = list(known["A_headline"])
    found = {judge: judge_rows(streams[judge], streams[f"{judge}@T=1"], known) for judge in judges}
    counts = record["counts"]["criterion"]
    first = found[judges[0]]
    below = [judge for judge in judges if found[judge]["right"] < first["constant"]]
    PAGE.write_text(
        TEXT.format(
            rows=f"{sum(counts.values()):,}",
            unclear=counts["unclear"],
            published=table(
                ["judge", "reworded, published", "log", "changed criterion, published", "log",
                 "asked again, published", "log"],
                [found[judge]["published"] for judge in judges],
            ),
            own=table(
                ["judge", "another verdict, reworded", "changed criterion", "times",
                 "asked again, T = 0", "asked again, T = 1", "fields reordered", "right"],
                [found[judge]["own"] for judge in judges],
            ),
            clusters=first["clusters"],
            items=first["items"],
            constant=percent(first["constant"]),
            apart=percent(max(row["apart"] for row in found.values())),
            below=f"{', '.join(below[:-1])} and {below[-1]}",
            llama=f"{found['llama-8b']['ratio']:.1f}",
        ).rstrip() + "\n",
        "utf-8",
    )  # fmt: skip


if __name__ == "__main__":
    write(Path(sys.argv[1]))
