"""What result objects share: they read like a mapping, print themselves and sign figures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import Field, asdict, fields
from html import escape
from typing import Any, ClassVar, Self

_SHOWN = 8
"""The most entries of a list or a dict that `str()` prints."""

PARTS = ("task", "n", "items", "labels", "scoring", "undecided", "templates", "ci", "seed")
"""The parts common to all metrics, in print order; `data` and `v` end the line."""


class ResultMapping(Mapping[str, Any]):
    """Base of frozen dataclasses (`eq=False`) whose fields are also keys: `result["jss"]`.

    `labels` names the fields that `str()` and the notebook view show, in that order, with the words
    that a person reads; empty shows every field. An interval in `<field>_ci_low` and
    `<field>_ci_high` (`ci_low` and `ci_high` for the first label) is printed after its figure.
    """

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]
    labels: ClassVar[Mapping[str, str]] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self.__dataclass_fields__:
            raise KeyError(name)
        return getattr(self, name)

    def __iter__(self) -> Iterator[str]:
        return (field.name for field in fields(self))

    def __len__(self) -> int:
        return len(fields(self))

    @classmethod
    def undefined(cls, **known: Any) -> Self:
        """A result of which every field is None but the known ones."""
        return cls(**{**dict.fromkeys(field.name for field in fields(cls)), **known})

    def to_dict(self) -> dict[str, Any]:
        """The fields by name, as plain values."""
        return asdict(self)

    def lines(self) -> list[tuple[str, str]]:
        """What `str()` prints: the label and the text of each figure."""
        lines = []
        for place, (name, label) in enumerate(
            (self.labels or {name: name for name in self}).items()
        ):
            prefix = "" if place == 0 and "ci_low" in self else f"{name}_"
            low, high = self.get(f"{prefix}ci_low"), self.get(f"{prefix}ci_high")
            interval = "" if low is None else f" [{_text(low)}, {_text(high)}]"
            if self[name] is not None:
                lines.append((label, _text(self[name]) + interval))
        return lines

    def __str__(self) -> str:
        lines = self.lines()
        width = max(len(label) for label, _ in lines)
        return "\n".join(f"{label:<{width}}  {text}" for label, text in lines)

    def _repr_html_(self) -> str:
        return html_table((), self.lines())


class TextResult(ResultMapping):
    """A result that prints itself as text; a notebook shows the same lines."""

    def _repr_html_(self) -> str:
        return html_table((), [(line,) for line in str(self).splitlines() if line])


def html_table(heading: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Rows of text as an HTML table, every cell escaped.

    >>> html_table(["judge"], [["a<b"]])
    '<table><tr><th>judge</th></tr><tr><td>a&lt;b</td></tr></table>'
    """
    lines = [("th", heading)] if heading else []
    lines += [("td", row) for row in rows]
    body = (
        "<tr>" + "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in cells) + "</tr>"
        for tag, cells in lines
    )
    return f"<table>{''.join(body)}</table>"


def data_frame(rows: Any) -> Any:
    """Rows (mappings, or a mapping of columns) as a `pandas.DataFrame`.

    Raises:
        ImportError: pandas is not installed.

    >>> data_frame([{"judge": "m", "jss": 0.9}]).shape
    (1, 2)
    """
    try:
        import pandas
    except ImportError as error:
        raise ImportError("to_pandas needs pandas: pip install pandas") from error
    return pandas.DataFrame(rows)


def _text(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.3f}"
    if isinstance(value, Mapping):
        return _text([f"{name} {_text(entry)}" for name, entry in value.items()])
    if isinstance(value, (list, tuple)):
        entries = ", ".join(map(_text, value[:_SHOWN]))
        return entries if len(value) <= _SHOWN else f"{entries}, ... ({len(value)} in all)"
    return "–" if value is None else str(value)


def signature(metric: str = "JSS", **parts: object) -> str:
    """How a figure was made, in one line, in the manner of sacrebleu (Post 2018).

    `JSS|task:coherence|n:125|items:25|labels:mapped|scoring:options|undecided:excluded|templates:fixed|ci:wilson-cluster|data:1a2b3c4d|v:0.1.0`

    A missing part of `PARTS`, `data` and `v` (the version) prints `-`. `seed` and further parts are
    printed after `ci`, and only if passed.

    Raises:
        ValueError: a part's value or name contains `|` or a line break.

    >>> signature("JSS", n=10, v="0.2.0")[:22]
    'JSS|task:-|n:10|items:'
    """
    ends = {"data": parts.pop("data", None), "v": parts.pop("v", None)}
    values = dict.fromkeys(PARTS) | parts
    if values["seed"] is None:
        del values["seed"]
    fields = [metric]
    for name, value in (values | ends).items():
        field = f"{name}:{'-' if value is None else value}"
        if "|" in field or "\n" in field:
            raise ValueError(f"signature part {name!r} is {value!r}: remove '|' and line breaks")
        fields.append(field)
    return "|".join(fields)
