"""What sentences say about a choice between candidates: "Output (a) is better", "I would pick B".

Sentences come tokenised: X and Y below are private-use characters for options (`space`). A sentence
that asks, supposes, or reports what somebody else thinks says nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from judgesense.answers import vocabulary as words
from judgesense.answers.space import Space
from judgesense.answers.statements import WRONG_SOON, Statement, conclusion, settled
from judgesense.answers.text import Sentence
from judgesense.answers.vocabulary import one_of, pattern

SHORT = 80
"""A text of at most this many characters may name a candidate anywhere."""

_ANNOUNCES = pattern(
    r"\b(?:need|going|have|ought)\s+to\s+(?:\w+\s+)?(?:evaluate|compare|assess|judge|decide|consider"
    r"|look|determine|examine|check|weigh)\b"
)
# "Response A is terrible" speaks about A; "Definitely Response A" answers.
_SUBJECT = pattern(
    rf"{words.Y}['’]?s?\s+"
    "(?!because|since|as|for|please|here|definitely|overall|of\\s+course)[a-z]"
)
_DENIES = pattern(
    r"\b"
    + one_of(
        "not | never | neither | nor | worse | worst | inferior | weaker | less | fewer | no",
        "reject(?:ed)? | incorrect | wrong | bad | poor(?:er)? | irrelevant | fails? | lacks?",
        "unhelpful | harmful | inappropriate | avoid | against | than | but | however | loses?",
        "was inclined | was tempted | lost | loser | if | unless | whether",
    )
    + r"\b|n['’]t\b"
)

_DENY_THEMSELVES = (words.NOT_BUT, words.PREFERRED, words.AND_IS)
"""Patterns in which a "not" before the choice denies something else."""


def read_choice(sentences: Sequence[Sentence], space: Space) -> str | None:
    """The candidate that the sentences choose; "" where they contradict themselves or tie.

    Returns None if no sentence states a choice.
    """
    tokenised = [space.tokenised(sentence.text) for sentence in sentences]
    strong, weak = stated_choices(tokenised, space)
    lead, last = _lead(tokenised, sentences), _last_line(tokenised, sentences)
    verdict = conclusion(
        lead and space.token_option(lead),
        last and space.token_option(last),
        settled(strong, sentences, 1),
    )
    if verdict is not None:
        return verdict
    # "Passage B is more relevant" concludes; the same in the middle of a review does not.
    options = {s.option for s in weak}
    if len(sentences) > 2 and not any(s.place == len(sentences) - 1 for s in weak):
        options = set()
    if len(options) == 1:
        return options.pop()
    return None if options else _only_mention(tokenised, space)


def stated_choices(
    tokenised: Sequence[str], space: Space
) -> tuple[list[Statement], list[Statement]]:
    """The choices that are stated, and those that a sentence only leans to."""
    strong: list[Statement] = []
    weak: list[Statement] = []
    # "Accuracy: B is ahead" is about one criterion of several.
    criteria = [bool(words.CRITERION.match(text)) for text in tokenised]
    many = len({*space.options} - {space.tie}) > 2
    for place, text in enumerate(tokenised):
        if criteria[place] and sum(criteria) > 1:
            continue
        for token, decisive, is_weak in dict.fromkeys(_statements(text, many=many)):
            option = space.token_option(token) if token else space.tie or ""
            overall = decisive and bool(words.OVERALL.search(text))
            statement = Statement(place, option, decisive, tie=token == "", overall=overall)
            (weak if is_weak else strong).append(statement)
        if len(space.options) == 2 and (rejected := words.REJECTED.search(text)):
            token = rejected[rejected.lastindex or 1]
            if not (words.SUPPOSED.search(text) or words.QUESTION.search(text)):
                other = next(o for o in space.options if o != space.token_option(token))
                strong.append(Statement(place, other, decisive=True))
    return strong, weak


def _lead(tokenised: Sequence[str], sentences: Sequence[Sentence]) -> str | None:
    """The option that the text begins with, as an answer and not as a sentence's subject."""
    if not tokenised or (match := words.LEAD.match(tokenised[0])) is None:
        return None
    token, rest = match[1], tokenised[0][match.end() :].lstrip()
    if WRONG_SOON.match(rest) or words.REJECTED.search(tokenised[0]):
        return None
    if rest == "" and any(
        alone[1] != token for alone in map(words.ALONE.match, tokenised[1:-1]) if alone
    ):
        return None  # headings over a review of each
    if rest.startswith(":") and re.search(rf"{words.Y}\s*:", rest):
        return None  # "A: 7/10, B: 8/10"
    if rest.startswith(":") or (rest == "" and sentences[0].text.rstrip().endswith(":")):
        # "Output (a): ..." may be the heading of one review of two.
        other = re.compile(rf"^{words.BLANK}(?!{token}){words.Y}\s*:")
        if any(other.match(text) for text in tokenised[1:]) or not rest[1:].strip():
            return None
    return token


