"""The signature printed beside every figure that may be quoted."""

from __future__ import annotations

PARTS = ("task", "n", "items", "labels", "scoring", "undecided", "templates", "ci", "seed")
"""The parts common to all metrics, in print order; `data` and `v` end the line."""


def signature(metric: str = "JSS", **parts: object) -> str:
    """How a figure was made, in one line, in the manner of sacrebleu (Post 2018).

    `JSS|task:coherence|n:125|items:25|labels:mapped|scoring:options|undecided:excluded|templates:fixed|ci:wilson-cluster|data:1a2b3c4d|v:0.1.0`

    Args:
        metric: name of the figure.
        **parts: `task`, `n`, `items`, `labels`, `scoring`, `undecided`, `templates`, `ci`, `data`
            and `v` (the version); a missing part prints `-`. `seed` and further parts are printed
            after `ci`, and only if passed.

    Returns:
        The signature.

    Raises:
        ValueError: a part's value or name contains `|` or a line break.

    >>> signature("JSS", n=10, v="0.2.0")[:22]
    'JSS|task:-|n:10|items:'
    """
    extra = [name for name in parts if name not in (*PARTS, "data", "v")]
    names = [name for name in PARTS if name != "seed" or parts.get("seed") is not None]
    fields = [metric]
    for name in (*names, *extra, "data", "v"):
        value = parts.get(name)
        field = f"{name}:{'-' if value is None else value}"
        if "|" in field or "\n" in field:
            raise ValueError(f"signature part {name!r} is {value!r}: remove '|' and line breaks")
        fields.append(field)
    return "|".join(fields)
