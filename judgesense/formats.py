"""The formats of foreign logs, apart from the importers, so that ``--help`` loads none of them."""

from __future__ import annotations

from collections.abc import Mapping

MODULES: Mapping[str, str] = {
    "table": "tables",
    "pairs": "pairs",
    "lm-eval": "lm_eval",
    "inspect": "inspect_logs",
    "promptfoo": "promptfoo",
    "deepeval": "deepeval",
    "openai-batch": "openai_batch",
    "llmbar": "llmbar",
    "flakyjudge": "flakyjudge",
    "rag-eval": "rag_eval",
}
"""The module in `judgesense.importers` of every format."""
