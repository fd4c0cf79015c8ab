"""Data in memory: as rows, or saved to a file that every reader of files can read."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import yaml

from judgesense.errors import JudgeSenseError
from judgesense.files.disk import write_text, writing

Data: TypeAlias = str | Path | Iterable[Any]
"""A file, a list of dicts, a pandas or polars DataFrame, or a ``datasets.Dataset``."""

RUNS = Path("runs")
"""Where results go without an ``out``."""


def rows_in(data: Any, name: str) -> list[dict[str, Any]]:
    """The rows of data in memory as JSON values; missing cells are None.

    ``name`` names the argument in errors. Raises JudgeSenseError for anything but a list of
    dicts, a pandas or polars DataFrame, a pyarrow Table or a ``datasets.Dataset``, for data without
    rows, and for a row that is not a dict.

    >>> rows_in([{"id": 1, "score": float("nan")}], "data")
    [{'id': 1, 'score': None}]
    """
    kind, listed = type(data).__name__, None if isinstance(data, Mapping) else _listed(data)
    if not isinstance(listed, Iterable):
        split = f", such as its {' or '.join(map(repr, data))}" if kind == "DatasetDict" else ""
        raise JudgeSenseError(
            f"{name} is a {kind}; pass a file, a list of dicts, a pandas or polars DataFrame or a "
            f"datasets.Dataset{split}"
        )
    rows = []
    for number, row in enumerate(listed, 1):
        if not isinstance(row, Mapping):
            raise JudgeSenseError(
                f"{name}, row {number}: expected a dict of columns, got {type(row).__name__}"
            )
        rows.append({str(key): _plain(value) for key, value in row.items()})
    if not rows:
        raise JudgeSenseError(f"{name} has no rows")
    return rows


def materialise(data: Data, folder: Path, name: str) -> Path:
    """The file with the data: a path as it is; rows in memory are saved as JSON lines in a folder.

    The file's name ends in a hash of its content. It stays beside the results for the next step to
    read. Raises JudgeSenseError as `rows_in`, and for a cell that JSON cannot hold.
    """
    if isinstance(data, (str, os.PathLike)):
        return Path(data)
    lines = []
    for number, row in enumerate(rows_in(data, name), 1):
        try:
            lines.append(json.dumps(row, ensure_ascii=False, allow_nan=False, default=_json))
            lines[-1].encode()
        except (TypeError, ValueError) as error:
            raise JudgeSenseError(f"{name}, row {number}: {error}; pass text or numbers") from error
    return kept_text("\n".join(lines) + "\n", folder, name, ".jsonl")


def kept_templates(templates: str | Path | Mapping[str, Any], folder: Path) -> Path:
    """The template file: a path as it is; a dict is written to a file in a folder."""
    if isinstance(templates, Mapping):
        text = yaml.safe_dump(dict(templates), sort_keys=False, allow_unicode=True)
        return kept_text(text, folder, "templates", ".yaml")
    return Path(templates)


def kept_text(text: str, folder: Path, name: str, suffix: str) -> Path:
    """Write a text to a file that is named by a hash of the text."""
    digest = hashlib.sha256(text.encode()).hexdigest()
    path = folder / f"{name}-{digest[:8]}{suffix}"
    if not path.exists():
        with writing(folder):
            folder.mkdir(parents=True, exist_ok=True)
            write_text(path, text)
    return path


def _listed(data: Any) -> Any:
    if hasattr(data, "iterrows"):
        # pandas turns whole numbers beside empty cells into 4.0; convert_dtypes turns them back.
        whole = data.convert_dtypes().astype(object)
        data = whole.where(whole.notna(), None).to_dict("records")
    for method in ("to_dicts", "to_pylist", "to_list"):
        if hasattr(data, method):
            return getattr(data, method)()
    return data


def _plain(value: Any) -> Any:
    return None if isinstance(value, float) and value != value else value


def _json(value: Any) -> Any:
    """A value of numpy, a time, a Decimal and the like as JSON has it."""
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, (bytes, bytearray)):
        raise TypeError("a cell holds bytes")
    return str(value)
