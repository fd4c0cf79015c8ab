"""Read a report that other people wrote; refuse it unless every page can show it.

Measuring trusts its own reports. A results dataset and an upload come from other people.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from judgesense.decisions.view import BASELINES
from judgesense.errors import JudgeSenseError
from judgesense.files.disk import file_bytes
from judgesense.files.documents import parse_json
from judgesense.run_folder.report import LISTS, as_report, identity
from judgesense.trust.card import CHECKS, TRUST

LARGEST_REPORT = 32 << 20
"""Bytes; a report of 300 judges on four tasks has about ten million."""

MOST_ENTRIES = 50_000
LONGEST_STRING = 20_000

Kind = Callable[[Any], bool]


def _text(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= LONGEST_STRING


def _count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= 10**9


def _number(value: Any) -> bool:
    # The bound also refuses NaN.
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < 1e9


def _share(value: Any) -> bool:
    return _number(value) and 0 <= value <= 1


def _or_none(kind: Kind) -> Kind:
    return lambda value: value is None or kind(value)


def _one_of(*names: str) -> Kind:
    return lambda value: isinstance(value, str) and value in names


def _side(value: Any) -> bool:
    return isinstance(value, Mapping) and all(kind(value.get(key)) for key, kind in _SIDE.items())


_SIDE: dict[str, Kind] = {
    "template": _text, "prompt_id": _text, "text": _or_none(_text), "answer": _or_none(_text),
    "raw": _text, "decision": _text, "margin": _or_none(_number),
}  # fmt: skip

_CASE: dict[str, Kind] = {"run_id": _text, "judge": _text, "task": _text, "scoring": _text}
_VIEW: dict[str, Kind] = {**_CASE, "order": _text}
_LABELS = _one_of("raw", "mapped")

_CHECK: dict[str, Kind] = {
    "state": _one_of("pass", "fail", "open", "unmeasured"),
    **dict.fromkeys(("estimate", "ci_low", "ci_high"), _or_none(_number)),
    "threshold": _number, "n_items": _count, "text": _text,
    "applies": lambda value: isinstance(value, bool),
    "details": lambda value: isinstance(value, Mapping) and all(
        detail is None or isinstance(detail, bool) or _text(detail) or _number(detail)
        for detail in value.values()
    ) and all(
        value.get(name) is None or _share(value[name]) for name in ("accuracy", "constant_accuracy")
    ) and all(
        value.get(name) is None or (_number(value[name]) and -1 <= value[name] <= 1)
        for name in ("beats_constant", "beats_constant_ci_low", "beats_constant_ci_high")
    ),
}  # fmt: skip


def _names(value: Any) -> bool:
    return isinstance(value, list) and all(name in CHECKS for name in value)


def _checks(value: Any) -> bool:
    return (
        isinstance(value, Mapping)
        and set(value) == set(CHECKS)
        and all(
            isinstance(check, Mapping)
            and all(key in check and kind(check[key]) for key, kind in _CHECK.items())
            for check in value.values()
        )
    )


_SHAPES: dict[str, dict[str, Kind]] = {
    "trust": {
        **_CASE, "trust": _one_of(*TRUST), "because": _names, "text": _text, "checks": _checks,
    },
    "cells": {
        **_VIEW,
        "labels": _LABELS,
        **dict.fromkeys(
            ("jss", "ci_low", "ci_high", "flip_rate", "jss_low", "jss_high", "soft_jss",
             "ci_low_random", "ci_high_random", "jss_repeat", "noise_floor", "accuracy",
             "accuracy_ci_low", "accuracy_ci_high", "first_position_rate", "position_consistency",
             "position_ci_low", "position_ci_high", "coverage"),
            _or_none(_share),
        ),
        **dict.fromkeys(
            ("kappa", "kappa_ci_low", "kappa_ci_high", "delta_jss", "delta_ci_low",
             "delta_ci_high"),
            _or_none(lambda value: _number(value) and -1 <= value <= 1),
        ),
        **dict.fromkeys(
            ("n_pairs", "n_items", "n_clusters", "n_unclear", "n_refused", "n_error"), _count
        ),
        "degenerate": _or_none(_text),
        "signature": _text,
    },
    "template_pairs": {
        **_VIEW, "labels": _LABELS, "template_a": _text, "template_b": _text, "n_pairs": _count,
        "jss": _or_none(_share), "ci_low": _or_none(_share), "ci_high": _or_none(_share),
    },
    "templates": {
        **_VIEW, "template": _text, "agreement": _or_none(_share), "accuracy": _or_none(_share),
    },
    "examples": {
        **_VIEW, "item_id": _or_none(_text), "gold": _or_none(_text), "a": _side, "b": _side,
    },
    "remedies": {
        **_CASE, "remedy": _text, "prompts_per_item": _or_none(_count),
        "accuracy": _or_none(_share),
    },
    "findings": {**_CASE, "kind": _text, "text": _text},
    "to_settle": {**_VIEW, "labels": _LABELS, "items": _or_none(_count)},
}  # fmt: skip


def strict_json(path: Path) -> Any:
    """The JSON value in a file.

    Raises JudgeSenseError for a file that is too large or no JSON, and for a number that is not
    finite.
    """
    size = path.stat().st_size
    if size > LARGEST_REPORT:
        raise JudgeSenseError(f"{path.name} has {size:,} bytes; the limit is {LARGEST_REPORT:,}")
    return parse_json(file_bytes(path), path.name, finite=True)


def read_report(path: Path) -> dict[str, Any]:
    """A report.json that every page can show.

    Raises JudgeSenseError for the first defect, with the file, list, entry and key.
    """
    report = as_report(strict_json(path), Path(path.name))
    check_report(report, path.name)
    return report


def check_report(report: Mapping[str, Any], name: str) -> None:
    """Raise JudgeSenseError unless the pages can show every list of the report."""
    check_lists(report, name, LISTS)
    if not all(isinstance(run, Mapping) for run in report["runs"]):
        raise JudgeSenseError(f"{name}: an entry of runs is not an object")
    if not all(_text(note) for note in report["notes"]):
        raise JudgeSenseError(f"{name}: an entry of notes is not a text")
    _check_cases(report, name)


def check_lists(report: Mapping[str, Any], name: str, lists: Sequence[str]) -> None:
    """Raise JudgeSenseError unless the entries of these lists have valid keys and values."""
    for key in lists:
        entries = report[key]
        if not isinstance(entries, list):
            raise JudgeSenseError(f"{name}: {key} is not a list")
        if len(entries) > MOST_ENTRIES:
            raise JudgeSenseError(
                f"{name}: {key} has {len(entries):,} entries; the limit is {MOST_ENTRIES:,}"
            )
        for number, entry in enumerate(entries if key in _SHAPES else ()):
            if not isinstance(entry, Mapping):
                raise JudgeSenseError(f"{name}: {key}[{number}] is not an object")
            for field, kind in _SHAPES[key].items():
                if field not in entry:
                    raise JudgeSenseError(f"{name}: {key}[{number}] lacks {field!r}")
                if not kind(entry[field]):
                    raise JudgeSenseError(
                        f"{name}: {key}[{number}].{field} has the invalid value "
                        f"{_shown(entry[field])}"
                    )
            checks = entry["checks"] if key == "trust" else {}
            parts = {"": entry}
            for check, found in checks.items():
                parts |= {f".checks.{check}": found, f".checks.{check}.details": found["details"]}
            for within, part in parts.items():
                _check_numbers(part, f"{name}: {key}[{number}]{within}")


def _check_numbers(entry: Mapping[str, Any], place: str) -> None:
    """No number is too large to show, each end of an interval is one or null, none is crossed."""
    for name, value in entry.items():
        is_end = "ci_low" in name or "ci_high" in name
        wrong = value is not None if is_end else type(value) in (int, float)
        if wrong and not _number(value):
            raise JudgeSenseError(f"{place}.{name} has the invalid value {_shown(value)}")
        low, high = value, entry.get(name.replace("ci_low", "ci_high"))
        if is_end and low is not None and _number(high) and low > high:
            raise JudgeSenseError(f"{place}.{name} is above the upper end of its interval")


def _check_cases(report: Mapping[str, Any], name: str) -> None:
    """Each case has a raw and a mapped cell, and every other entry belongs to a case."""
    kinds: dict[tuple[str, ...], set[str]] = {}
    for cell in report["cells"]:
        kinds.setdefault(identity(cell), set()).add(cell["labels"])
    for case, found in kinds.items():
        if len(found) < 2:
            missing = "raw" if "mapped" in found else "mapped"
            raise JudgeSenseError(
                f"{name}: {_shown(case[1])} on {_shown(case[2])} has no {missing} cell"
            )
    judged = {case for case in kinds if case[1] not in BASELINES}
    if lacking := judged - {identity(card) for card in report["trust"]}:
        _, judge, task, _ = min(lacking)
        raise JudgeSenseError(f"{name}: {_shown(judge)} on {_shown(task)} has no trust card")
    before = None
    for key in ("trust", "template_pairs", "templates", "examples", "findings", "to_settle"):
        for number, entry in enumerate(report[key]):
            if identity(entry) not in kinds:
                raise JudgeSenseError(f"{name}: {key}[{number}] belongs to no cell")
            if key == "findings" and identity(entry) != before and entry["kind"] not in TRUST:
                raise JudgeSenseError(
                    f"{name}: findings[{number}].kind is {_shown(entry['kind'])}, but the "
                    f"first finding of a case is one of {', '.join(TRUST)}"
                )
            before = identity(entry)


def _shown(value: Any) -> str:
    shown = repr(value)
    return shown if len(shown) <= 80 else f"{shown[:80]}…"
