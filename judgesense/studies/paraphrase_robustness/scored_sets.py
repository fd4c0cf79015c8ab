"""The sets of texts with human scores that the study knows, and how each is read."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from judgesense_dataset.sources.loader import clean_text

_ASSIGNMENTS = {
    1: "Write a letter to a newspaper about the effects of computers on people, and persuade its "
    "readers of your view.",
    2: "Write a persuasive essay on whether a library should remove materials that some of its "
    "readers find offensive.",
}
"""ASAP's first two assignments in this project's words: the Hub's sets do not show them."""

_ESSAY = ("content", "organization", "word_choice", "sentence_fluency", "conventions")


@dataclass(frozen=True)
class Scored:
    """A text to judge: its fields, and the human mean on each attribute."""

    item_id: str
    fields: Mapping[str, str]
    human: Mapping[str, Any]
    cluster_id: str = ""
    system_id: str = ""


Places = Iterable[tuple[str, Mapping[str, Any]]]
Texts = Iterator[tuple[str, Scored]]


def text_fields(row: Mapping[str, Any], place: str, **columns: str) -> dict[str, str]:
    """The fields of a text from columns of its row; JudgeSenseError for a value that is no text."""
    return {field: clean_text(row[column], place, column) for field, column in columns.items()}


def _summeval(rows: Places) -> Texts:
    for place, row in rows:
        for at, summary in enumerate(row["machine_summaries"]):
            four = [row[n][at] for n in ("coherence", "consistency", "fluency", "relevance")]
            yield (
                place,
                Scored(
                    f"{row['id']}-{at:02d}",
                    {
                        "summary": clean_text(summary, place, "machine_summaries"),
                        **text_fields(row, place, text="text"),
                    },
                    {"coherence": four[0], "accuracy": four[1], "quality": sum(four) / 4},
                    row["id"],
                    f"summeval-system-{at:02d}",
                ),
            )


def _tldr(rows: Places) -> Texts:
    for number, (place, row) in enumerate(rows, 1):
        info, summary = row["info"], row["summary"]
        axis_of = {"coherence": "coherence", "accuracy": "accuracy", "quality": "overall"}
        ratings = {name: summary["axes"][axis] for name, axis in axis_of.items()}
        if info.get("post") is not None and None not in ratings.values():
            yield (
                place,
                Scored(
                    f"tldr-{number}",
                    text_fields({**summary, **info}, place, summary="text", text="post"),
                    {name: 1 + (rating - 1) * 4 / 6 for name, rating in ratings.items()},
                    str(info["id"]),
                    str(summary["policy"]),
                ),
            )


def _usr(rows: Places) -> Texts:
    contexts: dict[str, int] = {}
    for number, (place, row) in enumerate(rows, 1):
        fields = text_fields(row, place, context="context", response="response")
        yield (
            place,
            Scored(
                f"usr-{number}",
                fields,
                {
                    "understandability": row["understandability"],
                    "naturalness": row["naturalness"],
                    "interestingness": row["engagingness"],
                },
                f"usr-context-{contexts.setdefault(fields['context'], len(contexts))}",
                row["system"],
            ),
        )


def _qgeval(rows: Places) -> Texts:
    for place, row in rows:
        # A mirror has a row per question, the Hub a row per passage with its questions.
        for question in row.get("questions", [row]):
            scores = question if question is not row else json.loads(row["mean"])
            yield (
                place,
                Scored(
                    f"{row['id']}-{question['source']}",
                    text_fields(
                        {**row, **question}, place, passage="passage", question="prediction"
                    ),
                    {name: scores[name] for name in ("clarity", "conciseness", "answerability")},
                    row["id"],
                    question["source"],
                ),
            )


def _asap(rows: Places) -> Texts:
    for place, row in rows:
        if row["essay_set"] in _ASSIGNMENTS:
            content, organisation, *language = (row[f"{name}_score"] for name in _ESSAY)
            yield (
                place,
                Scored(
                    f"asap-{row['essay_id']}",
                    {
                        "assignment": _ASSIGNMENTS[row["essay_set"]],
                        **text_fields(row, place, essay="essay"),
                    },
                    {
                        "content": content,
                        "organisation": organisation,
                        "language": sum(language) / len(language),
                    },
                ),
            )


@dataclass(frozen=True)
class ScoredSet:
    """A public set: its place and columns, how its rows are read, a note on its scores."""

    hub_id: str
    config: str | None
    split: str
    columns: Mapping[str, type]
    licence: str
    read: Callable[[Places], Texts]
    note: str


SETS = {
    "summeval": ScoredSet(
        "mteb/summeval",
        None,
        "test",
        dict.fromkeys(
            ("machine_summaries", "coherence", "consistency", "fluency", "relevance"), list
        )
        | {"text": str, "id": str},
        "mit",
        _summeval,
        "SummEval ({where}; experts' means; accuracy is its consistency, quality the mean of its "
        "four dimensions)",
    ),
    "tldr": ScoredSet(
        "openai/summarize_from_feedback",
        "axis",
        "validation",
        {"info": dict, "summary": dict},
        "mit",
        _tldr,
        "TL;DR ({where}; axis ratings rescaled from 1 to 7 to 1 to 5)",
    ),
    "usr": ScoredSet(
        "human_ratings/topical_chat_usr",
        None,
        "test",
        dict.fromkeys(("context", "response", "system"), str)
        | dict.fromkeys(("understandability", "naturalness", "engagingness"), float),
        "unknown",
        _usr,
        "Topical-Chat (USR; {where}; raters' means; interestingness is its engagingness)",
    ),
    "qgeval": ScoredSet(
        "fwp/QGEval",
        None,
        "train",
        {"id": str, "passage": str, "questions": list},
        "unknown",
        _qgeval,
        "QGEval ({where}; means of three annotators)",
    ),
    "asap++": ScoredSet(
        "GPTZERO/ASAP_PLUS_PLUS",
        None,
        "train",
        {"essay_id": int, "essay_set": int, "essay": str, **{f"{n}_score": int for n in _ESSAY}},
        "unknown",
        _asap,
        "ASAP++ ({where}; sets 1 and 2; language is the mean of word choice, sentence fluency and "
        "conventions; the assignments are in this project's words)",
    ),
}

MIRRORED = {
    "qgeval": replace(
        SETS["qgeval"],
        hub_id="human_ratings/qgeval",
        split="test",
        columns=dict.fromkeys(("id", "passage", "prediction", "source", "mean"), str),
    )
}
"""Sets that a mirror has in another form."""


SOURCES: Mapping[str, tuple[str, ...]] = {
    "dialogue": ("usr",),
    "question-generation": ("qgeval",),
    "summarisation": ("summeval", "tldr"),
    "essays": ("asap++",),
}
"""The public sets of each task, the default first; your own file can replace any."""
