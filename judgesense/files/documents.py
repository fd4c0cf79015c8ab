"""Read JSON and YAML, and check their values against a declared shape.

Each fault is one error that names the file and the place. PyYAML and Python's JSON silently keep
the last of two equal keys; here, equal keys are refused. `read_yaml` returns plain
values; `read_nodes` keeps every scalar as text, with its line, for files whose labels must not turn
into booleans (YES, NO) and whose errors are found after parsing.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any, TypeVar

import yaml
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, TypeAdapter, ValidationError
from pydantic_core import PydanticCustomError

from judgesense.errors import JudgeSenseError
from judgesense.files.disk import read_text, require_file


class Shape(BaseModel):
    """An object in another tool's file: the fields that are read. Others are ignored."""

    model_config = ConfigDict(extra="ignore", frozen=True)


class OwnShape(Shape):
    """An object in a file that JudgeSense wrote: its numbers are finite."""

    model_config = ConfigDict(allow_inf_nan=False)


Count = Annotated[int, Field(ge=0, lt=2**31)]
"""A count from 0 that fits a 32-bit column."""


def invalid(reason: str) -> PydanticCustomError:
    """The error to raise in a validator of a shape."""
    return PydanticCustomError("invalid", "{reason}", {"reason": reason})


def _not_blank(text: str) -> str:
    if not text.strip():
        raise invalid("must not be empty")
    return text


Text = Annotated[str, AfterValidator(_not_blank)]
"""Text that is not blank."""

S = TypeVar("S", bound=Shape)
T = TypeVar("T")


def validate(shape: type[S], values: Any, place: str, what: str) -> S:
    """``values`` as an object of a shape; ``what`` names what was expected, such as "a sample".

    Raises JudgeSenseError, with ``place``, the path of the first field that does not fit, what was
    expected there and what was found.

    >>> class Row(Shape):
    ...     score: float
    >>> validate(Row, {"score": 0.5, "note": "x"}, "log.json, row 1", "a row").score
    0.5
    >>> validate(Row, {"score": "high"}, "log.json, row 1", "a row")
    Traceback (most recent call last):
    judgesense.errors.JudgeSenseError: log.json, row 1, score: input should be a valid number, \
unable to parse string as a number; found 'high' (in a row)
    """
    return _fit(shape.model_validate, values, place, what)


def fit_record(record: type[T], values: Any, place: str, what: str) -> T:
    """``values`` as a dataclass, with every field of its declared type; others are ignored.

    Raises JudgeSenseError as `fit`.
    """
    validate: Callable[[Any], T] = _adapter(record).validate_python  # type: ignore[arg-type]
    return _fit(validate, values, place, what)


@cache
def _adapter(record: type[Any]) -> TypeAdapter[Any]:
    return TypeAdapter(record)


def _fit(validate: Callable[[Any], T], values: Any, place: str, what: str) -> T:
    try:
        return validate(values)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        field = _path(values, first["loc"], first["type"] == "missing")
        where = f"{place}, {field.lstrip('.')}" if field else place
        if first["type"] in ("missing", "extra_forbidden"):
            # Without the value, which may be a key that must not be logged.
            problem = "missing" if first["type"] == "missing" else "unknown"
            raise JudgeSenseError(f"{where}: {problem} field in {what}") from None
        expected = re.sub(
            r"a valid dictionary(?: or instance of \w+)?",
            "an object",
            first["msg"][:1].lower() + first["msg"][1:],
        )
        value = repr(first["input"])
        value = value if len(value) <= 80 else f"{value[:77]}..."
        raise JudgeSenseError(f"{where}: {expected}; found {value} (in {what})") from error


def _path(values: Any, loc: Sequence[int | str], missing: bool) -> str:
    path = ""
    for number, at in enumerate(loc, 1):
        if isinstance(at, int) and isinstance(values, list):
            path, values = f"{path}[{at}]", values[at] if at < len(values) else None
        elif isinstance(values, Mapping) and (at in values or (missing and number == len(loc))):
            path, values = f"{path}.{at}", values.get(at)
    return path


def read_json(path: Path) -> Any:
    """A JSON file's value. Raises JudgeSenseError as `parse_json`, and for no or an empty file."""
    require_file(path)
    return parse_json(read_text(path), str(path))


