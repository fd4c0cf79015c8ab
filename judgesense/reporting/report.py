"""From a run's decisions to ``report.json``, the documents made from it, and `Report`."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cached_property, partial
from html import escape
from pathlib import Path
from typing import Any

from judgesense.errors import JudgeSenseError
from judgesense.files.disk import refuse_links, write_text
from judgesense.files.documents import fit_record, read_json
from judgesense.log.folder import read_run
from judgesense.log.schema import part_files, raw_texts
from judgesense.measure.assess import measure
from judgesense.measure.assessment import Assessment, ReportContents, Search
from judgesense.measure.disagreements import Disagreement, read_rows, write_rows
from judgesense.measure.report_file import (
    REPORT_FILE,
    VERSION,
    has_report,
    load_report,
    merge,
    report_json,
)
from judgesense.reporting import plots
from judgesense.reporting.summary import first_screen
from judgesense.reporting.tables import COLUMNS, advice, rows, steady_threshold
from judgesense.reporting.terminal import render_brief
from judgesense.statistics.result import data_frame, html_table
from judgesense.text import join, short_names, span


class _ReportKey:
    """A list of ``report.json`` as an attribute of a report."""

    def __set_name__(self, owner: type[Report], name: str) -> None:
        self.name = name

    def __get__(self, report: Report | None, owner: type[Report]) -> list[dict[str, Any]]:
        return [] if report is None else report[self.name]


class Report(Mapping[str, Any]):
    """Every figure of a run or of several runs, with the keys of ``report.json``.

    ``trust`` has the trust card of each judge, task and scoring (`judgesense.measure.card`),
    ``next`` the next step, ``plan`` what would settle the card and how a gate behaves at this size.
    ``where_wrong`` counts what is wrong with the verdicts, and lists the groups of items that fare
    worse than the rest; the items are in `disagreements`.
    ``damage`` has what the judge made of outputs made wrong on purpose, by kind.
    ``cells`` has one entry per judge, task, scoring, order and set of labels (raw or mapped);
    `judgesense.measure.assessment.Cell` names its keys. ``advice`` holds the findings as
    sentences.
    ``contents`` has the same as typed records. ``out`` is the run's folder, None of several runs.
    ``str()`` is what ``judgesense report`` prints; a notebook shows the same as a table.
    """

    trust = _ReportKey()
    wordings = _ReportKey()
    recommendation = _ReportKey()
    remedies = _ReportKey()
    people = _ReportKey()
    where_wrong = _ReportKey()
    wins = _ReportKey()
    variants = _ReportKey()
    attacks = _ReportKey()
    damage = _ReportKey()
    cells = _ReportKey()
    findings = _ReportKey()
    template_pairs = _ReportKey()
    templates = _ReportKey()
    examples = _ReportKey()
    diagnostics = _ReportKey()
    next = _ReportKey()
    plan = _ReportKey()
    repeated = _ReportKey()
    runs = _ReportKey()
    schema = VERSION

    def __init__(self, contents: ReportContents, out: Path | None = None) -> None:
        self.contents, self.out = contents, out

    @cached_property
    def _values(self) -> dict[str, Any]:
        return report_json(self.contents)

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    @property
    def advice(self) -> list[str]:
        """The findings as sentences."""
        return list(self["advice"])

    @property
    def notes(self) -> list[str]:
        """Notes on the run."""
        return list(self["notes"])

    @property
    def assessments(self) -> tuple[Assessment, ...]:
        """Everything on each judge, task and scoring, as typed records."""
        return self.contents.assessments

    def to_dict(self) -> dict[str, Any]:
        """The contents of ``report.json``."""
        return report_json(self.contents)

    def to_pandas(self) -> Any:
        """The trust cards as a `pandas.DataFrame`, one row per judge, task and scoring.

        ``jss``, ``fair`` and ``readable`` are the estimates of the card's checks, ``kappa`` that of
        `right`, and ``right`` the share of verdicts that match the gold labels; None where it was
        not measured. ``ci_low`` and ``ci_high`` are those of ``jss``. ``next`` is the kind of the
        next step.
        """
        table = []
        for entry in self.assessments:
            checks, step = entry.card.checks, entry.next_step
            table.append(
                {
                    "judge": entry.judge,
                    "task": entry.task,
                    "scoring": entry.scoring,
                    "trust": entry.card.trust,
                    "because": ", ".join(entry.card.because),
                    "jss": checks["steady"].estimate,
                    "ci_low": checks["steady"].ci_low,
                    "ci_high": checks["steady"].ci_high,
                    "kappa": checks["right"].estimate,
                    "right": checks["right"].details.get("accuracy"),
                    "fair": checks["fair"].estimate,
                    "readable": checks["readable"].estimate,
                    "n_items": checks["readable"].n_items,
                    "next": None if step is None else step.kind,
                    "run_id": entry.run_id,
                }
            )
        return data_frame(table)

    def cells_frame(self) -> Any:
        """The cells as a `pandas.DataFrame`, one row per judge, task, scoring, order and set of
        labels."""
        return data_frame(self.cells)

    def plot(self) -> Any:
        """The same verdict after rewording, by task and judge, as a `matplotlib.figure.Figure`.

        Where no rewording is measured, the share of people's labels that a judge matches.

        Raises JudgeSenseError for a report without judges, MissingExtraError without matplotlib.
        """
        table = rows(self.contents)
        shares = [
            (
                entry.task,
                f"{entry.judge} · {people.human}",
                people.accuracy,
                people.accuracy_ci_low,
                people.accuracy_ci_high,
            )
            for entry in self.assessments
            for people in entry.people
        ]
        if shares and all(row.jss is None for row in table if not row.is_baseline):
            xlabel = "Right: matches people's labels, with its 95% interval"
            return plots.forest(shares, xlabel=xlabel, xlim=(-0.01, 1.01))
        lines = []
        for row in table:
            name, ends = row.texts["judge"], (row.ci_low, row.ci_high)
            if row.is_baseline:
                ends = (None, None)
            else:
                name += f" · {row.entry.scoring}"
            lines.append((row.entry.task, name, row.jss, *ends, None, row.tone))
        if not lines:
            raise JudgeSenseError("the report has no judge to draw")
        xlabel = "JSS (same verdict after rewording) with its 95% interval"
        limit = steady_threshold(self.contents)
        return plots.forest(lines, xlabel=xlabel, threshold=limit, xlim=(-0.01, 1.01))

    def __repr__(self) -> str:
        entries = self.assessments
        judges = list(short_names({entry.judge for entry in entries}).values())
        tasks = list(dict.fromkeys(entry.task for entry in entries))
        trust = Counter(entry.card.trust for entry in entries)
        values = [f"{n} {name}" if len(entries) > 1 else name for name, n in trust.items()]
        sizes = {entry.card.checks["readable"].n_items for entry in entries} or {0}
        n = span([min(sizes), max(sizes)], str)
        who, what = (
            join(names) if 0 < len(names) < 4 else f"{len(names)} {many}"
            for names, many in ((judges, "judges"), (tasks, "tasks"))
        )
        return f"<Report of {who} on {what}: {', '.join(values)}; {n} items; {self.out}>"

    def disagreements(self) -> Any:
        """The items on which the judge is wrong, flips, cannot be read or is unsure.

        The rows of ``disagreements.csv`` (`judgesense.measure.disagreements.Disagreement`) as a
        `pandas.DataFrame`, or as a list of dicts without pandas. Raises JudgeSenseError if the
        report has no folder, or the folder no such file.
        """
        if self.out is None:
            raise JudgeSenseError("no folder: take the report of one run, judgesense report DIR")
        table = read_rows(self.out)
        try:
            return data_frame(table)
        except ImportError:
            return table

    def __str__(self) -> str:
        page = [] if self.out is None else [f"{self.out}/report.html shows the verdicts."]
        return "\n".join([render_brief(self.contents), *page])

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """IPython's plain text: the table, not every figure."""
        printer.text(str(self))

    def _repr_html_(self) -> str:
        judged = [row for row in rows(self.contents) if not row.is_baseline]
        table = html_table(list(COLUMNS.values()), [list(row.texts.values()) for row in judged])
        screen = first_screen(self.contents)
        texts = [f"{case.heading}: {case.texts[0]}" for case in advice(self.contents)[:_CASES]]
        if step := screen.next_step:
            texts.append(" ".join(filter(None, ["Next:", step.text, step.command])))
        items = "".join(f"<li>{escape(text)}</li>" for text in texts)
        return f"<p><b>{escape(screen.title)}</b></p>{table}<ul>{items}</ul>"


