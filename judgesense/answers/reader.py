"""`parse`: the order in which a text is read."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from judgesense.answers.choices import read_choice, stated_choices
from judgesense.answers.ending import Ending, after_second_thought, stated_at_end
from judgesense.answers.labels import SHORT as MOST_TO_MENTION
from judgesense.answers.labels import cued_labels, read_label
from judgesense.answers.markers import read_marked
from judgesense.answers.quotations import own_part, without_quotations
from judgesense.answers.ranks import calls_as_json
from judgesense.answers.scores import read_score, stated_scores, with_numbers
from judgesense.answers.space import NOUN, Space, space_of
from judgesense.answers.text import (
    Sentence,
    clean,
    sentences,
    without_json,
    without_markup,
    without_thinking,
)
from judgesense.answers.vocabulary import one_of, pattern
from judgesense.tasks import REFUSED, UNCLEAR

_WEIGHS = one_of(
    "determine | decide | tell | say | judge | verify | confirm | conclude | choose | assess",
    "evaluate | see | find | recommend | prefer | pick | agree",
)
_REFUSAL = pattern(
    r"\bi\s+(?:can(?:no|['’])t|am\s+(?:unable|not\s+able)\s+to|won['’]t|will\s+not|must\s+decline"
    rf"|decline)\b(?!\s+(?:\w+ly\s+)?{_WEIGHS}\b)"
    r"|\bi['’]m\s+(?:sorry|unable|not\s+able)\b|\bunable\s+to\s+(?:assist|comply|help)\b"
    r"|\bas\s+an\s+ai\b"
)
_PLAIN_REFUSAL = pattern(r"\bas\s+an\s+ai\b|\bunable\s+to\s+(?:assist|comply|help)\b")
_CANDIDATE = re.compile(
    r"\b(?:assistant|response|model|candidate|output|answer|reply|system|summary|number|option|translation)\s*#?([1-9])\b",
    re.IGNORECASE,
)
_JUDGED_NUMBER = pattern(
    rf"(\b{NOUN}\s*#?\d(?:['’]s\s+|\b[^.;\n]{{0,40}}\b(?:right|correct|wrong|incorrect|says|gives|states|claims|finds|that|because|since|as)"
    r"\b[^.;\n\d]{0,20}?))\b(?:the\s+)?(?:\w+\s+)?(?:answer|result|sum|total|value)\s+(?:is|equals)\s+\d+"
)
"""What a candidate answers, which is no choice: "Response 1 is right: the answer is 2"."""

_LAST_ROW = re.compile(
    r"^[ \t]*\|[ *]*((?:(?:weighted|grand|final|the) )*(?:total|overall|average|mean|mark|score"
    r"|verdict|winner|result|rating|grade|gesamt\w*|insgesamt)\b[^|\n]{0,30}?)"
    r"[ *]*\|(?:[ *-]*\|)*[ *]*([^|\n]{1,24}?)[ *]*(?:\|[ *-]*)*$(?!\n[ \t]*\|)",
    re.IGNORECASE | re.MULTILINE,
)
_CELL_NUMBER = re.compile(r"\|[\s*]*(\d{1,3})[\s*]*(?=\||$)", re.MULTILINE)
_RANKING = re.compile(r"[\"']rank(?:ing)?[\"']\s*:")
_SIGN = re.compile(r"(?<![\w.)\]/])[-−](?=\d)")
_PLUS = re.compile(r"(?<![\w.)\]/+])\+(?=\d)")
_FIRST_WORD = re.compile(r"[,.;:!、。，：]")
_LAST = 300
_VERDICT = (
    r"(?:assessment|verdict|decision|rating|score|grade|mark|number|judge?ment|choice|preference)"
)
_CANNOT = r"(?:can(?:not|['’]t)|could(?:\s+not|n['’]t)|unable\s+to)"
_ABSTAINS = pattern(
    rf"(?:(?:(?:overall|final|my)\s+|[.!?\n]\s*(?:the|an?)\s+(?:\w+\s+)?){_VERDICT}\s+(?:\w+\s+){{0,2}}?(?:(?:will|would|has|have|must|needs?)\s+(?:to\s+)?wait|pending|on\s+hold"
    r"|to\s+follow|deferred|postponed|outstanding|(?:remains|is|stays)\s+open)\b"
    rf"|\b(?:I|we)(?:['’]\w+|\s+\w+){{0,4}}\s(?:defer|postpon|withhold|reserv|hold\s+(?:off|back)|holding\s+(?:off|back))\w*\s+(?:on\s+)?(?:(?:my|the|an|any|a)\s+)?(?:\w+\s+)?{_VERDICT}"
    rf"|\bno\s+(?:\w+\s+)?{_VERDICT}\s+(?:yet|so\s+far|for\s+now|of\s+my\s+own|(?:for|on)\s+this)\b"
    rf"|\b(?:I|we)\s+(?:have\s+no|do(?:\s+not|n['’]t)\s+(?:yet\s+)?have\s+an?y?)\s+(?:(?:final|own|overall)\s+)?{_VERDICT}\b"
    rf"|\b(?:I|we)\s+(?:have\s+(?:not\s+)?yet|have(?:\s+not|n['’]t))\s+(?:yet\s+)?(?:to\s+)?(?:reach|form|ma[dk]e|come)\w*\s+(?:\w+\s+){{0,2}}?{_VERDICT}\b"
    r"|\bnot\s+(?:yet\s+)?in\s+a\s+position\s+to\b|\bso\s+I\s+can(?:not|['’]t)\s+(?:give|offer|reach|make)\s+(?:one|any)\b"
    r"|\bI(?:\s+am|['’]m)\s+(?:therefore\s+)?abstaining\b|\bI(?:\s+will|['’]ll|\s+would\s+rather)\s+(?:pass|skip|sit)\s+(?:on\s+)?(?:it|this|that)\b"
    r"|\bleav(?:e|ing)\s+(?:it|this|(?:the|my)\s+(?:\w+\s+)?(?:grade|verdict|decision|score|choice))"
    rf"\s+open|\b{_CANNOT}\s+(?:\w+\s+)?(?:settle\s+on|make\s+up\s+my\s+mind)|\bI['’]m\s+(?:unsure|undecided|torn|not\s+(?:\w+\s+){{0,2}}?sure)\b"
    rf"|\bno\s+{_VERDICT}\s+(?:can\s+be\s+(?:given|made|reached)|is\s+possible)"
    rf"|\b{_CANNOT}\s+(?:make|give|reach|offer|put|assign|come\s+to|commit\s+to)\s+(?:\w+\s+){{1,3}}?{_VERDICT}"
    r"|\b(?:won['’]t|will\s+not)\s+(?:pick|choose)\s+(?:one|either|between)|\bI\s+abstain\b"
    r"|\bje\s+ne\s+(?:tranche|choisis|peux|saurais|me\s+prononce)\s*(?:pas|trancher|choisir)"
    r"|\b(?:lege|kann|m[öo]chte)\s+(?:ich\s+)?mich\s+(?:\w+\s+)?nicht\b|\bich\s+(?:lege|kann)\s+mich\s+nicht\b"
    r"|\bkann\s+(?:ich\s+)?(?:\w+\s+)?nicht\s+(?:entscheiden|beurteilen|sagen)|\bno\s+(?:puedo|me)\s+(?:decid|eleg|juzg|pronunci)\w+"
    r"|\b(?:non\s+posso|non\s+riesco\s+a|n[ãa]o\s+(?:posso|consigo))\s+(?:decid|sceglie|giudic|escolh|julg)\w+"
    r"|не\s+(?:могу|берусь)\s+(?:решить|выбрать|судить|сказать)|(?:判断|決め|選択|决定|选择|選び)(?:する)?(?:こと)?(?:は|が)?(?:でき|られ)(?:ない|ません)"
    r"|(?:无法|不能|难以)(?:判断|决定|选择|评判)|(?:판단|결정|선택)할\s*수\s*없)"
    r"(?!\s*[^.]{0,80}\b(?:but|yet|however|still)\b)[^.!?\n]{0,80}[.!?]?\s*$"
)
"""A text that ends without a verdict: "I leave it open."."""

_SHORT = 80
"""A text of at most this many characters may be an option as a whole: "Response (a)."."""


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
    verdict = read(text, space)
    if verdict:
        return verdict
    # "" says that the text contradicts itself or ties: only a plain refusal is one then.
    declined = _REFUSAL if verdict is None else _PLAIN_REFUSAL
    return REFUSED if declined.search(text) else UNCLEAR


def read(text: str, space: Space) -> str | None:
    """The option that cleaned text concludes; "" where it contradicts itself, None without one."""
    if space.numeric:
        text = with_numbers(text, space)
        text = _PLUS.sub("", text)  # +2 is 2.
        if space.options[0][:1] != "-":
            text = _SIGN.sub("minus", text)  # -1 is not 1.
        elif (last := text.replace("−", "-").rpartition("\n")[2].strip()) in space.options:
            return last  # On a scale with signs, "-1" alone on the last line is no list item.
        else:
            text = text.replace("−", "-")
    if len(text) <= _SHORT and (verdict := space.value(text)) is not None:
        return verdict
    text = _LAST_ROW.sub(_row_as_line, text) if "|" in text else text
    text = calls_as_json(without_quotations(text))
    if (rest := after_second_thought(text)) is not None:
        return _read_own(rest.strip(), space) or ""
    return _read_own(text, space)


def _row_as_line(row: re.Match[str]) -> str:
    """A table's last row as a line: "Overall: 3". A sum of the rows before is no score."""
    name, value = row.groups()
    table = row.string[max(0, row.start() - 1000) : row.start()].rpartition("\n\n")[2]
    numbers = [int(number) for number in _CELL_NUMBER.findall(table)]
    if len(numbers) > 1 and value.isdigit() and sum(numbers) == int(value):
        return row.group()
    return f"\nOverall {name.partition('(')[0].strip()}: {value}"