def parse_json(text: str | bytes, where: str, *, finite: bool = False) -> Any:
    """The value of JSON text; ``where`` names it in errors.

    Raises JudgeSenseError for text that is not JSON, an object with a key twice, what Python cannot
    hold, and half a surrogate pair (``"\\ud83d"``), which no file can store. With ``finite``, NaN
    and infinite numbers are refused as well.

    >>> parse_json('{"n": 1}', "mine.json")
    {'n': 1}
    >>> parse_json('{"n": }', "mine.json, line 3")
    Traceback (most recent call last):
    judgesense.errors.JudgeSenseError: mine.json, line 3: not JSON (Expecting value, column 7)
    """
    try:
        if isinstance(text, bytes):
            text = text.decode(json.detect_encoding(text))  # json itself lets surrogates pass
        value = (_FINITE if finite else _ANY).decode(text)
        if "\\u" in text and _SURROGATE.search(text):
            json.dumps(value, ensure_ascii=False).encode("utf-8")
        return value
    except json.JSONDecodeError as error:
        line = f"line {error.lineno}, " if error.lineno > 1 else ""
        raise JudgeSenseError(
            f"{where}: not JSON ({error.msg}, {line}column {error.colno})"
        ) from error
    except UnicodeDecodeError as error:
        raise JudgeSenseError(f"{where}: not UTF-8 at byte {error.start}") from error
    except UnicodeEncodeError as error:
        raise JudgeSenseError(f"{where}: holds half a surrogate pair; write both halves") from error
    except RecursionError as error:
        raise JudgeSenseError(f"{where}: nested too deeply; use fewer levels") from error
    except ValueError as error:
        raise JudgeSenseError(f"{where}: {str(error).partition(';')[0]}") from error


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) < len(pairs):
        (name, _), *_ = Counter(name for name, _ in pairs).most_common(1)
        raise ValueError(f"the key {name!r} appears twice")
    return values


def _finite(text: str) -> float:
    if not math.isfinite(value := float(text)):
        raise ValueError(f"holds {text[:30]}, which is not a finite number")
    return value


_ANY = json.JSONDecoder(object_pairs_hook=_object)
_FINITE = json.JSONDecoder(object_pairs_hook=_object, parse_constant=_finite, parse_float=_finite)
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
"""Half of a surrogate pair."""

_PARSER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_DEEPEST, _MOST_VALUES, _MOST_ALIASES = 100, 100_000, 100
"""Limits of a YAML file: libyaml does not limit recursion, and aliases of aliases can expand to
billions of values."""


@dataclass(frozen=True, slots=True)
class YamlNode:
    """A YAML value and its place ("FILE, line N"). Scalars are always text: YES is no boolean."""

    value: Any
    where: str

    def fail(self, reason: str) -> JudgeSenseError:
        """The error to raise for this value: its place, then the reason."""
        return JudgeSenseError(f"{self.where}: {reason}")

    def mapping(self, what: str, keys: set[str] | None = None) -> dict[str, YamlNode]:
        """The value as a mapping; raises JudgeSenseError for a key that is not in ``keys``."""
        if not isinstance(self.value, dict) or not self.value:
            raise self.fail(f"{what} must be a non-empty mapping")
        if keys is not None and (unknown := [key for key in self.value if key not in keys]):
            raise self.value[unknown[0]].fail(
                f"unknown key {unknown[0]!r} in {what}; the keys are {', '.join(sorted(keys))}"
            )
        return self.value

    def text(self, what: str) -> str:
        """The value as non-empty text."""
        if not isinstance(self.value, str) or not self.value.strip():
            raise self.fail(f"{what} must be non-empty text")
        return self.value


def validate_node(shape: type[S], node: YamlNode, what: str, **more: Any) -> S:
    """A YAML mapping, and ``more`` values, as an object of a shape.

    Scalars are text, so that a label YES is no boolean; a shape's numbers are read from it. Raises
    JudgeSenseError with file, line and key of what does not fit.
    """
    try:
        node.mapping(what)
        return shape.model_validate({**_plain(node), **more})
    except ValidationError as error:
        faults = error.errors(include_url=False)
        # An unknown key explains a missing one.
        fault = next((one for one in faults if one["type"] == "extra_forbidden"), faults[0])
        place = node
        for at in fault["loc"]:
            parts = place.value
            if isinstance(parts, list):
                parts = dict(enumerate(parts))
            if isinstance(parts, dict) and at in parts:
                place = parts[at]
        key = next((at for at in reversed(fault["loc"]) if isinstance(at, str)), what)
        known = ", ".join(name for name in shape.model_fields if name not in more)
        hint = f"; the keys are {known}" if len(fault["loc"]) == 1 else ""
        if fault["type"] == "extra_forbidden":
            raise place.fail(f"unknown key {key!r} in {what}{hint}") from error
        if fault["type"] == "missing":
            raise place.fail(f"missing key {key!r} in {what}{hint}") from error
        reason = fault["msg"][:1].lower() + fault["msg"][1:]
        raise place.fail(f"{key} of {what}: {reason}; got {fault['input']!r:.80}") from error


