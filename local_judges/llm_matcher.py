"""Answer matching by a judge: does a response give the reference answer, in any form?

Source: "Artifact or Flaw? Rethinking Prompt Sensitivity in Evaluating LLMs", section 2.2 and
Appendix B. The prompts are in ``data/matching_prompts.yaml``.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from judgesense.answers.matching.result import Reference, accepted, check_pairs
from judgesense.answers.text import without_thinking
from judgesense.errors import JudgeSenseError
from judgesense.files.disk import read_text
from judgesense.files.documents import read_yaml
from judgesense.tasks import ERROR, REFUSED, UNCLEAR, prompt_id
from judgesense.text import fill
from local_judges.protocol import Answer, Judge, Request
from local_judges.runner import ask_all, require_scorings

MAX_TOKENS = 256
"""The token cap for a verdict with its reason; the 20 of a bare decision would cut it off."""

_PROMPTS = Path(__file__).parent / "data" / "matching_prompts.yaml"
_FIELDS = ("question", "reference_answer", "model_prediction")
_OBJECT = re.compile(r"\{[^{}]*\}")
_MATCH = re.compile(
    r"""(?:["'“”‘’]match["'“”‘’]|\{\s*match)\s*[:=]\s*["']?(true|false)\b""", re.IGNORECASE
)
_REASON = re.compile(r"""["']reason["']\s*:\s*["'](.*?)["']?\s*\}?\s*(?:```)?\s*$""", re.DOTALL)


@dataclass(frozen=True)
class JudgedMatches:
    """A judge's verdicts on n responses.

    ``per_example[i]`` is 1.0 (match), 0.0 (no match) or None without a verdict; ``outcomes[i]`` is
    "ok", or UNCLEAR, REFUSED or ERROR without a verdict. ``reasons[i]`` is the judge's reason, its
    reply or the error. ``score`` is the mean over the verdicts, or None without any;
    ``score_low`` and ``score_high`` count every missing verdict as no match and as a match.
    """

    judge: str
    prompt: str
    per_example: list[float | None]
    outcomes: list[str] = field(repr=False)
    reasons: list[str] = field(repr=False)

    @property
    def score(self) -> float | None:
        """The mean over the responses with a verdict."""
        verdicts = [value for value in self.per_example if value is not None]
        return sum(verdicts) / len(verdicts) if verdicts else None

    @property
    def score_low(self) -> float:
        """The score if no response without a verdict matched."""
        return sum(value or 0.0 for value in self.per_example) / len(self.per_example)

    @property
    def score_high(self) -> float:
        """The score if every response without a verdict matched."""
        verdicts = [1.0 if value is None else value for value in self.per_example]
        return sum(verdicts) / len(verdicts)

    @property
    def n_unread(self) -> int:
        """The number of responses without a verdict."""
        return sum(value is None for value in self.per_example)


def judge_matches(
    judge: Judge,
    questions: Sequence[str],
    references: Sequence[Reference],
    predictions: Sequence[str],
    prompt: str | Path = "figure-3",
) -> JudgedMatches:
    """Ask a judge whether each of n responses gives its reference answer.

    ``prompt`` is a name in :func:`prompts`, or a text file with the placeholders ``{question}``,
    ``{reference_answer}`` and ``{model_prediction}`` that asks for the same JSON reply. Several
    accepted answers are joined by "or"; a responder's thinking is left out. Equal prompts are asked
    once. The judge must generate about 100 tokens of text, without a system prompt, because the
    prompt is the whole instruction. A reply without a readable verdict is UNCLEAR: the judge is not
    asked again, and no default is used.

    Raises JudgeSenseError for unequal or empty input, an unknown prompt, a judge that does not
    generate text, and, before anything is asked, prompts that could exceed its ``max_cost``.

    >>> from local_judges.callable_judge import CallableJudge
    >>> judge = CallableJudge(lambda messages: ['{"match": true}'] * len(messages), name="lenient")
    >>> judge_matches(judge, ["2 + 2?"], ["4"], ["It is four."]).score
    1.0
    """
    check_pairs(predictions, references)
    if len(questions) != len(predictions):
        raise JudgeSenseError(
            f"questions has {len(questions)} rows and predictions {len(predictions)}; "
            "pass one question per response"
        )
    require_scorings(judge.name, judge.scorings, ["generate"])
    texts = [
        matching_prompt(question, reference, without_thinking(prediction), prompt)
        for question, reference, prediction in zip(questions, references, predictions, strict=True)
    ]
    distinct = list(dict.fromkeys(texts))
    requests = [Request(prompt_id(text), text, ("true", "false")) for text in distinct]
    answers = ask_all(judge, requests, ["generate"])
    verdicts = {text: _verdict(answer) for text, answer in zip(distinct, answers, strict=True)}
    return JudgedMatches(
        judge=judge.name,
        prompt=check_prompt(prompt)[0],
        per_example=[verdicts[text][0] for text in texts],
        outcomes=[verdicts[text][1] for text in texts],
        reasons=[verdicts[text][2] for text in texts],
    )


def read_verdict(text: str) -> tuple[bool | None, str]:
    """The verdict in a judge's reply and its reason; (None, why) if it cannot be read.

    Reads JSON, also with single quotes, in a code fence, after thinking, with text around it, or
    cut off after the verdict. Two different verdicts count as none.

    >>> read_verdict("```json\\n{'match': false, 'reason': 'other year'}```")
    (False, 'other year')
    """
    text = without_thinking(text)
    objects = [pair for part in _OBJECT.findall(text) if (pair := _read_object(part)) is not None]
    verdicts = {verdict for verdict, _ in objects}
    if not verdicts:
        verdicts = {word.lower() == "true" for word in _MATCH.findall(text)}
    if len(verdicts) != 1:
        return None, "two verdicts" if verdicts else "no verdict"
    reason_match = _REASON.search(text)
    reason = objects[-1][1] if objects else reason_match.group(1) if reason_match else ""
    return verdicts.pop(), reason.strip()


@cache
def prompts() -> dict[str, str]:
    """The judging prompts by name."""
    texts: dict[str, str] = {}
    for name, entry in read_yaml(_PROMPTS)["prompts"].items():
        text = entry.get("text") or texts[entry["based_on"]]
        for old, new in entry.get("replace", {}).items():
            text = text.replace(old, new)
        texts[name] = text
    return texts


def matching_prompt(
    question: str, reference: Reference, prediction: str, prompt: str | Path = "figure-3"
) -> str:
    """The message that asks a judge whether a response gives the reference answer."""
    _, template = check_prompt(prompt)
    values = (question, " or ".join(accepted(reference)), prediction)
    return fill(template, dict(zip(_FIELDS, values, strict=True)))


def check_prompt(prompt: str | Path) -> tuple[str, str]:
    """The name and the text of a prompt; call it before a judge is loaded.

    Raises JudgeSenseError if ``prompt`` is not a name and not a file with the placeholders.
    """
    if str(prompt) in prompts():
        return str(prompt), prompts()[str(prompt)]
    path = Path(prompt)
    if not path.is_file():
        raise JudgeSenseError(
            f"unknown prompt {str(prompt)!r}; choose a file or one of {', '.join(prompts())}"
        )
    text = read_text(path)
    if missing := [name for name in _FIELDS if f"{{{name}}}" not in text]:
        raise JudgeSenseError(f"{path}: the prompt lacks the placeholder {{{missing[0]}}}")
    return path.name, text


def _verdict(answer: Answer) -> tuple[float | None, str, str]:
    """Verdict (1.0, 0.0 or None), outcome and reason of an answer."""
    text = answer.text or ""
    if answer.error is not None:
        return None, ERROR, answer.error
    if answer.refused:
        return None, REFUSED, text
    match, reason = read_verdict(text)
    if match is not None:
        return float(match), "ok", reason
    cap_note = ", cut off at the token cap" if answer.truncated else ""
    return None, UNCLEAR, f"{reason}{cap_note}: {text[:200]}"


def _read_object(text: str) -> tuple[bool, str] | None:
    """The verdict and reason in a JSON (or Python) object, if any."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        as_python = re.sub(r":\s*(true|false)\b", lambda m: ": " + m[1].capitalize(), text)
        try:
            value = ast.literal_eval(as_python)
        except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
            return None
    if not isinstance(value, dict):
        return None
    verdict = {"true": True, "false": False}.get(str(value.get("match")).lower())
    return None if verdict is None else (verdict, str(value.get("reason", "")))
