"""The public question sets of the studies, and the models that answer them.

Sets are read from the Hub or a mirror and drawn with a seed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from numpy.random import Generator

from judgesense.errors import JudgeSenseError
from judgesense.files.disk import file_bytes, require_writable, write_text, writing
from judgesense.files.documents import Shape, parse_json, validate
from judgesense_dataset.sources.loader import Reader, SourceTable, clean_text, generator
from local_judges.registry import resolve
from local_judges.responder import Question, respond

N_OPTIONS = 4
"""The number of options in the studies' multiple-choice templates."""

ITEMS_FOLDER = "items"

Row = dict[str, Any]

_GSM8K_ANSWER = re.compile(r"####\s*(-?[\d,]+)")


@dataclass(frozen=True)
class BenchmarkItem:
    """A question with its accepted answers.

    A multiple-choice question has ``options``, in the order shown, and the index ``correct`` of
    the right one. ``context`` is a story to read first.
    """

    item_id: str
    question: str
    answers: tuple[str, ...]
    options: tuple[str, ...] = ()
    correct: int | None = None
    context: str = ""


class Drawn(Shape):
    """The items drawn from a set, as stored; ``source`` has its name, revision, licence and counts,
    ``asked`` the arguments of the draw."""

    asked: dict[str, Any]
    source: dict[str, Any]
    items: tuple[BenchmarkItem, ...]

    @property
    def words(self) -> str:
        """The source in one line: counts, set and revision."""
        source = self.source
        left_out = f"; {source['left_out']}" if "left_out" in source else ""
        return (
            f"{source['items']} of {source['of']} of {source['set']} at {source['revision'][:19]}"
            f"{left_out}"
        )


@dataclass(frozen=True)
class QuestionSet:
    """A public set: its place, its columns, and a function from a row to an item or None."""

    hub_id: str
    config: str | None
    split: str
    columns: Mapping[str, type]
    licence: str
    read: Callable[[Row, str, Generator], BenchmarkItem | None]


def check_models(models: Sequence[Any]) -> None:
    """Raise JudgeSenseError unless there are models, all known and named once; nothing is loaded.

    A model is a name, Hub id, folder or GGUF file, a function from messages to texts, or a
    loaded judge.
    """
    if not models:
        raise JudgeSenseError("no responder given; name a model with --responder")
    for model in models:
        if isinstance(model, (str, Path)):
            resolve(str(model))
    names = folder_names(models)
    if repeated := [name for name in names if names.count(name) > 1]:
        raise JudgeSenseError(f"{repeated[0]} is given twice; each model needs its own name")


def folder_name(model: Any) -> str:
    """The name of a model's answer folder: the last part of its id or path."""
    if isinstance(model, (str, Path)):
        return Path(model).name
    return str(getattr(model, "name", None) or model.__name__)


def folder_names(models: Sequence[Any]) -> list[str]:
    """A distinct `folder_name` per model: models that share a last part ("org/x" and "team/x") get
    the whole id or path, with ``--`` for ``/``."""
    names = [folder_name(model) for model in models]
    return [
        Path(model).as_posix().strip("/").replace("/", "--")
        if isinstance(model, (str, Path)) and names.count(name) > 1
        else name
        for model, name in zip(models, names, strict=True)
    ]


def ask_all(
    responders: Sequence[Any],
    questions: Sequence[Question],
    out: Path,
    prefix: str,
    *,
    max_tokens: int,
    seed: int,
    note: Callable[[str], None],
) -> dict[str, dict[tuple[str, str], dict[str, Any]]]:
    """Ask every responder the same questions; finished folders are only read.

    Answers go to ``out/answers/<prefix>-<name>``. Returns model -> (template_id, item_id) -> row of
    its response log. Raises JudgeSenseError if two responders are the same model.
    """
    rows_of: dict[str, dict[tuple[str, str], dict[str, Any]]] = {}
    for responder, name in zip(responders, folder_names(responders), strict=True):
        folder = out / "answers" / f"{prefix}-{name}"
        log = respond(responder, questions, folder, max_tokens=max_tokens, seed=seed, note=note)
        model = str(log["model"][0])
        if model in rows_of:
            raise JudgeSenseError(f"{name} is {model}, like another responder; leave one out")
        rows_of[model] = {(row["template_id"], row["item_id"]): row for row in log.to_pylist()}
    return rows_of


