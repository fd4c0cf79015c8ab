"""The settings of every engine, each written once: name, type, default, bounds and meaning.

Judge files, ``--set KEY=VALUE``, ``judgesense judges options``, a run's record and the table in the
documentation are derived from these classes, and :func:`check` validates all of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
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
"""The environment variable that holds the key unless another is named."""

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
) -> Any:
    """A field of an engine's options.

    ``least`` and ``above`` bound a number. ``fixes_answers`` is False for prices, limits and
    hardware: a run may be resumed with other values. ``own_key`` marks a key of its own in a judge
    file, outside ``options``; ``several`` an option whose values commas separate on a command line.
    """
    how = {"default_factory": default} if callable(default) else {"default": default}
    bounds = {"least": least, "above": above}
    marks = {"fixes_answers": fixes_answers, "own_key": own_key, "several": several}
    return field(metadata={"help": help, **bounds, **marks}, **how)


@dataclass(frozen=True, kw_only=True)
class Style:
    """How an endpoint wants to be asked: what differs between providers, as data."""

    system_role: bool = setting(True, "Send the system prompt as a message of its own.")
    min_temperature: float = setting(0.0, "Lowest temperature the endpoint accepts.", least=0)
    sends_temperature: bool = setting(True, "Send the temperature.")
    sends_seed: bool = setting(True, "Send the seed.")
    token_parameter: str = setting(
        "max_tokens", "max_tokens, or max_completion_tokens for reasoning models."
    )
    begins_thinking: bool = setting(
        False, "The server's chat template writes <think> itself, so its end must be found."
    )
    extra_body: Mapping[str, Any] = setting(dict, "Sent with every request as it is.")


@dataclass(frozen=True, kw_only=True)
class Options:
    """Settings of every engine."""

    system_prompt: str = setting(
        SYSTEM_PROMPT, 'System prompt; by default that of "JudgeSense", section 4.2.'
    )
    max_tokens: int = setting(
        MAX_TOKENS,
        "Cap on generated tokens; a list makes one judge of each.",
        least=1,
        several=True,
    )
    temperature: float = setting(0.0, "Sampling temperature; 0 is greedy.", least=0)
    seed: int = setting(0, "Seed of sampled answers; a run's --seed comes first.")


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
    batch_invariant: bool | None = setting(
        None, "Kernels whose results do not depend on the batch; $VLLM_BATCH_INVARIANT by default."
    )
    tensor_parallel_size: int = setting(
        1, "GPUs that share each layer.", least=1, fixes_answers=False
    )
    pipeline_parallel_size: int = setting(
        1, "Groups of GPUs that share the layers.", least=1, fixes_answers=False
    )
    distributed_executor_backend: str | None = setting(
        None, "ray spreads one model over several machines.", fixes_answers=False
    )
    gpu_memory_utilization: float | None = setting(
        None, "Share of GPU memory vLLM may take (0.9).", fixes_answers=False
    )
    max_model_len: int | None = setting(
        None, "Context length; the model's, at most 32768.", least=1
    )
    max_num_seqs: int | None = setting(None, "Prompts in flight.", fixes_answers=False)
    enforce_eager: bool = setting(False, "Run without CUDA graphs.")


@dataclass(frozen=True, kw_only=True)
class ApiOptions(Options):
    """Settings of the engine api."""

    base_url: str | None = setting(
        None, "OpenAI-compatible endpoint; $OPENAI_BASE_URL by default.", own_key=True
    )
    provider: str | None = setting(
        None, "Inference provider of huggingface_hub, instead of base_url.", own_key=True
    )
    key_variable: str = setting(
        KEY_VARIABLE, "Environment variable that holds the key.", fixes_answers=False, own_key=True
    )
    concurrency: int = setting(16, "Requests in flight.", least=1, fixes_answers=False)
    timeout_s: float | None = setting(
        None, "Seconds per request (60, or less if the budget is less).", above=0,
        fixes_answers=False,
    )  # fmt: skip
    retry_budget_s: float | None = setting(
        None, "Seconds for all tries of a prompt (120, and 6 tries).", above=0, fixes_answers=False
    )
    requests_per_minute: float | None = setting(
        None, "The account's limit.", least=1, fixes_answers=False
    )
    tokens_per_minute: float | None = setting(
        None, "The account's limit.", least=1, fixes_answers=False
    )
    price: Price | None = setting(
        None,
        "INPUT,OUTPUT in US dollars per million tokens.",
        fixes_answers=False,
        own_key=True,
        several=True,
    )
    max_cost: float | None = setting(
        None, "US dollars that may be spent; needs a price.", least=0, fixes_answers=False
    )
    logprobs: bool = setting(True, "Read option probabilities of the first token.")
    floating: bool = setting(
        False, "The provider may point the name at another checkpoint.", own_key=True
    )
    style: Style = setting(Style, "How the endpoint wants to be asked.", own_key=True)


@dataclass(frozen=True, kw_only=True)
class RayOptions:
    """Settings of the engine ray, beside those of the engine in its actors."""

    actor_engine: str | None = setting(None, "Engine in each actor; transformers by default.")
    ray_address: str | None = setting(
        None, "auto or HOST:PORT of a running cluster; $RAY_ADDRESS by default, else this machine."
    )
    ray_actors: Actors | None = setting(
        None, "Actors, or MIN,MAX; one per GPU by default.", several=True
    )
    ray_gpus: float | None = setting(None, "GPUs per actor; a share of one is fine.", least=0)
    ray_cpus: float = setting(1.0, "CPUs per actor.", least=0)


ENGINES: Mapping[str, type[Options]] = {
    "transformers": TransformersOptions, "vllm": VllmOptions, "api": ApiOptions,
}  # fmt: skip
"""The options of each engine."""


def is_number(value: object) -> bool:
    """Whether a value is a finite number, and not a truth value."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def _fits(value: Any, kind: Any) -> bool:
    if kind is Any:
        return True
    if kind in (bool, int):
        return type(value) is kind
    if kind is float:
        return is_number(value)
    if kind == Price:
        return (
            isinstance(value, (list, tuple))
            and len(value) == 2
            and all(is_number(each) and each >= 0 for each in value)
        )
    if kind == Actors:
        pair = [value] if type(value) is int else value
        return isinstance(pair, (list, tuple)) and all(type(each) is int for each in pair)
    if kind is Style:
        return isinstance(value, (Mapping, Style))
    return isinstance(value, getattr(kind, "__origin__", kind))


