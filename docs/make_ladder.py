"""The table of docs/data/embedded.md: do easy items get more right verdicts than hard ones?

    python docs/make_ladder.py RUN...

Each RUN is the folder of a run on the embedded benchmark with options scoring. A judge that prefers
an option is right on half of the items on every step, so the table also shows the judge with its
preference taken out: both orders averaged for A/B tasks, calibrated (cross-fitted) for the others.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from page_tables import percent, table

from judgesense.files.tables import read_table
from judgesense.log.answers import Answers
from judgesense.log.array import NOT_ASKED, array_of
from judgesense.log.folder import read_run
from judgesense.log.view import view
from judgesense.measure.remedies import units_of
from judgesense.measure.wordings import Wordings
from judgesense.recipes.fitting import recipe_named
from judgesense.recipes.recipe import AS_ASKED
from judgesense.statistics.intervals import wilson_cluster
from judgesense.statistics.selection import folds_of
from judgesense.text import short_names
from judgesense_dataset.templates import DATA

STEPS = ("easy", "medium", "hard")
_KEYS = ("judge", "scoring", "prompt_id", "item_id", "template_id", "order", "repeat", "variant")
Share = tuple[float, float, float]
"""A share of right verdicts with the ends of its interval."""


def steps_of(task: str) -> dict[str, str]:
    """The step of each item of a task."""
    rows = (record.values for record in read_table(DATA / f"{task}.jsonl"))
    return {str(row["item_id"]): str(row["difficulty"]) for row in rows}


def shares(answers: Answers, remedy: str) -> tuple[dict[str, Share], int]:
    """The share of right verdicts on each step, over wordings and orders, clustered by item; and
    the number of items."""
    array = array_of(answers, Wordings.of(answers).mislabelled)
    units = units_of(array, recipe_named(remedy, array), folds_of(array.clusters))
    codes = np.stack([unit.codes for unit in units], axis=1)
    asked = codes != NOT_ASKED
    hits = codes == array.gold[:, None]
    step_of = steps_of(array.task.name)
    own = np.array([step_of[item] for item in array.items])
    found = {}
    for step in STEPS:
        here = asked & (own == step)[:, None]
        if not here.any():
            continue
        clusters = np.broadcast_to(array.clusters[:, None], codes.shape)[here]
        ends = wilson_cluster(hits[here], clusters)
        assert ends.low is not None
        assert ends.high is not None
        found[step] = (float(hits[here].mean()), ends.low, ends.high)
    return found, len(array)


def cell(share: Share | None) -> str:
    """A share with its interval in percent; - for a step without items."""
    if share is None:
        return "-"
    value, low, high = (percent(part, 0) for part in share)
    return f"{value} [{low}, {high}]"


def difference(more: Share, less: Share) -> str:
    """Easy minus hard in points, with Newcombe's interval from those of the two shares."""
    gap = more[0] - less[0]
    low = gap - math.hypot(more[0] - more[1], less[2] - less[0])
    high = gap + math.hypot(more[2] - more[0], less[0] - less[1])
    return f"{100 * gap:+.0f} [{100 * low:+.0f}, {100 * high:+.0f}]".replace("-", "−")


def judged(folders: Sequence[Path]) -> list[Answers]:
    """The streams of all runs; a prompt that a judge was asked in two runs counts once."""
    runs = [read_run(folder) for folder in folders]
    log = pa.concat_tables([run.log for run in runs], promote_options="default")
    log = log.filter(pc.equal(log["scoring"], "options"))
    keys = zip(*(log[name].to_pylist() for name in _KEYS), strict=True)
    first = {key: n for n, key in reversed(list(enumerate(keys)))}
    pairs = pa.concat_tables([run.pairs for run in runs if run.pairs is not None])
    ids = pairs["pair_id"].to_pylist()
    kept = {key: n for n, key in reversed(list(enumerate(ids)))}
    record = {**runs[0].record, "tasks": {}}
    for run in runs:
        record["tasks"] |= run.record["tasks"]
    return list(
        view(log.take(sorted(first.values())), pairs.take(sorted(kept.values())), record).judged
    )


def main() -> None:
    """Print the table for the runs named as arguments."""
    streams = judged([Path(name) for name in sys.argv[1:]])
    short = short_names(sorted({stream.judge for stream in streams}))
    lines = []
    for stream in streams:
        cure = "both orders" if stream.task.comparative else "calibrated"
        for remedy in (AS_ASKED, cure):
            found, n_items = shares(stream, remedy)
            cells = [cell(found.get(step)) for step in STEPS]
            judge = short[stream.judge].partition("@")[0]
            ends = found.get("easy"), found.get("hard")
            gap = difference(*ends) if ends[0] and ends[1] else "-"
            lines.append([stream.task.name, judge, str(n_items), remedy, *cells, gap])
    heads = ["task", "judge", "items", "asked", *STEPS, "easy − hard"]
    print(table(heads, sorted(lines)))


if __name__ == "__main__":
    main()
