"""The command that started a run, kept in ``run.json`` so that a next step can repeat it."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from inspect import signature
from pathlib import Path
from typing import Any

_ARGUMENTS = ("rubric", "source")
_REPEATED_FLAGS = ("judge", "set", "columns", "threshold")
_FLAGS = {"settings": "set"}
"""Parameters of a function whose flag has another name."""


def invocation(
    command: str, function: Callable[..., Any], given: Mapping[str, Any]
) -> dict[str, Any] | None:
    """A command as ``run.json`` keeps it: its name, arguments and non-default options.

    None if the command line cannot repeat it: a judge that is a function, rows in memory.

    Args:
        command: its name.
        function: its signature has the defaults.
        given: the values by parameter; ``judge_options`` is a mapping of more options.

    >>> def run(judge, *, orders=None, out): ...
    >>> given = {"judge": "m", "orders": ["AB", "BA"], "out": "d", "judge_options": {"dtype": "x"}}
    >>> command_line(invocation("run", run, given))
    'judgesense run --judge m --orders AB,BA --out d --set dtype=x'
    """
    parameters = signature(function).parameters
    arguments: list[str] = []
    options: dict[str, list[str]] = {}
    for name, value in given.items():
        if name == "judge_options":
            options |= {"max_cost": [str(value["max_cost"])]} if value.get("max_cost") else {}
            pairs = [
                f"{key}={_option_text(member)}"
                for key, member in value.items()
                if key != "max_cost"
            ]
            options |= {"set": [*options.get("set", []), *pairs]} if pairs else {}
            continue
        default = parameters[name].default if name in parameters else None
        if value is None or value is default or isinstance(value, bool):
            continue  # A flag without a value is about what is printed.
        if isinstance(value, Mapping):
            value = [f"{key}={member}" for key, member in value.items()]
        values = value if isinstance(value, (list, tuple)) else [value]
        if not all(isinstance(member, (str, Path, int, float)) for member in values):
            return None
        if len(values) == 1 and values[0] == default:
            continue
        texts, flag = [str(member) for member in values], _FLAGS.get(name, name)
        if name in _ARGUMENTS:
            arguments += texts
        else:
            options[flag] = texts if flag in _REPEATED_FLAGS else [",".join(texts)]
    return {"command": command, "arguments": arguments, "options": options}


def _option_text(value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)


def command_line(started: Mapping[str, Any], **changes: Any) -> str:
    """The command as it is typed, with some options changed; None leaves an option out."""
    options = {**started["options"], **changes}
    words = ["judgesense", *started["command"].split(), *started["arguments"]]
    for name, values in options.items():
        for value in [values] if isinstance(values, (str, int)) else values or ():
            words += [f"--{name.replace('_', '-')}", str(value)]
    return shlex.join(words)


def another_folder(folder: str) -> str:
    """The name of a folder for the same run on other data.

    >>> another_folder("runs/a"), another_folder("runs/a-2")
    ('runs/a-2', 'runs/a-3')
    """
    stem, dash, number = folder.rstrip("/").rpartition("-")
    if dash and number.isdigit() and len(number) < 4:
        return f"{stem}-{int(number) + 1}"
    return f"{folder.rstrip('/')}-2"
