"""A fuser: a judge that reads the panel's ratings with their reasons and gives the final rating.

"All Prompts Are Created Equal?" (Bhat and Varma), section 5, "LLM-as-a-Fuser". The paper prints no
prompt for it; this wording is the project's. Every judge of the panel sees its own rating under the
base wording and gives its reason.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from judgesense.benchmark import Benchmark
from judgesense.log.folder import read_run
from judgesense.log.view import view
from judgesense.studies.common.study import judged
from judgesense.studies.paraphrase_robustness.grid import Grid, Note, Scores, as_scores, mean_cost
from judgesense.studies.paraphrase_robustness.strategies import FUSER, Ballot, Outcome
from judgesense.tasks import Item, Template
from judgesense_dataset.pairing import build
from judgesense_dataset.templates import TaskTemplates
from local_judges.responder import Question, respond

REASON_TOKENS = 48
REASON = (
    "{prompt}\n\nYou have rated it {score}. Do not rate it again: say in one sentence why you gave "
    "this rating."
)
WORDING = (
    "Several judges have rated a text by the same instruction. The instruction, the text, and each "
    "judge's rating with its reason follow. Weigh the reasons rather than the number of votes, and "
    "give the final rating on the same scale. Answer with the number only."
)
_LAYOUT = "{instruction}\n\n{rated}\n\n{panel}\n\nFinal rating:"

Key = tuple[str, str]
"""An attribute and an item."""


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
    had a rating to read and decided. Like any run, reasons and fused ratings are judged once and
    resumed.
    """
    if not ballots:
        return {}
    attributes = grid.plan.attributes
    base = {attribute.templates.templates[0].template_id for attribute in attributes.values()}
    table = read_run(out / "grid").prompts
    prompts = {
        (row["task"], row["item_id"]): row["text"]
        for row in ([] if table is None else table.to_pylist())
        if row["template_id"] in base
    }
    panels: dict[Key, list[str]] = {
        (name, item): [] for name, ballot in ballots.items() for item in ballot.items
    }
    costs = dict.fromkeys(ballots, np.zeros(2))
    for at, judge in enumerate(judges):
        ratings = {
            (name, item): score
            for name, ballot in ballots.items()
            for item, score in _base_scores(grid.of(name)[at], ballot)
        }
        if not ratings:
            continue
        questions = [
            Question(
                "/".join(key),
                "reason",
                REASON.format_map({"prompt": prompts[key], "score": f"{score:g}"}),
            )
            for key, score in ratings.items()
        ]
        folder, seed = out / "fuser" / f"reasons-{at + 1}", grid.plan.seed
        log = respond(judge, questions, folder, max_tokens=REASON_TOKENS, seed=seed, note=note)
        reasons = {row["item_id"]: row for row in log.to_pylist()}
        for key, score in ratings.items():
            row = reasons["/".join(key)]
            reason = " ".join((row["text"] or "(no reason given)").split())
            panels[key].append(f"Judge {at + 1}: {score:g}. {reason}")
            tokens = (row["tokens"] or 0) + (row["input_tokens"] or 0)
            price = np.nan if row["cost_usd"] is None else row["cost_usd"]
            costs[key[0]] = costs[key[0]] + np.array([tokens, price])
    benchmark = _benchmark(grid, ballots, prompts, panels)
    digest = hashlib.sha256(json.dumps([[*k, v] for k, v in panels.items()]).encode()).hexdigest()
    identity = {"study": "paraphrase-robustness, fuser", "panel": digest}
    folder = out / "fuser" / "final"
    judged([fuser], benchmark, identity, grid.plan.settings(), folder, note)
    outcomes = {}
    for answers in view(read_run(folder).log).judged:
        name, rows = answers.task.name, answers.as_rows()
        ballot = ballots[name]
        place = {item: at for at, item in enumerate(rows.item)}
        scores = as_scores(rows, answers.task.labels)[[place[item] for item in ballot.items]]
        scores[[not panels[name, item] for item in ballot.items]] = np.nan
        if not np.isnan(scores).all():
            cost = ballot.costs.sum(axis=0) + costs[name] / len(ballot.items) + mean_cost(rows)
            calls = 2 * len(judges) + 1
            outcomes[name] = ballot.outcome(FUSER, ballot.shares(scores), calls, cost)
    return outcomes


def _base_scores(cell: Scores, ballot: Ballot) -> Iterator[tuple[str, float]]:
    """The items of a ballot that a judge rated under the base wording, with its ratings."""
    for item, score in zip(ballot.items, cell.base[cell.rows(ballot.items)], strict=True):
        if np.isfinite(score):
            yield item, score


def _benchmark(
    grid: Grid,
    ballots: Mapping[str, Ballot],
    prompts: Mapping[Key, str],
    panels: Mapping[Key, Sequence[str]],
) -> Benchmark:
    """What the fuser rates: each text with the panel's ratings and reasons."""
    templates, items = {}, []
    for name, ballot in ballots.items():
        task = grid.plan.attributes[name].templates.task
        label_map = MappingProxyType({label: label for label in task.labels})
        template = Template(f"{name}-fuser", name, WORDING, _LAYOUT, label_map)
        templates[name] = TaskTemplates(task, (template,))
        items += [
            Item(
                item,
                name,
                {"rated": prompts[name, item], "panel": "\n".join(panels[name, item])},
                f"{ballot.gold[row]:g}",
                ballot.clusters[row],
            )
            for row, item in enumerate(ballot.items)
        ]
    return build(templates, items, design="full")
