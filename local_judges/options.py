"""The settings of every engine, each written once: name, type, default, bounds and meaning.

Judge files, ``--set KEY=VALUE``, ``judgesense judges options``, a run's record and the table in the
documentation are derived from these classes, and :func:`check` validates all of them.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields
from difflib import get_close_matches
from functools import cache
from types import NoneType
from typing import Any, TypeVar, get_args, get_type_hints

from judgesense.errors import JudgeSenseError

SYSTEM_PROMPT = (
    "You are an evaluation assistant. Give only the requested answer with no explanation."
)
"""The judges' system prompt of "JudgeSense: A Benchmark for Prompt Sensitivity in
LLM-as-a-Judge Systems" (arXiv 2604.23478), section 4.2."""

MAX_TOKENS = 20
"""The cap on generated tokens of the same section."""

KEY_VARIABLE = "OPENAI_API_KEY"
"""The environment variable that holds the key unless another is named or the endpoint is on this
machine."""

ANSWER_FORMATS = ("json", "choice")
"""The values of ``answer_format``."""

T = TypeVar("T")

Price = tuple[float, float]
Actors = int | tuple[int, int]


def setting(
    default: Any,
    help: str,
    *,
    least: float | None = None,
    above: float | None = None,
    fixes_answers: bool = True,
    own_key: bool = False,
    several: bool = False,
    choices: Sequence[str] = (),
) -> Any:
    """A field of an engine's options.

    ``least`` and ``above`` bound a number; ``choices`` are the texts that a field allows, if it
    does not allow all. ``fixes_answers`` is False for what a resumed run may
    change: see :func:`limit`. ``own_key`` marks a key of its own in a judge file, outside
    ``options``; ``several`` an option whose values commas separate on a command line.
    """
    bounds = {"least": least, "above": above, "choices": tuple(choices)}
    marks = {"fixes_answers": fixes_answers, "own_key": own_key, "several": several}
    metadata = {"help": help, **bounds, **marks}
    if callable(default):
        return field(default_factory=default, metadata=metadata)
    return field(default=default, metadata=metadata)


def limit(default: Any, help: str, **more: Any) -> Any:
    """A setting of prices, limits or hardware, which does not change an answer."""
    return setting(default, help, fixes_answers=False, **more)


@dataclass(frozen=True, kw_only=True)
class Style:
    """How an endpoint wants to be asked: what differs between providers, as data."""

    system_role: bool = setting(True, "Send the system prompt as a message of its own.")
    min_temperature: float = setting(0.0, "Lowest temperature the endpoint accepts.", least=0)
    sends_temperature: bool = setting(True, "Send the temperature.")
    sends_seed: bool = setting(True, "Send the seed.")
    token_parameter: str = setting("max_tokens", "Name of the cap; or max_completion_tokens.")
    reasoning_effort: bool = setting(False, "Takes reasoning_effort, which variants set.")
    thinking_parameter: str | None = setting(
        None, "What caps the tokens of thinking, such as thinking_budget or reasoning.max_tokens."
    )
    begins_thinking: bool = setting(False, "The server's chat template writes <think> itself.")
    json_schema: bool = setting(True, "answer_format=json sends a schema; false: JSON mode.")
    extra_body: Mapping[str, Any] = setting(dict, "Sent with every request as it is.")


@dataclass(frozen=True, kw_only=True)
class Options:
    """Settings of every engine."""

    system_prompt: str = setting(SYSTEM_PROMPT, "System prompt; the first paper's by default.")
    max_tokens: int = setting(
        MAX_TOKENS,
        "Cap on generated tokens; a list makes one judge of each.",
        least=1,
        several=True,
    )
    temperature: float = setting(0.0, "Sampling temperature; 0 is greedy.", least=0)
    seed: int = setting(0, "Seed of sampled answers; a run's --seed comes first.")
    answer_format: str | None = setting(
        None, "json or choice: only a verdict can be written (vllm, api).", choices=ANSWER_FORMATS
    )


@dataclass(frozen=True, kw_only=True)
class LocalOptions(Options):
    """Settings of every engine that loads the model itself."""

    revision: str | None = setting(None, "Commit, branch or tag on the Hub.")
    dtype: str | None = setting(None, "float32, bfloat16 or float16; float32 on a CPU.")
    thinking: bool = setting(False, "Let the model think aloud first; raise max_tokens with it.")
    gguf_file: str | None = setting(None, "The file to load from a Hub repository of GGUF files.")


@dataclass(frozen=True, kw_only=True)
class TransformersOptions(LocalOptions):
    """Settings of the engine transformers."""

    device: str | None = setting(None, "cpu, cuda, cuda:1 or mps; the first GPU by default.")
    batch_tokens: int | None = setting(None, "Tokens per forward pass.", least=1)


