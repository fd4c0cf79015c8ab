"""The settings of every engine, each written once: name, type, default, bounds and meaning.

Judge files, ``--set KEY=VALUE``, ``judgesense judges list --options``, a run's record and the table
in the documentation are derived from these classes; :func:`validate_settings` checks them all.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, PlainValidator, ValidationError
from pydantic.fields import FieldInfo

from judgesense.errors import JudgeSenseError

VLLM_MEMORY = 0.9
"""vLLM's share of a GPU's memory, unless it is set."""

SYSTEM_PROMPT = (
    "You are an evaluation assistant. Give only the requested answer with no explanation."
)
"""The judges' system prompt of "JudgeSense: A Benchmark for Prompt Sensitivity in
LLM-as-a-Judge Systems" (arXiv 2604.23478), section 4.2."""

MAX_TOKENS = 20
"""The cap on generated tokens of the same section."""

FOR_OWN_PROMPTS: Mapping[str, Any] = {"system_prompt": "", "max_tokens": 1024}
"""The defaults for prompts of the user's own: nothing is added to them, and a judge may give its
reasons before its verdict."""

KEY_VARIABLE = "OPENAI_API_KEY"
"""The environment variable that holds the key unless another is named or the endpoint is on this
machine."""

OWN_KEYS = frozenset({"base_url", "provider", "key_variable", "price", "floating", "style"})
"""Options that have a key of their own in a judge file, outside ``options``."""

LIST_OPTIONS = frozenset({"max_tokens", "price"})
"""Options whose values commas separate on a command line."""

_VARIABLE = re.compile(r"[A-Z_][A-Z0-9_]{0,63}|[a-z_][a-z0-9_]{0,63}")
"""A variable's name; upper and lower case together is the form of a key."""

_PYDANTIC_MAPPING = re.compile(r"a valid dictionary(?: or instance of \w+)?")
"""Pydantic's words for a mapping; the name of the class means nothing to a user."""


def _number(value: Any) -> Any:
    # Not made a float: a fingerprint covers the number as it was written.
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not is_number or not abs(value) <= sys.float_info.max:
        raise ValueError("must be a number")
    return value


def _variable(name: str) -> str:
    if not _VARIABLE.fullmatch(name):
        raise ValueError(
            "must be the name of an environment variable, such as OPENAI_API_KEY, not the key"
        )
    return name


def _price(value: Any) -> tuple[float, float]:
    try:
        input_price, output_price = (_number(price) for price in value)
    except (TypeError, ValueError):
        input_price = output_price = -1
    # Above a dollar per token, a sum could overflow.
    if not (0 <= input_price <= 1e6 and 0 <= output_price <= 1e6):
        raise ValueError("must be two numbers from 0 to 1e6, US dollars per million tokens")
    return input_price, output_price


Number = Annotated[float, PlainValidator(_number)]
NotNegative = Annotated[Number, Field(ge=0)]
Positive = Annotated[Number, Field(gt=0)]
OneOrMore = Annotated[Number, Field(ge=1)]
Variable = Annotated[str, AfterValidator(_variable)]
Price = Annotated[tuple[float, float], PlainValidator(_price)]
"""US dollars per million (input, output) tokens."""


def setting(default: Any, meaning: str, **bounds: Any) -> Any:
    """A setting with its meaning, as help texts and the documentation show it."""
    return Field(default, description=meaning, **bounds)


def limit(default: Any, meaning: str, **bounds: Any) -> Any:
    """A setting of prices, limits or hardware, which does not change an answer: a resumed run may
    have another value."""
    return Field(default, description=meaning, json_schema_extra={"fixes_answers": False}, **bounds)