def _plain(node: YamlNode) -> Any:
    value = node.value
    if isinstance(value, dict):
        return dict(zip(value, map(_plain, value.values()), strict=True))
    return list(map(_plain, value)) if isinstance(value, list) else value


def read_yaml(path: Path) -> Any:
    """A YAML file's value; None for an empty file.

    Raises JudgeSenseError naming file and line for text that is not UTF-8 or not YAML, a repeated
    key, and a file beyond the limits of size, depth and aliases.
    """
    return parse_yaml(read_text(path), str(path))


def parse_yaml(text: str, where: str, *, as_nodes: bool = False) -> Any:
    """The value of YAML text, or its `YamlNode`; None for no text. ``where`` names it in errors.

    Raises as `read_yaml`.

    >>> parse_yaml("judges: [a, b]", "mine.yaml")
    {'judges': ['a', 'b']}
    >>> parse_yaml("seed: 1\\nseed: 2", "mine.yaml")
    Traceback (most recent call last):
    judgesense.errors.JudgeSenseError: mine.yaml, line 2: the key 'seed' appears twice
    """
    try:
        _require_bounded(text, where)
        loader = _PARSER(text)
        try:
            if (root := loader.get_single_node()) is None:
                return None
            node = _node(root, where)
            return node if as_nodes else loader.construct_document(root)
        finally:
            loader.dispose()
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or "cannot be parsed"
        place = _place(where, mark) if mark else where
        raise JudgeSenseError(f"{place}: invalid YAML: {problem}") from error
    except JudgeSenseError:
        raise
    except (ValueError, OverflowError) as error:
        # A date or number that Python cannot hold, or half a surrogate pair.
        raise JudgeSenseError(f"{where}: invalid YAML: {error!s:.100}") from error


def read_nodes(path: Path) -> YamlNode:
    """A YAML file with the place of each part. Raises as `read_yaml`, also for an empty file."""
    return parse_nodes(read_text(path), str(path))


def parse_nodes(text: str, where: str) -> YamlNode:
    """The value of YAML text with the place of each part. Raises as `read_nodes`."""
    node: YamlNode | None = parse_yaml(text, where, as_nodes=True)
    if node is None:
        raise JudgeSenseError(f"{where}: the file is empty")
    return node


def _require_bounded(text: str, where: str) -> None:
    depth = values = aliases = 0
    anchored: list[int] = []
    for event in yaml.parse(text, Loader=_PARSER):
        values += isinstance(event, yaml.NodeEvent)
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            anchored += [depth] if event.anchor else []
        elif isinstance(event, yaml.CollectionEndEvent):
            anchored = [each for each in anchored if each != depth]
            depth -= 1
        elif isinstance(event, yaml.AliasEvent):
            aliases += 1 + _MOST_ALIASES * bool(anchored)
        if depth > _DEEPEST or values > _MOST_VALUES or aliases > _MOST_ALIASES:
            raise JudgeSenseError(
                f"{_place(where, event.start_mark)}: nested deeper than {_DEEPEST} levels, more "
                f"than {_MOST_VALUES:,} values, or aliases of aliases; simplify the file"
            )


def _node(node: yaml.Node, where: str) -> YamlNode:
    """A node with its place. Raises JudgeSenseError for a key that is not text or repeats."""
    place = _place(where, node.start_mark)
    if isinstance(node, yaml.ScalarNode):
        return YamlNode(node.value, place)
    if isinstance(node, yaml.SequenceNode):
        return YamlNode([_node(child, where) for child in node.value], place)
    values: dict[str, YamlNode] = {}
    for key, child in node.value:
        if not isinstance(key, yaml.ScalarNode):
            raise JudgeSenseError(f"{place}: a key must be text")
        key_place = _place(where, key.start_mark)
        if key.value in values:
            raise JudgeSenseError(f"{key_place}: the key {key.value!r} appears twice")
        values[key.value] = YamlNode(_node(child, where).value, key_place)
    return YamlNode(values, place)


def _place(where: str, mark: Any) -> str:
    return f"{where}, line {mark.line + 1}"
