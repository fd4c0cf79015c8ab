"""Does a stabilised judge keep its promise on items that it was not fitted to?

    python benchmarks/stabilised_promise.py [RUN ... --task TASK --remedy REMEDY]

Each run's items are split into two halves, by cluster. A judge is stabilised on one half and judges
the other, with the model's logged answers in place of the model, then the other way round. The file
promises an accuracy, cross-fitted on its own half; the other half shows what it is worth. A half
"differs" if Fisher's exact test of the two has p < 0.05, which equal accuracies have in at most 5%
of halves. Without a run, it judges the embedded items with SmolLM2-135M first (about 2 minutes on
2 cores).
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from common import finish, machine
from scipy.stats import fisher_exact

import judgesense
from judgesense.errors import JudgeSenseError
from judgesense.log.folder import Run, read_run
from local_judges.callable_judge import CallableJudge
from local_judges.combined import StabilisedJudge
from local_judges.protocol import Request
from local_judges.rows import decide
from local_judges.runner import ask_all
from local_judges.stabilised_file import Stabilised

_KEPT = ("run_id", "tasks", "asked", "judges", "dataset", "data_hash", "aliases")


def replay(run: Run, judge: str, task: str) -> CallableJudge:
    """A judge that answers as the run's judge did."""
    log = run.log
    own = log.filter(
        pc.and_(
            pc.and_(pc.equal(log["judge"], judge), pc.equal(log["task"], task)),
            pc.equal(log["scoring"], "options"),
        )
    )
    said = {
        prompt: {each["option"]: each["logprob"] for each in told}
        for prompt, told in zip(
            own["prompt_id"].to_pylist(), own["option_logprobs"].to_pylist(), strict=True
        )
        if told
    }
    assert run.prompts is not None
    texts = dict(
        zip(run.prompts["text"].to_pylist(), run.prompts["prompt_id"].to_pylist(), strict=True)
    )
    found = CallableJudge(
        lambda messages: [said[texts[message]] for message in messages], scoring="options"
    )
    found.name = judge
    return found


def part(run: Run, clusters: set[str], folder: Path) -> Path:
    """A copy of the run with some of its clusters."""
    (folder / "decisions").mkdir(parents=True)
    assert run.prompts is not None
    assert run.pairs is not None
    for name, table in (
        ("decisions/part-00000.parquet", run.log),
        ("pairs.parquet", run.pairs),
        ("prompts.parquet", run.prompts),
    ):
        own = pa.array(sorted(clusters), pa.string())
        pq.write_table(table.filter(pc.is_in(table["cluster_id"], own)), folder / name)
    record = {key: run.record[key] for key in _KEPT if key in run.record}
    (folder / "run.json").write_text(json.dumps(record))
    return folder


def found(run: Run, file: Stabilised, clusters: set[str], judge: CallableJudge) -> tuple[int, int]:
    """Right verdicts on the items of some clusters, and the items."""
    assert run.prompts is not None
    (order, *_), (wording, *_) = file.rule.orders, file.rule.wordings
    rows = [
        row
        for row in run.prompts.to_pylist()
        if row["template_id"] == wording
        and row["order"] == order
        and row["cluster_id"] in clusters
        and row["gold"] is not None
    ]
    own = StabilisedJudge(file, judge)
    options = tuple(json.loads(rows[0]["label_map"]))
    requests = [Request(row["prompt_id"], row["text"], options) for row in rows]
    right = n = 0
    for row, answer in zip(rows, ask_all(own, requests, frozenset({file.scoring})), strict=True):
        said = json.loads(row["label_map"]).get(decide(answer, file.scoring, options))
        right, n = right + (said == row["gold"]), n + 1
    return right, n


def differs(side: Mapping[str, Any]) -> bool:
    """Whether the accuracy found differs from the promised one."""
    told = round(side["accuracy"] * side["items"])
    table = [[side["right"], side["n"] - side["right"]], [told, side["items"] - told]]
    return bool(fisher_exact(table).pvalue < 0.05)