class Declared(BaseModel):
    """Values that people write: unknown keys and values of another type are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


_SECRET_NAME = re.compile(
    r"(?i)(x-)?(api|access|auth|secret)[-_]?(key|token)|authorization|password|secret|bearer"
)
SECRET = re.compile(r"\b(?:sk|hf|gsk|xai|AIza)[-_A-Za-z0-9*.]{6,}")
"""What looks like a key."""


def _without_keys(body: dict[str, Any]) -> dict[str, Any]:
    """Refuse what looks like a key, at any depth: these fields are logged."""

    def check(name: str, value: Any) -> None:
        if isinstance(value, Mapping):
            for key, member in value.items():
                check(str(key), member)
        elif isinstance(value, list):
            for member in value:
                check(name, member)
        elif isinstance(value, str) and (_SECRET_NAME.fullmatch(name) or SECRET.search(value)):
            raise ValueError(
                f"must hold no key ({name!r} looks like one), because it is logged; set an "
                "environment variable and name it as key_variable"
            )

    check("", body)
    return body


Body = Annotated[dict[str, Any], AfterValidator(_without_keys)]


class Style(Declared):
    """The differences between endpoints in how they are called, as data."""

    system_role: bool = setting(True, "Send the system prompt as a separate message.")
    min_temperature: NotNegative = setting(0.0, "Lowest temperature the endpoint accepts.")
    sends_temperature: bool = setting(True, "Send the temperature.")
    sends_seed: bool = setting(True, "Send the seed.")
    token_parameter: str = setting("max_tokens", "Or max_completion_tokens.")
    reasoning_effort: bool = setting(False, "The endpoint accepts reasoning_effort.")
    begins_thinking: bool = setting(False, "The server's chat template writes <think> itself.")
    extra_body: Body = setting({}, "More fields to send with every request.")


class Options(Declared):
    """Settings of every engine."""

    system_prompt: str = setting(
        SYSTEM_PROMPT, "System prompt; empty for your own prompts, else the first paper's."
    )
    max_tokens: int = setting(
        MAX_TOKENS,
        "Most generated tokens (your own prompts: 1024); a list gives one judge per value.",
        ge=1,
    )
    temperature: NotNegative = setting(0.0, "Sampling temperature; 0 is greedy.")
    seed: int = setting(0, "Seed of sampled answers; a run's --seed overrides it.")


class LocalOptions(Options):
    """Settings of every engine that loads the model itself."""

    revision: str | None = setting(None, "Commit, branch or tag on the Hub.")
    dtype: Literal["float32", "bfloat16", "float16", "auto"] | None = setting(
        None, "float32, bfloat16 or float16; float32 on a CPU."
    )
    thinking: bool = setting(False, "Let a reasoning model think first; also raise max_tokens.")
    gguf_file: str | None = setting(None, "The file to load from a Hub repository of GGUF files.")


class TransformersOptions(LocalOptions):
    """Settings of the engine transformers."""

    device: str | None = setting(None, "cpu, cuda, cuda:1 or mps; the first GPU by default.")
    batch_tokens: int | None = setting(None, "Tokens per forward pass.", ge=1)


class VllmOptions(LocalOptions):
    """Settings of the engine vllm."""

    temperature: Annotated[NotNegative, Field(le=2)] = setting(
        0.0, "Sampling temperature; 0 is greedy."
    )
    structured: bool = setting(True, "Hold replies to the JSON that your rubric shows.")
    load_format: str = setting("auto", "vLLM's load format; dummy draws random weights.")
    quantization: str | None = setting(None, "Quantise while loading, such as fp8.")
    tensor_parallel_size: int = limit(1, "GPUs that share each layer.", ge=1)
    pipeline_parallel_size: int = limit(1, "Groups of GPUs that share the layers.", ge=1)
    distributed_executor_backend: str | None = limit(None, "ray: one model on several machines.")
    gpu_memory_utilization: Number | None = limit(
        None, f"vLLM's share of GPU memory ({VLLM_MEMORY})."
    )
    max_model_len: int | None = setting(None, "Context length; the model's, at most 32768.", ge=1)
    max_num_seqs: int | None = limit(None, "Most prompts in the engine at once.", ge=1)
    enforce_eager: bool = setting(False, "Run without CUDA graphs.")


class SystemOneOptions(Declared):
    """Settings of the engine systemone: an endpoint that writes no text."""

    base_url: str | None = setting(None, "The endpoint; api: $OPENAI_BASE_URL by default.")
    key_variable: Variable | None = limit(
        None, "Environment variable of the key; api: $OPENAI_API_KEY by default."
    )
    concurrency: int = limit(16, "Requests in flight (at most 1000).", ge=1)
    timeout_s: Positive | None = limit(None, "Seconds per request (60).")
    retry_budget_s: Positive | None = limit(None, "Seconds for all tries of a prompt (120).")
    requests_per_minute: OneOrMore | None = limit(None, "The account's limit.")
    tokens_per_minute: OneOrMore | None = limit(None, "The account's limit.")
    price: Price | None = limit(None, "INPUT,OUTPUT in US dollars per million tokens.")
    max_cost: NotNegative | None = limit(None, "Most US dollars to spend; needs a price.")
    floating: bool = setting(False, "The name may later refer to another checkpoint.")


class ApiOptions(SystemOneOptions, Options):
    """Settings of the engine api."""

    provider: str | None = setting(None, "Inference provider of Hugging Face.")
    structured: bool = setting(True, "Hold replies to the JSON that your rubric shows.")
    logprobs: bool = setting(True, "Read option probabilities of the first token.")
    reasoning_effort: str | None = setting(None, "How long a reasoning model thinks: low, high.")
    batch: bool = limit(False, "Ask through the batch API: half the price, up to a day.")
    style: Style = setting(Style(), "How to call the endpoint; keys below.")


def _gpus(value: float) -> float:
    if value < 0 or (value > 1 and value != int(value)):
        raise ValueError("must be a fraction of one GPU or a whole number of GPUs")
    return value


class RayOptions(Declared):
    """Settings of the engine ray, beside those of the engine in its actors."""

    actor_engine: str | None = setting(None, "Engine in each actor; transformers by default.")
    ray_address: str | None = setting(None, "auto or HOST:PORT; this machine by default.")
    ray_actors: int | None = setting(None, "How many; one per GPU by default.", ge=1)
    ray_gpus: Annotated[Number, AfterValidator(_gpus)] | None = setting(
        None, "GPUs per actor; can be a fraction."
    )
    ray_cpus: NotNegative = setting(1.0, "CPUs per actor.")


ENGINES: Mapping[str, type[Declared]] = {
    "transformers": TransformersOptions,
    "vllm": VllmOptions,
    "api": ApiOptions,
    "systemone": SystemOneOptions,
}
"""The options of each engine."""

REMOTE = frozenset({"api", "systemone"})
"""The engines that ask an endpoint."""

D = TypeVar("D", bound=Declared)


def validate_settings(kind: type[D], values: Any, place: str = "", what: str = "option") -> D:
    """Values as an object of a declared class; ``place`` precedes the key in the message.

    Raises JudgeSenseError for an unknown key (names the near ones), a value of another type and a
    number out of bounds.

    >>> validate_settings(ApiOptions, {"concurrency": 0})
    Traceback (most recent call last):
    judgesense.errors.JudgeSenseError: concurrency: must be greater than or equal to 1, got 0
    """
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        container: Any = values
        path: list[str] = []
        for key in first["loc"]:
            # Without the names that pydantic gives to the alternatives of a type.
            if isinstance(container, Mapping) and (key in container or first["type"] == "missing"):
                path.append(str(key))
                container = container.get(key)
        setting = f"{place}{'.'.join(path)}".rstrip("., ")
        if first["type"] == "extra_forbidden":
            known = Style.model_fields if path[-2:-1] == ["style"] else kind.model_fields
            like = suggestion(path[-1], known)
            raise JudgeSenseError(f"{setting}: unknown {what}{like}") from None
        if first["type"] == "missing":
            raise JudgeSenseError(f"{setting}: missing") from None
        text = first["msg"].removeprefix("Value error, ").replace("Input should be", "must be")
        text = _PYDANTIC_MAPPING.sub("a mapping", text)
        # What stands in place of a variable's name may be the key itself.
        value = "" if path[-1:] == ["key_variable"] else f", got {first['input']!r:.80}"
        raise JudgeSenseError(f"{setting}: {text}{value}") from None


def settings_of(kind: type[D], values: Mapping[str, Any]) -> D:
    """Like :func:`validate_settings`, with the default in place of each None."""
    given = {key: value for key, value in values.items() if value is not None}
    return validate_settings(kind, given)


def fixes_answers(field: FieldInfo) -> bool:
    """Whether a setting is part of what fixes an answer; a limit or a price is not."""
    return field.json_schema_extra is None


def suggestion(wanted: str, known: Iterable[str]) -> str:
    """The end of a sentence about an unknown name: the names that are like it, if any.

    >>> suggestion("max_token", ["seed", "max_tokens"])
    '; did you mean max_tokens?'
    """
    names, lowered = list(known), wanted.casefold()
    similar = [name for name in names if len(lowered) > 2 and lowered in name.casefold()]
    similar += [n for n in get_close_matches(lowered, names, n=3, cutoff=0.7) if n not in similar]
    return f"; did you mean {' or '.join(similar[:3])}?" if similar else ""


def setting_rows(*engines: str) -> list[tuple[str, str, str, str]]:
    """(key, engines that have it, default, meaning) of every setting of these engines, or all."""
    kinds: dict[str, type[Declared]] = {**ENGINES, "ray": RayOptions, "api style": Style}
    settings: dict[str, tuple[list[str], FieldInfo]] = {}
    for engine, kind in kinds.items():
        if not engines or engine.split()[0] in engines:
            for name, field in kind.model_fields.items():
                key = f"style.{name}" if kind is Style else name
                settings.setdefault(key, ([], field))[0].append(engine.split()[0])
    return [
        (
            key,
            "all" if len(names) == len(ENGINES) else ", ".join(names),
            _default(field),
            field.description or "",
        )
        for key, (names, field) in settings.items()
    ]


def _default(field: FieldInfo) -> str:
    """A field's default as the tables show it; empty for none, an object and a long text."""
    value = field.default
    if value is None or isinstance(value, (Style, dict)) or len(str(value)) > 20:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)