def option_logprobs(row: Row) -> tuple[float, ...] | None:
    """The log-probabilities of a response's options, in their order; None without them."""
    options = row["option_logprobs"]
    return None if options is None else tuple(option["logprob"] for option in options)


def draw(
    name: str, n: int | None, seed: int, mirror: str | Path | None, keep: Path | None = None
) -> Drawn:
    """``n`` items of a set (None: all), the same for the same seed.

    With the folder ``keep``, they are stored in ``keep/items/<name>.json``; a rerun reads that
    file and needs neither the Hub nor a mirror.

    Raises JudgeSenseError for an unknown or unreadable set, a set with fewer items, and a folder
    with items drawn with other settings.
    """
    if name not in SETS:
        raise JudgeSenseError(f"unknown benchmark {name!r}; choose from {', '.join(SETS)}")
    if n is not None and n < 1:
        raise JudgeSenseError(f"limit must be at least 1, got {n}")
    arguments = {"benchmark": name, "items": n, "seed": seed}
    path = None if keep is None else keep / ITEMS_FOLDER / f"{name}.json"
    if path is not None and path.is_file():
        return _read_drawn(path, arguments)
    if mirror is not None and not Path(mirror).is_dir():
        raise JudgeSenseError(f"no mirror folder {mirror}")
    dataset = SETS[name]
    table: SourceTable = Reader(None if mirror is None else Path(mirror)).split(
        dataset.hub_id, dataset.config, dataset.split, dataset.columns, dataset.licence
    )
    rng = generator(seed, name)
    all_items = [dataset.read(row, place, rng) for place, row in table]
    items = [item for item in all_items if item is not None]
    if n is not None and n > len(items):
        raise JudgeSenseError(f"{dataset.hub_id} has {len(items)} items; lower --limit from {n}")
    sample = [items[at] for at in rng.permutation(len(items))[:n]]
    source: dict[str, Any] = {
        "set": table.name,
        "revision": table.revision,
        "license": table.license,
        "items": len(sample),
        "of": len(items),
    }
    if left_out := len(all_items) - len(items):
        source["left_out"] = f"{left_out} left out because they lack four different options"
    drawn = Drawn(asked=arguments, source=source, items=tuple(sample))
    if path is not None:
        require_writable(path.parent)
        with writing(path.parent):
            write_text(path, json.dumps(drawn.model_dump(), ensure_ascii=False, indent=1))
    return drawn


def _read_drawn(path: Path, arguments: Mapping[str, Any]) -> Drawn:
    try:
        content = validate(Drawn, parse_json(file_bytes(path), path.name), path.name, "drawn items")
    except (OSError, JudgeSenseError) as error:
        raise JudgeSenseError(f"{path} is damaged ({error}); delete it and rerun") from error
    for key, value in arguments.items():
        if content.asked.get(key) != value:
            raise JudgeSenseError(
                f"{path} was drawn with {key} {content.asked.get(key)}, not {value}; choose "
                "another --out folder"
            )
    return content


def _choice(
    item_id: str, question: str, options: list[str], correct: int, place: str
) -> BenchmarkItem | None:
    texts = tuple(clean_text(option, place, "options") for option in options)
    if len(texts) != N_OPTIONS or len(set(texts)) < N_OPTIONS:
        return None
    return BenchmarkItem(
        item_id, clean_text(question, place, "question"), (texts[correct],), texts, correct
    )


def _labelled(row: Row, place: str, _: Generator, question: str) -> BenchmarkItem | None:
    """ARC and OpenBookQA: ``choices`` has texts and labels (A to E, or 1 to 5)."""
    labels, key = list(row["choices"]["label"]), str(row["answerKey"])
    if key not in labels:
        raise JudgeSenseError(f"{place}, column answerKey: {key!r} is not one of {labels}")
    options = list(row["choices"]["text"])
    return _choice(str(row["id"]), row[question], options, labels.index(key), place)


