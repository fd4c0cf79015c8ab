"""Load a dataset by name or folder.

A dataset is an embedded set, a Hub dataset folder, a folder of ``<task>.jsonl`` files (or one such
file) in the earlier benchmark's schema, or a Hub id. Reading needs only pyarrow; a Hub id needs
huggingface_hub.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from judgesense.benchmark import Benchmark, infer_task
from judgesense.errors import JudgeSenseError, MissingExtraError
from judgesense.files.documents import Shape, parse_json, validate
from judgesense.files.tables import Record, column_names, in_schema, read_table
from judgesense.log.folder import PAIR_SCHEMA, PROMPT_SCHEMA
from judgesense.tasks import (
    Aliases,
    Task,
    load_label_map,
    prompt_id,
    wrong_alias,
)
from judgesense_dataset.embedded import EMBEDDED, EMBEDDED_SETS, embedded_rows, load_embedded
from judgesense_dataset.folder import (
    ALIASES,
    ALL,
    PAIR_ROWS,
    PROMPTS,
    REJECTED,
    configs,
    content_revision,
    is_hub_folder,
    read_config,
)
from judgesense_dataset.recognition import complete_pairs, known_tasks

_HUB_ID = re.compile(r"[\w.-]+/[\w.-]+")
_NEEDED = (
    "pair_id",
    "task_type",
    "prompt_a",
    "prompt_b",
    "item_id",
    "cluster_id",
    "template_a",
    "template_b",
    "order",
    "label_map_a",
    "label_map_b",
)


class Located(NamedTuple):
    """A dataset's folder or file, the name it was asked for by, and its revision."""

    folder: Path
    name: str
    revision: str


def load_benchmark(
    dataset: str | Path | None = None,
    revision: str | None = None,
    *,
    only_valid: bool = True,
) -> Benchmark:
    """Load the prompts and pairs of a dataset.

    Args:
        dataset: None or the name of an embedded set (``"embedded"``), a folder, a ``.jsonl`` file,
            or a Hub id ``org/name``. The prompts are its config ``prompts`` if it has one (the
            full grid, both option orders), else those of its pairs.
        revision: the commit, branch or tag of a Hub id.
        only_valid: leave out the pairs that were found not equivalent,
            as the paper does (JudgeSense, section 3.3). ``source["pairs_not_valid"]`` counts them
            either way. All prompts stay.

    Raises:
        JudgeSenseError: for a dataset that cannot be found, listing what was tried; and, naming
            file and row, for a missing column, a repeated pair id, empty text, an unknown order or
            a label outside the decision space.

    >>> benchmark = load_benchmark("embedded")
    >>> benchmark.prompts.num_rows, benchmark.pairs.num_rows
    (1500, 1000)
    """
    if dataset is None or str(dataset) in EMBEDDED_SETS:
        return load_embedded(str(dataset or EMBEDDED), only_valid=only_valid)
    located = locate(dataset, revision)
    folder, where = located.folder, str(located.folder)
    source = {"name": located.name, "revision": located.revision}
    grid, aliases = _grid(folder)
    rows = _pair_rows(located)
    tasks = _tasks(rows, where)
    _check_pairs(rows, tasks, where)
    prompts = _prompts_of(rows) if grid is None else grid
    valid_rows = rows.filter(pc.fill_null(rows["valid"], True))
    if not_valid := rows.num_rows - valid_rows.num_rows:
        source["pairs_not_valid"] = f"{not_valid} ({'left out' if only_valid else 'kept'})"
    return Benchmark(tasks, prompts, _pairs_of(valid_rows if only_valid else rows), source, aliases)


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
    located = locate(dataset, revision)
    table = _pair_rows(located)
    _require_values(table, ("pair_id", "task_type", "prompt_a", "prompt_b"), str(located.folder))
    return table


def locate(dataset: str | Path, revision: str | None = None) -> Located:
    """Find a dataset: a folder or file, a folder of the mirror, or a Hub snapshot.

    Raises JudgeSenseError listing what was tried.
    """
    name = str(dataset)
    is_id = isinstance(dataset, str) and _HUB_ID.fullmatch(name)
    candidates = [Path(dataset).expanduser()]
    if is_id and (mirror := os.environ.get("JUDGESENSE_MIRROR")):
        candidates.append(Path(mirror).expanduser() / name)
    for folder in candidates:
        # Unlike pathlib, false for a name that is too long for the file system.
        if os.path.isdir(folder) or (os.path.isfile(folder) and folder.suffix == ".jsonl"):
            return Located(folder, name, content_revision(folder, data_files(folder)))
    places = [f"the folder {folder} (not found)" for folder in candidates]
    if is_id:
        try:
            folder = snapshot(name, revision)
            return Located(folder, name, folder.name)
        except OSError as error:
            at = f" at {revision}" if revision else ""
            places.append(f"the Hub dataset {name}{at} ({str(error).strip().splitlines()[0]})")
    else:
        places.append("a Hub id (it does not have the form org/name)")
    raise JudgeSenseError(
        f"unknown dataset {name!r}; tried {'; '.join(places)}. "
        f"The datasets that come with the package are {', '.join(EMBEDDED_SETS)}"
    )


