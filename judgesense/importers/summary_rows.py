"""The rows in which a spreadsheet sums up, which are no rows of a file."""

from __future__ import annotations

from judgesense.files.tables import ABSENT, Rows
from judgesense.importers.values import fold, number_in, word_of

_SUMS = (
    "% σ ø average avg mean total sum std stdev median count durchschnitt mittelwert summe gesamt "
    "moyenne somme promedio media suma totale média soma 平均 合計 总计 평균 합계"
)
_SUMMARY = frozenset(map(fold, _SUMS.split()))
_LAST = 5
"""The rows at the end of a block among which remarks are looked for."""


class SummaryRows:
    """Leaves out the rows in which a spreadsheet sums up (such a word, and numbers only), and the
    remarks at its end: a text alone in its row."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, rows: Rows) -> Rows:
        """The rows without these."""
        first = next(iter(rows.columns.values()), [])
        marked = {
            at
            for values in rows.columns.values()
            for at, value in enumerate(values)
            if isinstance(value, str)
            and (len(value) < 12 or (len(value) < 40 and not first[at]))
            and {*fold(value).split()[:1]} & _SUMMARY
        }
        left_out = {at for at in marked if self._sums_up(rows, at)} | self._remarks(rows)
        if not left_out:
            return rows
        self.count += len(left_out)
        at = [n for n in range(len(rows)) if n not in left_out]
        columns = {name: [values[n] for n in at] for name, values in rows.columns.items()}
        return Rows(columns, [rows.places[n] for n in at])

    def _remarks(self, rows: Rows) -> set[int]:
        """The last rows of a table of four columns or more that hold one text of several words."""
        remarks = set[int]()
        for at in reversed(range(max(0, len(rows) - _LAST), len(rows))):
            cells = [v[at] for v in rows.columns.values() if v[at] not in (None, ABSENT, "")]
            texts = [cell for cell in cells if isinstance(cell, str) and len(cell.split()) > 2]
            if len(rows.columns) < 4 or len(cells) != 1 or not texts:
                break
            remarks.add(at)
        return remarks

    def _sums_up(self, rows: Rows, at: int) -> bool:
        words = [word_of(str(v[at])) for v in rows.columns.values() if v[at] not in (None, ABSENT)]
        said = [word for word in words if word is not None]
        numbers = sum(number_in(word.split()[0].rstrip("%")) is not None for word in said)
        blank = len(rows.columns) - len(said)
        return numbers > 0 and numbers == len(said) - 1 and (blank > 0 or len(said) < 4)
