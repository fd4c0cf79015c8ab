"""All pages as one Gradio app."""

from __future__ import annotations

import os
from typing import Any

# Set before the import of Gradio, which otherwise calls home for news.
os.environ["GRADIO_ANALYTICS_ENABLED"] = "False"

from hub_scripts.leaderboard.sources import RunSource
from hub_scripts.leaderboard.unpack import LARGEST_UPLOAD
from hub_scripts.leaderboard.web import FAVICON, PAGES, TITLE, app_options
from judgesense.errors import MissingExtraError


def build(source: RunSource) -> Any:
    """The app (a ``gradio.Blocks``) that shows a source of runs, not yet served."""
    try:
        import gradio as gr
    except ImportError:
        raise MissingExtraError("gradio", "hub", "the leaderboard") from None
    from hub_scripts.leaderboard.pages import compare, judge, published, submit, table

    with gr.Blocks(title=TITLE, analytics_enabled=False, delete_cache=(3600, 3600)) as demo:
        gr.Navbar(main_page_name="Leaderboard")
        table.page(gr, demo, source)
    modules = (judge, compare, published, submit)
    for (name, path), module in zip(PAGES, modules, strict=True):
        with demo.route(name, path):
            gr.Navbar(main_page_name="Leaderboard")
            module.page(gr, demo, source)
    demo.source = source
    return demo


def launch(demo: Any, **options: Any) -> Any:
    """Serve an app of `build`; ``options`` are those of ``Blocks.launch``."""
    from hub_scripts.leaderboard.style import theme

    return demo.launch(
        theme=theme(),
        favicon_path=FAVICON,
        app_kwargs=app_options(demo.source),
        footer_links=[],
        ssr_mode=False,
        share=False,
        pwa=False,
        mcp_server=False,
        enable_monitoring=False,
        max_file_size=LARGEST_UPLOAD,
        **options,
    )