_CASES = 6
"""Judges and tasks whose conclusion a notebook shows."""


def measure_run(
    run_dir: Path,
    thresholds: Mapping[str, object] | None = None,
    disagreements: list[Disagreement] | None = None,
) -> ReportContents:
    """A run's report, measured from its decisions; without decisions, the report in the folder.

    ``thresholds`` and ``disagreements`` are those of `measure`; the report in the folder keeps its
    own thresholds. Raises JudgeSenseError as `read_run` and `load_report` do.
    """
    if run_dir.is_dir() and not part_files(run_dir):
        return load_report(run_dir)
    run = read_run(run_dir)
    return measure(
        run.figures,
        run.pairs,
        run=run.record,
        prompts=run.prompts,
        thresholds=thresholds,
        texts=partial(raw_texts, run_dir),
        folder=run_dir,
        people=run.people,
        items=run.items,
        disagreements=disagreements,
    )


IMPROVE_FILE = "improve.json"
"""What ``judgesense improve`` wrote beside the answers it got."""


def write_report(run_dir: Path, thresholds: Mapping[str, object] | None = None) -> Report:
    """Measure a run and write its report (``.json``, ``.md``, ``.html``) and ``disagreements.csv``,
    each file whole or not at all.

    Raises JudgeSenseError as `measure_run` does, if the folder holds the report of a newer version,
    and if it cannot be written.
    """
    from judgesense.reporting.documents import render_markdown
    from judgesense.reporting.html import render_html

    run_dir = Path(run_dir)
    refuse_links(run_dir)
    has_report(run_dir)  # Refuse to overwrite the report of a newer version.
    disagreements: list[Disagreement] = []
    contents = measure_run(run_dir, thresholds, disagreements)
    if (searched := run_dir / IMPROVE_FILE).exists():
        search = fit_record(Search, read_json(searched), str(searched), "a search")
        contents = replace(contents, search=search)
    report = Report(contents, run_dir)
    try:
        text = json.dumps(report.to_dict(), indent=1, ensure_ascii=False, allow_nan=False)
        write_text(run_dir / REPORT_FILE, text + "\n")
        write_text(run_dir / "report.md", render_markdown(contents))
        write_text(run_dir / "report.html", render_html(contents, disagreements))
        if part_files(run_dir):
            write_rows(disagreements, run_dir)
    except OSError as error:
        raise JudgeSenseError(
            f"cannot write the report into {run_dir}: {error.strerror or error}; "
            f"to print it instead: judgesense report {run_dir} --format md"
        ) from error
    return report


def report_runs(*run_dirs: str | Path, thresholds: Mapping[str, object] | None = None) -> Report:
    """Measure runs, write each one's report, and return the report of all of them.

    Args:
        run_dirs: folders of runs (``--out``), one or several.
        thresholds: of the trust card's checks, by name, such as ``{"steady": 0.9}``
            (`judgesense.measure.thresholds.Thresholds`).

    Returns:
        The report; of several runs, their cells one after another.

    Raises:
        JudgeSenseError: a folder without decisions, an unreadable part, a report that a newer
            version wrote, or an unknown threshold.

    >>> import tempfile
    >>> from judgesense.pipeline import run
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     judge = lambda messages: ["YES" for _ in messages]
    ...     _ = run(judge, tasks=["factuality"], limit=4, out=f"{folder}/run", note=str)
    ...     report = report_runs(f"{folder}/run")
    >>> len(report.cells)
    4
    """
    if not run_dirs:
        raise JudgeSenseError("no run given; name the --out folder of at least one run")
    reports = [write_report(Path(run_dir), thresholds) for run_dir in run_dirs]
    if len(reports) > 1:
        return Report(merge([report.contents for report in reports]))
    return reports[0]
