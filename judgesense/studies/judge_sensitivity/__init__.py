"""The JudgeSense paper's protocol.

Source: "JudgeSense: A Benchmark for Prompt Sensitivity in LLM-as-a-Judge Systems",
arXiv:2604.23478. The run judges a benchmark and gives the paper's tables. From an existing decision
log (``log``), you get every table that the log can fill.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow.compute as pc

from judgesense.errors import JudgeSenseError
from judgesense.pipeline import Settings
from judgesense.pipeline.data import data_reference
from judgesense.reporting.study_result import Result
from judgesense.studies.common.study import PROTOCOL, REANALYSIS, judged, need_judges
from judgesense.studies.judge_sensitivity.runs import read_judged
from judgesense.studies.judge_sensitivity.spec import SPEC
from judgesense.studies.judge_sensitivity.tables import Sensitivity
from judgesense_dataset.load import load_benchmark, load_pairs


def judge_sensitivity(
    judges: Sequence[Any] = (),
    *,
    out: str | Path,
    log: str | Path | None = None,
    dataset: str | None = None,
    tasks: Sequence[str] | None = None,
    scoring: str | None = None,
    limit: int | None = None,
    repeats: int = 1,
    seed: int = 0,
    note: Callable[[str], None] = print,
) -> Result:
    """Run the JudgeSense protocol (tables 1-3, figures 1-3) in ``out``; rerun to resume.

    ``log`` is the folder of a run or import to measure instead of judging; ``limit`` counts items
    per task, ``repeats`` the times that each prompt is asked: 2 or more measure the flips of the
    same prompt, which the decomposition of flips needs. Raises JudgeSenseError for bad input,
    before any judging where possible.

    >>> judge_sensitivity(["smollm2-135m"], out="runs/sens", limit=2)  # doctest: +SKIP
    """
    if log is not None:
        if any([judges, dataset, limit, tasks, scoring, repeats != 1]):
            raise JudgeSenseError(
                "--log measures an existing log; leave out --judge, --dataset, --tasks, --limit, "
                "--repeats and --scoring, or leave out --log"
            )
        study = Sensitivity(read_judged(Path(log)), log=Path(log))
    else:
        need_judges(judges, 1, "the study")
        run, reference = Path(out) / "runs" / "main", data_reference(dataset, None, None)
        settings = Settings.of(scoring, tasks, None, repeats, seed, limit)
        load = partial(load_benchmark, dataset, only_valid=False)
        judged(judges, load, reference.identity, settings, run, note)
        rows = load_pairs(dataset)
        invalid = rows["pair_id"].filter(pc.equal(rows["valid"], False)).to_pylist()
        study = Sensitivity(read_judged(run, invalid))
    record = study.main.record
    hardware = record.get("hardware") or {}
    names = [entry["name"] for entry in record.get("judges", []) if isinstance(entry, dict)]
    entries = {
        **(REANALYSIS if log else PROTOCOL),
        "judges": names or study.main.judges,
        "log": study.log and str(study.log),
        "data": (record.get("dataset") or {}).get("name") or record.get("run_id"),
        "data hash": record.get("data_hash"),
        **({} if log else {"items per task": limit, "repeats": repeats, "seed": seed}),
        "machine": hardware and f"{hardware.get('cpus')} CPUs, {hardware.get('machine')}",
    }
    defined = {name: value for name, value in entries.items() if value not in (None, "", {})}
    return SPEC.result(study, defined)
