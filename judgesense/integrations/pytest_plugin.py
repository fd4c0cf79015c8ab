"""A pytest plugin: ``judgesense check`` as a test.

Mark a test with ``@pytest.mark.judge(rubric=..., data=..., judge=...)``, or call the fixture
``judge_check``. The plugin loads with every pytest session, so it imports nothing of JudgeSense
until a check runs.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from judgesense.checking.result import CheckResult
    from judgesense.files.data import Data

MARK = "judge"
OUTCOMES = ("xfail", "pass", "fail", "skip")
"""What INCONCLUSIVE can count as."""

_SOURCES = {"rubric", "log"}
"""What marks a test as ours; 0.2 also had log=, and such a test must not pass unchecked."""
_HELP = (
    "judge(rubric, data, judge, **options): check that rewording the rubric does not change "
    "the judge's verdicts; options are those of judgesense.check"
)
_SECTION = "judgesense"


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options; each can also be set in the ini file."""
    parser.addini(
        "judgesense_inconclusive",
        f"what an inconclusive check counts as: {', '.join(OUTCOMES)} (default: xfail)",
        default="xfail",
    )
    parser.addini(
        "judgesense_dir",
        "folder for the runs, relative to the root directory (default: .judgesense)",
        default=".judgesense",
    )
    parser.addini("judgesense_judge", "the judge for checks that name none", default="")
    group = parser.getgroup("judgesense", "checks of LLM judges")
    group.addoption(
        "--judgesense-judge", metavar="JUDGE", help="ask this judge in every check that names none"
    )
    group.addoption(
        "--judgesense-inconclusive", choices=OUTCOMES, help="overrides judgesense_inconclusive"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker."""
    config.addinivalue_line("markers", _HELP)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> None:
    """Run the checks of a marked test before its body; a marker of yours without rubric= is left
    alone."""
    for mark in reversed(list(item.iter_markers(MARK))):
        if _SOURCES & mark.kwargs.keys():
            if mark.args:
                pytest.fail("judge(...) takes keyword arguments only", pytrace=False)
            JudgeCheck(item)(**mark.kwargs)


@pytest.fixture
def judge_check(request: pytest.FixtureRequest) -> JudgeCheck:
    """Check a rubric in a test: ``judge_check(rubric=..., data=..., judge=...)``."""
    return JudgeCheck(request.node)


class JudgeCheck:
    """Runs a check for a test, and makes its decision the test's outcome."""

    def __init__(self, item: pytest.Item) -> None:
        self._item = item

    def __call__(
        self,
        rubric: str | Path | None = None,
        data: Data | None = None,
        judge: Any = None,
        **options: Any,
    ) -> CheckResult:
        """Check a rubric on its data, as :func:`judgesense.check` does.

        Relative paths start at the test's folder, or else at the root directory. Runs are kept in
        ``.judgesense``, so an unchanged check asks no judge. With ``baseline``, the folder of an
        earlier check, the test fails only if the judge got reliably worse.

        Returns the result of a check that passes. The test fails if it does not, and for bad input;
        an inconclusive check counts as ``judgesense_inconclusive`` says.
        """
        from judgesense.checking.check import check
        from judgesense.errors import JudgeSenseError

        config = self._item.config
        judge = judge or config.getoption("judgesense_judge") or config.getini("judgesense_judge")
        notes: list[str] = []
        options = {"runs": _runs(config), "note": notes.append, **options}
        for name in {"wordings", "baseline"} & options.keys():
            options[name] = self._place(options[name])
        if "baseline" in options and not options["baseline"].exists():
            notes.append(f"no baseline {options.pop('baseline')}, so the check decides by JSS")
        try:
            if rubric is None or data is None:
                raise JudgeSenseError("a check needs rubric= and data=")
            if not judge:
                raise JudgeSenseError(
                    "a check needs a judge: judge= in the test, judgesense_judge in the ini file "
                    "or --judgesense-judge"
                )
            found = check(self._place(rubric), self._place(data), judge, **options)
        except JudgeSenseError as error:
            pytest.fail(f"judgesense: {error}", pytrace=False)
        if notes:
            self._item.add_report_section("call", "judgesense notes", "\n".join(notes))
        self._item.add_report_section("call", _SECTION, _summary(found))
        self._item.user_properties.append(("judgesense", found.verdict))
        _conclude(found, config)
        return found

    def _place(self, file: Any) -> Any:
        if not isinstance(file, (str, Path)):
            return file
        # An absolute path stays as it is.
        near = self._item.path.parent / file
        return near if near.exists() else self._item.config.rootpath / file


def _runs(config: pytest.Config) -> Path:
    """The folder of the runs, which git ignores."""
    folder = config.rootpath / str(config.getini("judgesense_dir"))
    folder.mkdir(parents=True, exist_ok=True)
    ignore = folder / ".gitignore"
    if not ignore.exists():
        ignore.write_text("# Made by JudgeSense: runs of checks.\n*\n", encoding="utf-8")
    return folder


def _conclude(found: CheckResult, config: pytest.Config) -> None:
    """Raise the outcome of a check that does not pass."""
    if found.decision == "FAIL":
        pytest.fail(f"{found.verdict}\n{found.next_step}", pytrace=False)
    if found.decision != "INCONCLUSIVE":
        return
    # A check's own inconclusive= is nearer than the session's.
    policy = found.inconclusive or config.getoption("judgesense_inconclusive")
    policy = policy or config.getini("judgesense_inconclusive")
    if policy == "xfail":
        pytest.xfail(found.verdict)
    elif policy == "skip":
        pytest.skip(found.verdict)
    elif policy == "fail":
        pytest.fail(found.verdict, pytrace=False)
    elif policy != "pass":
        raise pytest.UsageError(
            f"judgesense_inconclusive is {policy!r}; choose one of {', '.join(OUTCOMES)}"
        )


def _summary(found: CheckResult) -> str:
    """A check for the terminal: the verdict, the trust card, the next step and the report."""
    checks = found.card["checks"].items()
    card = ", ".join(f"{name} {one['state']}" for name, one in checks if one["applies"])
    return (
        f"{found.verdict}\n"
        f"  trust: {found.card['trust']} ({card}); judge: {found.card['judge']}\n"
        f"  {found.next_step}\n"
        f"  {found.out / 'report.html'}"
    )


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """The trust card of every check, below the tests."""
    lines = [
        f"{report.nodeid}: {text}"
        for reports in terminalreporter.stats.values()
        for report in reports
        if getattr(report, "when", None) == "call"
        for title, text in report.sections
        if title == f"Captured {_SECTION} call"
    ]
    if lines:
        terminalreporter.section(_SECTION)
    for line in lines:
        terminalreporter.line(line)
