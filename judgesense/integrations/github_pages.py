"""What the GitHub Action shows: the job summary, and the comment on a pull request."""

from __future__ import annotations

import hashlib
import html
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from judgesense.text import interval, number, sentence

if TYPE_CHECKING:
    from judgesense.checking.result import CheckResult

LONGEST_COMMENT = 65_536
"""Characters that GitHub accepts in a comment."""


def summary_of(found: CheckResult, rubric: Path, proposed: Path | None = None) -> str:
    """The job summary in Markdown: the decision, what to do next, the card and every table.

    ``proposed`` is the file of wordings that the judge proposed in this run.
    """
    result = found.result
    lines = [f"## {_heading(found, rubric)}", "", *_conclusion(found)]
    if proposed is not None:
        lines += [
            f"- The judge proposed the wordings in this run. Commit `{proposed.name}`, which is in "
            "the artifact, so that every run asks the same ones."
        ]
    lines += ["", _card(found)]
    first = ("flips", "wordings")
    tables = sorted(
        result.tables, key=lambda table: (table.name not in first, table.name != "flips")
    )
    for table in tables:
        lines += ["", f"### {table.title}", "", _quiet_markdown(table.markdown())]
        if table.name == "flips":
            for example in found.report["examples"][: len(table.rows)]:
                lines += ["", _asked(example)]
    return "\n".join(lines) + "\n"


def comment_of(found: CheckResult, rubric: Path, url: str | None) -> str:
    """The comment on a pull request: the decision, the card, and flipped examples to unfold."""
    lines = [marker(rubric), f"### {_heading(found, rubric)}", "", *_conclusion(found)]
    lines += ["", _card(found)]
    flips = [table for table in found.result.tables if table.name == "flips"]
    for table in flips:
        told = _quiet_markdown(table.markdown())
        lines += ["", f"<details><summary>{table.title} ({len(table.rows)})</summary>", "", told,
                  "", "</details>"]  # fmt: skip
    end = f"\n\n[All figures, and the report to download]({url})\n" if url else "\n"
    text = "\n".join(lines)
    if len(text) + len(end) > LONGEST_COMMENT and flips:
        text = "\n".join(lines[: -6 * len(flips)])
    return text[: LONGEST_COMMENT - len(end)] + end


def marker(rubric: Path) -> str:
    """The first line of a comment, by which a later run finds it: one comment per rubric.

    >>> marker(Path("tone.txt"))
    '<!-- judgesense check 50c23db27263 -->'
    """
    return (
        f"<!-- judgesense check {hashlib.sha256(rubric.as_posix().encode()).hexdigest()[:12]} -->"
    )


def _heading(found: CheckResult, rubric: Path) -> str:
    return f"JudgeSense: {found.decision} for {quiet(rubric.as_posix())}"


def _conclusion(found: CheckResult) -> list[str]:
    """The verdict and the findings, the next step first, as a list."""
    told = [text for text in found.result.findings if text != found.verdict]
    return [f"**{quiet(found.verdict)}.**", "", *(f"- {quiet(sentence(text))}" for text in told)]


def _card(found: CheckResult) -> str:
    """The checks of the trust card as a table."""
    from judgesense.reporting.result import Table

    rows = [
        {
            "check": name, "state": check["state"], "estimate": number(check["estimate"]),
            "interval": interval(check), "threshold": f"{check['threshold']:g}",
            "text": check["text"],
        }
        for name, check in found.card["checks"].items() if check["applies"]
    ]  # fmt: skip
    title = f"Trust card: {found.card['trust']}"
    table = Table.from_records("card", title, rows, text="what it says")
    return f"#### {title}\n\n{_quiet_markdown(table.markdown())}"


def _asked(example: Mapping[str, Any]) -> str:
    """Both prompts of a flipped example, to unfold, each as it was asked."""
    # Markdown within these tags is not read.
    item = _quiet_markdown(html.escape(" ".join(str(example["item_id"]).split())))
    lines = [f"<details><summary>{item}: what was asked</summary>"]
    for side in (example["a"], example["b"]):
        text = side["text"] or ""
        # A fence is longer than any in the text.
        fence = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
        lines += ["", f"{quiet(side['template'])}: **{quiet(side['decision'])}**", "",
                  f"{fence}text", text, fence]  # fmt: skip
    return "\n".join([*lines, "", "</details>"])


def quiet(text: str) -> str:
    """Text of others for a page of GitHub's: no markup but code, and no @mention of anybody."""
    from judgesense.reporting.documents import escape_markdown as escape

    parts = text.split("`")
    if len(parts) % 2 == 0:
        return _quiet_markdown(escape(text))
    told = []
    for n, part in enumerate(parts):
        if n % 2:
            told.append(f"`{part}`")
        else:
            left, right = part[: len(part) - len(part.lstrip())], part[len(part.rstrip()) :]
            told.append(f"{left}{_quiet_markdown(escape(part))}{right if part.strip() else ''}")
    return "".join(told)


def _quiet_markdown(text: str) -> str:
    return text.replace("@", "@\u200b")
