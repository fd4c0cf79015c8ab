"""Load a dataset by name or folder.

A dataset is an embedded set, a Hub dataset folder, a folder of ``<task>.jsonl`` files (or one such
file) in the earlier benchmark's schema, or a Hub id. Reading needs only pyarrow; a Hub id needs
huggingface_hub.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from judgesense.benchmark import Benchmark, infer_task, table_of_pairs
from judgesense.errors import JudgeSenseError, MissingExtraError
from judgesense.files.documents import parse_json
from judgesense.files.tables import Record, column_names, in_schema, read_table
from judgesense.run_folder.folder import PAIR_SCHEMA, PROMPT_SCHEMA
from judgesense.tasks import (
    Aliases,
    Prompt,
    Task,
    load_label_map,
    pair_up,
    prompt_id,
    wrong_alias,
)
from judgesense_dataset.embedded import EMBEDDED, EMBEDDED_SETS, embedded_rows, load_embedded
from judgesense_dataset.folder import (
    ALIASES,
    ALL,
    PAIR_ROWS,
    PROMPTS,
    configs,
    content_revision,
    is_hub_folder,
    read_config,
)
from judgesense_dataset.recognition import complete_pairs, known_tasks

_HUB_ID = re.compile(r"[\w.-]+/[\w.-]+")
_OPTIONAL = {
    "semantic_equivalence_score", "valid", "validation", "system_id", "license",
    "source_revision", "source_benchmark", "response_being_judged", "expected_a",
    "expected_b",
}  # fmt: skip

_Rows = Iterator[tuple[Mapping[str, Any], dict[str, Any]]]


@dataclass(frozen=True)
class Located:
    """A dataset's folder or file, the name it was asked for by, and its revision."""

    folder: Path
    name: str
    revision: str


def load_benchmark(
    dataset: str | Path | None = None,
    revision: str | None = None,
    *,
    only_valid: bool = False,
) -> Benchmark:
    """Load the prompts and pairs of a dataset.

    Args:
        dataset: None or the name of an embedded set (``"embedded"``), a folder, a ``.jsonl`` file,
            or a Hub id ``org/name``. The prompts are its config ``prompts`` if it has one (the
            full grid, both option orders), else those of its pairs. If it has no other config,
            all templates are paired within item and order.
        revision: the commit, branch or tag of a Hub id.
        only_valid: leave out the pairs that the validators found not equivalent, as the paper does
            (JudgeSense, section 3.3). ``source["pairs_not_valid"]`` counts them either way.

    Raises:
        JudgeSenseError: for a dataset that cannot be found, listing what was tried; and, naming
            file and row, for a missing column, a repeated pair id, empty text, an unknown order or
            a label outside the decision space.

    >>> benchmark = load_benchmark("embedded")
    >>> benchmark.prompts.num_rows, benchmark.pairs.num_rows
    (1500, 1000)
    """
    if dataset is None or str(dataset) in EMBEDDED_SETS:
        return load_embedded(str(dataset or EMBEDDED))
    found = locate(dataset, revision)
    if is_hub_folder(found.folder) and set(configs(found.folder)) == {PROMPTS}:
        return _grid_alone(found)
    rows = _pair_rows(found)
    tasks = _tasks(rows, "task_type", ["label_map_a", "label_map_b"], str(found.folder))
    check_pairs(rows, tasks, str(found.folder))
    source = {"name": found.name, "revision": found.revision}
    grid = _grid(found.folder)
    prompts = _prompts_of(rows) if grid is None else grid
    kept = rows.filter(pc.fill_null(rows["valid"], True))
    if not_valid := rows.num_rows - kept.num_rows:
        source["pairs_not_valid"] = f"{not_valid} ({'left out' if only_valid else 'kept'})"
    if only_valid:
        rows = kept
    return Benchmark(tasks, prompts, _pairs_of(rows), source, _aliases(found.folder))