def _last_line(tokenised: Sequence[str], sentences: Sequence[Sentence]) -> str | None:
    if len(tokenised) < 2 or not sentences[-1].begins_line:
        return None
    match = words.ALONE.match(tokenised[-1])
    before = words.ALONE.match(tokenised[-2])
    if match is None or (before is not None and before[1] != match[1]):
        return None
    return match[1]


def _statements(text: str, *, many: bool) -> Iterator[tuple[str, bool, bool]]:
    """The candidates that one sentence chooses ("" for a tie), and whether decisively or weakly.

    Among ``many`` candidates, one that is better than another is not chosen.
    """
    if words.QUESTION.search(text):
        return
    final = bool(words.CONCLUDES.search(text))
    if (reported := words.REPORTED.search(text)) or (reported := words.ACCORDING.search(text)):
        own = bool(words.OWN.search(text, 0, reported.start()))
        if not (own or final) or words.ACCORDING.search(text):
            return
        # "I agree with what Assistant (a) says": only what comes before the report is the judge's.
        text = text[: reported.start()] if own else ""
    if words.SAYS_AFTER.search(text) or (words.EACH_IN.search(text) and not final):
        return
    is_tie = bool(words.TIE.search(text)) and not words.NO_TIE.search(text)
    if (is_tie or words.ALIKE.search(text)) and (named := words.ALIKE_SO.search(text)):
        yield named[1], True, False
        return
    if is_tie:
        yield "", final, False
        return
    supposed = words.SUPPOSED.search(text)
    spans = []
    for start, token, qualified, own in _chosen(text, supposed):
        if many and words.THAN_ANOTHER.match(text, start):
            continue
        final = final or own
        spans.append(
            (start, token, qualified and not (own or words.CONCLUDES.search(text, 0, start)))
        )
    if not supposed and not many:
        spans += [
            (match.start(), match[match.lastindex or 1], False)
            for pattern in words.BY_DENIAL
            for match in pattern.finditer(text)
        ]
        spans = spans or [
            (match.start(), match[1], True)
            for match in words.IS_MORE.finditer(text)
            if not (_is_negated(text, match) or _in_both(text, match.start(1)))
            and not words.CONCEDES.search(text, 0, match.start())
        ]
    chosen = {token for _, token, is_weak in spans if not is_weak}
    if words.ALIKE.search(text) and len(chosen) != 1:
        yield "", final, False
        return
    for _, token, is_weak in sorted(spans):
        yield token, final and not is_weak, is_weak


def _chosen(text: str, supposed: re.Match[str] | None) -> Iterator[tuple[int, str, bool, bool]]:
    """Where and what a sentence chooses, whether it qualifies that, and whether it concludes it."""
    for ways in words.CHOSEN:
        for match in ways.finditer(text):
            start = match.start()
            if ways is words.PICKED and words.OF_OTHERS.search(text[: match.start(1)]):
                continue
            if ways is words.LABELLED and words.GIVEN.search(text, 0, start):
                continue
            # "If so, I would choose B": the statement may follow the clause that supposes.
            follows = supposed and supposed.end() <= start and "," in text[supposed.end() : start]
            if supposed and supposed.start() < match.end() and not follows:
                continue
            if (ways not in _DENY_THEMSELVES and _is_negated(text, match)) or _in_both(
                text, match.start(match.lastindex or 1)
            ):
                continue
            after = text[match.end() : match.end() + 80]
            if not words.PROVIDED.match(after):
                qualified = bool(words.QUALIFIED.match(after))
                own = (
                    ways in (words.PICKED, words.LABELLED, words.PREFERRED, words.MAKES)
                    and not qualified
                    and bool(words.OWN.search(text))
                )
                yield start, match[match.lastindex or 1], qualified, own


def _is_negated(text: str, match: re.Match[str]) -> bool:
    """Whether the statement is denied, inside itself or shortly before it in the same clause."""
    inside = text[match.start() : match.end()]
    if words.NEGATION.search(re.sub(rf"than\s+{words.Y}$", "", inside)):
        return True
    clause = re.split(
        r"[,;:.]|\bbut\b|\band\b|\bwhile\b|\bso\b|\bbecause\b",
        text[max(0, match.start() - 60) : match.start()],
    )[-1]
    if words.NEGATION.search(clause):
        return True
    return bool(re.match(r"\s*(?:is\s+)?(?:not\b|n['’]t)", text[match.end() : match.end() + 8]))


def _in_both(text: str, place: int) -> bool:
    """Whether the candidate stands in "X and Y", which chooses neither."""
    return any(both.start() <= place < both.end() for both in words.BOTH.finditer(text))


def _only_mention(tokenised: Sequence[str], space: Space) -> str | None:
    """The one candidate that a short text names, if it denies nothing and asks nothing."""
    text = " ".join(tokenised)
    tokens = set(words.MENTION.findall(text))
    if not space.pairwise or len(tokens) != 1 or len(text) > SHORT:
        return None
    others = (_DENIES, _SUBJECT, _ANNOUNCES, words.REPORTED, words.OF_OTHERS)
    if "?" in text or any(each.search(text) for each in others):
        return None
    return space.token_option(tokens.pop())
