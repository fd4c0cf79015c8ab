"""Preference from SummEval (Fabbri et al. 2021): two summaries of one article, rated by experts."""

from __future__ import annotations

from itertools import combinations
from statistics import fmean

from judgesense.errors import JudgeSenseError
from judgesense.tasks import Item
from judgesense_dataset.sources.loader import (
    Collected,
    DataSource,
    Reader,
    clean_text,
    draw,
    generator,
    quotas,
    shuffled,
)
from judgesense_dataset.sources.summeval import HUB_ID
from judgesense_dataset.sources.summeval import SOURCE as _COHERENCE

TASK = "preference"
RATINGS = ("coherence", "consistency", "fluency", "relevance")
COLUMNS = {"machine_summaries": list, "text": str, "id": str, **dict.fromkeys(RATINGS, list)}

GAP = 0.75
"""Least difference of two summaries' mean ratings (1 to 5) at which one is the better."""

QUERY = "Summarise this article in a few sentences.\n\n{article}"


def collect(reader: Reader, n: int | None, seed: int) -> Collected:
    """Draw n pairs of summaries of one article, one of them rated better by at least `GAP`.

    A summary's rating is the mean of the experts' four ratings. Gold is the better one, which is A
    in half of the items; the cluster is the article, and ``system_id`` the positions of the two
    systems in the set's lists. The query shows the article. If ``n`` is None, every such pair is an
    item.
    """
    table = reader.split(HUB_ID, None, "test", COLUMNS, "mit")
    pairs: list[tuple[str, str, list[str], tuple[int, int]]] = []
    compared = 0
    for place, row in table:
        rated = _ratings(row, place)
        article = clean_text(row["id"], place, "id")
        texts = [clean_text(one, place, "machine_summaries") for one in row["machine_summaries"]]
        query = QUERY.format(article=clean_text(row["text"], place, "text"))
        for one, two in combinations(range(len(texts)), 2):
            compared += 1
            if abs(rated[one] - rated[two]) < GAP or texts[one] == texts[two]:
                continue
            better, worse = (one, two) if rated[one] > rated[two] else (two, one)
            pairs.append((article, query, texts, (better, worse)))
    rng = generator(seed, "summeval-pairs")
    left_first = shuffled([at % 2 == 0 for at in range(len(pairs))], rng)
    items = []
    for (article, query, texts, (better, worse)), first in zip(pairs, left_first, strict=True):
        shown = (better, worse) if first else (worse, better)
        items.append(
            Item(
                item_id=f"summeval-{article}-{shown[0]:02d}-{shown[1]:02d}",
                task=TASK,
                fields={
                    "query": query,
                    "response_a": texts[shown[0]],
                    "response_b": texts[shown[1]],
                },
                gold="A" if first else "B",
                cluster_id=f"summeval-{article}",
                system_id="|".join(f"summeval-system-{system:02d}" for system in shown),
                source=HUB_ID,
                revision=table.revision,
                license=table.license,
            )
        )
    notes = [
        f"{len(items)} of {compared} pairs of summaries differ by {GAP} or more in the mean of the "
        "experts' four ratings (coherence, consistency, fluency, relevance); the others were left "
        "out. The query shows the article.",
    ]
    if n is None:
        return Collected(items, notes)
    return Collected(draw(items, quotas(n, ("A", "B")), rng, "pairs of summaries"), notes)


def _ratings(row: dict[str, list[float]], place: str) -> list[float]:
    """Each summary's mean rating."""
    texts = row["machine_summaries"]
    for name in RATINGS:
        if len(row[name]) != len(texts):
            raise JudgeSenseError(
                f"{place}: {len(texts)} machine_summaries but {len(row[name])} {name} ratings"
            )
        for mean in row[name]:
            if not isinstance(mean, int | float) or not 1 <= mean <= 5:
                raise JudgeSenseError(
                    f"{place}, column {name}: an expert mean must lie between 1 and 5, got {mean!r}"
                )
    return [fmean(row[name][at] for name in RATINGS) for at in range(len(texts))]


SOURCE: DataSource = DataSource(TASK, "SummEval (pairs of summaries)", collect, _COHERENCE.citation)
