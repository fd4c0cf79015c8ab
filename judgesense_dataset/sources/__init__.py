"""Where items come from: public sets, and ``own`` for your own data.

To add a set, add it to the ``SOURCES`` of a module here, and its name to `_MODULES`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from judgesense.errors import JudgeSenseError

if TYPE_CHECKING:
    from judgesense_dataset.sources.loader import DataSource

_MODULES = {
    "truthfulqa": "texts",
    "summeval": "texts",
    "scifact": "beir",
    "mtbench": "mtbench",
    "pandalm": "pandalm",
}
"""The module of each source, by name."""

NAMES = ("truthfulqa", "summeval", "scifact", "mtbench")
"""The sources of ``all``, in the order of their tasks."""

CHOICES = (*_MODULES, "all", "beir:SET", "own")
"""All that ``judgesense dataset build --source`` takes."""


def get_source(name: str) -> DataSource:
    """The source of that name; ``beir:SET`` is any other BEIR set.

    Raises JudgeSenseError for an unknown name, listing the choices.

    >>> get_source("truthfulqa").task
    'factuality'
    """
    if name in _MODULES:
        source: DataSource = import_module(f"{__name__}.{_MODULES[name]}").SOURCES[name]
        return source
    if name.startswith("beir:") and name != "beir:":
        from judgesense_dataset.sources.beir import beir_source

        return beir_source(name.removeprefix("beir:"))
    raise JudgeSenseError(f"unknown source {name!r}; choose from {', '.join(CHOICES)}")
