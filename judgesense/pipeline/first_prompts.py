"""Three prompts before the rest: a judge whose replies cannot be read is asked no more."""

from __future__ import annotations

import hashlib
import json
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc

from judgesense.answers.markers import VERDICT_KEYS
from judgesense.benchmark import Benchmark
from judgesense.errors import JudgeSenseError
from judgesense.files.disk import file_bytes, write_text, writing
from judgesense.recipes.recipe import AS_ASKED
from judgesense.tasks import UNDECIDED, load_label_map
from judgesense.text import join, shorten
from judgesense_dataset.reply_labels import field_to_read
from local_judges.plan import Requests
from local_judges.protocol import Answer, Budgeted, Judge
from local_judges.recipe_judge import RecipeJudge
from local_judges.rows import decide
from local_judges.runner import ask_all

FILE = "first_prompts.json"
"""The file with replies that could not be read; where it exists, the same command goes on."""

FEW = 3
"""The prompts that are sent first."""

_BUDGET_CHECK = 64
"""Prompts whose highest cost must fit the budget before the first are sent."""

_SHOWN = 200
"""Characters of a reply that are shown."""

_MAX_WORD = 24
"""The longest value of a reply that can be its verdict."""


def first_answers(
    judge: Judge, benchmark: Benchmark, scorings: Sequence[str], folder: Path
) -> Mapping[str, Answer]:
    """The answers to three prompts of a run that has none yet, by prompt id.

    {} for a small run, and for an improved judge: it was measured when its file was made, and may
    leave items to a person. Raises JudgeSenseError, with the replies and what to change, if none of
    them can be read. The same prompts asked again are not sent a second time: then the run goes on.
    """
    requests = Requests(benchmark.asked)
    improved = getattr(judge, "improved", None)
    if len(requests) <= FEW or (improved is not None and improved.recipe.name != AS_ASKED):
        return {}
    first = requests.take(np.linspace(0, len(requests) - 1, FEW).astype(int).tolist())
    prompts = benchmark.prompts
    prompt_options = [[request.prompt_id, request.options] for request in first]
    aliases = {key: dict(value) for key, value in benchmark.aliases.items()}
    identity = [judge.name, list(scorings), prompt_options, aliases]
    digest = hashlib.sha256(json.dumps(identity).encode()).hexdigest()
    marker = folder / FILE
    if marker.exists() and json.loads(file_bytes(marker)).get("digest") == digest:
        return {}
    if isinstance(judge, RecipeJudge):
        # It gives verdicts; the replies are those of the judge that it asks.
        first = judge.stages[0].prompts(first)
        judge = judge.inner[0]
    if isinstance(judge, Budgeted):
        budget = getattr(getattr(judge, "options", None), "max_cost", None)
        next_cost = judge.estimate(requests.take(range(min(len(requests), _BUDGET_CHECK)))) or 0.0
        # If the budget then refuses the rest, the three would be paid for in vain.
        if (budget is not None and judge.spent + next_cost > budget) or judge.admit(first):
            return {}  # The run says so, and how far it came.
    answers = ask_all(judge, first, scorings, is_admitted=True)
    for request, answer in zip(first, answers, strict=True):
        if improved is None:
            row = pc.index(prompts["prompt_id"], request.prompt_id).as_py()
            template = prompts["template_id"][row].as_py()
            reading = benchmark.aliases.get(template), benchmark.fields.get(template, "")
        else:
            reading = improved.base.aliases, field_to_read(improved.base)
        if any(
            decide(answer, scoring, request.options, *reading) not in UNDECIDED
            for scoring in scorings
        ):
            pairs = zip(first, answers, strict=True)
            return {asked.prompt_id: reply for asked, reply in pairs if reply.error is None}
    labels = load_label_map(prompts["label_map"][0].as_py())
    replies = [answer.error or answer.text or "" for answer in answers]
    with writing(folder):
        write_text(marker, json.dumps({"digest": digest, "replies": replies}, indent=1) + "\n")
    lines = "\n".join(f"  {n}: {shorten(text, _SHOWN)!r}" for n, text in enumerate(replies, 1))
    names = join(list(labels), "or")
    raise JudgeSenseError(
        f"none of the first {FEW} replies of {judge.name} can be read as {names}, so "
        f"no more prompts were sent:\n{lines}\n{_advice(judge, answers, labels, scorings)} To "
        "judge every prompt as it is, rerun the same command."
    )


def _advice(
    judge: Judge, answers: Sequence[Answer], labels: Mapping[str, str], scorings: Sequence[str]
) -> str:
    """What to change so that the replies can be read."""
    texts = [(answer.text or "").strip() for answer in answers]
    if all(answer.error for answer in answers):
        return "Each prompt failed; the replies above are the reasons."
    if list(scorings) == ["options"]:
        return "The judge gives no log-probabilities of the answers: use --scoring generate."
    if all(answer.truncated for answer in answers):
        cap = getattr(getattr(judge, "options", None), "max_tokens", None)
        length = f"{cap} tokens" if cap else "the token cap"
        return f"Each reply was cut at {length}: --set max_tokens={4 * (cap or 1024)}."
    if all(text.lower().startswith(("<!doctype", "<html")) for text in texts):
        return "The replies are HTML pages: base_url must be the address of the API."
    if not any(texts):
        return "The replies are empty: a reasoning model needs a higher --set max_tokens=N."
    words = list(dict.fromkeys(word for text in texts for word in _verdicts(text)))
    if len(words) == 1:
        word = words[0]
        return (
            f"The replies state {word!r}: if that is a verdict, say which label it is with --map "
            f"{shlex.quote(f'{word}=LABEL')}, or list all verdicts with --answers."
        )
    if words:
        # Which is which is not guessed: a wrong example would be copied.
        pairs = shlex.quote(",".join(f"{word}=LABEL" for word in words))
        return (
            f"The replies state {join(words)}: say which label each one is with --map {pairs}, or "
            "list the verdicts with --answers."
        )
    return (
        "Ask for one of these labels in the prompt, list the labels that the replies use with "
        "--answers, or translate them with --map THEIRS=OURS."
    )


def _verdicts(text: str) -> list[str]:
    """What a reply probably states: the values of its verdict fields, or a short reply itself."""
    start, end = text.find("{"), text.rfind("}")
    try:
        values: Any = json.loads(text[start : end + 1])
    except ValueError:
        values = None
    if isinstance(values, dict):
        words = {key: _scalar_text(value) for key, value in values.items()}
        verdict_words = [w for key, w in words.items() if w and key.casefold() in VERDICT_KEYS]
        return verdict_words or [word for word in words.values() if word]
    return [text.strip("\"'`*. ")] if 0 < len(text) <= _MAX_WORD else []


def _scalar_text(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        return str(value).lower() if isinstance(value, bool) else ""
    return str(value) if len(str(value)) <= _MAX_WORD else ""
