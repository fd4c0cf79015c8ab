"""Judge files: names of judges as data, from the package and from the user's own file.

``data/judges.yaml`` is one and shows the format; docs/judges/registry.md explains it.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

import yaml

from judgesense.errors import JudgeSenseError
from local_judges.api.call import Retry, Style

VARIABLE = "JUDGESENSE_JUDGES"
"""The environment variable that names the user's own judge file."""

OPTIONS: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "transformers": frozenset(
            {
                "revision", "dtype", "device", "system_prompt", "max_tokens", "temperature",
                "seed", "thinking", "gguf_file", "batch_tokens",
            }
        ),
        "vllm": frozenset(
            {
                "revision", "dtype", "system_prompt", "max_tokens", "temperature", "seed",
                "thinking", "gguf_file", "load_format", "quantization", "batch_invariant",
                "tensor_parallel_size", "pipeline_parallel_size", "distributed_executor_backend",
                "gpu_memory_utilization", "max_model_len", "max_num_seqs", "enforce_eager",
            }
        ),
        "api": frozenset(
            {
                "base_url", "provider", "key_variable", "system_prompt", "max_tokens",
                "temperature", "seed", "concurrency", "timeout_s", "retry",
                "requests_per_minute", "tokens_per_minute", "price", "max_cost", "logprobs",
                "floating", "style",
            }
        ),
    }
)  # fmt: skip
"""What each engine's judge can be told, beside its model and name."""


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def _is_price(value: object) -> bool:
    return (
        isinstance(value, (list, tuple))
        and len(value) == 2
        and all(_is_number(each) and each >= 0 for each in value)
    )


_KINDS: Mapping[str, tuple[str, Callable[[Any], bool]]] = {
    "truth": ("true or false", lambda value: type(value) is bool),
    "count": ("a whole number", lambda value: type(value) is int),
    "number": ("a number", _is_number),
    "text": (
        "text (what looks like something else needs quotes)",
        lambda value: isinstance(value, str),
    ),
    "mapping": ("a mapping", lambda value: isinstance(value, Mapping)),
    "style": ("a mapping", lambda value: isinstance(value, (Mapping, Style))),
    "price": ("two numbers of 0 or more, US dollars per million (input, output) tokens", _is_price),
    "retry": ("a local_judges.api.call.Retry", lambda value: isinstance(value, Retry)),
}
OPTION_KINDS: Mapping[str, str] = {
    **dict.fromkeys(
        ("thinking", "batch_invariant", "enforce_eager", "logprobs", "floating"), "truth"
    ),
    **dict.fromkeys(
        (
            "max_tokens", "seed", "batch_tokens", "tensor_parallel_size", "max_model_len",
            "pipeline_parallel_size", "max_num_seqs", "concurrency",
        ),
        "count",
    ),
    **dict.fromkeys(
        (
            "temperature", "gpu_memory_utilization", "timeout_s", "requests_per_minute",
            "tokens_per_minute", "max_cost",
        ),
        "number",
    ),
    **dict.fromkeys(
        (
            "revision", "dtype", "device", "system_prompt", "gguf_file", "load_format",
            "quantization", "distributed_executor_backend", "base_url", "provider", "key_variable",
        ),
        "text",
    ),
    "style": "style", "price": "price", "retry": "retry",
}  # fmt: skip
"""What kind of value each option takes."""

STYLE_KINDS: Mapping[str, str] = {
    "system_role": "truth", "min_temperature": "number", "sends_temperature": "truth",
    "sends_seed": "truth", "token_parameter": "text", "begins_thinking": "truth",
    "extra_body": "mapping",
}  # fmt: skip
"""The same of each key of a style."""

_LEAST: Mapping[str, float] = {
    "max_tokens": 1, "concurrency": 1, "requests_per_minute": 1, "tokens_per_minute": 1,
    "temperature": 0, "min_temperature": 0, "max_cost": 0,
}  # fmt: skip

_BUILT_IN = Path(__file__).parent / "data" / "judges.yaml"
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_ENDPOINT_KEYS: Mapping[str, type] = {
    "base_url": str, "provider": str, "key_variable": str, "options": dict, "style": dict,
}  # fmt: skip
_JUDGE_KEYS: Mapping[str, type] = {
    "summary": str, "engine": str, "endpoint": str, "model": str, "floating": bool,
    "options": dict, "style": dict, "price": dict, "papers": dict, "notes": list,
}  # fmt: skip
_ELSEWHERE = {"style", "price", "floating", "base_url", "provider", "key_variable", "retry"}
"""Options that are keys of their own in a judge file, or no data."""
_PRICE_KEYS = ("input", "output", "source", "date")


