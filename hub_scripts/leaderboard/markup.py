"""Other people's words, and figures, as HTML that nothing in them can break out of."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from judgesense.reporting.html import h
from judgesense.reporting.style import MARKS
from judgesense.text import interval, number

LONGEST_NAME, LONGEST_KEY = 64, 200

# Controls, and what turns the direction of the text around it.
_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff]"
)


def plain(text: str) -> str:
    """Text in which controls and direction overrides can be seen and do nothing."""
    return _HIDDEN.sub(lambda found: f"⟨U+{ord(found[0]):04X}⟩", text)


def short(name: object, longest: int = LONGEST_NAME) -> str:
    """A name on one line; a long one is cut, with a hash so that two stay two."""
    text = " ".join(plain(str(name)).split())
    if len(text) <= longest:
        return text
    digest = hashlib.sha256(str(name).encode("utf-8", "replace")).hexdigest()[:6]
    return f"{text[: longest - 8]}…{digest}"


def name(text: object, longest: int = LONGEST_NAME) -> str:
    """A name as HTML, in a direction of its own."""
    return f"<bdi>{h(short(text, longest))}</bdi>"


def link(page: str, text: str, **query: str) -> str:
    """A link to a page of this site; ``text`` is HTML."""
    return f'<a href="{page}?{h(asked(**query))}">{text}</a>'


def asked(**query: str) -> str:
    """A query string."""
    return "&".join(
        f"{key}={quote(value.encode('utf-8', 'replace'), safe='')}" for key, value in query.items()
    )


def verdict(word: str, why: str | None = None) -> str:
    """A verdict with its mark and colour; ``why`` is shown on hover and below."""
    mark = MARKS.get(word, "")
    title = f' title="{h(short(why, 200))}"' if why else ""
    return f'<span class="verdict {h(word)}"{title}>{mark} {h(word)}</span>'


def bar(cell: Mapping[str, Any], tone: str) -> str:
    """JSS and its interval drawn from 0 to 1, with the zone of a reliable JSS shaded."""
    parts = []
    if cell["ci_low"] is not None and cell["ci_high"] is not None:
        low, high = 100 * cell["ci_low"], 100 * cell["ci_high"]
        parts.append(f'<i class="span" style="left:{low:.1f}%;width:{high - low:.1f}%"></i>')
    parts.append(f'<i class="dot" style="left:{100 * cell["jss"]:.1f}%"></i>')
    drawn = f"<span>{''.join(parts)}</span>"
    return f'<span class="bar {h(tone)}" aria-hidden="true">{drawn}</span>'


def figure(cell: Mapping[str, Any] | None, tone: str) -> str:
    """JSS in figures and drawn."""
    if cell is None or cell["jss"] is None:
        return '<span class="soft">–</span>'
    low = f'<small>{h(interval(cell, 2))}</small>' if cell["ci_low"] is not None else (
        "<small>no interval</small>"
    )  # fmt: skip
    return f'<span class="jss"><b>{number(cell["jss"])}</b>{bar(cell, tone)}{low}</span>'


def size(billions: float | None) -> str:
    """Parameters as people write them; empty if the name does not state them."""
    if billions is None:
        return ""
    if billions < 1:
        return f"{1000 * billions:.0f}M"
    return f"{billions:g}B"


def notice(text: str) -> str:
    """A page that is one sentence."""
    return f'<div class="site"><p class="notice">{h(short(text, 600))}</p></div>'
