"""Judge files: named judges as data, from the package and from your own file.

``data/judges.yaml`` is one and shows the format; docs/judges/registry.md explains it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from judgesense.errors import JudgeSenseError
from judgesense.files.documents import read_yaml
from local_judges.options import (
    ENGINES,
    OWN_KEYS,
    REMOTE,
    ApiOptions,
    Declared,
    NotNegative,
    Variable,
    suggestion,
    validate_settings,
)

VARIABLE = "JUDGESENSE_JUDGES"
"""The environment variable that names your own judge file."""

_BUILT_IN = Path(__file__).parent / "data" / "judges.yaml"


def _judge_name(name: str) -> str:
    if not name or set(name) & set("/@,") or name != name.strip():
        raise ValueError("must be text without '/', '@' and ',' (quote numbers)")
    return name


_Name = Annotated[str, AfterValidator(_judge_name)]


class _PriceKeys(Declared):
    input: NotNegative
    output: NotNegative
    source: Any
    date: Any


class _EndpointKeys(Declared):
    base_url: str | None = None
    provider: str | None = None
    key_variable: Variable | None = None
    options: dict[str, Any] = Field({})
    style: dict[str, Any] = Field({})


class _JudgeKeys(Declared):
    summary: str = ""
    engine: str | None = None
    endpoint: str | None = None
    model: str | None = None
    floating: bool = False
    options: dict[str, Any] = Field({})
    style: dict[str, Any] = Field({}, exclude=True)
    price: _PriceKeys | None = None
    papers: dict[str, str] = Field({})
    notes: list[str] = Field([])


class JudgeEntry(_JudgeKeys):
    """A named judge: how to reach it, and what is known about it.

    ``options`` are the engine's, with those of the endpoint and its style. ``model`` is None where
    no source states an id. ``price`` is in US dollars per million tokens. ``papers`` quotes what
    each paper states about the model; ``file`` is your own file that defines the judge, or "" for
    the package's.
    """

    engine: str
    name: str
    file: str


class _JudgeFile(Declared):
    endpoints: dict[_Name, dict[str, Any]] = Field({})
    judges: dict[_Name, dict[str, Any]] = Field({})


def user_file() -> Path | None:
    """Your own judge file: ``$JUDGESENSE_JUDGES``, else
    ``~/.config/judgesense/judges.yaml`` (``$XDG_CONFIG_HOME`` counts) if it exists.

    Raises JudgeSenseError if the variable does not name a file.
    """
    if variable := os.environ.get(VARIABLE):
        path = Path(variable).expanduser()
        if not path.is_file():
            raise JudgeSenseError(f"{VARIABLE} names {path}, which is not a file")
        return path
    path = config_folder() / "judges.yaml"
    return path if path.is_file() else None


def config_folder() -> Path:
    """The user's configuration folder: ``~/.config/judgesense``, or in ``$XDG_CONFIG_HOME``."""
    home = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    return home / "judgesense"


def entries() -> Mapping[str, JudgeEntry]:
    """All named judges: the package's first, then those of your own file.

    Raises JudgeSenseError naming the file and the key that is unknown or wrong, and for a name or
    an endpoint that the package already has.
    """
    path = user_file()
    return _read_files((_BUILT_IN, 0), *([(path, path.stat().st_mtime_ns)] if path else []))


@cache
def _read_files(*files: tuple[Path, int]) -> Mapping[str, JudgeEntry]:
    """The judges of the files; the second part of each pair keeps the cache fresh."""
    endpoints: dict[str, dict[str, Any]] = {}
    judges: dict[str, JudgeEntry] = {}
    for path, _ in files:
        content = validate_settings(_JudgeFile, read_yaml(path), f"{path}, ", "key")
        for section, names, earlier in (
            ("endpoints", content.endpoints, endpoints),
            ("judges", content.judges, judges),
        ):
            if duplicates := [name for name in names if name in earlier]:
                raise JudgeSenseError(
                    f"{path}, {section}.{duplicates[0]}: the name is taken; choose another"
                )
        for name, values in content.endpoints.items():
            place = f"{path}, endpoints.{name}"
            keys = validate_settings(_EndpointKeys, values, f"{place}.", "key")
            if (keys.base_url is None) == (keys.provider is None):
                raise JudgeSenseError(f"{place}: needs either base_url or provider")
            stated = keys.model_dump(exclude={"options", "style"}, exclude_none=True)
            endpoints[name] = {**_options(keys, "api", place), **stated}
        for name, values in content.judges.items():
            judges[name] = _entry(name, values, endpoints, path)
    return MappingProxyType(judges)


def _entry(
    name: str, values: dict[str, Any], endpoints: Mapping[str, dict[str, Any]], path: Path
) -> JudgeEntry:
    place = f"{path}, judges.{name}"
    keys = validate_settings(_JudgeKeys, values, f"{place}.", "key")
    engine = keys.engine or ("api" if keys.endpoint else "")
    if engine not in ENGINES:
        what = f"unknown engine {engine!r}" if engine else "needs an engine or an endpoint"
        raise JudgeSenseError(f"{place}.engine: {what}; the engines are {', '.join(ENGINES)}")
    if keys.endpoint is not None and keys.endpoint not in endpoints:
        like = suggestion(keys.endpoint, endpoints)
        raise JudgeSenseError(f"{place}.endpoint: unknown endpoint {keys.endpoint!r}{like}")
    for key in ("endpoint", "floating", "price", "style"):
        is_allowed = engine in REMOTE if key != "style" else engine == "api"
        if not is_allowed and key in keys.model_fields_set:
            raise JudgeSenseError(f"{place}.{key}: the engine {engine} has no such key")
    options, inherited = _options(keys, engine, place), endpoints.get(keys.endpoint or "", {})
    if style := {**inherited.get("style", {}), **options.get("style", {})}:
        options["style"] = style
    options = {**inherited, **options}
    if keys.price is not None:
        options["price"] = (float(keys.price.input), float(keys.price.output))
    if keys.floating:
        options["floating"] = True
    validate_settings(ENGINES[engine], options, f"{place}.")
    file = "" if path == _BUILT_IN else str(path)
    facts = {"engine": engine, "options": options, "name": name, "file": file}
    return JudgeEntry.model_construct(**{**dict(keys), **facts})


def _options(keys: _EndpointKeys | _JudgeKeys, engine: str, place: str) -> dict[str, Any]:
    """``options`` and ``style`` of an entry, checked."""
    if misplaced := OWN_KEYS & keys.options.keys():
        raise JudgeSenseError(f"{place}.options.{min(misplaced)}: write it outside options")
    what = f"option of the engine {engine}"
    validate_settings(ENGINES[engine], keys.options, f"{place}.options.", what)
    if not keys.style:
        return dict(keys.options)
    validate_settings(ApiOptions, {"style": keys.style}, f"{place}.", "key")
    return {**keys.options, "style": dict(keys.style)}
