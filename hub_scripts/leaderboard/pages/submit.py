"""Submit a run: one line per check, and how to publish a run that passes."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hub_scripts.leaderboard import worker
from hub_scripts.leaderboard.checks import NAMES
from hub_scripts.leaderboard.render import notice, render
from hub_scripts.leaderboard.sources import FolderSource, RunSource, linked_run
from hub_scripts.leaderboard.unpack import LARGEST_UPLOAD, unpack
from judgesense.errors import JudgeSenseError


def submit(
    source: RunSource, paths: Sequence[str] | None, keep: bool = False, link: str = ""
) -> str:
    """Check a run and return the results as HTML; ``keep`` adds a run that passes.

    ``paths`` is an upload, ``link`` a run in a results dataset on the Hub (see `linked_run`).
    """
    if not paths and not link.strip():
        return notice("Choose the folder, a zip or the files of a run first, or name a dataset.")
    with tempfile.TemporaryDirectory(prefix="judgesense-submit-") as scratch:
        try:
            if paths:
                folder, found = unpack([Path(path) for path in paths], Path(scratch))
            else:
                folder, found = linked_run(link)
        except (JudgeSenseError, OSError) as error:
            return _results(source, [{"name": "upload", "passed": False, "said": str(error)}])
        lines: list[dict[str, Any]] = [{"name": "upload", "passed": True, "said": found}]
        lines += worker.check(folder, source.publish_to)
        accepted = all(line["passed"] for line in lines)
        if not (accepted and keep and isinstance(source, FolderSource) and source.accepts):
            return _results(source, lines)
        files = {str(p.relative_to(folder)): p for p in folder.rglob("*") if p.is_file()}
        try:
            source.add(files, lines[-1]["tag"])
        except JudgeSenseError as error:
            return _results(source, lines, problem=str(error))
        return _results(source, lines, written=lines[-1]["tag"])


def _results(
    source: RunSource,
    lines: Sequence[Mapping[str, Any]],
    *,
    written: str | None = None,
    problem: str | None = None,
) -> str:
    done = {line["name"] for line in lines}
    return render(
        "submit",
        lines=lines,
        failed=not all(line["passed"] for line in lines),
        unchecked=[name for name in NAMES if name not in done],
        written=written,
        problem=problem,
        publish_to=source.publish_to,
    )


NAMED_BY_TEXT = """() => {
  const named = '#upload button[aria-label], #upload-folder button[aria-label]';
  const unname = () => document.querySelectorAll(named)
    .forEach(button => button.removeAttribute('aria-label'));
  unname();
  new MutationObserver(unname).observe(document.body, {
    childList: true, subtree: true, attributes: true, attributeFilter: ['aria-label']});
}"""
"""Gradio's upload buttons have a label that differs from the text that they show.

Gradio may draw them after the page has loaded, and draws them again after an upload.
"""


def page(gr: Any, demo: Any, source: RunSource) -> None:
    """Build the page: ``gr`` is Gradio."""
    about = render(
        "about_submit",
        megabytes=LARGEST_UPLOAD >> 20,
        publish_to=source.publish_to,
        accepts=source.accepts,
    )
    gr.HTML(about, js_on_load=None, apply_default_css=False)
    with gr.Row():
        folder = gr.File(
            label="The folder of a run (--out DIR)",
            file_count="directory",
            height=150,
            min_width=240,
            elem_id="upload-folder",
        )
        files = gr.File(
            label="A zip of it, or its files",
            file_count="multiple",
            file_types=[".zip", ".json", ".parquet"],
            height=150,
            min_width=240,
            elem_id="upload",
        )
    link = gr.Textbox(
        "",
        label="Or a results dataset on the Hub",
        placeholder="ORG/NAME, or the address of a run in it",
        max_length=400,
        elem_id="link",
    )
    keep = gr.Checkbox(
        source.accepts,
        label="Add it to this leaderboard if it passes",
        visible=source.accepts,
    )
    button = gr.Button("Check", variant="primary", elem_classes="go")
    shown = gr.HTML("", js_on_load=None, apply_default_css=False, elem_id="checks")

    def checked(whole: list[str] | None, paths: list[str] | None, named: str, wanted: bool) -> str:
        return submit(source, whole or paths, wanted, named)

    demo.load(None, js=NAMED_BY_TEXT, api_visibility="private")
    button.click(
        checked, [folder, files, link, keep], shown, api_visibility="private", concurrency_limit=2
    )
