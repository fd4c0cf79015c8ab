"""The data of a run: an embedded set, a folder, a Hub id, or two files of your own."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from judgesense.benchmark import Benchmark
from judgesense.errors import JudgeSenseError
from judgesense.run_folder import sha256_of


@dataclass(frozen=True)
class DataReference:
    """The data of a run by name; ``identity`` is what fixes its content, as JSON values."""

    identity: Mapping[str, Any]
    load: Callable[[], Benchmark]


def data_reference(
    dataset: str | Path | None, templates: str | Path | None, items: str | Path | None
) -> DataReference:
    """The benchmark of that name, or of these two files; nothing is loaded yet.

    Raises JudgeSenseError for one file without the other, both kinds at once and a missing file.

    >>> data_reference(None, None, None).identity["dataset"]
    'embedded'
    """
    if (templates is None) != (items is None):
        given, absent = ("--templates", "--items") if items is None else ("--items", "--templates")
        raise JudgeSenseError(f"{given} needs {absent}: give templates and items together")
    if templates is not None and items is not None:
        if dataset is not None:
            raise JudgeSenseError("give either --dataset or --templates and --items")
        own_templates, own_items = Path(templates), Path(items)
        for path in (own_templates, own_items):
            if not path.is_file():
                raise JudgeSenseError(f"no file {path}")

        def own() -> Benchmark:
            from judgesense_dataset.pairing import build_from_files

            return build_from_files(own_templates, own_items)

        return DataReference(
            {
                "templates": _file(own_templates),
                "items": _file(own_items),
            },
            own,
        )

    def published() -> Benchmark:
        from judgesense_dataset.load import load_benchmark

        return load_benchmark(dataset)

    from judgesense_dataset.embedded import EMBEDDED, EMBEDDED_SETS, EMBEDDED_VERSION

    if dataset is None or str(dataset) in EMBEDDED_SETS:
        name = str(dataset or EMBEDDED)
        return DataReference({"dataset": name, "version": EMBEDDED_VERSION}, published)
    folder = Path(dataset)
    if folder.is_dir():
        content = sorted(p for p in folder.rglob("*") if p.suffix in (".parquet", ".jsonl"))
        digest = hashlib.sha256("".join(sha256_of(path) for path in content).encode()).hexdigest()
        return DataReference({"dataset": str(folder.resolve()), "sha256": digest}, published)
    return DataReference({"dataset": str(dataset)}, published)


def _file(path: Path) -> dict[str, str]:
    return {"path": str(path.resolve()), "sha256": sha256_of(path)}
