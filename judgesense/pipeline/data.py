"""What is to be judged, as a user names it: a set, a folder, a Hub id, or two files."""

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
    """What is to be judged, as named by the user; ``identity`` says what fixes its content."""

    identity: Mapping[str, Any]
    load: Callable[[], Benchmark]


def data_reference(
    dataset: str | Path | None, templates: str | Path | None, items: str | Path | None
) -> DataReference:
    """The benchmark that was named; nothing is loaded yet, and no Hub is asked."""
    if (templates is None) != (items is None):
        given, absent = ("--templates", "--items") if items is None else ("--items", "--templates")
        raise JudgeSenseError(f"{given} needs {absent} beside it: wordings and what they judge")
    if templates is not None and items is not None:
        if dataset is not None:
            raise JudgeSenseError("give either a dataset or templates and items, not both")
        wordings, things = Path(templates), Path(items)
        for path in (wordings, things):
            if not path.is_file():
                raise JudgeSenseError(f"no file {path}")

        def own() -> Benchmark:
            from judgesense_dataset.pairing import build_from_files

            return build_from_files(wordings, things)

        return DataReference(
            {
                "templates": {"path": str(wordings.resolve()), "sha256": sha256_of(wordings)},
                "items": {"path": str(things.resolve()), "sha256": sha256_of(things)},
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
