"""What ``judgesense check RUBRIC --dry-run`` says: the prompts, their cost, what they settle."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.compute as pc

from judgesense.checking.fields import in_each_task
from judgesense.checking.options import RubricOptions
from judgesense.checking.rubric import PARAPHRASES, asked, read_tasks, reference_of
from judgesense.log.schema import ATTACK, DAMAGE, HARMLESS
from judgesense.pipeline.dry_run import describe, dry_run
from judgesense.pipeline.first_prompts import FEW
from judgesense.text import join


def planned(
    rubric: Path,
    data: Path,
    judge: Any,
    options: RubricOptions,
    judge_options: Mapping[str, Any],
    note: Callable[[str], None],
) -> str:
    """What a check sends, what that costs at most and what it can settle, in lines; nothing is
    loaded or judged.

    Wordings that are yet to be proposed count as if all could be used. Raises JudgeSenseError for
    bad input.
    """
    from judgesense_dataset.rubric import read_wordings

    spec, options, settings = asked(judge, options, judge_options)
    read = read_tasks(rubric, data, options, note)
    base, lines = read.tasks[0], list[str]()
    place = Path(options.wordings or rubric.with_suffix(".wordings.yaml"))
    entry, n = base, PARAPHRASES if options.paraphrases is None else options.paraphrases
    if options.wordings is not None or place.exists():
        entry = read_wordings(place, base)
    elif n:
        (own,) = base.templates
        proposed = (replace(own, template_id=f"{n}", text=f"{n} {own.text}") for n in range(n))
        entry = replace(base, templates=(own, *proposed))
        lines.append(f"first, {options.paraphraser or judge} is asked for {n} other wordings")
    judged = reference_of(read, in_each_task(entry, read.tasks), {}, options, settings, note)
    prompts = judged.selected(settings).asked
    added = Counter[str]()
    if "variant_class" in prompts.column_names:
        kinds = prompts.group_by(["variant_class"]).aggregate([("prompt_id", "count_distinct")])
        added.update(
            {row["variant_class"]: row["prompt_id_count_distinct"] for row in kinds.to_pylist()}
        )
    total = len(pc.unique(prompts["prompt_id"]))
    also = [f"{added[name]} {what}" for name, what in _ADDED.items() if added[name]]
    lines.append(
        f"{min(FEW, total)} prompts are sent first; if they can be read, "
        f"{max(0, total - FEW)} others follow" + (f", of which {join(also)}" if also else "")
    )
    return "\n".join([*lines, *describe(dry_run([spec], judged, settings))])


_ADDED = {ATTACK: "with attacks", DAMAGE: "on damaged outputs", HARMLESS: "on harmless edits"}
"""Classes of variants -> what a dry run calls their prompts."""