def _read_own(text: str, space: Space) -> str | None:
    """The option that the judge's own words conclude, as `read` says it."""
    if marked := read_marked(text, space):
        if _ABSTAINS.search(text[max(marked.end, len(text) - _LAST) :]):
            return ""
        return "" if _contradicted(marked.option, text[marked.end :], space) else marked.option
    if _ABSTAINS.search(text[-_LAST:]):
        return ""
    if _RANKING.search(text):
        return None  # A ranking that was cut off names candidates, but chooses none.
    text = _JUDGED_NUMBER.sub(r"\1", text) if space.numeric else text
    text = without_markup(_without_question(without_json(text), space))
    # An instruction keeps its place, so that what follows it is no first sentence.
    found = [replace(each, text=own_part(each.text, space)) for each in sentences(text)]
    if not any(each.text for each in found):
        return None
    named = {int(number) for number in _CANDIDATE.findall(text)} if space.numeric else set()
    choice = _numbered(space, named) if named and not space.pairwise else None
    end = stated_at_end(found, space, is_choice=space.pairwise or choice is not None)
    if end and end.is_final:
        return end.option
    if choice:
        first = stated_at_end(found[:1], space, is_choice=True)
        if first and first.option not in choice.options:
            return first.option  # "Verdict: 0 (tie). Response 1 is more polite."
        if (chosen := read_choice(found, choice)) in choice.options:
            return chosen
    if end and choice:
        return end.option
    if choice and len(choice.options) < len(space.options):
        return read_score(found[-1:], space)  # Beside named candidates a number may count.
    verdict = _concluded(found, space, end, bool(named), len(text))
    if end and verdict is None:
        return end.option
    return "" if end and verdict != end.option else verdict


