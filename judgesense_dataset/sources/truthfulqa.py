"""Factuality from TruthfulQA (Lin et al. 2022): a question and a correct or an incorrect answer."""

from __future__ import annotations

from judgesense.tasks import Item
from judgesense_dataset.sources.loader import (
    Collected,
    DataSource,
    Reader,
    citation,
    clean_text,
    draw,
    drop_repeated,
    generator,
    quotas,
    shuffled,
)

HUB_ID = "truthfulqa/truthful_qa"
TASK = "factuality"
COLUMNS = {"question": str, "correct_answers": list, "incorrect_answers": list}
_GOLD = {"correct_answers": "YES", "incorrect_answers": "NO"}


def collect(reader: Reader, n: int | None, seed: int) -> Collected:
    """Draw n questions, each with one of its reference answers: half correct, half incorrect.

    Gold is YES for a correct answer and NO for an incorrect one; the cluster is the question. If
    ``n`` is None, every reference answer of every question is an item, and labels are unbalanced.
    """
    table = reader.split(HUB_ID, "generation", "validation", COLUMNS, "apache-2.0")
    answers: list[Item] = []
    for number, (place, row) in enumerate(table):
        question = clean_text(row["question"], place, "question")
        for column, gold in _GOLD.items():
            for at, answer in enumerate(row[column]):
                fields = {"question": question, "response": clean_text(answer, place, column)}
                item_id = f"truthfulqa-{number:04d}-{gold.lower()}{at}"
                answers.append(table.item(item_id, TASK, fields, gold, f"truthfulqa-{number:04d}"))
    answers, notes = drop_repeated(answers, "answers")
    if n is None:
        return Collected(answers, notes)
    questions = {item.cluster_id for item in answers}
    rng = generator(seed, "truthfulqa")
    wanted = quotas(n, ("YES", "NO"))
    # Draw first which questions get a correct answer, so that each question is used once.
    golds = shuffled([gold for gold, count in wanted.items() for _ in range(count)], rng)
    gold_of = dict(zip(shuffled(sorted(questions), rng), golds, strict=False))
    pool = [item for item in answers if gold_of.get(item.cluster_id) == item.gold]
    one_each = {item.cluster_id: item for item in shuffled(pool, rng)}
    chosen = draw(list(one_each.values()), wanted, rng, "questions")
    return Collected(chosen, [*notes, "Each question is used once, with one reference answer."])


SOURCE = DataSource(
    TASK,
    "TruthfulQA",
    collect,
    citation("lin2022truthfulqa"),
)
