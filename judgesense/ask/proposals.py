"""The wordings that a model proposes for a search."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from judgesense.ask.plan import Plan
from judgesense.ask.wordings import is_wordings_file, paraphrases_in
from judgesense.errors import JudgeSenseError
from judgesense.files.disk import write_text
from judgesense.files.documents import read_json
from judgesense.log.run_folder import RunFolder
from judgesense.tasks import Template
from judgesense_dataset.paraphrase import paraphrase, write_candidates
from judgesense_dataset.templates import TaskTemplates
from local_judges.registry import load_writer

PROPOSALS = 4
"""Paraphrases to ask of a model."""


def proposals(plan: Plan, run: RunFolder) -> tuple[list[Template], float]:
    """The wordings that a model proposes, kept in the folder, and what they cost of the budget."""
    paraphraser, note = plan.options.paraphraser, plan.options.note
    if paraphraser is None or is_wordings_file(paraphraser):
        return [], 0.0
    place, cost_file = run.folder / "paraphrases.yaml", run.folder / "paraphrases.json"
    base = TaskTemplates(plan.entry.task, plan.entry.templates[:1])
    if not cost_file.exists():
        share, usd = 0.2 * plan.total, plan.budget.usd
        # Each proposal can be asked for five times, and is checked.
        n = PROPOSALS if usd else min(PROPOSALS, int(share / 10))
        if n < 1:
            note("the budget is too small for the paraphraser to propose wordings")
            return [], 0.0
        writer = paraphraser
        if isinstance(paraphraser, (str, Path)):
            # A token per two characters of the rubric, and some more.
            n_tokens = max(512, 24 + len(base.templates[0].text) // 2)
            settings = {"temperature": 0.7, "seed": plan.options.seed, "max_tokens": n_tokens}
            settings = {**plan.settings_of(paraphraser), **settings}
            budget = {"max_cost": share} if usd else {}
            writer = load_writer(paraphraser, system_prompt="", **settings, **budget)
        try:
            proposed = paraphrase(base, writer, n, note=note)
            answered = proposed.asked - proposed.dropped["empty"]
            if not answered:
                raise JudgeSenseError(
                    f"the paraphraser {proposed.judge} answered none of {proposed.asked} requests: "
                    "check that it is reachable, choose another one, or leave out --paraphraser"
                )
            votes = len(proposed.candidates) + proposed.dropped["called different by the judge"]
            spent = getattr(writer, "spent", 0.0) if usd else proposed.asked + votes
        finally:
            if writer is not paraphraser:
                writer.close()
        if proposed.candidates:
            place.unlink(missing_ok=True)
            write_candidates(place, base, proposed, unread=True)
        write_text(cost_file, json.dumps({"by": name_of(paraphraser), "spent": spent}))
        usable = f"{len(proposed.candidates)} of {proposed.asked}"
        note(f"{usable} paraphrases by {proposed.judge} can be used")
    record = read_json(cost_file)
    if (by := record.get("by")) != name_of(paraphraser):
        raise JudgeSenseError(
            f"{run.folder} has proposals by {by}: pass it as --paraphraser, or use another --out"
        )
    templates = paraphrases_in(place, plan.entry) if place.exists() else []
    return templates, float(record["spent"])


def name_of(paraphraser: Any) -> str:
    """The paraphraser as a record has it: what it is called."""
    if isinstance(paraphraser, (str, Path)):
        return str(paraphraser)
    return str(getattr(paraphraser, "name", getattr(paraphraser, "__name__", type(paraphraser))))
