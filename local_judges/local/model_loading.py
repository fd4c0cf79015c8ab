"""Find a model by name, folder, GGUF file or Hub id, identify its weights, and load it.

Installed packages and local folders come before the Hub, which may be unreachable. Only
safetensors and GGUF weights are read: no pickles, and no code from a model.
"""

from __future__ import annotations

import json
import logging
import math
import os
import platform
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from judgesense.errors import JudgeSenseError, MissingExtraError
from local_judges.local.gguf_files import (
    NAMED,
    cache_dir,
    dequantise,
    hide_progress_bars,
    installed_file,
    sha256_files,
)


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
    support_check = {
        torch.bfloat16: "_is_mkldnn_bf16_supported",
        torch.float16: "_is_mkldnn_fp16_supported",
    }
    return not getattr(torch.ops.mkldnn, support_check[dtype])()


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

    record: dict[str, Any] = {"device": device, "torch_threads": torch.get_num_threads()}
    if device.startswith("cuda") or (device == "auto" and torch.cuda.is_available()):
        record["gpu"] = torch.cuda.get_device_name(0)
        record["gpus"] = torch.cuda.device_count()
    record["cpu"] = platform.processor() or platform.machine()
    return record


log = logging.getLogger(__name__)

WANTED_FILES = ["*.json", "*.safetensors", "*.model", "*.jinja", "*.txt"]


@dataclass(frozen=True, slots=True)
class ModelFiles:
    """The files of a model: a folder with a GGUF file or with safetensors.

    ``weights`` identifies them: a Hub revision, or the SHA-256 of the files.
    """

    name: str
    folder: Path
    gguf_file: str | None
    weights: str
    origin: str


def find_model(
    model: str | Path, *, revision: str | None = None, gguf_file: str | None = None
) -> ModelFiles:
    """The files of ``model``: a name in NAMED, a folder, a ``.gguf`` file or a Hub id.

    Raises JudgeSenseError that lists the places tried.
    """
    name = str(model)
    if name in NAMED:
        packaged, path = NAMED[name], installed_file(name) if revision is None else None
        package = packaged.parts[0][0]
        if path is None:
            return _from_hub(packaged.hub_id, name, revision, None, package)
        digest = sha256_files([path])
        return ModelFiles(name, path.parent, path.name, digest, f"package {package}")
    path = Path(name).expanduser()
    if path.is_file():
        if path.suffix != ".gguf":
            raise JudgeSenseError(
                f"{path} is a file but not a .gguf file; use the model's folder instead"
            )
        return ModelFiles(path.stem, path.parent, path.name, sha256_files([path]), str(path))
    if path.is_dir():
        return _from_folder(path, gguf_file)
    if path.is_absolute() or name.startswith((".", "~")) or name.count("/") > 1:
        raise JudgeSenseError(f"no model at {path}: neither a folder nor a .gguf file")
    return _from_hub(name, name.rsplit("/", 1)[-1], revision, gguf_file)


def _from_folder(folder: Path, gguf_file: str | None) -> ModelFiles:
    ggufs = sorted(path.name for path in folder.glob("*.gguf"))
    weights = sorted(folder.glob("*.safetensors"))
    name = folder.resolve().name
    if gguf_file is not None or (not weights and len(ggufs) == 1):
        gguf_file = gguf_file or ggufs[0]
        if not (folder / gguf_file).is_file():
            raise JudgeSenseError(f"{folder} has no {gguf_file}; its GGUF files: {ggufs}")
        digest = sha256_files([folder / gguf_file])
        return ModelFiles(name, folder, gguf_file, digest, str(folder / gguf_file))
    if not weights or not (folder / "config.json").is_file():
        raise JudgeSenseError(
            f"{folder} is not a model folder: it needs config.json and *.safetensors, or one "
            f".gguf file (of several, choose one with gguf_file); it has {len(weights)} "
            f"safetensors files and {len(ggufs)} GGUF files"
        )
    # The same weights with another tokenizer or configuration are another judge.
    other_files = [folder / file for file in ("config.json", "tokenizer.json", "tokenizer.model")]
    fingerprinted = [*weights, *(path for path in other_files if path.is_file())]
    return ModelFiles(name, folder, None, sha256_files(fingerprinted), str(folder))


def _from_hub(
    hub_id: str, name: str, revision: str | None, gguf_file: str | None, package: str = ""
) -> ModelFiles:
    """A Hub repository: first the local copy of an earlier download, then the network."""
    try:
        from huggingface_hub import snapshot_download
        from huggingface_hub.errors import HfHubHTTPError, HFValidationError
    except ImportError as error:
        raise MissingExtraError("huggingface_hub", "local", "judging with a Hub model") from error

    patterns = [*WANTED_FILES[:1], gguf_file] if gguf_file else WANTED_FILES
    places = [f"the package {package}"] if package else [f"a local folder {hub_id}"]
    for offline in (True, False):
        places.append("the local Hub cache" if offline else "the Hub")
        try:
            folder = Path(
                snapshot_download(
                    hub_id,
                    revision=revision,
                    allow_patterns=patterns,
                    ignore_patterns=["original/*", "consolidated*"],
                    local_files_only=offline,
                )
            )
        except (HfHubHTTPError, HFValidationError, OSError, ValueError) as error:
            reason = f"{type(error).__name__}: {str(error).strip().splitlines()[0]}"
            continue
        if _is_complete(folder, gguf_file):
            weights = f"{hub_id}@{folder.name}" + (f":{gguf_file}" if gguf_file else "")
            return ModelFiles(name, folder, gguf_file, weights, f"Hub {hub_id}")
        reason = f"it holds no {gguf_file or 'safetensors weights'}"
    names = ", ".join(NAMED)
    raise JudgeSenseError(
        f"unknown model {name!r}: tried {', '.join(places)} ({reason}). "
        f"Use a folder, a .gguf file, a Hub id or one of {names}"
    )


