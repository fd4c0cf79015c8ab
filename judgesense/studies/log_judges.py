"""The judge that another tool's log names, as a judge of JudgeSense."""

from __future__ import annotations

import re
from typing import Any

from judgesense.errors import JudgeSenseError
from judgesense.importers.graded import GradedLog
from local_judges.judge_files import endpoints, entries

_ENDPOINTS = {"google": "gemini", "vertex": "gemini"}
"""Endpoints that a tool calls by another name."""

_FAMILIES = (("gpt-", "openai"), ("claude-", "anthropic"), ("gemini-", "gemini"))
_OLLAMA = "http://127.0.0.1:11434/v1"
_KINDS = {"chat", "messages", "responses", "completion", "text-generation"}


def judge_of(log: GradedLog) -> tuple[str, dict[str, Any]]:
    """The judge that graded a log, and its options: how to ask it again.

    Inspect's ``hf/ORG/NAME`` and ``vllm/ORG/NAME`` are models on the Hub or in a folder; models of
    a provider with an endpoint in a judge file, of Ollama, and of an endpoint that the log names
    are asked there; a name in a judge file is that judge.

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
    url = log.base_url or (_OLLAMA if provider == "ollama" else None)
    if url is not None:
        return model, {"engine": "api", "model": model, "base_url": url}
    provider = _ENDPOINTS.get(provider, provider)
    if provider in endpoints():
        return model, {"engine": "api", "model": model, **endpoints()[provider]}
    raise JudgeSenseError(
        f"{log.where}: the log's judge is {name}, which JudgeSense cannot ask; name the judge to "
        "ask with --judge"
    )


def _parts(tool: str, name: str) -> tuple[str, str]:
    """Provider and model, as the tool writes them; an unnamed provider is told by the model."""
    if tool == "inspect":
        provider, _, model = name.partition("/")
        if provider == "openai-api":
            model = model.partition("/")[2]
        return provider, model
    if tool == "promptfoo":
        provider, *rest = name.split(":")
        rest = rest[1:] if len(rest) > 1 and rest[0] in _KINDS else rest
        return provider, ":".join(rest)
    model, _, told = re.fullmatch(r"(.*?)( \((.*)\))?", name).groups()  # type: ignore[union-attr]
    if told:
        return told.casefold(), model
    found = (provider for start, provider in _FAMILIES if model.startswith(start))
    return next(found, ""), model
