"""The likelihood of the options' texts: what lm-eval compares as acc and acc_norm."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from judgesense.studies.answer_matching.templates import CHOICE, SET_OF, AnswerTemplate
from judgesense.studies.common.question_sets import BenchmarkItem, ask_all
from local_judges.registry import JudgeSpec, resolve
from local_judges.responder import Question


def ask_option_texts(
    benchmark: str,
    items: Sequence[BenchmarkItem],
    templates: Sequence[AnswerTemplate],
    responders: Sequence[Any],
    logs: Mapping[str, Mapping[tuple[str, str], Mapping[str, Any]]],
    out: Path,
    note: Callable[[str], None],
    seed: int,
) -> dict[str, dict[tuple[str, str], dict[str, float]]]:
    """The log-probabilities of the options' texts: model -> (template, item) -> text -> nats.

    They are scored in runs of their own, so that the labels' figures do not depend on them.

    Args:
        logs: the answers, model -> (template, item) -> row of the response log.

    Returns:
        An empty mapping for other than multiple choice, and unless every responder scored the
        labels and sees whole token sequences: an API shows the first token only, which several
        texts may share.
    """
    rows = [row for own in logs.values() for row in own.values() if row["error"] is None]
    scored = all(row["option_logprobs"] is not None for row in rows)
    if SET_OF[benchmark] != CHOICE or not scored or any(map(_first_token_only, responders)):
        return {}
    questions = [
        Question(item.item_id, template.name, template.render(item), item.options)
        for template in templates
        for item in items
    ]
    found = ask_all(
        responders, questions, out, f"{benchmark}-texts", max_tokens=1, seed=seed, note=note
    )
    return {
        model: {
            cell: {each["option"]: each["logprob"] for each in row["option_logprobs"] or ()}
            for cell, row in own.items()
        }
        # Same order; the shorter cap makes other fingerprints.
        for model, own in zip(logs, found.values(), strict=True)
    }


def _first_token_only(responder: Any) -> bool:
    if isinstance(responder, (str, Path)):
        return resolve(str(responder)).engine == "api"
    if isinstance(responder, JudgeSpec):
        return responder.engine == "api"
    describe = getattr(responder, "describe", None)
    return describe is not None and describe().get("engine") == "api"
