"""Tables that tools write: AlpacaEval's annotations, lm-eval's samples, promptfoo's CSV, and the
manifests of SageMaker Ground Truth."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial

from judgesense.files.tables import Rows
from judgesense.importers.column_names import Column, Columns
from judgesense.importers.columns import HUMAN, ITEM, ORDER, SYSTEM, VERDICT
from judgesense.importers.rows import texts_of
from judgesense.importers.values import NUMBER, parsed
from judgesense.importers.who import PERSON, who
from judgesense.tasks import ORDERS

_RAGAS = (
    "answer_correctness answer_relevancy answer_similarity context_entity_recall "
    "context_precision context_recall context_relevance factual_correctness faithfulness "
    "llm_context_precision_with_reference llm_context_precision_without_reference "
    "noise_sensitivity response_groundedness response_relevancy semantic_similarity "
)
RAGAS = frozenset(_RAGAS.split())
"""Columns of ragas' results, each a metric."""


BY_PEOPLE = "-metadata.human-annotated"
"""After the name of a labelling job of Ground Truth, the column that says who gave its label."""


def table_of_tool(
    found: Columns,
) -> tuple[Callable[[Rows], Rows] | None, dict[str, str]] | None:
    """The step that makes a tool's rows one row a verdict, if it needs one, and column of the
    decision log -> column; None for another table."""
    if {"generator_1", "generator_2", "preference"} <= found.keys():
        people = next((n for n in found if n.endswith("_preference") and who(n) == PERSON), None)
        two = len(found["generator_1"].texts) == len(found["generator_2"].texts) == 1
        added = {"raw_decision": VERDICT, **({"gold": HUMAN} if people else {})}
        return partial(_of_alpaca, people=people, named=two), added
    if "games" in found and _GAMES.search(next(iter(found["games"].texts), "")):
        return _of_games, {"raw_decision": VERDICT, "order": ORDER}
    if {"doc_id", "target", "filtered_resps"} <= found.keys():
        return _of_lm_eval, {"raw_decision": VERDICT, "gold": "target", "item_id": "doc_id"}
    if {"Status", "Score", "Named Scores", "Grader Reason"} <= found.keys():
        return None, {"raw_decision": "Status", "raw_text": "Grader Reason"}
    if jobs := [n.removesuffix(BY_PEOPLE) for n in found if n.endswith(BY_PEOPLE)]:
        return partial(_of_ground_truth, name=jobs[-1]), {"gold": jobs[-1]}
    if graded := [name for name, column in found.items() if _is_graded(column)]:
        added = {"raw_decision": VERDICT, "system_id": SYSTEM, "item_id": ITEM}
        return partial(_of_promptfoo, names=graded), added
    return None


_GAMES = re.compile(r"[\"']score[\"']: *[\"']\[*[AB] ?[<>=]|[\"']score[\"']: *null")


def _of_games(rows: Rows) -> Rows:
    """Two rows a row of Arena-Hard, whose second game shows the answers in the other order."""
    games = [parsed(cell) for cell in rows.columns["games"]]
    columns = {n: [v for v in values for _ in ORDERS] for n, values in rows.columns.items()}
    pairs = [(*(cell if isinstance(cell, list) else ()), {}, {})[:2] for cell in games]
    cells = [game if isinstance(game, dict) else {} for pair in pairs for game in pair]
    columns[VERDICT] = [game.get("score") for game in cells]
    columns["raw_text"] = [game.get("judgment") for game in cells]
    columns[ORDER] = [*ORDERS] * len(rows)
    del columns["games"]
    return Rows(columns, [place for place in rows.places for _ in ORDERS])


def _of_alpaca(rows: Rows, people: str | None, named: bool) -> Rows:
    """AlpacaEval's preferences, 1 for the first output to 2 for the second, as choices; ``named``
    by the two systems that the whole file compares."""
    columns = dict(rows.columns)
    for target, source in ((VERDICT, "preference"), (HUMAN, people)):
        cells = texts_of(rows.columns[source]) if source else None
        chosen: list[object] = []
        for at, cell in enumerate(cells or [None] * len(rows)):
            number = float(cell) if cell and NUMBER.fullmatch(cell) else None
            if number is not None and 1 <= number <= 2:
                side = 1 if number < 1.5 else 2
                name = str(rows.columns[f"generator_{side}"][at]) if named else f"output_{side}"
                cell = "tie" if number == 1.5 else name
            chosen.append(cell)
        if source:
            columns[target] = chosen
    return Rows(columns, rows.places)


def _of_lm_eval(rows: Rows) -> Rows:
    """The samples of lm-eval, whose filtered responses are the verdicts."""
    answers = rows.columns["filtered_resps"]
    while any(isinstance(answer, list) for answer in answers):
        answers = [(a[0] if a else None) if isinstance(a, list) else a for a in answers]
    return Rows({**rows.columns, VERDICT: answers}, rows.places)


def _of_ground_truth(rows: Rows, name: str) -> Rows:
    """The rows with a job's labels by their names, and without those that a model gave."""
    told = [cell if isinstance(cell, dict) else {} for cell in rows.columns[f"{name}-metadata"]]
    labels = zip(told, rows.columns[name], strict=True)
    given = [each.get("class-name", label) for each, label in labels]
    by_people = [each.get("human-annotated") == "yes" for each in told]
    cells = [label if own else None for label, own in zip(given, by_people, strict=True)]
    rest = [
        {k: v for k, v in each.items() if k not in ("class-name", "human-annotated")}
        for each in told
    ]
    return Rows({**rows.columns, name: cells, f"{name}-metadata": rest}, rows.places)


_GRADED = re.compile(r"\[(PASS|FAIL|ERROR)\]\s*(?:\([^)]*\))?\s*")


def _is_graded(column: Column) -> bool:
    """Whether a column of promptfoo's CSV holds outputs with their grades."""
    return bool(column.texts) and all(_GRADED.match(text) for text in column.texts)


def _of_promptfoo(rows: Rows, names: Sequence[str]) -> Rows:
    """One row an output of promptfoo's CSV, whose cell begins with the grade."""
    n = len(names)
    columns = {
        name: [value for value in values for _ in range(n)]
        for name, values in rows.columns.items()
        if name not in names
    }
    cells = [str(rows.columns[name][at] or "") for at in range(len(rows)) for name in names]
    grades = [_GRADED.match(cell) for cell in cells]
    columns[VERDICT] = [None if match is None else match[1] for match in grades]
    columns["output"] = [_GRADED.sub("", cell, count=1) for cell in cells]
    columns[SYSTEM] = [*names] * len(rows)
    columns[ITEM] = [place.rpartition(" ")[2] for place in rows.places for _ in range(n)]
    return Rows(columns, [place for place in rows.places for _ in range(n)])