@dataclass(frozen=True, kw_only=True)
class VllmOptions(LocalOptions):
    """Settings of the engine vllm."""

    load_format: str = setting("auto", "vLLM's load format; dummy draws random weights.")
    quantization: str | None = setting(None, "Quantise while loading, such as fp8.")
    batch_invariant: bool | None = setting(None, "Answers do not depend on the batch.")
    tensor_parallel_size: int = limit(1, "GPUs that share each layer.", least=1)
    pipeline_parallel_size: int = limit(1, "Groups of GPUs that share the layers.", least=1)
    distributed_executor_backend: str | None = limit(None, "ray: one model on several machines.")
    gpu_memory_utilization: float | None = limit(None, "Share of GPU memory vLLM may take (0.9).")
    max_model_len: int | None = setting(None, "Context; the model's, at most 32768.", least=1)
    max_num_seqs: int | None = limit(None, "Prompts in flight.", least=1)
    enforce_eager: bool = setting(False, "Run without CUDA graphs.")


@dataclass(frozen=True, kw_only=True)
class ApiOptions(Options):
    """Settings of the engine api."""

    base_url: str | None = setting(
        None, "OpenAI-compatible endpoint; $OPENAI_BASE_URL by default.", own_key=True
    )
    provider: str | None = setting(None, "Inference provider of huggingface_hub.", own_key=True)
    key_variable: str | None = limit(
        None, "Environment variable of the key; $OPENAI_API_KEY by default.", own_key=True
    )
    concurrency: int = limit(16, "Requests in flight (at most 1000).", least=1)
    timeout_s: float | None = limit(None, "Seconds per request (60).", above=0)
    retry_budget_s: float | None = limit(None, "Seconds for all tries of a prompt (120).", above=0)
    requests_per_minute: float | None = limit(None, "The account's limit.", least=1)
    tokens_per_minute: float | None = limit(None, "The account's limit.", least=1)
    price: Price | None = limit(
        None, "INPUT,OUTPUT in US dollars per million tokens.", own_key=True, several=True
    )
    max_cost: float | None = limit(None, "US dollars that may be spent; needs a price.", least=0)
    logprobs: bool = setting(True, "Read option probabilities of the first token.")
    floating: bool = setting(False, "The name may come to mean another checkpoint.", own_key=True)
    style: Style = setting(Style, "How the endpoint wants to be asked.", own_key=True)


@dataclass(frozen=True, kw_only=True)
class RayOptions:
    """Settings of the engine ray, beside those of the engine in its actors."""

    actor_engine: str | None = setting(None, "Engine in each actor; transformers by default.")
    ray_address: str | None = setting(None, "auto or HOST:PORT; this machine by default.")
    ray_actors: Actors | None = setting(None, "N or MIN,MAX; one per GPU by default.", several=True)
    ray_gpus: float | None = setting(None, "GPUs per actor; a share of one is fine.", least=0)
    ray_cpus: float = setting(1.0, "CPUs per actor.", least=0)


ENGINES: Mapping[str, type[Options]] = {
    "transformers": TransformersOptions, "vllm": VllmOptions, "api": ApiOptions,
}  # fmt: skip
"""The options of each engine."""


