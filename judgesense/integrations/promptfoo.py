"""A promptfoo assertion (``type: python``) that asks a judge of JudgeSense.

promptfoo takes Python from files alone, so an assertion names a file of one line::

    from judgesense.integrations.promptfoo import get_assert

See https://www.promptfoo.dev/docs/configuration/expected-outputs/python/ for what promptfoo passes
and what it expects back.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from judgesense.errors import JudgeSenseError
from judgesense.files.documents import parse_json
from judgesense.integrations.grading import Grader

OUTPUT = "output"
"""The name of the model's output among the variables of the test."""

_KEYS = ("judge", "passing", "fields", "task", "wording", "scoring", "options")


def get_assert(output: Any, context: Mapping[str, Any]) -> dict[str, Any]:
    """Judge one output.

    Args:
        output: the model's output; its field is ``output`` in the assertion's ``fields``.
        context: promptfoo's: ``vars`` are the test's variables, and ``config`` is the assertion's:
            ``judge`` and ``passing`` (required), ``fields``, ``task``, ``wording``, ``scoring`` and
            ``options`` (the engine's), as for `judgesense.integrations.grading.Grader`.

    Returns:
        promptfoo's GradingResult. ``namedScores`` has the probability and the margin where the
        judge has them. A test without a verdict fails, with UNCLEAR, REFUSED or ERROR as the
        reason; so does an assertion whose ``config`` is wrong.

    >>> get_assert("Paris.", {"vars": {}, "config": {"judge": "gpt-4o"}})["reason"]
    'judgesense: the config of the assertion lacks passing'
    """
    try:
        config = dict(context.get("config") or {})
        if unknown := sorted(config.keys() - set(_KEYS)):
            raise JudgeSenseError(
                f"the config of the assertion has {unknown[0]!r}; choose from {', '.join(_KEYS)}"
            )
        for key in ("judge", "passing"):
            if key not in config:
                raise JudgeSenseError(f"the config of the assertion lacks {key}")
        grade = _grader(_frozen(config))({**(context.get("vars") or {}), OUTPUT: output})
    except JudgeSenseError as error:
        return {"pass": False, "score": 0.0, "reason": f"judgesense: {error}"}
    verdict = grade.verdict
    named = {"probability": verdict.probability, "margin": verdict.margin}
    return {
        "pass": grade.passed is True,
        "score": grade.score or 0.0,
        "reason": grade.reason,
        "namedScores": {name: value for name, value in named.items() if value is not None},
    }


def _frozen(config: Mapping[str, Any]) -> str:
    import json

    try:
        return json.dumps(config, sort_keys=True)
    except (TypeError, ValueError) as error:
        raise JudgeSenseError(f"the config of the assertion must be JSON values: {error}") from None


@cache
def _grader(config: str) -> Grader:
    """The judge of a config: loaded once per process."""
    given = parse_json(config, "the config of the assertion")
    options = given.pop("options", {})
    if not isinstance(options, dict):
        raise JudgeSenseError("the options of the assertion must be a mapping")
    if taken := sorted(options.keys() & set(_KEYS)):
        raise JudgeSenseError(f"options: set {taken[0]} beside options, not in it")
    return Grader(given.pop("judge"), **given, **options)
