"""The column of a file of verdicts that holds what was judged, and which outputs are the same."""

from __future__ import annotations

import json
import math
import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from judgesense.errors import JudgeSenseError
from judgesense.files.tables import ABSENT, Rows
from judgesense.importers.column_names import Columns, header_key
from judgesense.importers.columns import COMPARED, values_in
from judgesense.importers.reading import FileReading
from judgesense.importers.rows import cells_in, texts_of
from judgesense.importers.values import number_in
from judgesense.text import join

OUTPUT = "output"
"""Its name in ``--columns``."""

_NAMES = (
    "(model_|system_|actual_|generated_)?(output|response|answer|completion|reply|prediction)"
    "|generation|generated_text"
)
_OUTPUT = re.compile(rf"({_NAMES})(_(a|b|1|2))?")
_HASH = re.compile(r"(.*_)?(sha\d*|hash|digest|checksum)")
_HASH_OF_OUTPUT = re.compile(rf"({_NAMES})_?{_HASH.pattern}")


@dataclass(frozen=True)
class Outputs:
    """A step of an import that adds a column with the output of each row, compared_text.

    ``names`` are the columns with the output, several where the judge chooses between them; none
    where the file has none.
    """

    names: tuple[str, ...]
    source: str

    @classmethod
    def of(cls, path: Path, file: FileReading, stated: str | None) -> Outputs:
        """The columns with the output in a file, or the one that is ``stated``.

        A text goes before its hash, and the hash of an output before that of an input. Raises
        JudgeSenseError for a column that is not there.
        """
        found = file.found
        if stated is not None:
            names = tuple(stated.split(","))
            if absent := [name for name in names if name not in found]:
                raise JudgeSenseError(
                    f"{path}: no column {absent[0]!r} (for {OUTPUT}); its columns: "
                    f"{', '.join(found)}"
                )
            return cls(names, str(path))
        read = {*file.people, *file.identity}
        read |= {
            part
            for role in ("raw_decision", "raw_text", "judge", "gold")
            for part in file.columns.get(role, "").split(",")
        }
        return cls(next(_candidates(found, read), ()), str(path))

    @property
    def line(self) -> str:
        """How the outputs are read, as a sentence."""
        if not self.names:
            return f"Outputs: none; name their column with --columns {OUTPUT}=COLUMN"
        text = f"Outputs: {join(self.names)}"
        if is_hash(self.names[0]) and not _HASH_OF_OUTPUT.fullmatch(header_key(self.names[0])):
            text += f"; if it does not cover what was judged, name that: --columns {OUTPUT}=COLUMN"
        return text

    def __call__(self, rows: Rows) -> Rows:
        """The rows with the column `COMPARED`."""
        cells = [values_in(rows, name) or [None] * len(rows) for name in self.names]
        outputs = [
            # Two outputs that nobody knows are not the same.
            "\n\n".join(map(compared_text, output))
            if all(map(_is_known, output))
            else f"unknown {self.source} {place}"
            for place, *output in zip(rows.places, *cells, strict=True)
        ]
        return Rows({**rows.columns, COMPARED: outputs}, rows.places)


@dataclass(frozen=True)
class Levels:
    """A step of an import that rounds scores with fractions to at most about a hundred levels."""

    name: str
    digits: int
    labels: tuple[str, ...]

    @classmethod
    def of(cls, blocks: Iterable[Rows], name: str) -> Levels | None:
        """The levels of a column; None for one without fractions."""
        cells = [text for rows in blocks for text in cells_in(rows, name)]
        numbers = [number_in(text or "") for text in cells]
        known = [number for number in numbers if number is not None]
        # Most cells are numbers, or it is a text.
        if 2 * len(known) <= len(cells) or all(number == int(number) for number in known):
            return None
        digits = 2 - math.ceil(math.log10(max(map(abs, known)) or 1.0))
        labels = sorted({round(number, digits) for number in known})
        return cls(name, digits, tuple(f"{label:g}" for label in labels))

    @property
    def line(self) -> str:
        """What is rounded, as a sentence."""
        return f"Scores: {self.name}, rounded to {10.0**-self.digits:g}"

    def __call__(self, rows: Rows) -> Rows:
        """The rows with rounded scores."""
        cells = values_in(rows, self.name) or []
        numbers = [number_in(text or "") for text in texts_of(cells) or ()]
        rounded = [
            cell if number is None else f"{round(number, self.digits):g}"
            for cell, number in zip(cells, numbers, strict=True)
        ]
        return Rows({**rows.columns, self.name: rounded}, rows.places)


def _candidates(found: Columns, read: set[str]) -> Iterator[tuple[str, ...]]:
    """The columns that may hold the output, the best first."""
    free = [name for name in found if name not in read and len(found[name].texts) > 1]
    last = {name: header_key(name.rpartition(".")[2]) for name in free}
    texts = [name for name in free if _OUTPUT.fullmatch(last[name])]
    for name in texts:
        base = re.sub("_(a|b|1|2)$", "", last[name])
        several = [other for other in texts if re.fullmatch(rf"{base}_(a|b|1|2)", last[other])]
        yield tuple(several) if len(several) > 1 else (name,)
    hashes = [name for name in free if _HASH.fullmatch(last[name])]
    hashes.sort(key=lambda name: not _HASH_OF_OUTPUT.fullmatch(last[name]))
    yield from ((name,) for name in hashes)


def is_output(name: str) -> bool:
    """Whether a column holds what was judged, by its name."""
    return bool(_OUTPUT.fullmatch(header_key(name.rpartition(".")[2])))


def is_hash(name: str) -> bool:
    """Whether a column holds hashes of texts, by its name."""
    return bool(_HASH.fullmatch(header_key(name.rpartition(".")[2])))


def _is_known(value: Any) -> bool:
    return value is not None and value is not ABSENT and str(value).strip() not in ("", "nan")


def compared_text(value: Any) -> str:
    """A text as outputs are compared: in one Unicode form, without spaces at the ends of lines.

    Case and spaces inside a line stay, because they may be what was judged.

    >>> compared_text("a  b \\r\\nc\\n") == compared_text("a  b\\nc")
    True
    """
    if isinstance(value, (dict, list)):
        value = json.dumps(value, ensure_ascii=False, sort_keys=True, default=str)
    lines = unicodedata.normalize("NFC", str(value)).splitlines()
    return "\n".join(line.rstrip() for line in lines).strip("\n")