def _concluded(
    found: Sequence[Sentence], space: Space, end: Ending | None, is_numbered: bool, length: int
) -> str | None:
    if end:
        length = MOST_TO_MENTION + 1  # A mention beside a verdict is none.
    if space.pairwise or (space.short and not space.numeric):
        verdict = read_choice(found, space)
        # Beside numbered candidates, a number that chooses none counts something.
        if verdict is not None or (space.pairwise and (is_numbered or not space.numeric)):
            return verdict
    if space.numeric:
        return read_score(found, space, end.option if end and end.is_named else None)
    verdict = read_label(found, space, length)
    if verdict is None and space.spelled:  # "The answer is correct.", where C and I are offered
        word = read_label(found, space_of(tuple(space.spelled)), length)
        verdict = space.spelled[word] if word else word
    if verdict is None and space.worded:  # "Nein, das Datum fehlt.", where YES and NO are offered
        return space.worded.get(_FIRST_WORD.split(found[0].text.casefold())[0])
    return verdict


def _numbered(space: Space, candidates: set[int]) -> Space | None:
    """The choice between numbered candidates that a scale is: 1, 2 and a number for a tie, or
    as many candidates as there are numbers.
    """
    if set(space.options) in ({"1", "2", "0"}, {"1", "2", "3"}) and candidates <= {1, 2}:
        return space_of(("1", "2"))
    if candidates <= {int(option) for option in space.options} and len(space.options) < 5:
        return space_of(space.options, numbered=True) if max(candidates) > 2 else None
    return None


def _contradicted(verdict: str, rest: str, space: Space) -> bool:
    """Whether the text after a marker states another verdict."""
    found = list(sentences(without_markup(rest)))
    end = stated_at_end(found, space, is_choice=space.pairwise)
    if end and end.option != verdict:
        return True
    own_line = rest.rstrip().rpartition("\n")[2] if "\n" in rest.rstrip() else ""
    if len(own_line) <= _SHORT and space.value(without_markup(own_line)) not in (None, verdict):
        return True
    if space.pairwise:
        choices, _ = stated_choices([space.tokenised(each.text) for each in found], space)
        stated = {choice.option for choice in choices if not choice.tie}
    elif space.numeric:
        stated = {score.option for score in stated_scores(found, space) if score.decisive}
    else:
        stated = {label.option for label in cued_labels(found, space)[0]}
        if space.spelled and found:  # "GRADE: C", and then "has to be graded as incorrect"
            word = read_label(found, space_of(tuple(space.spelled)), len(rest))
            stated |= {space.spelled[word]} if word else set()
    return bool(stated - {verdict})


def _without_question(text: str, space: Space) -> str:
    """The text without a list of all options, which repeats the prompt."""
    lines = text.splitlines()
    places = [space.listed(line) for line in lines]
    most = len(space.options)
    for start, place in enumerate(places):
        end = start + 1
        # A scale may be listed from its top as well.
        step = -1 if place == most - 1 > 1 else 1
        begins = place if place == 0 or step < 0 else None
        while begins is not None and end < len(places) and end - start < most:
            if places[end] != begins + step * (end - start):
                break
            end += 1
        # Two lines may be a reasoned verdict, but not where the text ends with them.
        if end - start >= min(3, most) or (end - start == 2 and not any(lines[end:])):
            return "\n".join([*lines[:start], "", *lines[end:]])
    return "\n".join(lines)
