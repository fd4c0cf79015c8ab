"""Monitor a judge of flakyjudge's logs whose temperature is raised, for docs/updates.md.

    python docs/make_updates.py ../shared/logs/flakyjudge [--judge llama-8b]

The baseline has the original and the reworded criteria. Looks 1 to 4 are later answers to the
original prompts at temperature 0, looks 5 to 9 the answers at temperature 1.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
from recipes import import_flakyjudge

import judgesense
from judgesense.run_folder.folder import read_run

COLUMNS = {"item_id": "item_id", "cluster_id": "cluster_id", "task": "task",
           "template_id": "wording", "judge": "judge", "decision": "verdict"}  # fmt: skip


def answers(log: pa.Table, judge: str, repeat: int) -> pa.Table:
    """A judge's verdicts on the plain prompts, without changed criteria or fields."""
    kept = pc.and_(pc.equal(log["judge"], judge), pc.equal(log["repeat"], repeat))
    kept = pc.and_(kept, pc.equal(log["variant"], "rewording"))
    own = log.filter(kept).select(list(COLUMNS))
    return own.rename_columns(list(COLUMNS.values()))


def main() -> None:
    """Look nine times and print what each look says."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("logs", type=Path)
    parser.add_argument("--judge", default="llama-8b")
    options = parser.parse_args()
    judge = options.judge
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        import_flakyjudge(options.logs, folder / "log", verdicts=False)
        log = read_run(folder / "log").log
        base = answers(log, judge, 0)
        looks = [answers(log, judge, repeat) for repeat in range(1, 5)]
        looks += [answers(log, f"{judge}@T=1", repeat) for repeat in range(5)]
        pa.csv.write_csv(base, folder / "baseline.csv")
        for number, look in enumerate(looks, 1):
            week = folder / f"week-{number}.csv"
            pa.csv.write_csv(look, week)
            found = judgesense.monitor(week, against=folder / "baseline.csv")
            print(found.tasks[0].text)


if __name__ == "__main__":
    main()
