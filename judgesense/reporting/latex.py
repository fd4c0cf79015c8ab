"""``report.tex``: the table for a paper, with booktabs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from judgesense.reporting.document import render

_SPECIAL = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_",
    "{": r"\{", "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "κ": r"$\kappa$", "≈": r"$\approx$", "−": r"$-$", "–": "--", "<": r"\textless{}",
    ">": r"\textgreater{}", "|": r"\textbar{}", '"': r"\textquotedbl{}",
}  # fmt: skip


def escape(text: str) -> str:
    """Text that LaTeX prints as it is, on one line."""
    return "".join(_SPECIAL.get(character, character) for character in " ".join(text.split()))


def render_latex(report: Mapping[str, Any]) -> str:
    """The table as LaTeX (needs ``booktabs`` and ``textcomp``), signatures as comments."""
    return render("report.tex", report, {"tex": escape})
