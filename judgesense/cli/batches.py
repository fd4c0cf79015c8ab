"""``judgesense run --batch`` and ``--batch-in``: a run through a provider's batch service."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from judgesense.errors import JudgeSenseError

if TYPE_CHECKING:
    from judgesense.pipeline import Settings
    from local_judges.api.batch_files import BatchFileJudge
    from local_judges.registry import JudgeSpec


def write_batches(
    judges: Sequence[str],
    options: Mapping[str, Any],
    settings: Settings,
    data: tuple[str | None, Path | None, Path | None],
    out: Path,
) -> None:
    """Write the run's requests into ``out/batch`` and say what to do with them."""
    from judgesense.pipeline.data import data_reference
    from local_judges.api.batch_files import write_batch
    from local_judges.plan import Requests

    spec = _spec(judges, options, settings)
    benchmark = data_reference(*data).load()
    benchmark = benchmark.select(settings.tasks, settings.orders, settings.limit)
    files = write_batch(spec, Requests(benchmark.prompts), settings.scorings, out / "batch")
    for file in files:
        typer.echo(f"{file.path}: {file.requests:,} requests, {file.size:,} bytes")
    typer.echo(
        "\nUpload each file to the provider's batch service (endpoint /v1/chat/completions), and "
        "finish with the same\ncommand, --batch-in FILE in the place of --batch, for each output "
        "and error file."
    )


def judge_of_files(
    judges: Sequence[str], options: Mapping[str, Any], settings: Settings, files: Sequence[Path]
) -> BatchFileJudge:
    """The judge whose answers these files hold."""
    from local_judges.api.batch_files import BatchFileJudge

    return BatchFileJudge(_spec(judges, options, settings), files)


def _spec(judges: Sequence[str], options: Mapping[str, Any], settings: Settings) -> JudgeSpec:
    from local_judges.registry import resolve, seeded

    if len(judges) != 1:
        raise JudgeSenseError("batch files are for one judge at a time; give one --judge")
    if settings.repeats != 1:
        raise JudgeSenseError("a batch asks each prompt once; leave out --repeats")
    caps = options.get("max_tokens")
    if isinstance(caps, Sequence):
        raise JudgeSenseError(f"a batch is for one token cap, got {list(caps)}; give one")
    if options.get("engine") == "ray":
        raise JudgeSenseError(
            "a batch is worked off by the provider, which --engine ray cannot spread; leave it out"
        )
    if "max_cost" in options:
        raise JudgeSenseError(
            "a batch cannot be stopped by --max-cost; set a limit at the provider"
        )
    spec: JudgeSpec = seeded(resolve(judges[0], **options), settings.seed)
    return spec
