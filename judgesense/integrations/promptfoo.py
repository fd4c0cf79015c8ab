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

from pydantic import ConfigDict

from judgesense.errors import JudgeSenseError
from judgesense.files.documents import Shape, fit
from judgesense.integrations.grading import Grader

OUTPUT = "output"
"""The name of the model's output among the variables of the test."""


class _Config(Shape):
    model_config = ConfigDict(extra="forbid")

    judge: str
    passing: list[str]
    fields: dict[str, str] | None = None
    task: str | None = None
    wording: str | None = None
    scoring: str | None = None
    options: dict[str, Any] = {}  # noqa: RUF012


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
    'judgesense: config, passing: not the config of an assertion: this field is missing'
    """
    try:
        what = "the config of an assertion"
        config = fit(_Config, context.get("config") or {}, "config", what)
        grade = _grader(config.model_dump_json())({**(context.get("vars") or {}), OUTPUT: output})
    except JudgeSenseError as error:
        return {"pass": False, "score": 0.0, "reason": f"judgesense: {error}"}
    named = {"probability": grade.verdict.probability, "margin": grade.verdict.margin}
    return {
        "pass": grade.passed is True,
        "score": grade.score or 0.0,
        "reason": grade.reason,
        "namedScores": {name: value for name, value in named.items() if value is not None},
    }


@cache
def _grader(config: str) -> Grader:
    """The judge of a config: loaded once per process."""
    given = _Config.model_validate_json(config).model_dump(exclude_none=True)
    return Grader(**{**given.pop("options"), **given})
