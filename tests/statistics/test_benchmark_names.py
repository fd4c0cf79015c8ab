"""The benchmark of the statistics has the name of a standard module, and stands in no one's way."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


def test_a_benchmark_whose_library_imports_statistics_gets_the_standard_one(tmp_path: Path) -> None:
    code = "import statistics; print(statistics.mean([1, 2, 6]), statistics.__name__)"
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(BENCHMARKS)!r}); {code}"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "3 statistics\n", done.stderr
