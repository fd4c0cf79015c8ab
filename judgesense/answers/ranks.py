"""Rankings of all candidates: in JSON, in a list, a table or a chain ``C > A > B``."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from judgesense.answers.space import Space
from judgesense.answers.vocabulary import TIE

NAME_KEYS = ("model", "name", "id", "candidate", "assistant", "response", "output", "option")
RANK_KEYS = ("rank", "ranking", "position", "place")
_MOST_OBJECTS = 40
_DEEPEST = 6
_NOT_WORD = re.compile(r"[\W\d_]")
_BRACKET = re.compile(r"[\[{]")
_VALUE = r"\w{1,40}\s?=\s?(?:\"[^\"\n]*\"|'[^'\n]*'|\[[^\[\]{}\n]*\]|[\w.-]{1,40})"
_CALL = re.compile(rf"\b[a-z]\w{{0,60}}\(\s?({_VALUE}(?:\s?,\s?{_VALUE})*),?\s?\)")
_ARGUMENT = re.compile(r"(\w+)\s*=\s*(?:\"([^\"\n]*)\"|'([^'\n]*)'|(\[[^\[\]{}\n]*\])|([\w.-]+))")
_CHAIN = re.compile(
    r"[\w()-]{1,20}(?:[ _][\w()]{1,4})?(?:\s*[>≻=]+\s*[\w()-]{1,20}(?:[ _][\w()]{1,4})?){1,12}"
)
_PARAMETER = re.compile(r"<parameter(?:\s+name)?=[\"']?(\w{1,40})[\"']?>([^<]{1,80})</parameter>")
_PLACES = {"first": 1, "second": 2, "third": 3, "fourth": 4, "fifth": 5}
_LINE = re.compile(
    r"^[\s|*#>-]*(?P<rank>(?:rank|place|platz|rang|puesto|lugar)\s*)?(?:no\.\s*|#)?"
    rf"(?P<place>\d{{1,2}}|{'|'.join(_PLACES)})(?P<nth>st|nd|rd|th)?(?P<word>\s*place)?"
    r"\s*[\s.):|*=–—-]+\s*(?P<name>[^\s|*][^|,;:.(\n–—]{0,40}?)[\s*]*(?:$|[|,;:.(–—]|\s-)",
    re.IGNORECASE,
)
_NTH_KEY = re.compile(r"(?:rank|place|position)_?(\d+)")
_NTH = re.compile(
    r"\b(\d)(?:st|nd|rd|th)(?:\s+place)?\s*[:=–—-]\s*([^\s,;.]{1,20}(?:\s\w{1,2}\b)?)",
    re.IGNORECASE,
)
_RANKS = re.compile(
    r"\brank|\border(?:ed|ing)?\b|\bbest\b.{0,20}\bworst\b|\bworst\b.{0,20}\bbest\b|\bplac(?:e|ing)"
    r"|\bleaderboard\b",
    re.IGNORECASE,
)
_BEST = re.compile(r"^\W*\(?(?:the\s+)?(?:best|winner|first)\b", re.IGNORECASE)
_SERIES = re.compile(
    r"\b(?:best\s+to\s+worst|worst\s+to\s+best|ranking(?:>|\s+is)?|(?:rank|order)(?:\s+them|\s+is|\s+of\s+merit)?)\s*[:,]?(?:\s+|(?<=>))(?!to\b)"
    r"([^\s,;.<]{1,20}(?:\s\w{1,2}\b)?(?:(?:,?\s+(?:then|and)\s+|,\s*)[^\s,;.<]{1,20}(?:\s\w{1,2}\b)?){1,12})",
    re.IGNORECASE,
)
_WAS_RANKING = re.compile(
    r"^\W*(?:that['’]s|that\s+is|this\s+is)\s+(?:my|the)\s+(?:\w+\s+)?ranking\b", re.I
)
_ASKS = re.compile(r"^\W*(?:please\s+)?(?:rank|order|sort)\s+(?:the|all|these)\b", re.IGNORECASE)
_WORST_FIRST = re.compile(r"\bworst\b.{0,20}\bbest\b|worst_?to_?best", re.IGNORECASE)
_REPLACES = re.compile(
    r"\b(?:final|revised?|corrected|updated?|instead|actually|overall)\b", re.IGNORECASE
)


class _Ranking(NamedTuple):
    """Where a ranking starts and ends, and its first option: a tie is "" or the space's label."""

    start: int
    end: int
    first: str


