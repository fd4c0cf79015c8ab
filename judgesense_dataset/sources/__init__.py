"""Where items come from: public sets, and ``own`` for your own data.

A set is a module here with its name and a ``SOURCE``; `loader` says what that is, and has the
parts that sources share. ``data/citations.bib`` has what it cites.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from judgesense.errors import JudgeSenseError

if TYPE_CHECKING:
    from judgesense_dataset.sources.loader import DataSource

NAMES = ("truthfulqa", "summeval", "scifact", "mtbench")
"""The sources of ``all``, in the order of their tasks."""

_MODULES = {path.stem for path in Path(__file__).parent.glob("*.py")}
_MODULES -= {"__init__", "loader", "beir", "own"}

CHOICES = (*NAMES, *sorted(_MODULES.difference(NAMES)), "all", "beir:SET", "own")
"""All that ``judgesense dataset build --source`` takes."""


def get_source(name: str) -> DataSource:
    """The source of that name; ``beir:SET`` is any other BEIR set.

    Raises JudgeSenseError for an unknown name, listing the choices.

    >>> get_source("truthfulqa").task
    'factuality'
    """
    if name in _MODULES:
        source: DataSource = import_module(f"{__name__}.{name}").SOURCE
        return source
    if name == "scifact" or (name.startswith("beir:") and name != "beir:"):
        from judgesense_dataset.sources.beir import beir_source

        return beir_source(name.removeprefix("beir:"))
    raise JudgeSenseError(f"unknown source {name!r}; choose from {', '.join(CHOICES)}")
