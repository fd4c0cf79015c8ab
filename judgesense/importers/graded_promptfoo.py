"""promptfoo's ``llm-rubric`` assertions as graded logs.

Where all assertions of a metric have the same rubric, the rubric is the wording, as in "Is polite".
Where each test has a rubric of its own, the wording is the frame around output and rubric.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from judgesense.errors import JudgeSenseError
from judgesense.files.documents import read_json
from judgesense.importers.graded import Grade, GradedLog, Wording, graded_log, only, quoted
from judgesense.importers.importer import Items, ReadOptions
from judgesense.importers.promptfoo import DEFAULT_GRADER, LABELS, records
from judgesense.importers.wordings import known_wordings, own_wording
from judgesense.tasks import ERROR, UNCLEAR

FORMAT = 3
"""The version of promptfoo's results that this was written for."""

ALIASES = {"PASS": ("true", "yes"), "FAIL": ("false", "no")}
"""How a grader's JSON says it: ``{"pass": true}``."""

_OF_STATUS = {"unclear": UNCLEAR, "error": ERROR}


def read(path: Path, pick: str | None = None) -> GradedLog:
    """The grades of one metric: ``pick`` names it if the file has several.

    Raises JudgeSenseError for a file without an ``llm-rubric`` assertion, one whose results lack
    the grading prompts, and one with several graders.
    """
    file = read_json(path)
    version = _version(file)
    try:
        found = list(records(path, file, ReadOptions(labels=LABELS, items=Items())))
    except JudgeSenseError as error:
        if version <= FORMAT:
            raise
        raise JudgeSenseError(
            f"{error}. The file has version {version}, and this JudgeSense reads {FORMAT}: update "
            "JudgeSense, or write the file with an older promptfoo"
        ) from error
    asked = [each for each in found if each.values["kind"] == "llm-rubric"]
    if not asked:
        kinds = ", ".join(dict.fromkeys(each.values["kind"] for each in found))
        raise JudgeSenseError(
            f"{path}: a check asks llm-rubric assertions again, and the file has only {kinds}; "
            "import their verdicts with: judgesense import"
        )
    metrics = [str(each.values["metric"]) for each in asked]
    if pick is None and all(name.startswith("llm-rubric") for name in metrics):
        chosen = asked
    else:
        metric = only(metrics, "metric", path, pick)
        chosen = [each for each in asked if each.values["metric"] == metric]
    judge = only((str(each.values["judge"]) for each in chosen), "grader", path, None)
    grades, systems = [], set()
    for each in chosen:
        values, prompt = each.values, each.values["prompt"]
        if prompt is None:
            # A result that failed has no prompt; one that has a grade must.
            if values.get("raw_decision") is None:
                continue
            raise JudgeSenseError(
                f"{each.place}: the result has no renderedGradingPrompt, which is what would be "
                "asked again; write the file with promptfoo 0.121 or later"
            )
        system, shown = _messages(str(prompt))
        systems.add(system)
        stored = values.get("raw_decision") or _OF_STATUS[str(values["status"])]
        fields = {"output": _text(values["output"]), "rubric": _text(values["rubric"])}
        grades.append(
            Grade(
                str(values["item_id"]), str(values["cluster_id"]), str(values["system_id"]),
                fields, str(stored), each.place, shown,
            )
        )  # fmt: skip
    if not grades:
        raise JudgeSenseError(f"{path}: no llm-rubric assertion has a grading prompt")
    if len(systems) > 1:
        raise JudgeSenseError(
            f"{path}: the assertions have {len(systems)} grading prompts (rubricPrompt); a check "
            "asks one: choose a metric with --pick"
        )
    rubrics = {grade.fields["rubric"] for grade in grades}
    frame = own_wording("promptfoo-llm-rubric")
    known = known_wordings("promptfoo-llm-rubric", LABELS, aliases=ALIASES)
    told = graded_log(
        "promptfoo", path, "" if judge == DEFAULT_GRADER else judge, LABELS, grades,
        [Wording(frame)], whole=True, aliases=ALIASES, known=known,
        options={"system_prompt": systems.pop()},
    )  # fmt: skip
    return told if len(rubrics) > 1 else _of_rubric(told, rubrics.pop())


def _version(file: Any) -> int:
    results = file.get("results") if isinstance(file, dict) else None
    version = results.get("version") if isinstance(results, dict) else None
    return version if isinstance(version, int) else 0


def _of_rubric(log: GradedLog, rubric: str) -> GradedLog:
    """The log with the rubric itself as the wording, in the grading prompt's frame."""
    layout = log.template.text.replace("{rubric}", "{instruction}")
    if "{instruction}" not in layout:
        return log
    own = quoted(rubric, ())
    items = [replace(item, fields={**item.fields, **own.constants}) for item in log.items]
    template = replace(log.template, text=own.text, layout=layout)
    return replace(log, template=template, items=tuple(items), known=())


def _text(value: Any) -> str:
    """A value as promptfoo inserts it: text as it is, anything else as JSON."""
    return value if isinstance(value, str) else "" if value is None else json.dumps(value)


def _messages(prompt: str) -> tuple[str, str]:
    """The system prompt and the user message of a grading prompt."""
    try:
        told = json.loads(prompt)
    except (ValueError, RecursionError):
        return "", prompt
    if not isinstance(told, list) or not all(isinstance(each, Mapping) for each in told):
        return "", prompt
    by_role: dict[str, list[str]] = {}
    for message in told:
        by_role.setdefault(str(message.get("role")), []).append(str(message.get("content")))
    return "\n\n".join(by_role.get("system", [])), "\n\n".join(by_role.get("user", []))
