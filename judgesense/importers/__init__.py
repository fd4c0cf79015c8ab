"""Importers of foreign logs, one module per format, which `judgesense.importers.log` uses."""

FORMATS = {
    "table": "table",
    "inspect": "inspect_logs",
    "promptfoo": "promptfoo",
    "deepeval": "deepeval",
    "scores": "scores",
}
"""The formats and their modules, which load when they are used, so that ``--help`` is quick."""
