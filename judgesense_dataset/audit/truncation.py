"""Find cut texts: cut in the prompt, in the column of judged texts, or at the source."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

_ENDED = re.compile(r"[.!?…:;\"'”’)\]}`*|>]\s*\Z")
_MARKER = re.compile(r"[\[(<](?:truncated|cut|snip|continued)[\])>]\s*\Z", re.IGNORECASE)
_OPEN_END = re.compile(r"[,\-–(]\s*\Z")
_FUNCTION_WORD = re.compile(
    r"(?:the|a|an|of|and|or|to|in|on|at|for|with|by|from|as|is|are|was|were|be|been|that|which"
    r"|who|whose|this|these|those|its|his|her|their|our|your|my|but|if|than|because|while|into"
    r"|about|around|between|through|under|very|can|could|should|may|might|must|has|have|had|do"
    r"|does|did)"
)
_MIN_SHOWN = 8
"""With fewer characters in common, a prompt shows another text and not a cut one."""

_MIN_SAME_LENGTH = 3
_MIN_TEXTS = 10
_USUAL = 0.95


@dataclass(frozen=True, slots=True)
class Cut:
    """A cut text in a pair, and the evidence; ``certain`` if the evidence is proof."""

    pair_id: str
    how: str
    certain: bool


class Shown(NamedTuple):
    """One judged text (or option) of a row, with the prompts that should show it."""

    pair_id: str
    place: int
    text: str
    prompts: tuple[str, ...]
    by_system: bool


def cuts(shown: Iterable[Shown]) -> tuple[list[Cut], list[str]]:
    """Find the cut texts, and the ids of pairs whose prompts do not show the judged text.

    Proof of a cut is a prompt that shows only the beginning of the judged text, a prompt that
    continues after it where others of that layout do not, or texts that end at one common length.
    A text that ends in the middle of a sentence, where nearly all others do not, is proof unless a
    system wrote it: its output may end like that, and is then what is judged.
    """
    shown = list(shown)
    found: dict[str, Cut] = {}
    absent: list[str] = []
    tails = _tails(shown)
    present = 0
    for piece in shown:
        seen_here = True
        for prompt in piece.prompts:
            tail = _tail(prompt, piece.text)
            if tail is not None:
                usual = tails[piece.place]
                if tail and tail not in usual:
                    how = f"the prompt continues after the judged text ({_end(piece.text)!r})"
                    found.setdefault(piece.pair_id, Cut(piece.pair_id, how, True))
                continue
            length = _prefix_length(piece.text, prompt)
            if length >= max(_MIN_SHOWN, len(piece.text) // 10):
                how = (
                    f"a prompt shows only {length} of the {len(piece.text)} characters "
                    "of the judged text"
                )
                found.setdefault(piece.pair_id, Cut(piece.pair_id, how, True))
            else:
                seen_here = False
        present += seen_here
        if not seen_here:
            absent.append(piece.pair_id)
    # Where most prompts do not show the text, the column holds something else.
    if present < len(shown) / 2:
        absent = []
    for cut in _ends(shown, found):
        found.setdefault(cut.pair_id, cut)
    return list(found.values()), list(dict.fromkeys(absent))


@lru_cache(maxsize=4096)
def _tail(prompt: str, text: str) -> str | None:
    """The rest of the line after the text, if it reads like running text; None without the text."""
    if (at := prompt.rfind(text)) < 0:
        return None
    rest = prompt[at + len(text) :].split("\n", 1)[0]
    return rest if re.match(r"[ ,;'’-]*\w", rest) else ""


def _tails(shown: list[Shown]) -> dict[int, Collection[str]]:
    """By place, the text that the layout itself puts after: the tails of two texts or more."""
    texts: dict[int, dict[str, set[str]]] = {}
    for piece in shown:
        for prompt in piece.prompts:
            if (tail := _tail(prompt, piece.text)) is not None:
                texts.setdefault(piece.place, {}).setdefault(tail, set()).add(piece.text)
    usual: dict[int, Collection[str]] = {}
    for place, by_tail in texts.items():
        clean = len(by_tail.get("", ()))
        others = {tail for tail in by_tail if tail}
        shared = {tail for tail in others if len(by_tail[tail]) > 1}
        # A layout that puts other fields behind the text has a new tail for every item.
        usual[place] = others if clean < len(others) else shared
    return {place: usual.get(place, ()) for place in {piece.place for piece in shown}}


def _prefix_length(text: str, prompt: str) -> int:
    """The length of the longest beginning of the text that occurs in the prompt."""
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        if text[:middle] in prompt:
            low = middle
        else:
            high = middle - 1
    return low


def _ends(shown: list[Shown], found: Mapping[str, Cut]) -> list[Cut]:
    """Texts whose end shows that they were cut."""
    first: dict[str, Shown] = {}
    for piece in shown:
        if piece.pair_id not in found:
            first.setdefault(piece.text, piece)
    cut = [
        Cut(piece.pair_id, f"ends with a mark of truncation ({_end(text)!r})", True)
        for text, piece in first.items()
        if _MARKER.search(text)
    ]
    if len(first) < 5:
        return cut
    open_ended = {text for text in first if not _ENDED.search(text)}
    lengths = Counter(len(text) for text in open_ended)
    longest = max(map(len, first))
    if lengths[longest] >= _MIN_SAME_LENGTH and len(first) >= _MIN_TEXTS:
        how = f"{lengths[longest]} texts end at exactly {longest} characters"
        cut += [Cut(first[text].pair_id, how, True) for text in first if len(text) == longest]
    usual = 1 - len(open_ended) / len(first) >= min(_USUAL, 1 - 1 / len(first))
    if usual:
        vocabulary = _vocabulary(text for text in first if text not in open_ended)
        in_order = sorted(first)
        begins_another = {text for text, after in pairwise(in_order) if after.startswith(text)}
        for text in first:
            if text in open_ended and (text in begins_another or _broken(text, vocabulary)):
                piece = first[text]
                how = f"ends in the middle of a sentence ({_end(text)!r})"
                cut.append(Cut(piece.pair_id, how, not piece.by_system))
    return cut


def _broken(text: str, vocabulary: Collection[str]) -> bool:
    """Whether a text without final punctuation stops inside a phrase or a word."""
    found = re.findall(r"[^\W\d_]+", text.lower())
    if _OPEN_END.search(text) or not found:
        return bool(found)
    last = found[-1]
    fragment = last not in vocabulary and any(word.startswith(last) for word in vocabulary)
    return bool(_FUNCTION_WORD.fullmatch(last)) or fragment


def _vocabulary(texts: Iterable[str]) -> set[str]:
    return {word for text in texts for word in re.findall(r"[^\W\d_]+", text.lower())}


def _end(text: str) -> str:
    return "…" + text[-25:] if len(text) > 25 else text
