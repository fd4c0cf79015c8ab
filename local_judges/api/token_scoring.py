"""Option log-probabilities by token id, where a served vLLM returns them.

The same numbers as those of the local engines: the log-probability of each option's whole token
sequence. The chat endpoint returns those of the options' first tokens (``logprob_token_ids``) with
the prompt's own tokens; the completions endpoint continues these tokens for the inner nodes of the
options' trie. Tokens come from the server's tokenizer, so none is needed here.
"""

from __future__ import annotations

import asyncio
import math
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

from local_judges.api.refusals import TOKEN_PARAMETERS
from local_judges.api.replies import answer_of
from local_judges.local.option_scoring import (
    MOST_TOKEN_IDS,
    ROOT,
    OptionTrie,
    needed_tokens,
    option_trie,
    path_to,
    scores_of,
)
from local_judges.protocol import Answer, Request

Create = Callable[..., Awaitable[Any]]
"""Sends one request to an endpoint, given its body as arguments."""

_MARK = "judgesense-placeholder"
_ID = "token_id:"
_TEMPLATE_FIELDS = ("chat_template", "chat_template_kwargs")
"""Fields of a request that change how the server renders the messages."""


class ServedTokenizer:
    """The tokenizer of a vLLM server, with the two methods that option scoring needs.

    ``client`` is an ``openai.OpenAI``, whose errors the methods raise.
    """

    def __init__(self, client: Any, model: str) -> None:
        self._client, self._model = client, model
        # These routes are beside /v1, not below it.
        self._root = str(client.base_url).rstrip("/").removesuffix("/v1")

    def __call__(self, text: str, add_special_tokens: bool = False) -> SimpleNamespace:
        """The tokens of a text, as ``input_ids``."""
        body = {"prompt": text, "add_special_tokens": add_special_tokens}
        return SimpleNamespace(input_ids=self._post("tokenize", body)["tokens"])

    def decode(self, tokens: Sequence[int], clean_up_tokenization_spaces: bool = False) -> str:
        """The text of tokens, special ones included."""
        return str(self._post("detokenize", {"tokens": list(tokens)})["prompt"])

    def conversation(self, messages: Sequence[Mapping[str, str]], **template: Any) -> str:
        """The text of a conversation, with the special tokens of the chat template."""
        body = {"messages": list(messages), **template}
        return self.decode(self._post("tokenize", body)["tokens"])

    def _post(self, route: str, body: Mapping[str, Any]) -> dict[str, Any]:
        fields = {"model": self._model, **body}
        return _object(self._client.post(f"{self._root}/{route}", cast_to=object, body=fields))


class TokenScorer:
    """Reads option log-probabilities from a vLLM server.

    ``body`` is that of any chat request to the judge: its messages show where an answer begins and
    ends.
    """

    def __init__(self, tokenizer: ServedTokenizer, body: Mapping[str, Any]) -> None:
        self._tokenizer = tokenizer
        extra = body.get("extra_body", {})
        template = {key: extra[key] for key in _TEMPLATE_FIELDS if key in extra}
        messages = [*body["messages"][:-1], {**body["messages"][-1], "content": _MARK}]
        answer = {"role": "assistant", "content": _MARK}
        self.tail = _text_after_mark(tokenizer.conversation(messages, **template))
        conversation = tokenizer.conversation(
            [*messages, answer], add_generation_prompt=False, **template
        )
        self.stop_tokens = _first_visible(tokenizer, _text_after_mark(conversation))
        self._tries: dict[tuple[tuple[str, ...], str], tuple[OptionTrie, dict[int, list[int]]]] = {}
        self._lock = threading.Lock()

    def trie(
        self, options: tuple[str, ...], reply_form: str = ""
    ) -> tuple[OptionTrie, dict[int, list[int]]]:
        """The trie of the options in the form of a reply, and the tokens to ask for after each
        node.

        Raises JudgeSenseError if the served model's vocabulary cannot spell an option.
        """
        key = (options, reply_form)
        with self._lock:
            if key not in self._tries:
                trie = option_trie(
                    self._tokenizer, self.tail, options, self.stop_tokens, reply_form
                )
                self._tries[key] = trie, needed_tokens(trie, self.stop_tokens)
            return self._tries[key]

    async def ask(
        self,
        create: Create,
        complete: Create,
        body: Mapping[str, Any],
        request: Request,
        begins_thinking: bool = False,
        writes: bool = True,
    ) -> Answer:
        """One prompt: its text from the chat endpoint, and the log-probability of each option.

        ``create`` and ``complete`` send a request to the chat and the completions endpoint. Unless
        the judge ``writes``, one token is generated.

        Raises ValueError if a reply lacks what was asked for.
        """
        trie, tokens_by_node = await asyncio.to_thread(
            self.trie, request.options, request.reply_form
        )
        # Inside the form of a reply, nothing is scored where the reply begins.
        root_tokens = {"logprob_token_ids": tokens_by_node[ROOT]} if ROOT in tokens_by_node else {}
        extra = {
            **body.get("extra_body", {}),
            **root_tokens,
            "return_token_ids": True,
            "return_tokens_as_token_ids": True,
        }
        chat_body = {k: v for k, v in body.items() if k != "top_logprobs"} | {"extra_body": extra}
        if not writes:
            chat_body |= {key: 1 for key in TOKEN_PARAMETERS if key in chat_body}
        reply = await create(**chat_body)
        answer = answer_of(reply, request, begins_thinking)
        if answer.refused:
            # A filter in front of the model may send no tokens, whenever it is asked.
            return answer
        try:
            prompt = list(reply["prompt_token_ids"])
            logprobs: dict[int, dict[int, float]] = {}
            if root_tokens:
                first = reply["choices"][0]["logprobs"]["content"][0]["top_logprobs"]
                entries = {entry["token"]: entry["logprob"] for entry in first}
                logprobs[ROOT] = _logprobs_by_id(entries)
            for nodes in _call_groups(tokens_by_node):
                logprobs |= await _logprobs_after(complete, body["model"], prompt, trie, nodes)
            values = scores_of(trie, logprobs, self.stop_tokens)
        except (IndexError, KeyError, TypeError) as error:
            raise ValueError(f"the reply lacks the log-probability of a token: {error}") from error
        answer.option_logprobs = values
        answer.option_mass = min(sum(map(math.exp, values)), 1.0)
        return answer


