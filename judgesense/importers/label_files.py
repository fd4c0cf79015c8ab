"""Files of people's labels, one row a person and item, such as ``judgesense label`` writes."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path

from judgesense.files.documents import Shape
from judgesense.files.tables import Record, read_table_rows
from judgesense.files.typed_rows import Id, SomeId, SomeLabel, SomeNumber, typed_rows
from judgesense.importers.column_names import columns_of, label_columns


class LabelRow(Shape):
    """One person's label of one output.

    ``stratum`` and ``probability`` say how ``judgesense label`` picked the output.
    """

    item_id: Id
    label: SomeLabel
    system_id: SomeId = None
    rater: SomeId = None
    stratum: SomeId = None
    probability: SomeNumber = None


def read_label_rows(
    path: Path,
    columns: Mapping[str, str] | None = None,
    *,
    flag: str = "--columns",
    ignored: Collection[str] = (),
) -> list[tuple[LabelRow, Record]]:
    """The rows of a file of labels, each with its record; usual names of columns are recognised.

    ``columns`` are the file's names that the option ``flag`` sets; columns in ``ignored`` are not
    recognised. Raises JudgeSenseError as `judgesense.files.typed_rows.typed_rows`.
    """
    recognised = label_columns(columns_of(read_table_rows(path))[0])
    names = {field: name for field, name in recognised.items() if field not in ignored}
    return list(typed_rows(path, LabelRow, {**names, **(columns or {})}, flag))