def _is_complete(folder: Path, gguf_file: str | None) -> bool:
    """Whether a snapshot has all its weights, unlike after an interrupted download."""
    index = folder / "model.safetensors.index.json"
    if gguf_file is None and index.is_file():
        try:
            shards = set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values())
            return all((folder / shard).is_file() for shard in shards)
        except (ValueError, TypeError, LookupError, AttributeError):
            return False
    return any(folder.glob(gguf_file or "*.safetensors"))


def plain_folder(source: ModelFiles, dtype: str = "float32") -> Path:
    """The model as a folder of safetensors that every engine can load.

    A GGUF file is dequantised once into the cache, by its hash, ``dtype`` and the version of
    transformers that reads it; loading maps the copy into memory. float32 keeps the values, other
    dtypes round each once. Raises JudgeSenseError if the GGUF file cannot be read, OSError if the
    cache is not writable.
    """
    if source.gguf_file is None:
        return source.folder
    import transformers

    key = f"{source.weights.rsplit('@')[-1][:16]}-transformers-{transformers.__version__}"
    key += "" if dtype == "float32" else f"-{dtype}"
    target = cache_dir() / "models" / f"{source.gguf_file.removesuffix('.gguf')}-{key}"
    if (target / "config.json").is_file():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as temporary:
        log.warning("dequantising %s; later runs use the copy in the cache", source.gguf_file)
        dequantise(source.folder / source.gguf_file, Path(temporary), dtype)
        try:
            Path(temporary).rename(target)
        except OSError:
            if not (target / "config.json").is_file():  # another process has not made it
                raise
        else:
            Path(temporary).mkdir()  # what TemporaryDirectory will remove
    target.chmod(0o755)
    return target


UNREADABLE_MODEL = (
    ArithmeticError,
    AttributeError,
    ImportError,
    LookupError,
    OSError,
    RuntimeError,
    TypeError,
    ValueError,
)
"""The errors that transformers raises for files that it did not write."""


def load_config(folder: Path) -> Any:
    """The configuration of a model folder. Raises JudgeSenseError if it cannot be read, or names
    code to run."""
    import transformers

    try:
        return transformers.AutoConfig.from_pretrained(folder, trust_remote_code=False)
    except UNREADABLE_MODEL as error:
        raise JudgeSenseError(
            f"the configuration in {folder} cannot be read: {type(error).__name__}: {error}"
        ) from error


def load_tokenizer(folder: Path) -> Any:
    """The tokenizer of a model folder. Raises JudgeSenseError if it cannot be read."""
    import transformers

    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder, trust_remote_code=False)
    except Exception as error:
        raise JudgeSenseError(
            f"the tokenizer in {folder} cannot be read: {type(error).__name__}: {error}"
        ) from error
    for name in ("_vocab", "_merges"):
        # What it was made from: 45 MB for 150,000 tokens, which only Rust's copy of them uses.
        if tokenizer.is_fast and (value := vars(tokenizer).get(name)):
            setattr(tokenizer, name, type(value)())
    return tokenizer


def load_model(folder: Path, dtype: str, device: str) -> Any:
    """The causal language model in a folder, in evaluation mode.

    Raises JudgeSenseError if it is not a causal language model or too large for the device.
    """
    import torch
    import transformers

    needed, free = parameter_count(folder) * getattr(torch, dtype).itemsize, free_memory(device)
    if free is not None and needed > free:
        raise JudgeSenseError(
            f"the model in {folder} needs {needed / 1e9:.1f} GB in {dtype}, but {device} has "
            f"{free / 1e9:.1f} GB free; use a smaller model, another dtype or another device"
        )
    try:
        with hide_progress_bars():
            model = transformers.AutoModelForCausalLM.from_pretrained(
                folder,
                dtype=getattr(torch, dtype),
                device_map=device if device == "auto" else {"": device},
                use_safetensors=True,
                trust_remote_code=False,
            )
    except UNREADABLE_MODEL as error:
        raise JudgeSenseError(
            f"the model in {folder} cannot be loaded as a causal language model: "
            f"{type(error).__name__}: {error}"
        ) from error
    return model.eval()


def parameter_count(folder: Path) -> int:
    """The number of stored parameters, from the headers of the safetensors files."""
    total = 0
    for path in folder.glob("*.safetensors"):
        try:
            with path.open("rb") as file:
                length = min(int.from_bytes(file.read(8), "little"), path.stat().st_size)
                header = json.loads(file.read(length))
            total += sum(math.prod(t["shape"]) for k, t in header.items() if k != "__metadata__")
        except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
            raise JudgeSenseError(f"{path} is not a safetensors file, or is damaged") from error
    return total
