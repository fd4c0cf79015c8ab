"""What sentences say about a choice between candidates: "Output (a) is better", "I would pick B".

Sentences come tokenised: X and Y below are private-use characters for options (`space`). A sentence
that asks, supposes, or reports what somebody else thinks says nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from local_judges.parsing.phrases import (
    ACCORDING,
    ALONE,
    BLANK,
    BOTH,
    BY_DENIAL,
    CHOSEN,
    CONCLUDES,
    IS_MORE,
    LABELLED,
    LEAD,
    NEGATION,
    NOT_BUT,
    OWN,
    PICKED,
    PROVIDED,
    QUALIFIED,
    QUESTION,
    REPORTED,
    SUPPOSED,
    TIE,
    Y,
)
from local_judges.parsing.space import Space
from local_judges.parsing.text import Sentence


@dataclass(frozen=True, slots=True)
class Statement:
    """A sentence's choice: ``token`` is None for a tie; ``final`` if the sentence concludes."""

    place: int
    token: str | None
    final: bool
    weak: bool


def read_choice(found: Sequence[Sentence], space: Space) -> str | None:
    """The candidate that the sentences choose; "" where they contradict themselves or tie.

    Returns None if no sentence states a choice.
    """
    tokenised = [space.tokenised(sentence.text) for sentence in found]
    lead = _lead(tokenised, found, space)
    last = _last_line(tokenised, found)
    statements = [s for place, text in enumerate(tokenised) for s in _statements(text, place)]
    if last is not None:
        statements.append(Statement(len(tokenised), last, True, False))
    plain = [s for s in statements if not s.weak and s.token is not None]
    ties = [s for s in statements if s.token is None]
    finals = [s for s in statements if s.final and not s.weak]
    if lead is not None:
        against = [s for s in finals if s.place > 0 and s.token != lead]
        return _label("" if against else lead, space)
    if finals:
        final = finals[-1]
        first = next((s for s in plain if s.place == 0 and not s.final), None)
        after = [s for s in plain if s.place > final.place and s.token != final.token]
        if after or (first is not None and first.token != final.token):
            return ""
        return _label(final.token or "", space)
    said = {s.token for s in plain}
    if ties and (not plain or ties[-1].place > plain[-1].place):
        return _label("", space)
    if len(said) == 1:
        return _label(said.pop() or "", space)
    if said:
        return ""
    # "Passage B is more relevant" concludes; the same in the middle of a review does not.
    weak = {s.token for s in statements if s.weak}
    if len(found) > 2 and not any(s.weak and s.place == len(found) - 1 for s in statements):
        return None
    return _label(weak.pop() or "", space) if len(weak) == 1 else None


def _label(token: str, space: Space) -> str:
    return space.of_token(token) if token else (space.tie or "")


def _lead(tokenised: Sequence[str], found: Sequence[Sentence], space: Space) -> str | None:
    """The option that the text begins with, as an answer and not as a sentence's subject."""
    if not tokenised or (match := LEAD.match(tokenised[0])) is None:
        return None
    token, rest = match.group(1), tokenised[0][match.end() :].lstrip()
    if rest.startswith(":") or (rest == "" and found[0].text.rstrip().endswith(":")):
        # "Output (a): ..." may be the heading of one review of two.
        other = re.compile(rf"^{BLANK}(?!{token}){Y}\s*:")
        if any(other.match(text) for text in tokenised[1:]) or not rest[1:].strip():
            return None
    return token


def _last_line(tokenised: Sequence[str], found: Sequence[Sentence]) -> str | None:
    if len(tokenised) < 2 or not found[-1].begins_line:
        return None
    match = ALONE.match(tokenised[-1])
    before = ALONE.match(tokenised[-2])
    if match is None or (before is not None and before.group(1) != match.group(1)):
        return None
    return match.group(1)


def _statements(text: str, place: int) -> Iterator[Statement]:
    """The choices that one tokenised sentence states, in order."""
    if QUESTION.search(text):
        return
    final = bool(CONCLUDES.search(text))
    if (reported := REPORTED.search(text)) or (reported := ACCORDING.search(text)):
        own = OWN.search(text, 0, reported.start()) or final
        if not own or ACCORDING.search(text):
            return
        # "I agree with what Assistant (a) says": only what comes before the report is the judge's.
        text = text[: reported.start()] if OWN.search(text, 0, reported.start()) else ""
    if TIE.search(text) and not REPORTED.search(text):
        yield Statement(place, None, final, weak=False)
        return
    spans = []
    for start, token, weak, own in _chosen(text):
        spans.append((start, token, weak and not final))
        final = final or own
    supposed = SUPPOSED.search(text)
    for pattern in BY_DENIAL:
        spans += [(m.start(), m.group(1), False) for m in pattern.finditer(text) if not supposed]
    if not spans:
        spans = [
            (m.start(), m.group(1), True)
            for m in IS_MORE.finditer(text)
            if not (supposed or _negated(text, m) or _in_both(text, m.start(1)))
        ]
    seen = set()
    for _, token, weak in sorted(spans):
        if (token, weak) not in seen:
            seen.add((token, weak))
            yield Statement(place, token, final and not weak, weak)


def _chosen(text: str) -> Iterator[tuple[int, str, bool, bool]]:
    """Where and what a sentence chooses, whether it qualifies that, and whether it concludes it."""
    supposed = SUPPOSED.search(text)
    for pattern in CHOSEN:
        for match in pattern.finditer(text):
            start, token = match.start(), match.group(1)
            if (
                supposed
                and supposed.start() < match.end()
                and not _after_comma(text, supposed, start)
            ):
                continue
            if (pattern is not NOT_BUT and _negated(text, match)) or _in_both(text, match.start(1)):
                continue
            after = text[match.end() : match.end() + 80]
            if not PROVIDED.match(after):
                weak = bool(QUALIFIED.match(after))
                own = pattern in (PICKED, LABELLED) and not weak and bool(OWN.search(text))
                yield start, token, weak, own


def _after_comma(text: str, supposed: re.Match[str], start: int) -> bool:
    """Whether the statement follows the clause that supposes: "if so, I would choose B"."""
    return supposed.end() <= start and "," in text[supposed.end() : start]


def _negated(text: str, match: re.Match[str]) -> bool:
    """Whether the statement is denied, inside itself or shortly before it in the same clause."""
    inside = text[match.start() : match.end()]
    if NEGATION.search(re.sub(rf"than\s+{Y}$", "", inside)):
        return True
    clause = re.split(
        r"[,;:.]|\bbut\b|\band\b|\bwhile\b|\bso\b|\bbecause\b",
        text[max(0, match.start() - 60) : match.start()],
    )[-1]
    if NEGATION.search(clause):
        return True
    return bool(re.match(r"\s*(?:is\s+)?(?:not\b|n['’]t)", text[match.end() : match.end() + 8]))


def _in_both(text: str, place: int) -> bool:
    """Whether the candidate stands in "X and Y", which chooses neither."""
    return any(both.start() <= place < both.end() for both in BOTH.finditer(text))
