"""The Hub's client, huggingface_hub 1 or 2, and what it raises."""

from __future__ import annotations

import sys
from typing import Any

from judgesense.errors import MissingExtraError


def hub_client(purpose: str = "publishing") -> Any:
    """The package huggingface_hub. Raises MissingExtraError if it is not installed."""
    try:
        import huggingface_hub
        import huggingface_hub.constants
        import huggingface_hub.errors
        import huggingface_hub.hf_api
    except ImportError:
        raise MissingExtraError("huggingface_hub", "hub", purpose) from None
    return huggingface_hub


def transport_errors() -> tuple[type[BaseException], ...]:
    """Errors of the client's HTTP library: httpx up to huggingface_hub 1, httpx2 from 2 on."""
    loaded = (sys.modules.get(name) for name in ("httpx", "httpx2"))
    return (ConnectionError, *(module.TransportError for module in loaded if module is not None))