def find_scorer(client: Any, model: str, body: Mapping[str, Any]) -> TokenScorer | None:
    """The scorer of an endpoint that is a vLLM server; None if it is none or is too old.

    Asks for the list of models, where a vLLM server names itself. ``client`` is an
    ``openai.OpenAI``. Raises ``openai.APIConnectionError`` if the endpoint cannot be reached.
    """
    from openai import APIConnectionError, OpenAIError

    try:
        models = _object(client.get("/models", cast_to=object))
        if not any(entry.get("owned_by") == "vllm" for entry in models["data"]):
            return None
        tokenizer = ServedTokenizer(client, model)
        if not _answers_by_id(client, model, tokenizer(_MARK).input_ids):
            return None
        return TokenScorer(tokenizer, body)
    except APIConnectionError:
        raise
    except (OpenAIError, AttributeError, LookupError, RecursionError, TypeError, ValueError):
        return None


def _object(reply: Any) -> dict[str, Any]:
    """A reply that is a JSON object. Raises ValueError for any other."""
    if not isinstance(reply, dict):
        raise ValueError("the reply is not a JSON object")
    return reply


def _answers_by_id(client: Any, model: str, tokens: list[int]) -> bool:
    """Whether the server returns the log-probabilities of tokens that are asked for by their ids.

    Older versions ignore the ids and return the best token or two; these are more.
    """
    token_ids = sorted(set(tokens))
    body = {"model": model, **_completion([tokens[:1]], token_ids)}
    reply = _object(client.post("/completions", cast_to=object, body=body))
    logprobs = _logprobs_by_id(reply["choices"][0]["logprobs"]["top_logprobs"][0])
    return logprobs.keys() >= set(token_ids)


async def _logprobs_after(
    complete: Create,
    model: str,
    prompt: list[int],
    trie: OptionTrie,
    nodes: Mapping[int, list[int]],
) -> dict[int, dict[int, float]]:
    """The log-probabilities of tokens after each of these nodes, from one call."""
    texts = [[*prompt, *path_to(trie, node)] for node in nodes]
    reply = await complete(model=model, **_completion(texts, sorted(set().union(*nodes.values()))))
    choices = sorted(reply["choices"], key=lambda choice: choice["index"])
    logprobs = [_logprobs_by_id(choice["logprobs"]["top_logprobs"][0]) for choice in choices]
    return dict(zip(nodes, logprobs, strict=True))


def _completion(prompts: Sequence[Sequence[int]], tokens: Sequence[int]) -> dict[str, Any]:
    """A completions request for the log-probabilities of tokens after each prompt."""
    return {
        "prompt": [list(prompt) for prompt in prompts],
        "max_tokens": 1,
        "temperature": 0.0,
        "logprobs": 1,
        "logprob_token_ids": list(tokens),
        "return_tokens_as_token_ids": True,
    }


def _call_groups(tokens_by_node: Mapping[int, list[int]]) -> list[dict[int, list[int]]]:
    """The inner nodes, in as few calls as the limit of token ids allows."""
    inner = {node: tokens for node, tokens in tokens_by_node.items() if node != ROOT}
    if not inner:
        return []
    if len(set().union(*inner.values())) <= MOST_TOKEN_IDS:
        return [inner]
    return [{node: tokens} for node, tokens in inner.items()]


def _logprobs_by_id(entries: Mapping[str, float]) -> dict[int, float]:
    """The log-probabilities by token id. Raises ValueError for one that is none."""
    logprobs = {
        int(token.removeprefix(_ID)): value
        for token, value in entries.items()
        if token.startswith(_ID)
    }
    # Rounding on the server may leave a logarithm slightly above 0.
    if invalid := [value for value in logprobs.values() if not -math.inf < value < 0.01]:
        raise ValueError(f"the reply has {invalid[0]} as a log-probability")
    return {token: float(value) for token, value in logprobs.items()}


def _text_after_mark(text: str) -> str:
    return text.rsplit(_MARK, 1)[1] if _MARK in text else ""


def _first_visible(tokenizer: ServedTokenizer, text: str) -> list[int]:
    """The first token of a text that is not white space, as a list; empty if there is none.

    After an assistant's message it is the token that ends a turn.
    """
    for token in tokenizer(text).input_ids if text else []:
        if tokenizer.decode([token]).strip():
            return [token]
    return []
