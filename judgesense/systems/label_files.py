"""Files that people label: CSV, and Label Studio's JSON with the judge's verdict as a prediction.

Label Studio's formats: https://labelstud.io/guide/tasks (import, predictions) and
https://labelstud.io/guide/export (JSON and JSON-MIN).
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.sax.saxutils import quoteattr

from judgesense.errors import JudgeSenseError
from judgesense.files.disk import file_bytes, require_file, write_text
from judgesense.files.documents import Shape, fit, parse_json
from judgesense.files.tables import Record

SUFFIXES = (".csv", ".json")
"""The types of files for people."""

LABEL = "label"
"""The name of the choice in Label Studio, and the column to fill in."""


def digest(item_id: str, system_id: str) -> str:
    """An id that does not tell people which system wrote an output.

    >>> digest("1", "gpt") == digest("1", "gpt"), len(digest("1", "gpt"))
    (True, 12)
    """
    return hashlib.sha256(f"{item_id}\0{system_id}".encode()).hexdigest()[:12]


def write_for_people(
    rows: Sequence[Mapping[str, Any]],
    labels: Sequence[str],
    out: Path,
    *,
    judge: str,
    verdicts: Sequence[tuple[str | None, float | None]],
) -> list[Path]:
    """Write outputs for people to label, whole or not at all.

    ``.csv`` has a column ``label`` to fill in and a column ``rater``, and does not show verdicts.
    ``.json`` is a Label Studio import with the judge's verdict as its prediction; the labelling
    configuration goes beside it (``.xml``).

    Args:
        rows: what is shown, and the columns that lead back to the output.
        labels: the scale.
        out: the file to write, .csv or .json.
        judge: the judge's name, Label Studio's model version.
        verdicts: each row's verdict and its probability.

    Returns:
        The files written.

    Raises:
        JudgeSenseError: another suffix, or a file that cannot be written.
    """
    if out.suffix not in SUFFIXES:
        raise JudgeSenseError(f"{out}: unknown file type; use {' or '.join(SUFFIXES)}")
    try:
        if out.suffix == ".csv":
            write_text(out, _as_csv(rows, labels))
            return [out]
        tasks = [_task(row, judge, *verdict) for row, verdict in zip(rows, verdicts, strict=True)]
        write_text(out, json.dumps(tasks, indent=1, ensure_ascii=False) + "\n")
        config = out.with_suffix(".xml")
        write_text(config, _config(rows, labels))
    except OSError as error:
        raise JudgeSenseError(f"cannot write {out}: {error.strerror or error}") from error
    return [out, config]


def _as_csv(rows: Sequence[Mapping[str, Any]], labels: Sequence[str]) -> str:
    text = io.StringIO()
    names = list(dict.fromkeys(name for row in rows for name in row))
    writer = csv.DictWriter(text, [*names, "scale", LABEL, "rater"], lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({**row, "scale": " ".join(labels)})
    return text.getvalue()


def _task(
    row: Mapping[str, Any], judge: str, verdict: str | None, probability: float | None
) -> dict[str, Any]:
    result = {
        "from_name": LABEL, "to_name": "output", "type": "choices", "value": {"choices": [verdict]},
    }  # fmt: skip
    prediction: dict[str, Any] = {"model_version": judge or "judge", "result": [result]}
    if probability is not None:
        prediction["score"] = probability
    return {"data": dict(row), "predictions": [] if verdict is None else [prediction]}


_KEYS = ("item_id", "system_id", "unit", "stratum", "weight")


def _config(rows: Sequence[Mapping[str, Any]], labels: Sequence[str]) -> str:
    """The labelling configuration: every text of a row, and one choice."""
    names = [name for name in dict.fromkeys(n for row in rows for n in row) if name not in _KEYS]
    names = names or ["item_id" if "item_id" in rows[0] else "unit"]
    lines = ["<View>"]
    for number, name in enumerate(names):
        # Choices need one object to refer to: the last text.
        own = "output" if number == len(names) - 1 else f"text{number}"
        lines.append(f"  <Header value={quoteattr(name)}/>")
        lines.append(f'  <Text name="{own}" value={quoteattr("$" + name)}/>')
    lines.append(f'  <Choices name="{LABEL}" toName="output" choice="single" showInLine="true">')
    lines += [f"    <Choice value={quoteattr(label)}/>" for label in labels]
    return "\n".join([*lines, "  </Choices>", "</View>"]) + "\n"


class _Annotation(Shape):
    """What one person did with a task."""

    completed_by: int | str | dict[str, Any] | None = None
    was_cancelled: bool = False
    result: tuple[dict[str, Any], ...] = ()


class _Task(Shape):
    """A task of a Label Studio export."""

    data: dict[str, Any]
    annotations: list[_Annotation]


def read_label_studio(path: Path) -> Iterator[Record]:
    """The labels of a Label Studio export (JSON or JSON-MIN), one per person and task.

    A task without an annotation, or with a skipped one, has an empty label.

    Raises JudgeSenseError for a file that is no such export.
    """
    require_file(path)
    try:
        tasks = parse_json(file_bytes(path), str(path))
    except OSError as error:
        raise JudgeSenseError(f"cannot read {path}: {error.strerror or error}") from error
    if not isinstance(tasks, list) or not all(isinstance(task, dict) for task in tasks):
        raise JudgeSenseError(f"{path}: not a Label Studio export, which is a list of tasks")
    for number, values in enumerate(tasks, 1):
        place = f"{path}, task {number}"
        if "annotations" not in values:
            if LABEL not in values:
                raise JudgeSenseError(
                    f"{place}: neither 'annotations' nor {LABEL!r}; export the project as JSON or "
                    "JSON-MIN"
                )
            yield Record({**values, "rater": _name(values.get("annotator"))}, place)
            continue
        task = fit(_Task, values, place, "a task of a Label Studio export")
        done = [each for each in task.annotations if not each.was_cancelled]
        for annotation in done or [_Annotation()]:
            label = _choice(annotation.result, place)
            yield Record(
                {**task.data, LABEL: label, "rater": _name(annotation.completed_by)}, place
            )


def _name(person: Any) -> str | None:
    if isinstance(person, Mapping):
        person = person.get("email") or person.get("id")
    return None if person is None else str(person)


def _choice(result: Sequence[Mapping[str, Any]], place: str) -> Any:
    """The label in an annotation's results; None if there is none."""
    named = [each for each in result if each.get("from_name") == LABEL] or list(result)
    found = []
    for each in named:
        value = each.get("value")
        if isinstance(value, Mapping):
            for kind in ("choices", "rating", "number", "text"):
                if kind in value:
                    told = value[kind]
                    found += told if isinstance(told, list) else [told]
    if len(found) > 1:
        raise JudgeSenseError(f"{place}: {len(found)} labels ({found}); one label per person")
    return found[0] if found else None
