"""CPU time and peak memory of `report` and `import` on a large log, beside pandas and scikit-learn.

    python benchmarks/measuring.py [--rows 1000000] [--texts 10000]

The log has one judge, five wordings and both option orders; ``--texts`` gives every answer that
many characters. Each measurement is a process of its own, so its CPU seconds include imports. The
peer of `report` computes the point estimates that such a log is usually asked for, from the same
Parquet file: agreement and Cohen's kappa of each pair of wordings by option order, accuracy by
wording and order, and the share of first choices. `report` also computes the intervals, the trust
card, the tests of the wordings and the remedies. The peer of `import` is ``pandas.read_csv`` and
``to_parquet``, without a look at the values.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as csv
from common import finish, machine

WORDINGS, ORDERS = 5, ("AB", "BA")
SENTENCE = "The response is consistent with the source. "

REPORT_PEER = """
import itertools, sys
import pandas as pd
from sklearn.metrics import cohen_kappa_score
log = pd.read_parquet(sys.argv[1], columns=["item_id", "template_id", "order", "decision", "gold"])
wide = log.pivot(index=["item_id", "order"], columns="template_id", values="decision")
for order, own in [*wide.groupby(level="order"), ("both", wide)]:
    for a, b in itertools.combinations(wide.columns, 2):
        print(order, a, b, (own[a] == own[b]).mean(), cohen_kappa_score(own[a], own[b]))
log["right"], log["first"] = log["decision"] == log["gold"], log["decision"] == "A"
print(log.groupby(["template_id", "order"])[["right", "first"]].mean())
"""

IMPORT_PEER = """
import sys
import pandas as pd
pd.read_csv(sys.argv[1]).to_parquet(sys.argv[2])
"""


def write_log(path: Path, rows: int, characters: int) -> None:
    """A CSV file of decisions; a third of the items are hard, and answers differ there."""
    rng = np.random.default_rng(0)
    items = rows // (WORDINGS * len(ORDERS))
    item = np.repeat(np.arange(items), WORDINGS * len(ORDERS))
    wording = np.tile(np.repeat(np.arange(WORDINGS), len(ORDERS)), items)
    order = np.tile(np.arange(len(ORDERS)), items * WORDINGS)
    gold = rng.integers(0, 2, items)[item] ^ order
    skill = np.where(rng.random(items) < 0.3, 0.65, 0.95)[item]
    said = np.where(rng.random(len(item)) < skill, gold, 1 - gold)
    reasons = SENTENCE * (characters // len(SENTENCE))

    def words(codes: np.ndarray, names: list[str]) -> pa.Array:
        indices = pa.array(codes.astype(np.int32))
        return pa.DictionaryArray.from_arrays(indices, pa.array(names)).cast(pa.string())

    with csv.CSVWriter(path, _SCHEMA) as sink:
        for start in range(0, len(item), 10_000):
            own = slice(start, start + 10_000)
            decision = words(said[own], ["A", "B"])
            columns = {
                "judge": ["judge"] * len(decision),
                "task": ["preference"] * len(decision),
                "item_id": [f"item-{n}" for n in item[own].tolist()],
                "template_id": words(wording[own], [f"wording-{n}" for n in range(WORDINGS)]),
                "order": words(order[own], list(ORDERS)),
                "raw_decision": decision,
                "raw_text": [f"{reasons}Verdict: {word}" for word in decision.to_pylist()],
                "gold": words(gold[own], ["A", "B"]),
            }
            sink.write_table(pa.table(columns, schema=_SCHEMA))


_SCHEMA = pa.schema(
    (name, pa.string())
    for name in ("judge", "task", "item_id", "template_id", "order", "raw_decision", "raw_text",
                 "gold")
)  # fmt: skip


def cost(*command: str) -> tuple[float, float]:
    """CPU seconds and peak memory in GB of a process."""
    process = subprocess.Popen([sys.executable, *command], stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"{command[0]} ended with {os.waitstatus_to_exitcode(status)}")
    return used.ru_utime + used.ru_stime, used.ru_maxrss * 1024 / 1e9


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=50_000)
    parser.add_argument("--texts", type=int, default=0, help="characters of an answer")
    args = parser.parse_args()
    results = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        log, out = folder / "log.csv", folder / "run"
        write_log(log, args.rows, args.texts)
        program = ("-m", "judgesense")
        imported = cost(*program, "import", str(log), "--format", "table", "--out", str(out))
        read = cost("-c", IMPORT_PEER, str(log), str(folder / "log.parquet"))
        log.unlink()
        reported = cost(*program, "report", str(out), "--format", "json")
        peer = cost("-c", REPORT_PEER, str(out / "decisions"))
    about = {"n": args.rows, "machine": machine("pandas", "scikit-learn", "pyarrow")}
    for what, ours, theirs, against in (
        ("report", reported, peer, "pandas and cohen_kappa_score, point estimates only"),
        ("import", imported, read, "pandas read_csv and to_parquet"),
    ):
        for unit, mine, other in zip(("CPU seconds", "GB"), ours, theirs, strict=True):
            results.append(
                {"name": f"{what}, {unit}", "peer": against, "ratio": round(other / mine, 3),
                 "ours": round(mine, 2), "theirs": round(other, 2), "unit": unit,
                 "characters": args.texts, **about}
            )  # fmt: skip
            print(f"{what}: {mine:.2f} {unit}; {against}: {other:.2f}")
    finish(results)


if __name__ == "__main__":
    main()
