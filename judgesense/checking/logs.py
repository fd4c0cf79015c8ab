"""Another tool's log as a question: its judge, its rubric, and how its grades compare."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa

from judgesense.answers import parse
from judgesense.checking.question import Question
from judgesense.checking.result import CheckResult
from judgesense.decisions.log import REWORDING, read_log
from judgesense.errors import JudgeSenseError
from judgesense.files.disk import sha256_of
from judgesense.importers.graded import TASK, GradedLog
from judgesense.reporting.result import Record, Table
from judgesense.statistics.kappa import cohen_kappa
from judgesense.tasks import UNDECIDED
from judgesense.text import percent
from local_judges.judge_files import endpoints, entries

_ENDPOINTS = {"google": "gemini", "vertex": "gemini"}
"""Endpoints that a tool calls by another name."""

_FAMILIES = (("gpt-", "openai"), ("claude-", "anthropic"), ("gemini-", "gemini"))
_OLLAMA = "http://127.0.0.1:11434/v1"
_KINDS = {"chat", "messages", "responses", "completion", "text-generation"}


def judge_of(log: GradedLog) -> tuple[str, dict[str, Any]]:
    """The judge that graded a log, and its options: how to ask it again.

    Inspect's ``hf/ORG/NAME`` and ``vllm/ORG/NAME`` are models on the Hub or in a folder; models of
    Ollama, and of a provider with an endpoint in a judge file, are asked there; a name in a judge
    file is that judge.

    Raises JudgeSenseError, with what to add, for any other.
    """
    name = log.judge
    if not name:
        raise JudgeSenseError(
            f"{log.where}: the log does not name its judge; name the one to ask with --judge"
        )
    if name in entries():
        return name, {}
    provider, model = _parts(log.tool, name)
    if provider in ("hf", "huggingface"):
        return model, {}
    if provider == "vllm":
        return model, {"engine": "vllm"}
    if provider == "ollama":
        return model, {"engine": "api", "model": model, "base_url": _OLLAMA}
    provider = _ENDPOINTS.get(provider, provider)
    if provider in endpoints():
        return model, {"engine": "api", "model": model, **endpoints()[provider]}
    raise JudgeSenseError(
        f"{log.where}: the log's judge is {name}, which JudgeSense cannot ask; name "
        "another with --judge"
    )


def _parts(tool: str, name: str) -> tuple[str, str]:
    """Provider and model, as the tool writes them; an unnamed provider is told by the model."""
    if tool == "inspect":
        provider, _, model = name.partition("/")
        return provider, model
    if tool == "promptfoo":
        provider, *rest = name.split(":")
        rest = rest[1:] if len(rest) > 1 and rest[0] in _KINDS else rest
        return provider, ":".join(rest)
    if match := re.fullmatch(r"(.*?) \((.*)\)", name):
        return match[2].casefold(), match[1]
    return next((provider for start, provider in _FAMILIES if name.startswith(start)), ""), name


def question_of(graded: GradedLog, pick: str | None) -> Question:
    """A log's own rubric and graded outputs, as the question of a check."""
    from judgesense_dataset.templates import TaskTemplates

    where = graded.where
    return Question(
        own=TaskTemplates(graded.task, (graded.template,)),
        items=graded.items,
        identity={"log": sha256_of(where), "pick": pick},
        name=where.stem.lstrip("."),
        wordings=where.with_suffix(".wordings.yaml"),
        ranked=False,
        settings={"log": str(where), "tool": graded.tool, "graded by": graded.judge or "unknown"},
        known=graded.known,
    )


def compared(found: CheckResult, graded: GradedLog) -> CheckResult:
    """The result with the comparison of its verdicts and the log's grades."""
    stored = dict(zip((item.item_id for item in graded.items), graded.stored, strict=True))
    rows = stored_rows(read_log(found.out), stored)
    result, own = found.result, rows[0]
    result.tables.insert(0, Table.from_records(
        "stored", "Compared with the log's grades", rows,
        f"The grades are those of {graded.judge or 'the judge of the log'} in "
        f"{graded.where.name}. n: samples with a verdict in both; undecided: without one in "
        "either. The wording `rubric` is the log's own.",
    ))  # fmt: skip
    result.findings.insert(2, _finding(own, found.card["judge"]))
    result.limits += graded.notes
    options, aliases = graded.task.labels, graded.template.aliases
    pairs = zip(graded.texts, graded.stored, strict=True)
    answers = [(text, label) for text, label in pairs if text]
    other = sum(
        parse(text, options, aliases) != label for text, label in answers if label not in UNDECIDED
    )
    if other:
        result.limits.append(
            f"JudgeSense reads {other} of the log's {len(answers)} answers otherwise than "
            f"{graded.tool} did"
        )
    result.write(found.out / "check")
    return replace(found, stored={"n": own["n"], "same": own["same"], "share": own["share"]})


def stored_rows(log: pa.Table, stored: Mapping[str, str]) -> list[Record]:
    """How often the verdicts under each wording are the stored grades, the log's own first.

    ``stored`` maps items to labels. Each prompt counts once, as it was first asked.
    """
    by_wording: dict[str, dict[str, str]] = {}
    names = ["template_id", "item_id", "repeat", "decision", "variant"]
    for row in log.select(names).to_pylist():
        if row["repeat"] == 0 and row["variant"] in (None, REWORDING):
            by_wording.setdefault(row["template_id"], {})[row["item_id"]] = row["decision"]
    rows: list[Record] = []
    for wording in sorted(by_wording, key=lambda name: name != TASK):
        verdicts = [(verdict, stored[item]) for item, verdict in by_wording[wording].items()]
        decided = [pair for pair in verdicts if not {*pair} & {*UNDECIDED}]
        same = sum(verdict == grade for verdict, grade in decided)
        rows.append({
            "wording": wording, "n": len(decided), "same": same,
            "share": same / len(decided) if decided else None,
            "kappa": cohen_kappa(*map(list, zip(*decided, strict=True))) if decided else None,
            "undecided": len(verdicts) - len(decided),
        })  # fmt: skip
    return rows


def _finding(own: Record, judge: str) -> str:
    """What the comparison under the log's own wording, a row of `stored_rows`, shows."""
    n, same, share = own["n"], own["same"], own["share"]
    if not isinstance(share, float):
        return "no sample has both a verdict and a grade in the log, so they cannot be compared"
    text = f"under the log's own wording, {judge} gives {same} of {n} grades again"
    return text if same == n else f"{text} ({percent(share)})"
