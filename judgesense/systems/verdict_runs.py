"""A run's or an import's decisions as a table of verdicts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa

from judgesense.decisions.view import Stream, view
from judgesense.errors import JudgeSenseError
from judgesense.run_folder.folder import read_run
from judgesense.statistics.arrays import Codes, Floats
from judgesense.systems.verdict_schema import SCHEMA, VerdictTable, chosen, own_order
from judgesense.tasks import is_scale
from judgesense.trust.grid import label_shares


def verdicts_of_run(
    folder: Path, judge: str | None = None, task: str | None = None, scoring: str | None = None
) -> VerdictTable:
    """The verdicts of a judge in a run's folder, under its equivalent wordings, repeats included.

    Raises JudgeSenseError as `judgesense.systems.verdict_table.read_verdicts`.
    """
    run = read_run(folder)
    streams = view(run.figures, run.pairs, run.record).judged
    if scoring is not None:
        scorings = sorted({stream.scoring for stream in streams})
        if scoring not in scorings:
            raise JudgeSenseError(
                f"{folder} has no scoring {scoring!r}; choose from {', '.join(scorings)}"
            )
        streams = [stream for stream in streams if stream.scoring == scoring]
    # Options carry probabilities: they come first where a run has both.
    streams.sort(key=lambda stream: stream.scoring != "options")
    keep = chosen(
        [(stream.judge, stream.task.name) for stream in streams], judge, task, str(folder)
    )
    return table_of_stream(streams[keep[0]], folder)


def table_of_stream(stream: Stream, folder: Path) -> VerdictTable:
    """The verdicts of a stream, one row for each of its `answers`, repeats included."""
    log, labels = stream.log, stream.task.labels
    said = stream.answers(repeats=True)
    rows = said.rows
    swaps = labels if stream.task.comparative else ()
    orders = said.order.tolist()
    known = [name for name in SCHEMA.names if name in log.table.column_names]
    values = {name: said.column(name).to_pylist() for name in known}
    verdicts = said.label.tolist()

    def own(found: list[str]) -> list[str | None]:
        return [own_order(v or None, swaps, o) for v, o in zip(found, orders, strict=True)]

    columns = {
        **values,
        "verdict": own(verdicts),
        "gold": own(said.gold.tolist()),
        "cluster_id": [c or i for c, i in zip(values["cluster_id"], said.item, strict=True)],
        "system_id": [name or None for name in values["system_id"]],
        "wording": said.template.tolist(),
        "repeat": said.repeat.tolist(),
    }
    score, probability = _told(stream, rows, verdicts)
    columns["score"], columns["probability"] = score, probability
    table = pa.table(
        {f.name: pa.array(columns.get(f.name, [None] * len(rows)), f.type) for f in SCHEMA},
        schema=SCHEMA,
    )
    return VerdictTable(table, labels, str(folder), stream.judge, stream.task.name, stated=True)


def _told(
    stream: Stream, rows: Codes, verdicts: list[str]
) -> tuple[list[float | None], list[float | None]]:
    """The expected score on a scale and the probability of the verdict; None without options."""
    nothing: list[float | None] = [None] * len(rows)
    shares = label_shares(stream, rows) if len(rows) else None
    if shares is None:
        return nothing, nothing
    labels = stream.task.labels
    scores = nothing
    if stream.task.ordinal and is_scale(labels):
        scores = _listed(shares @ np.array([float(label) for label in labels]))
    place = {label: code for code, label in enumerate(labels)}
    codes = np.array([place.get(verdict, -1) for verdict in verdicts])
    own = np.where(codes >= 0, shares[np.arange(len(rows)), codes], np.nan)
    return scores, _listed(own)


def _listed(values: Floats) -> list[float | None]:
    return [None if np.isnan(value) else value for value in values.tolist()]