def load_pairs(dataset: str | Path | None = None, revision: str | None = None) -> pa.Table:
    """Load all pairs of a dataset unchecked, with the columns of ``folder.PAIR_ROWS``.

    Audits and validators read this table. A column is null where neither the row nor its wording
    determines the value. ``dataset`` and ``revision`` are those of :func:`load_benchmark`.

    >>> load_pairs().slice(0, 1)["pair_id"].to_pylist()
    ['factuality-27:factuality-1~factuality-5']
    """
    if dataset is None or str(dataset) in EMBEDDED_SETS:
        rows = list(embedded_rows(str(dataset or EMBEDDED)))
        return pa.Table.from_pylist(rows, schema=PAIR_ROWS)
    found = locate(dataset, revision)
    table = _pair_rows(found)
    _check_complete(table, ("pair_id", "task_type", "prompt_a", "prompt_b"), str(found.folder))
    return table


def locate(dataset: str | Path, revision: str | None = None) -> Located:
    """Find a dataset: a folder or file, a folder of the mirror, or a Hub snapshot.

    Raises JudgeSenseError listing what was tried.
    """
    name = str(dataset)
    tried = []
    candidates = [Path(dataset).expanduser()]
    if (mirror := os.environ.get("JUDGESENSE_MIRROR")) and _HUB_ID.fullmatch(name):
        candidates.append(Path(mirror).expanduser() / name)
    for folder in candidates:
        # Unlike pathlib, false for a name that is too long for the file system.
        if os.path.isdir(folder) or (os.path.isfile(folder) and folder.suffix == ".jsonl"):
            return Located(folder, name, content_revision(folder, require_data_files(folder)))
        tried.append(f"the folder {folder} (not found)")
    if not isinstance(dataset, str) or not _HUB_ID.fullmatch(name):
        raise _unknown(name, [*tried, "a Hub id (it does not have the form org/name)"])
    snapshot = _snapshot(name, revision, tried)
    return Located(snapshot, name, snapshot.name)


def _snapshot(name: str, revision: str | None, tried: list[str]) -> Path:
    try:
        from huggingface_hub import snapshot_download
        from huggingface_hub.errors import HfHubHTTPError, HFValidationError
    except ImportError as error:
        raise MissingExtraError(
            "huggingface_hub", "hub", f"reading {name!r} from the Hub"
        ) from error
    try:
        return Path(
            snapshot_download(
                name,
                repo_type="dataset",
                revision=revision,
                allow_patterns=["*.parquet", "README.md"],
            )
        )
    # LocalEntryNotFoundError (no network, nothing cached) is an OSError.
    except (HfHubHTTPError, HFValidationError, OSError, ValueError) as error:
        reason = str(error).strip().splitlines()[0]
        tried.append(f"the Hub dataset {name}{f' at {revision}' if revision else ''} ({reason})")
        raise _unknown(name, tried) from error


def _unknown(name: str, tried: list[str]) -> JudgeSenseError:
    return JudgeSenseError(
        f"unknown dataset {name!r}; tried {'; '.join(tried)}. "
        f"The datasets that come with the package are {', '.join(EMBEDDED_SETS)}"
    )


def data_files(folder: Path) -> list[Path]:
    """The Parquet files of a Hub folder, or the ``.jsonl`` files of another (or the file)."""
    if is_hub_folder(folder):
        return sorted({path for paths in configs(folder).values() for path in paths})
    return [folder] if folder.is_file() else sorted(folder.glob("*.jsonl"))


def require_data_files(folder: Path) -> list[Path]:
    """The same. Raises JudgeSenseError for a folder without any."""
    if not (files := data_files(folder)):
        raise JudgeSenseError(
            f"{folder} is not a dataset: it has neither a README.md that declares Parquet configs "
            "nor <task>.jsonl files"
        )
    return files


def _pair_rows(found: Located) -> pa.Table:
    if is_hub_folder(found.folder):
        if set(configs(found.folder)) == {PROMPTS}:
            raise JudgeSenseError(f"{found.name} holds a grid of prompts but no pairs")
        return _parquet_pairs(found.folder)
    return _table([row for _, row in jsonl_pairs(found.folder)], str(found.folder))


def jsonl_pairs(folder: Path) -> _Rows:
    """The pairs in a folder's ``.jsonl`` files: each row as the file has it, and completed.

    Other files, such as verdicts and logs, are skipped. Raises JudgeSenseError if none has pairs.
    """
    empty = True
    for path in data_files(folder):
        records = list(read_table(path))
        if any("prompt_a" in record.values or "prompt_b" in record.values for record in records):
            empty = False
            rows = (record.values for record in records)
            yield from zip(rows, complete_pairs(records, path.stem), strict=True)
    if empty:
        raise JudgeSenseError(f"{folder} holds no .jsonl rows with prompt_a and prompt_b")


