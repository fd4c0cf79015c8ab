"""A run from data to report: what ``judgesense run`` does."""

from judgesense.pipeline.execution import (
    RunRequest,
    execute,
    failed_prompts,
    identity_of,
    prepare,
    resolve_all,
    run,
)
from judgesense.pipeline.settings import Note, Settings, to_stderr

__all__ = [
    "Note",
    "RunRequest",
    "Settings",
    "execute",
    "failed_prompts",
    "identity_of",
    "prepare",
    "resolve_all",
    "run",
    "to_stderr",
]
