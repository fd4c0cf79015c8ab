"""A run from data to report: what ``judgesense run`` does."""

from judgesense.pipeline.execution import execute, failed_prompts, how_to_retry, run
from judgesense.pipeline.judges import folder_for, identity_of, prepare, require_known, resolve_all
from judgesense.pipeline.settings import Note, Settings, to_stderr

__all__ = [
    "Note",
    "Settings",
    "execute",
    "failed_prompts",
    "folder_for",
    "how_to_retry",
    "identity_of",
    "prepare",
    "require_known",
    "resolve_all",
    "run",
    "to_stderr",
]
