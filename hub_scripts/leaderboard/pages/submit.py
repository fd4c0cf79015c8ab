"""Submit a run: every check on a line of its own, and what to do with one that passes."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hub_scripts.leaderboard import worker
from hub_scripts.leaderboard.checks import NAMES
from hub_scripts.leaderboard.markup import notice, plain
from hub_scripts.leaderboard.sources import FolderSource, Source
from hub_scripts.leaderboard.unpack import LARGEST_UPLOAD, unpack
from judgesense.errors import JudgeSenseError
from judgesense.reporting.html import h

UPLOAD = "upload"
ABOUT = (
    '<div class="site"><div class="hero"><h1>Submit a run</h1><p>Give the folder of a run '
    "(<code>--out DIR</code>) as a zip, or its files: report.json, run.json, pairs.parquet, "
    "prompts.parquet and decisions/part-*.parquet. Every figure and signature is computed again "
    f"from the decisions. Up to {LARGEST_UPLOAD >> 20} MB; nothing is kept that you do not ask "
    "for.</p></div></div>"
)


def submit(source: Source, paths: Sequence[str] | None, keep: bool = False) -> str:
    """Check an upload and say what was found, as HTML; ``keep`` writes one that passes."""
    if not paths:
        return notice("Choose a zip or the files of a run first.")
    with tempfile.TemporaryDirectory(prefix="judgesense-submit-") as scratch:
        try:
            folder, found = unpack([Path(path) for path in paths], Path(scratch))
        except (JudgeSenseError, OSError) as error:
            lines = [{"name": UPLOAD, "passed": False, "said": str(error)}]
            return _page(lines, "")
        lines = [{"name": UPLOAD, "passed": True, "said": found}]
        lines += worker.check(folder, source.publish_to)
        after = ""
        if all(line["passed"] for line in lines):
            after = _accepted(source, folder, str(lines[-1]["tag"]), keep)
        return _page(lines, after)


def _page(lines: Sequence[Mapping[str, Any]], after: str) -> str:
    done = {line["name"] for line in lines}
    failed = not all(line["passed"] for line in lines)
    items = [_line(line["name"], line["passed"], line["said"]) for line in lines]
    items += [_line(name, None, "not looked at") for name in NAMES if name not in done]
    head = (
        '<p role="status"><b>Refused.</b> The first line that fails says why.</p>'
        if failed
        else '<p role="status"><b>Accepted.</b> Every figure follows from its decisions.</p>'
    )
    return f'<div class="site">{head}<ul class="checks">{"".join(items)}</ul>{after}</div>'


def _line(name: str, passed: bool | None, said: str) -> str:
    css, mark, word = {
        True: ("reliable", "✓", "passed"),
        False: ("unstable", "✗", "failed"),
        None: ("not", "·", "not looked at"),
    }[passed]
    return (
        f'<li class="{css}"><span class="mark" role="img" aria-label="{word}">{mark}</span>'
        f"<b>{h(name)}</b><span><bdi>{h(plain(said)[:1000])}</bdi></span></li>"
    )


def _accepted(source: Source, folder: Path, name: str, keep: bool) -> str:
    command = f"judgesense publish results DIR --repo {source.publish_to}"
    offered = (
        "<h2>Publish it</h2><p>With a token that may write to the results dataset:</p>"
        f'<pre class="cite" tabindex="0">{h(command)}</pre>'
    )
    if not keep or not source.accepts or not isinstance(source, FolderSource):
        return offered
    files = {str(path.relative_to(folder)): path for path in folder.rglob("*") if path.is_file()}
    try:
        source.add(files, name)
    except JudgeSenseError as error:
        return f'<p class="notice">{h(error)}</p>{offered}'
    return f'<p class="notice">Written to <b>{h(name)}</b>: it is on the leaderboard now.</p>'


def page(gr: Any, demo: Any, source: Source) -> None:
    """Put the page together: ``gr`` is Gradio."""
    gr.HTML(ABOUT, js_on_load=None, apply_default_css=False)
    files = gr.File(
        label="A zip, or the files of one run",
        file_count="multiple",
        file_types=[".zip", ".json", ".parquet"],
        height=180,
        elem_id="upload",
    )
    keep = gr.Checkbox(
        source.accepts,
        label="Add it to this leaderboard if it passes",
        visible=source.accepts,
    )
    button = gr.Button("Check", variant="primary", elem_classes="go")
    shown = gr.HTML("", js_on_load=None, apply_default_css=False, elem_id="checks")

    def checked(paths: list[str] | None, wanted: bool) -> str:
        return submit(source, paths, wanted)

    button.click(checked, [files, keep], shown, api_visibility="private", concurrency_limit=2)
