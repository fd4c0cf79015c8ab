"""Import a foreign log as a decision log.

An imported folder holds ``run.json`` and ``decisions/part-*.parquet``. Reports and comparisons
read it like a run. It has no ``pairs.parquet``, so all pairs of templates within an item and order
are formed.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
import zipfile
from collections.abc import Collection, Iterable, Mapping, Sequence
from fnmatch import filter as filter_names
from importlib import import_module
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from judgesense.errors import JudgeSenseError
from judgesense.files.disk import refuse_links, require_file, sha256_of
from judgesense.files.documents import read_json
from judgesense.files.tables import SUFFIXES, Rows, is_dataset, read_table_rows
from judgesense.importers import FORMATS, Importer, Items
from judgesense.importers.answer_reader import Parser
from judgesense.importers.build import build_parts
from judgesense.importers.bursts import Times, notes_of
from judgesense.importers.columns import EVERY_OTHER, ROW, ColumnMap
from judgesense.importers.copies import Copies
from judgesense.importers.items import ItemColumns
from judgesense.importers.people import PeopleLabels, Vocabulary
from judgesense.importers.shape import Step
from judgesense.log.folder import PEOPLE_FILE, changes, digests_of, read_record, save_run
from judgesense.log.invocation import invocation
from judgesense.log.record import now
from judgesense.log.schema import PARTS, part_files, write_part
from judgesense.version import __version__


def importer_of(format: str) -> Importer:
    """The importer of a format. Raises JudgeSenseError for an unknown one."""
    if format not in FORMATS:
        raise JudgeSenseError(f"unknown format {format!r}; choose one of {', '.join(FORMATS)}")
    importer: Importer = import_module(f"judgesense.importers.{FORMATS[format]}").IMPORTER
    return importer


def format_of(path: Path) -> str:
    """The import format of a file, by its suffix and contents.

    Raises JudgeSenseError for no such file, and for one that no format reads.
    """
    if is_dataset(path):
        return "table"
    require_file(path)
    if zipfile.is_zipfile(path) and path.suffix.lower() not in (".parquet", ".xlsx"):
        return "inspect"
    suffix, keys, columns = path.suffix.lower(), set[str](), set[str]()
    if suffix == ".eval":
        return "inspect"
    if suffix == ".json" and isinstance(content := read_json(path), dict) and "data" not in content:
        keys = set(content)
        rows = content.get("results")
        if isinstance(rows, list) and not any("testIdx" in str(row)[:999] for row in rows):
            keys, columns = set(), set(next(iter(read_table_rows(path))).columns)
    elif suffix in (*SUFFIXES, ".json"):
        columns = set(next(iter(read_table_rows(path))).columns)
    for name in FORMATS:
        importer = importer_of(name)
        tables = any(all(filter_names(columns, key) for key in each) for each in importer.row_keys)
        if tables or keys & {*importer.keys}:
            return name
    if suffix in (*SUFFIXES, ".json"):
        return "table"
    raise JudgeSenseError(
        f"{path}: not a file of verdicts; check reads {', '.join(SUFFIXES)}, .json, Inspect's "
        ".eval and folders of datasets, and a rubric as RUBRIC.txt with --data FILE --judge JUDGE"
    )


def files_of(format: str, source: Path) -> list[Path]:
    """``source`` itself, or the files of this format below the folder ``source``.

    Raises JudgeSenseError if there are none.
    """
    importer = importer_of(format)
    if source.is_file() or is_dataset(source):
        return [source]
    if not source.is_dir():
        raise JudgeSenseError(f"no file or folder {source}")
    try:
        found = sorted({path for pattern in importer.patterns for path in source.rglob(pattern)})
    except OSError as error:
        raise JudgeSenseError(f"cannot search {source} ({error}); name the log itself") from error
    if not found:
        raise JudgeSenseError(
            f"{source} holds no {format} log ({', '.join(importer.patterns)}: {importer.summary})"
        )
    return found


def import_log(
    source: str | Path,
    format: str,
    out: str | Path,
    *,
    columns: Mapping[str, str] | None = None,
    labels: Sequence[str] | None = None,
    pick: str | None = None,
    parse: Parser | None = None,
    people: Sequence[str] | None = None,
    mapping: Mapping[str, str] | None = None,
    joined: Mapping[str, Mapping[str, str]] | None = None,
    texts: Sequence[str] = (),
    tasks: Mapping[str, Vocabulary] | None = None,
    steps: Sequence[Step] = (),
    **facts: Any,
) -> dict[str, Any]:
    """Import a foreign log into the folder ``out`` and return its ``run.json``.

    Every row of the source is imported; ``run.json`` counts the rows of each task by status. A
    second import of the same source with the same options returns at once.

    Args:
        source: a file of the format, or a folder of such files.
        format: a name in `judgesense.importers.FORMATS`.
        out: the folder to write.
        columns: from columns of the decision log to the source's columns, to several joined by text
            (``{dataset}/{query}``), or to a ``:constant``. ``raw_decision: *`` reads every column
            that is not named as the decisions of a judge of that name.
        labels: the decision space, in order, if the log does not show it.
        pick: the name of Inspect's scorer, or of one score of several.
        parse: reads free text. By default a text is read only if it is a label.
        people: columns with people's labels; their majority becomes ``gold``. Then ``raw_text``
            is a reason, which no verdict is read from.
        mapping: words of verdicts and people's labels to labels (see `PeopleLabels`).
        joined: labels from another file, by name and item; ``people`` has the names too.
        texts: columns of verdicts that hold a judge's texts.
        tasks: labels and mapping of each task, where they differ.
        steps: what makes the source's rows one row a verdict.
        facts: more of ``run.json``.

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
    asked_for = ("source", "format", "out", "columns", "labels", "pick")
    given = {name: value for name, value in locals().items() if name in asked_for}
    importer, source, out = importer_of(format), Path(source), Path(out)
    if pick is not None and not importer.has_pick:
        raise JudgeSenseError(f"format {format!r} has no option pick")
    files = [path for path in files_of(format, source) if not path.is_relative_to(out)]
    space = importer.labels if labels is None else tuple(labels)
    if space is not None and (len(space) < 2 or len(set(space)) < len(space)):
        flag = ",".join([*dict.fromkeys(space), "OTHER"])
        raise JudgeSenseError(
            f"labels must be at least two distinct ones, not {list(space)}; name those that never "
            f"occur as well, such as --answers {flag} (in import: --labels)"
        )
    asked: dict[str, Any] = {
        "source": source.name,
        "sha256": source_digest(files),
        "format": format,
        "columns": dict(columns or {}),
        "labels": None if space is None else list(space),
        "pick": pick,
    }
    if people is not None:
        asked |= {"people": list(people), "mapping": dict(mapping or {})}
    if joined:
        asked["joined"] = hashlib.sha256(json.dumps(joined, sort_keys=True).encode()).hexdigest()
    if (done := _finished(out, asked)) is not None:
        return done
    column_map, judged = ColumnMap(columns or {}), Items()
    blocks: Iterable[Rows] = (r for path in files for r in importer.read(path, judged, pick))
    labels_of = PeopleLabels(
        column_map, people or (), mapping or {}, space, joined or {}, tasks or {}, texts
    )
    for step in steps:
        blocks = map(step, blocks)
    if people is not None:
        blocks = map(labels_of.labelled, blocks)
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{out.name}.", dir=out.parent) as folder:
            parts: dict[str, int] = {}
            hidden = Path(folder)
            items = ItemColumns(hidden, column_map, (ROW, "labels", *(people or ())))
            copies = Copies(column_map, (ROW, "labels", *(people or ())))
            times = Times(column_map, people or ())
            if column_map.given.get("raw_decision") != EVERY_OTHER:
                blocks = map(times.record, map(copies.record, map(items.kept, blocks)))

            def write(table: pa.Table) -> None:
                name = f"part-{len(parts):05}.parquet"
                parts[name] = table.num_rows
                write_part(table, hidden / PARTS, name)

            try:
                built = build_parts(blocks, column_map, space, parse, write, tasks or {})
            finally:
                items.close()
            if people:
                write_part(labels_of.table(), hidden, PEOPLE_FILE)
            names = ["judge", "scoring", "order", "repeat", "gold", "task", "item_id", "decision"]
            log = pq.read_table(part_files(hidden), columns=names)
            _keep(hidden, out, parts)
    except OSError as error:
        raise JudgeSenseError(f"cannot write to {out}: {error.strerror or error}") from error
    bursts = times.bursts(log)
    record = {
        "schema": 1,
        "run_id": f"{out.resolve().name}-{asked['sha256'][:8]}",
        "imported": asked,
        "invocation": invocation("import", import_log, given),
        **built,
        **({"copies": found, "shared": copies.counts} if (found := copies.found()) else {}),
        **({"families": families} if (families := copies.families()) else {}),
        "without_gold": log["gold"].null_count,
        **({"people": list(people), "ties": labels_of.ties} if people else {}),
        **({"no_verdict": labels_of.counts()} if people is not None else {}),
        **facts,
        **({"bursts": bursts, "notes": notes_of(bursts)} if bursts else {}),
        "judges": [
            {"name": judge, "describe": {"engine": "imported", "format": format}}
            for judge in log["judge"].unique().to_pylist()
        ],
        "scorings": sorted(log["scoring"].unique().to_pylist()),
        "orders": sorted(log["order"].unique().to_pylist()),
        "repeats": len(log["repeat"].unique()),
        "versions": {"judgesense": __version__},
        "parts": parts,
        "digests": digests_of(out),
        "finished": now(),
    }
    save_run(out, record)
    return record


def _keep(hidden: Path, out: Path, parts: Collection[str]) -> None:
    """Move all files to ``out``. Raises JudgeSenseError if it has other parts."""
    if others := {part.name for part in part_files(out)} - set(parts):
        raise JudgeSenseError(
            f"{out / PARTS} holds {min(others)}, which no run.json mentions; set --out "
            "to another folder"
        )
    refuse_links(out)
    (out / PARTS).mkdir(parents=True, exist_ok=True)
    for path in hidden.rglob("*.parquet"):
        path.replace(out / path.relative_to(hidden))


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


def source_digest(files: Sequence[Path]) -> str:
    """The SHA-256 of a file, or of the digests of several, those in folders too."""
    folders = [sorted(path.rglob("*")) if path.is_dir() else [path] for path in files]
    files = [path for folder in folders for path in folder if path.is_file()]
    digests = [sha256_of(path) for path in files]
    whole = "".join(digests)
    return whole if len(digests) == 1 else hashlib.sha256(whole.encode()).hexdigest()
