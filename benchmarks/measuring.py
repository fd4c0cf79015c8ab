"""CPU time, peak memory and growth of the commands that read large logs.

    python benchmarks/measuring.py [--rows 1000000] [--texts 10000] [--only import,report]

Each measurement is a process of its own, so its CPU seconds include imports. A command runs on
files of ``rows``, ``rows / 10`` and ``rows / 100`` rows. From the three times t, from the smallest
file on, follows the growth: log10((t3 - t2) / (t2 - t1)), in which the start cancels; it is 1 where
time is linear in rows. The files are described in ``large/``; ``--texts`` gives every answer of the
log behind `import` and `report` that many characters.

Peers read the same file. That of `report` computes the point estimates that such a log is usually
asked for: agreement and Cohen's kappa of each pair of wordings by option order, accuracy by wording
and order, and the share of first choices. `report` also computes the intervals, the trust card, the
tests of the wordings and the remedies. The peers of the other commands read the file with pandas
and group or write it, without a look at the values.
"""

from __future__ import annotations

import argparse
import math
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import large
from common import finish, machine

from judgesense_dataset.embedded import TEMPLATES

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

TABLE_PEER = """
import sys
import pandas as pd
pd.read_csv(sys.argv[1]).to_parquet(sys.argv[2])
"""


GROUP_PEER = """
import sys
import pandas as pd
print(pd.read_csv(sys.argv[1]).groupby(["system_id", "verdict"]).size())
"""

JUDGE = """
import sys
from judgesense.pipeline.verdicts import judge_items
from local_judges.callable_judge import CallableJudge
judge = CallableJudge(lambda messages: ["A"] * len(messages), name="first")
judge_items(sys.argv[1], judge, sys.argv[2], task="preference", scoring="generate", note=str)
"""

PROGRAM = ("-m", "judgesense")
Command = tuple[str, ...]


@dataclass(frozen=True)
class Measured:
    """What a size's measurements need: the folder, the rows, and characters of an answer."""

    folder: Path
    rows: int
    characters: int


@dataclass(frozen=True)
class Case:
    """A command to measure.

    ``prepare`` writes its files and returns the command, and the peer's if it has one. Conclusions
    have exit codes of their own: ``fine`` are those that do not mean failure.
    """

    name: str
    prepare: Callable[[Measured], tuple[Command, Command | None]]
    peer: str | None = None
    fine: tuple[int, ...] = (0,)


def log_of(to: Measured) -> Path:
    """The CSV log of one judge."""
    path = to.folder / "log.csv"
    if not path.exists():
        large.write_log(path, large.Verdicts(to.rows), to.characters)
    return path


def run_of(to: Measured, name: str = "run", update: float = 0.0, *, sure: bool = False) -> Path:
    """The folder of an imported log; ``sure`` logs have log-probabilities."""
    out = to.folder / name
    if out.exists():
        return out
    verdicts = large.Verdicts(to.rows, update)
    if sure:
        log = to.folder / f"{name}.parquet"
        large.write_probabilities(log, verdicts)
    elif update or to.characters == 0:
        log = to.folder / f"{name}.csv"
        large.write_log(log, verdicts)
    else:
        log = log_of(to)
    cost(*PROGRAM, "import", str(log), "--format", "table", "--out", str(out))
    log.unlink()
    return out


def import_table(to: Measured) -> tuple[Command, Command | None]:
    """A CSV file of decisions."""
    log = str(log_of(to))
    ours = (*PROGRAM, "import", log, "--format", "table", "--out", str(to.folder / "imported"))
    return ours, ("-c", TABLE_PEER, log, str(to.folder / "log.parquet"))


def report(to: Measured) -> tuple[Command, Command | None]:
    """The report of an imported log."""
    run = run_of(to)
    ours = (*PROGRAM, "report", str(run), "--format", "json")
    return ours, ("-c", REPORT_PEER, str(run / "decisions"))


def report_options(to: Measured) -> tuple[Command, Command | None]:
    """The report of a log with log-probabilities: it also measures the remedies."""
    run = run_of(to, "sure", sure=True)
    ours = (*PROGRAM, "report", str(run), "--format", "json")
    return ours, ("-c", REPORT_PEER, str(run / "decisions"))


def compare(to: Measured) -> tuple[Command, Command | None]:
    """Two runs of the same size."""
    return (*PROGRAM, "compare", str(run_of(to)), str(run_of(to, "later", 0.2))), None


def migration(to: Measured) -> tuple[Command, Command | None]:
    """One judge before and after an update."""
    first, second = str(run_of(to)), str(run_of(to, "later", 0.2))
    return (*PROGRAM, "compare", first, second, "--migration"), None


def monitor(to: Measured) -> tuple[Command, Command | None]:
    """The first look after a baseline."""
    first, second = str(run_of(to)), str(run_of(to, "later", 0.2))
    return (*PROGRAM, "monitor", second, "--against", first), None


