"""Single texts to judge: TruthfulQA (Lin et al. 2022) and SummEval (Fabbri et al. 2021)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from judgesense.errors import JudgeSenseError
from judgesense.tasks import Item
from judgesense_dataset.sources import loader

_GOLD = {"correct_answers": "YES", "incorrect_answers": "NO"}


def truthfulqa(reader: loader.Reader, n: int | None, seed: int) -> loader.Collected:
    """Draw n questions, each with one of its reference answers: half correct, half incorrect.

    Gold is YES for a correct answer and NO for an incorrect one; the cluster is the question. If
    ``n`` is None, every reference answer of every question is an item, and labels are unbalanced.
    """
    columns = {"question": str, "correct_answers": list, "incorrect_answers": list}
    table = reader.split(
        "truthfulqa/truthful_qa", "generation", "validation", columns, "apache-2.0"
    )
    answers: list[Item] = []
    for number, (place, row) in enumerate(table):
        question = loader.clean_text(row["question"], place, "question")
        for column, gold in _GOLD.items():
            for at, answer in enumerate(row[column]):
                text = loader.clean_text(answer, place, column)
                fields = {"question": question, "response": text}
                item_id = f"truthfulqa-{number:04d}-{gold.lower()}{at}"
                answers.append(
                    table.item(item_id, "factuality", fields, gold, f"truthfulqa-{number:04d}")
                )
    answers, notes = loader.drop_repeated(answers, "answers")
    if n is None:
        return loader.Collected(answers, notes)
    questions = {item.cluster_id for item in answers}
    rng = loader.generator(seed, "truthfulqa")
    wanted = loader.quotas(n, ("YES", "NO"))
    # Draw first which questions get a correct answer, so that each question is used once.
    golds = loader.shuffled([gold for gold, count in wanted.items() for _ in range(count)], rng)
    gold_of = dict(zip(loader.shuffled(sorted(questions), rng), golds, strict=False))
    pool = [item for item in answers if gold_of.get(item.cluster_id) == item.gold]
    one_each = {item.cluster_id: item for item in loader.shuffled(pool, rng)}
    chosen = loader.draw(list(one_each.values()), wanted, rng, "questions")
    notes.append("Each question is used once, with one reference answer.")
    return loader.Collected(chosen, notes)


def summeval(reader: loader.Reader, n: int | None, seed: int) -> loader.Collected:
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


SOURCES = {
    "truthfulqa": loader.DataSource("factuality", "TruthfulQA", truthfulqa, ("lin2022truthfulqa",)),
    "summeval": loader.DataSource("coherence", "SummEval", summeval, ("fabbri2021summeval",)),
}