def read_ranks(text: str, space: Space) -> tuple[str, int] | None:
    """The option of the first rank and where its ranking ends; None without a ranking.

    A shared first rank is a tie. Of several rankings that differ the last counts if it is called
    the final or overall one, and nothing after it says that the judge cannot decide.
    """
    in_json = [*_in_json(text, space)]
    if not in_json and '"' in text and "'" in text:  # a list as Python prints it
        in_json = [*_in_json(text.replace('"', " ").replace("'", '"'), space)]
    found = sorted(
        [
            *in_json,
            *_in_lines(text, space),
            *_in_chains(text, space),
            *_in_series(text, space),
        ]
    )
    if not found:
        return None
    last = found[-1]
    if len({each.first for each in found}) > 1:
        before = text[max(0, last.start - 120) : last.start]
        if not _REPLACES.search(before) or TIE.search(text, last.end):
            return "", last.end
    return last.first, last.end


def calls_as_json(text: str) -> str:
    """The text with calls such as ``submit(winner="B")`` written as JSON objects."""
    if "=" not in text:
        return text
    text = _PARAMETER.sub(r"<\1>\2</\1>", text)
    return _CALL.sub(
        lambda call: json.dumps(
            {
                name: re.findall(r"[^\s,\"'\[\]]+", names) if names else a or b or other
                for name, a, b, names, other in _ARGUMENT.findall(call[1])
            },
            ensure_ascii=False,
        ),
        text,
    )


def _first(places: dict[str, float], space: Space) -> str | None:
    """The option of the least place; None unless all candidates have one."""
    candidates = set(space.options) - {space.tie or ""}
    if len(places) < 2 or places.keys() < candidates:
        return None
    first = [option for option, place in places.items() if place == min(places.values())]
    return first[0] if len(first) == 1 else space.tie or ""


def _in_json(text: str, space: Space) -> Iterator[_Ranking]:
    places: dict[str, float] = {}
    previous = 0
    for start, end, entry in _entries(text):
        if start != previous:  # another document
            places, previous = {}, start
        keys = {_NOT_WORD.sub("", name.casefold()): value for name, value in entry.items()}
        numbered = {m[1]: v for k, v in entry.items() if (m := _NTH_KEY.fullmatch(k.casefold()))}
        if len(numbered) > 1:
            keys["ranking"] = {name: int(place) for place, name in numbered.items()}
        listed = _listed(keys, space)
        if listed:
            places = listed
        rank = next((keys[key] for key in RANK_KEYS if key in keys), None)
        name = next((keys[key] for key in NAME_KEYS if isinstance(keys.get(key), str)), None)
        if isinstance(rank, str) and rank.strip().isdigit():
            rank = int(rank)
        if isinstance(name, str) and isinstance(rank, int | float) and not isinstance(rank, bool):
            option = space.value(name)
            if option is not None and option in space.exact:
                places[option] = float(rank)
                listed = places
        if listed and (first := _first(places, space)) is not None:
            yield _Ranking(start, end, first)


def _listed(keys: dict[str, Any], space: Space) -> dict[str, float]:
    """The places in ``{"ranking": ["B", "A"]}``, ``{"ranks": {"A": 2}}`` or ``{"first": "B"}``."""
    named = {key: value for key, value in keys.items() if key in _PLACES and value}
    if len(named) > 1:
        keys = {"ranking": {name: _PLACES[key] for key, name in named.items()}}
    for key, listed in keys.items():
        if not any(word in key for word in ("rank", "order", "besttoworst", "worsttobest")):
            continue
        if isinstance(listed, dict):
            at = {name: place for name, place in listed.items() if isinstance(place, int | float)}
        elif isinstance(listed, list) and all(isinstance(name, str) for name in listed):
            sign = -1 if _WORST_FIRST.search(key) else 1
            at = {name: sign * place for place, name in enumerate(listed)}
        else:
            continue
        found = {space.value(str(name)): float(place) for name, place in at.items()}
        if None not in found and len(found) > 1:
            return {str(option): place for option, place in found.items()}
    return {}


