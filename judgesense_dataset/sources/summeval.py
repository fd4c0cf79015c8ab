"""Coherence and preference from SummEval (Fabbri et al. 2021): summaries that experts rated."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import combinations
from statistics import fmean
from typing import Any

from judgesense.errors import JudgeSenseError
from judgesense.tasks import Item
from judgesense_dataset.sources.loader import (
    Collected,
    DataSource,
    Reader,
    all_or_drawn,
    citation,
    clean_text,
    drop_repeated,
    generator,
    halves,
)

HUB_ID = "mteb/summeval"
LEVELS = ("1", "2", "3", "4", "5")
RATINGS = ("coherence", "consistency", "fluency", "relevance")

GAP = 0.75
"""Least difference of two summaries' mean ratings (1 to 5) at which one is the better."""

QUERY = "Summarise this article in a few sentences.\n\n{article}"


def collect(reader: Reader, n: int | None, seed: int) -> Collected:
    """Draw n summaries, the same number at each gold level, without their article (as the paper).

    Gold is the mean of the expert ratings rounded to the nearest of 1 to 5 (halves up). Repeated
    summaries are dropped first. The cluster is the article; ``system_id`` is the position of the
    summarising system in the set's lists, which do not name systems. If ``n`` is None, every
    distinct summary is an item, and levels are unbalanced.
    """
    columns = {"machine_summaries": list, "coherence": list, "id": str}
    table = reader.split(HUB_ID, None, "test", columns, "mit")
    summaries: list[Item] = []
    articles: set[str] = set()
    for place, row in table:
        article = clean_text(row["id"], place, "id")
        if article in articles:
            raise JudgeSenseError(f"{place}, column id: {article!r} occurs twice")
        articles.add(article)
        rated = zip(row["machine_summaries"], _ratings(row, "coherence", place), strict=True)
        for system, (text, mean) in enumerate(rated):
            summaries.append(
                table.item(
                    f"summeval-{article}-{system:02d}",
                    "coherence",
                    {"summary": clean_text(text, place, "machine_summaries")},
                    str(math.floor(mean + 0.5)),
                    f"summeval-{article}",
                    f"summeval-system-{system:02d}",
                )
            )
    summaries, notes = drop_repeated(summaries, "summaries")
    notes.append(
        "Gold levels are expert means rounded to the nearest level. Systems are numbered by their "
        "position in the set's lists, which do not name them. The article is not shown."
    )
    return all_or_drawn(summaries, notes, n, LEVELS, generator(seed, "summeval"), "summaries")


def collect_pairs(reader: Reader, n: int | None, seed: int) -> Collected:
    """Draw n pairs of summaries of one article, one of them rated better by at least `GAP`.

    A summary's rating is the mean of the experts' four ratings. Gold is the better one, which is A
    in half of the items; the cluster is the article, and ``system_id`` the positions of the two
    systems in the set's lists. The query shows the article. If ``n`` is None, every such pair is an
    item.
    """
    columns = {"machine_summaries": list, "text": str, "id": str, **dict.fromkeys(RATINGS, list)}
    table = reader.split(HUB_ID, None, "test", columns, "mit")
    pairs: list[tuple[str, str, list[str], tuple[int, int]]] = []
    compared = 0
    for place, row in table:
        rated = [
            fmean(each) for each in zip(*(_ratings(row, r, place) for r in RATINGS), strict=True)
        ]
        article = clean_text(row["id"], place, "id")
        texts = [clean_text(one, place, "machine_summaries") for one in row["machine_summaries"]]
        query = QUERY.format(article=clean_text(row["text"], place, "text"))
        for one, two in combinations(range(len(texts)), 2):
            compared += 1
            if abs(rated[one] - rated[two]) >= GAP and texts[one] != texts[two]:
                better, worse = (one, two) if rated[one] > rated[two] else (two, one)
                pairs.append((article, query, texts, (better, worse)))
    rng = generator(seed, "summeval-pairs")
    better_first = halves(len(pairs), rng)
    items = []
    for (article, query, texts, (better, worse)), first in zip(pairs, better_first, strict=True):
        a, b = (better, worse) if first else (worse, better)
        items.append(
            table.item(
                f"summeval-{article}-{a:02d}-{b:02d}",
                "preference",
                {"query": query, "response_a": texts[a], "response_b": texts[b]},
                "A" if first else "B",
                f"summeval-{article}",
                f"summeval-system-{a:02d}|summeval-system-{b:02d}",
            )
        )
    notes = [
        f"{len(items)} of {compared} pairs of summaries differ by {GAP} or more in the mean of the "
        "experts' four ratings (coherence, consistency, fluency, relevance); the others were left "
        "out. The query shows the article.",
    ]
    return all_or_drawn(items, notes, n, ("A", "B"), rng, "pairs of summaries")


def _ratings(row: Mapping[str, Any], name: str, place: str) -> list[float]:
    """The experts' mean ratings of a row's summaries, one each."""
    means: list[float] = row[name]
    if len(means) != len(row["machine_summaries"]):
        raise JudgeSenseError(
            f"{place}: {len(row['machine_summaries'])} machine_summaries but {len(means)} {name} "
            "ratings"
        )
    for mean in means:
        if not isinstance(mean, int | float) or not 1 <= mean <= 5:
            raise JudgeSenseError(
                f"{place}, column {name}: an expert mean must lie between 1 and 5, got {mean!r}"
            )
    return means


_CITATION = citation("fabbri2021summeval")

SOURCE = DataSource("coherence", "SummEval", collect, _CITATION)
PAIRS = DataSource("preference", "SummEval (pairs of summaries)", collect_pairs, _CITATION)
"""The source ``summeval-pairs``."""
