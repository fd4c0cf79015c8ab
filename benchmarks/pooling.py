"""How often three tests of a mean over judges reject a true null, at 5%, if vendors share a part.

    python benchmarks/pooling.py [RUNS]

The judges and vendors are those of the paper's second version, task by task. Judges of one vendor
correlate by 0 to 0.6.
"""

from __future__ import annotations

import sys

import numpy as np
from common import finish, machine

from judgesense.statistics.pooling import pooled
from judgesense.studies.judge_sensitivity.cells import PoolRules, read_sources

TESTS = {"judges": "z over judges", "vendors": "CR1, t", "vendor_means": "t of vendor means"}


def main() -> None:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
    rules, rng, out = PoolRules(), np.random.default_rng(0), []
    kept = [cell for cell in read_sources(["v2"], rules)[0] if rules.excluded(cell) is None]
    for task in sorted({cell.task for cell in kept}):
        vendors = [cell.vendor for cell in kept if cell.task == task]
        _, code = np.unique(vendors, return_inverse=True)
        for shared in (0.0, 0.2, 0.4, 0.6):
            rejected = dict.fromkeys(TESTS, 0)
            for _ in range(runs):
                common = rng.standard_normal(code.max() + 1)[code] * shared**0.5
                values = common + rng.standard_normal(len(code)) * (1 - shared) ** 0.5
                one = pooled(values, vendors, 0.02)
                for name in TESTS:
                    rejected[name] += one[f"{name}_p"] < 0.05
            rates = {name: count / runs for name, count in rejected.items()}
            print(task, len(code), code.max() + 1, shared, rates, file=sys.stderr)
            out += [
                {
                    "name": f"size of {test}: {task}, correlation {shared}",
                    "ours": rates[name],
                    "theirs": 0.05,
                    "unit": "share of runs",
                    "n": runs,
                    "machine": machine("scipy"),
                }
                for name, test in TESTS.items()
            ]
    finish(out)


if __name__ == "__main__":
    main()
