"""Coherence from SummEval (Fabbri et al. 2021): a summary and the experts' mean rating."""

from __future__ import annotations

import math

from judgesense.errors import JudgeSenseError
from judgesense.tasks import Item
from judgesense_dataset.sources.loader import (
    Collected,
    Reader,
    clean_text,
    draw,
    drop_repeated,
    generator,
    quotas,
)

HUB_ID = "mteb/summeval"
TASK = "coherence"
LEVELS = ("1", "2", "3", "4", "5")
COLUMNS = {"machine_summaries": list, "coherence": list, "id": str}


def collect(reader: Reader, n: int | None, seed: int) -> Collected:
    """n summaries, equally many at each gold level; the article is not shown, as in the paper.

    Gold is the mean of the expert ratings rounded to the nearest of 1 to 5 (halves up). Summaries
    with the same text are reduced to one first. Cluster is the article; ``system_id`` is the
    place of the summarising system in the set's lists, which do not name systems. With ``n`` None
    every distinct summary is an item, and levels are not balanced.
    """
    table = reader.split(HUB_ID, None, "test", COLUMNS, "mit")
    summaries: list[Item] = []
    articles: set[str] = set()
    for place, row in table:
        texts, ratings = row["machine_summaries"], row["coherence"]
        if len(texts) != len(ratings):
            raise JudgeSenseError(
                f"{place}: {len(texts)} machine_summaries but {len(ratings)} coherence ratings"
            )
        article = clean_text(row["id"], place, "id")
        if article in articles:
            raise JudgeSenseError(f"{place}, column id: {article!r} occurs twice")
        articles.add(article)
        for system, (text, mean) in enumerate(zip(texts, ratings, strict=True)):
            summaries.append(
                Item(
                    item_id=f"summeval-{article}-{system:02d}",
                    task=TASK,
                    fields={"summary": clean_text(text, place, "machine_summaries")},
                    gold=_level(mean, f"{place}, column coherence"),
                    cluster_id=f"summeval-{article}",
                    system_id=f"summeval-system-{system:02d}",
                    source=HUB_ID,
                    revision=table.revision,
                    license=table.license,
                )
            )
    summaries, notes = drop_repeated(summaries, "summaries")
    notes.append(
        "Gold levels are expert means rounded to the nearest level; systems are numbered by their "
        "place in the set's lists, which do not name them. The summarised article is not shown."
    )
    if n is None:
        return Collected(summaries, notes)
    rng = generator(seed, "summeval")
    return Collected(draw(summaries, quotas(n, LEVELS), rng, "summaries"), notes)


def _level(mean: object, place: str) -> str:
    if not isinstance(mean, int | float) or not 1 <= mean <= 5:
        raise JudgeSenseError(f"{place}: an expert mean must lie between 1 and 5, got {mean!r}")
    return str(math.floor(mean + 0.5))
