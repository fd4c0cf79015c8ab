"""What the metrics' Spaces share: one page that scores pasted rows."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

from judgesense.metric_modules.registry import METRICS


def interface(name: str, app_file: str) -> Any:
    """The `gradio.Interface` of a metric, not launched; its card is the README beside `app_file`.

    The function of the interface takes the pasted rows, returns the metric's figures, and raises
    `gradio.Error` for input that cannot be scored.
    """
    import gradio as gr

    metric = METRICS[name]
    card = (Path(app_file).parent / "README.md").read_text(encoding="utf-8")

    def compute(rows: str) -> dict[str, Any]:
        try:
            table = parse_rows(rows)
            if metric.cells not in (None, len(table[0])):
                raise ValueError(
                    f"a line has {len(table[0])} cells, not {metric.cells}: {metric.line}"
                )
            return metric.function(**metric.rows(table)).to_dict()
        except ValueError as error:
            raise gr.Error(str(error)) from error

    return gr.Interface(
        fn=compute,
        inputs=gr.Textbox(label=metric.line, value=metric.example, lines=8),
        outputs=gr.JSON(label="Result"),
        title=metric.title,
        article=card.split("---\n", 2)[2],  # without its front matter
        api_name="compute",
        flagging_mode="never",
    )


def parse_rows(text: str) -> list[list[str]]:
    """Lines of comma-separated cells, without blank lines and surrounding spaces.

    Raises:
        ValueError: no line, or lines with different numbers of cells (names the line).

    >>> parse_rows("q1, YES, NO")
    [['q1', 'YES', 'NO']]
    """
    rows = [[cell.strip() for cell in row] for row in csv.reader(io.StringIO(text.strip()))]
    rows = [row for row in rows if any(row)]
    if not rows:
        raise ValueError("no rows: paste one line for each row")
    for line, row in enumerate(rows, 1):
        if len(row) != len(rows[0]):
            raise ValueError(
                f"line {line} has {len(row)} cells and line 1 has {len(rows[0])}: "
                "give every line the same number of cells, separated by commas"
            )
    return rows
