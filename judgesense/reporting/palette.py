"""How trust looks everywhere: every colour, mark and shape of pages, figures, badges and terminals.

Colours begin with Okabe and Ito's. On the pages they are darkened or lightened until text in them
reads at 4.5:1, and until those of `use`, `care`, `unknown` and `avoid` differ for people who lack
one kind of cones: orange is the darker one of orange and amber. A mark or a shape always says the
same as a colour, so that a black-and-white print does too.
"""

from __future__ import annotations

from pathlib import Path

MARKS = {"use": "✓", "care": "!", "unknown": "?", "avoid": "✗"}
"""The sign of each value of ``trust``."""

COLOURS = {
    "use": "#0072B2",
    "care": "#B28300",
    "unknown": "#A8548B",
    "avoid": "#BE4400",
    "baseline": "#777777",
}
SHAPES = {"use": "o", "care": "^", "unknown": "X", "avoid": "s", "baseline": "D"}
"""Colours and markers of the figures."""

INK, SOFT, LINE = "#1c1e21", "#5c6166", "#d8d8d2"
CYCLE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#B07D00", "#56B4E9", SOFT)
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
LINES = ("-", "--", "-.", ":")
DASHES = (0, (4, 3))
"""The line style of thresholds."""
DIVERGING, UNDEFINED = ("#D55E00", "#F7F7F4", "#3C8FC7"), "#ECECE8"
"""Colours of a heatmap: low, neutral and high, and that of a cell without a value."""

BADGE = {"use": "#0063A0", "care": "#946C00", "unknown": "#8C4173", "avoid": "#9C3000"}
"""White text reads at 4.5:1 on each."""

STYLES = {"use": "green", "care": "yellow", "unknown": "magenta", "avoid": "red", "baseline": "dim"}
"""Of rich, on a terminal."""

LOWEST_AGREEMENT = 0.5
"""Heatmaps show agreement from here to 1, neutral at the threshold."""

FEWEST_PAIRS = 5
"""Heatmaps grey the agreement of fewer pairs."""

LIGHT = """--paper: #ffffff; --page: #f6f6f3; --ink: #1c1e21; --soft: #5c6166; --line: #dcdcd6;
--blue: #0a5f9e; --orange: #8c2e00; --amber: #856600; --plum: #8f3f78; --grey: #6b6f73;
--blue-fill: #4c9fd4; --orange-fill: #e8854a;
"""
DARK = """--paper: #1d2023; --page: #141618; --ink: #e8e8e4; --soft: #a3a8ad; --line: #363b40;
--blue: #74bdf0; --orange: #ff9d5c; --amber: #e8c34a; --plum: #e3a1cf; --grey: #92979c;
--blue-fill: #256a99; --orange-fill: #a14c18;
"""
"""The colours of pages, as custom properties."""

TEMPLATES = Path(__file__).parent / "templates"


def style_sheet() -> str:
    """The whole style sheet of a page."""
    return (
        f":root {{ color-scheme: light dark;\n{LIGHT} }}\n"
        f"@media screen and (prefers-color-scheme: dark) {{ :root {{\n{DARK} }} }}\n"
        f"{(TEMPLATES / 'page.css').read_text('utf-8')}"
    )