def stabilise(to: Measured) -> tuple[Command, Command | None]:
    """The remedy of calibrated options on both orders."""
    run, out = str(run_of(to, "sure", sure=True)), str(to.folder / "stable.yaml")
    told = ("--remedy", "both orders", "--templates", str(TEMPLATES))
    return (*PROGRAM, "stabilise", run, "--out", out, *told), None


def judge(to: Measured) -> tuple[Command, Command | None]:
    """Items to verdicts by a function that answers at once: what judging costs beside the model."""
    items = to.folder / "items.jsonl"
    large.write_items(items, to.rows)
    return ("-c", JUDGE, str(items), str(to.folder / "verdicts.parquet")), None


def estimate(to: Measured) -> tuple[Command, Command | None]:
    """Verdicts on four systems, 2% labelled."""
    verdicts, labels = to.folder / "verdicts.csv", to.folder / "labels.csv"
    large.write_systems(verdicts, labels, to.rows)
    ours = (*PROGRAM, "estimate", str(verdicts), "--labels", str(labels), "--positive", "PASS")
    return ours, ("-c", GROUP_PEER, str(verdicts))


def match(to: Measured) -> tuple[Command, Command | None]:
    """Short responses by F1."""
    log = to.folder / "responses.parquet"
    large.write_responses(log, to.rows)
    return (*PROGRAM, "match", str(log), "-m", "f1"), None


def audit(to: Measured) -> tuple[Command, Command | None]:
    """A dataset of pairs."""
    large.write_dataset(to.folder / "dataset", to.rows)
    return (*PROGRAM, "dataset", "audit", str(to.folder / "dataset")), None


GROUPED = "pandas read_csv and groupby"
CASES = (
    Case("import, table", import_table, "pandas read_csv and to_parquet"),
    Case("report", report, "pandas and cohen_kappa_score, point estimates only"),
    Case("report, options", report_options, "pandas and cohen_kappa_score, point estimates only"),
    Case("compare", compare),
    Case("compare --migration", migration, fine=(0, 1, 3)),
    Case("monitor", monitor, fine=(0, 1, 3)),
    Case("stabilise", stabilise),
    Case("judge", judge),
    Case("estimate", estimate, GROUPED),
    Case("match -m f1", match),
    Case("dataset audit", audit, fine=(0, 1)),
)


def cost(*command: str, fine: Sequence[int] = (0,)) -> tuple[float, float]:
    """CPU seconds and peak memory in GB of a process."""
    process = subprocess.Popen([sys.executable, *command], stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    if (code := os.waitstatus_to_exitcode(status)) not in fine:
        raise SystemExit(f"{' '.join(command)} ended with {code}")
    return used.ru_utime + used.ru_stime, used.ru_maxrss * 1024 / 1e9


def growth(times: Sequence[float]) -> float | None:
    """The exponent of time in rows, from three sizes a factor of ten apart."""
    first, second, third = times
    return (
        round(math.log10((third - second) / (second - first)), 2)
        if third > second > first
        else None
    )


def measure(case: Case, rows: int, characters: int) -> list[dict[str, Any]]:
    """The case's figures, CPU seconds and memory."""
    ours, theirs = [], []
    for size in (rows // 100, rows // 10, rows):
        folder = Path(tempfile.mkdtemp())
        try:
            mine, other = case.prepare(Measured(folder, size, characters))
            ours.append(cost(*mine, fine=case.fine))
            theirs.append(cost(*other) if other else None)
        finally:
            shutil.rmtree(folder)
        print(f"{case.name}, {size} rows: {ours[-1]}; peer: {theirs[-1]}", flush=True)
    found = []
    for at, unit in enumerate(("CPU seconds", "GB")):
        mine = [one[at] for one in ours]
        peer = theirs[-1]
        found.append(
            {
                "name": f"{case.name}, {unit}",
                "peer": case.peer,
                "ratio": round(peer[at] / mine[-1], 3) if peer else None,
                "ours": round(mine[-1], 2),
                "theirs": round(peer[at], 2) if peer else None,
                "unit": unit,
                "n": rows,
                "smaller": [round(value, 2) for value in mine[:-1]],
                "growth": growth(mine),
                "characters": characters,
            }
        )
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=50_000)
    parser.add_argument("--texts", type=int, default=0, help="characters of an answer")
    parser.add_argument("--only", help="commands to measure, such as import,report")
    args = parser.parse_args()
    chosen = [
        case
        for case in CASES
        if args.only is None or any(case.name.startswith(name) for name in args.only.split(","))
    ]
    about = machine("pandas", "scikit-learn", "pyarrow")
    results = []
    for case in chosen:
        results += [{**one, "machine": about} for one in measure(case, args.rows, args.texts)]
    finish(results)


if __name__ == "__main__":
    main()
