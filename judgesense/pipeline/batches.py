"""A run through a provider's batch service: requests to files, answers from files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from judgesense.errors import JudgeSenseError
from judgesense.pipeline.data import DataReference
from judgesense.pipeline.fitting import answerable
from judgesense.pipeline.settings import Settings

if TYPE_CHECKING:
    from local_judges.api.batch_files import BatchFile, BatchFileJudge
    from local_judges.registry import JudgeSpec


def write_batches(
    judges: Sequence[Any], data: DataReference, settings: Settings, out: Path
) -> list[BatchFile]:
    """Write the run's prompts as OpenAI batch files into ``out/batch``.

    Raises JudgeSenseError for a run that a batch cannot serve: several judges or token caps,
    repeats, a budget, a judge that is not at an OpenAI-compatible endpoint.
    """
    from local_judges.api.batch_files import write_batch
    from local_judges.plan import Requests

    spec = _only(judges, settings)
    prompts = Requests(answerable(spec, data.selected(settings)).prompts)
    return write_batch(spec, prompts, settings.scorings, out / "batch")


def from_batches(
    judges: Sequence[Any], data: DataReference, settings: Settings, files: Sequence[Path]
) -> tuple[BatchFileJudge, DataReference]:
    """The judge that answers from a batch service's output files, each prompt once, and its data.

    Raises JudgeSenseError as :func:`write_batches` does.
    """
    from local_judges.api.batch_files import BatchFileJudge

    return BatchFileJudge(_only(judges, settings), files), replace(data, twice=False)


def _only(judges: Sequence[Any], settings: Settings) -> JudgeSpec:
    if len(judges) != 1:
        raise JudgeSenseError("a batch is for one judge and one token cap")
    spec: JudgeSpec = judges[0].seeded(settings.seed)
    if settings.repeats != 1:
        raise JudgeSenseError("a batch asks each prompt once; leave out --repeats")
    if spec.options.get("max_cost") is not None:
        raise JudgeSenseError("--max-cost cannot stop a batch; set a limit at the provider")
    return spec
