"""The steps of ``action.yml``: check a rubric in a pull request, and say so where people look.

``python -m judgesense.integrations.github check`` reads the Action's inputs as JSON from the
variable ``JUDGESENSE_INPUTS``, runs the check, and writes the job summary, the outputs, a badge and
the text of a comment. ``... comment FILE`` posts that comment, or updates the one from an earlier
run. The files and variables are those of GitHub's runner ("Workflow commands" and "Variables
reference" in its documentation).
"""

from __future__ import annotations

import json
import os
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from pydantic import ConfigDict, field_validator

from judgesense.errors import JudgeSenseError
from judgesense.files.disk import read_text, write_text
from judgesense.files.documents import Shape, fit, parse_json, read_json
from judgesense.integrations.github_pages import comment_of, quiet, summary_of
from judgesense.text import sentence

if TYPE_CHECKING:
    from judgesense.checking.result import CheckResult

LONGEST_SUMMARY = 1_000_000
"""Bytes of a summary; GitHub drops one of more than 1 MiB."""
COMMENT_FILE = "github-comment.md"

_TIMEOUT_S = 30
_PER_PAGE = 100


class Inputs(Shape):
    """The Action's inputs, as ``toJSON(inputs)`` writes them; an empty text counts as absent."""

    model_config = ConfigDict(
        extra="forbid", alias_generator=lambda name: name.replace("_", "-"), frozen=True
    )

    rubric: str
    data: str
    judge: str
    wordings: str | None = None
    answers: str | None = None
    options: str | None = None
    threshold: float | None = None
    inconclusive: str | None = None
    scoring: str | None = None
    variants: str | None = None
    repeats: int | None = None
    limit: int | None = None
    seed: int | None = None
    out: str | None = None
    baseline: str | None = None
    margin: float | None = None
    max_cost: float | None = None
    settings: str | None = None
    # action.yml reads these itself.
    comment: str | None = None
    artifact: str | None = None
    extras: str | None = None
    python_version: str | None = None

    @field_validator("*", mode="before")
    @classmethod
    def _stripped(cls, value: Any) -> Any:
        return (value.strip() or None) if isinstance(value, str) else value


