"""Files that register a dataset as a benchmark of the Hub, and a judge's results on it.

Their fields are those of https://huggingface.co/docs/hub/eval-results. ``eval.yaml`` lies in the
dataset and declares tasks that Inspect runs by itself (``inspect eval hf/ORG/NAME/TASK``). The
results of a judge belong into its own model repository, as ``.eval_results/judgesense.yaml``; a run
on the Hub has them ready, one file for each judge that is a model there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from hub_scripts.hub import HUB_SITE
from judgesense.measure.assessment import Assessment, ReportContents
from judgesense.text import interval, number
from judgesense_dataset.embedded import EMBEDDED_SETS
from judgesense_dataset.folder import ALL, PROMPTS, REJECTED, SPLIT, configs, read_config
from local_judges.local.gguf_files import NAMED
from local_judges.options import SYSTEM_PROMPT

EVAL_FILE, RESULTS_FOLDER = "eval.yaml", ".eval_results"

_DESCRIPTION = (
    "Prompts that ask a judge the same question about an item in two wordings, with gold labels. "
    "These tasks score the first prompt of each pair. How often a judge's verdict stays the same "
    "under rewording (JSS) needs both, and is in the notes of the results."
)
_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]{0,95}/[A-Za-z0-9][\w.-]{0,95}")


_TASK = {
    "split": SPLIT,
    "field_spec": {"input": "prompt_a", "target": "expected_a"},
    "solvers": [
        {"name": "system_message", "args": {"template": SYSTEM_PROMPT}},
        {"name": "generate", "args": {"temperature": 0.0, "max_tokens": 20}},
    ],
    "scorers": [{"name": "match", "args": {"location": "begin"}}],
}
"""How Inspect runs a task: the first paper's protocol, on the first prompt of each pair."""


def eval_file(folder: Path, repo_id: str) -> bytes | None:
    """``eval.yaml`` of a dataset folder: its tasks with gold labels; None without any."""
    tasks = []
    for task in configs(folder).keys() - {ALL, REJECTED, PROMPTS}:
        rows = read_config(folder, task)
        expected = rows["expected_a"] if "expected_a" in rows.column_names else None
        if expected is not None and rows.num_rows and not expected.null_count:
            tasks.append(task)
    if not tasks:
        return None
    header = {"name": repo_id.rpartition("/")[2], "description": _DESCRIPTION}
    # A framework of the Hub's list is asked for; other names are refused.
    header["evaluation_framework"] = "inspect-ai"
    entries = [{"id": name, "config": name, **_TASK} for name in sorted(tasks)]
    return _dump({**header, "tasks": entries})


def result_files(report: ReportContents, repo_id: str, name: str) -> dict[str, bytes]:
    """The results of a run's judges by path below the run's folder ``name`` in ``repo_id``.

    Only of judges that are models on the Hub, on a dataset of the Hub.
    """
    record: Mapping[str, Any] = report.runs[0] if report.runs else {}
    data = (record.get("asked") or {}).get("data") or {}
    dataset = str(data.get("dataset") or "").partition("@")[0]
    if "sha256" in data or dataset in EMBEDDED_SETS or not _HUB_ID.fullmatch(dataset):
        return {}
    revision = (record.get("dataset") or {}).get("revision")
    benchmark = {"id": dataset, **({"revision": str(revision)} if revision else {})}
    source = {"url": f"{HUB_SITE}/datasets/{repo_id}/tree/main/{name}", "name": "JudgeSense run"}
    day = str(record.get("finished") or record.get("started") or "")[:10]
    files = {}
    for judge in record.get("judges") or []:
        model = hub_model(judge["name"], judge.get("describe") or {})
        assessments = [a for a in report.assessments if a.judge == judge["name"]]
        entries = [
            {
                "dataset": {**benchmark, "task_id": task},
                "value": round(value, 4),
                **({"date": day} if day else {}),
                "source": source,
                "notes": notes,
            }
            for task, value, notes in _values(assessments)
        ]
        if model is not None and entries:
            files[f"{RESULTS_FOLDER}/{model.replace('/', '--')}.yaml"] = _dump(entries)
    return files


def _values(assessments: list[Assessment]) -> Iterator[tuple[str, float, str]]:
    """Task, share of right verdicts and notes, of generated text where a task has it."""
    seen_tasks = set()
    for assessment in sorted(assessments, key=lambda a: (a.task, a.scoring)):
        accuracy, cell = assessment.card.checks["right"].details.get("accuracy"), assessment.mapped
        if accuracy is None or assessment.task in seen_tasks:
            continue
        seen_tasks.add(assessment.task)
        notes = f"{assessment.scoring}; all wordings and option orders"
        if cell.degenerate is not None:
            notes += "; gives one label only"
        elif cell.jss is not None:
            bounds = interval(cell.ci_low, cell.ci_high)
            notes += f"; same verdict after rewording (JSS) {number(cell.jss)} {bounds}"
        yield assessment.task, accuracy, notes


def hub_model(judge: str, description: Mapping[str, Any]) -> str | None:
    """The Hub name of a judge's model: where it came from, or where its package's came from."""
    origin = str(description.get("origin", ""))
    hub_id = origin.removeprefix("Hub ") if origin.startswith("Hub ") else ""
    package = NAMED.get(judge.partition("@")[0])
    if package and (origin.startswith("package ") or description.get("weights") == package.sha256):
        hub_id = package.hub_id
    return hub_id if _HUB_ID.fullmatch(hub_id) else None


class _Dumper(yaml.SafeDumper):
    """Writes what occurs twice twice, without anchors."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _dump(content: Any) -> bytes:
    options: Any = {"sort_keys": False, "allow_unicode": True, "width": 100}
    return str(yaml.dump(content, Dumper=_Dumper, **options)).encode()
