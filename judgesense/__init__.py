"""JudgeSense: how much an LLM judge's verdicts depend on how the question is worded.

Everything here loads when it is first used (PEP 562), so ``import judgesense`` is quick and needs
neither torch nor scipy.
"""

from __future__ import annotations

import importlib
from typing import Any

from judgesense.version import __version__

_HOMES: dict[str, str] = {
    "run": "judgesense.pipeline",
    "check": "judgesense.studies.check",
    "jss": "judgesense.scores",
    "paraphrase_robustness": "judgesense.scores",
    "prompt_sensitivity": "judgesense.scores",
    "ranking_stability": "judgesense.scores",
    "position_bias": "judgesense.scores",
    "answer_match": "judgesense.scores",
    "metric_path": "judgesense.scores",
    "report": "judgesense.reporting.build:report_runs",
    "compare": "judgesense.reporting.compare",
    "import_log": "judgesense.importers",
    "match_answers": "judgesense.matching",
    "respond": "local_judges.responder",
    "Question": "local_judges.responder",
    "read_responses": "judgesense.responses",
}
"""Public name -> the module that defines it (``module:name`` where it has another name there)."""

__all__ = ["__version__", *_HOMES]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'judgesense' has no attribute {name!r}")
    module, _, attribute = _HOMES[name].partition(":")
    value = getattr(importlib.import_module(module), attribute or name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
