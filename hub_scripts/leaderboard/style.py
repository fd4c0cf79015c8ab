"""The look of the site: Gradio's theme, and a style sheet on top of the report's.

Fonts are the system's, and nothing is loaded from elsewhere.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from judgesense.reporting.palette import CSS as REPORT_CSS
from judgesense.reporting.palette import DARK, LIGHT

_FONT = ("system-ui", "-apple-system", "Segoe UI", "Roboto", "Arial", "sans-serif")
_MONO = ("ui-monospace", "Menlo", "Consolas", "DejaVu Sans Mono", "monospace")

_COLOURS = {
    "body_text_color_subdued": "soft",
    "block_background_fill": "paper",
    "block_border_color": "line",
    "block_label_text_color": "soft",
    "block_title_text_color": "soft",
    "border_color_primary": "line",
    "background_fill_primary": "paper",
    "background_fill_secondary": "page",
    "checkbox_label_background_fill": "page",
    "checkbox_label_border_color": "line",
    "checkbox_label_text_color": "ink",
}
"""Gradio's settings that take a colour of the report, light or dark."""


def theme() -> Any:
    """Gradio's plainest theme in the report's colours."""
    import gradio as gr

    blue = gr.themes.Color(
        c50="#eef6fb", c100="#dceefa", c200="#b9dcf2", c300="#8cc5ea", c400="#4c9fd4",
        c500="#1f7cba", c600="#0a5f9e", c700="#084c7f", c800="#073c64", c900="#062e4d",
        c950="#041f35",
    )  # fmt: skip
    base = gr.themes.Base(
        primary_hue=blue, neutral_hue="stone", font=_FONT, font_mono=_MONO, radius_size="md"
    )
    shared = {
        f"{name}{shade}": f"var(--{colour})"
        for name, colour in _COLOURS.items()
        for shade in ("", "_dark")
    }
    return base.set(
        **shared,
        # Gradio resolves the colours of the body before it knows that the page is dark.
        body_background_fill="#f6f6f3",
        body_background_fill_dark="#141618",
        body_text_color="#1c1e21",
        body_text_color_dark="#e8e8e4",
        input_background_fill="#ffffff",
        input_background_fill_dark="#141618",
        input_border_color="#c4c6c0",
        input_border_color_dark="#4a5056",
        input_border_width="1px",
        checkbox_label_background_fill_selected="#dceefa",
        checkbox_label_background_fill_selected_dark="#073c64",
        button_primary_background_fill="#0a5f9e",
        button_primary_background_fill_hover="#084c7f",
        button_primary_background_fill_dark="#1f7cba",
        button_primary_text_color="#ffffff",
    )


_SITE = (Path(__file__).parent / "site.css").read_text("utf-8")

HEAD = (
    f"<style>:root {{ {LIGHT} }} .dark {{ {DARK} }}"
    ".gradio-container { color-scheme: light; } .dark .gradio-container { color-scheme: dark; }"
    f".site {{ {REPORT_CSS} }}{_SITE}</style>"
)
"""The report's style sheet applies inside ``.site`` only (nested rules); then the site's own."""

SCRIPT = (Path(__file__).parent / "table.js").read_text("utf-8")
"""Sorts and compares in the browser; part of the page, so that it runs before Gradio's scripts."""
