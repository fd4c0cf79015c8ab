"""The public face: lazy names, the types that a user's checker sees, results that print."""

from __future__ import annotations

import dataclasses
import doctest
import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

import judgesense
from judgesense.errors import JudgeSenseError
from judgesense.measure.assessment import ReportContents
from judgesense.measure.report_file import LISTS
from judgesense.metric_modules.registry import METRICS
from judgesense.statistics.result import ResultMapping

ROOT = Path(judgesense.__file__).parents[1]
EXAMPLES = sorted(
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    for room in ("judgesense", "judgesense_dataset", "local_judges", "hub_scripts")
    for path in (ROOT / room).rglob("*.py")
    if "    >>> " in path.read_text("utf-8")
)
"""Every module with an example in a docstring."""
ROWS = {
    "jss": (["A", "B", "A"], ["A", "A", "A"]),
    "paraphrase_robustness": ([[4, 4, 5], [2, 3, 2]], [4, 2]),
    "prompt_sensitivity": ([[0.5, 0.6], [0.7, 0.4], [0.2, 0.9]],),
    "ranking_stability": ([[0.1, 0.5, 0.4], [0.3, 0.2, 0.6], [0.2, 0.3, 0.4]],),
    "position_bias": (["A", "B"], ["B", "B"]),
    "answer_match": (["The answer is B.", "no idea"], ["B", "D"]),
}


def test_every_public_name_loads_from_its_home() -> None:
    assert set(judgesense.__all__) == {"__version__", *judgesense._HOMES}
    assert set(judgesense.__all__) <= set(dir(judgesense))
    for name in judgesense.__all__:
        assert getattr(judgesense, name) is not None
    with pytest.raises(AttributeError, match="nothing"):
        _ = judgesense.nothing


@pytest.mark.slow
def test_a_users_type_checker_sees_the_result_types(tmp_path: Path) -> None:
    calls = {
        'run("judge", items=[{"text": "Hi"}])': "judgesense.reporting.report.Report",
        'report("out")': "judgesense.reporting.report.Report",
        'jss(["A"], ["A"])': "judgesense.statistics.agreement.Agreement",
        'check("rubric.txt", "data.csv", "judge")': "judgesense.checking.result.CheckResult",
        'check([{"verdict": "YES"}])': "judgesense.checking.result.CheckResult",
        'compare("a", "b")': "judgesense.comparison.compare_result.Comparison",
        'position_bias(["A"], ["B"])': "judgesense.statistics.bias.PositionBias",
    }
    script = tmp_path / "user.py"
    lines = ["import judgesense", *(f"reveal_type(judgesense.{call})" for call in calls)]
    script.write_text("\n".join(lines) + "\n", "utf-8")
    # The project's own settings skip the heavy libraries, which no result type names.
    command = [sys.executable, "-m", "mypy", "--config-file", str(ROOT / "pyproject.toml")]
    told = subprocess.run(
        [*command, "--follow-imports=silent", "--cache-dir", str(tmp_path / "cache"), str(script)],
        cwd=tmp_path,
        env={**os.environ, "MYPYPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert told.returncode == 0, told.stdout + told.stderr
    for line, kind in zip(told.stdout.splitlines(), calls.values(), strict=False):
        assert line.endswith(f'Revealed type is "{kind}"')
    assert (ROOT / "judgesense" / "py.typed").is_file()


@pytest.mark.slow
@pytest.mark.parametrize("name", EXAMPLES)
def test_the_examples_in_docstrings_run(name: str) -> None:
    module = importlib.import_module(name)
    assert doctest.testmod(module).failed == 0


def test_every_room_of_figures_has_examples() -> None:
    rooms = {name.rpartition(".")[0] for name in EXAMPLES}
    assert {"judgesense.statistics", "judgesense.answers.matching"} <= rooms
    assert len(EXAMPLES) > 25


@pytest.mark.parametrize("name", judgesense.__all__)
def test_every_public_function_has_an_example(name: str) -> None:
    if callable(found := getattr(judgesense, name)) and not isinstance(found, type):
        assert ">>> " in (found.__doc__ or "")


@pytest.mark.parametrize("name", METRICS)
def test_a_result_is_a_frozen_mapping_that_prints_itself(name: str) -> None:
    result = METRICS[name].function(*ROWS[name])
    assert isinstance(result, ResultMapping)
    assert result == result.to_dict() == dict(result)
    first = next(iter(result))
    assert first in result
    assert result[first] == getattr(result, first)
    with pytest.raises(KeyError):
        _ = result["nothing"]
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(result, first, None)
    assert len(str(result).splitlines()) == len(result.lines()) > 1
    assert result._repr_html_().startswith("<table>")


def test_an_agreement_prints_its_figure_interval_n_and_signature() -> None:
    result = judgesense.jss(["A", "B", "A", "B"], ["A", "A", "A", "B"])
    text = str(result)
    assert f"0.750 [{result.ci_low:.3f}, {result.ci_high:.3f}]" in text
    assert result.signature is not None
    assert result.signature in text


def test_a_report_has_the_keys_of_its_file() -> None:
    report = judgesense.Report(ReportContents())
    assert set(report) == {"schema", *LISTS}
    assert report == report.to_dict() == {"schema": 2, **{name: [] for name in LISTS}}
    assert all(getattr(report, name) == report[name] for name in report)
    assert "<th>judge</th>" in report._repr_html_()
    assert repr(report).startswith("<Report of 0 judges")
    assert len(report.to_pandas()) == len(report.cells_frame()) == 0
    with pytest.raises(JudgeSenseError, match="no judge"):
        report.plot()
