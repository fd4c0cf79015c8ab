"""Importers of foreign logs, one module per format, which `judgesense.importers.log` uses."""

from __future__ import annotations

from collections.abc import Mapping

MODULES: Mapping[str, str] = {
    "table": "tables",
    "pairs": "pairs",
    "lm-eval": "lm_eval",
    "inspect": "inspect_logs",
    "promptfoo": "promptfoo",
    "deepeval": "deepeval",
}
"""The module of each format. The importers load when they are used, so that ``--help`` is quick."""
