"""Import foreign logs as decision logs, one module per format (see :mod:`.protocol`).

An imported folder holds ``run.json`` and ``decisions/part-00000.parquet``. Reports and comparisons
read it like a run. It has no ``pairs.parquet``, so all pairs of templates within an item and order
are formed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from judgesense.decisions import PARTS, part_files, write_part
from judgesense.errors import JudgeSenseError
from judgesense.formats import MODULES
from judgesense.importers.build import Parser, build
from judgesense.importers.columns import ColumnMap, parse_columns
from judgesense.importers.protocol import Importer, ReadOptions
from judgesense.run_folder import changes, digests_of, now, read_record, save_run, sha256_of
from judgesense.version import __version__

__all__ = ["FORMATS", "Importer", "ReadOptions", "import_log", "parse_columns"]

FORMATS: Mapping[str, Importer] = {
    name: import_module(f"judgesense.importers.{module}").IMPORTER
    for name, module in MODULES.items()
}
"""The registry: every format by its name."""


def import_log(
    source: str | Path,
    format: str,
    out: str | Path,
    *,
    columns: Mapping[str, str] | None = None,
    labels: Sequence[str] | None = None,
    pick: str | None = None,
    custom_id: str | None = None,
    encoding: str = "utf-8",
    parse: Parser | None = None,
) -> dict[str, Any]:
    """Import a foreign log into the folder ``out`` and return its ``run.json``.

    Every row of the source is imported; ``run.json`` counts the rows of each task by status. A
    second import of the same source with the same options returns at once.

    Args:
        source: a file of the format, or a folder of such files.
        format: a name in `FORMATS`.
        out: the folder to write.
        columns: from columns of the decision log to the source's columns, or to a ``:constant``.
        labels: the decision space, in order, if the log does not show it.
        pick: the name of lm-eval's filter or Inspect's scorer.
        custom_id: the form of batch ids, such as ``{template_id}/{item_id}``.
        encoding: of CSV and JSON lines.
        parse: reads free text. By default a text is read only if it is a label.

    Raises:
        JudgeSenseError: an unknown format, an option that the format does not have, an ``out`` that
            holds another run, or bad input, with file, row and column.

    >>> import pathlib, tempfile
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> text = "judge,task,item_id,template_id,raw_decision\\nm,t,1,a,YES\\nm,t,1,b,NO\\n"
    >>> _ = (folder / "log.csv").write_text(text)
    >>> import_log(folder / "log.csv", "table", folder / "out")["counts"]
    {'t': {'ok': 2}}
    """
    if format not in FORMATS:
        raise JudgeSenseError(f"unknown format {format!r}; choose one of {', '.join(FORMATS)}")
    importer, source, out = FORMATS[format], Path(source), Path(out)
    for name, value in (("pick", pick), ("custom_id", custom_id)):
        if value is not None and name not in importer.options:
            raise JudgeSenseError(f"format {format!r} has no option {name}")
    files = [path for path in importer.files(source) if not path.is_relative_to(out)]
    space = importer.labels if labels is None else tuple(labels)
    asked: dict[str, Any] = {
        "source": source.name,
        "sha256": _sha256(files),
        "format": format,
        "columns": dict(columns or {}),
        "labels": None if space is None else list(space),
        "pick": pick,
        "custom_id": custom_id,
        "encoding": encoding,
    }
    if (done := _finished(out, asked)) is not None:
        return done
    options = ReadOptions(space, pick, custom_id, encoding, tuple(files))
    built = build(
        (record for path in files for record in importer.read(path, options)),
        ColumnMap(columns or {}, importer.columns),
        space,
        parse,
    )
    part = "part-00000.parquet"
    try:
        write_part(built.table, out / PARTS, part)
    except OSError as error:
        raise JudgeSenseError(f"cannot write to {out}: {error.strerror or error}") from error
    record = {
        "schema": 1,
        "run_id": f"{out.resolve().name}-{asked['sha256'][:8]}",
        "imported": asked,
        "notes": list(importer.notes),
        "tasks": built.tasks,
        "counts": built.counts,
        "not_labels": built.unknown,
        "readings": built.readings,
        "without_gold": built.table["gold"].null_count,
        "judges": [
            {"name": judge, "describe": {"engine": "imported", "format": format}}
            for judge in built.table["judge"].unique().to_pylist()
        ],
        "scorings": sorted(set(built.table["scoring"].to_pylist())),
        "orders": sorted(set(built.table["order"].to_pylist())),
        "repeats": len(built.table["repeat"].unique()),
        "versions": {"judgesense": __version__},
        "parts": {part: built.table.num_rows},
        "digests": digests_of(out),
        "finished": now(),
    }
    save_run(out, record)
    return record


def _finished(out: Path, asked: Mapping[str, Any]) -> dict[str, Any] | None:
    """The record of a complete import of the same source; refuse any other run."""
    record = read_record(out)
    if record is None:
        return None
    if record.get("imported") != asked:
        raise JudgeSenseError(
            f"{out} holds another run ({record.get('run_id')}); set --out to another folder"
        )
    names = {part.name for part in part_files(out)}
    whole = record.get("finished") and names == set(record.get("parts", {}))
    return record if whole and not changes(out, record) else None


def _sha256(files: Sequence[Path]) -> str:
    """The SHA-256 of a file, or of the digests of several."""
    digests = []
    for path in files:
        try:
            digests.append(sha256_of(path))
        except OSError as error:
            raise JudgeSenseError(f"cannot read {path}: {error.strerror or error}") from error
    whole = "".join(digests)
    return whole if len(digests) == 1 else hashlib.sha256(whole.encode()).hexdigest()
