"""A report that somebody else wrote: read strictly, and refused unless every page can show it.

The measuring side trusts its own reports; a results dataset and an upload are other people's.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from hub_scripts.results import check_cells
from judgesense.errors import JudgeSenseError
from judgesense.report_file import LISTS, as_report, identity
from judgesense.reporting.style import MARKS, TONES

LARGEST_REPORT = 32 << 20
"""Bytes; a report of 300 judges on four tasks has some ten million."""

MOST_ENTRIES = 50_000
LONGEST_STRING = 20_000

Kind = Callable[[Any], bool]


def _text(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= LONGEST_STRING


def _count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= 10**9


def _number(value: Any) -> bool:
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return False
    return abs(value) < 1e9 and math.isfinite(value)


def _share(value: Any) -> bool:
    return _number(value) and 0 <= value <= 1


def _flag(value: Any) -> bool:
    return isinstance(value, bool)


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

_SHAPES: dict[str, dict[str, Kind]] = {
    "cells": {
        **_VIEW,
        "labels": _LABELS,
        **dict.fromkeys(
            ("jss", "ci_low", "ci_high", "flip_rate", "jss_low", "jss_high", "soft_jss",
             "noise_floor", "accuracy", "first_position_rate", "position_consistency", "coverage"),
            _or_none(_share),
        ),
        "kappa": _or_none(lambda value: _number(value) and -1 <= value <= 1),
        **dict.fromkeys(
            ("n_pairs", "n_items", "n_clusters", "n_unclear", "n_refused", "n_error"), _count
        ),
        "degenerate": _or_none(_text),
        "verdict": _one_of(*MARKS),
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
    "findings": {**_CASE, "kind": _text, "text": _text},
    "to_settle": {**_VIEW, "labels": _LABELS, "items": _or_none(_count)},
}  # fmt: skip


def strict_json(path: Path) -> Any:
    """The JSON value in a file: no NaN, nothing infinite, no depth that Python cannot follow.

    Raises JudgeSenseError with the reason.
    """
    size = path.stat().st_size
    if size > LARGEST_REPORT:
        raise JudgeSenseError(
            f"{path.name} has {size:,} bytes, more than the {LARGEST_REPORT:,} that are read"
        )
    try:
        return json.loads(path.read_text("utf-8"), parse_constant=_no_constant, parse_float=_finite)
    except UnicodeDecodeError as error:
        raise JudgeSenseError(f"{path.name} is not UTF-8 ({error.reason})") from error
    except json.JSONDecodeError as error:
        raise JudgeSenseError(
            f"{path.name} is no JSON: {error.msg}, line {error.lineno}, column {error.colno}"
        ) from error
    except RecursionError as error:
        raise JudgeSenseError(f"{path.name} is nested too deeply to be a report") from error
    except JudgeSenseError as error:
        raise JudgeSenseError(f"{path.name} {error}") from error
    except ValueError as error:
        # An integer of thousands of digits.
        raise JudgeSenseError(f"{path.name} holds a number that cannot be read") from error


def _no_constant(name: str) -> Any:
    raise JudgeSenseError(f"holds {name}, which is no number; undefined is null")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise JudgeSenseError(f"holds {text[:30]}, which is beyond every number of a report")
    return value


def read_report(path: Path) -> dict[str, Any]:
    """A report.json that every page can show.

    Raises JudgeSenseError that names the first thing wrong: the file, the list, the entry, the key.
    """
    report = as_report(strict_json(path), Path(path.name))
    check_lists(report, path.name)
    check_cells(report, Path(path.name))
    return report


def check_lists(report: Mapping[str, Any], name: str) -> None:
    """Raise JudgeSenseError unless each list has entries of the shape that the pages show."""
    for key in LISTS:
        entries = report[key]
        if not isinstance(entries, list):
            raise JudgeSenseError(f"{name}: {key} is no list")
        if len(entries) > MOST_ENTRIES:
            raise JudgeSenseError(
                f"{name}: {key} has {len(entries):,} entries, more than {MOST_ENTRIES:,}"
            )
    for key, shape in _SHAPES.items():
        for number, entry in enumerate(report[key]):
            if not isinstance(entry, Mapping):
                raise JudgeSenseError(f"{name}: {key}[{number}] is no object")
            for field, kind in shape.items():
                if field not in entry:
                    raise JudgeSenseError(f"{name}: {key}[{number}] lacks {field!r}")
                if not kind(entry[field]):
                    raise JudgeSenseError(
                        f"{name}: {key}[{number}].{field} is {_shown(entry[field])}, which it "
                        "cannot be"
                    )
    if not all(isinstance(run, Mapping) for run in report["runs"]):
        raise JudgeSenseError(f"{name}: an entry of runs is no object")
    if not all(_text(note) for note in report["notes"]):
        raise JudgeSenseError(f"{name}: an entry of notes is no text")
    _check_cases(report, name)


def _check_cases(report: Mapping[str, Any], name: str) -> None:
    """Each case has both kinds of label, and every other entry belongs to a case."""
    kinds: dict[tuple[str, ...], set[str]] = {}
    for cell in report["cells"]:
        kinds.setdefault(identity(cell), set()).add(cell["labels"])
    for case, found in kinds.items():
        if len(found) < 2:
            missing = "raw" if "mapped" in found else "mapped"
            raise JudgeSenseError(
                f"{name}: {_shown(case[1])} on {_shown(case[2])} has no {missing} cell"
            )
    before = None
    for key in ("template_pairs", "templates", "examples", "findings", "to_settle"):
        for number, entry in enumerate(report[key]):
            if identity(entry) not in kinds:
                raise JudgeSenseError(f"{name}: {key}[{number}] belongs to no cell")
            if key == "findings" and identity(entry) != before and entry["kind"] not in TONES:
                raise JudgeSenseError(
                    f"{name}: findings[{number}].kind is {_shown(entry['kind'])}, and a case "
                    f"begins with {', '.join(TONES)}"
                )
            before = identity(entry)


def _shown(value: Any) -> str:
    shown = repr(value)
    return shown if len(shown) <= 80 else f"{shown[:80]}…"
