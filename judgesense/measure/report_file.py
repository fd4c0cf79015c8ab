"""``report.json``: the one place that writes assessments to it, and the one that reads them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from judgesense.errors import JudgeSenseError
from judgesense.files.disk import file_bytes
from judgesense.files.documents import fit_record, parse_json
from judgesense.log.view import BASELINES
from judgesense.measure.assessment import (
    Assessment,
    Cell,
    Finding,
    JudgeCells,
    NextStep,
    Outlook,
    RemedyFigures,
    ReportContents,
    Search,
    Subject,
    SubjectFields,
)
from judgesense.measure.card import TrustCard
from judgesense.measure.figures import (
    AttackFigures,
    DamageFigures,
    Diagnostics,
    Example,
    HumanAgreement,
    Recommendation,
    RepeatFigures,
    TemplateFigures,
    TemplatePair,
    VariantFigures,
    WhereWrong,
    WordingRow,
)
from judgesense.measure.wins import ModelWins
from judgesense.text import sentence

VERSION = 2

REPORT_FILE = "report.json"

LISTS: Mapping[str, type[Any] | None] = MappingProxyType(
    {
        "trust": TrustCard,
        "wordings": WordingRow,
        "recommendation": Recommendation,
        "remedies": RemedyFigures,
        "people": HumanAgreement,
        "where_wrong": WhereWrong,
        "variants": VariantFigures,
        "attacks": AttackFigures,
        "damage": DamageFigures,
        "wins": ModelWins,
        "cells": Cell,
        "advice": None,
        "findings": None,
        "template_pairs": TemplatePair,
        "templates": TemplateFigures,
        "examples": Example,
        "diagnostics": Diagnostics,
        "next": NextStep,
        "plan": Outlook,
        "repeated": RepeatFigures,
        "runs": None,
        "notes": None,
    }
)
"""The lists of a report, conclusions first, and the record of an assessment in each.

