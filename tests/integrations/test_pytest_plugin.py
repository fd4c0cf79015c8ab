"""The pytest plugin in pytest sessions of its own; the tests of docs/integrations.md."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from loopback import section

pytest_plugins = ["pytester"]

ROOT = Path(__file__).parents[2]
PLUGIN = ("-p", "judgesense.integrations.pytest_plugin")
PAGE = section("pytest")
TESTS, INI = (re.search(rf"```{kind}\n(.*?)```", PAGE, re.DOTALL)[1] for kind in ("python", "ini"))

JUDGE = """
import re

def rule(messages):
    with open("asked.txt", "a") as asked:
        asked.write("x" * len(messages))
    return ["RUDE" if re.search(r"Message: .*(Shut|Move)", text) else "POLITE" for text in messages]

def by_wording(messages):
    return ["RUDE" if sum(text.encode()) % 7 < 3 else "POLITE" for text in messages]
"""


@pytest.fixture
def session(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A folder with the rubric of the examples, 60 messages, and judges by rule."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    pytester.syspathinsert()
    for name in ("tone.txt", "tone.wordings.txt"):
        (pytester.path / name).write_text((ROOT / "examples" / name).read_text("utf-8"), "utf-8")
    said = ("Shut the door", "Thank you", "Move", "Good morning", "Happy to help")
    rows = [
        {"message": f"{said[n % 5]}, {n}.", "gold": "RUDE" if n % 5 in (0, 2) else "POLITE"}
        for n in range(60)
    ]
    text = "\n".join(map(json.dumps, rows))
    (pytester.path / "tone.jsonl").write_text(text, "utf-8")
    pytester.makepyfile(judges=JUDGE)
    # No sentence embeddings: they take longer than all else here.
    pytester.makeconftest("import sys\nsys.modules['sentence_transformers'] = None")
    return pytester


def with_judge(judge: str) -> str:
    """The page's tests with a judge by rule in place of a model."""
    return f"import judges\n{TESTS}".replace(
        'judge="gpt-4o-mini"', f"judge=judges.{judge}"
    ).replace("threshold=", f"judge=judges.{judge}, threshold=")


@pytest.mark.slow
def test_the_pages_tests_pass_with_their_card_and_cost_nothing_again(
    session: pytest.Pytester,
) -> None:
    session.makepyfile(test_judge=with_judge("rule"))
    done = session.runpytest_subprocess(*PLUGIN, "--junit-xml=report.xml")
    done.assert_outcomes(passed=2)
    done.stdout.fnmatch_lines(
        [
            "*= judgesense =*",
            "test_judge.py::test_tone_does_not_depend_on_the_wording: PASS: JSS 1.000 *",
            "  trust: *steady pass*; judge: rule@callable",
            "*report.html",
        ]
    )
    cases = ET.parse(session.path / "report.xml").iter("testcase")
    told = [
        (each.get("name"), each.get("value")) for case in cases for each in case.iter("property")
    ]
    assert [name for name, _ in told] == ["judgesense"] * 2
    assert all(str(value).startswith("PASS: JSS 1.000") for _, value in told)
    # The second test asks the same question with another threshold, so nothing is judged again.
    # Three kinds of attack are tried on the 24 items that are not polite.
    asked, n_asked = session.path / "asked.txt", 60 * 4 * 2 + 24 * 3
    assert asked.stat().st_size == n_asked
    # Another process, whose cards come back too.
    pytest.importorskip("xdist")
    done = session.runpytest_subprocess(*PLUGIN, "-p", "xdist", "-n", "1")
    done.assert_outcomes(passed=2)
    done.stdout.fnmatch_lines(["test_judge.py::*: PASS: JSS 1.000 *"] * 2)
    assert asked.stat().st_size == n_asked
    (run,) = [each for each in (session.path / ".judgesense").iterdir() if each.is_dir()]
    assert run.name.startswith("tone-")
    assert (session.path / ".judgesense" / ".gitignore").read_text().endswith("*\n")


@pytest.mark.slow
def test_a_wording_that_changes_the_verdicts_fails(session: pytest.Pytester) -> None:
    session.makepyfile(test_judge=with_judge("by_wording"))
    done = session.runpytest_subprocess(*PLUGIN)
    done.assert_outcomes(failed=2)
    done.stdout.fnmatch_lines(["FAIL: *", "Next: *"])
    done.stdout.no_fnmatch_line("*Traceback*")


@pytest.mark.slow
def test_a_check_that_settles_nothing_counts_as_chosen(session: pytest.Pytester) -> None:
    session.makepyfile(
        """
        import judges, pytest

        @pytest.mark.judge(rubric="tone.txt", data="tone.jsonl", judge=judges.rule, limit=6,
                           wordings="tone.wordings.txt", repeats=1)
        def test_too_few():
            pass
        """
    )
    for ini, flag, outcome in (
        ("", (), "xfailed"),
        (INI, (), "skipped"),
        (INI, ("--judgesense-inconclusive=fail",), "failed"),
        ("[pytest]\njudgesense_inconclusive = pass\n", (), "passed"),
    ):
        (session.path / "pytest.ini").write_text(ini)
        done = session.runpytest_subprocess(*PLUGIN, *flag)
        done.assert_outcomes(**{outcome: 1})
        done.stdout.fnmatch_lines(["*: INCONCLUSIVE: *(JSS 1.000 *"])


@pytest.mark.slow
def test_bad_input_is_one_line_and_other_markers_are_left_alone(
    session: pytest.Pytester,
) -> None:
    session.makepyfile(
        """
        import judges, pytest

        @pytest.mark.judge(rubric="tone.txt", data="none.jsonl", judge=judges.rule)
        def test_no_data():
            raise AssertionError("the body ran")

        @pytest.mark.judge(rubric="tone.txt", data="tone.jsonl")
        def test_no_judge():
            raise AssertionError("the body ran")

        @pytest.mark.judge(log="run.eval")
        def test_of_a_log():
            raise AssertionError("the body ran")

        @pytest.mark.judge("a marker of somebody else's")
        def test_other():
            pass
        """
    )
    done = session.runpytest_subprocess(*PLUGIN)
    done.assert_outcomes(failed=3, passed=1)
    done.stdout.fnmatch_lines(
        [
            "judgesense: no file *none.jsonl*",
            "judgesense: a check needs a judge: *--judgesense-judge",
            "judgesense: a check needs rubric= and data=",
        ]
    )
    done.stdout.no_fnmatch_line("*the body ran*")


def test_the_plugin_imports_nothing_heavy() -> None:
    code = (
        "import sys, pytest; before = set(sys.modules);"
        "import judgesense.integrations.pytest_plugin;"
        "print(*sorted(set(sys.modules) - before))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
    )
    loaded = done.stdout.split()
    assert "judgesense.integrations.pytest_plugin" in loaded
    own = {name for name in loaded if name.startswith("judgesense")}
    assert own == {
        "judgesense",
        "judgesense.integrations",
        "judgesense.integrations.pytest_plugin",
        "judgesense.version",
    }
    others = {name.split(".")[0] for name in loaded} - {"judgesense"}
    assert not others & {"numpy", "pyarrow", "pydantic", "scipy", "torch", "typer", "yaml"}
