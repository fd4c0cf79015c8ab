"""Foreign logs to the decision log, one file a format.

An imported folder holds ``run.json`` and ``decisions/part-00000.parquet``, which reports and
comparisons read like a run of our own; without ``pairs.parquet`` all template pairs within an
item and order are formed.
"""

from __future__ import annotations

import hashlib
import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from judgesense.decisions import PARTS, part_files, write_part
from judgesense.errors import JudgeSenseError
from judgesense.importers.build import Parser, build
from judgesense.importers.columns import ColumnMap, parse_columns
from judgesense.run_folder import SCHEMA_VERSION, now, read_record, save_run
from judgesense.version import __version__

__all__ = ["FORMATS", "Format", "import_log", "parse_columns"]


@dataclass(frozen=True)
class Format:
    """A foreign format: its module, what it is, and which options its reader takes."""

    module: str
    summary: str
    options: tuple[str, ...] = ()


FORMATS: Mapping[str, Format] = {
    "table": Format("tables", "CSV, TSV, JSONL or Parquet, one decision a row"),
    "lm-eval": Format("lm_eval", "lm-eval --log_samples file, or a folder of them", ("pick",)),
    "inspect": Format("inspect_logs", "Inspect .eval or .json log, or a folder of them", ("pick",)),
    "openai-batch": Format("openai_batch", "OpenAI batch output JSONL", ("custom_id", "labels")),
    "llmbar": Format("llmbar", "LLMBar's judgments.csv"),
    "rag-eval": Format("rag_eval", "RAG-Eval-LLM-Judge's wide CSV tables"),
}


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
    """Import a foreign log into the folder ``out``; returns its ``run.json``.

    ``columns`` maps columns of the decision log to the source's (or to a ``:constant``);
    ``labels`` is the decision space, in order, where the log does not show it; ``pick`` names
    lm-eval's filter or Inspect's scorer; ``custom_id`` is the form of batch ids; ``parse`` reads
    free text (by default only a text that is a label is read). Given again with the same source
    and options, a finished import returns at once. ``run.json`` counts the rows of each task by
    status; no row of the source is left out.

    Raises JudgeSenseError for an unknown format (naming those that exist), an option that the
    format lacks, an ``out`` that holds another run, and bad input with file, row and column.
    """
    if format not in FORMATS:
        raise JudgeSenseError(f"unknown format {format!r}; there are {', '.join(FORMATS)}")
    known = FORMATS[format]
    source, out = Path(source), Path(out)
    for name, value in (("pick", pick), ("custom_id", custom_id)):
        if value is not None and name not in known.options:
            raise JudgeSenseError(f"format {format!r} has no option {name}")
    if not source.exists():
        raise JudgeSenseError(f"no file or folder {source}")
    reader = importlib.import_module(f"judgesense.importers.{known.module}")
    files = reader.files(source) if hasattr(reader, "files") else [source]
    labels = labels if labels is not None else getattr(reader, "LABELS", None)
    asked: dict[str, Any] = {
        "source": source.name,
        "sha256": _sha256(files),
        "format": format,
        "columns": dict(columns or {}),
        "labels": None if labels is None else list(labels),
        "pick": pick,
        "custom_id": custom_id,
        "encoding": encoding,
    }
    if (done := _finished(out, asked)) is not None:
        return done
    given = {"pick": pick, "custom_id": custom_id, "labels": labels}
    options = {name: given[name] for name in known.options if given[name] is not None}
    built = build(
        reader.read(source, encoding=encoding, **options),
        ColumnMap(columns or {}, reader.DEFAULTS),
        labels,
        parse,
    )
    name = "part-00000.parquet"
    try:
        write_part(built.table, out / PARTS, name)
    except OSError as error:
        raise JudgeSenseError(f"cannot write to {out}: {error.strerror or error}") from error
    record = {
        "schema": SCHEMA_VERSION,
        "run_id": f"{out.resolve().name}-{asked['sha256'][:8]}",
        "imported": asked,
        "notes": list(getattr(reader, "NOTES", ())),
        "tasks": built.tasks,
        "counts": built.counts,
        "not_labels": built.unknown,
        "without_gold": built.table["gold"].null_count,
        "judges": [
            {"name": judge, "describe": {"engine": "imported", "format": format}}
            for judge in built.table["judge"].unique().to_pylist()
        ],
        "scorings": sorted(set(built.table["scoring"].to_pylist())),
        "orders": sorted(set(built.table["order"].to_pylist())),
        "repeats": len(built.table["repeat"].unique()),
        "versions": {"judgesense": __version__},
        "parts": {name: built.table.num_rows},
        "finished": now(),
    }
    save_run(out, record)
    return record


def _finished(out: Path, asked: Mapping[str, Any]) -> dict[str, Any] | None:
    """The record of this very import, if ``out`` holds it whole; refuse any other run."""
    record = read_record(out)
    if record is None:
        return None
    if record.get("imported") != asked:
        raise JudgeSenseError(
            f"{out} holds another run ({record.get('run_id')}); give --out another folder"
        )
    names = {part.name for part in part_files(out)}
    return record if record.get("finished") and names == set(record.get("parts", {})) else None


def _sha256(files: Sequence[Path]) -> str:
    """The SHA-256 of a file; of several, that of their digests' hex, in order."""
    digests = []
    for path in files:
        digest = hashlib.sha256()
        try:
            with path.open("rb") as source:
                while block := source.read(1 << 20):
                    digest.update(block)
        except OSError as error:
            raise JudgeSenseError(f"cannot read {path}: {error.strerror or error}") from error
        digests.append(digest.hexdigest())
    return (
        digests[0] if len(digests) == 1 else hashlib.sha256("".join(digests).encode()).hexdigest()
    )
