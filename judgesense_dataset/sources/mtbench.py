"""Preference from MT-Bench's human votes (Zheng et al. 2023): two answers to one question."""

from __future__ import annotations

from collections import Counter
from typing import Any

from judgesense.errors import JudgeSenseError
from judgesense_dataset.sources import loader

HUB_ID = "lmsys/mt_bench_human_judgments"
TASK = "preference"
COLUMNS = {
    "question_id": int,
    "model_a": str,
    "model_b": str,
    "winner": str,
    "conversation_a": list,
    "conversation_b": list,
    "turn": int,
}


def collect(reader: loader.Reader, n: int | None, seed: int) -> loader.Collected:
    """Draw n comparisons (question, turn, pair of models) with a majority of the human votes.

    Gold is the answer with more than half of the votes, where a tie is a vote for neither;
    comparisons without such a majority are left out. The cluster is the question; ``system_id``
    holds the two models in the order AB. Answers are whole. A second turn shows both turns of the
    conversation, as the voters saw it. The preferred answer is A in half of the items. The n items
    are spread over all questions; if ``n`` is None, all comparisons are items.
    """
    table = reader.split(HUB_ID, None, "human", COLUMNS, "cc-by-4.0")
    Key = tuple[int, int, str, str]
    texts: dict[Key, tuple[str, dict[str, str]]] = {}
    votes: dict[Key, Counter[str]] = {}
    for place, row in table:
        first, second = sorted((row["model_a"], row["model_b"]))
        key = (row["question_id"], row["turn"], first, second)
        answers = _read_conversation(row, place)
        if texts.setdefault(key, answers)[1] != answers[1]:
            raise JudgeSenseError(
                f"{place}: the answers differ from those of an earlier vote on {key}"
            )
        votes.setdefault(key, Counter())[_vote(row, place)] += 1
    # A tie is a vote for neither, and more than half of all votes decide.
    leading = {key: (*cast.most_common(1)[0], cast.total()) for key, cast in votes.items()}
    winners = {
        key: model for key, (model, n, total) in leading.items() if 2 * n > total and model != "tie"
    }
    rng = loader.generator(seed, "mtbench")
    winners_first = loader.halves(len(winners), rng)
    items = []
    for (key, winner), winner_first in zip(winners.items(), winners_first, strict=True):
        question, turn, *models = key
        if (models[0] == winner) != winner_first:
            models.reverse()
        query, responses = texts[key]
        one, two = (responses[model] for model in models)
        fields = {"query": query, "response_a": one, "response_b": two}
        item_id = f"mtbench-{question}-turn{turn}-{models[0]}-{models[1]}"
        gold = "A" if winner_first else "B"
        items.append(
            table.item(item_id, TASK, fields, gold, f"mtbench-{question}", "|".join(models))
        )
    notes = [
        f"{len(votes) - len(winners)} of {len(votes)} comparisons (question, turn and "
        "pair of models) have no majority of the human votes and were left out. GPT-4's votes are "
        "not used.",
        "item_id contains the turn; an item of turn2 shows both turns of the conversation. "
        "system_id holds the two models in the order AB.",
    ]
    return loader.all_or_drawn(items, notes, n, ("A", "B"), rng, "comparisons")


def _vote(row: dict[str, Any], place: str) -> str:
    if row["winner"] in ("model_a", "model_b"):
        return str(row[row["winner"]])
    if row["winner"].startswith("tie"):
        return "tie"
    raise JudgeSenseError(
        f"{place}, column winner: must be model_a, model_b or a tie, got {row['winner']!r}"
    )


def _read_conversation(row: dict[str, Any], place: str) -> tuple[str, dict[str, str]]:
    turns = row["turn"]
    texts: dict[str, list[str]] = {}
    for side in "ab":
        messages = row[f"conversation_{side}"][: 2 * turns]
        column = f"conversation_{side}"
        if [message["role"] for message in messages] != ["user", "assistant"] * turns:
            raise JudgeSenseError(
                f"{place}, column {column}: must hold {turns} turns of user and assistant"
            )
        texts[side] = [loader.clean_text(message["content"], place, column) for message in messages]
    query = _join_turns(texts["a"][::2])
    return query, {
        row["model_a"]: _join_turns(texts["a"][1::2]),
        row["model_b"]: _join_turns(texts["b"][1::2]),
    }


def _join_turns(turns: list[str]) -> str:
    if len(turns) == 1:
        return turns[0]
    return "\n\n".join(f"[Turn {number}]\n{text}" for number, text in enumerate(turns, 1))


SOURCE = loader.DataSource(TASK, "MT-Bench human judgments", collect, ("zheng2023judging",))
