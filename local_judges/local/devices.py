"""The device and the number format of a model."""

from __future__ import annotations

import os
import platform
from typing import Any

from judgesense.errors import JudgeSenseError


def choose_device(requested: str | None) -> str:
    """The requested device, or the best one available: ``cuda``, ``mps``, ``cpu``.

    ``auto`` spreads a model over all GPUs (accelerate). Raises JudgeSenseError for a device that
    this machine does not have.
    """
    import torch

    if requested is None:
        if torch.cuda.is_available():
            return "cuda"
        return "mps" if torch.backends.mps.is_available() else "cpu"
    if requested == "auto":
        return requested
    try:
        torch.empty(0, device=requested)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise JudgeSenseError(
            f"the device {requested!r} does not work on this machine "
            f"({str(error).splitlines()[0]}); leave it out to use the best one available"
        ) from error
    return requested


def choose_dtype(requested: str | None, device: str) -> str:
    """The requested dtype, or float32 on a CPU and bfloat16 on GPUs that support it.

    On a CPU the shape of a batch changes bfloat16 log-probabilities by tenths of a nat but float32
    ones by 0.00003, so float32 is the default there.
    """
    import torch

    if requested not in (None, "auto"):
        return str(requested)
    if device == "cpu" or device.startswith("mps"):
        return "float32"
    if torch.cuda.is_available() and not torch.cuda.is_bf16_supported(including_emulation=False):
        return "float16"
    return "bfloat16"


def multiplies_slowly(dtype: Any, device: Any) -> bool:
    """Whether 16-bit matrix products are emulated, as on a CPU without instructions for them."""
    import torch

    if device.type != "cpu" or dtype == torch.float32:
        return False
    supported = {
        torch.bfloat16: "_is_mkldnn_bf16_supported",
        torch.float16: "_is_mkldnn_fp16_supported",
    }
    return not getattr(torch.ops.mkldnn, supported[dtype])()


def free_memory(device: str) -> int | None:
    """The free bytes on the device; None if unknown."""
    import torch

    if device.startswith("cuda"):
        return int(torch.cuda.mem_get_info(torch.device(device))[0])
    if device == "cpu" and os.path.exists("/proc/meminfo"):
        with open("/proc/meminfo", encoding="ascii") as lines:
            for line in lines:
                if line.startswith("MemAvailable:"):
                    return int(line.split()[1]) * 1024
    return None


def hardware(device: str) -> dict[str, Any]:
    """The machine, as recorded in ``run.json``."""
    import torch

    facts: dict[str, Any] = {"device": device, "torch_threads": torch.get_num_threads()}
    if device.startswith("cuda") or (device == "auto" and torch.cuda.is_available()):
        facts["gpu"] = torch.cuda.get_device_name(0)
        facts["gpus"] = torch.cuda.device_count()
    facts["cpu"] = platform.processor() or platform.machine()
    return facts
