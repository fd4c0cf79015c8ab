"""What the GitHub Action shows: the job summary."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from judgesense.text import interval, number, sentence

if TYPE_CHECKING:
    from judgesense.checking.result import CheckResult
    from judgesense.reporting.result import Table


def summary_of(found: CheckResult, rubric: Path, proposed: Path | None = None) -> str:
    """The job summary in Markdown: the decision, what to do next, the card and every table.

    ``proposed`` is the file of wordings that the judge proposed in this run.
    """
    lines = ["## " + _conclusion(found, rubric)]
    if proposed is not None:
        lines += [
            f"- The judge proposed the wordings in this run. Commit `{proposed.name}`, which is in "
            "the artifact, so that every run asks the same ones."
        ]
    lines += ["", _card(found)]
    order = {"flips": 0, "wordings": 1}
    for table in sorted(found.result.tables, key=lambda table: order.get(table.name, 2)):
        lines += ["", f"### {table.title}", "", _rows(table)]
    return "\n".join(lines) + "\n"


def _conclusion(found: CheckResult, rubric: Path) -> str:
    """The heading, the verdict, and the findings as a list, the next step first."""
    findings = [text for text in found.result.findings if text != found.verdict]
    if found.change is not None:
        findings = [*found.change.sentences(), *findings]
    lines = [
        f"JudgeSense: {found.decision} for {quiet(rubric.as_posix())}", "",
        f"**{quiet(found.verdict)}.**", "",
        *(f"- {quiet(sentence(text))}" for text in findings),
    ]  # fmt: skip
    return "\n".join(lines)


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
    return f"#### {title}\n\n{_rows(table)}"


def quiet(text: str) -> str:
    """Text of others for a page of GitHub's: no markup but code, and no @mention of anybody."""
    from judgesense.reporting.documents import escape_markdown

    def escaped(found: re.Match[str]) -> str:
        code = len(found[0]) > 1 and found[0][0] == "`"
        return found[0] if code else _without_mentions(escape_markdown(found[0]))

    return re.sub(r"`[^`]*`|[^`\s]+|`", escaped, text)


def _rows(table: Table) -> str:
    return _without_mentions(table.markdown())


def _without_mentions(text: str) -> str:
    return text.replace("@", "@\u200b")
