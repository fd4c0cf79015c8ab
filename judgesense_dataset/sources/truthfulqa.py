"""Factuality from TruthfulQA (Lin et al. 2022): a question and one of its reference answers."""

from __future__ import annotations

from judgesense.tasks import Item
from judgesense_dataset.sources import loader

_GOLD = {"correct_answers": "YES", "incorrect_answers": "NO"}


def collect(reader: loader.Reader, n: int | None, seed: int) -> loader.Collected:
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
    quota_of = loader.quotas(n, ("YES", "NO"))
    # Draw first which questions get a correct answer, so that each question is used once.
    golds = loader.shuffled([gold for gold, count in quota_of.items() for _ in range(count)], rng)
    gold_of = dict(zip(loader.shuffled(sorted(questions), rng), golds, strict=False))
    pool = [item for item in answers if gold_of.get(item.cluster_id) == item.gold]
    one_each = {item.cluster_id: item for item in loader.shuffled(pool, rng)}
    items = loader.draw(list(one_each.values()), quota_of, rng, "questions")
    notes.append("Each question is used once, with one reference answer.")
    return loader.Collected(items, notes)


SOURCE = loader.DataSource("factuality", "TruthfulQA", collect, ("lin2022truthfulqa",))
