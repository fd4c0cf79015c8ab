"""``report.tex``: the table for a paper, with booktabs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from judgesense.reporting.table import COLUMNS, TEXT_COLUMNS, Row, rows

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
    alignment = "".join("l" if key in TEXT_COLUMNS else "r" for key in COLUMNS)
    lines = [
        "% \\usepackage{booktabs}",
        *(_signature(row) for row in rows(report)),
        "\\begin{table*}",
        "\\centering\\small",
        f"\\begin{{tabular}}{{{alignment}}}",
        "\\toprule",
        f"{' & '.join(map(escape, COLUMNS.values()))} \\\\",
    ]
    before = None
    for row in rows(report):
        if row.cell["task"] != before:
            before = row.cell["task"]
            lines.append("\\midrule")
        texts = [escape(text) for text in row.texts.values()]
        # A bracket after a line end would be read as its optional argument.
        lines.append(" & ".join("{" + t + "}" if t.startswith("[") else t for t in texts) + r" \\")
    lines += [
        "\\bottomrule",
        "\\end{tabular}",
        "\\caption{Sensitivity of judges to wording: raw and mapped JSS (same verdict after "
        "rewording) with the 95\\% interval of the mapped JSS (Wilson, clustered by item), Cohen's "
        "$\\kappa$, accuracy by the gold labels, share of verdicts for the first option, and pairs "
        "without a readable verdict. The rows oracle and always-first are baselines.}",
        "\\label{tab:judgesense}",
        "\\end{table*}",
    ]
    return "\n".join(lines) + "\n"


def _signature(row: Row) -> str:
    judge = " ".join(str(row.cell["judge"]).split())
    return f"% {judge}: {row.cell['signature']}"
