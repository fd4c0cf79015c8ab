"""Read the replies of a chat-completion endpoint: the text and the option log-probabilities."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from local_judges.protocol import Answer, Request


def answer_of(reply: Any, request: Request, begins_thinking: bool = False) -> Answer:
    """The answer in a chat completion, given as JSON. Raises ValueError if it holds none.

    ``begins_thinking`` adds the ``<think>`` that the server's template wrote before the text.

    >>> reply = {"choices": [{"message": {"content": "YES"}, "finish_reason": "length"}]}
    >>> answer = answer_of(reply, Request("1", "Is it?", ("YES", "NO")))
    >>> answer.text, answer.truncated
    ('YES', True)
    """
    try:
        choice = reply["choices"][0]
        message, usage = choice["message"], reply.get("usage")
        refusal = message.get("refusal")
        text = _text(message.get("content")) or (refusal if isinstance(refusal, str) else "")
        reason = choice.get("finish_reason")
    except (AttributeError, IndexError, KeyError, TypeError) as error:
        said = reply.get("error") if isinstance(reply, Mapping) else None
        raise ValueError(
            f"the reply is an error: {said}" if said else "the reply has no choices with text"
        ) from error
    if begins_thinking and not text.lstrip().startswith("<think>"):
        text = f"<think>\n{text}"
    answer = Answer(
        # A lone surrogate cannot be encoded.
        text=text.encode("utf-8", "replace").decode(),
        input_tokens=_count(usage, "prompt_tokens"),
        output_tokens=_count(usage, "completion_tokens"),
        truncated=reason == "length",
        refused=bool(refusal) or reason == "content_filter",
    )
    if top := _top(choice):
        answer.option_logprobs, answer.option_mass = first_token_options(top, request.options)
    return answer


def _text(content: Any) -> str:
    """The text of a message; if it is in parts, the parts of type text (not thinking)."""
    if isinstance(content, list):
        return "".join(part["text"] for part in content if part["type"] == "text")
    if content is None or isinstance(content, str):
        return content or ""
    raise TypeError(f"content is {type(content).__name__}")


def _count(usage: Any, name: str) -> int | None:
    """A number of tokens; None if the endpoint returns none or an invalid one."""
    value = usage.get(name) if isinstance(usage, Mapping) else None
    return value if type(value) is int and 0 <= value < 2**31 else None


def _top(choice: Mapping[str, Any]) -> list[tuple[str, float]]:
    """The first token's best alternatives; empty if they do not have the expected shape."""
    try:
        entries = choice["logprobs"]["content"][0]["top_logprobs"]
        found = [(entry["token"], float(entry["logprob"])) for entry in entries]
    except (IndexError, KeyError, OverflowError, TypeError, ValueError):
        return []
    # Rounding on the server may leave a logarithm slightly above 0.
    read = [(t, min(p, 0.0)) for t, p in found if isinstance(t, str) and -math.inf < p < 0.01]
    # Tokens listed twice are no probabilities.
    return read if sum(math.exp(p) for _, p in read) < 1.01 else []


def first_token_options(
    top: Sequence[tuple[str, float]], options: Sequence[str]
) -> tuple[tuple[float, ...] | None, float | None]:
    """The options' log-probabilities, from the first token's best alternatives, and their mass.

    A token counts for the option that it begins ("Y" and " YES" for YES) if it begins no other.
    The probability of tokens that begin several options ("1" on a scale to 10), and of those not
    shown (at most that of the last alternative, or the remaining mass), may belong to any of them.
    An option without a token of its own gets the highest probability that it can have. If another
    option could then be the best, there is no decision (None): too few alternatives were shown.

    >>> values, mass = first_token_options([("YES", -0.1), ("NO", -2.5)], ("YES", "NO"))
    >>> [round(value, 3) for value in values], round(mass, 3)
    ([-0.1, -2.5], 0.987)
    """
    found = dict.fromkeys(options, 0.0)
    shared = dict.fromkeys(options, 0.0)
    for token, logprob in top:
        stem = token.strip().lstrip("▁Ġ")
        begun = [option for option in options if stem and option.startswith(stem)]
        for option in begun:
            (found if len(begun) == 1 else shared)[option] += math.exp(logprob)
    mass = sum(found.values())
    if mass == 0.0:
        return None, 0.0
    unseen = max(1.0 - sum(math.exp(logprob) for _, logprob in top), 0.0)
    bound = min(unseen, math.exp(min(logprob for _, logprob in top)))
    best = max(found, key=lambda option: found[option])
    most = {o: p + shared[o] + (0.0 if p else bound) for o, p in found.items()}
    if any(most[option] >= found[best] for option in options if option != best):
        return None, min(mass, 1.0)
    values = (p if p else max(most[option], 1e-12) for option, p in found.items())
    return tuple(math.log(p) for p in values), min(mass, 1.0)
