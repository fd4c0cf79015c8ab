"""The key of an endpoint: it goes to the endpoint that it was named for, and into no log."""

from __future__ import annotations

import os
from ipaddress import ip_address
from socket import inet_aton
from urllib.parse import urlsplit

from judgesense.errors import JudgeSenseError
from local_judges.options import KEY_VARIABLE

NO_KEY = "none"
"""The key that a client sends where none is needed."""


def require_loggable(url: str, key_variable: str) -> None:
    """Raise JudgeSenseError if an endpoint's URL may hold a secret, because logs name the URL.

    Also for one that is no URL of a host.
    """
    try:
        parts = urlsplit(url)
        has_host = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError as error:
        raise JudgeSenseError(f"the endpoint's URL is invalid: {error}") from None
    if "@" in parts.netloc or parts.query or parts.fragment:
        raise JudgeSenseError(
            "the endpoint's URL holds a name, a password or a query, which would be logged; put "
            f"the key into the environment variable {key_variable}"
        )
    if not has_host or not url.isprintable() or " " in url:
        raise JudgeSenseError("the endpoint's URL must look like https://HOST/v1")


def is_here(url: str | None) -> bool:
    """Whether a URL names this machine, by any of its addresses.

    >>> is_here("http://127.0.0.1:8000/v1"), is_here("http://127.0.0.1.example.org/v1")
    (True, False)
    """
    host = ((urlsplit(url).hostname if url else None) or "").rstrip(".")
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        address = ip_address(host.partition("%")[0])
    except ValueError:
        try:
            # Short forms, such as 127.1, which clients take as well.
            address = ip_address(inet_aton(host))
        except OSError:
            return False
    address = getattr(address, "ipv4_mapped", None) or address
    # A server that listens on 0.0.0.0 tells people to ask there.
    return address.is_loopback or address.is_unspecified


def read_key(variable: str | None, base_url: str | None) -> str:
    """The key; ``variable`` is None unless one was named.

    A server on this machine gets a key only if its variable was named: it seldom needs one, and
    whoever opened the port should not get the account's.
    """
    if variable is None and is_here(base_url):
        return NO_KEY
    variable = variable or KEY_VARIABLE
    if key := os.environ.get(variable, "").strip():
        if not (key.isascii() and key.isprintable()):
            raise JudgeSenseError(
                f"the environment variable {variable} holds characters that an HTTP header cannot "
                "carry; copy the key again"
            )
        return key
    if is_here(base_url):
        return NO_KEY
    raise JudgeSenseError(f"no key: set the environment variable {variable}")
