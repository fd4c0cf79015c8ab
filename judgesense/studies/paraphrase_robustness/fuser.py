"""A fuser: a judge that reads the panel's ratings with their reasons and gives the final rating.

"All Prompts Are Created Equal?" (Bhat and Varma), section 5, "LLM-as-a-Fuser". The paper prints no
prompt for it; these wordings are this project's. Every judge of the panel sees its own rating under
the base wording and gives its reason; the fuser is asked in two wordings.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from judgesense.benchmark import Benchmark
from judgesense.decisions.rows import Answers
from judgesense.decisions.view import view
from judgesense.run_folder.folder import read_run
from judgesense.studies.common.result import judged
from judgesense.studies.paraphrase_robustness.grid import (
    Grid,
    Note,
    Scores,
    as_scores,
    mean_cost,
)
from judgesense.studies.paraphrase_robustness.mitigations import (
    FUSER,
    SINGLE,
    Outcome,
    add_costs,
    aligned,
    exact,
    near,
    times,
)
from judgesense.tasks import Item, Template
from judgesense.text import join
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


@dataclass(frozen=True)
class _Reason:
    text: str
    tokens: int
    dollars: float | None


Panel = Mapping[str, Sequence[Scores]]
"""The aligned configurations of an attribute, by its name."""


def fuse(
    fuser: Any, judges: Sequence[Any], grid: Grid, out: Path, tolerance: float, note: Note
) -> list[Outcome]:
    """The fuser's outcome on every attribute; its run is ``DIR/fuser``.

    ``judges`` are those of the grid, in its order. The fuser is measured on the items on which it
    had a rating to read and decided in both wordings; an attribute without one has no outcome.
    Like any run, reasons and fused ratings are judged once and resumed.
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
    final = {s.task.name: s.answers() for s in view(read_run(out / "fuser" / "final").log).judged}
    found = (_outcome(own, final[name], reasons, tolerance) for name, own in cells.items())
    return [one for one in found if one is not None]


def _base_prompts(run: Path, grid: Grid) -> dict[tuple[str, str], str]:
    base = {a.templates.templates[0].template_id for a in grid.plan.attributes.values()}
    prompts = read_run(run).prompts
    return {
        (row["task"], row["item_id"]): row["text"]
        for row in ([] if prompts is None else prompts.to_pylist())
        if row["template_id"] in base
    }


def _reasons(
    judge: Any,
    at: int,
    cells: Panel,
    prompts: Mapping[tuple[str, str], str],
    out: Path,
    seed: int,
    note: Note,
) -> dict[tuple[str, str], _Reason]:
    """A judge's reason for its rating of each item that it decided under the base wording."""
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
    said = {row["item_id"]: row for row in log.to_pylist()}
    return {
        key: _Reason(
            " ".join((row["text"] or "(no reason given)").split()),
            (row["tokens"] or 0) + (row["input_tokens"] or 0),
            row["cost_usd"],
        )
        for key, question in asked.items()
        for row in (said[question.item_id],)
    }


def _benchmark(
    cells: Panel,
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
    cells: Sequence[Scores],
    final: Answers,
    reasons: Sequence[Mapping[tuple[str, str], _Reason]],
    tolerance: float,
) -> Outcome | None:
    """The outcome on items with a rating to read and decided in both wordings; None without."""
    first = cells[0]
    name, n = first.attribute.name, len(first.items)
    row = {key: at for at, key in enumerate(zip(final.item, final.template, strict=True))}
    rows = np.array(
        [[row[item, f"{name}-fuser-{number}"] for number in (1, 2)] for item in first.items]
    )
    scores = as_scores(final, first.attribute.templates.task.labels)[rows]
    rated = np.isfinite([cell.base for cell in cells]).any(axis=0)
    decided = np.flatnonzero(rated & np.isfinite(scores).all(axis=1))
    if not len(decided):
        return None
    right = exact(scores[decided], first.gold[decided])
    given = [mine[name, item] for mine in reasons for item in first.items if (name, item) in mine]
    panel = add_costs([(cell.tokens, cell.dollars) for cell in cells])
    asked = add_costs([(one.tokens, one.dollars) for one in given])
    tokens, dollars = add_costs([panel, times(asked, 1 / n), mean_cost(final)])
    return Outcome(
        FUSER, name, first.attribute.verifiability, right.mean(axis=1),
        near(scores[decided], first.human[decided], tolerance).mean(axis=1),
        tuple(first.items[at] for at in decided), tuple(first.clusters[at] for at in decided),
        float(np.ptp(right.mean(axis=0))), 2 * len(cells) + 1, tokens, dollars,
    )  # fmt: skip


def undecided(tried: Sequence[Outcome]) -> list[str]:
    """Sentences on the texts that the fuser left undecided; ``tried`` holds every strategy."""
    fused = {one.attribute: len(one.items) for one in tried if one.strategy == FUSER}
    lacking: dict[tuple[int, int], list[str]] = {}
    for one in tried:
        n = len(one.items)
        if one.strategy == SINGLE and (m := fused.get(one.attribute, 0)) < n:
            lacking.setdefault((m, n), []).append(one.attribute)
    return [
        f"{join(names)}: the fuser had a rating to read and decided in both wordings on "
        + (
            f"{m} of {n} texts, and is compared on these"
            if m
            else f"none of {n} texts, so it is not measured"
        )
        for (m, n), names in lacking.items()
    ]
