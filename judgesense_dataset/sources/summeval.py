"""Coherence from SummEval (Fabbri et al. 2021): a summary and the experts' mean rating."""

from __future__ import annotations

import math

from judgesense.errors import JudgeSenseError
from judgesense.tasks import Item
from judgesense_dataset.sources.loader import (
    Collected,
    DataSource,
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
    """Draw n summaries, the same number at each gold level, without their article (as the paper).

    Gold is the mean of the expert ratings rounded to the nearest of 1 to 5 (halves up). Repeated
    summaries are dropped first. The cluster is the article; ``system_id`` is the position of the
    summarising system in the set's lists, which do not name systems. If ``n`` is None, every
    distinct summary is an item, and levels are unbalanced.
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
        "Gold levels are expert means rounded to the nearest level. Systems are numbered by their "
        "position in the set's lists, which do not name them. The article is not shown."
    )
    if n is None:
        return Collected(summaries, notes)
    rng = generator(seed, "summeval")
    return Collected(draw(summaries, quotas(n, LEVELS), rng, "summaries"), notes)


def _level(mean: object, place: str) -> str:
    if not isinstance(mean, int | float) or not 1 <= mean <= 5:
        raise JudgeSenseError(f"{place}: an expert mean must lie between 1 and 5, got {mean!r}")
    return str(math.floor(mean + 0.5))


SOURCE = DataSource(
    TASK,
    "SummEval",
    collect,
    """@article{fabbri2021summeval,
  title = {{SummEval}: Re-evaluating Summarization Evaluation},
  author = {Fabbri, Alexander R. and Kry{\\'s}ci{\\'n}ski, Wojciech and McCann, Bryan and Xiong, Caiming and Socher, Richard and Radev, Dragomir},
  journal = {Transactions of the Association for Computational Linguistics},
  volume = {9},
  pages = {391--409},
  year = {2021}
}""",  # noqa: E501
)
