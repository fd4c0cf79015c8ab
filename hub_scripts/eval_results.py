"""Publish a run's scores as the Hub's evaluation results: ``eval.yaml`` and ``.eval_results/``.

Format: huggingface/hub-docs, docs/hub/eval-results.md. A benchmark is a dataset with an
``eval.yaml``. A model's score on one of its tasks is an entry in a YAML file in the model's
repository; anyone may offer one in a pull request.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from hub_scripts.client import hub_client
from hub_scripts.publication import Publication
from hub_scripts.results import checked_report, folder_name
from judgesense.decisions.view import BASELINES
from judgesense.errors import JudgeSenseError
from judgesense.run_folder.report import identity, main_cells
from local_judges.options import SYSTEM_PROMPT

EVAL_FILE = "eval.yaml"
SCORING = "options"
"""Scores come from option probabilities, so that no parser affects them."""

DESCRIPTION = (
    "How much an LLM judge's verdicts depend on how the question is worded. The score of a task "
    "is the mapped Judge Sensitivity Score: the share of pairs of equivalent prompts on which the "
    "judge's most probable option means the same, from 0 to 1; higher is better. A judge can be "
    "consistent and wrong: each entry's notes give its accuracy and the 95% interval over items."
)

_FROM_HUB = re.compile(r"(?P<repo>[\w.-]+/[\w.-]+)@(?P<revision>[0-9a-f]{40})(?::(?P<file>.+))?")
_COMMIT = re.compile(r"[0-9a-f]{40}")


def eval_yaml(
    name: str,
    tasks: Iterable[str],
    split: str,
    answers: Mapping[str, Sequence[str]] | None = None,
) -> bytes:
    """The file that makes a dataset a benchmark, with one task per config.

    ``answers`` are the raw answers of a task whose prompts all have an expected answer: Inspect
    then runs it (``inspect eval hf/ORG/NAME/TASK``). There is no ``evaluation_framework``: the Hub
    accepts the identifiers on its own list only (huggingface.js, packages/tasks/src/eval.ts), and
    judgesense is not on it.
    """
    known = answers or {}
    entries: list[dict[str, Any]] = [
        {"id": task, "config": task, "split": split}
        | (_for_inspect(known[task]) if task in known else {})
        for task in tasks
    ]
    card = {"name": name, "description": DESCRIPTION, "tasks": entries}
    text: str = yaml.safe_dump(card, sort_keys=False, allow_unicode=True, width=96)
    return text.encode()


def _for_inspect(answers: Sequence[str]) -> dict[str, Any]:
    """The fields of a task that Inspect reads (inspect_ai, ``_eval/task/hf.py``): each sample is
    the first prompt of a pair."""
    choice = "|".join(re.escape(each) for each in answers)
    # A single letter is a word, too: "a" is no answer.
    words = all(len(each) > 1 for each in answers)
    return {
        "field_spec": {
            "input": "prompt_a", "target": "expected_a",
            "metadata": [
                "pair_id", "task_type", "item_id", "cluster_id", "template_a", "order",
                "label_map_a", "ground_truth_label",
            ],
        },
        "solvers": [
            {"name": "system_message", "args": {"template": SYSTEM_PROMPT}}, {"name": "generate"},
        ],
        "scorers": [
            {"name": "pattern",
             "args": {"pattern": rf"(?<!\w)({choice})(?!\w)", "ignore_case": words}},
        ],
    }  # fmt: skip


def eval_results_publication(
    run_dir: Path, model: str, *, source: str | None = None
) -> Publication:
    """A pull request to a model's repository with its mapped JSS on each task of a Hub dataset.

    ``source`` is the results dataset that holds the run, to which the entries link. Degenerate and
    undefined scores are left out, which the publication's notes say.

    Raises JudgeSenseError for whatever `results.checked_report` refuses; for a run that did not
    judge with a Hub revision of this model, judged part of a dataset or no Hub dataset, or has no
    option scoring; if no score is left; and if huggingface_hub does not know the format.
    """
    entry_type, to_yaml = _format()
    report = checked_report(run_dir)
    run = report["runs"][0]
    judge = _judge(run, model, run_dir)
    dataset, revision = _dataset(run, run_dir)
    entries, notes = [], []
    trust = {identity(card): card["trust"] for card in report["trust"]}
    for cell in _scores(report, judge["name"], run_dir):
        if cell["degenerate"] or cell["jss"] is None or cell["ci_low"] is None:
            reason = cell["degenerate"] or "it has no interval"
            notes.append(f"{cell['task']} is left out: {reason}")
            continue
        link = {}
        if source is not None:
            link = {"source_url": _link(source, report), "source_name": "JudgeSense run"}
        entries.append(
            entry_type(
                dataset_id=dataset,
                task_id=cell["task"],
                value=round(cell["jss"], 4),
                dataset_revision=revision,
                date=run.get("finished"),
                notes=_notes(cell, trust[identity(cell)]),
                **link,
            )
        )
    if not entries:
        raise JudgeSenseError(f"{run_dir} has no score of {model} to publish: {'; '.join(notes)}")
    content = yaml.safe_dump(to_yaml(entries), sort_keys=False, allow_unicode=True, width=1000)
    return Publication(
        repo_id=model,
        repo_type="model",
        files={f".eval_results/{dataset.replace('/', '_')}.yaml": content.encode()},
        message=f"Add evaluation results on {dataset}",
        tag=None,
        notes=tuple(notes),
        offered=True,
    )


def _format() -> tuple[Any, Any]:
    hub = hub_client()
    try:
        return hub.EvalResultEntry, hub.eval_result_entries_to_yaml
    except AttributeError:
        raise JudgeSenseError(
            f"huggingface_hub {hub.__version__} does not know the Hub's evaluation "
            "results; upgrade it: pip install --upgrade huggingface_hub"
        ) from None


def _judge(run: Mapping[str, Any], model: str, run_dir: Path) -> Mapping[str, Any]:
    """The run's judge whose weights are a revision of the model's repository."""
    weights = {}
    for judge in run.get("judges") or []:
        stated = str((judge.get("describe") or {}).get("weights"))
        found = _FROM_HUB.fullmatch(stated)
        if found and found["repo"] == model:
            return dict(judge)
        weights[judge["name"]] = found["repo"] if found else None
    known = [f"{name} ({repo or 'not from the Hub'})" for name, repo in weights.items()]
    raise JudgeSenseError(
        f"no judge of {run_dir} is a Hub revision of {model}; its judges: "
        f"{', '.join(known) or 'not recorded'}. Judge with the model's Hub id"
    )


def _dataset(run: Mapping[str, Any], run_dir: Path) -> tuple[str, str]:
    """The Hub dataset and its commit, if the run judged all of it."""
    data = run.get("dataset") or {}
    name, revision = str(data.get("name")), str(data.get("revision"))
    if not _COMMIT.fullmatch(revision):
        raise JudgeSenseError(
            f"{run_dir} judged {name!r}, which is not a dataset on the Hub; judge with --dataset "
            "ORG/NAME"
        )
    settings = (run.get("asked") or {}).get("settings") or {}
    for key in ("limit", "orders"):
        if settings.get(key) is not None:
            raise JudgeSenseError(
                f"{run_dir} judged a part of {name} (--{key}), and scores are for whole tasks; "
                f"judge without --{key}"
            )
    return name, revision


def _scores(report: Mapping[str, Any], judge: str, run_dir: Path) -> list[dict[str, Any]]:
    """The judge's mapped cells by option scoring, over both orders for tasks with two."""
    cells = [
        by_labels["mapped"]
        for (_, name, _, scoring), by_labels in main_cells(report).items()
        if name == judge and name not in BASELINES and scoring == SCORING and "mapped" in by_labels
    ]
    if not cells:
        raise JudgeSenseError(
            f"{run_dir} has no option scoring of {judge}, from which scores come; judge with "
            "--scoring both"
        )
    return sorted(cells, key=lambda cell: str(cell["task"]))


def _notes(cell: Mapping[str, Any], trust: str) -> str:
    accuracy = "-" if cell["accuracy"] is None else f"{cell['accuracy']:.3f}"
    return (
        f"95% interval [{cell['ci_low']:.3f}, {cell['ci_high']:.3f}] over {cell['n_items']} items, "
        f"{cell['n_pairs']} pairs; accuracy {accuracy}; trust {trust}; judge {cell['judge']}; "
        f"{cell['signature']}"
    )


def _link(source: str, report: Mapping[str, Any]) -> str:
    return f"{hub_client().constants.ENDPOINT}/datasets/{source}/tree/main/{folder_name(report)}"
