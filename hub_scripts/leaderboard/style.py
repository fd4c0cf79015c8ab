"""The site's looks: Gradio's theme, and a style sheet on the report's own colours and parts.

Fonts are the system's and nothing is loaded from elsewhere.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from judgesense.reporting.style import CSS as REPORT_CSS
from judgesense.reporting.style import DARK, LIGHT

_FONT = ("system-ui", "-apple-system", "Segoe UI", "Roboto", "Arial", "sans-serif")
_MONO = ("ui-monospace", "Menlo", "Consolas", "DejaVu Sans Mono", "monospace")


def theme() -> Any:
    """Gradio's plainest theme in the report's colours."""
    import gradio as gr

    blue = gr.themes.Color(
        c50="#eef6fb", c100="#dceefa", c200="#b9dcf2", c300="#8cc5ea", c400="#4c9fd4",
        c500="#1f7cba", c600="#0a5f9e", c700="#084c7f", c800="#073c64", c900="#062e4d",
        c950="#041f35",
    )  # fmt: skip
    return gr.themes.Base(
        primary_hue=blue, neutral_hue="stone", font=_FONT, font_mono=_MONO, radius_size="md"
    ).set(
        body_background_fill="#f6f6f3",
        body_background_fill_dark="#141618",
        body_text_color="#1c1e21",
        body_text_color_dark="#e8e8e4",
        body_text_color_subdued="#5c6166",
        body_text_color_subdued_dark="#a3a8ad",
        block_background_fill="#ffffff",
        block_background_fill_dark="#1d2023",
        block_border_color="#dcdcd6",
        block_border_color_dark="#363b40",
        block_label_text_color="#5c6166",
        block_label_text_color_dark="#a3a8ad",
        block_title_text_color="#5c6166",
        block_title_text_color_dark="#a3a8ad",
        border_color_primary="#dcdcd6",
        border_color_primary_dark="#363b40",
        background_fill_primary="#ffffff",
        background_fill_primary_dark="#1d2023",
        background_fill_secondary="#f6f6f3",
        background_fill_secondary_dark="#141618",
        input_background_fill="#ffffff",
        input_background_fill_dark="#141618",
        input_border_color="#c4c6c0",
        input_border_color_dark="#4a5056",
        input_border_width="1px",
        checkbox_label_background_fill="#f6f6f3",
        checkbox_label_background_fill_dark="#141618",
        checkbox_label_background_fill_selected="#dceefa",
        checkbox_label_background_fill_selected_dark="#073c64",
        checkbox_label_border_color="#dcdcd6",
        checkbox_label_border_color_dark="#363b40",
        checkbox_label_text_color="#1c1e21",
        checkbox_label_text_color_dark="#e8e8e4",
        button_primary_background_fill="#0a5f9e",
        button_primary_background_fill_hover="#084c7f",
        button_primary_background_fill_dark="#1f7cba",
        button_primary_text_color="#ffffff",
    )


_SITE = (Path(__file__).parent / "site.css").read_text("utf-8")

HEAD = (
    f"<style>.gradio-container {{ {LIGHT} color-scheme: light; }}"
    f".dark .gradio-container {{ {DARK} color-scheme: dark; }}"
    f".site {{ {REPORT_CSS} }}{_SITE}</style>"
)
"""The report's style sheet holds inside ``.site`` alone (nested rules); then the site's own."""

SORT = (Path(__file__).parent / "sort.js").read_text("utf-8")
"""Sorting in the browser, so that the focus stays on the button; it survives a new table."""
