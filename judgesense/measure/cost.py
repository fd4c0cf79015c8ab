"""What a run cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc


@dataclass(frozen=True)
class JudgeCost:
    """What a judge's answers cost; dollars are None without a known price.

    A prompt counts once, even if several rows of the log share it.
    """

    judge: str
    n_prompts: int
    input_tokens: int | None
    output_tokens: int | None
    cost_usd: float | None
    seconds: float | None


def costs(log: pa.Table, runs: Sequence[Mapping[str, Any]]) -> list[JudgeCost]:
    """The cost of each judge of a log; ``runs`` are the records that have its seconds."""
    once = log.group_by(["judge", "prompt_id", "repeat"]).aggregate(
        [("cost_usd", "max"), ("input_tokens", "max"), ("output_tokens", "max")]
    )
    seconds = {}
    for run in runs:
        for entry in run.get("judges", []):
            seconds[entry["name"]] = entry.get("seconds")
    rows = []
    for judge in pc.unique(log["judge"]).to_pylist():
        of_judge = once.filter(pc.equal(once["judge"], judge))
        names = ("input_tokens", "output_tokens", "cost_usd")
        sums = {name: pc.sum(of_judge[f"{name}_max"]).as_py() for name in names}
        rows.append(JudgeCost(judge, of_judge.num_rows, **sums, seconds=seconds.get(judge)))
    return rows