def _parquet_pairs(folder: Path) -> pa.Table:
    available = configs(folder)
    wanted = [ALL] if ALL in available else [name for name in available if name != PROMPTS]
    tables = {f"{folder} ({name})": read_config(folder, name) for name in wanted}
    if all(set(PAIR_ROWS.names) <= set(table.column_names) for table in tables.values()):
        return pa.concat_tables(in_schema(t, PAIR_ROWS, place) for place, t in tables.items())
    rows: list[Mapping[str, Any]] = []
    for name, (place, table) in zip(wanted, tables.items(), strict=True):
        numbered = enumerate(table.to_pylist(), 1)
        records = (Record(row, f"{place}, row {number}") for number, row in numbered)
        rows += complete_pairs(records, name)
    return _table(rows, str(folder))


def _table(rows: list[Mapping[str, Any]], where: str) -> pa.Table:
    try:
        return pa.Table.from_pylist(rows, schema=PAIR_ROWS)
    except (pa.ArrowException, OverflowError) as error:
        raise JudgeSenseError(f"{where}: a column has the wrong type ({error})") from error


def _tasks(
    table: pa.Table, name_column: str, map_columns: Sequence[str], where: str
) -> dict[str, Task]:
    """The tasks of a table's rows: known tasks where the labels are the same."""
    tasks = {}
    for name in pc.unique(table[name_column]).to_pylist():
        part = table.filter(pc.equal(table[name_column], name))
        maps = [text for column in map_columns for text in pc.unique(part[column]).to_pylist()]
        if len(map_columns) > 1:  # A pair's sides have no fixed order.
            maps = sorted({text for text in maps if text is not None})
        if not maps:
            raise JudgeSenseError(
                f"{where}: no row of task {name!r} has a label map, and no wording is a known "
                "template; add the columns template_a, template_b, label_map_a and label_map_b"
            )
        task = infer_task(name, maps, pc.unique(part["order"]).to_pylist())
        known = known_tasks().get(name)
        same = known is not None and set(known.task.labels) == set(task.labels)
        tasks[name] = known.task if known and same else task
    return tasks


def _grid_alone(found: Located) -> Benchmark:
    grid = _grid(found.folder)
    assert grid is not None
    cells: dict[tuple[str, str, str], list[Prompt]] = {}
    for row in _records(grid):
        cells.setdefault((row["task"], row["item_id"], row["order"]), []).append(Prompt(**row))
    pairs = (pair_up(a, b) for cell in cells.values() for a, b in combinations(cell, 2))
    tasks = _tasks(grid, "task", ["label_map"], str(found.folder))
    source = {"name": found.name, "revision": found.revision}
    return Benchmark(tasks, grid, table_of_pairs(pairs), source, _aliases(found.folder))


def check_pairs(rows: pa.Table, tasks: Mapping[str, Task], where: str) -> None:
    """Raise JudgeSenseError, naming row and column, for rows that cannot be measured."""
    seen: dict[str, int] = {}
    needed = [name for name in PAIR_ROWS.names if name not in _OPTIONAL]
    for number, row in enumerate(_records(rows.select(needed)), 1):
        place = f"{where}, row {number} (pair {row['pair_id']!r})"
        for column, value in row.items():
            if column != "ground_truth_label" and (value is None or not value.strip()):
                raise JudgeSenseError(
                    f"{place}, column {column}: is empty, and the wording does not determine it"
                )
        if row["pair_id"] in seen:
            raise JudgeSenseError(
                f"{place}, column pair_id: is already the id of row {seen[row['pair_id']]}"
            )
        seen[row["pair_id"]] = number
        task = tasks[row["task_type"]]
        if row["order"] not in task.orders:
            raise JudgeSenseError(
                f"{place}, column order: must be one of {', '.join(task.orders)}, "
                f"got {row['order']!r}"
            )
        gold = row["ground_truth_label"]
        if gold is not None and gold not in task.labels:
            raise JudgeSenseError(
                f"{place}, column ground_truth_label: {gold!r} is not a label of task "
                f"{task.name!r}; the labels are {', '.join(task.labels)}"
            )
        for side in "ab":
            labels = set(load_label_map(row[f"label_map_{side}"]).values())
            if strange := labels - set(task.labels):
                raise JudgeSenseError(
                    f"{place}, column label_map_{side}: leads to {sorted(strange)[0]!r}, which is "
                    f"not a label of task {task.name!r}; the labels are {', '.join(task.labels)}"
                )


