"""The published intervals of factuality JSS beside intervals that treat items as the sample.

The published figures come from the first version of the JudgeSense paper and data. Its authors
withdrew that version in August 2026 and advise against using it.

    python benchmarks/published_intervals.py FOLDER

FOLDER contains `metrics_summary.json`, `factuality.jsonl` and `factuality_pair_flip_overlap.csv` of
that version. The default is `$JUDGESENSE_SHARED/published`.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
from pathlib import Path

import numpy as np

from judgesense.statistics.intervals import wilson_cluster
from judgesense.statistics.resampling import bootstrap_mean


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    shared = Path(os.environ.get("JUDGESENSE_SHARED", Path(__file__).parents[2] / "shared"))
    parser.add_argument("folder", nargs="?", type=Path, default=shared / "published")
    folder = parser.parse_args().folder
    if not (folder / "metrics_summary.json").is_file():
        print(f"{folder} has no metrics_summary.json: nothing to compare with")
        print("[]")
        return
    print("The published figures are from a version that its authors withdrew in August 2026.\n")
    summary = json.loads((folder / "metrics_summary.json").read_text())
    lines = (folder / "factuality.jsonl").read_text().splitlines()
    rows = [json.loads(line) for line in lines]
    item = {row["pair_id"]: row["response_being_judged"] for row in rows}
    with (folder / "factuality_pair_flip_overlap.csv").open(newline="") as file:
        pairs = list(csv.DictReader(file))
    prompts = {row["pair_id"]: (row["prompt_a"], row["prompt_b"]) for row in rows}
    # A repeated pair of prompts is no further evidence: it counts once, as most of its rows do.
    members: dict[tuple[str, str], list[int]] = {}
    for at, row in enumerate(pairs):
        members.setdefault(prompts[row["pair_id"]], []).append(at)
    items = [item[pairs[own[0]]["pair_id"]] for own in members.values()]
    out: list[dict[str, object]] = []

    gaps = []
    for tasks in summary.values():
        for cell in tasks.values():
            ours = bootstrap_mean(np.arange(cell["n_pairs"]) >= cell["n_flips"])
            gaps += [abs(ours.low - cell["ci_lower"]), abs(ours.high - cell["ci_upper"])]
    print(
        f"Row-wise percentile bootstrap from JSS and n: {len(gaps) // 2} published intervals, "
        f"largest difference at an end {max(gaps):.4f}\n"
    )
    name = "published intervals reproduced, largest difference of an end"
    out.append({"name": name, "ours": max(gaps), "unit": "JSS", "n": len(gaps) // 2})

    print(
        f"{len(pairs)} rows are {len(members)} distinct pairs on {len(set(items))} items; each "
        "pair counts once"
    )
    print("| judge | published JSS (n) | published interval | JSS | by item | pairs it is worth |")
    print("| --- | --- | --- | --- | --- | --- |")
    for judge, tasks in summary.items():
        cell = tasks["factuality"]
        same = np.array([judge not in row["flipping_models"].split(",") for row in pairs])
        means = np.array([same[own].mean() for own in members.values()])
        agree = means >= 0.5
        ties = int((means == 0.5).sum())
        mixed = int(((means > 0) & (means < 1)).sum())
        ours = wilson_cluster(agree, items)
        print(
            f"| {judge} | {cell['jss']:.4f} ({cell['n_pairs']}) "
            f"| {cell['ci_lower']:.3f}–{cell['ci_upper']:.3f} | {agree.mean():.4f} "
            f"| {ours.low:.3f}–{ours.high:.3f} | {ours.effective_n:.0f} |"
            + (f" pairs whose rows differ: {mixed}, tied: {ties}" if mixed else "")
        )
        out.append(
            {
                "name": f"width of the factuality interval by item, {judge}",
                "peer": "published row-wise bootstrap",
                "ratio": round((ours.high - ours.low) / (cell["ci_upper"] - cell["ci_lower"]), 2),
                "ours": ours.high - ours.low,
                "theirs": cell["ci_upper"] - cell["ci_lower"],
                "unit": "JSS",
                "n": len(members),
            }
        )
    print(json.dumps(out))


if __name__ == "__main__":
    main()
