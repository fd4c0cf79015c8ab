"""Parameters that a model refuses by name, and a request without them."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any

REFUSABLE = ("temperature", "seed", "reasoning_effort", "response_format")
"""Parameters without which a prompt can still be judged; some models refuse them."""

_OTHER_NAMES = {
    "response_format": re.compile(r"response.?format|json.?schema|structured|guided", re.I)
}
"""Other words by which servers name a parameter."""

TOKEN_PARAMETERS = ("max_tokens", "max_completion_tokens")
"""The two names of the token cap; a model takes one of them."""


def refused_in(reason: str, body: Mapping[str, Any]) -> frozenset[str]:
    """The parameters of a request that the reason for a bad request names and that may be left
    out, or named otherwise.

    >>> sorted(refused_in("'temperature' does not support 0", {"temperature": 0, "seed": 1}))
    ['temperature']
    """
    fields = {**body, **body.get("extra_body", {})}
    names = [name for name in (*REFUSABLE, *TOKEN_PARAMETERS) if name in fields]
    return frozenset(
        name for name in names if re.search(_OTHER_NAMES.get(name, rf"\b{name}\b"), reason)
    )


def accepted_body(body: Mapping[str, Any], refused: Collection[str]) -> dict[str, Any]:
    """The arguments of a request without those that the endpoint refuses; a cap on the tokens is
    sent by its other name."""
    kept = {key: value for key, value in body.items() if key not in refused}
    for name, other in zip(TOKEN_PARAMETERS, reversed(TOKEN_PARAMETERS), strict=True):
        if name in refused and name in body and other not in refused:
            kept[other] = body[name]
    extra = {key: value for key, value in kept.pop("extra_body", {}).items() if key not in refused}
    return {**kept, "extra_body": extra} if extra else kept