@dataclass(frozen=True)
class JudgeEntry:
    """A judge that has a name: how to get it, and what to know about it.

    ``options`` are the engine's, those of the endpoint included. ``model`` is None where no
    source states an id. ``price`` has ``input`` and ``output`` in US dollars per million tokens,
    with their ``source`` and ``date``. ``papers`` quotes what each paper states about the model;
    ``file`` is where the entry stands.
    """

    name: str
    engine: str
    model: str | None
    summary: str
    options: Mapping[str, Any]
    endpoint: str | None = None
    floating: bool = False
    price: Mapping[str, Any] | None = None
    papers: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    file: str = ""


def user_file() -> Path | None:
    """The user's own judge file: ``$JUDGESENSE_JUDGES``, or else
    ``~/.config/judgesense/judges.yaml`` (``$XDG_CONFIG_HOME`` counts) if it exists.

    Raises JudgeSenseError if the variable names no file.
    """
    if named := os.environ.get(VARIABLE):
        path = Path(named).expanduser()
        if not path.is_file():
            raise JudgeSenseError(f"{VARIABLE} names {path}, which is no file")
        return path
    home = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    path = home / "judgesense" / "judges.yaml"
    return path if path.is_file() else None


def entries() -> Mapping[str, JudgeEntry]:
    """All named judges, the package's first, then those of the user's own file.

    Raises JudgeSenseError that names the file and the key for anything the format does not have,
    and for a name or an endpoint that the package has already.
    """
    path = user_file()
    if path is None:
        return _read((_BUILT_IN, 0))
    return _read((_BUILT_IN, 0), (path, path.stat().st_mtime_ns))


@cache
def _read(*files: tuple[Path, int]) -> Mapping[str, JudgeEntry]:
    """Endpoints and judges of the files; the second part of each pair keeps the cache fresh."""
    endpoints: dict[str, dict[str, Any]] = {}
    judges: dict[str, JudgeEntry] = {}
    for path, _ in files:
        content = _load(path)
        for name, values in _section(content, "endpoints", path):
            if name in endpoints:
                raise JudgeSenseError(f"{path}, endpoints.{name}: is there already; rename it")
            endpoints[name] = _endpoint(values, f"{path}, endpoints.{name}")
        for name, values in _section(content, "judges", path):
            if name in judges:
                raise JudgeSenseError(
                    f"{path}, judges.{name}: is the name of another judge already; rename it, so "
                    "that a logged name means one judge"
                )
            judges[name] = _judge(name, values, endpoints, path)
    return MappingProxyType(judges)


