"""Read YAML files: every error names the file and the line, and repeated keys are refused.

PyYAML alone keeps the last of two equal keys without a word. :func:`read_yaml` returns plain
values; :func:`read_nodes` keeps every scalar as text, with its line, for files whose labels must
not turn into booleans (YES, NO) and whose errors are found after parsing.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from judgesense.errors import JudgeSenseError
from judgesense.files.atomic import file_bytes

_PARSER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

_MOST_VALUES = 100_000
"""A file may not expand to more values than this: nested aliases can describe billions."""

_DEEPEST = 100
"""Deeper nesting is refused before the nodes are made: libyaml's recursion has no limit, and a
hundred thousand levels end the process."""


class _Loader(_PARSER):  # type: ignore[misc]
    """PyYAML's safe loader; a date or number that Python cannot hold is an error with its line."""

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        try:
            value = super().construct_object(node, deep=deep)
            if isinstance(value, int) and value.bit_length() > 64:
                raise OverflowError("an integer of more than 64 bits")
            return value
        except (ValueError, OverflowError) as error:
            raise yaml.constructor.ConstructorError(
                None, None, str(error).partition(";")[0], node.start_mark
            ) from error


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

    def sequence(self, what: str) -> list[YamlNode]:
        """The value as a list."""
        if not isinstance(self.value, list):
            raise self.fail(f"{what} must be a list")
        return self.value

    def text(self, what: str) -> str:
        """The value as non-empty text."""
        if not isinstance(self.value, str) or not self.value.strip():
            raise self.fail(f"{what} must be non-empty text")
        return self.value


def read_text(path: Path) -> str:
    """A file's text. Raises JudgeSenseError for a file that cannot be read or is not UTF-8."""
    try:
        return file_bytes(path).decode("utf-8")
    except OSError as error:
        raise JudgeSenseError(f"{path}: cannot be read ({error.strerror or error})") from error
    except UnicodeDecodeError as error:
        raise JudgeSenseError(
            f"{path}: not UTF-8 at byte {error.start}; save the file as UTF-8"
        ) from error


def read_yaml(path: Path) -> Any:
    """A YAML file's value; None for an empty file.

    Raises JudgeSenseError naming file and line for text that is not UTF-8 or not YAML, a repeated
    key, an alias that contains itself, or aliases that expand beyond 100,000 values.
    """
    return parse_yaml(read_text(path), str(path))


def parse_yaml(text: str, where: str) -> Any:
    """The value of YAML text; ``where`` names it in errors. Raises as :func:`read_yaml`.

    >>> parse_yaml("judges: [a, b]", "mine.yaml")
    {'judges': ['a', 'b']}
    >>> parse_yaml("seed: 1\\nseed: 2", "mine.yaml")
    Traceback (most recent call last):
    judgesense.errors.JudgeSenseError: mine.yaml, line 2: the key 'seed' appears twice
    """
    _bounded(text, where)
    loader = _Loader(text)
    try:
        root = loader.get_single_node()
        _check(root, where, {})
        return None if root is None else loader.construct_document(root)
    except yaml.YAMLError as error:
        raise _invalid(error, where) from error
    finally:
        loader.dispose()


def read_nodes(path: Path) -> YamlNode:
    """A YAML file's value with the place of each part.

    Raises JudgeSenseError as :func:`read_yaml`, and for an empty file or a key that is not text.
    """
    return parse_nodes(read_text(path), str(path))


def parse_nodes(text: str, where: str) -> YamlNode:
    """The value of YAML text with the place of each part. Raises as :func:`read_nodes`."""
    _bounded(text, where)
    try:
        root = yaml.compose(text, Loader=_Loader)
    except yaml.YAMLError as error:
        raise _invalid(error, where) from error
    if root is None:
        raise JudgeSenseError(f"{where}: the file is empty")
    _check(root, where, {})
    return _converted(root, where)


def _bounded(text: str, where: str) -> None:
    """Refuse text with too many values or too deep nesting, reading it as a flat stream."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise JudgeSenseError(
            f"{where}: character {error.start} cannot be written as UTF-8; correct the text"
        ) from error
    depth = values = 0
    try:
        for event in yaml.parse(text, Loader=_PARSER):
            depth += isinstance(event, yaml.CollectionStartEvent)
            depth -= isinstance(event, yaml.CollectionEndEvent)
            values += isinstance(event, yaml.NodeEvent)
            if depth > _DEEPEST:
                place = _place(where, event.start_mark)
                raise JudgeSenseError(f"{place}: nested deeper than {_DEEPEST} levels")
            if values > _MOST_VALUES:
                place = _place(where, event.start_mark)
                raise JudgeSenseError(f"{place}: the file has more than {_MOST_VALUES:,} values")
    except yaml.YAMLError as error:
        raise _invalid(error, where) from error


def _invalid(error: yaml.YAMLError, where: str) -> JudgeSenseError:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or "cannot be parsed"
    return JudgeSenseError(f"{_place(where, mark) if mark else where}: invalid YAML: {problem}")


def _place(where: str, mark: Any) -> str:
    return f"{where}, line {mark.line + 1}"


def _check(node: yaml.Node | None, where: str, sizes: dict[int, int | None]) -> int:
    """Refuse repeated keys and runaway aliases; the number of values that the node expands to.

    ``sizes`` holds the nodes already seen, None while a node is being looked at.
    """
    if not isinstance(node, yaml.CollectionNode):
        return 1
    if id(node) in sizes:
        if (known := sizes[id(node)]) is None:
            raise JudgeSenseError(f"{_place(where, node.start_mark)}: an alias contains itself")
        return known
    sizes[id(node)], size = None, 1
    seen = set()
    for child in node.value:
        if isinstance(node, yaml.MappingNode):
            key, child = child
            if not isinstance(key, yaml.ScalarNode):
                raise JudgeSenseError(f"{_place(where, node.start_mark)}: a key must be text")
            if key.value in seen:
                place = _place(where, key.start_mark)
                raise JudgeSenseError(f"{place}: the key {key.value!r} appears twice")
            seen.add(key.value)
        size += _check(child, where, sizes)
    if size > _MOST_VALUES:
        raise JudgeSenseError(
            f"{_place(where, node.start_mark)}: the aliases expand to more than {_MOST_VALUES:,} "
            "values; write out what you need"
        )
    sizes[id(node)] = size
    return size


def _converted(node: yaml.Node, where: str) -> YamlNode:
    place = _place(where, node.start_mark)
    if isinstance(node, yaml.ScalarNode):
        return YamlNode(node.value, place)
    if isinstance(node, yaml.SequenceNode):
        return YamlNode([_converted(child, where) for child in node.value], place)
    return YamlNode(
        {
            key.value: YamlNode(_converted(child, where).value, _place(where, key.start_mark))
            for key, child in node.value
        },
        place,
    )
