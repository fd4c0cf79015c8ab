"""Tables with a pair of wordings per row, as the published benchmark's second version logs them.

A row holds a judge's answers to two wordings about one item, ``decision_a`` and ``decision_b``
with their texts, and possibly the answers when the same prompts were asked again
(``decision_a_repeat``, ``decision_b_repeat``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from judgesense.errors import JudgeSenseError
from judgesense.files.documents import Shape, fit
from judgesense.files.tables import Record, read_table
from judgesense.importers.importer import Importer, Items, ReadOptions
from judgesense.tasks import ERROR, NO_ORDER, UNCLEAR

_TEMPLATES = re.compile(r"^.*#(?P<a>[^#]+?)-(?P<b>[^#-]+)$")
_ORDERS = {"original": "AB", "swapped": "BA", "AB": "AB", "BA": "BA", "": NO_ORDER, "-": NO_ORDER}
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
    ab_order: str | None = None
    ground_truth_label: _Text = None
    ground_truth_position: str | None = None
    decision_a: _Text = None
    decision_b: _Text = None
    decision_a_repeat: _Text = None
    decision_b_repeat: _Text = None
    prompt_a_raw: str | None = None
    prompt_b_raw: str | None = None
    prompt_a_repeat_raw: str | None = None
    prompt_b_repeat_raw: str | None = None
    usage_a: dict[str, Any] | str | None = None
    usage_b: dict[str, Any] | str | None = None
    usage_a_repeat: dict[str, Any] | str | None = None
    usage_b_repeat: dict[str, Any] | str | None = None
    error: str | None = None


def read(path: Path, options: ReadOptions) -> Iterator[Record]:
    """Two to four records per row: both wordings, and each again if it was.

    A pair that occurs again replaces the earlier one, as after a retry. A wording that several
    pairs of an item share has an answer from each: the later ones are repeats.

    Raises JudgeSenseError for a row that has no decision or text of both wordings, names no
    templates, or has an unknown order.
    """
    last: dict[tuple[Any, ...], tuple[PairRow, Record]] = {}
    for record in read_table(path, options.encoding):
        row = fit(PairRow, _filled(record.values), record.place, "a pair of wordings")
        last[row.model, row.task_type, row.pair_id] = (row, record)
    for row, record in last.values():
        yield from _arms(row, record, options.items)


def _filled(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values that are there: a CSV cell without text is none."""
    return {name: value for name, value in values.items() if value not in ("", None)}


def _arms(row: PairRow, record: Record, items: Items) -> Iterator[Record]:
    order = _ORDERS.get(row.ab_order or "")
    if order is None:
        raise JudgeSenseError(
            f"{record.place}, ab_order: {row.ab_order!r} is not one of original, swapped, AB, BA"
        )
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
    templates = _templates(row, record)
    for again in ("", "_repeat"):
        for side, template in zip("ab", templates, strict=True):
            said = getattr(row, f"decision_{side}{again}")
            text = getattr(row, f"prompt_{side}{again}_raw")
            if said is None and text is None:
                if again:
                    continue
                raise JudgeSenseError(
                    f"{record.place}: neither decision_{side} nor prompt_{side}_raw"
                )
            usage = getattr(row, f"usage_{side}{again}")
            usage = usage if isinstance(usage, dict) else {}
            key = (row.model, row.task_type, common["item_id"], template, order)
            yield Record(
                {
                    **common,
                    "template_id": template,
                    "repeat": items.repeat(*key),
                    **_answer(said, text, row.error),
                    "input_tokens": usage.get("input_tokens"),
                    "output_tokens": usage.get("output_tokens"),
                    "latency_s": _seconds(usage.get("latency_ms")),
                },
                record.place,
            )


def _answer(said: Any, text: str | None, error: str | None) -> dict[str, Any]:
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
    if not label or (row.ab_order is not None and label not in ("A", "B")):
        return {}
    return {"gold_ab" if row.ab_order is not None else "gold": label}


def _seconds(milliseconds: Any) -> float | None:
    return milliseconds / 1000 if isinstance(milliseconds, (int, float)) else None


IMPORTER = Importer(
    name="pairs",
    summary="tables with two wordings per row (decision_a, decision_b), such as JudgeSense v2's",
    patterns=("*.jsonl", "*.csv", "*.parquet"),
    read=read,
    notes=("A pair that occurs again replaces the earlier one.",),
)
