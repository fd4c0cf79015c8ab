"""The decision log: the one interface between judging and measuring.

A log is an Arrow table with the columns of :data:`SCHEMA`, one row for each judged prompt, item,
scoring and repeat, stored as ``decisions/part-*.parquet`` in a run's folder.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from judgesense.errors import JudgeSenseError
from judgesense.files.disk import replacing
from judgesense.files.tables import check_table, in_schema, read_parquet

SCORINGS = ("generate", "options")
EQUIVALENT, CONTRAST, INTERVENTION = "equivalent", "contrast", "intervention"
ATTACK = "attack"
DAMAGE, HARMLESS = "damage", "harmless"
VARIANT_CLASSES = (EQUIVALENT, CONTRAST, INTERVENTION, ATTACK, DAMAGE, HARMLESS)
"""The classes of variants of a prompt: an equivalent should keep the verdict, a contrast (another
criterion) should change it, an intervention (reasoning first, a persona, examples) may change it,
an attack makes what is judged try to win it (``KIND#NUMBER`` names the phrasing), damage makes what
is judged wrong, and a harmless edit of it should change nothing."""
REWORDING = "rewording"
"""The variant of a row that names none."""
FORM_VARIANTS = ("json",)
"""Variants that ask for a reply in another form; a run's record names its own (``reply_forms``).
With options scoring they are equivalent for judges that score the option inside the form. Elsewhere
the option is read where the form would begin: there they count as interventions."""
SCORES_IN_FORM = "scores_in_form"
"""The key of a judge's description in ``run.json`` that says where it scores options."""
OTHER_ITEM = "-item"
"""The end of the name of a contrast variant that shows another item, not another question."""
WITHOUT = "without-"
"""The start of the name of a variant that leaves out a sentence of the wording."""
CONTENT_FREE = "content-free"
"""The variant of rows without content in logs of version 0.2; they are not verdicts."""
STATUSES = ("ok", "unclear", "refused", "error")

SCHEMA = pa.schema(
    [
        ("judge", pa.string()),
        ("task", pa.string()),
        ("scoring", pa.string()),
        ("prompt_id", pa.string()),
        ("item_id", pa.string()),
        ("cluster_id", pa.string()),
        ("template_id", pa.string()),
        ("order", pa.string()),
        ("repeat", pa.int32()),
        ("raw_text", pa.string()),
        ("raw_decision", pa.string()),
        ("decision", pa.string()),
        ("status", pa.string()),
        (
            "option_logprobs",
            pa.list_(pa.struct([("option", pa.string()), ("logprob", pa.float64())])),
        ),
        ("option_mass", pa.float64()),
        ("margin", pa.float64()),
        ("input_tokens", pa.int32()),
        ("output_tokens", pa.int32()),
        ("truncated", pa.bool_()),
        ("latency_s", pa.float64()),
        ("cost_usd", pa.float64()),
        ("error", pa.string()),
        ("gold", pa.string()),
        ("system_id", pa.string()),
        ("variant", pa.string()),
        ("variant_class", pa.string()),
        ("certificate", pa.string()),
    ]
)
"""Columns of the decision log.

``raw_decision`` is the judge's answer, ``decision`` the same mapped through the template's label
map; both are UNCLEAR, REFUSED or ERROR if ``status`` is not ``ok``. Log-probabilities are in nats;
``option_mass`` is the probability of all options together; ``margin`` is the difference between
the two best options in nats. For comparative tasks a decision names the option as shown, and
``gold`` follows the order. ``latency_s`` is in seconds, ``cost_usd`` in US dollars. ``variant``
names what was done to the template, and ``variant_class`` is one of `VARIANT_CLASSES`; null means a
rewording, which is equivalent. ``certificate`` says of an ablated judge's verdict whether one added
sentence can change it (`judgesense.recipes.ablation`); null for other judges.
"""

OPTIONAL = ("variant", "variant_class", "certificate")
"""The columns that logs of earlier versions may lack."""

PARTS = "decisions"

REWRITE = "; rerun the run's command to write it again"
"""The end of the error for a part that cannot be read."""


def encode_part(table: pa.Table, sink: Any) -> None:
    """Write a part's bytes with checksums, so that resuming a run finds a flipped bit."""
    pq.write_table(table, sink, compression="zstd", write_page_checksum=True)


def write_part(table: pa.Table, folder: Path, name: str) -> Path:
    """Write one part under a temporary name, then rename it, so that no partial file exists.

    Raises OSError (disk full, read-only folder) and leaves nothing under the final name.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with replacing(folder / name) as temporary, temporary.open("wb") as sink:
        encode_part(table, sink)
        sink.flush()
        os.fsync(sink.fileno())
    return folder / name


def part_files(run_dir: Path, parts: str = PARTS) -> list[Path]:
    """The part files of a run's log, in order of their names."""
    return sorted((run_dir / parts).glob("part-*.parquet"))


def require_parts(run_dir: Path, parts: str = PARTS, log: str = "decision log") -> list[Path]:
    """The part files of a run's log. Raises JudgeSenseError, naming the folder, if it has none."""
    files = part_files(run_dir, parts)
    if not files:
        csv_files = sorted(run_dir.glob("*.csv"))
        hint = (
            f", or import a log, as in: judgesense import {csv_files[0]} --format FORMAT --out DIR"
            if csv_files and parts == PARTS
            else ""
        )
        raise JudgeSenseError(
            f"{run_dir} holds no {log} ({parts}/part-*.parquet); name the --out folder of a run "
            f"that has answers{hint}"
        )
    return files


def read_log(run_dir: Path, *, texts: bool = True) -> pa.Table:
    """The whole decision log of a run.

    ``texts=False`` leaves ``raw_text`` null: it is most of a log of long answers, and no figure
    needs it; `raw_texts` reads those of a few rows. Raises JudgeSenseError if the run has none, if
    a part lacks a column, and for NaN.
    """
    return pa.concat_tables([_log_of_part(part, texts) for part in require_parts(run_dir)])


def _log_of_part(part: Path, texts: bool) -> pa.Table:
    columns = None if texts else tuple(name for name in SCHEMA.names if name != "raw_text")
    table = read_part(part, columns)
    if not texts:
        # The column that is not read is checked all the same.
        conform(check_table(pq.read_schema(part).empty_table(), str(part)), str(part))
        table = table.append_column("raw_text", pa.nulls(table.num_rows, pa.string()))
    return _require_finite(conform(table, str(part)), str(part))


def raw_texts(run_dir: Path, rows: Sequence[int]) -> list[str | None]:
    """The ``raw_text`` at some rows of a run's log, as `read_log` counts them from 0.

    Raises JudgeSenseError if a part cannot be read.
    """
    indices, start = np.asarray(rows, dtype=np.int64), 0
    texts = np.full(len(indices), None, dtype=object)
    for part in require_parts(run_dir) if len(indices) else ():
        end = start + int(pq.read_metadata(part).num_rows)
        is_in_part = (indices >= start) & (indices < end)
        if is_in_part.any():
            part_rows = pa.array(indices[is_in_part] - start)
            texts[is_in_part] = (
                read_part(part, ("raw_text",))["raw_text"].take(part_rows).to_numpy()
            )
        start = end
    return texts.tolist()


def _require_finite(log: pa.Table, where: str) -> pa.Table:
    """The log, if it has no NaN, and no infinite number where none is possible."""
    for name, is_allowed in (
        ("option_mass", pc.is_finite),
        ("latency_s", pc.is_finite),
        ("cost_usd", pc.is_finite),
        ("margin", lambda column: pc.invert(pc.is_nan(column))),
    ):
        row = is_allowed(log[name]).index(False).as_py()
        if row >= 0:
            raise JudgeSenseError(
                f"{where}, row {row + 1}, {name}: {log[name][row].as_py()} is not a finite number"
            )
    return log


def read_part(part: Path, columns: Sequence[str] | None = None) -> pa.Table:
    """One Parquet file of a run, or those of the columns that it has.

    Raises JudgeSenseError if it cannot be read.
    """
    return read_parquet(part, columns, hint=REWRITE)


def conform(
    table: pa.Table, where: str, schema: pa.Schema = SCHEMA, log: str = "decision log"
) -> pa.Table:
    """The table in the schema's column order and types; missing `OPTIONAL` columns are null.

    Raises JudgeSenseError naming ``where`` and the column that is missing or has the wrong type.
    """
    for name in OPTIONAL:
        if name in schema.names and name not in table.column_names:
            table = table.append_column(name, pa.nulls(table.num_rows, pa.string()))
    missing = [name for name in schema.names if name not in table.column_names]
    if missing:
        raise JudgeSenseError(f"{where}: the {log} lacks the columns {', '.join(missing)}")
    return in_schema(table, schema, where)