def _load(path: Path) -> Mapping[str, Any]:
    try:
        text = path.read_text("utf-8")
        root = yaml.compose(text, Loader=_LOADER)
        if repeated := next(_repeated_keys(root), None):
            raise JudgeSenseError(f"{path}, line {repeated[1]}: {repeated[0]!r} stands there twice")
        content = yaml.load(text, Loader=_LOADER)
    except OSError as error:
        raise JudgeSenseError(f"cannot read {path}: {error.strerror or error}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise JudgeSenseError(f"{path} is not YAML: {' '.join(str(error).split())}") from error
    if not isinstance(content, dict) or not set(content) <= {"endpoints", "judges"}:
        raise JudgeSenseError(
            f"{path}: a judge file has the keys judges and, if need be, endpoints; nothing else"
        )
    return content


def _repeated_keys(node: yaml.Node | None) -> Iterator[tuple[str, int]]:
    """Keys that stand twice in one mapping, with the line: YAML readers keep the last silently."""
    if isinstance(node, yaml.MappingNode):
        seen = set()
        for key, value in node.value:
            if key.value in seen:
                yield key.value, key.start_mark.line + 1
            seen.add(key.value)
            yield from _repeated_keys(value)
    elif isinstance(node, yaml.SequenceNode):
        for value in node.value:
            yield from _repeated_keys(value)


def _section(
    content: Mapping[str, Any], section: str, path: Path
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    found = content.get(section, {})
    if not isinstance(found, dict):
        raise JudgeSenseError(f"{path}, {section}: must be names with their keys under them")
    for name, values in found.items():
        if not isinstance(name, str) or not name or set(name) & set("/@,") or name != name.strip():
            raise JudgeSenseError(
                f"{path}, {section}: {name!r} is no name; it must be text without '/', '@', ',' "
                "(put numbers in quotes)"
            )
        if not isinstance(values, dict):
            raise JudgeSenseError(f"{path}, {section}.{name}: has no keys under it")
        yield name, values


def _endpoint(values: Mapping[str, Any], place: str) -> dict[str, Any]:
    """An endpoint as options of the API judge."""
    _check(values, _ENDPOINT_KEYS, place)
    if ("base_url" in values) == ("provider" in values):
        raise JudgeSenseError(f"{place}: needs base_url or provider, one of the two")
    options = _options(values, "api", place)
    options |= {key: values[key] for key in _ENDPOINT_KEYS if type(values.get(key)) is str}
    return options


def _judge(
    name: str, values: Mapping[str, Any], endpoints: Mapping[str, dict[str, Any]], path: Path
) -> JudgeEntry:
    place = f"{path}, judges.{name}"
    _check(values, _JUDGE_KEYS, place)
    endpoint = values.get("endpoint")
    engine = values.get("engine", "api" if endpoint else None)
    if engine not in OPTIONS:
        known = ", ".join(OPTIONS)
        said = "needs an engine or an endpoint" if engine is None else f"no engine {engine!r}"
        raise JudgeSenseError(f"{place}.engine: {said}; engines are {known}")
    if endpoint is not None and endpoint not in endpoints:
        raise JudgeSenseError(
            f"{place}.endpoint: no endpoint {endpoint!r}; there are {', '.join(endpoints)}"
        )
    for key in ("endpoint", "floating", "price", "style"):
        if key in values and engine != "api":
            raise JudgeSenseError(f"{place}.{key}: is for the engine api, not {engine}")
    options = _options(values, engine, place)
    inherited = endpoints.get(endpoint or "", {})
    if style := {**inherited.get("style", {}), **options.get("style", {})}:
        options["style"] = style
    options = {**inherited, **options}
    price = values.get("price")
    if price is not None:
        options["price"] = _price(price, f"{place}.price")
    if floating := values.get("floating", False):
        options["floating"] = True
    return JudgeEntry(
        name=name,
        engine=engine,
        model=values.get("model"),
        summary=values.get("summary", ""),
        options=options,
        endpoint=endpoint,
        floating=floating,
        price=price,
        papers=_texts(values.get("papers", {}), f"{place}.papers"),
        notes=tuple(_texts(dict(enumerate(values.get("notes", []))), f"{place}.notes").values()),
        file="" if path == _BUILT_IN else str(path),
    )


def _check(values: Mapping[str, Any], keys: Mapping[str, type], place: str) -> None:
    for key, value in values.items():
        if key not in keys:
            raise JudgeSenseError(f"{place}.{key}: unknown key; known are {', '.join(keys)}")
        if not isinstance(value, keys[key]):
            kinds = {str: "text", bool: "true or false", dict: "a mapping", list: "a list"}
            raise JudgeSenseError(
                f"{place}.{key}: must be {kinds[keys[key]]}, got {value!r} (a text that looks "
                "like something else needs quotes)"
            )


def _options(values: Mapping[str, Any], engine: str, place: str) -> dict[str, Any]:
    """``options`` and ``style`` of an entry, their keys checked."""
    options, style = dict(values.get("options", {})), dict(values.get("style", {}))
    for key in options:
        if key not in OPTIONS[engine] - _ELSEWHERE:
            known = ", ".join(sorted(OPTIONS[engine] - _ELSEWHERE))
            raise JudgeSenseError(
                f"{place}.options.{key}: unknown to the engine {engine}; known are {known}"
            )
    require_values(options, f"{place}.options.")
    require_values({"style": style}, f"{place}.")
    return {**options, "style": style} if style else options


def require_values(options: Mapping[str, Any], place: str) -> None:
    """Raise JudgeSenseError for an option, or a key of a style, whose value is of the wrong kind
    or too small, and for an unknown key of a style; ``place`` stands before its name.
    """
    for key, value in options.items():
        _require_value(key, value, OPTION_KINDS[key], f"{place}{key}")
        if key == "style" and isinstance(value, Mapping):
            for name, each in value.items():
                if name not in STYLE_KINDS:
                    known = ", ".join(sorted(STYLE_KINDS))
                    raise JudgeSenseError(f"{place}style.{name}: unknown key; known are {known}")
                _require_value(name, each, STYLE_KINDS[name], f"{place}style.{name}")


def _require_value(key: str, value: object, kind: str, place: str) -> None:
    words, fits = _KINDS[kind]
    if not fits(value):
        raise JudgeSenseError(f"{place} must be {words}, got {value!r}")
    least = _LEAST.get(key)
    if least is not None and value < least:  # type: ignore[operator]
        raise JudgeSenseError(f"{place} must be {words} of {least} or more, got {value!r}")


def _price(price: Mapping[str, Any], place: str) -> tuple[float, float]:
    if set(price) != set(_PRICE_KEYS):
        raise JudgeSenseError(f"{place}: needs {', '.join(_PRICE_KEYS)}, and nothing else")
    for key in ("input", "output"):
        value = price[key]
        if not _is_number(value) or value < 0:
            raise JudgeSenseError(
                f"{place}.{key}: must be US dollars per million tokens, got {value!r}"
            )
    return float(price["input"]), float(price["output"])


def _texts(values: Mapping[Any, Any], place: str) -> dict[Any, str]:
    for key, value in values.items():
        if not isinstance(value, str):
            raise JudgeSenseError(f"{place}.{key}: must be text, got {value!r}")
    return dict(values)
