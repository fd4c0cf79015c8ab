"""Importers of foreign logs, one module per format, which `judgesense.importers.log` uses."""

NAMES = ("table", "pairs", "lm-eval", "inspect", "promptfoo", "deepeval")
"""The formats. Their modules load when they are used, so that ``--help`` is quick."""
