"""``report.md``: the table, the advice, the method and the signatures."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from judgesense.reporting.document import render

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>|#~$!])")
_BLANK_LINES = re.compile(r"\n{3,}")


def escape(text: object) -> str:
    """Text that Markdown (and the HTML within it) shows as it is, on one line."""
    return _SPECIAL.sub(r"\\\1", " ".join(str(text).split()))


def render_markdown(report: Mapping[str, Any], figures: Sequence[str] = ()) -> str:
    """The report as Markdown; ``figures`` are paths relative to the run's folder."""
    text = render("report.md", report, {"md": escape, "caption": _caption}, figures=figures)
    return _BLANK_LINES.sub("\n\n", text).rstrip() + "\n"


def _caption(name: str) -> str:
    stem = name.rsplit("/", 1)[-1].removesuffix(".png")
    return escape(stem.replace("_", " ").replace("-", " "))