def snapshot(name: str, revision: str | None) -> Path:
    """The local copy of a Hub dataset, in a folder named by its commit.

    Raises OSError if it cannot be downloaded.
    """
    try:
        from huggingface_hub import snapshot_download
        from huggingface_hub.errors import HfHubHTTPError, HFValidationError
    except ImportError as error:
        raise MissingExtraError(
            "huggingface_hub", "hub", f"reading {name!r} from the Hub"
        ) from error
    try:
        return Path(snapshot_download(name, repo_type="dataset", revision=revision))
    # LocalEntryNotFoundError (no network, nothing cached) is an OSError.
    except (HfHubHTTPError, HFValidationError, ValueError) as error:
        raise OSError(str(error)) from error


def data_files(folder: Path) -> list[Path]:
    """The Parquet files of a Hub folder, or the ``.jsonl`` files of another (or the file).

    Raises JudgeSenseError for a folder without any.
    """
    if is_hub_folder(folder):
        files = sorted({path for paths in configs(folder).values() for path in paths})
    else:
        files = [folder] if folder.is_file() else sorted(folder.glob("*.jsonl"))
    if not files:
        raise JudgeSenseError(
            f"{folder} is not a dataset: it has neither a README.md that declares Parquet configs "
            "nor <task>.jsonl files"
        )
    return files


def jsonl_pairs(folder: Path) -> Iterator[tuple[Mapping[str, Any], dict[str, Any]]]:
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
        raise JudgeSenseError(f"{folder} has no .jsonl rows with prompt_a and prompt_b")


def _pair_rows(located: Located) -> pa.Table:
    folder, rows = located.folder, list[Mapping[str, Any]]()
    if not is_hub_folder(folder):
        rows = [row for _, row in jsonl_pairs(folder)]
    else:
        available = configs(folder)
        names = (ALL, REJECTED) if ALL in available else available
        configs_to_read = [name for name in names if name in available and name != PROMPTS]
        if not configs_to_read:
            raise JudgeSenseError(f"{located.name} has prompts but no pairs")
        tables = {f"{folder} ({name})": read_config(folder, name) for name in configs_to_read}
        if all(set(PAIR_ROWS.names) <= set(table.column_names) for table in tables.values()):
            return pa.concat_tables(in_schema(t, PAIR_ROWS, place) for place, t in tables.items())
        for name, (place, table) in zip(configs_to_read, tables.items(), strict=True):
            numbered = enumerate(table.to_pylist(), 1)
            records = (Record(row, f"{place}, row {number}") for number, row in numbered)
            rows += complete_pairs(records, name)
    try:
        return pa.Table.from_pylist(rows, schema=PAIR_ROWS)
    except (pa.ArrowException, OverflowError) as error:
        raise JudgeSenseError(f"{folder}: a column has the wrong type ({error})") from error


def _tasks(table: pa.Table, where: str) -> dict[str, Task]:
    tasks = {}
    for name in pc.unique(table["task_type"]).to_pylist():
        part = table.filter(pc.equal(table["task_type"], name))
        # The two prompts of a pair have no fixed order.
        label_maps = part["label_map_a"].to_pylist() + part["label_map_b"].to_pylist()
        maps = sorted(set(label_maps) - {None})
        if not maps:
            raise JudgeSenseError(
                f"{where}: no row of task {name!r} has a label map, and no wording is a known "
                "template; add the columns template_a, template_b, label_map_a and label_map_b"
            )
        task = infer_task(name, maps, pc.unique(part["order"]).to_pylist())
        entry = known_tasks().get(name)
        has_same_labels = entry is not None and set(entry.task.labels) == set(task.labels)
        tasks[name] = entry.task if entry and has_same_labels else task
    return tasks


