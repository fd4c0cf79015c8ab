"""Importers of foreign logs, one module per format, which `judgesense.importers.log` uses."""

from __future__ import annotations

from collections.abc import Mapping

<<<<<<< HEAD
import pyarrow as pa

from judgesense.decisions.log import PARTS, part_files, write_part
from judgesense.errors import JudgeSenseError
from judgesense.files.disk import sha256_of
from judgesense.formats import MODULES
from judgesense.importers.build import build_parts
from judgesense.importers.columns import ColumnMap, parse_columns
from judgesense.importers.protocol import Importer, ReadOptions
from judgesense.importers.readings import Parser
from judgesense.run_folder.environment import now
from judgesense.run_folder.folder import changes, digests_of, read_record, save_run
from judgesense.version import __version__

__all__ = ["FORMATS", "Importer", "ReadOptions", "import_log", "parse_columns"]

FORMATS: Mapping[str, Importer] = {
    name: import_module(f"judgesense.importers.{module}").IMPORTER
    for name, module in MODULES.items()
=======
MODULES: Mapping[str, str] = {
    "table": "tables",
    "pairs": "pairs",
    "lm-eval": "lm_eval",
    "inspect": "inspect_logs",
    "promptfoo": "promptfoo",
    "deepeval": "deepeval",
    "openai-batch": "openai_batch",
>>>>>>> dd2aa4d (Import published logs as tables; read rows by column in one way)
}
"""The module of each format. The importers load when they are used, so that ``--help`` is quick."""
