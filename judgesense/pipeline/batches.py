"""A run through a provider's batch service: requests to files, answers from files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from judgesense.errors import JudgeSenseError
from judgesense.pipeline.execution import RunRequest
from judgesense.pipeline.fitting import answerable

if TYPE_CHECKING:
    from local_judges.api.batch_files import BatchFile
    from local_judges.registry import JudgeSpec


def write_batches(request: RunRequest, out: Path) -> list[BatchFile]:
    """Write the run's prompts as OpenAI batch files into ``out/batch``.

    Raises JudgeSenseError for a request that a batch cannot serve: several judges or token caps,
    repeats, Ray, a budget, a judge that is not at an OpenAI-compatible endpoint.
    """
    from local_judges.api.batch_files import write_batch
    from local_judges.plan import Requests

    spec = _spec(request)
    prompts = Requests(answerable(spec, request.benchmark()).prompts)
    return write_batch(spec, prompts, request.settings.scorings, out / "batch")


def from_batches(request: RunRequest, files: Sequence[Path]) -> RunRequest:
    """The same request, answered from a batch service's output files, each prompt once.

    Raises JudgeSenseError as :func:`write_batches` does.
    """
    from local_judges.api.batch_files import BatchFileJudge

    data = replace(request.data, twice=False)
    return replace(request, judges=(BatchFileJudge(_spec(request), files),), data=data)


def _spec(request: RunRequest) -> JudgeSpec:
    from local_judges.registry import seeded

    if len(request.judges) != 1:
        raise JudgeSenseError("a batch is for one judge and one token cap")
    spec: JudgeSpec = seeded(request.judges[0], request.settings.seed)
    for reason, refused in (
        ("a batch asks each prompt once; leave out --repeats", request.settings.repeats != 1),
        ("the provider runs a batch; leave out --engine ray", request.cluster is not None),
        (
            "--max-cost cannot stop a batch; set a limit at the provider",
            spec.options.get("max_cost") is not None,
        ),
    ):
        if refused:
            raise JudgeSenseError(reason)
    return spec
