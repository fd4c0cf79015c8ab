"""The steps of ``action.yml``: check a rubric in a pull request, and say so where people look.

``python -m judgesense.integrations.github check`` reads the Action's inputs as JSON from the
variable ``JUDGESENSE_INPUTS``, runs the check, and writes the job summary, the outputs, a badge and
the text of a comment. ``... comment FILE`` posts that comment, or updates the one from an earlier
run. The files and variables are those of GitHub's runner ("Workflow commands" and "Variables
reference" in its documentation).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO
from uuid import uuid4

from judgesense.errors import JudgeSenseError
from judgesense.files.disk import write_text
from judgesense.files.documents import parse_json
from judgesense.integrations.github_comments import Comments
from judgesense.integrations.github_pages import comment_of, quiet, summary_of
from judgesense.text import sentence

if TYPE_CHECKING:
    from judgesense.checking.result import CheckResult

LONGEST_SUMMARY = 1_000_000
"""Bytes of a summary; GitHub drops one of more than 1 MiB."""
COMMENT_FILE = "github-comment.md"

_NUMBERS = {"threshold": float, "confidence": float, "max-cost": float, "limit": int,
            "repeats": int, "seed": int}  # fmt: skip
_TEXTS = ("rubric", "data", "judge", "wordings", "scoring", "inconclusive", "out", "base-url",
          "model", "engine")  # fmt: skip
_LISTS = ("answers", "variants")
_OTHERS = ("options", "settings")
_OF_ACTION = ("comment", "extras", "artifact", "python-version")
"""Inputs that ``action.yml`` reads itself."""
INPUTS = (*_NUMBERS, *_TEXTS, *_LISTS, *_OTHERS, *_OF_ACTION)


def read_inputs(text: str) -> dict[str, Any]:
    """The Action's inputs as arguments of `judgesense.check`; an empty input is left out.

    Args:
        text: a JSON object of texts, as ``toJSON(inputs)`` writes it.

    Raises:
        JudgeSenseError: an input that is unknown, missing or not of its kind.

    >>> read_inputs('{"rubric": "r.txt", "data": "d.csv", "judge": "gpt-4o", "repeats": "1"}')
    {'rubric': 'r.txt', 'data': 'd.csv', 'judge': 'gpt-4o', 'repeats': 1}
    """
    from judgesense.cli.options import judge_options, names, pairs

    told = parse_json(text, "the Action's inputs")
    if not isinstance(told, dict) or not all(isinstance(v, str | None) for v in told.values()):
        raise JudgeSenseError("the Action's inputs must be a JSON object of texts")
    if unknown := sorted(told.keys() - set(INPUTS)):
        raise JudgeSenseError(f"unknown input {unknown[0]!r}; choose from {', '.join(INPUTS)}")
    given = {key: value.strip() for key, value in told.items() if value and value.strip()}
    for key in ("rubric", "data", "judge"):
        if key not in given:
            raise JudgeSenseError(f"the input {key} is missing; set it under `with:`")
    found: dict[str, Any] = {key: given[key] for key in _TEXTS if key in given}
    for key, kind in _NUMBERS.items():
        if key in given:
            try:
                found[key] = kind(given[key])
            except ValueError:
                whole = "whole " if kind is int else ""
                raise JudgeSenseError(
                    f"the input {key} is {given[key]!r}; expected a {whole}number"
                ) from None
    found |= {key: names(given[key]) for key in _LISTS if key in given}
    if "options" in given:
        found["options"] = pairs(given["options"], "the input options:")
    lines = [line for line in given.get("settings", "").splitlines() if line.strip()]
    return {
        **{key.replace("-", "_"): value for key, value in found.items()},
        **judge_options(lines),
    }


@dataclass(frozen=True)
class Runner:
    """What GitHub's runner tells a step through its environment."""

    summary: Path | None
    output: Path | None
    event_name: str
    event: Mapping[str, Any]
    actor: str
    repository: str
    api: str
    run_url: str | None

    @classmethod
    def of(cls, environ: Mapping[str, str]) -> Runner:
        """Read the runner's variables; files and the event are empty outside a runner.

        >>> Runner.of({}).pull_request is None
        True
        """
        event: Any = {}
        if place := environ.get("GITHUB_EVENT_PATH"):
            try:
                event = parse_json(Path(place).read_bytes(), "it")
            except (OSError, JudgeSenseError) as error:
                raise JudgeSenseError(f"cannot read the event in {place}: {error}") from error
        files = [environ.get(name) for name in ("GITHUB_STEP_SUMMARY", "GITHUB_OUTPUT")]
        summary, output = (Path(file) if file else None for file in files)
        repository = environ.get("GITHUB_REPOSITORY", "")
        server, run = environ.get("GITHUB_SERVER_URL"), environ.get("GITHUB_RUN_ID")
        url = f"{server}/{repository}/actions/runs/{run}" if server and run else None
        return cls(
            summary, output, environ.get("GITHUB_EVENT_NAME", ""), _mapping(event),
            environ.get("GITHUB_ACTOR", ""), repository,
            environ.get("GITHUB_API_URL", "https://api.github.com").rstrip("/"), url,
        )  # fmt: skip

    @property
    def pull_request(self) -> int | None:
        """The number of the pull request, if one started the workflow."""
        found = _mapping(self.event.get("pull_request")).get("number")
        return found if isinstance(found, int) else None

    @property
    def has_no_secrets(self) -> bool:
        """Whether GitHub withholds the repository's secrets: from forks, and from Dependabot."""
        request = _mapping(self.event.get("pull_request"))
        if not request or self.event_name == "pull_request_target":
            return False
        if self.actor == "dependabot[bot]":
            return True
        # The head of a fork that was deleted is null.
        head = _mapping(_mapping(request.get("head")).get("repo")).get("full_name")
        return head != _mapping(_mapping(request.get("base")).get("repo")).get("full_name")

    def summarise(self, page: str) -> None:
        """Append to the job summary, cut to what GitHub shows."""
        if self.summary is not None:
            with self.summary.open("a", encoding="utf-8") as file:
                file.write(page.encode()[:LONGEST_SUMMARY].decode("utf-8", "ignore") + "\n")

    def tell(self, **outputs: object) -> None:
        """Set outputs of the step; underscores become hyphens."""
        if self.output is not None:
            with self.output.open("a", encoding="utf-8") as file:
                for name, value in outputs.items():
                    end = f"end-{uuid4().hex}"
                    file.write(f"{name.replace('_', '-')}<<{end}\n{value}\n{end}\n")


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def annotate(level: str, title: str, message: str, stream: TextIO | None = None) -> None:
    """Print an annotation: a workflow command of one line.

    >>> annotate("error", "JudgeSense", "50% of\\nthe pairs")
    ::error title=JudgeSense::50%25 of%0Athe pairs
    """

    def plain(text: str) -> str:
        return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")

    title = plain(title).replace(":", "%3A").replace(",", "%2C")
    print(f"::{level} title={title}::{plain(message)}", file=stream or sys.stdout, flush=True)


