"""Tables around responders: questions to ask, and response logs with their references."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path
from typing import TYPE_CHECKING, Any

from judgesense.errors import JudgeSenseError
from judgesense.files.documents import parse_json
from judgesense.run_folder.responses import PARTS, require_finished

if TYPE_CHECKING:
    from local_judges.responder import Question

TARGETS = (
    "model", "prompt_id", "item_id", "template_id", "text", "finish_reason", "tokens", "error",
    "reference", "question", "options",
)  # fmt: skip
"""Columns of a response log and what matching adds: the reference, and for some methods the
question and the options' texts."""

_REQUIRED = ("model", "template_id", "text", "reference")
_OF_ITEMS = ("item_id", "template_id", "reference", "question", "options")


def read_questions(path: Path) -> Iterator[Question]:
    """The questions in a table of ``item_id, template_id, message`` and, for choices, ``options``.

    Raises JudgeSenseError naming file, row and column.
    """
    from judgesense.files.tables import read_table
    from local_judges.responder import Question

    for record in read_table(path):
        values = record.values
        for name in ("item_id", "template_id", "message"):
            if values.get(name) in (None, ""):
                raise JudgeSenseError(
                    f"{record.place}: no {name}; a question has item_id, template_id, message"
                )
        options = _list(values.get("options"), record.place) or []
        item, template, message = (str(values[n]) for n in ("item_id", "template_id", "message"))
        yield Question(item, template, message, tuple(options))


@dataclass(frozen=True, slots=True)
class LoggedResponse:
    """One row of a response log with its reference (several accepted answers as a list)."""

    place: str
    model: str
    template_id: str
    item_id: str
    text: str
    reference: str | list[str]
    question: str | None
    options: list[str] | None
    truncated: bool


@dataclass(frozen=True)
class Responses:
    """The rows to match, and one line for each row without a response."""

    rows: list[LoggedResponse]
    failed: list[str]


def read_rows(
    source: Path,
    references: Path | None,
    columns: Mapping[str, str],
    encoding: str,
) -> Responses:
    """The rows of a response log: a run's folder, a table file, or a folder of Parquet parts.

    ``references`` is a table of ``item_id, reference`` (with ``question`` and ``options`` where a
    method needs them, and ``template_id`` where they differ by template); ``columns`` then maps
    its columns.

    Raises JudgeSenseError naming file, row and column of what is missing, for a run that is not
    finished, and for a log in which every row failed.
    """
    from judgesense.files.tables import read_table_rows
    from judgesense.importers.columns import ColumnMap

    require_finished(source.parent if source.name == PARTS else source)
    log = source / PARTS if (source / PARTS).is_dir() else source
    files = sorted(log.rglob("*.parquet")) if log.is_dir() else [log]
    if not files:
        raise JudgeSenseError(f"{source} holds no Parquet files")
    given = None if references is None else _References(references, columns, encoding)
    mapping = ColumnMap({} if given else columns, {})
    found, same = Responses([], []), dict[str, str]()
    for path in files:
        for rows in read_table_rows(path, encoding):
            columns_of = [mapping.column(rows, name) or repeat(None) for name in TARGETS]
            for number, (place, *own) in enumerate(zip(rows.places, *columns_of, strict=False)):
                values = dict(zip(TARGETS, own, strict=True))
                _require_plain(values, place)
                if values["text"] is None and values["error"] is not None:
                    who = f"{values['model']} {values['template_id']} {values['item_id']}"
                    found.failed.append(f"{who}: {values['error']}")
                    continue
                if given is not None:
                    values |= given.of(values, place)
                for name in _REQUIRED:
                    if values[name] is None or (name == "reference" and values[name] in ("", [])):
                        hint = " or add a table with --references" if name == "reference" else ""
                        raise _absent(rows.records()[number], name, hint)
                found.rows.append(_response(values, place, same))
    if not found.rows:
        raise JudgeSenseError(f"{source}: no row has a response; the first: {found.failed[0]}")
    return found


