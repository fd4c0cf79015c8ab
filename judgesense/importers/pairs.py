"""Tables with a pair of wordings per row, as the published benchmark's second version logs them.

A row holds a judge's answers to two wordings about one item, ``decision_a`` and ``decision_b``
with their texts, and possibly the answers when the same prompts were asked again
(``decision_a_repeat``, ``decision_b_repeat``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any, Literal

from judgesense.errors import JudgeSenseError
from judgesense.files.documents import Shape, fit
from judgesense.files.tables import Record, read_table
from judgesense.importers.importer import Importer, Items, ReadOptions
from judgesense.tasks import ERROR, NO_ORDER, UNCLEAR

_TEMPLATES = re.compile(r"^.*#(?P<a>[^#]+?)-(?P<b>[^#-]+)$")
_ORDERS = {"original": "AB", "swapped": "BA", "AB": "AB", "BA": "BA", "-": NO_ORDER}
_GOLD = {"accurate": "YES", "inaccurate": "NO"}
"""The published names of factuality's labels."""
_SPACES = {
    "factuality": ("YES", "NO"),
    "coherence": ("1", "2", "3", "4", "5"),
    "relevance": ("A", "B"),
    "preference": ("A", "B"),
}
"""The published tasks."""
_FAILED = "ERROR:"
_Text = str | int | float | None


class PairRow(Shape):
    """A row of a table of pairs."""

    pair_id: str | int
    item_id: str | int
    task_type: str | None = None
    model: str | None = None
    prompt_pair_id: str | None = None
    template_a: _Text = None
    template_b: _Text = None
    ab_order: Literal["original", "swapped", "AB", "BA", "-"] = "-"
    ground_truth_label: _Text = None
    ground_truth_position: str | None = None
    error: str | None = None


class Answer(Shape):
    """One of the answers in a row: to wording a or b, first or asked again."""

    decision: _Text = None
    text: str | None = None
    usage: dict[str, Any] | str | None = None


def read(path: Path, options: ReadOptions) -> Iterator[Record]:
    """Two to four records per row: both wordings, and each again if it was.

    A pair that occurs again replaces the earlier one, as after a retry. A wording that several
    pairs of an item share has an answer from each: the later ones are repeats.

    Raises JudgeSenseError for a row that has no decision or text of both wordings, names no
    templates, or has an unknown order.
    """
    last: dict[tuple[Any, ...], tuple[PairRow, Record]] = {}
    for record in read_table(path, options.encoding):
        # A CSV cell without text is none.
        values = {name: v for name, v in record.values.items() if v not in ("", None)}
        row = fit(PairRow, values, record.place, "a pair of wordings")
        last[row.model, row.task_type, row.pair_id] = (row, Record(values, record.place))
    for row, record in last.values():
        yield from _answers(row, record, options.items)


def _answers(row: PairRow, record: Record, items: Items) -> Iterator[Record]:
    order = _ORDERS[row.ab_order]
    common = {
        **record.values,
        "judge": row.model,
        "task": row.task_type,
        "item_id": str(row.item_id),
        "order": order,
        "error": None,
        "labels": _SPACES.get(row.task_type or ""),
        **_gold(row),
    }
    templates = dict(zip("ab", _templates(row, record), strict=True))
    for again, (side, template) in product(("", "_repeat"), templates.items()):
        names = {
            "decision": f"decision_{side}{again}",
            "text": f"prompt_{side}{again}_raw",
            "usage": f"usage_{side}{again}",
        }
        values = {name: record.values.get(column) for name, column in names.items()}
        answer = fit(Answer, values, record.place, f"an answer to wording {side}")
        if answer.decision is None and answer.text is None:
            if again:
                continue
            raise JudgeSenseError(
                f"{record.place}: neither {names['decision']} nor {names['text']}"
            )
        usage = answer.usage if isinstance(answer.usage, dict) else {}
        milliseconds = usage.get("latency_ms")
        key = (row.model, row.task_type, common["item_id"], template, order)
        yield Record(
            {
                **common,
                "template_id": template,
                "repeat": items.repeat(*key),
                **_verdict(answer.decision, answer.text, row.error),
                "input_tokens": usage.get("input_tokens"),
                "output_tokens": usage.get("output_tokens"),
                "latency_s": None if milliseconds is None else milliseconds / 1000,
            },
            record.place,
        )


def _verdict(said: Any, text: str | None, error: str | None) -> dict[str, Any]:
    if text is not None and text.startswith(_FAILED):
        return {"status": "error", "error": text.removeprefix(_FAILED).strip() or error}
    if said == ERROR:
        return {"status": "error", "error": error}
    if said == UNCLEAR and text:
        # Read once more: the table's own reader may be stricter.
        said = None
    return {"raw_decision": said, "raw_text": text}


def _templates(row: PairRow, record: Record) -> tuple[str, str]:
    if row.template_a is not None and row.template_b is not None:
        return str(row.template_a), str(row.template_b)
    found = _TEMPLATES.match(row.prompt_pair_id or "")
    if not found:
        raise JudgeSenseError(
            f"{record.place}, prompt_pair_id: {row.prompt_pair_id!r} does not end with the two "
            "templates, as in item#T1-T2; add the columns template_a and template_b"
        )
    return found["a"], found["b"]


def _gold(row: PairRow) -> dict[str, str]:
    """The gold label: the position of the right option as shown, or else the label."""
    if row.ground_truth_position is not None:
        return {"gold": row.ground_truth_position}
    label = str(row.ground_truth_label or "")
    label = _GOLD.get(label, label.removeprefix("score_"))
    if not label or (row.ab_order != "-" and label not in ("A", "B")):
        return {}
    return {"gold_ab" if row.ab_order != "-" else "gold": label}


IMPORTER = Importer(
    name="pairs",
    summary="tables with two wordings per row (decision_a, decision_b), such as JudgeSense v2's",
    patterns=("*.jsonl", "*.csv", "*.parquet"),
    read=read,
    notes=("A pair that occurs again replaces the earlier one.",),
)
