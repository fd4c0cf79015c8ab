"""Judge files: named judges as data, from the package and from your own file.

``data/judges.yaml`` is one and shows the format; docs/judges/registry.md explains it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from judgesense.errors import JudgeSenseError
from judgesense.files.documents import read_yaml
from local_judges.options import ENGINES, check, suggest, table

VARIABLE = "JUDGESENSE_JUDGES"
"""The environment variable that names your own judge file."""

_BUILT_IN = Path(__file__).parent / "data" / "judges.yaml"


@dataclass(frozen=True)
class JudgeEntry:
    """A named judge: how to reach it, and what is known about it.

    ``options`` are the engine's, with those of the endpoint. ``model`` is None where no source
    states an id. ``price`` has ``input`` and ``output`` in US dollars per million tokens, with
    their ``source`` and ``date``. ``papers`` quotes what each paper states about the model;
    ``file`` is your own file that defines the judge, or "" for the package's.
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


_ENDPOINT_KEYS: Mapping[str, Any] = {
    "base_url": str, "provider": str, "key_variable": str, "options": Mapping[str, Any],
    "style": Mapping[str, Any],
}  # fmt: skip
_JUDGE_KEYS: Mapping[str, Any] = {
    "summary": str, "engine": str, "endpoint": str, "model": str, "floating": bool,
    "options": Mapping[str, Any], "style": Mapping[str, Any], "price": Mapping[str, Any],
    "papers": Mapping[str, Any], "notes": list[str],
}  # fmt: skip
_PRICE_KEYS: Mapping[str, Any] = {"input": float, "output": float, "source": Any, "date": Any}


def user_file() -> Path | None:
    """Your own judge file: ``$JUDGESENSE_JUDGES``, else
    ``~/.config/judgesense/judges.yaml`` (``$XDG_CONFIG_HOME`` counts) if it exists.

    Raises JudgeSenseError if the variable does not name a file.
    """
    if named := os.environ.get(VARIABLE):
        path = Path(named).expanduser()
        if not path.is_file():
            raise JudgeSenseError(f"{VARIABLE} names {path}, which is not a file")
        return path
    home = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    path = home / "judgesense" / "judges.yaml"
    return path if path.is_file() else None


def entries() -> Mapping[str, JudgeEntry]:
    """All named judges: the package's first, then those of your own file.

    Raises JudgeSenseError naming the file and the key that is unknown or wrong, and for a name or
    an endpoint that the package already has.
    """
    return _files()[1]


def endpoints() -> Mapping[str, Mapping[str, Any]]:
    """All named endpoints as options of the engine ``api``; raises as :func:`entries`.

    >>> endpoints()["openai"]["base_url"]
    'https://api.openai.com/v1'
    """
    return _files()[0]


def _files() -> tuple[Mapping[str, Mapping[str, Any]], Mapping[str, JudgeEntry]]:
    path = user_file()
    if path is None:
        return _read((_BUILT_IN, 0))
    return _read((_BUILT_IN, 0), (path, path.stat().st_mtime_ns))


@cache
def _read(
    *files: tuple[Path, int],
) -> tuple[Mapping[str, Mapping[str, Any]], Mapping[str, JudgeEntry]]:
    """Endpoints and judges of the files; the second part of each pair keeps the cache fresh."""
    endpoints: dict[str, dict[str, Any]] = {}
    judges: dict[str, JudgeEntry] = {}
    for path, _ in files:
        content = _load(path)
        for section, known in (("endpoints", endpoints), ("judges", judges)):
            for name, values in _section(content, section, path):
                place = f"{path}, {section}.{name}"
                if name in known:
                    raise JudgeSenseError(f"{place}: the name is taken; choose another")
                if section == "endpoints":
                    endpoints[name] = _endpoint(values, place)
                else:
                    judges[name] = _judge(name, values, endpoints, path)
    return MappingProxyType(endpoints), MappingProxyType(judges)


