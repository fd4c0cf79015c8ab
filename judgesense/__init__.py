"""JudgeSense: how much an LLM judge's verdicts depend on how the question is worded.

Each name loads its module on first use (PEP 562), so ``import judgesense`` is quick and needs
neither torch nor scipy. Type checkers read the imports below.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from judgesense.version import __version__

if TYPE_CHECKING:
    from judgesense.checking.check import check, check_log
    from judgesense.checking.result import CheckResult
    from judgesense.importers.log import import_log
    from judgesense.matching import match_answers
    from judgesense.matching import match_answers as answer_match
    from judgesense.metric_modules.registry import metric_path
    from judgesense.pipeline import run
    from judgesense.pipeline.stabilise import stabilise
    from judgesense.pipeline.verdicts import judge_items, load_judge
    from judgesense.reporting.report import Report
    from judgesense.reporting.report import report_runs as report
    from judgesense.run_folder.responses import read_responses
    from judgesense.statistics.agreement import Agreement, jss
    from judgesense.statistics.bias import position_bias
    from judgesense.statistics.ranking import ranking_stability
    from judgesense.statistics.robustness import paraphrase_robustness
    from judgesense.statistics.sensitivity import prompt_sensitivity
    from judgesense.systems.estimate import estimate
    from judgesense.systems.estimate_result import Estimate
    from judgesense.systems.label_next import LabelPlan, label_next
    from judgesense.systems.migration import migration
    from judgesense.systems.migration_result import Migration
    from judgesense.systems.monitor import Monitoring, monitor
    from judgesense.systems.verdict_files import read_verdicts
    from judgesense.trust.compare import Comparison, compare
    from local_judges.responder import Question, respond

__all__ = [
    "Agreement",
    "CheckResult",
    "Comparison",
    "Estimate",
    "LabelPlan",
    "Migration",
    "Monitoring",
    "Question",
    "Report",
    "__version__",
    "answer_match",
    "check",
    "check_log",
    "compare",
    "estimate",
    "import_log",
    "jss",
    "judge_items",
    "label_next",
    "load_judge",
    "match_answers",
    "metric_path",
    "migration",
    "monitor",
    "paraphrase_robustness",
    "position_bias",
    "prompt_sensitivity",
    "ranking_stability",
    "read_responses",
    "read_verdicts",
    "report",
    "respond",
    "run",
    "stabilise",
]

_HOMES = {
    "Agreement": "judgesense.statistics.agreement",
    "CheckResult": "judgesense.checking.result",
    "Comparison": "judgesense.trust.compare",
    "Estimate": "judgesense.systems.estimate_result",
    "LabelPlan": "judgesense.systems.label_next",
    "Migration": "judgesense.systems.migration_result",
    "Monitoring": "judgesense.systems.monitor",
    "Question": "local_judges.responder",
    "Report": "judgesense.reporting.report",
    "answer_match": "judgesense.matching:match_answers",
    "check": "judgesense.checking.check",
    "check_log": "judgesense.checking.check",
    "compare": "judgesense.trust.compare",
    "estimate": "judgesense.systems.estimate",
    "import_log": "judgesense.importers.log",
    "jss": "judgesense.statistics.agreement",
    "judge_items": "judgesense.pipeline.verdicts",
    "label_next": "judgesense.systems.label_next",
    "load_judge": "judgesense.pipeline.verdicts",
    "match_answers": "judgesense.matching",
    "metric_path": "judgesense.metric_modules.registry",
    "migration": "judgesense.systems.migration",
    "monitor": "judgesense.systems.monitor",
    "paraphrase_robustness": "judgesense.statistics.robustness",
    "position_bias": "judgesense.statistics.bias",
    "prompt_sensitivity": "judgesense.statistics.sensitivity",
    "ranking_stability": "judgesense.statistics.ranking",
    "read_responses": "judgesense.run_folder.responses",
    "read_verdicts": "judgesense.systems.verdict_files",
    "report": "judgesense.reporting.report:report_runs",
    "respond": "local_judges.responder",
    "run": "judgesense.pipeline",
    "stabilise": "judgesense.pipeline.stabilise",
}
"""Public name -> its module (``module:name`` if it has another name there), as imported above."""


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'judgesense' has no attribute {name!r}")
    module, _, attribute = _HOMES[name].partition(":")
    value = getattr(importlib.import_module(module), attribute or name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
