"""A dataset folder with the shortest items of each task, for judges on a slow machine.

    judgesense dataset build --source all --mirror MIRROR --limit all \\
        --design prompts --orders AB,BA --out real
    python docs/short_items.py real real-short --items 100 --wordings 1 --words 60

An item is as long as its longest prompt. At most three items of a cluster are kept, and the first
wordings of each task. The passages of the task relevance are cut to their first ``--words`` words.
"""

from __future__ import annotations

import argparse
import shutil
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from judgesense.tasks import Item, prompt_id, render
from judgesense_dataset.recognition import known_tasks, recognise

PER_CLUSTER = 3
CUT = "relevance"


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


def cut(prompts: pa.Table, words: int) -> pa.Table:
    """The prompts of a task with their passages cut."""
    rows = prompts.to_pylist()
    for row in rows:
        task = known_tasks()[row["task"]].task
        known = recognise(row["task"], row["text"])
        assert known is not None
        template, fields = known
        passages = set(task.options.values())
        shown = {
            name: " ".join(text.split()[:words]) if name in passages else text
            for name, text in fields.items()
        }
        # The fields are as shown, in either order.
        row["text"] = render(task, template, Item(row["item_id"], task.name, shown), "AB").text
        row["prompt_id"] = prompt_id(row["text"])
    return pa.Table.from_pylist(rows, schema=prompts.schema)


def main() -> None:
    """Write the folder."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--items", type=int, default=100, help="items per task")
    parser.add_argument("--wordings", type=int, default=1, help="wordings per task")
    parser.add_argument("--words", type=int, help="words per passage (relevance)")
    asked = parser.parse_args()
    (path,) = (asked.folder / "prompts").glob("*.parquet")
    prompts = pq.read_table(path)
    parts = []
    for task in pc.unique(prompts["task"]).to_pylist():
        own = prompts.filter(pc.equal(prompts["task"], task))
        wordings = sorted(pc.unique(own["template_id"]).to_pylist())[: asked.wordings]
        own = own.filter(pc.is_in(own["template_id"], pa.array(wordings)))
        own = own.filter(pc.is_in(own["item_id"], pa.array(sorted(shortest(own, asked.items)))))
        if task == CUT and asked.words:
            own = cut(own, asked.words)
        n_items = len(pc.unique(own["item_id"]))
        print(f"{task}: {n_items} items, {len(own)} prompts")
        parts.append(own)
    shutil.copytree(asked.folder, asked.out)
    pq.write_table(pa.concat_tables(parts), asked.out / path.relative_to(asked.folder))


if __name__ == "__main__":
    main()
