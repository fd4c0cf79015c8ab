"""`Report`: the contents of report.json as `judgesense.run` and `judgesense.report` return them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from html import escape
from pathlib import Path
from typing import Any

from judgesense.reporting.table import COLUMNS, rows
from judgesense.reporting.terminal import render_terminal
from judgesense.statistics.result import ResultMapping, data_frame, html_table


@dataclass(frozen=True, eq=False)
class Report(ResultMapping):
    """Every figure of a run or of several runs, with the keys of ``report.json``.

    ``trust`` has the trust card of each judge, task and scoring (`judgesense.trust.card`).
    ``cells`` has one entry per judge, task, scoring, order and set of labels (raw or mapped);
    `judgesense.run_folder.report.CELL_KEYS` names its keys. ``advice`` holds the findings as
    sentences.
    ``str()`` is the plain table of ``judgesense report``; a notebook shows the same table.
    """

    schema: int
    trust: list[dict[str, Any]]
    wordings: list[dict[str, Any]]
    recommendation: list[dict[str, Any]]
    remedies: list[dict[str, Any]]
    variants: list[dict[str, Any]]
    variance_budget: list[dict[str, Any]]
    cells: list[dict[str, Any]]
    advice: list[str]
    findings: list[dict[str, Any]]
    template_pairs: list[dict[str, Any]]
    templates: list[dict[str, Any]]
    examples: list[dict[str, Any]]
    diagnostics: list[dict[str, Any]]
    to_settle: list[dict[str, Any]]
    repeated: list[dict[str, Any]]
    runs: list[dict[str, Any]]
    notes: list[str]

    _folder = None  # without an annotation, so that it is no field

    @classmethod
    def of(cls, contents: Mapping[str, Any], folder: str | Path | None = None) -> Report:
        """The report with the contents of a ``report.json``; ``folder`` is that of its run, which
        the commands of ``str()`` name."""
        made = cls(**{field.name: contents[field.name] for field in fields(cls)})
        object.__setattr__(made, "_folder", folder)
        return made

    def to_dict(self) -> dict[str, Any]:
        """The contents of ``report.json``."""
        return dict(self)

    def to_pandas(self) -> Any:
        """The cells as a `pandas.DataFrame`, one row per cell."""
        return data_frame(self.cells)

    def __str__(self) -> str:
        return str(render_terminal(self, folder=self._folder))

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """IPython's plain text: the table, not every figure."""
        printer.text(str(self))

    def _repr_html_(self) -> str:
        advice = "".join(f"<li>{escape(text)}</li>" for text in self.advice)
        table = html_table(list(COLUMNS.values()), [list(row.texts.values()) for row in rows(self)])
        return table + f"<ul>{advice}</ul>"
