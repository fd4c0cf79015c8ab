"""A fuser: a judge that reads the panel's ratings with their reasons and gives the final rating.

"All Prompts Are Created Equal?" (Bhat and Varma), section 5, "LLM-as-a-Fuser". The paper prints no
prompt for it; these wordings are this project's. Every judge of the panel sees its own rating under
the base wording and gives its reason; the fuser is asked in two wordings.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from judgesense.benchmark import Benchmark
from judgesense.decisions.view import view
from judgesense.run_folder.folder import read_run
from judgesense.studies.common.study import judged
from judgesense.studies.paraphrase_robustness.grid import Grid, Note, Scores, as_scores, mean_cost
from judgesense.studies.paraphrase_robustness.strategies import (
    FUSER,
    Ballot,
    Outcome,
    add_costs,
    times,
)
from judgesense.tasks import Item, Template
from judgesense_dataset.pairing import build
from judgesense_dataset.templates import TaskTemplates
from local_judges.responder import Question, respond

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

Key = tuple[str, str]
"""An attribute and an item."""

Row = Mapping[str, Any]


def fuse(
    fuser: Any,
    judges: Sequence[Any],
    grid: Grid,
    ballots: Mapping[str, Ballot],
    out: Path,
    note: Note,
) -> dict[str, Outcome]:
    """The fuser's outcome on every attribute with a ballot; its run is ``DIR/fuser/final``.

    ``judges`` are those of the grid, in its order. The fuser is measured on the items on which it
    had a rating to read and decided in both wordings. Like any run, reasons and fused ratings are
    judged once and resumed.
    """
    if not ballots:
        return {}
    prompts = _base_prompts(out / "grid", grid)
    ratings: list[dict[Key, float]] = []
    reasons: list[dict[Key, Row]] = []
    for at, judge in enumerate(judges):
        base = {(name, item): score for name, ballot in ballots.items()
                for item, score in _base(grid.of(name)[at], ballot).items()}  # fmt: skip
        folder = out / "fuser" / f"reasons-{at + 1}"
        ratings.append(base)
        reasons.append(_reasons(judge, base, prompts, folder, grid.plan.seed, note))
    panels = {
        (name, item): "\n".join(
            f"Judge {at + 1}: {base[name, item]:g}. {_reason(reasons[at][name, item])}"
            for at, base in enumerate(ratings)
            if (name, item) in base
        )
        for name, ballot in ballots.items()
        for item in ballot.items
    }
    digest = hashlib.sha256(json.dumps([[*k, v] for k, v in panels.items()]).encode()).hexdigest()
    judged(
        [fuser],
        lambda: _benchmark(grid, ballots, prompts, panels),
        {"study": "paraphrase-robustness, fuser", "panel": digest},
        grid.plan.settings(),
        out / "fuser" / "final",
        note,
    )
    final = {s.task.name: s.answers() for s in view(read_run(out / "fuser" / "final").log).judged}
    found = {}
    for name, ballot in ballots.items():
        own, n = final[name], len(ballot.items)
        row = {key: at for at, key in enumerate(zip(own.item, own.template, strict=True))}
        rows = np.array(
            [[row[item, f"{name}-fuser-{number}"] for number in (1, 2)] for item in ballot.items]
        )
        scores = as_scores(own, grid.plan.attributes[name].templates.task.labels)[rows]
        rated = np.array([bool(panels[name, item]) for item in ballot.items])
        scores[~rated | np.isnan(scores).any(axis=1)] = np.nan
        if np.isnan(scores).all():
            continue
        right, close = ballot.shares(scores)
        shares = right.mean(axis=1), close.mean(axis=1)
        given = [r[name, item] for r in reasons for item in ballot.items if (name, item) in r]
        asked = add_costs([(_tokens(each), each["cost_usd"]) for each in given])
        cost = add_costs([add_costs(ballot.costs), times(asked, 1 / n), mean_cost(own)])
        gap = float(np.ptp(np.nanmean(right, axis=0)))
        found[name] = ballot.outcome(FUSER, shares, 2 * len(judges) + 1, cost, gap)
    return found


def _base(cell: Scores, ballot: Ballot) -> dict[str, float]:
    """A judge's rating under the base wording of each item that it decided."""
    scores = cell.base[cell.rows(ballot.items)]
    return {item: float(s) for item, s in zip(ballot.items, scores, strict=True) if np.isfinite(s)}


def _base_prompts(run: Path, grid: Grid) -> dict[Key, str]:
    base = {a.templates.templates[0].template_id for a in grid.plan.attributes.values()}
    prompts = read_run(run).prompts
    return {
        (row["task"], row["item_id"]): row["text"]
        for row in ([] if prompts is None else prompts.to_pylist())
        if row["template_id"] in base
    }


def _reasons(
    judge: Any, base: Mapping[Key, float], prompts: Mapping[Key, str], out: Path, seed: int,
    note: Note,
) -> dict[Key, Row]:  # fmt: skip
    """The response log's row of a judge's reason for each of its ratings."""
    if not base:
        return {}
    questions = [
        Question(
            f"{name}/{item}",
            "reason",
            REASON.format_map({"prompt": prompts[name, item], "score": f"{score:g}"}),
        )
        for (name, item), score in base.items()
    ]
    log = respond(judge, questions, out, max_tokens=REASON_TOKENS, seed=seed, note=note)
    rows = {row["item_id"]: row for row in log.to_pylist()}
    return {(name, item): rows[f"{name}/{item}"] for name, item in base}


def _reason(row: Row) -> str:
    return " ".join((row["text"] or "(no reason given)").split())


def _tokens(row: Row) -> int:
    return (row["tokens"] or 0) + (row["input_tokens"] or 0)


def _benchmark(
    grid: Grid,
    ballots: Mapping[str, Ballot],
    prompts: Mapping[Key, str],
    panels: Mapping[Key, str],
) -> Benchmark:
    templates, items = {}, []
    for name, ballot in ballots.items():
        task = grid.plan.attributes[name].templates.task
        same = MappingProxyType({label: label for label in task.labels})
        wordings = tuple(
            Template(f"{name}-fuser-{number}", name, text, _LAYOUT, same)
            for number, text in enumerate(WORDINGS, 1)
        )
        templates[name] = TaskTemplates(task, wordings)
        items += [
            Item(
                item, name, {"rated": prompts[name, item], "panel": panels[name, item]},
                f"{ballot.gold[row]:g}", ballot.clusters[row],
            )
            for row, item in enumerate(ballot.items)
        ]  # fmt: skip
    return build(templates, items, design="full")