def _gpqa(row: Row, place: str, rng: Generator) -> BenchmarkItem | None:
    """The right answer has its own column, so the options are shown in a random order."""
    order = rng.permutation(N_OPTIONS).tolist()
    options = [row[_GPQA_OPTIONS[at]] for at in order]
    return _choice(_number(place, "gpqa"), row["Question"], options, order.index(0), place)


def _mmlu(row: Row, place: str, _: Generator) -> BenchmarkItem | None:
    name = f"{row['subject']}-{place.rpartition(' ')[2]}"
    return _choice(name, row["question"], list(row["choices"]), int(row["answer"]), place)


def _problem(row: Row, place: str, _: Generator, name: str) -> BenchmarkItem:
    return _open(_number(place, name), row["problem"], [row["answer"]], place)


def _gsm8k(row: Row, place: str, _: Generator) -> BenchmarkItem:
    match = _GSM8K_ANSWER.search(row["answer"])
    if match is None:
        raise JudgeSenseError(f"{place}, column answer: no '#### number' at its end")
    return _open(_number(place, "gsm8k"), row["question"], [match[1].replace(",", "")], place)


def _story(row: Row, place: str, _: Generator, summary: bool) -> BenchmarkItem:
    answers = [answer["text"] for answer in row["answers"]]
    text = row["document"]["summary"]["text"] if summary else row["document"]["text"]
    name, context = _number(place, "narrativeqa"), clean_text(text, place, "text")
    return _open(name, row["question"]["text"], answers, place, context)


def _open(
    item_id: str, question: str, answers: list[str], place: str, context: str = ""
) -> BenchmarkItem:
    accepted = tuple(clean_text(answer, place, "answer") for answer in answers)
    return BenchmarkItem(
        item_id, clean_text(question, place, "question"), accepted, context=context
    )


def _number(place: str, name: str) -> str:
    return f"{name}-{int(place.rpartition(' ')[2]):05d}"


_GPQA_OPTIONS = ("Correct Answer", *(f"Incorrect Answer {n}" for n in (1, 2, 3)))
_CHOICES = {"choices": dict, "answerKey": str, "id": str}
_STORY = {"document": dict, "question": dict, "answers": list}
_STORIES = "deepmind/narrativeqa", None, "test", _STORY, "apache-2.0"
_PROBLEMS = {"problem": str, "answer": str}

SETS: Mapping[str, QuestionSet] = {
    "arc-challenge": QuestionSet(
        "allenai/ai2_arc",
        "ARC-Challenge",
        "test",
        {"question": str, **_CHOICES},
        "cc-by-sa-4.0",
        partial(_labelled, question="question"),
    ),
    "openbookqa": QuestionSet(
        "allenai/openbookqa",
        "main",
        "test",
        {"question_stem": str, **_CHOICES},
        "unknown",
        partial(_labelled, question="question_stem"),
    ),
    "gpqa-diamond": QuestionSet(
        "Idavidrein/gpqa",
        "gpqa_diamond",
        "train",
        dict.fromkeys(("Question", *_GPQA_OPTIONS), str),
        "cc-by-4.0",
        _gpqa,
    ),
    "narrativeqa": QuestionSet(*_STORIES, partial(_story, summary=False)),
    "narrativeqa-summaries": QuestionSet(*_STORIES, partial(_story, summary=True)),
    "math": QuestionSet(
        "HuggingFaceH4/MATH-500", None, "test", _PROBLEMS, "mit", partial(_problem, name="math")
    ),
    "simpleqa": QuestionSet(
        "basicv8vc/SimpleQA", None, "test", _PROBLEMS, "mit", partial(_problem, name="simpleqa")
    ),
    "gsm8k": QuestionSet(
        "openai/gsm8k", "main", "test", {"question": str, "answer": str}, "mit", _gsm8k
    ),
    "mmlu": QuestionSet(
        "cais/mmlu",
        "all",
        "test",
        {"question": str, "subject": str, "choices": list, "answer": int},
        "mit",
        _mmlu,
    ),
}
"""The sets by the names that the studies use. ``math`` is MATH-500, a subset of MATH's test split
on the Hub; ``narrativeqa-summaries`` shows a story's summary instead of the story, for models with
a short context."""
