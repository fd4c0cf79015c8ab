"""A fuser: a judge that reads the panel's ratings with their reasons and gives the final one.

"All Prompts Are Created Equal?" (Bhat and Varma), section 5, "LLM-as-a-Fuser". The paper prints no
prompt for it; the wordings here are this project's. Every judge of the panel is shown its own
rating under the base wording and asked for its reason; the fuser is asked in two wordings.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from judgesense.benchmark import Benchmark
from judgesense.decisions import read_log
from judgesense.run_folder import PROMPTS_FILE
from judgesense.studies.common.result import judged
from judgesense.studies.paraphrase_robustness.grid import Grid, Scores
from judgesense.studies.paraphrase_robustness.mitigations import (
    FUSER,
    SINGLE,
    Outcome,
    aligned,
    exact,
    near,
)
from judgesense.tasks import Item, Template
from judgesense.text import join
from judgesense_dataset.pairing import build
from judgesense_dataset.templates import TaskTemplates

REASON_TOKENS = 48
REASON = (
    "{prompt}\n\nYou have rated it {score}. Do not rate it again: say in one sentence why you gave "
    "this rating."
)
WORDINGS = (
    "Several judges have rated a text by the same instruction. The instruction, the text, and each "
    "judge's rating with its reason follow. Weigh the reasons rather than the number of votes, and "
    "give the final rating on the same scale. Answer with the number only.",
    "Below stand an instruction, a text, and what several judges answered and why. Decide on the "
    "final rating, on the scale of the instruction: let the better reasons count, not the more "
    "frequent answer. Answer with the number only.",
)
_LAYOUT = "{instruction}\n\n{rated}\n\n{panel}\n\nFinal rating:"


@dataclass(frozen=True)
class _Reason:
    text: str
    tokens: int
    dollars: float | None


def fuse(
    fuser: Any,
    judges: Sequence[Any],
    grid: Grid,
    out: Path,
    tolerance: float,
    note: Callable[[str], None],
) -> list[Outcome]:
    """The fuser's outcome on every attribute; what is asked lies in ``DIR/fuser``.

    ``judges`` are those of the grid, in its order. The fuser is measured on the items on which it
    had a rating to read and decided in both wordings; an attribute without one has no outcome.
    Reasons and fuser's answers are judged once and taken up again like any run.
    """
    cells = {name: aligned(grid.of(name)) for name in grid.plan.attributes}
    cells = {name: own for name, own in cells.items() if own and own[0].items}
    if not cells:
        return []
    prompts = _base_prompts(out / "grid", grid)
    reasons = [
        _reasons(
            judge, at, cells, prompts, out / "fuser" / f"reasons-{at + 1}", grid.plan.seed, note
        )
        for at, judge in enumerate(judges)
    ]
    panels = {
        (name, item): "\n".join(
            f"Judge {at + 1}: {cell.base[row]:g}. {reasons[at][name, item].text}"
            for at, cell in enumerate(own)
            if np.isfinite(cell.base[row])
        )
        for name, own in cells.items()
        for row, item in enumerate(own[0].items)
    }
    digest = hashlib.sha256(json.dumps([[*k, v] for k, v in panels.items()]).encode()).hexdigest()
    judged(
        [fuser],
        lambda: _benchmark(cells, prompts, panels),
        {"study": "paraphrase-robustness, fuser", "panel": digest},
        grid.plan.settings(),
        out / "fuser" / "final",
        note,
    )
    rows = {
        (row["task"], row["item_id"], row["template_id"]): row
        for row in read_log(out / "fuser" / "final").to_pylist()
    }
    return [
        found
        for name, own in cells.items()
        if (found := _outcome(name, own, rows, reasons, tolerance)) is not None
    ]


def _base_prompts(run: Path, grid: Grid) -> dict[tuple[str, str], str]:
    base = {a.templates.templates[0].template_id for a in grid.plan.attributes.values()}
    table = pq.read_table(run / PROMPTS_FILE, columns=["task", "item_id", "template_id", "text"])
    return {
        (row["task"], row["item_id"]): row["text"]
        for row in table.to_pylist()
        if row["template_id"] in base
    }


def _reasons(
    judge: Any,
    at: int,
    cells: Mapping[str, Sequence[Scores]],
    prompts: Mapping[tuple[str, str], str],
    out: Path,
    seed: int,
    note: Callable[[str], None],
) -> dict[tuple[str, str], _Reason]:
    """Why a judge gave its rating of each item that it decided under the base wording."""
    from local_judges.responder import Question, respond

    asked = {
        (name, item): Question(
            f"{name}/{item}",
            "reason",
            REASON.format_map({"prompt": prompts[name, item], "score": f"{own[at].base[row]:g}"}),
        )
        for name, own in cells.items()
        for row, item in enumerate(own[at].items)
        if np.isfinite(own[at].base[row])
    }
    if not asked:
        return {}
    log = respond(judge, asked.values(), out, max_tokens=REASON_TOKENS, seed=seed, note=note)
    columns = log.select(["item_id", "text", "tokens", "input_tokens", "cost_usd"]).to_pylist()
    said = {row["item_id"]: row for row in columns}
    return {
        key: _Reason(
            " ".join((said[question.item_id]["text"] or "(no reason given)").split()),
            (said[question.item_id]["tokens"] or 0) + (said[question.item_id]["input_tokens"] or 0),
            said[question.item_id]["cost_usd"],
        )
        for key, question in asked.items()
    }


def _benchmark(
    cells: Mapping[str, Sequence[Scores]],
    prompts: Mapping[tuple[str, str], str],
    panels: Mapping[tuple[str, str], str],
) -> Benchmark:
    templates, items = {}, []
    for name, own in cells.items():
        task = own[0].attribute.templates.task
        same = MappingProxyType({label: label for label in task.labels})
        templates[name] = TaskTemplates(
            task,
            tuple(
                Template(f"{name}-fuser-{number}", name, text, _LAYOUT, same)
                for number, text in enumerate(WORDINGS, 1)
            ),
        )
        items += [
            Item(
                item, name, {"rated": prompts[name, item], "panel": panels[name, item]},
                f"{own[0].gold[row]:g}", own[0].clusters[row],
            )
            for row, item in enumerate(own[0].items)
        ]  # fmt: skip
    return build(templates, items, design="full")


def _outcome(
    name: str,
    cells: Sequence[Scores],
    rows: Mapping[tuple[str, str, str], Mapping[str, Any]],
    reasons: Sequence[Mapping[tuple[str, str], _Reason]],
    tolerance: float,
) -> Outcome | None:
    """On the items on which it had a rating to read and decided in both wordings; None without."""
    first = cells[0]
    ids = [f"{name}-fuser-{number}" for number in range(1, len(WORDINGS) + 1)]
    own = [[rows[name, item, template] for template in ids] for item in first.items]
    rated = [any(np.isfinite(cell.base[at]) for cell in cells) for at in range(len(own))]
    decided = [
        at
        for at, pair in enumerate(own)
        if rated[at] and all(row["status"] == "ok" for row in pair)
    ]
    if not decided:
        return None
    scores = np.array([[float(row["decision"]) for row in own[at]] for at in decided])
    gold, human = first.gold[decided], first.human[decided]
    right = exact(scores, gold)
    given = [mine[name, item] for mine in reasons for item in first.items if (name, item) in mine]
    final = [row for pair in own for row in pair]
    n = len(first.items)
    spent = [one.dollars for one in given] + [row["cost_usd"] for row in final]
    dollars = None
    if None not in spent and all(cell.dollars is not None for cell in cells):
        dollars = (
            sum(cell.dollars or 0.0 for cell in cells)
            + sum(one.dollars or 0.0 for one in given) / n
            + float(np.mean([row["cost_usd"] for row in final]))
        )
    read = [(row["input_tokens"] or 0) + (row["output_tokens"] or 0) for row in final]
    return Outcome(
        FUSER, name, first.attribute.verifiability, right.mean(axis=1),
        near(scores, human, tolerance).mean(axis=1), tuple(first.items[at] for at in decided),
        tuple(first.clusters[at] for at in decided),
        float(np.ptp(right.mean(axis=0))), 2 * len(cells) + 1,
        sum(cell.tokens for cell in cells) + sum(one.tokens for one in given) / n
        + float(np.mean(read)),
        dollars,
    )  # fmt: skip


def undecided(tried: Sequence[Outcome]) -> list[str]:
    """What the fuser did not decide, in sentences: ``tried`` are the outcomes of all strategies."""
    fused = {one.attribute: len(one.items) for one in tried if one.strategy == FUSER}
    lacking: dict[tuple[int, int], list[str]] = {}
    for one in tried:
        n = len(one.items)
        if one.strategy == SINGLE and (m := fused.get(one.attribute, 0)) < n:
            lacking.setdefault((m, n), []).append(one.attribute)
    return [
        f"{join(names)}: the fuser had a rating to read and decided in both wordings on "
        + (
            f"{m} of {n} texts, on which it is compared"
            if m
            else f"none of {n} texts: not measured"
        )
        for (m, n), names in lacking.items()
    ]