def _records(table: pa.Table) -> Iterator[dict[str, Any]]:
    for batch in table.to_batches(max_chunksize=2048):
        yield from batch.to_pylist()


def _grid(folder: Path) -> pa.Table | None:
    if not is_hub_folder(folder) or PROMPTS not in configs(folder):
        return None
    place = f"{folder} ({PROMPTS})"
    table = in_schema(read_config(folder, PROMPTS, PROMPT_SCHEMA.names), PROMPT_SCHEMA, place)
    needed = ("prompt_id", "text", "task", "item_id", "template_id", "order", "label_map")
    _check_complete(table, needed, place)
    return table


def _check_complete(table: pa.Table, needed: Sequence[str], place: str) -> None:
    """Raise JudgeSenseError, naming row and column, for a value that is missing."""
    for name in needed:
        if table[name].null_count:
            row = table[name].is_null().index(True).as_py() + 1
            raise JudgeSenseError(f"{place}, row {row}, {name}: the value is missing")


def _aliases(folder: Path) -> dict[str, Aliases]:
    """The aliases of the templates, by template id; raises JudgeSenseError for invalid ones."""
    if not is_hub_folder(folder) or PROMPTS not in configs(folder):
        return {}
    if not all(ALIASES in column_names(path) for path in configs(folder)[PROMPTS]):
        return {}
    table = read_config(folder, PROMPTS, ["template_id", "label_map", ALIASES])
    found: dict[str, Aliases] = {}
    for row in table.group_by(table.column_names).aggregate([]).to_pylist():
        if row[ALIASES] is None:
            continue
        place = f"{folder} ({PROMPTS}), template {row['template_id']!r}, column {ALIASES}"
        listed = parse_json(row[ALIASES], place)
        if not isinstance(listed, dict) or not all(isinstance(v, list) for v in listed.values()):
            raise JudgeSenseError(f"{place}: must be a JSON object of lists, got {row[ALIASES]!r}")
        listed = {answer: tuple(map(str, texts)) for answer, texts in listed.items()}
        if wrong := wrong_alias(tuple(load_label_map(row["label_map"])), listed):
            raise JudgeSenseError(f"{place}: {wrong[2]}")
        found[row["template_id"]] = listed
    return found


def _prompts_of(rows: pa.Table) -> pa.Table:
    """The prompts of the pairs, once per item, order and template, by first occurrence."""
    seen: dict[tuple[str, ...], dict[str, Any]] = {}
    for row in _records(rows):
        for side in "ab":
            key = (row["task_type"], row["item_id"], row["order"], row[f"template_{side}"])
            if key not in seen:
                text = row[f"prompt_{side}"]
                seen[key] = {
                    "prompt_id": prompt_id(text),
                    "text": text,
                    "task": row["task_type"],
                    "item_id": row["item_id"],
                    "cluster_id": row["cluster_id"],
                    "template_id": row[f"template_{side}"],
                    "order": row["order"],
                    "label_map": row[f"label_map_{side}"],
                    "gold": row["ground_truth_label"],
                    "system_id": row["system_id"] or "",
                }
    return pa.Table.from_pylist(list(seen.values()), schema=PROMPT_SCHEMA)


def _pairs_of(rows: pa.Table) -> pa.Table:
    """The rows with prompt ids in place of the prompts' texts."""
    columns = {}
    for name in PAIR_SCHEMA.names:
        if name.startswith("prompt_id_"):
            texts = rows[name.replace("prompt_id", "prompt")]
            columns[name] = [prompt_id(text.as_py()) for text in texts]
        else:
            columns[name] = rows["task_type" if name == "task" else name]
    return pa.table(columns, schema=PAIR_SCHEMA)
