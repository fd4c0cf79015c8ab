"""How many outputs a check of a rubric makes wrong on purpose."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pyarrow.compute as pc

from judgesense.benchmark import Benchmark
from judgesense.errors import JudgeSenseError
from judgesense.log.schema import ATTACK, DAMAGE, HARMLESS
from judgesense.pipeline import Settings
from judgesense.pipeline.data import DataReference, add_damage


def number_of_damaged(choice: int | str | None) -> int | None:
    """How many outputs ``--damage`` asks for: 0 for ``none``; None leaves it to the check.

    Raises JudgeSenseError for anything else.

    >>> number_of_damaged("none"), number_of_damaged("60"), number_of_damaged(None)
    (0, 60, None)
    """
    if choice is None:
        return None
    text = str(choice).strip().lower()
    if text == "none":
        return 0
    if not text.isdecimal() or len(text) > 6:
        raise JudgeSenseError(
            f"damage is {choice!r}; give the number of outputs to make wrong on purpose, or none"
        )
    return int(text)


def with_damage(
    data: DataReference, settings: Settings, n: int | None, note: Callable[[str], None]
) -> DataReference:
    """The data with n outputs made wrong on purpose; by default as many as add at most a third
    more prompts, and none where these are too few to tell anything.

    The benchmark is that of the reference from now on. Raises JudgeSenseError where n is stated and
    no output can be changed; by default a note says why, which the report repeats.
    """
    from judgesense_dataset.damage_design import FEWEST, MOST

    if n == 0:
        return data
    plain = data.selected(settings)
    n_asked = settings.repeats * _n_prompts(plain, ATTACK)
    task = next(iter(plain.tasks.values()))
    # Half as many harmless edits come with them, and a choice between two has two orders.
    fitting = n_asked // 3 * 2 // (3 * len(task.orders))
    chosen = min(MOST, fitting) if n is None else n
    data = replace(data, benchmark=plain)
    if n is None and chosen < FEWEST:
        why = f"{n_asked} prompts are too few to add damage by default: add --damage {FEWEST}"
        note(f"damage is not tried; {why}")
        return replace(data, benchmark=replace(plain, damage={"why": why}))
    tried = add_damage(data, chosen)
    try:
        benchmark = tried.with_damage(plain, settings, unnamed=n is not None)
    except JudgeSenseError as error:
        if n is not None:
            raise
        note(f"damage is not tried: {error}")
        return replace(data, benchmark=replace(plain, damage={"why": str(error)}))
    counts = dict.fromkeys((DAMAGE, HARMLESS), 0)
    for row in pc.value_counts(benchmark.prompts["variant_class"]).to_pylist():
        counts[row["values"]] = row["counts"] // len(task.orders)
    good = benchmark.damage["wins"]
    note(
        f"{counts[DAMAGE]} copies of outputs{benchmark.damage['where']} made wrong on purpose and "
        f"{counts[HARMLESS]} with harmless edits add "
        f"{_n_prompts(benchmark) - _n_prompts(plain)} prompts to {n_asked}; leave them out with "
        f"--damage none{f'. {good} counts as good' if good else ''}"
    )
    return replace(tried, benchmark=benchmark)


def _n_prompts(benchmark: Benchmark, without: str | None = None) -> int:
    prompts = benchmark.prompts
    if without is not None and "variant_class" in prompts.column_names:
        kept = pc.fill_null(pc.not_equal(prompts["variant_class"], without), True)
        prompts = prompts.filter(kept)
    return len(pc.unique(prompts["prompt_id"]))
