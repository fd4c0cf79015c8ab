"""Measure other people's decision logs in a separate process with limited memory and time.

A Parquet file of a few kilobytes can unpack to more than the machine's memory, and its metadata can
hide that. A failure of this process does not affect the server.

``python -m hub_scripts.leaderboard.worker check DIR REPO`` prints a JSON line per check, and
``... compare A B`` the comparison.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from judgesense.errors import JudgeSenseError

MEMORY = 3 << 30
"""Bytes of address space."""

SECONDS = 60


def check(run_dir: Path, repo_id: str) -> list[dict[str, Any]]:
    """The lines of `checks.checks`; the last one says if memory or time ran out."""
    lines, why = _ask("check", str(run_dir), repo_id)
    if why is not None:
        from hub_scripts.leaderboard.checks import NAMES

        name = NAMES[min(len(lines), len(NAMES) - 1)]
        lines.append({"name": name, "passed": False, "said": why})
    return lines


def compare(first: Path, second: Path) -> dict[str, Any]:
    """`judgesense.trust.compare.compare` of two runs.

    Raises JudgeSenseError as that does, and if memory or time runs out.
    """
    lines, why = _ask("compare", str(first), str(second))
    if why is None and "error" in lines[-1]:
        why = lines[-1]["error"]
    if why is not None:
        raise JudgeSenseError(why)
    result: dict[str, Any] = lines[-1]
    return result


def _ask(*arguments: str) -> tuple[list[dict[str, Any]], str | None]:
    """What the process printed, and why it ended early; None if it did not."""
    command = [sys.executable, "-m", __name__, *arguments]
    # One thread: more of them reserve address space, and the server has other users.
    threads = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL")}
    root = str(Path(__file__).resolve().parents[2])
    path = os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH"))))
    env = {**os.environ, **threads, "PYTHONPATH": path, "ARROW_DEFAULT_MEMORY_POOL": "system"}
    try:
        done = subprocess.run(
            command, env=env, capture_output=True, check=False, timeout=2 * SECONDS
        )
    except subprocess.TimeoutExpired as stopped:
        return _lines(stopped.stdout or b""), f"measuring it takes longer than {2 * SECONDS} s"
    lines = _lines(done.stdout)
    if done.returncode == 0:
        return lines, None
    return lines, (
        f"it cannot be measured with {MEMORY >> 30} GB of memory and {SECONDS} s of processor "
        "time, which suffice for every run of this size"
    )


def _lines(output: bytes) -> list[dict[str, Any]]:
    whole = output[: output.rfind(b"\n") + 1]
    return [json.loads(line) for line in whole.decode("utf-8").splitlines()]


def _bound() -> None:
    try:
        import resource
    except ImportError:
        # Windows has only the time limit.
        return
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS + 5))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))


def _main(kind: str, first: str, second: str) -> None:
    _bound()
    if kind == "check":
        from hub_scripts.leaderboard.checks import checks

        for found in checks(Path(first), second):
            print(json.dumps(asdict(found)), flush=True)
        return
    from judgesense.trust.compare import compare as compare_runs

    try:
        result = compare_runs(first, second).to_dict()
    except JudgeSenseError as error:
        result = {"error": str(error)}
    print(json.dumps(result, allow_nan=False), flush=True)


if __name__ == "__main__":
    _main(*sys.argv[1:])
