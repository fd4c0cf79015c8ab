"""How verdicts look everywhere: marks, colours and shapes, and the pages' style sheet.

Colours are Okabe and Ito's (colour-blind safe). On the pages they are darkened or lightened until
text in them reads at 4.5:1; a mark or a shape always says the same as a colour, so that a
black-and-white print does too.
"""

from __future__ import annotations

from pathlib import Path

MARKS = {"reliable": "✓", "unstable": "✗", "undecided": "?", "degenerate": "∅"}
"""The sign of each verdict."""

TONES = {"use": "reliable", "avoid": "unstable", "undecided": "undecided"}
"""The verdict whose colour a piece of advice takes, by the kind of its first finding."""

COLOURS = {
    "reliable": "#0072B2",
    "unstable": "#D55E00",
    "undecided": "#B07D00",
    "degenerate": "#A8548B",
    "baseline": "#777777",
}
SHAPES = {"reliable": "o", "unstable": "s", "undecided": "^", "degenerate": "X", "baseline": "D"}
"""Colours and markers of the figures."""

LOWEST_AGREEMENT = 0.5
"""Heatmaps show agreement from here to 1, neutral at the threshold."""

TEMPLATES = Path(__file__).parent / "templates"
LIGHT, DARK, _PAGE = (
    (TEMPLATES / f"{name}.css").read_text("utf-8") for name in ("light", "dark", "page")
)
CSS = (
    f":root {{ color-scheme: light dark;\n{LIGHT} }}\n"
    f"@media (prefers-color-scheme: dark) {{ :root {{\n{DARK} }} }}\n{_PAGE}"
)
"""The whole style sheet; ``LIGHT`` and ``DARK`` are its colours as custom properties."""
