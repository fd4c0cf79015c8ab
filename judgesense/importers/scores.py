"""Scores of Langfuse and feedback of LangSmith: evaluators' are verdicts, people's are labels.

A row is one score. Langfuse: the fields of ``/api/public/v2/scores`` (``{"data": [...]}``), of the
export of the scores table, or of ``scores/`` in a blob storage export, where names are in snake
case (langfuse.com/docs/api-and-data-platform/features/blob-storage-export-fields): ``traceId``,
``observationId``, ``name``, ``source`` (ANNOTATION is a person; EVAL, API), ``value``,
``stringValue``, ``comment``, ``authorUserId``. LangSmith: ``run_id``, ``key``, ``score``,
``value``, ``comment``, ``feedback_source`` with ``type`` (app is a person; api, model, auto_eval)
and ``user_id`` (docs.langchain.com/langsmith/feedback-data-format).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import AliasChoices, BeforeValidator, Field

from judgesense.errors import JudgeSenseError
from judgesense.files.documents import Shape, fit
from judgesense.files.tables import Record, in_rows, read_table
from judgesense.importers import Importer, Items

_BY_PEOPLE = ("ANNOTATION", "app")


def _either(*names: str) -> Any:
    return Field(None, validation_alias=AliasChoices(*names))


def _parsed(value: Any) -> Any:
    """In a CSV file an object is JSON."""
    return json.loads(value) if isinstance(value, str) and value[:1] == "{" else value


class Score(Shape):
    """A score of Langfuse or LangSmith."""

    name: str = Field(validation_alias=AliasChoices("name", "key"))
    item: str = Field(validation_alias=AliasChoices("traceId", "trace_id", "run_id"))
    part: str | None = _either("observationId", "observation_id")
    text: str | None = _either("stringValue", "string_value")
    value: Any = None
    score: Any = None
    comment: str | None = None
    author: str | None = _either("authorUserId", "author_user_id", "authorUserName")
    source: Annotated[Any, BeforeValidator(_parsed)] = _either("feedback_source", "source")

    @property
    def person(self) -> str | None:
        """The person who gave it; None for an evaluator."""
        source = self.source if isinstance(self.source, Mapping) else {"type": self.source}
        if source.get("type") not in _BY_PEOPLE:
            return None
        who = self.author or source.get("user_name") or source.get("user_id") or "1"
        return f"annotator_{re.sub(r'[^0-9A-Za-z]+', '_', str(who))}"

    @property
    def given(self) -> Any:
        """What was given: a category, or else a number."""
        return next((v for v in (self.text, self.value, self.score) if v not in (None, "")), None)


def read(path: Path, items: Items, pick: str | None) -> Iterator[Record]:
    """One record for each score of an evaluator, with people's scores of the same name beside it.

    People's scores of another name count if they have only one. ``pick`` names the evaluator's
    score if there are several. Raises JudgeSenseError for a row that is no score, and for a file
    without an evaluator's.
    """
    rows = [(fit(Score, row.values, row.place, "a score"), row.place) for row in read_table(path)]
    judged = [(score, place) for score, place in rows if score.person is None]
    if not judged:
        raise JudgeSenseError(f"{path}: every score is by a person; export the evaluators' too")
    scores = list(dict.fromkeys(score.name for score, _ in judged))
    if (pick is None and len(scores) > 1) or pick not in (None, *scores):
        problem = "holds several scores" if pick is None else f"no score {pick!r}"
        raise JudgeSenseError(f"{path}: {problem}; choose one with --pick: {', '.join(scores)}")
    name = pick or scores[0]
    people = [score for score, _ in rows if score.person is not None]
    names = {score.name for score in people}
    own = name if name in names or len(names) != 1 else names.pop()
    labels: dict[str, dict[str, Any]] = {}
    for score in people:
        if score.name == own:
            labels.setdefault(_item(score), {})[str(score.person)] = score.given
    for score, place in judged:
        if score.name == name:
            item = _item(score)
            yield Record(
                {
                    "judge": name,
                    "task": name,
                    "template_id": "as judged",
                    "item_id": item,
                    "cluster_id": score.item,
                    "repeat": items.repeat(name, item),
                    "raw_decision": score.given,
                    "raw_text": score.comment,
                    "people": labels.get(item, {}),
                },
                place,
            )


def _item(score: Score) -> str:
    return f"{score.item}/{score.part}" if score.part else score.item


IMPORTER = Importer(
    summary="Langfuse scores and LangSmith feedback (CSV, JSON or JSON lines)",
    patterns=("*.csv", "*.json", "*.jsonl", "*.parquet"),
    read=lambda *asked: in_rows(read(*asked)),
    has_pick=True,
    row_keys=(
        ("traceId", "name", "source"),
        ("trace_id", "name", "source"),
        ("run_id", "key", "feedback_source"),
    ),
)
