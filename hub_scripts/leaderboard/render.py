"""Render the templates of the pages. Names and texts by other people come out inert."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from hub_scripts.names import HUB_SITE
from judgesense.reporting.documents import environment
from judgesense.text import brackets, p_value, percent, signed

if TYPE_CHECKING:
    from jinja2 import Environment

LONGEST_NAME, LONGEST_KEY = 64, 200

# Controls, and characters that change the direction of the text around them.
_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff]"
)


def render(template: str, **values: Any) -> str:
    """A template of the site as HTML, with every value escaped."""
    return _templates().get_template(f"{template}.html").render(**values)


def notice(text: str) -> str:
    """A page with one sentence."""
    return render("notice", text=text)


def plain(text: str) -> str:
    """Text whose controls and direction overrides are visible and have no effect.

    >>> plain("a\\u202eb")
    'a⟨U+202E⟩b'
    """
    return _HIDDEN.sub(lambda found: f"⟨U+{ord(found[0]):04X}⟩", text)


def short(name: object, longest: int = LONGEST_NAME) -> str:
    """A name on one line. A long one is cut and gets a hash, so that two names stay two."""
    text = " ".join(plain(str(name)).split())
    if len(text) <= longest:
        return text
    digest = hashlib.sha256(str(name).encode("utf-8", "replace")).hexdigest()[:6]
    return f"{text[: longest - 8]}…{digest}"


def query(values: Mapping[str, str]) -> str:
    """The query string of a URL."""
    return "&".join(
        f"{key}={quote(value.encode('utf-8', 'replace'), safe='')}" for key, value in values.items()
    )


def size(billions: float | None) -> str:
    """A number of parameters; empty if it is unknown.

    >>> size(0.135), size(70.0), size(None)
    ('135M', '70B', '')
    """
    if billions is None:
        return ""
    return f"{1000 * billions:.0f}M" if billions < 1 else f"{billions:g}B"


@cache
def _templates() -> Environment:
    made = environment(Path(__file__).parent / "templates")
    filters = (p_value, plain, query, short, signed, size)
    made.filters |= {each.__name__: each for each in filters}
    made.globals |= {"longest_key": LONGEST_KEY, "hub_site": HUB_SITE}
    made.globals |= {"brackets": brackets, "as_percent": percent}
    return made
