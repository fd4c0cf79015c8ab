"""What the metrics' Spaces share: one page that scores pasted rows, described in one table."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from judgesense.metric_modules.registry import METRICS

Cells = list[list[str]]


@dataclass(frozen=True)
class Page:
    """A metric's page: its title, what a pasted line holds, an example, and its options.

    `cells` is the number of cells per line (None: any). `rows` turns the pasted table into the
    metric's arguments. `options` are Gradio components: option name -> (kind, settings).
    """

    title: str
    line: str
    example: str
    rows: Callable[[Cells], dict[str, Any]]
    cells: int | None = None
    options: tuple[tuple[str, str, dict[str, Any]], ...] = ()


def _paired(table: Cells, *names: str) -> dict[str, Any]:
    return {
        name: list(column) for name, column in zip(names, zip(*table, strict=True), strict=True)
    }


def _robustness_rows(table: Cells) -> dict[str, Any]:
    numbers = parse_numbers(table)
    return {"predictions": [row[1:] for row in numbers], "references": [row[0] for row in numbers]}


def _model_rows(table: Cells) -> dict[str, Any]:
    scores = parse_numbers([row[1:] for row in table])
    return {"predictions": scores, "models": [row[0] for row in table]}


PAGES = {
    "jss": Page(
        "Judge Sensitivity Score",
        "One pair per line: item, decision under prompt a, decision under prompt b",
        "item-1,YES,YES\nitem-1,YES,NO\nitem-2,NO,NO\nitem-2,NO,NO\nitem-3,YES,YES\n"
        "item-3,UNCLEAR,YES\n",
        lambda table: _paired(table, "item_ids", "references", "predictions"),
        cells=3,
        options=(("interval", "Radio", {"choices": ["wilson", "bootstrap"], "label": "Interval"}),),
    ),
    "paraphrase_robustness": Page(
        "Paraphrase robustness",
        "One item per line: human score, then the judge's score under each paraphrase",
        "4,4,4,5\n2,2,3,2\n5,5,5,5\n3,2,3,3\n1,1,1,1\n",
        _robustness_rows,
        options=(
            ("tolerance", "Number", {"value": 0.5, "minimum": 0, "label": "Tolerance"}),
            ("round_references", "Checkbox", {"label": "Round human scores to whole numbers"}),
        ),
    ),
    "prompt_sensitivity": Page(
        "Prompt sensitivity",
        "One model per line: its name, then its accuracy under each prompt",
        "llama,0.61,0.58,0.64\nqwen,0.70,0.71,0.66\ngemma,0.55,0.57,0.52\n",
        _model_rows,
    ),
    "ranking_stability": Page(
        "Ranking stability",
        "One condition (seed, subset) per line: the score of each prompt",
        "0.20,0.50,0.40,0.44\n0.30,0.40,0.50,0.45\n0.10,0.60,0.50,0.43\n",
        lambda table: {"predictions": parse_numbers(table)},
        options=(
            ("k", "Number", {"value": 3, "minimum": 1, "precision": 0, "label": "k of top-k"}),
            ("z", "Number", {"value": 1.0, "minimum": 0, "label": "z of the lower bound"}),
        ),
    ),
    "position_bias": Page(
        "Position bias",
        "One pair per line: decision in order AB, decision in order BA",
        "A,B\nA,A\nB,A\nA,B\nTIE,A\n",
        lambda table: _paired(table, "references", "predictions"),
        cells=2,
        options=(("labels", "Radio", {"choices": ["position", "item"], "label": "A and B name"}),),
    ),
    "answer_match": Page(
        "Answer match",
        'One response per line: "response", answer; quote a response that contains commas',
        '"The answer is (B).",B\n"I would pick C, because water boils at 100 degrees.",C\n'
        '"None of these is right.",A\n',
        lambda table: _paired(table, "predictions", "references"),
        cells=2,
        options=(
            (
                "method",
                "Radio",
                {"choices": ["choice", "f1", "math", "exact"], "label": "Method"},
            ),
        ),
    ),
}
"""The page of each metric."""


def interface(name: str, app_file: str) -> Any:
    """The `gradio.Interface` of a metric, not launched; its card is the README beside `app_file`.

    The function of the interface takes the pasted rows and the options, returns the metric's
    figures, and raises `gradio.Error` for input that cannot be scored.
    """
    import gradio as gr

    page = PAGES[name]

    def compute(rows: str, *options: Any) -> dict[str, Any]:
        try:
            table = parse_rows(rows)
            if page.cells not in (None, len(table[0])):
                raise ValueError(f"a line has {len(table[0])} cells, not {page.cells}: {page.line}")
            chosen = dict(zip((option for option, *_ in page.options), options, strict=True))
            return METRICS[name](**page.rows(table), **chosen).to_dict()
        except ValueError as error:
            raise gr.Error(str(error)) from error

    inputs = [gr.Textbox(label=page.line, value=page.example, lines=8)]
    for _, kind, settings in page.options:
        first = settings["choices"][0] if "choices" in settings else settings.get("value", False)
        inputs.append(getattr(gr, kind)(**{**settings, "value": first}))
    return gr.Interface(
        fn=compute,
        inputs=inputs,
        outputs=gr.JSON(label="Result"),
        title=page.title,
        article=_card(app_file),
        api_name="compute",
        flagging_mode="never",
    )


def parse_rows(text: str) -> Cells:
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


def parse_numbers(rows: Cells) -> list[list[float]]:
    """Cells as numbers.

    Raises:
        ValueError: a cell that is not a number; names line and cell.

    >>> parse_numbers([["1", "2.5"]])
    [[1.0, 2.5]]
    """
    table: list[list[float]] = []
    for line, row in enumerate(rows, 1):
        table.append([])
        for place, cell in enumerate(row, 1):
            try:
                table[-1].append(float(cell))
            except ValueError:
                raise ValueError(f"line {line}, cell {place}: {cell!r} is not a number") from None
    return table


def _card(app_file: str) -> str:
    """The text of the README.md beside an app, without its front matter."""
    return (Path(app_file).parent / "README.md").read_text(encoding="utf-8").split("---\n", 2)[2]