An entry begins with the run, judge, task and scoring of its assessment. ``advice`` is ``findings``
as plain sentences.
"""

RECORDS: Mapping[str, type[Any]] = {name: record for name, record in LISTS.items() if record}

_FIELDS = {"trust": "card", "next": "next_step", "plan": "outlook"}
"""The lists whose field of an assessment has another name."""

_SINGLE = ("trust", "recommendation", "where_wrong", "diagnostics", "next", "plan")
"""The lists with one entry for each assessment."""


def report_json(contents: ReportContents) -> dict[str, Any]:
    """What ``report.json`` holds of a report, in JSON values."""
    lists: dict[str, list[Any]] = {name: [] for name in LISTS}
    for measured in contents.measured:
        subject = measured.subject._asdict()
        for name in RECORDS:
            value = getattr(measured, _FIELDS.get(name, name), None)
            records = value if isinstance(value, tuple) else () if value is None else (value,)
            lists[name] += [{**subject, **plain(record)} for record in records]
    lists |= {
        "findings": plain(contents.findings),
        "advice": [as_sentence(finding) for finding in contents.findings],
        "runs": plain(contents.runs),
        "notes": [*contents.notes],
    }
    search = {} if contents.search is None else {"improve": plain(contents.search)}
    return {"schema": VERSION, **lists, **search}


def plain(value: Any) -> Any:
    """A record as JSON values: its fields in their order, tuples as lists."""
    if is_dataclass(value):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {name: plain(entry) for name, entry in value.items()}
    if isinstance(value, (tuple, list)):
        return [plain(entry) for entry in value]
    return value


def as_sentence(finding: Finding) -> str:
    """A finding with the judge, task and scoring that it is about."""
    where = f"{finding.judge} on {finding.task} ({finding.scoring} scoring)"
    return f"{where}. {sentence(finding.text)}"


def contents_of(report: Mapping[str, Any], where: str = REPORT_FILE) -> ReportContents:
    """The report that ``report.json`` holds; a list or key that it lacks has its default.

    Raises JudgeSenseError, with its place in the file ``where``, for a value of another type.
    """
    by_subject: dict[Subject, dict[str, list[Any]]] = {}
    # Every judge has cells, in the order of the other lists.
    for name in sorted(RECORDS, key=lambda name: name != "cells"):
        for number, row in enumerate(report.get(name, ())):
            place = f"{where}, {name}[{number}]"
            subject = fit_record(SubjectFields, row, place, "a report").subject
            record = fit_record(RECORDS[name], row, place, "a report")
            by_subject.setdefault(subject, {}).setdefault(name, []).append(record)
    measured: list[JudgeCells] = []
    for subject, lists in by_subject.items():
        values: dict[str, Any] = {"cells": ()}
        for name, records in lists.items():
            values[_FIELDS.get(name, name)] = records[-1] if name in _SINGLE else tuple(records)
        if "card" in values:
            measured.append(Assessment(*subject, **values))
        else:
            measured.append(JudgeCells(*subject, cells=values["cells"]))
    findings = []
    for number, row in enumerate(report.get("findings", ())):
        findings.append(fit_record(Finding, row, f"{where}, findings[{number}]", "a report"))
    search = report.get("improve")
    return ReportContents(
        measured=tuple(measured),
        findings=tuple(findings),
        runs=tuple(report.get("runs", ())),
        notes=tuple(report.get("notes", ())),
        search=search and fit_record(Search, search, f"{where}, improve", "a report"),
    )


def load_report(run_dir: Path) -> ReportContents:
    """The report in a folder's ``report.json``.

    Raises JudgeSenseError if it is missing or damaged, is not a report, or has another schema.
    """
    return contents_of(read_report(run_dir), str(run_dir / REPORT_FILE))


def read_report(run_dir: Path) -> dict[str, Any]:
    """The ``report.json`` of a folder, as it stands in the file.

    Raises JudgeSenseError if it is missing or damaged, is not a report, or has another schema.
    """
    path = run_dir / REPORT_FILE
    try:
        document = parse_json(file_bytes(path), path.name)
    except FileNotFoundError:
        raise JudgeSenseError(
            f"{run_dir} holds neither decisions nor a {REPORT_FILE}; name the --out folder of a run"
        ) from None
    except (OSError, JudgeSenseError) as error:
        raise JudgeSenseError(
            f"{path} is damaged ({error}); delete it and rerun: judgesense report {run_dir}"
        ) from error
    if not _is_report(document):
        raise JudgeSenseError(
            f"{path} is not a JudgeSense report: its schema or its cells are missing. Move it "
            f"away, then measure the run again: judgesense report {run_dir}"
        )
    if document["schema"] != VERSION:
        age = "a newer" if document["schema"] > VERSION else "an earlier"
        raise JudgeSenseError(
            f"{path} has schema {document['schema']}, written by {age} JudgeSense (this one reads "
            f"schema {VERSION}). Upgrade judgesense, or measure the run again where its "
            "decisions are: move the file away, then run judgesense report DIR"
        )
    return dict(document)


def has_report(run_dir: Path) -> bool:
    """Whether a folder has a ``report.json`` of this schema.

    It has none if the file is missing, damaged, no report, or older: such a report has to be
    measured again. Raises JudgeSenseError if it has a newer schema.
    """
    try:
        document = parse_json(file_bytes(run_dir / REPORT_FILE), REPORT_FILE)
    except (OSError, JudgeSenseError):
        return False
    return _is_report(document) and document["schema"] >= VERSION and bool(read_report(run_dir))


def _is_report(value: Any) -> bool:
    return (
        isinstance(value, Mapping)
        and isinstance(value.get("schema"), int)
        and isinstance(value.get("cells"), list)
    )


def merge(reports: Sequence[ReportContents]) -> ReportContents:
    """Several reports as one, one after another, equal cells of baselines kept once.

    A run that is named twice counts once.
    """
    reports = [report for at, report in enumerate(reports) if report not in reports[:at]]
    measured: list[JudgeCells] = []
    baselines: set[tuple[str, str, Cell]] = set()
    for report in reports:
        for entry in report.measured:
            if entry.judge in BASELINES:
                keys = {cell: (entry.judge, entry.task, cell) for cell in entry.cells}
                cells = tuple(cell for cell, key in keys.items() if key not in baselines)
                baselines.update(keys.values())
                entry = replace(entry, cells=cells)
            if entry.cells:
                measured.append(entry)
    return ReportContents(
        measured=tuple(measured),
        findings=tuple(finding for report in reports for finding in report.findings),
        runs=tuple(run for report in reports for run in report.runs),
        notes=tuple(note for report in reports for note in report.notes),
    )
