"""Generate the parts of the site that describe commands and engine options."""

from __future__ import annotations

import re
from html import unescape
from typing import Any

PAGE = "reference/cli.md"
_BLOCK = re.compile(r"<pre>(<span></span><code>(.*?)</code></pre>)", re.DOTALL)
_WIDE = 104


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Fill in the commands and the options."""
    if page.file.src_uri != PAGE:
        return markdown
    for place, fill in (("<!-- every option -->", options), ("<!-- every command -->", commands)):
        if place not in markdown:
            raise ValueError(f"{PAGE} lacks the line {place}")
        markdown = markdown.replace(place, fill())
    return markdown


def on_page_content(html: str, page: Any, config: Any, files: Any) -> str:
    """Let sentences in shown output wrap; tables and aligned comments keep their lines."""
    return _BLOCK.sub(_wrapped, html)


def _wrapped(block: re.Match[str]) -> str:
    wide = [line for line in unescape(block[2]).splitlines() if len(line) > _WIDE]
    coloured = "<span class=" in block[2]  # code, not output
    if coloured or not wide or any(re.search(r"\S {2,}\S", line) for line in wide):
        return block[0]
    return f'<pre class="wrap">{block[1]}'


def options() -> str:
    """Every option of the engines, as a Markdown table."""
    from local_judges.options import rows

    lines = ["| key | engines | default | meaning |", "| --- | --- | --- | --- |"]
    for key, engines, default, meaning in rows():
        lines.append(f"| `{key}` | {engines} | {f'`{default}`' if default else ''} | {meaning} |")
    return "\n".join(lines)


def commands() -> str:
    """Each command with its arguments and options, in Markdown."""
    import typer.main
    from typer.cli import get_docs_for_click

    from judgesense.cli import app

    command = typer.main.get_command(app)
    _say_it_whole(command)
    context = command.make_context("judgesense", ["--help"], resilient_parsing=True)
    text: str = get_docs_for_click(obj=command, ctx=context, name="judgesense")
    # Drop its title: the page has one.
    return text.split("\n", 1)[1].replace("```console\n$ ", "```\n")


def _say_it_whole(command: Any) -> None:
    """Show the whole first paragraph of each command's help in lists of commands."""
    for inner in getattr(command, "commands", {}).values():
        inner.short_help = (inner.help or "").split("\n\n")[0].replace("\n", " ")
        _say_it_whole(inner)