def _load(path: Path) -> Mapping[str, Any]:
    content = read_yaml(path)
    if not isinstance(content, dict) or not set(content) <= {"endpoints", "judges"}:
        raise JudgeSenseError(f"{path}: a judge file has the keys judges and endpoints, no others")
    return content


def _section(
    content: Mapping[str, Any], section: str, path: Path
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    found = content.get(section, {})
    if not isinstance(found, dict):
        raise JudgeSenseError(f"{path}, {section}: must be a mapping of names")
    for name, values in found.items():
        if not isinstance(name, str) or not name or set(name) & set("/@,") or name != name.strip():
            raise JudgeSenseError(
                f"{path}, {section}: {name!r} is not a valid name; use text without '/', '@' and "
                "',' (quote numbers)"
            )
        if not isinstance(values, dict):
            raise JudgeSenseError(f"{path}, {section}.{name}: must be a mapping of keys")
        yield name, values


def _endpoint(values: Mapping[str, Any], place: str) -> dict[str, Any]:
    """An endpoint as options of the API judge."""
    check(_ENDPOINT_KEYS, values, f"{place}.")
    if ("base_url" in values) == ("provider" in values):
        raise JudgeSenseError(f"{place}: needs either base_url or provider")
    own = {key: value for key, value in values.items() if key not in ("options", "style")}
    return {**_options(values, "api", place), **own}


def _judge(
    name: str, values: Mapping[str, Any], endpoints: Mapping[str, dict[str, Any]], path: Path
) -> JudgeEntry:
    place = f"{path}, judges.{name}"
    check(_JUDGE_KEYS, values, f"{place}.")
    endpoint = values.get("endpoint")
    engine = values.get("engine", "api" if endpoint else None)
    if engine not in ENGINES:
        said = "needs an engine or an endpoint" if engine is None else f"unknown engine {engine!r}"
        raise JudgeSenseError(f"{place}.engine: {said}; {suggest(str(engine), ENGINES)}")
    if endpoint is not None and endpoint not in endpoints:
        raise JudgeSenseError(
            f"{place}.endpoint: unknown endpoint {endpoint!r}; {suggest(endpoint, endpoints)}"
        )
    for key in ("endpoint", "floating", "price", "style"):
        if key in values and engine != "api":
            raise JudgeSenseError(f"{place}.{key}: the engine {engine} has no such key")
    options = _options(values, engine, place)
    inherited = endpoints.get(endpoint or "", {})
    if style := {**inherited.get("style", {}), **options.get("style", {})}:
        options["style"] = style
    options = {**inherited, **options}
    price = values.get("price")
    if price is not None:
        check(_PRICE_KEYS, price, f"{place}.price.")
        if absent := [key for key in _PRICE_KEYS if key not in price]:
            raise JudgeSenseError(f"{place}.price: {', '.join(absent)} missing")
        options["price"] = (float(price["input"]), float(price["output"]))
        check(ENGINES[engine], {"price": options["price"]}, f"{place}.")
    if floating := values.get("floating", False):
        options["floating"] = True
    papers = values.get("papers", {})
    check(dict.fromkeys(papers, str), papers, f"{place}.papers.")
    return JudgeEntry(
        name=name,
        engine=engine,
        model=values.get("model"),
        summary=values.get("summary", ""),
        options=options,
        endpoint=endpoint,
        floating=floating,
        price=price,
        papers=dict(papers),
        notes=tuple(values.get("notes", [])),
        file="" if path == _BUILT_IN else str(path),
    )


def _options(values: Mapping[str, Any], engine: str, place: str) -> dict[str, Any]:
    """``options`` and ``style`` of an entry, checked."""
    options, style = dict(values.get("options", {})), values.get("style", {})
    known = table(ENGINES[engine])
    for key in options:
        if key in known and known[key][0].metadata["own_key"]:
            raise JudgeSenseError(f"{place}.options.{key}: write it outside options")
    check(ENGINES[engine], options, f"{place}.options.", f"option of the engine {engine}")
    check(ENGINES["api"], {"style": style}, f"{place}.")
    return {**options, "style": dict(style)} if style else options
