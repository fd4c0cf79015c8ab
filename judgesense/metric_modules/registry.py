"""The metrics by name, and the folders that wrap them for `evaluate.load`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from judgesense.errors import JudgeSenseError
from judgesense.matching import match_answers
from judgesense.statistics.agreement import jss
from judgesense.statistics.bias import position_bias
from judgesense.statistics.ranking import ranking_stability
from judgesense.statistics.result import ResultMapping
from judgesense.statistics.robustness import paraphrase_robustness
from judgesense.statistics.sensitivity import prompt_sensitivity

METRICS: dict[str, Callable[..., ResultMapping]] = {
    "jss": jss,
    "paraphrase_robustness": paraphrase_robustness,
    "prompt_sensitivity": prompt_sensitivity,
    "ranking_stability": ranking_stability,
    "position_bias": position_bias,
    "answer_match": match_answers,
}
"""The metrics by name."""


def metric_path(name: str) -> str:
    """The absolute path of a metric's folder, for `evaluate.load`; works in a wheel and a checkout.

    Raises:
        JudgeSenseError: an unknown metric.

    >>> Path(metric_path("jss")).name
    'jss'
    """
    package = Path(__file__).resolve().parents[1]
    installed = package / "_metrics"
    home = installed if installed.is_dir() else package.parent / "metrics"
    if name not in METRICS:
        raise JudgeSenseError(f"unknown metric {name!r}; choose one of {', '.join(METRICS)}")
    folder = home / name
    if not (folder / f"{name}.py").is_file():
        raise JudgeSenseError(f"{folder} is missing: reinstall judgesense")
    return str(folder)
