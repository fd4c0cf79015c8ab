"""The Hub dataset folder: its columns and files, and how to write and read them.

A folder holds one Parquet file per config (``<config>/test.parquet``) and a README.md whose YAML
names them. A task's config has its pairs but those that the validators found not equivalent, which
are in ``rejected`` (JudgeSense, section 4.5, publishes the validated pairs). The config ``all``
names every task's file, so that no pair is stored twice. Writing is deterministic: the same rows
give the same bytes under the same pyarrow.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain, islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from judgesense.errors import JudgeSenseError
from judgesense.files.disk import read_text, refuse_links, require_writable, write_text
from judgesense.files.documents import Shape, parse_yaml, validate
from judgesense.files.tables import read_parquet, read_table
from judgesense.log.folder import PROMPT_SCHEMA

SPLIT = "test"
ALL, REJECTED, PROMPTS = "all", "rejected", "prompts"
"""The configs beside the tasks': their pairs together (the default), the pairs found not
equivalent (absent without any, as datasets loads no empty config), and the full item x template
grid."""

README = "README.md"

ROW_GROUP = 2000
"""Rows per row group: the number in memory while a config is written or streamed."""

_TYPES = {"semantic_equivalence_score": pa.float64(), "valid": pa.bool_()}

PAIR_ROWS = pa.schema(
    (name, _TYPES.get(name, pa.string()))
    for name in (
        "pair_id",
        "task_type",
        "source_benchmark",
        "prompt_a",
        "prompt_b",
        "response_being_judged",
        "ground_truth_label",
        "semantic_equivalence_score",
        "item_id",
        "cluster_id",
        "template_a",
        "template_b",
        "order",
        "label_map_a",
        "label_map_b",
        "valid",
        "validation",
        "system_id",
        "license",
        "source_revision",
        "expected_a",
        "expected_b",
    )
)
"""Columns of the task configs and of ``all``: one row per pair.

The first eight are the earlier benchmark's. ``ground_truth_label`` is canonical, as shown in
``order``; ``label_map_*`` and ``validation`` are JSON strings; ``semantic_equivalence_score``,
``valid`` and ``validation`` are null until the pairs are validated. ``expected_*`` is the raw
answer to each prompt that means the ground truth, null without one.
"""

PROMPT_ROWS = pa.schema(
    [*PROMPT_SCHEMA, *((name, pa.string()) for name in ("source", "revision", "license"))]
)
"""Columns of the config ``prompts``: one row for each item, template and option order."""

ALIASES = "aliases"
"""The config ``prompts`` has this column too if a template has aliases: a JSON object of lists."""


def write_config(
    folder: Path, config: str, schema: pa.Schema, rows: Iterable[Mapping[str, Any]]
) -> int:
    """Write one config's rows in row groups of a fixed size; returns their number.

    Rows are mappings with the schema's columns; a column that a row lacks is null.
    """
    path = folder / config_file(config)
    path.parent.mkdir(parents=True, exist_ok=True)
    options = {"version": "2.6", "compression": "zstd", "data_page_version": "1.0"}
    remaining, n_written = iter(rows), 0
    with pq.ParquetWriter(path, schema, **options) as writer:
        while group := list(islice(remaining, ROW_GROUP)):
            writer.write_table(pa.Table.from_pylist(group, schema=schema))
            n_written += len(group)
    return n_written


def config_file(config: str) -> str:
    """The path of a config's rows in a folder that JudgeSense writes."""
    return f"{config}/{SPLIT}.parquet"


def kept(
    rows: Iterable[Mapping[str, Any]], rejected: list[dict[str, Any]]
) -> Iterator[Mapping[str, Any]]:
    """The rows of pairs that were not found invalid; the others go to ``rejected``."""
    for row in rows:
        if row.get("valid") is False:
            rejected.append(dict(row))
        else:
            yield row


