"""Whether the conclusions hold what they say, on simulated logs with known truth.

Each section in ``benchmarks/conclusions/`` simulates its figures and yields cells: a claim, a place
in the design, the measured value and its bound. The table below the cells has the worst of each
claim.

    python benchmarks/conclusions.py                       # every section, 1,000 runs a cell
    python benchmarks/conclusions.py --quick               # fewer cells and runs
    python benchmarks/conclusions.py --sections coverage --cells
"""

from __future__ import annotations

import argparse
import importlib
import time
from pathlib import Path

from common import finish, machine
from conclusions.frame import Cell, print_cells, summary

FOLDER = Path(__file__).with_suffix("")
SECTIONS = sorted({path.stem for path in FOLDER.glob("*.py")} - {"frame", "__init__"})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sections", nargs="+", choices=SECTIONS, default=SECTIONS)
    parser.add_argument("--runs", type=int, help="runs a cell (1,000; 200 with --quick)")
    parser.add_argument("--quick", action="store_true", help="fewer cells and runs")
    parser.add_argument("--cells", action="store_true", help="print every cell, not only the worst")
    parser.add_argument("--jobs", type=int, help="processes (one per core)")
    options = parser.parse_args()
    runs = options.runs or (200 if options.quick else 1_000)
    versions = machine("numpy", "scipy")
    results = []
    for name in options.sections:
        start = time.perf_counter()
        section = importlib.import_module(f"conclusions.{name}")
        cells: list[Cell] = list(section.cells(runs, options.quick, options.jobs))
        print(f"\n{name}: {len(cells)} cells, {runs} runs each")
        if options.cells:
            print_cells(cells)
        for line, result in summary(cells):
            print(line)
            results.append({"section": name, **result, "n": runs, "machine": versions})
        print(f"{time.perf_counter() - start:.0f} s")
    finish(results)


if __name__ == "__main__":
    main()