def _entries(text: str) -> Iterator[tuple[int, int, dict[str, Any]]]:
    """The objects of a text's JSON at any depth that is read, with their document's place."""
    if '\\"' in text:
        text = text.replace('\\"', '"')  # JSON as an argument of a function call
    decoder, place = json.JSONDecoder(), _BRACKET.search(text)
    if '"' not in text and "'" in text:
        text = text.replace("'", '"')  # a list as Python prints it
    for _ in range(_MOST_OBJECTS):
        if place is None:
            return
        try:
            value, end = decoder.raw_decode(text, place.start())
        except (ValueError, RecursionError):
            end = place.end()
        else:
            pending = [(value, 0)]
            while pending:
                inner, depth = pending.pop()
                if isinstance(inner, dict):
                    yield place.start(), end, inner
                if depth < _DEEPEST and isinstance(inner, dict | list):
                    inside = inner.values() if isinstance(inner, dict) else inner
                    pending += [(each, depth + 1) for each in reversed([*inside])]
        place = _BRACKET.search(text, end)


def _in_lines(text: str, space: Space) -> Iterator[_Ranking]:
    """Rankings as lines that count from 1, under a heading or with "1st" in them."""
    at, heading, start, is_ranking = 0, "", 0, False
    places: dict[str, float] = {}
    for line in [*text.splitlines(keepends=True), "\n."]:
        match = _LINE.match(line) if len(line) < 2000 else None
        option = space.value(match["name"]) if match else None
        number = _number(match["place"]) if match else 0
        if match and option in space.exact and number == len(places) + 1 and option not in places:
            if not places:
                start = at
                is_ranking = bool(_RANKS.search(heading)) and not _ASKS.search(heading)
            is_ranking = is_ranking or bool(match["nth"] or match["word"] or match["rank"])
            is_ranking = is_ranking or (
                number == 1 and bool(_BEST.search(line[match.end("name") :]))
            )
            sign = -1 if _WORST_FIRST.search(heading) else 1
            places[str(option)] = float(sign * number)
        elif line.strip(" \t\r\n|:-"):
            is_ranking = is_ranking or bool(_WAS_RANKING.match(line))
            if is_ranking and (first := _first(places, space)) is not None:
                yield _Ranking(start, at, first)
            places, is_ranking, heading = {}, False, line[:400]
        at += len(line)


def _in_series(text: str, space: Space) -> Iterator[_Ranking]:
    """Rankings in a sentence: "From best to worst: B, A, C", "1st: B, 2nd: A"."""
    nth = [(match, space.value(match[2])) for match in _NTH.finditer(text)]
    if [int(match[1]) for match, _ in nth] == [*range(1, len(nth) + 1)]:
        places = {str(option): float(n) for n, (_, option) in enumerate(nth) if option}
        if (first := _first(places, space)) is not None:
            yield _Ranking(nth[0][0].start(), nth[-1][0].end(), first)
    for match in _SERIES.finditer(text):
        options = [space.value(name) for name in re.split(r",?\s+(?:then|and)\s+|,\s*", match[1])]
        sign = -1 if _WORST_FIRST.search(match.group()) else 1
        if None not in options and len(set(options)) == len(options):
            places = {str(option): float(sign * at) for at, option in enumerate(options)}
            if (first := _first(places, space)) is not None:
                yield _Ranking(match.start(), match.end(), first)


def _number(word: str) -> int:
    return int(word) if word.isdigit() else _PLACES[word.casefold()]


def _in_chains(text: str, space: Space) -> Iterator[_Ranking]:
    """Chains of at least three candidates: ``C > A > B``, ``A = B = C``."""
    if len(space.options) < 3:
        return
    for match in _CHAIN.finditer(text):
        parts = re.split(r"\s*([>≻=]+)\s*", match.group())
        options = [space.value(part) for part in parts[::2]]
        # Words before the first candidate belong to the sentence: "rank them B > C > A".
        options[0] = options[0] or space.value(parts[0].rpartition(" ")[2])
        if None in options or len(set(options)) < len(options):
            continue
        places, place = {}, 0.0
        for option, sign in zip(options, ["", *parts[1::2]], strict=True):
            place += 0 if "=" in sign and ">" not in sign else 1
            places[str(option)] = place
        if len(places) > 2 and (first := _first(places, space)) is not None:
            yield _Ranking(match.start(), match.end(), first)
