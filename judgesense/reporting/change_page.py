"""The page of a change: every verdict that is another one, before and after, with both texts.

It is one file, safe to open whatever the texts hold: they are data, and its one script is the only
one that runs. ``judgesense compare`` and ``judgesense check --baseline`` write it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from markupsafe import Markup

from judgesense.comparison.baseline_result import ChangedVerdict
from judgesense.files.disk import write_text, writing
from judgesense.log.folder import Run, read_run
from judgesense.reporting.documents import environment, script_of
from judgesense.reporting.html import FIRST_ROWS, SCRIPTS
from judgesense.reporting.listing import Answer, ListedItem, listing
from judgesense.reporting.palette import style_sheet

CHANGE_PAGE = "change.html"
MOST_ROWS = 20_000
KINDS = {"broken": "broken", "fixed": "fixed", "changed": "other"}
"""Kind of a changed verdict -> its name on the page."""
CAUSES = ("judge", "system", "failed call", "cannot tell")

Texts = dict[tuple[str, str], dict[str, str]]
"""Task and item -> texts by name."""


def write_change_page(
    page: Path,
    old: Path,
    new: Path,
    title: str,
    sentences: Sequence[str],
    moved: Sequence[ChangedVerdict],
) -> Path:
    """Write the page of the change from the folder ``old`` to ``new``; returns its file.

    ``moved`` are the verdicts that changed, ``sentences`` what is concluded of them. Raises
    JudgeSenseError for a file that cannot be written.
    """
    with writing(page):
        page.parent.mkdir(parents=True, exist_ok=True)
        write_text(page, render_change(old, new, title, sentences, moved))
    return page


def render_change(
    old: Path, new: Path, title: str, sentences: Sequence[str], moved: Sequence[ChangedVerdict]
) -> str:
    """The page as HTML."""
    rows = sorted(moved, key=lambda row: list(KINDS).index(row["kind"]))[:MOST_ROWS]
    items = {row["item_id"] for row in rows}
    before, after = (_texts(read_run(folder), items) for folder in (old, new))
    tasks = list(dict.fromkeys(row["task"] for row in rows))
    names = [tuple(filter(None, (KINDS[row["kind"]], row.get("cause")))) for row in rows]
    listed = []
    for row, kinds in zip(rows, names, strict=True):
        texts, answers = dict[str, str](), dict[str, str]()
        for side, name in ((before, "before"), (after, "after")):
            # A task may have the name of its file, which is another one before.
            own, any_task = ((task, row["item_id"]) for task in (row["task"], ""))
            for column, text in side.get(own, side.get(any_task, {})).items():
                if column == ANSWER:
                    answers[name] = text
                else:
                    texts[f"{column} {name}"] = text
        answer = Answer(
            row["order"],
            row["gold"],
            f"{row['before']} → {row['after']}",
            None,
            {"before": row["before"], "after": row["after"]},
            answers,
        )
        item = (tasks.index(row["task"]), row["item_id"])
        listed.append(ListedItem(*item, frozenset(kinds), (answer,), _merged(texts)))
    found = listing(
        listed,
        (*KINDS.values(), *CAUSES),
        [{"name": name, "task": name, "labels": None} for name in tasks],
        {},
        tuple(KINDS.values()),
        "Verdict before and after",
    )
    return (
        environment()
        .get_template("change.html")
        .render(
            title=title,
            sentences=[text for text in sentences if text not in title],
            sides=(str(old), str(new)),
            n_rows=len(moved),
            listed=found,
            first=list(zip(rows, names, strict=True))[:FIRST_ROWS],
            css=Markup(style_sheet()),
            **script_of(*SCRIPTS),
        )
    )


ANSWER = "\0answer"
"""The name of the judge's text among those of an item; no column has it."""


def _merged(texts: Mapping[str, str]) -> dict[str, str]:
    """Texts by name; those that are the same before and after once, under the column's name."""
    merged: dict[str, str] = {}
    for name, text in texts.items():
        column, _, when = name.rpartition(" ")
        other = texts.get(f"{column} {'after' if when == 'before' else 'before'}")
        merged[column if other == text else name] = text
    return merged


def _texts(run: Run, items: set[str]) -> Texts:
    """What a result has on some items: an import's columns or a run's prompt, and the judge's text.

    Also under the task "", for a file whose name is the task's.
    """
    wanted, texts = pa.array(sorted(items), pa.string()), Texts()

    def keep(task: Any, item: str, name: str, text: Any) -> None:
        for key in ((task or "", item), ("", item)):
            texts.setdefault(key, {}).setdefault(name, str(text))

    def some(table: pa.Table) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = table.filter(pc.is_in(table["item_id"], wanted)).to_pylist()
        return rows

    if run.items is not None:
        for row in some(run.items):
            keep(row.get("task"), row["item_id"], row["column"], row["text"])
    log = some(run.log.select(["task", "item_id", "prompt_id", "raw_text"]))
    if run.prompts is not None:
        known = dict(
            zip(run.prompts["prompt_id"].to_pylist(), run.prompts["text"].to_pylist(), strict=True)
        )
        for row in log:
            if (text := known.get(row["prompt_id"])) is not None:
                keep(row["task"], row["item_id"], "prompt", text)
    for row in log:
        if row["raw_text"]:
            keep(row["task"], row["item_id"], ANSWER, row["raw_text"])
    return texts