@contextmanager
def new_folder(final: Path) -> Iterator[Path]:
    """A folder that appears under its name only if the block succeeds.

    It is made beside ``final`` and renamed, so that nothing half-written is ever visible. An
    earlier dataset folder of that name is replaced; anything else there is refused.
    """
    final = final.absolute()
    if final.exists() and not (
        final.is_dir() and (is_hub_folder(final) or not any(final.iterdir()))
    ):
        raise JudgeSenseError(
            f"--out {final} exists and is not a dataset folder; choose another, or remove it"
        )
    require_writable(final.parent)
    with tempfile.TemporaryDirectory(
        prefix=f".{final.name}.", dir=final.parent, ignore_cleanup_errors=True
    ) as scratch:
        new, old = Path(scratch, "new"), Path(scratch, "old")
        new.mkdir()
        yield new
        if not final.exists():
            new.rename(final)
            return
        final.rename(old)
        try:
            new.rename(final)
        except OSError:
            old.rename(final)
            raise


def is_hub_folder(folder: Path) -> bool:
    """Whether a folder has a README.md that declares configs."""
    readme = folder / README
    return readme.is_file() and bool(front_matter(readme).get("configs"))


class _DataFiles(Shape):
    split: str
    path: str | list[str]


class _Config(Shape):
    config_name: str
    data_files: str | list[_DataFiles]


class _Card(Shape):
    """The part of a dataset's README.md that is read."""

    configs: tuple[_Config, ...] = ()


def configs(folder: Path) -> dict[str, list[Path]]:
    """The Parquet files of each config's split ``test``, as README.md declares them.

    Raises JudgeSenseError for a missing file or a config without that split.
    """
    readme = folder / README
    files: dict[str, list[Path]] = {}
    for config in validate(_Card, front_matter(readme), str(readme), "a dataset card").configs:
        name, data_files = config.config_name, config.data_files
        if isinstance(data_files, str):
            data_files = [_DataFiles(split=SPLIT, path=data_files)]
        paths = [entry.path for entry in data_files if entry.split == SPLIT]
        if not paths:
            raise JudgeSenseError(f"{readme}: config {name!r} has no split {SPLIT!r}")
        files[name] = []
        for pattern in [paths[0]] if isinstance(paths[0], str) else paths[0]:
            try:
                matches = sorted(path for path in folder.glob(pattern) if path.is_file())
            except (ValueError, NotImplementedError):
                matches = []
            if not matches:
                raise JudgeSenseError(
                    f"{readme}: config {name!r} names {pattern}, but the folder has no such file; "
                    "fetch or rebuild the dataset"
                )
            files[name] += matches
    return files


def read_config(folder: Path, config: str, columns: list[str] | None = None) -> pa.Table:
    """A config's rows, all columns or only ``columns``.

    Raises JudgeSenseError naming the config, file or column that is missing.
    """
    available = configs(folder)
    if config not in available:
        raise JudgeSenseError(
            f"{folder} has no config {config!r}; it has {', '.join(available) or 'none'}"
        )
    tables = []
    for path in available[config]:
        table = read_parquet(path)
        if missing := set(columns or ()) - set(table.column_names):
            raise JudgeSenseError(f"{path} lacks the {min(missing)!r} column")
        tables.append(table.select(columns) if columns else table)
    try:
        return pa.concat_tables(tables, promote_options="permissive")
    except pa.ArrowException as error:
        raise JudgeSenseError(f"{folder}: config {config!r} cannot be read ({error})") from error


def verdict_columns(
    valid: bool | None, score: float | None, validation: Mapping[str, Any]
) -> dict[str, Any]:
    """A consensus and the single verdicts as the columns of a dataset's row."""
    return {
        "valid": valid,
        "semantic_equivalence_score": score,
        "validation": json.dumps(validation, ensure_ascii=False),
    }


def load_verdicts(path: Path) -> dict[str, dict[str, Any]]:
    """Verdict columns by pair id, from a file that ``judgesense dataset validate`` wrote."""
    names = ("valid", "semantic_equivalence_score", "validation")
    return {
        str(record.values["pair_id"]): verdict_columns(*(record.values[name] for name in names))
        for record in read_table(path)
    }


