"""CPU seconds of a report on one judge, many items and many wordings, without reading or writing.

    python benchmarks/many_wordings.py [--items 11000] [--wordings 26]

A judge answers YES or NO, rightly on four items of five, and flips under one wording in seven. All
pairs of wordings are compared: 325 pairs on each item with 26 wordings.
"""

from __future__ import annotations

import argparse
import resource

import numpy as np
import pyarrow as pa
from common import finish, machine

from judgesense.log.schema import SCHEMA
from judgesense.measure.assess import measure


def simulated(items: int, wordings: int) -> pa.Table:
    """The decision log of a judge by chance, one row for each item and wording."""
    rng = np.random.default_rng(0)
    gold = rng.random(items) < 0.5
    share = np.where(gold, 0.85, 0.2)
    usual = rng.random(items) < share
    kept = rng.random((wordings, items)) < 0.85
    decided = np.where(kept, usual, rng.random((wordings, items)) < share).ravel()
    item, n = np.tile(np.arange(items), wordings), items * wordings
    template = np.repeat(np.arange(wordings), items)
    words = np.array(["NO", "YES"])
    texts = {
        "judge": ["simulated"] * n,
        "task": ["fact"] * n,
        "scoring": ["generate"] * n,
        "prompt_id": [f"{t}-{i}" for t, i in zip(template, item, strict=True)],
        "item_id": [f"i{i}" for i in item],
        "template_id": [f"w{t:02}" for t in template],
        "order": ["-"] * n,
        "status": ["ok"] * n,
        "raw_decision": words[decided.astype(int)],
        "decision": words[decided.astype(int)],
        "gold": words[gold[item].astype(int)],
    }
    columns = {name: pa.array(values, pa.string()) for name, values in texts.items()}
    columns["repeat"] = pa.array(np.zeros(n, np.int32))
    nothing = {f.name: pa.nulls(n, f.type) for f in SCHEMA}
    return pa.table({**nothing, **columns}, schema=SCHEMA)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--items", type=int, default=11_000)
    parser.add_argument("--wordings", type=int, default=26)
    asked = parser.parse_args()
    log = simulated(asked.items, asked.wordings)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_utime
    measure(log, None, run={"run_id": "simulated"})
    used = resource.getrusage(resource.RUSAGE_SELF).ru_utime - before
    print(f"{asked.items:,} items, {asked.wordings} wordings: {used:.1f} user CPU seconds")
    finish(
        [
            {
                "name": "report of many wordings",
                "peer": "version 0.2",
                "ratio": round(used / 8.2, 3),
                "ours": round(used, 2),
                "theirs": 8.2,
                "unit": "CPU s",
                "n": log.num_rows,
                "machine": machine(),
            }
        ]
    )


if __name__ == "__main__":
    main()
