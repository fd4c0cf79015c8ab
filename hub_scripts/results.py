"""Publish a run as a folder of a results dataset, after recomputing every figure."""

from __future__ import annotations

import hashlib
import io
import json
import math
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

import pyarrow as pa

from hub_scripts.evaluations import result_files
from hub_scripts.hub import Content, Publication
from hub_scripts.verification import named_benchmark, require_benchmark
from judgesense.errors import JudgeSenseError
from judgesense.files.disk import sha256_of
from judgesense.log.folder import PAIRS_FILE, PROMPTS_FILE, RUN_FILE, read_record
from judgesense.log.schema import PARTS, encode_part, part_files, read_part, require_parts
from judgesense.log.view import BASELINES
from judgesense.measure.assessment import ReportContents
from judgesense.measure.report_file import REPORT_FILE, contents_of, read_report, report_json
from judgesense.reporting.documents import render_markdown
from judgesense.reporting.report import measure_run

_WINDOWS = re.compile(r"(?:[A-Za-z]:[\\/]|\\\\)[^\n]*")
_POSIX = re.compile(r"(?:file://)?(?:~|\.{1,2})?/[^\n]*")
_PATH_IN_TEXT = re.compile(
    r"""(?<![\w:/.<>~-])(?:file://)?~?(?:/[\w.+@%~-]+){2,}/?"""
    r"""|(?<![\w])[A-Za-z]:(?:\\[\w.+@%~-]+)+"""
)
_STIMULUS = frozenset({"system_prompt", "prompt_head", "prompt_tail", "text", "instruction"})
"""Keys whose values a judge saw; they stay as they are."""

_PROMPT_TEXT = re.compile(r"examples\[\d+\]\.[ab]\.text|attacks\[\d+\]\.turned_items\[\d+\]\.text")

_COMMAND = re.compile(r"next\[\d+\]\.command")
"""A command names the run's folder, which may have moved."""

TOLERANCE = 1e-9
"""Figures that differ by less, relatively, are equal: processors round differently."""

_REWRITE = "write the report again with: judgesense report DIR"

_CARD = """\
---
pretty_name: JudgeSense results
tags:
- llm-as-a-judge
- prompt-sensitivity
- judgesense
configs:
- config_name: decisions
  default: true
  data_files:
  - split: test
    path: "*/decisions/part-*.parquet"
- config_name: pairs
  data_files:
  - split: test
    path: "*/pairs.parquet"
---

# JudgeSense results

One folder per run: `report.json` (every figure with its signature), `run.json` (everything that
fixes the answers), `decisions/` (the decision log), `pairs.parquet` if the run has pairs, and
`README.md` (the report for people). Every figure was recomputed from the decisions before it was
published.

```python
from datasets import load_dataset

decisions = load_dataset("{repo_id}", "decisions", split="test")
```
"""


def results_publication(run_dir: Path, repo_id: str) -> Publication:
    """The publication of a run's report, decision log, pairs, record, card and judges' results.

    Its folder in the repository is the run's id with a hash of its judges, so that two runs of the
    same name do not collide. Local paths (of models, of data, in error messages) become names. The
    decisions stay as they are, and with them every figure and signature.

    Raises JudgeSenseError for a run without decisions or without a report, a report of a newer
    schema, a figure or signature that does not follow from the decisions (the first is named), and
    as `require_benchmark`.
    """
    report = checked_report(run_dir)
    if (benchmark := named_benchmark(run_dir)) is not None:
        require_benchmark(run_dir, benchmark)
    report = replace(report, runs=without_paths(report.runs), notes=without_paths(report.notes))
    name, content = folder_name(report), report_json(report)
    files: dict[str, Content] = {
        "README.md": _CARD.replace("{repo_id}", repo_id).encode(),
        f"{name}/README.md": render_markdown(report).encode(),
        f"{name}/{REPORT_FILE}": _json(content | {"next": without_paths(content["next"])}),
    }
    for part in part_files(run_dir):
        files[f"{name}/{PARTS}/{part.name}"] = _part_without_paths(part)
    if (run_dir / PAIRS_FILE).is_file():
        files[f"{name}/{PAIRS_FILE}"] = run_dir / PAIRS_FILE
    files |= {f"{name}/{path}": text for path, text in result_files(report, repo_id, name).items()}
    if (record := read_record(run_dir)) is not None:
        record = without_paths(record)
        if "digests" in record:
            record["digests"] = {
                path.removeprefix(f"{name}/"): hashlib.sha256(content).hexdigest()
                if isinstance(content, bytes)
                else sha256_of(content)
                for path, content in files.items()
                if path.endswith(".parquet")
            }
        files[f"{name}/{RUN_FILE}"] = _json(record)
    return Publication(
        repo_id=repo_id,
        repo_type="dataset",
        files=files,
        message=f"Publish the run {name}",
        tag=name,
        owned=lambda remote: remote.startswith(f"{name}/"),
        only_if_absent=frozenset({"README.md"}),
        shared=True,
    )


