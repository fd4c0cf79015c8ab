"""Coherence from SummEval (Fabbri et al. 2021): summaries that experts have rated."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from judgesense.errors import JudgeSenseError
from judgesense.tasks import Item
from judgesense_dataset.sources import loader


def collect(reader: loader.Reader, n: int | None, seed: int) -> loader.Collected:
    """Draw n summaries, the same number at each gold level, without their article (as the paper).

    Gold is the mean of the expert ratings rounded to the nearest of 1 to 5 (halves up). Repeated
    summaries are dropped first. The cluster is the article; ``system_id`` is the position of the
    summarising system in the set's lists, which do not name systems. If ``n`` is None, every
    distinct summary is an item, and levels are unbalanced.
    """
    columns = {"machine_summaries": list, "coherence": list, "id": str}
    table = reader.split("mteb/summeval", None, "test", columns, "mit")
    summaries: list[Item] = []
    articles: set[str] = set()
    for place, row in table:
        article = loader.clean_text(row["id"], place, "id")
        if article in articles:
            raise JudgeSenseError(f"{place}, column id: {article!r} occurs twice")
        articles.add(article)
        rated = zip(row["machine_summaries"], _ratings(row, place), strict=True)
        for system, (text, mean) in enumerate(rated):
            summaries.append(
                table.item(
                    f"summeval-{article}-{system:02d}",
                    "coherence",
                    {"summary": loader.clean_text(text, place, "machine_summaries")},
                    str(math.floor(mean + 0.5)),
                    f"summeval-{article}",
                    f"summeval-system-{system:02d}",
                )
            )
    summaries, notes = loader.drop_repeated(summaries, "summaries")
    notes.append(
        "Gold levels are expert means rounded to the nearest level. Systems are numbered by their "
        "position in the set's lists, which do not name them. The article is not shown."
    )
    rng = loader.generator(seed, "summeval")
    return loader.all_or_drawn(summaries, notes, n, tuple("12345"), rng, "summaries")


def _ratings(row: Mapping[str, Any], place: str) -> list[float]:
    means: list[float] = row["coherence"]
    if len(means) != len(row["machine_summaries"]):
        raise JudgeSenseError(
            f"{place}: {len(row['machine_summaries'])} machine_summaries but {len(means)} ratings"
        )
    for mean in means:
        if not isinstance(mean, int | float) or not 1 <= mean <= 5:
            raise JudgeSenseError(
                f"{place}, column coherence: an expert mean must lie between 1 and 5, got {mean!r}"
            )
    return means


SOURCE = loader.DataSource("coherence", "SummEval", collect, ("fabbri2021summeval",))
