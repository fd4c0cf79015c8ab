"""How trust looks everywhere: marks, colours and shapes, and the pages' style sheet.

Colours are Okabe and Ito's (colour-blind safe). On the pages they are darkened or lightened until
text in them reads at 4.5:1; a mark or a shape always says the same as a colour, so that a
black-and-white print does too.
"""

from __future__ import annotations

from pathlib import Path

MARKS = {"use": "✓", "care": "!", "unknown": "?", "avoid": "✗"}
"""The sign of each value of ``trust``."""

COLOURS = {
    "use": "#0072B2",
    "care": "#B07D00",
    "unknown": "#A8548B",
    "avoid": "#D55E00",
    "baseline": "#777777",
}
SHAPES = {"use": "o", "care": "^", "unknown": "X", "avoid": "s", "baseline": "D"}
"""Colours and markers of the figures."""

LOWEST_AGREEMENT = 0.5
"""Heatmaps show agreement from here to 1, neutral at the threshold."""

FEWEST_PAIRS = 5
"""Heatmaps grey the agreement of fewer pairs."""

TEMPLATES = Path(__file__).parent / "templates"
LIGHT, DARK, _PAGE = (
    (TEMPLATES / f"{name}.css").read_text("utf-8") for name in ("light", "dark", "page")
)
CSS = (
    f":root {{ color-scheme: light dark;\n{LIGHT} }}\n"
    f"@media (prefers-color-scheme: dark) {{ :root {{\n{DARK} }} }}\n{_PAGE}"
)
"""The whole style sheet; ``LIGHT`` and ``DARK`` are its colours as custom properties."""