def _require_plain(values: Mapping[str, Any], place: str) -> None:
    """Raise JudgeSenseError where a list or an object is in place of a text."""
    for name, value in values.items():
        if name == "reference" and isinstance(value, list):
            value = next((answer for answer in value if isinstance(answer, (list, dict))), None)
        elif name == "options":
            continue
        if isinstance(value, (list, dict)):
            raise JudgeSenseError(f"{place}, {name}: expected text, found {value!r:.80}")


def _response(values: Mapping[str, Any], place: str, same: dict[str, str]) -> LoggedResponse:
    """The row; ``same`` holds the texts that many rows share."""

    def shared(value: Any) -> str:
        text = str(value)
        return same.setdefault(text, text)

    reference = _reference(values["reference"])
    return LoggedResponse(
        place=place,
        model=shared(values["model"]),
        template_id=shared(values["template_id"]),
        item_id=shared(values["item_id"] or place.rpartition(" ")[2]),
        text="" if values["text"] is None else str(values["text"]),
        reference=shared(reference) if isinstance(reference, str) else reference,
        question=None if values["question"] is None else str(values["question"]),
        options=_list(values["options"], place),
        truncated=str(values["finish_reason"]) in ("length", "max_tokens"),
    )


class _References:
    """The references by item, or by item and template where the table names templates."""

    def __init__(self, path: Path, columns: Mapping[str, str], encoding: str) -> None:
        from judgesense.files.tables import read_table_rows
        from judgesense.importers.columns import ColumnMap

        self._path = path
        self._by_key: dict[tuple[str, str | None], dict[str, Any]] = {}
        mapping = ColumnMap(columns, {})
        for rows in read_table_rows(path, encoding):
            columns_of = [mapping.column(rows, name) or repeat(None) for name in _OF_ITEMS]
            for record, *own in zip(rows.records(), *columns_of, strict=False):
                self._add(record, dict(zip(_OF_ITEMS, own, strict=True)))

    def _add(self, record: Any, values: dict[str, Any]) -> None:
        _require_plain(values, record.place)
        for name in ("item_id", "reference"):
            if values[name] in (None, "", []):
                raise _absent(record, name)
        template = values.pop("template_id")
        key = (str(values.pop("item_id")), None if template is None else str(template))
        if self._by_key.setdefault(key, values) != values:
            raise JudgeSenseError(
                f"{record.place}: item {key[0]!r} has another reference, question or options in an "
                "earlier row; keep one row per item, or add a column template_id"
            )

    def of(self, values: Mapping[str, Any], place: str) -> dict[str, Any]:
        item, template = str(values["item_id"]), str(values["template_id"])
        known = self._by_key.get((item, template)) or self._by_key.get((item, None))
        if known is None:
            raise JudgeSenseError(
                f"{place}: {self._path} has no reference for item {item!r}, template {template!r}"
            )
        return known


def _absent(record: Any, name: str, hint: str = "") -> JudgeSenseError:
    return JudgeSenseError(
        f"{record.place}: no {name}; name its column with --columns {name}=COLUMN{hint}; the "
        f"columns are {', '.join(map(str, record.values))}"
    )


def _reference(value: Any) -> str | list[str]:
    return [str(answer) for answer in value] if isinstance(value, list) else str(value)


def _list(value: Any, place: str) -> list[str] | None:
    """Option texts: a list, or a JSON list in a cell."""
    if value is None or value == "" or value == []:
        return None
    if isinstance(value, str):
        try:
            value = parse_json(value, place)
        except JudgeSenseError as error:
            raise JudgeSenseError(
                f"{place}, options: expected a JSON list of texts, got {value!r:.80}"
            ) from error
    if not isinstance(value, list) or not value:
        raise JudgeSenseError(f"{place}, options: expected a list of texts, got {value!r}")
    return [str(option) for option in value]


def option_texts(rows: Sequence[LoggedResponse]) -> list[list[str]] | None:
    """The options of every row, or None if no row has options.

    Raises JudgeSenseError for a row without options where others have them.
    """
    if all(row.options is None for row in rows):
        return None
    texts: list[list[str]] = []
    for row in rows:
        if row.options is None:
            raise JudgeSenseError(f"{row.place}: no options, but other rows have them")
        texts.append(row.options)
    return texts