def _within(value: Any, least: float | None, above: float | None) -> bool:
    return (least is None or value >= least) and (above is None or value > above)


def _words(kind: Any) -> str:
    words = {
        bool: "true or false",
        int: "a whole number",
        float: "a number",
        str: "text (quote text that looks like something else)",
        Price: "two numbers of 0 or more: US dollars per million input and output tokens",
        Actors: "a whole number, or the least and the most",
        list: "a list",
    }
    return words.get(kind, "a mapping")


@cache
def table(kind: Any) -> Mapping[str, tuple[Field[Any], Any]]:
    """The fields of a class of options by name, each with the type of its values.

    >>> from local_judges.options import ApiOptions, table
    >>> field, kind = table(ApiOptions)["concurrency"]
    >>> field.default, kind
    (16, <class 'int'>)
    """
    hints = get_type_hints(kind)
    found = {}
    for each in fields(kind):
        hint = hints[each.name]
        stated = [part for part in get_args(hint) if part is not NoneType]
        optional = NoneType in get_args(hint)
        whole = Actors if optional and len(stated) > 1 else stated[0] if optional else hint
        found[each.name] = (each, whole)
    return found


def check(kind: type, values: Mapping[str, Any], place: str, what: str = "key") -> None:
    """Validate values against a class of options.

    Raises JudgeSenseError for an unknown key (names the near ones and all), a value of the wrong
    type and a number out of bounds; ``place`` precedes the key in the message.
    """
    known = table(kind)
    for key, value in values.items():
        if key not in known:
            raise JudgeSenseError(f"{place}{key}: unknown {what}; {suggest(key, known)}")
        own, wanted = known[key]
        least, above = own.metadata["least"], own.metadata["above"]
        words = _words(wanted)
        words += "" if least is None else f" of {least} or more"
        words += "" if above is None else f" above {above}"
        if not _fits(value, wanted) or not _within(value, least, above):
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


def markdown() -> str:
    """The table of all settings, for the documentation."""
    lines = ["| key | engines | default | meaning |", "| --- | --- | --- | --- |"]
    for key, engines, default, help in rows():
        lines.append(f"| `{key}` | {engines} | {default and f'`{default}`'} | {help} |")
    return "\n".join(lines)


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