def checked_report(run_dir: Path) -> ReportContents:
    """A run's report, once every figure has been recomputed from its decisions.

    Raises JudgeSenseError as `results_publication` does.
    """
    require_parts(run_dir)
    path = run_dir / REPORT_FILE
    if not path.is_file():
        raise JudgeSenseError(
            f"{run_dir} has no {REPORT_FILE}; write it with: judgesense report {run_dir}"
        )
    stated = read_report(run_dir)
    computed = json.loads(json.dumps(report_json(measure_run(run_dir)), allow_nan=False))
    # A published run has no prompts, so the texts of its examples cannot be recomputed.
    has_prompts = path.with_name(PROMPTS_FILE).is_file()
    # Notes depend on the machine that wrote the report.
    for key in sorted({*stated, *computed} - {"notes"}):
        for place, value, recomputed in _differences(stated.get(key, []), computed.get(key), key):
            is_prompt_text = isinstance(value, str) and _PROMPT_TEXT.fullmatch(place)
            if isinstance(value, str) and _COMMAND.fullmatch(place):
                continue
            if has_prompts or not is_prompt_text:
                raise JudgeSenseError(
                    f"{path} does not match its decisions: {place} is {_summary(value)}, but "
                    f"recomputed it is {_summary(recomputed)}; {_REWRITE}"
                )
    if not all(isinstance(note, str) for note in stated.get("notes", [])):
        raise JudgeSenseError(f"{path}: an entry of notes is not text; {_REWRITE}")
    return contents_of(stated, str(path))


def _part_without_paths(part: Path) -> Content:
    """A part of the decision log, with the paths in its errors reduced to names."""
    table = read_part(part)
    errors = table["error"].to_pylist()
    shortened = [None if error is None else name_only(error) for error in errors]
    if shortened == errors:
        return part
    column = table.schema.get_field_index("error")
    table = table.set_column(column, table.schema.field(column), pa.array(shortened, pa.string()))
    buffer = io.BytesIO()
    encode_part(table, buffer)
    return buffer.getvalue()


def _json(value: Any) -> bytes:
    return (json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode()


def _is_number(value: Any) -> bool:
    # An integer beyond the floats cannot be compared as one.
    return type(value) in (int, float) and abs(value) <= sys.float_info.max


def _differences(stated: Any, computed: Any, place: str) -> Iterator[tuple[str, Any, Any]]:
    """Places where two JSON values differ."""
    if isinstance(stated, dict) and isinstance(computed, dict) and stated.keys() == computed.keys():
        for key, value in computed.items():
            yield from _differences(stated[key], value, f"{place}.{key}")
    elif isinstance(stated, list) and isinstance(computed, list) and len(stated) == len(computed):
        for number, value in enumerate(computed):
            yield from _differences(stated[number], value, f"{place}[{number}]")
    elif _is_number(stated) and _is_number(computed):
        if not math.isclose(stated, computed, rel_tol=TOLERANCE, abs_tol=TOLERANCE):
            yield place, stated, computed
    elif stated != computed:
        yield place, stated, computed


def _summary(value: Any) -> str:
    if isinstance(value, (dict, list)):
        return f"{type(value).__name__} of {len(value)}"
    return repr(value[:200] if isinstance(value, str) else value)


def folder_name(report: ReportContents) -> str:
    """The run's folder in a results dataset: its id and a hash of its judges."""
    judges = {entry.judge for entry in report.measured} - {*BASELINES}
    digest = hashlib.sha256("\n".join(sorted(judges)).encode()).hexdigest()
    run_id = str(report.runs[0].get("run_id") or "run")
    safe = re.sub(r"[^A-Za-z0-9._-]+", "-", run_id).strip(".-")[:80] or "run"
    return f"{safe}-{digest[:8]}"


def without_paths(value: Any) -> Any:
    """The same JSON value with every path, alone or in a message, reduced to its last name.

    Text that a judge saw (system prompts, prompts) and URLs stay as they are.

    >>> without_paths({"model": "/home/ann/models/mine", "text": "see /home/ann"})
    {'model': 'mine', 'text': 'see /home/ann'}
    """
    if isinstance(value, Mapping):
        return {
            key: member if key in _STIMULUS else without_paths(member)
            for key, member in value.items()
        }
    if isinstance(value, (list, tuple)):
        return type(value)(map(without_paths, value))
    return name_only(value) if isinstance(value, str) else value


def name_only(text: str) -> str:
    """The last name of a path, or a text in which every path is reduced to its last name."""
    if _WINDOWS.fullmatch(text):
        return PureWindowsPath(text).name or text
    if _POSIX.fullmatch(text):
        return PurePosixPath(text).name or text
    return _PATH_IN_TEXT.sub(lambda match: _last_name(match[0]), text)


def _last_name(path: str) -> str:
    return PureWindowsPath(path).name if "\\" in path else PurePosixPath(path).name
