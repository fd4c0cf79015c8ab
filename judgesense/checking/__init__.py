"""A check: your rubric, or another tool's log, judged under other wordings and decided."""
