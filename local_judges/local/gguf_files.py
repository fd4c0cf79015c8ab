"""Dequantise a GGUF file into a folder of safetensors, one tensor at a time."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from judgesense.errors import JudgeSenseError, MissingExtraError

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

    kind, gguf = getattr(torch, dtype), {"gguf_file": path.name}
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(path.parent, **gguf)
        config = transformers.AutoConfig.from_pretrained(path.parent, **gguf)
        with torch.device("meta"):
            model = transformers.AutoModelForCausalLM.from_config(config, dtype=kind)
        if not _write_tensors(path, model, target / "model.safetensors"):
            from safetensors.torch import save_file

            with no_bars():
                model = transformers.AutoModelForCausalLM.from_pretrained(
                    path.parent, dtype=kind, **gguf
                )
            weights = {name: tensor.contiguous() for name, tensor in _stored(model).items()}
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


def _stored(model: Any) -> dict[str, Any]:
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
    from transformers import modeling_gguf_pytorch_utils as theirs

    reader = gguf.GGUFReader(path)
    architecture = bytes(reader.fields["general.architecture"].parts[-1]).decode()
    processor = theirs.TENSOR_PROCESSORS.get(architecture, theirs.TensorProcessor)(
        config=model.config.to_dict()
    )
    try:
        names = theirs.get_gguf_hf_weights_map(model, processor)
    except NotImplementedError:
        return False
    tensors = {names.get(tensor.name): tensor for tensor in reader.tensors}
    wanted = _stored(model)
    if not wanted.keys() <= tensors.keys():
        return False
    with target.open("wb") as file:
        header = json.dumps(_header(wanted)).encode()
        header += b" " * (-len(header) % 8)
        file.write(len(header).to_bytes(8, "little") + header)
        for name, empty in wanted.items():
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
def no_bars() -> Iterator[None]:
    """Hide transformers' loading bars, which would break our own progress line."""
    from transformers.utils import logging as theirs

    shown = theirs.is_progress_bar_enabled()
    theirs.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            theirs.enable_progress_bar()
