"""The check of ``action.yml``: a rubric in a pull request, and the result where people look.

``python -m judgesense.integrations.github check`` reads the Action's inputs as JSON from the
variable ``JUDGESENSE_INPUTS``, runs the check, and writes the job summary, the outputs and a badge.
The files and variables are those of GitHub's runner ("Workflow commands" and "Variables reference"
in its documentation).
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from pydantic import ConfigDict, field_validator

from judgesense.errors import JudgeSenseError
from judgesense.files.disk import write_text
from judgesense.files.documents import Shape, parse_json, read_json, validate
from judgesense.reporting.documents import BADGE_FILE, escape_markdown, render_badge
from judgesense.reporting.study_result import Table
from judgesense.text import interval, number, sentence

if TYPE_CHECKING:
    from judgesense.checking.result import CheckResult

LONGEST_SUMMARY = 1_000_000
"""Bytes of a summary; GitHub drops one of more than 1 MiB."""


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
    map: str | None = None
    positive: str | None = None
    human: str | None = None
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
    artifact: str | None = None
    comment: str | None = None
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
    inputs = validate(Inputs, parse_json(text, where), where, "the Action's inputs")
    of_action = {"artifact", "comment", "extras", "python_version", "settings", "max_cost"}
    given = inputs.model_dump(exclude_none=True, exclude=of_action)
    given |= {key: names(given[key]) for key in ("answers", "variants", "human") if key in given}
    flags = {"options": "the input options:", "map": "--map"}
    given |= {key: pairs(given[key], flag) for key, flag in flags.items() if key in given}
    lines = [line for line in (inputs.settings or "").splitlines() if line.strip()]
    return given, judge_options(lines, max_cost=inputs.max_cost)


class Runner:
    """GitHub's runner, as a step sees it in its environment; without one, everything is empty.

    ``pull`` is the number of the pull request, "" without one. ``has_no_secrets`` says whether
    GitHub withholds the repository's secrets: from forks, and from Dependabot.
    """

    def __init__(self, environ: Mapping[str, str]) -> None:
        place, request = environ.get("GITHUB_EVENT_PATH"), None
        if place and environ.get("GITHUB_EVENT_NAME") != "pull_request_target":
            request = read_json(Path(place)).get("pull_request")
        self.has_no_secrets = request is not None and (
            environ.get("GITHUB_ACTOR") == "dependabot[bot]"
            # A fork that was deleted is null.
            or (request["head"]["repo"] or {}).get("full_name")
            != request["base"]["repo"]["full_name"]
        )
        self.pull = str((request or {}).get("number") or "")
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

    The check's own exit code is the output ``exit-code``, so that the report is uploaded before the
    job fails. A pull request that gets no secrets is skipped, with the
    reason, if the judge needs one. Returns 0, or 2 for bad usage or input.
    """
    from judgesense.checking.check import check

    runner = Runner(environ)
    try:
        given, options = read_inputs(environ.get("JUDGESENSE_INPUTS", ""))
        judge, rubric = given["judge"], Path(given["rubric"])
        if runner.has_no_secrets and (variable := missing_key(judge, options)):
            why = (
                f"the judge {judge} needs {variable}, but GitHub gives no secrets to pull requests "
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
            _note(f"no baseline {given.pop('baseline')}, so the check decides by JSS")
        found = check(note=_note, **given, **options)
    except JudgeSenseError as error:
        annotate("error", "JudgeSense", str(error))
        runner.summarise(f"### JudgeSense: error\n\n{quiet(str(error))}\n")
        return 2
    write_text(found.out / BADGE_FILE, render_badge(found.report.contents))
    page, comment = summary_of(found, rubric, proposed), found.out / "comment.md"
    runner.summarise(page)
    mark = hashlib.sha256(str(rubric).encode()).hexdigest()[:12]
    # Without the tables, which a comment has no room for.
    write_text(comment, f"<!-- judgesense {mark} -->\n{page.partition('### ')[0]}")
    runner.tell(
        comment=comment if runner.pull else "",
        pull=runner.pull,
        decision=found.decision,
        exit_code=found.exit_code,
        folder=found.out,
        jss="" if found.jss is None else f"{found.jss:.6f}",
        trust=found.card["trust"],
        badge=found.out / BADGE_FILE,
        wordings=proposed or "",
    )
    level = "warning" if found.decision == "INCONCLUSIVE" else "notice"
    level = level if found.exit_code == 0 else "error"
    annotate(level, f"JudgeSense: {found.decision}", f"{rubric}: {found.verdict}")
    return 0


def summary_of(found: CheckResult, rubric: Path, proposed: Path | None = None) -> str:
    """The job summary in Markdown: the decision, what to do next, the card and every table.

    ``proposed`` is the file of wordings that the judge proposed in this run.
    """
    findings = [text for text in found.result.findings if text != found.verdict]
    if found.change is not None:
        findings = [*found.change.sentences(), *findings]
    lines = [
        f"## JudgeSense: {found.decision} for {quiet(rubric.as_posix())}",
        "",
        f"**{quiet(found.verdict)}.**",
        "",
        *(f"- {quiet(sentence(text))}" for text in findings),
    ]
    if proposed is not None:
        lines += [
            f"- The judge proposed the wordings in this run. Commit `{proposed.name}`, which is in "
            "the artifact, so that every run asks the same ones."
        ]
    checks = [
        {
            "check": name,
            "state": check["state"],
            "estimate": number(check["estimate"]),
            "interval": interval(check["ci_low"], check["ci_high"]),
            "threshold": f"{check['threshold']:g}",
            "text": check["text"],
        }
        for name, check in found.card["checks"].items()
        if check["applies"]
    ]
    title, order = f"Trust card: {found.card['trust']}", {"flips": 0, "wordings": 1}
    tables = sorted(found.result.tables, key=lambda table: order.get(table.name, 2))
    for table in [Table.from_records("card", title, checks, text="what it says"), *tables]:
        lines += ["", f"### {table.title}", "", _without_mentions(table.markdown())]
    return "\n".join(lines) + "\n"


def quiet(text: str) -> str:
    """Other people's text for a GitHub page: no markup but code, and no @mentions."""

    parts = re.split(r"(`[^`]+`|\s+)", text)
    return "".join(
        part if n % 2 else _without_mentions(escape_markdown(part)) for n, part in enumerate(parts)
    )


def _without_mentions(text: str) -> str:
    return text.replace("@", "@\u200b")


if __name__ == "__main__":
    sys.exit(check_step(os.environ))
