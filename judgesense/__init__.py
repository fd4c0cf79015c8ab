"""JudgeSense: how much an LLM judge's verdicts depend on how the question is worded.

Each name loads its module on first use (PEP 562), so ``import judgesense`` is quick and needs
neither torch nor scipy. Type checkers read the imports below.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from judgesense.version import __version__

if TYPE_CHECKING:
    from judgesense.answers.matching import match_answers as match_answers
    from judgesense.ask.from_run import stabilise as stabilise
    from judgesense.ask.improve import improve as improve
    from judgesense.ask.improved import Improved as Improved
    from judgesense.checking.check import check as check
    from judgesense.checking.compare import compare as compare
    from judgesense.checking.result import CheckResult as CheckResult
    from judgesense.comparison.compare_result import Comparison as Comparison
    from judgesense.comparison.estimate import estimate as estimate
    from judgesense.comparison.estimate_result import Estimate as Estimate
    from judgesense.comparison.migration import Migration as Migration
    from judgesense.comparison.migration import migration as migration
    from judgesense.comparison.monitor import Monitoring as Monitoring
    from judgesense.comparison.monitor import monitor as monitor
    from judgesense.comparison.verdicts import read_verdicts as read_verdicts
    from judgesense.importers.log import import_log as import_log
    from judgesense.log.responses import read_responses as read_responses
    from judgesense.metric_modules.registry import metric_path as metric_path
    from judgesense.pipeline import run as run
    from judgesense.pipeline.demo import demo as demo
    from judgesense.pipeline.verdicts import judge_items as judge_items
    from judgesense.pipeline.verdicts import load_judge as load_judge
    from judgesense.reporting.report import Report as Report
    from judgesense.reporting.report import report_runs
    from judgesense.statistics.agreement import Agreement as Agreement
    from judgesense.statistics.agreement import jss as jss
    from judgesense.statistics.bias import position_bias as position_bias
    from judgesense.statistics.ranking import ranking_stability as ranking_stability
    from judgesense.statistics.robustness import paraphrase_robustness as paraphrase_robustness
    from judgesense.statistics.sensitivity import prompt_sensitivity as prompt_sensitivity
    from local_judges.responder import Question as Question
    from local_judges.responder import respond as respond

    # An import under another name would not be exported to a strict type checker.
    answer_match = match_answers
    report = report_runs

_HOMES = {
    "Agreement": "judgesense.statistics.agreement",
    "CheckResult": "judgesense.checking.result",
    "Comparison": "judgesense.comparison.compare_result",
    "Estimate": "judgesense.comparison.estimate_result",
    "Improved": "judgesense.ask.improved",
    "Migration": "judgesense.comparison.migration",
    "Monitoring": "judgesense.comparison.monitor",
    "Question": "local_judges.responder",
    "Report": "judgesense.reporting.report",
    "answer_match": "judgesense.answers.matching:match_answers",
    "check": "judgesense.checking.check",
    "compare": "judgesense.checking.compare",
    "demo": "judgesense.pipeline.demo",
    "estimate": "judgesense.comparison.estimate",
    "import_log": "judgesense.importers.log",
    "improve": "judgesense.ask.improve",
    "jss": "judgesense.statistics.agreement",
    "judge_items": "judgesense.pipeline.verdicts",
    "load_judge": "judgesense.pipeline.verdicts",
    "match_answers": "judgesense.answers.matching",
    "metric_path": "judgesense.metric_modules.registry",
    "migration": "judgesense.comparison.migration",
    "monitor": "judgesense.comparison.monitor",
    "paraphrase_robustness": "judgesense.statistics.robustness",
    "position_bias": "judgesense.statistics.bias",
    "prompt_sensitivity": "judgesense.statistics.sensitivity",
    "ranking_stability": "judgesense.statistics.ranking",
    "read_responses": "judgesense.log.responses",
    "read_verdicts": "judgesense.comparison.verdicts",
    "report": "judgesense.reporting.report:report_runs",
    "respond": "local_judges.responder",
    "run": "judgesense.pipeline",
    "stabilise": "judgesense.ask.from_run",
}
"""Public name -> its module (``module:name`` if it has another name there), as imported above."""

__all__ = ["__version__", *_HOMES]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'judgesense' has no attribute {name!r}")
    module, _, attribute = _HOMES[name].partition(":")
    value = getattr(importlib.import_module(module), attribute or name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