def _is_number(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    # An int of 400 digits is no float.
    return -sys.float_info.max <= value <= sys.float_info.max


def _is_price(value: object) -> bool:
    known = isinstance(value, (list, tuple)) and len(value) == 2 and all(map(_is_number, value))
    # Above a dollar per token, a sum could be infinite.
    return known and 0 <= min(value) <= max(value) <= 1e6  # type: ignore[type-var, call-overload, operator]


_KINDS: Sequence[tuple[Any, str, Callable[[Any], bool]]] = (
    (bool, "true or false", lambda value: type(value) is bool),
    (int, "a whole number", lambda value: type(value) is int),
    (float, "a number", _is_number),
    (str, "text (quote text that looks like something else)", lambda value: type(value) is str),
    (list[str], "a list of texts", lambda v: type(v) is list and all(type(t) is str for t in v)),
    (
        Price,
        "two numbers of 0 or more, US dollars per million tokens, at most 1e6",
        _is_price,
    ),
    (
        Actors,
        "a whole number, or the least and the most",
        lambda v: all(type(n) is int for n in (v if isinstance(v, (list, tuple)) else [v])),
    ),
    (Style, "a mapping", lambda value: isinstance(value, (Mapping, Style))),
    (Mapping[str, Any], "a mapping", lambda value: isinstance(value, Mapping)),
    (Any, "anything", lambda value: True),
)
"""Type of a field: what it is called, and whether a value fits."""


_VARIABLE = re.compile(r"[A-Z_][A-Z0-9_]{0,63}|[a-z_][a-z0-9_]{0,63}")
"""A variable's name; upper and lower case together is the form of a key."""


@cache
def table(kind: Any) -> Mapping[str, tuple[Field[Any], Any]]:
    """The fields of a class of options by name, each with the type of its values.

    >>> from local_judges.options import ApiOptions, table
    >>> field, kind = table(ApiOptions)["concurrency"]
    >>> field.default, kind
    (16, <class 'int'>)
    """
    hints, found = get_type_hints(kind), {}
    for own in fields(kind):
        hint = hints[own.name]
        stated = [part for part in get_args(hint) if part is not NoneType]
        if NoneType in get_args(hint):
            hint = stated[0] if len(stated) == 1 else Actors
        found[own.name] = (own, hint)
    return found


def check(
    kind: type | Mapping[str, Any], values: Mapping[str, Any], place: str, what: str = "key"
) -> None:
    """Validate values against a class of options, or against a mapping of keys to types.

    Raises JudgeSenseError for an unknown key (names the near ones and all), a value of the wrong
    type and a number out of bounds; ``place`` precedes the key in the message.
    """
    known = kind if isinstance(kind, Mapping) else {k: t for k, (_, t) in table(kind).items()}
    for key, value in values.items():
        if key not in known:
            raise JudgeSenseError(f"{place}{key}: unknown {what}; {suggest(key, known)}")
        if key == "key_variable" and isinstance(value, str) and not _VARIABLE.fullmatch(value):
            # The value is left out of the message: it may be the key itself.
            raise JudgeSenseError(
                f"{place}{key}: must be the name of an environment variable, such as "
                "OPENAI_API_KEY, not the key"
            )
        wanted = known[key]
        bounds = {} if isinstance(kind, Mapping) else table(kind)[key][0].metadata
        least, above = bounds.get("least"), bounds.get("above")
        choices = bounds.get("choices")
        words, fits = next(rest for each, *rest in _KINDS if each == wanted)
        words += "" if least is None else f" of {least} or more"
        words += "" if above is None else f" above {above}"
        words = " or ".join(choices) if choices else words
        if (
            not fits(value)
            or (least is not None and value < least)
            or (above is not None and value <= above)
            or (choices and value not in choices)
        ):
            raise JudgeSenseError(f"{place}{key}: must be {words}, got {value!r}")
        if wanted is Style and isinstance(value, Mapping):
            check(Style, value, f"{place}{key}.")


def made(kind: type[T], values: Mapping[str, Any]) -> T:
    """The options of these values, checked; None is the default. Raises as :func:`check` does."""
    stated = {key: value for key, value in values.items() if value is not None}
    check(kind, stated, "", "option")
    if isinstance(stated.get("style"), Mapping):
        stated["style"] = Style(**stated["style"])
    return kind(**stated)


def require_grammar(engine: str, options: Mapping[str, Any]) -> None:
    """Raise JudgeSenseError for an ``answer_format`` if the engine cannot enforce one."""
    if engine == "transformers" and options.get("answer_format"):
        raise JudgeSenseError(
            "answer_format: the engine transformers cannot restrict what a model writes; use "
            "--scoring options, which reads the probability of each option and no text, or "
            "--engine vllm"
        )


def suggest(wanted: str, known: Iterable[str]) -> str:
    """What to choose instead of an unknown name: the near ones first, then all.

    >>> suggest("max_token", ["seed", "max_tokens"])
    'did you mean max_tokens? Choose one of max_tokens, seed'
    """
    names, folded = list(known), wanted.casefold()
    near = [name for name in names if len(folded) > 2 and folded in name.casefold()]
    near += [n for n in get_close_matches(folded, names, n=3, cutoff=0.7) if n not in near]
    asked = f"did you mean {' or '.join(near)}? Choose one of " if near else "choose one of "
    return asked + ", ".join([*near, *(name for name in names if name not in near)])


def default_of(own: Field[Any]) -> str:
    """A field's default as the tables show it; empty for none and for a long text."""
    if own.default is MISSING or own.default is None or len(str(own.default)) > 20:
        return ""
    return str(own.default).lower() if isinstance(own.default, bool) else str(own.default)


def rows(*engines: str) -> list[tuple[str, str, str, str]]:
    """(key, engines that have it, default, meaning) of every setting of these engines, or all."""
    kinds: dict[str, type] = {**ENGINES, "ray": RayOptions, "api style": Style}
    found: dict[str, tuple[list[str], Field[Any]]] = {}
    for engine, kind in kinds.items():
        if not engines or engine.split()[0] in engines:
            for name, (own, _) in table(kind).items():
                key = f"style.{name}" if kind is Style else name
                found.setdefault(key, ([], own))[0].append(engine.split()[0])
    return [
        (key, "all" if len(names) == len(ENGINES) else ", ".join(names), default_of(own),
         own.metadata["help"])
        for key, (names, own) in found.items()
    ]  # fmt: skip


def takes_several(key: str) -> bool:
    """Whether an option may have several values, which commas separate on a command line."""
    kinds: tuple[type, ...] = (*ENGINES.values(), RayOptions)
    return any(key in table(kind) and table(kind)[key][0].metadata["several"] for kind in kinds)