def _check_pairs(rows: pa.Table, tasks: Mapping[str, Task], where: str) -> None:
    def refuse(bad: pa.ChunkedArray, column: str, reason: str) -> None:
        if (at := pc.index(bad, True).as_py()) >= 0:
            pair, value = rows["pair_id"][at].as_py(), rows[column][at].as_py()
            raise JudgeSenseError(
                f"{where}, row {at + 1} (pair {pair!r}), column {column}: {reason}; got {value!r}"
            )

    for name in _NEEDED:
        blank = pc.fill_null(pc.equal(pc.utf8_trim_whitespace(rows[name]), ""), True)
        refuse(blank, name, "is empty, and the wording does not determine it")
    ids = rows["pair_id"].to_pylist()
    first = {pair: at for at, pair in reversed(list(enumerate(ids)))}
    repeated = pa.chunked_array([[first[pair] != at for at, pair in enumerate(ids)]], pa.bool_())
    refuse(repeated, "pair_id", "is already the id of an earlier row")
    for name, task in tasks.items():
        is_task = pc.equal(rows["task_type"], name)
        labels = ", ".join(task.labels)
        allowed: dict[str, tuple[Sequence[str | None], str]] = {
            "order": (task.orders, f"must be one of {', '.join(task.orders)}"),
            "ground_truth_label": (
                (*task.labels, None),
                f"is not a label of task {name!r}, whose labels are {labels}",
            ),
        }
        for column in ("label_map_a", "label_map_b"):
            maps = pc.unique(rows.filter(is_task)[column]).to_pylist()
            valid = [text for text in maps if set(load_label_map(text).values()) <= {*task.labels}]
            allowed[column] = (valid, f"maps an answer to no label of task {name!r} ({labels})")
        for column, (values, reason) in allowed.items():
            is_allowed = pc.is_in(rows[column], value_set=pa.array(values, pa.string()))
            refuse(pc.and_(is_task, pc.invert(is_allowed)), column, reason)


def _grid(folder: Path) -> tuple[pa.Table | None, dict[str, Aliases]]:
    """The config ``prompts`` of a Hub folder, None if it has none; and the templates' aliases."""
    if not is_hub_folder(folder) or PROMPTS not in configs(folder):
        return None, {}
    place = f"{folder} ({PROMPTS})"
    table = in_schema(read_config(folder, PROMPTS, PROMPT_SCHEMA.names), PROMPT_SCHEMA, place)
    columns = ("prompt_id", "text", "task", "item_id", "template_id", "order", "label_map")
    _require_values(table, columns, place)
    has_aliases = all(ALIASES in column_names(path) for path in configs(folder)[PROMPTS])
    return table, _aliases(folder, place) if has_aliases else {}


def _require_values(table: pa.Table, columns: Sequence[str], place: str) -> None:
    for name in columns:
        if table[name].null_count:
            row = table[name].is_null().index(True).as_py() + 1
            raise JudgeSenseError(f"{place}, row {row}, column {name}: the value is missing")


class _AliasColumn(Shape):
    texts: dict[str, tuple[str, ...]]


def _aliases(folder: Path, where: str) -> dict[str, Aliases]:
    table = read_config(folder, PROMPTS, ["template_id", "label_map", ALIASES])
    aliases: dict[str, Aliases] = {}
    for row in table.group_by(table.column_names).aggregate([]).to_pylist():
        if row[ALIASES] is not None:
            place = f"{where}, template {row['template_id']!r}, column {ALIASES}"
            value = {"texts": parse_json(row[ALIASES], place)}
            texts = validate(_AliasColumn, value, place, "a JSON object of lists").texts
            if wrong := wrong_alias(tuple(load_label_map(row["label_map"])), texts):
                raise JudgeSenseError(f"{place}: {wrong[2]}")
            aliases[row["template_id"]] = texts
    return aliases


def _prompts_of(rows: pa.Table) -> pa.Table:
    prompts: dict[tuple[str, ...], dict[str, Any]] = {}
    for row in chain.from_iterable(b.to_pylist() for b in rows.to_batches(max_chunksize=2048)):
        for side in "ab":
            key = (row["task_type"], row["item_id"], row["order"], row[f"template_{side}"])
            if key not in prompts:
                prompts[key] = {
                    "prompt_id": prompt_id(row[f"prompt_{side}"]),
                    "text": row[f"prompt_{side}"],
                    "task": row["task_type"],
                    "item_id": row["item_id"],
                    "cluster_id": row["cluster_id"],
                    "template_id": row[f"template_{side}"],
                    "order": row["order"],
                    "label_map": row[f"label_map_{side}"],
                    "gold": row["ground_truth_label"],
                    "system_id": row["system_id"] or "",
                }
    return pa.Table.from_pylist(list(prompts.values()), schema=PROMPT_SCHEMA)


def _pairs_of(rows: pa.Table) -> pa.Table:
    columns = {name: rows[name] for name in PAIR_SCHEMA.names if name in rows.column_names}
    columns["task"] = rows["task_type"]
    for side in "ab":
        texts = rows[f"prompt_{side}"].to_pylist()
        columns[f"prompt_id_{side}"] = pa.array([prompt_id(text) for text in texts], pa.string())
    return pa.table({name: columns[name] for name in PAIR_SCHEMA.names}, schema=PAIR_SCHEMA)