def missing_key(judge: str, options: Mapping[str, Any]) -> str | None:
    """The environment variable of the judge's key, if the judge needs one that is not set.

    >>> missing_key("gpt", {"base_url": "http://localhost:8000/v1"}) is None
    True
    """
    from local_judges.api.keys import is_here
    from local_judges.options import KEY_VARIABLE
    from local_judges.registry import resolve

    spec = resolve(judge, **options)
    if spec.engine != "api":
        return None
    url = spec.options.get("base_url") or os.environ.get("OPENAI_BASE_URL")
    variable = str(spec.options.get("key_variable") or KEY_VARIABLE)
    named = spec.options.get("key_variable") is not None
    if (is_here(url) and not named) or os.environ.get(variable, "").strip():
        return None
    return variable


def check_step(environ: Mapping[str, str]) -> int:
    """Check the rubric, and write what the later steps need.

    The check's own exit code is the output ``exit-code``, so that the report is uploaded and the
    comment posted before the job fails. A pull request that gets no secrets is skipped, with the
    reason, if the judge needs one. Returns 0, or 2 for bad usage or input.
    """
    from judgesense.checking.check import check

    runner = Runner.of(environ)
    try:
        given = read_inputs(environ.get("JUDGESENSE_INPUTS", ""))
        rubric, data, judge = given.pop("rubric"), given.pop("data"), given.pop("judge")
        own = {name: given[name] for name in given.keys() - _OF_CHECK}
        if runner.has_no_secrets and (variable := missing_key(judge, own)):
            why = (
                f"the judge {judge} needs {variable}, and GitHub gives no secrets to pull requests "
                "from forks or from Dependabot. A maintainer can run the check on a branch of this "
                "repository."
            )
            annotate("notice", "JudgeSense: skipped", why)
            runner.summarise(f"### JudgeSense: skipped\n\n{quiet(sentence(why))}\n")
            runner.tell(decision="SKIPPED", exit_code=0)
            return 0
        pinned = _wordings(rubric, given)
        proposed = not pinned.exists()
        found = check(rubric, data, judge, note=_note, **given)
    except JudgeSenseError as error:
        annotate("error", "JudgeSense", str(error))
        runner.summarise(f"### JudgeSense: error\n\n{quiet(str(error))}\n")
        return 2
    _write(found, Path(rubric), pinned if proposed else None, runner)
    return 0


