"""JSS by task with intervals, as inline SVG that follows the page's colours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from judgesense.reporting.table import Row
from judgesense.text import interval, number
from judgesense.trust.thresholds import STEADY_JSS

LEFT, RIGHT, WIDTH = 250, 700, 960
ROW, HEAD, TOP, BOTTOM = 26, 34, 12, 44
RAW_APART = 0.005
LONGEST_NAME = 34


def forest(rows: Sequence[Row], raw: Mapping[int, float | None], marks: Mapping[str, str]) -> str:
    """Draw rows of the table, grouped by task; judges of one task stand below each other.

    ``raw`` gives the raw JSS by a row's index (drawn hollow where it differs), ``marks`` the sign
    of each verdict.
    """
    parts: list[str] = []
    y = TOP
    before = None
    for index, row in enumerate(rows):
        if row.cell["task"] != before:
            before = row.cell["task"]
            y += HEAD
            parts.append(f'<text class="head" x="0" y="{y - 8}">{escape(str(before))}</text>')
            parts.append(f'<line class="grid" x1="0" x2="{WIDTH}" y1="{y - 1}" y2="{y - 1}"/>')
        parts += _row(row, raw.get(index), marks, y + ROW / 2)
        y += ROW
    return "\n".join(
        [
            f'<svg viewBox="0 0 {WIDTH} {y + BOTTOM}" role="img" '
            'aria-label="JSS by task and judge, with 95% intervals">',
            *_axis(y),
            *parts,
            "</svg>",
        ]
    )


def _x(value: float) -> float:
    return LEFT + (RIGHT - LEFT) * value


def _axis(bottom: float) -> list[str]:
    limit = _x(STEADY_JSS)
    lines = [
        f'<rect class="zone" x="{limit:.1f}" y="{TOP}" width="{RIGHT - limit:.1f}" '
        f'height="{bottom - TOP}"/>'
    ]
    for tick in (0.0, 0.2, 0.4, 0.6, 0.8, 1.0):
        kind = "limit" if tick == STEADY_JSS else "grid"
        lines.append(
            f'<line class="{kind}" x1="{_x(tick):.1f}" x2="{_x(tick):.1f}" y1="{TOP}" '
            f'y2="{bottom + 4}"/>'
            f'<text class="soft" text-anchor="middle" x="{_x(tick):.1f}" y="{bottom + 20}">'
            f"{tick:.1f}</text>"
        )
    lines.append(
        f'<text class="soft" text-anchor="middle" x="{(LEFT + RIGHT) / 2}" y="{bottom + 38}">'
        "JSS, mapped (hollow: raw), with its 95% interval</text>"
    )
    return lines


def _row(row: Row, raw: float | None, marks: Mapping[str, str], y: float) -> list[str]:
    cell = row.cell
    tone = "baseline" if row.is_baseline else cell["verdict"]
    scoring = "" if row.is_baseline else f" · {cell['scoring']}"
    name = row.texts[0]
    if len(name) > LONGEST_NAME:
        name = f"{name[: LONGEST_NAME - 1]}…"
    css = "soft" if row.is_baseline else ""
    parts = [
        f'<g class="{tone}">',
        f"<title>{escape(str(cell['judge']))}: {escape(str(cell['signature']))}</title>",
        f'<text class="{css}" x="10" y="{y + 4:.1f}">{escape(name)}'
        f'<tspan class="soft">{escape(scoring)}</tspan></text>',
    ]
    if cell["jss"] is not None:
        if cell["ci_low"] is not None and not row.is_baseline:
            parts.append(
                f'<line class="bar" x1="{_x(cell["ci_low"]):.1f}" x2="{_x(cell["ci_high"]):.1f}" '
                f'y1="{y:.1f}" y2="{y:.1f}"/>'
            )
        if raw is not None and abs(raw - cell["jss"]) > RAW_APART:
            parts.append(f'<circle class="hollow" cx="{_x(raw):.1f}" cy="{y:.1f}" r="4.5"/>')
        parts.append(_mark(row, _x(cell["jss"]), y))
    text = f"{number(cell['jss'])}"
    text += "" if row.is_baseline else f" {interval(cell, 2)}"
    parts.append(f'<text x="{RIGHT + 14}" y="{y + 4:.1f}" class="{css}">{escape(text)}</text>')
    if not row.is_baseline:
        sign = f"{marks[cell['verdict']]} {cell['verdict']}"
        parts.append(
            f'<text class="tone" x="{WIDTH - 4}" y="{y + 4:.1f}" text-anchor="end">{sign}</text>'
        )
    return [*parts, "</g>"]


def _mark(row: Row, x: float, y: float) -> str:
    if row.is_baseline:
        corners = ((x, y - 5.5), (x + 5.5, y), (x, y + 5.5), (x - 5.5, y))
        points = " ".join(f"{right:.1f},{down:.1f}" for right, down in corners)
        return f'<polygon class="dot" points="{points}"/>'
    return f'<circle class="dot" cx="{x:.1f}" cy="{y:.1f}" r="6"/>'