def write_verdicts(folder: Path, verdicts: Mapping[str, Mapping[str, Any]]) -> tuple[Path, ...]:
    """Write verdict columns (by pair id) into a Hub folder; returns the files changed.

    Pairs move between their task's config and ``rejected`` as their verdicts say. All files are
    written under another name before the first is replaced. The same verdicts, written again, give
    the same bytes. Raises JudgeSenseError for a folder that ``judgesense dataset build`` did not
    make.
    """
    refuse_links(folder)
    files = {name: paths for name, paths in configs(folder).items() if name not in (ALL, PROMPTS)}
    for name, paths in files.items():
        if paths != [folder / config_file(name)]:
            raise JudgeSenseError(
                f"{folder}: the file of config {name!r} is not {config_file(name)}; verdicts can "
                "be written only into folders that `judgesense dataset build` made"
            )
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}.") as working:
        before: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for row in read_config(folder, REJECTED).to_pylist() if REJECTED in files else ():
            before[row["task_type"]].append(row)
        rejected: list[dict[str, Any]] = []
        tasks = [name for name in files if name != REJECTED]
        for name in tasks:
            batches = pq.ParquetFile(files[name][0]).iter_batches(batch_size=ROW_GROUP)
            rows = (row for batch in batches for row in batch.to_pylist())
            updates = ({**row, **verdicts[row["pair_id"]]} for row in chain(rows, before[name]))
            write_config(Path(working), name, PAIR_ROWS, kept(updates, rejected))
        names = [*tasks, REJECTED] if rejected else tasks
        if rejected:
            write_config(Path(working), REJECTED, PAIR_ROWS, rejected)
            (folder / REJECTED).mkdir(exist_ok=True)
        for name in names:
            os.replace(Path(working) / config_file(name), folder / config_file(name))
    if not rejected:
        (folder / config_file(REJECTED)).unlink(missing_ok=True)
    header = front_matter(folder / README) | declared(folder, tasks)
    body = (folder / README).read_text(encoding="utf-8")[4:].split("\n---\n", 1)[1]
    write_text(folder / README, f"---\n{dump_header(header)}---\n{body}")
    return tuple(folder / config_file(name) for name in names)


def declared(folder: Path, tasks: Sequence[str]) -> dict[str, Any]:
    """The card's ``configs`` and ``dataset_info`` of the files in a folder."""
    files = {ALL: [config_file(name) for name in tasks]}
    files |= {
        name: [config_file(name)]
        for name in (*tasks, REJECTED, PROMPTS)
        if (folder / config_file(name)).is_file()
    }
    configs: list[dict[str, Any]] = []
    infos = []
    dtypes = {pa.string(): "string", pa.float64(): "float64", pa.bool_(): "bool"}
    for name, paths in files.items():
        data_files = [{"split": SPLIT, "path": paths if len(paths) > 1 else paths[0]}]
        default = {} if configs else {"default": True}
        configs.append({"config_name": name, "data_files": data_files, **default})
        schema = pq.read_schema(folder / paths[0])
        features = [{"name": column.name, "dtype": dtypes[column.type]} for column in schema]
        files_of = [folder / path for path in paths]
        footers = [pq.read_metadata(path) for path in files_of]
        size = sum(
            f.row_group(at).total_byte_size for f in footers for at in range(f.num_row_groups)
        )
        rows = sum(footer.num_rows for footer in footers)
        # `datasets` caches a folder by its name and card: by the sizes it notices other content.
        infos.append(
            {
                "config_name": name,
                "features": features,
                "splits": [{"name": SPLIT, "num_bytes": size, "num_examples": rows}],
                "download_size": sum(path.stat().st_size for path in files_of),
                "dataset_size": size,
            }
        )
    return {"configs": configs, "dataset_info": infos}


def content_revision(folder: Path, files: Sequence[Path]) -> str:
    """``sha256:`` and a hash of the files' bytes and of their paths within the folder."""
    digest = hashlib.sha256()
    for path in files:
        digest.update(f"{Path(os.path.relpath(path, folder)).as_posix()}\n".encode())
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return f"sha256:{digest.hexdigest()}"


def dump_header(header: Mapping[str, Any]) -> str:
    """The YAML header of a card, without the lines of dashes around it."""
    return yaml.safe_dump(dict(header), sort_keys=False, allow_unicode=True, width=100)


def front_matter(readme: Path) -> dict[str, Any]:
    """The YAML header of a Markdown file; empty if it has none."""
    text = read_text(readme)
    if not text.startswith("---\n") or "\n---" not in text[4:]:
        return {}
    loaded = parse_yaml(text[4:].split("\n---", 1)[0], f"{readme} (header)")
    return loaded if isinstance(loaded, dict) else {}
