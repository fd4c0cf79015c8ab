"""Readers of the public sets with human scores on the attributes, one per schema."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from judgesense_dataset.sources.loader import Reader, clean_text

_ASSIGNMENTS = {
    1: "Write a letter to a newspaper about the effects of computers on people, and persuade its "
    "readers of your view.",
    2: "Write a persuasive essay on whether a library should remove materials that some of its "
    "readers find offensive.",
}
"""ASAP's first two assignments in this project's words: the Hub's sets do not show them."""


@dataclass(frozen=True)
class Scored:
    """A text to judge: its fields, and the human mean on each attribute."""

    item_id: str
    fields: Mapping[str, str]
    human: Mapping[str, float]
    cluster_id: str = ""
    system_id: str = ""


Rows = tuple[Iterator[tuple[str, Scored]], str]


def _summeval(reader: Reader) -> Rows:
    """Accuracy is SummEval's consistency, quality the mean of its four dimensions."""
    columns = {"machine_summaries": list, "coherence": list, "consistency": list,
               "fluency": list, "relevance": list, "text": str, "id": str}  # fmt: skip
    table = reader.split("mteb/summeval", None, "test", columns, "mit")

    def rows() -> Iterator[tuple[str, Scored]]:
        for place, row in table:
            for at, summary in enumerate(row["machine_summaries"]):
                four = [row[n][at] for n in ("coherence", "consistency", "fluency", "relevance")]
                yield place, Scored(
                    f"{row['id']}-{at:02d}",
                    {"summary": clean_text(summary, place, "machine_summaries"),
                     "text": clean_text(row["text"], place, "text")},
                    {"coherence": four[0], "accuracy": four[1], "quality": sum(four) / 4},
                    row["id"], f"summeval-system-{at:02d}",
                )  # fmt: skip

    note = (
        f"SummEval ({table.where}; experts' means; accuracy is its consistency, quality the mean "
        "of its four dimensions)"
    )
    return rows(), note


def _tldr(reader: Reader) -> Rows:
    """OpenAI's axis ratings of TL;DR summaries, rescaled from 1 to 7 to 1 to 5."""
    table = reader.split("openai/summarize_from_feedback", "axis", "validation",
                         {"info": dict, "summary": dict}, "mit")  # fmt: skip

    def rows() -> Iterator[tuple[str, Scored]]:
        for number, (place, row) in enumerate(table, 1):
            axes = row["summary"]["axes"]
            named = {"coherence": "coherence", "accuracy": "accuracy", "quality": "overall"}
            if row["info"].get("post") is None or any(axes[n] is None for n in named.values()):
                continue
            yield place, Scored(
                f"tldr-{number}",
                {"summary": clean_text(row["summary"]["text"], place, "summary"),
                 "text": clean_text(row["info"]["post"], place, "post")},
                {name: 1 + (axes[axis] - 1) * 4 / 6 for name, axis in named.items()},
                str(row["info"]["id"]), str(row["summary"]["policy"]),
            )  # fmt: skip

    return rows(), f"TL;DR ({table.where}; axis ratings rescaled from 1 to 7 to 1 to 5)"


def _usr(reader: Reader) -> Rows:
    """USR's ratings of Topical-Chat; interestingness is its engagingness."""
    columns = {"context": str, "response": str, "system": str, "understandability": float,
               "naturalness": float, "engagingness": float}  # fmt: skip
    table = reader.split("human_ratings/topical_chat_usr", None, "test", columns, "unknown")

    def rows() -> Iterator[tuple[str, Scored]]:
        contexts: dict[str, int] = {}
        for number, (place, row) in enumerate(table, 1):
            context = clean_text(row["context"], place, "context")
            yield place, Scored(
                f"usr-{number}",
                {"context": context, "response": clean_text(row["response"], place, "response")},
                {"understandability": row["understandability"], "naturalness": row["naturalness"],
                 "interestingness": row["engagingness"]},
                f"usr-context-{contexts.setdefault(context, len(contexts))}", row["system"],
            )  # fmt: skip

    note = f"Topical-Chat (USR; {table.where}; raters' means; interestingness is its engagingness)"
    return rows(), note


def _qgeval(reader: Reader) -> Rows:
    """QGEval's generated questions, as rows (a mirror) or within their passages (the Hub)."""
    if reader.mirror is not None:
        columns: dict[str, type] = {
            "id": str,
            "passage": str,
            "prediction": str,
            "source": str,
            "mean": str,
        }
        table = reader.split("human_ratings/qgeval", None, "test", columns, "unknown")
    else:
        columns = {"id": str, "passage": str, "questions": list}
        table = reader.split("fwp/QGEval", None, "train", columns, "unknown")

    def questions(row: Mapping[str, Any]) -> Iterator[tuple[Mapping[str, Any], Mapping[str, Any]]]:
        if "questions" in row:
            yield from ((question, question) for question in row["questions"])
        else:
            yield row, json.loads(row["mean"])

    def rows() -> Iterator[tuple[str, Scored]]:
        for place, row in table:
            for question, scores in questions(row):
                yield place, Scored(
                    f"{row['id']}-{question['source']}",
                    {"passage": clean_text(row["passage"], place, "passage"),
                     "question": clean_text(question["prediction"], place, "prediction")},
                    {name: scores[name] for name in ("clarity", "conciseness", "answerability")},
                    row["id"], question["source"],
                )  # fmt: skip

    return rows(), f"QGEval ({table.where}; means of three annotators)"


def _asap(reader: Reader) -> Rows:
    """ASAP++'s attribute scores of the first two essay sets, 1 to 6.

    Language is the mean of word choice, sentence fluency and conventions.
    """
    names = ("content", "organization", "word_choice", "sentence_fluency", "conventions")
    columns = {"essay_id": int, "essay_set": int, "essay": str}
    columns |= {f"{name}_score": int for name in names}
    table = reader.split("GPTZERO/ASAP_PLUS_PLUS", None, "train", columns, "unknown")

    def rows() -> Iterator[tuple[str, Scored]]:
        for place, row in table:
            if row["essay_set"] not in _ASSIGNMENTS:
                continue
            content, organisation, *language = (row[f"{name}_score"] for name in names)
            yield place, Scored(
                f"asap-{row['essay_id']}",
                {"assignment": _ASSIGNMENTS[row["essay_set"]],
                 "essay": clean_text(row["essay"], place, "essay")},
                {"content": content, "organisation": organisation,
                 "language": sum(language) / len(language)},
            )  # fmt: skip

    note = (
        f"ASAP++ ({table.where}; sets 1 and 2; language is the mean of word choice, sentence "
        "fluency and conventions; the assignments are in this project's words)"
    )
    return rows(), note


SETS = {
    "summeval": _summeval, "tldr": _tldr, "usr": _usr, "qgeval": _qgeval, "asap++": _asap,
}  # fmt: skip