def read_inputs(text: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The arguments of `judgesense.check` in the Action's inputs (JSON), and the judge's options.

    Raises JudgeSenseError for an input that is unknown, missing or not of its kind.

    >>> read_inputs('{"rubric": "r.txt", "data": "d.csv", "judge": "gpt-4o", "repeats": "1"}')[0]
    {'rubric': 'r.txt', 'data': 'd.csv', 'judge': 'gpt-4o', 'repeats': 1}
    """
    from judgesense.cli.options import judge_options, names, pairs

    where = "the Action's inputs"
    inputs = fit(Inputs, parse_json(text, where), where, "an input of the Action")
    of_action = {"comment", "artifact", "extras", "python_version", "settings", "max_cost"}
    given = inputs.model_dump(exclude_none=True, exclude=of_action)
    given |= {key: names(given[key]) for key in ("answers", "variants") if key in given}
    if "options" in given:
        given["options"] = pairs(given["options"], "the input options:")
    lines = [line for line in (inputs.settings or "").splitlines() if line.strip()]
    return given, judge_options(lines, max_cost=inputs.max_cost)


class _Repository(Shape):
    full_name: str


class _Branch(Shape):
    repo: _Repository | None = None
    """None for the head of a fork that was deleted."""


class _PullRequest(Shape):
    number: int
    head: _Branch
    base: _Branch


class _Event(Shape):
    pull_request: _PullRequest | None = None


class Runner:
    """GitHub's runner, as a step sees it in its environment; without one, everything is empty.

    ``pull_request`` is the number of the pull request that started the workflow, or None.
    ``has_no_secrets`` says whether GitHub withholds the repository's secrets: from forks, and from
    Dependabot.
    """

    def __init__(self, environ: Mapping[str, str]) -> None:
        request = None
        if place := environ.get("GITHUB_EVENT_PATH"):
            request = fit(_Event, read_json(Path(place)), place, "an event").pull_request
        self.pull_request = None if request is None else request.number
        self.has_no_secrets = (
            request is not None
            and environ.get("GITHUB_EVENT_NAME") != "pull_request_target"
            and (
                environ.get("GITHUB_ACTOR") == "dependabot[bot]"
                or request.head.repo != request.base.repo
            )
        )
        repository = environ.get("GITHUB_REPOSITORY", "")
        api = environ.get("GITHUB_API_URL", "https://api.github.com").rstrip("/")
        self.issues = f"{api}/repos/{repository}/issues"
        server, run = environ.get("GITHUB_SERVER_URL"), environ.get("GITHUB_RUN_ID")
        self.run_url = f"{server}/{repository}/actions/runs/{run}" if server and run else None
        self._summary = environ.get("GITHUB_STEP_SUMMARY") or os.devnull
        self._output = environ.get("GITHUB_OUTPUT") or os.devnull

    def summarise(self, page: str) -> None:
        """Append to the job summary, cut to what GitHub shows."""
        with open(self._summary, "a", encoding="utf-8") as file:
            file.write(page.encode()[:LONGEST_SUMMARY].decode("utf-8", "ignore") + "\n")

    def tell(self, **outputs: object) -> None:
        """Set outputs of the step; underscores become hyphens."""
        with open(self._output, "a", encoding="utf-8") as file:
            for name, value in outputs.items():
                end = f"end-{uuid4().hex}"
                file.write(f"{name.replace('_', '-')}<<{end}\n{value}\n{end}\n")


def annotate(level: str, title: str, message: str) -> None:
    """Print an annotation: a workflow command of one line.

    >>> annotate("error", "JudgeSense", "50% of\\nthe pairs")
    ::error title=JudgeSense::50%25 of%0Athe pairs
    """

    def plain(text: str) -> str:
        return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")

    title = plain(title).replace(":", "%3A").replace(",", "%2C")
    print(f"::{level} title={title}::{plain(message)}", flush=True)


def _note(message: str) -> None:
    # A line that begins with :: would be a command to the runner.
    for line in message.splitlines():
        print(f"judgesense: {line}", flush=True)


def missing_key(judge: str, options: Mapping[str, Any]) -> str | None:
    """The environment variable of the judge's key, if the judge needs one that is not set.

    >>> missing_key("gpt", {"base_url": "http://localhost:8000/v1"}) is None
    True
    """
    from local_judges.api.keys import is_here
    from local_judges.options import KEY_VARIABLE, REMOTE
    from local_judges.registry import resolve

    spec = resolve(judge, **options)
    url = spec.options.get("base_url") or os.environ.get("OPENAI_BASE_URL")
    named = spec.options.get("key_variable")
    variable = str(named or KEY_VARIABLE)
    if spec.engine not in REMOTE or (is_here(url) and not named):
        return None
    return None if os.environ.get(variable, "").strip() else variable


def check_step(environ: Mapping[str, str]) -> int:
    """Check the rubric, and write what the later steps need.

    The check's own exit code is the output ``exit-code``, so that the report is uploaded and the
    comment posted before the job fails. A pull request that gets no secrets is skipped, with the
    reason, if the judge needs one. Returns 0, or 2 for bad usage or input.
    """
    from judgesense.checking.check import check

    runner = Runner(environ)
    try:
        given, options = read_inputs(environ.get("JUDGESENSE_INPUTS", ""))
        judge, rubric = given["judge"], Path(given["rubric"])
        if runner.has_no_secrets and (variable := missing_key(judge, options)):
            why = (
                f"the judge {judge} needs {variable}, and GitHub gives no secrets to pull requests "
                "from forks or from Dependabot. A maintainer can run the check on a branch of this "
                "repository."
            )
            annotate("notice", "JudgeSense: skipped", why)
            runner.summarise(f"### JudgeSense: skipped\n\n{quiet(sentence(why))}\n")
            runner.tell(decision="SKIPPED", exit_code=0)
            return 0
        wordings = Path(given.get("wordings") or rubric.with_suffix(".wordings.yaml"))
        proposed = None if wordings.exists() else wordings
        if "baseline" in given and not Path(given["baseline"]).exists():
            _note(f"no baseline {given.pop('baseline')}: the check decides by JSS")
        found = check(note=_note, **given, **options)
    except JudgeSenseError as error:
        annotate("error", "JudgeSense", str(error))
        runner.summarise(f"### JudgeSense: error\n\n{quiet(str(error))}\n")
        return 2
    _write(found, rubric, proposed, runner)
    return 0


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
    level = "warning" if found.decision == "INCONCLUSIVE" else "notice"
    level = level if found.exit_code == 0 else "error"
    annotate(level, f"JudgeSense: {found.decision}", f"{rubric}: {found.verdict}")


def comment_step(file: Path, environ: Mapping[str, str]) -> int:
    """Post the comment, or say why not; a comment that cannot be posted fails no job."""
    runner = Runner(environ)
    if runner.pull_request is None:
        _note("no pull request started this workflow, so there is no comment")
    elif runner.has_no_secrets:
        _note("no comment: the token of a pull request from a fork may only read")
    else:
        body, token = read_text(file), environ.get("GITHUB_TOKEN", "")
        try:
            _note(f"comment {post_comment(runner.issues, runner.pull_request, token, body)}")
        except JudgeSenseError as error:
            annotate("warning", "JudgeSense: no comment", str(error))
    return 0


def post_comment(issues: str, number: int, token: str, body: str) -> str:
    """Update the comment that starts with this body's first line, or add one.

    Only comments of a bot count, so that nobody can steer the update to a comment of another
    person. Uses GitHub's REST API ("Issue comments").

    Args:
        issues: the URL of a repository's issues, ``API/repos/OWNER/NAME/issues``.
        number: the pull request.
        token: sent to that URL alone; redirects are not followed.
        body: the comment in Markdown.

    Returns:
        ``added``, ``updated`` or ``unchanged``, and the comment's URL.

    Raises:
        JudgeSenseError: the API refuses, with its status and reason.
    """
    mark = body.partition("\n")[0]
    for comment in _comments(f"{issues}/{number}/comments", token):
        text = (comment.get("body") or "").replace("\r\n", "\n")
        if not text.startswith(mark) or (comment.get("user") or {}).get("type") != "Bot":
            continue
        if text.rstrip() == body.rstrip():
            return f"unchanged: {comment['html_url']}"
        made = _call("PATCH", f"{issues}/comments/{comment['id']}", token, {"body": body})
        return f"updated: {made['html_url']}"
    made = _call("POST", f"{issues}/{number}/comments", token, {"body": body})
    return f"added: {made['html_url']}"


def _comments(url: str, token: str) -> Iterator[Mapping[str, Any]]:
    page, found = 0, [dict[str, Any]()] * _PER_PAGE
    while len(found) == _PER_PAGE:
        page += 1
        found = _call("GET", f"{url}?per_page={_PER_PAGE}&page={page}", token)
        yield from found


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Follows no redirect: the token is for one host."""

    def redirect_request(self, *_: Any) -> None:
        return None


def _call(method: str, url: str, token: str, body: Mapping[str, str] | None = None) -> Any:
    request = urllib.request.Request(
        url,
        method=method,
        data=None if body is None else json.dumps(body).encode(),
        headers={
            "Accept": "application/vnd.github+json", "Content-Type": "application/json",
            "Authorization": f"Bearer {token}", "User-Agent": "judgesense",
            "X-GitHub-Api-Version": "2022-11-28",
        },
    )  # fmt: skip
    try:
        opener = urllib.request.build_opener(_NoRedirect)
        with opener.open(request, timeout=_TIMEOUT_S) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as error:
        hint = "; give the job `permissions: pull-requests: write`" if error.code == 403 else ""
        raise JudgeSenseError(
            f"GitHub refused {method} {url}: {error.code} {error.reason}{hint}"
        ) from None
    except (OSError, ValueError) as error:
        raise JudgeSenseError(f"no answer from GitHub to {method} {url}: {error}") from None


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