def halves(folder: Path, judge: str, task: str, remedy: str | None) -> dict[str, Any]:
    """The promised and the found accuracy over both splits of a run."""
    run = read_run(folder)
    log = run.log.filter(pc.equal(run.log["task"], task))
    # Items that were asked in every wording and order, so that no prompt is missing.
    counts = {
        each["values"]: each["counts"] for each in pc.value_counts(log["item_id"]).to_pylist()
    }
    of = dict(zip(log["item_id"].to_pylist(), log["cluster_id"].to_pylist(), strict=True))
    whole = {of[item] for item, n in counts.items() if n == max(counts.values())}
    names = np.array(sorted(whole))[np.random.default_rng(0).permutation(len(whole))].tolist()
    answers = replay(run, judge, task)
    sides: list[dict[str, Any]] = []
    for own, other in ((names[::2], names[1::2]), (names[1::2], names[::2])):
        with tempfile.TemporaryDirectory() as place:
            made = judgesense.stabilise(
                part(run, set(own), Path(place) / "run"),
                judge=judge,
                task=task,
                remedy=remedy,
                out=Path(place) / "stable.yaml",
                scoring="options",
            )
        right, n = found(run, made, set(other), answers)
        told = made.expected
        sides.append({"remedy": made.rule.remedy, "right": right, "n": n, **told})
    promised = sum(side["accuracy"] * side["items"] for side in sides)
    return {
        "judge": judge,
        "task": task,
        "remedy": " | ".join(dict.fromkeys(side["remedy"] for side in sides)),
        "promised": promised / sum(side["items"] for side in sides),
        "found": sum(side["right"] for side in sides) / sum(side["n"] for side in sides),
        "n": sum(side["n"] for side in sides),
        "differ": sum(differs(side) for side in sides),
    }


def main() -> None:
    """Print a table, then one line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("runs", nargs="*", type=Path)
    parser.add_argument("--task", action="append")
    parser.add_argument("--remedy", default="calibrated")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        runs = asked.runs
        if not runs:
            runs = [Path(place) / "run"]
            judgesense.run(
                "smollm2-135m", tasks=["relevance", "factuality"], scoring="options", out=runs[0]
            )
        rows = []
        for folder in runs:
            log = read_run(folder).log
            asked_of = zip(log["judge"].to_pylist(), log["task"].to_pylist(), strict=True)
            for judge, task in sorted(set(asked_of)):
                if asked.task is None or task in asked.task:
                    try:
                        rows.append(halves(folder, judge, task, asked.remedy))
                    except JudgeSenseError as error:
                        print(f"{judge} {task}: {error}")
    print("| judge | task | remedy | promised | found | items | halves that differ |")
    print("| --- | --- | --- | ---: | ---: | ---: | ---: |")
    for row in rows:
        print(
            f"| {row['judge']} | {row['task']} | {row['remedy']} | {row['promised']:.1%} | "
            f"{row['found']:.1%} | {row['n']} | {row['differ']} of 2 |"
        )
    n = sum(row["n"] for row in rows)
    gap = sum((row["found"] - row["promised"]) * row["n"] for row in rows) / n
    differ = sum(row["differ"] for row in rows)
    print(
        f"\nFound minus promised: {gap:+.1%}, {n} items. {differ} of {2 * len(rows)} halves differ."
    )
    finish(
        [
            {
                "name": f"accuracy on new items, {row['judge'].split('@')[0]} on {row['task']}",
                "peer": "the accuracy that the file promises",
                "ratio": row["found"] / row["promised"],
                "ours": row["found"],
                "theirs": row["promised"],
                "unit": "share",
                "n": row["n"],
                "machine": machine(),
            }
            for row in rows
        ]
    )


if __name__ == "__main__":
    main()
