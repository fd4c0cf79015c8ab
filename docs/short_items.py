"""A dataset folder with the shortest items of each task, for judges on a slow machine.

    judgesense dataset build --source all --mirror MIRROR --limit all --no-match \\
        --design prompts --orders AB,BA --out real
    python docs/short_items.py real real-short --items 100 --wordings 1

An item is as long as its longest prompt. At most three items of a cluster are kept, and the first
wordings of each task.
"""

from __future__ import annotations

import argparse
import shutil
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

PER_CLUSTER = 3


def shortest(prompts: pa.Table, n: int) -> set[str]:
    """The ids of the n shortest items of a task's prompts."""
    length: dict[str, int] = {}
    cluster = {}
    for row in prompts.select(["item_id", "cluster_id", "text"]).to_pylist():
        length[row["item_id"]] = max(length.get(row["item_id"], 0), len(row["text"]))
        cluster[row["item_id"]] = row["cluster_id"]
    kept: Counter[str] = Counter()
    found = []
    for item in sorted(length, key=lambda item: (length[item], item)):
        if kept[cluster[item]] < PER_CLUSTER:
            kept[cluster[item]] += 1
            found.append(item)
    return set(found[:n])


def main() -> None:
    """Write the folder."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--items", type=int, default=100, help="items per task")
    parser.add_argument("--wordings", type=int, default=1, help="wordings per task")
    asked = parser.parse_args()
    (path,) = (asked.folder / "prompts").glob("*.parquet")
    prompts = pq.read_table(path)
    parts = []
    for task in pc.unique(prompts["task"]).to_pylist():
        own = prompts.filter(pc.equal(prompts["task"], task))
        wordings = sorted(pc.unique(own["template_id"]).to_pylist())[: asked.wordings]
        own = own.filter(pc.is_in(own["template_id"], pa.array(wordings)))
        own = own.filter(pc.is_in(own["item_id"], pa.array(sorted(shortest(own, asked.items)))))
        n_items = len(pc.unique(own["item_id"]))
        print(f"{task}: {n_items} items, {len(own)} prompts")
        parts.append(own)
    shutil.copytree(asked.folder, asked.out)
    pq.write_table(pa.concat_tables(parts), asked.out / path.relative_to(asked.folder))


if __name__ == "__main__":
    main()
