"""`parse`: the order in which a text is read."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from judgesense.run_folder.responses import without_thinking
from judgesense.tasks import REFUSED, UNCLEAR
from local_judges.parsing.choices import read_choice
from local_judges.parsing.labels import read_label
from local_judges.parsing.phrases import one_of, pattern
from local_judges.parsing.scores import read_score
from local_judges.parsing.space import Space, space_of
from local_judges.parsing.structured import read_structured
from local_judges.parsing.text import Sentence, clean, sentences, without_markup

_WEIGHS = one_of(
    "determine | decide | tell | say | judge | verify | confirm | conclude | choose | assess",
    "evaluate | see | find",
)
_REFUSAL = pattern(
    r"\bi\s+(?:can(?:no|['’])t|am\s+(?:unable|not\s+able)\s+to|won['’]t|will\s+not|must\s+decline"
    rf"|decline)\b(?!\s+(?:\w+ly\s+)?{_WEIGHS}\b)"
    r"|\bi['’]m\s+(?:sorry|unable|not\s+able)\b|\bunable\s+to\s+(?:assist|comply|help)\b"
    r"|\bas\s+an\s+ai\b"
)
_PLAIN_REFUSAL = pattern(r"\bas\s+an\s+ai\b|\bunable\s+to\s+(?:assist|comply|help)\b")
_DENIAL = pattern(
    r"\b"
    + one_of(
        "not | never | neither | nor | worse | worst | inferior | weaker | less | fewer | no",
        "reject(?:ed)? | incorrect | wrong | bad | poor(?:er)? | irrelevant | fails? | lacks?",
        "unhelpful | harmful | inappropriate | avoid | against | than | but | however | loses?",
        "lost | loser | if | unless | whether",
    )
    + r"\b|n['’]t\b"
)
_MENTION = re.compile("[\ue000-\uf8ff]")
# "Response A is terrible" speaks about A; "Definitely Response A" answers.
_SUBJECT = pattern(
    "[\ue000-\uf8ff]['’]?\\s+"
    "(?!because|since|as|for|please|here|definitely|overall|of\\s+course)[a-z]"
)
SHORT = 80
"""A text of at most this many characters may name a candidate anywhere."""


def parse(
    text: str,
    options: Sequence[str],
    aliases: Mapping[str, Sequence[str]] | None = None,
) -> str:
    """The option that ``text`` concludes, or UNCLEAR, or REFUSED.

    A wrong verdict is worse than none: a text that contradicts itself, ties, or names an option
    only to deny it is UNCLEAR. What a reasoning model thought before its answer is left out;
    thinking that was cut off is UNCLEAR.

    Args:
        text: what the judge generated, of any length; time is linear in it.
        options: the raw answers of the prompt.
        aliases: further texts for an option, in any language: ``{"A": ["Option eins"]}``.
            Case and width make no difference. In scripts with spaces an alias is a whole word.

    Returns:
        One of ``options``; UNCLEAR; or REFUSED if the text declines and names no option.

    Raises:
        JudgeSenseError: for an alias of no option or of two.

    >>> parse("Therefore, Output (a) is better.", ("A", "B"))
    'A'
    >>> parse("Response A is worse.", ("A", "B"))
    'UNCLEAR'
    >>> parse('```json\\n{"reasoning": "two flaws", "score": 4}\\n```', ("1", "2", "3", "4", "5"))
    '4'
    """
    options = tuple(options)
    if text in options:
        return text
    space = space_of(options, aliases)
    text = clean(without_thinking(text))
    if not text:
        return UNCLEAR
    verdict = space.value(text) if len(text) <= SHORT else None
    if verdict is None:
        verdict = read_structured(text, space)
    if verdict is None:
        found = list(sentences(without_markup(text)))
        verdict = _said(found, space, len(text))
    if verdict:
        return verdict
    # "" says that the text contradicts itself or ties: only a plain refusal is one then.
    declined = _REFUSAL if verdict is None else _PLAIN_REFUSAL
    return REFUSED if declined.search(text) else UNCLEAR


def _said(found: Sequence[Sentence], space: Space, length: int) -> str | None:
    if space.numeric:
        verdict = read_score(found, space)
        if verdict is not None or not space.pairwise:
            return verdict
    if space.pairwise or space.short:
        verdict = read_choice(found, space)
        if verdict is None and length <= SHORT:
            verdict = _only_mention(found, space)
        if verdict is not None or space.pairwise:
            return verdict
    return read_label(found, space, length)


def _only_mention(found: Sequence[Sentence], space: Space) -> str | None:
    """The one candidate that a short text names, if it denies nothing and asks nothing."""
    text = " ".join(space.tokenised(sentence.text) for sentence in found)
    tokens = set(_MENTION.findall(text))
    if len(tokens) != 1 or "?" in text or _DENIAL.search(text) or _SUBJECT.search(text):
        return None
    return space.of_token(tokens.pop())