_OF_CHECK = {"wordings", "scoring", "inconclusive", "out", "answers", "variants", "options",
             "threshold", "confidence", "limit", "repeats", "seed"}  # fmt: skip
"""Arguments of the check; all others are the judge's."""


def _wordings(rubric: str, given: Mapping[str, Any]) -> Path:
    return Path(given.get("wordings") or Path(rubric).with_suffix(".wordings.yaml"))


def _note(message: str) -> None:
    # A line that begins with :: would be a command to the runner.
    for line in message.splitlines():
        print(f"judgesense: {line}", flush=True)


def _write(found: CheckResult, rubric: Path, proposed: Path | None, runner: Runner) -> None:
    """The summary, the badge, the comment's text, the outputs and an annotation."""
    from judgesense.reporting.documents import BADGE_FILE, render_badge

    write_text(found.out / BADGE_FILE, render_badge(found.report))
    write_text(found.out / COMMENT_FILE, comment_of(found, rubric, runner.run_url))
    runner.summarise(summary_of(found, rubric, proposed))
    runner.tell(
        decision=found.decision, exit_code=found.exit_code, folder=found.out,
        jss="" if found.jss is None else f"{found.jss:.6f}", trust=found.card["trust"],
        badge=found.out / BADGE_FILE, comment=found.out / COMMENT_FILE, wordings=proposed or "",
    )  # fmt: skip
    level = "notice" if found.exit_code == 0 else "error"
    annotate(level, f"JudgeSense: {found.decision}", f"{rubric}: {found.verdict}")


def comment_step(file: Path, environ: Mapping[str, str]) -> int:
    """Post the comment, or say why not; a comment that cannot be posted fails no job."""
    runner = Runner.of(environ)
    if runner.pull_request is None:
        print("judgesense: no pull request started this workflow, so there is no comment")
        return 0
    try:
        text = file.read_text("utf-8")
    except OSError as error:
        raise JudgeSenseError(f"cannot read {file}: {error.strerror or error}") from error
    if runner.has_no_secrets:
        print("judgesense: no comment: the token of a pull request from a fork may only read")
        return 0
    token = environ.get("GITHUB_TOKEN", "")
    try:
        comments = Comments(runner.api, runner.repository, runner.pull_request, token)
        done, url = comments.post(text)
        print(f"judgesense: comment {done}: {url}")
    except JudgeSenseError as error:
        annotate("warning", "JudgeSense: no comment", str(error))
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a step: ``check``, or ``comment FILE``. Returns its exit code."""
    match list(sys.argv[1:] if arguments is None else arguments):
        case ["check"]:
            return check_step(os.environ)
        case ["comment", file]:
            return comment_step(Path(file), os.environ)
    print("usage: python -m judgesense.integrations.github check | comment FILE", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
