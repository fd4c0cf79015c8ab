"""Rules that make an output wrong on purpose, and harmless edits of it.

A rule gets an `Output` and returns a changed text, or None where it cannot guarantee the change.
``data/damage.yaml`` names the kinds and the criteria that they hurt.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from itertools import islice
from types import MappingProxyType

import numpy as np

from judgesense_dataset.damage_rules import SHORTEST, WORD, Output, Rule, is_json, pick, put, rules
from judgesense_dataset.harmless import HARMLESS_RULES

LEAST_TO_CUT = 24
"""Words of a text that is cut."""


def changed(kind: str, output: Output, rng: np.random.Generator) -> str | None:
    """A copy of the output with a kind of change; None where the kind refuses.

    A copy of a JSON output is valid JSON, and no copy equals its output.

    >>> rng = np.random.default_rng(0)
    >>> changed("negation-dropped", Output("The moon does not shine by itself at night."), rng)
    'The moon does shine by itself at night.'
    """
    rule_set = rules()
    is_whole = kind in ("other-output", "empty")
    facts = rule_set.damage.get(kind) or rule_set.harmless[kind]
    if not output.text.strip() or (output.is_code and not is_whole):
        return None
    if facts.english and not output.is_english:
        return None
    if output.is_creative and "fact" in facts.criteria and not is_whole:
        return None
    text = RULES[kind](output, rng)
    if text is None or text == output.text or (output.is_json and not is_json(text)):
        return None
    return text


def _words(text: str) -> set[str]:
    """The words of a text that say what it is about."""
    return {word.lower() for word in WORD.findall(text) if len(word) > 3} - rules().english


# Numbers. What only bounds or estimates, or names a step or an example, need not become wrong.

_MONTHS = (  # Without May, which is a verb as well.
    *("January", "February", "March", "April", "June", "July"),
    *("August", "September", "October", "November", "December"),
)
_COUNTS = (
    *("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven"),
    *("twelve", "twenty", "thirty", "fifty"),
)
_MOST_NUMBERS = 100
"""Numbers of a text that are looked at, so that a long table takes no longer."""
_NUMBER = re.compile(
    r"(?<![\w.,:/$^*+=<>-])(\$?\d+(?:,\d{3})*(?:\.\d+)?)(?![\w^*+=<>/:-]|[.,]\d|\s*[-–+*/=×x]\s*\d)"
    rf"|\b({'|'.join(_COUNTS)})\b(?!-)|\b({'|'.join(_MONTHS)})(?=\s+\d|[.,]|\s*$)"
)
_BOUND = re.compile(
    r"\b(?:about|around|approximately|roughly|nearly|almost|some|over|than|least|most|to|or|under"
    r"|within|between|and|up|from|every|any|example|e\.g\.|say|as|like|step|option|part|day|phase"
    r"|tip|number|no\.|chapter|section|question|figure|equation|case|method|version|type|if|per)"
    r"[:,]?\s*\W?$",
    re.IGNORECASE,
)
_LOOSE = re.compile(r"^\s*(?:or\b|to\b|and\b|-|–|or so|main\b|key\b|%?\s*chance)", re.IGNORECASE)
_EXAMPLE = re.compile(
    r"\b(?:example|e\.g\.|such as|for instance|suppose|let'?s|imagine|likely|at (?:least|most)"
    r"|(?:more|less|fewer|greater|higher|lower) than)\b",
    re.IGNORECASE,
)


def _number(output: Output, rng: np.random.Generator) -> str | None:
    copies = []
    for match in islice(_NUMBER.finditer(output.text), _MOST_NUMBERS):
        number, start, end = match.group(), match.start(), match.end()
        sentence = next((s for at, s in output.sentences if at <= start < at + len(s)), "")
        pattern = rf"(?<![\d.,]){re.escape(number)}(?![\d]|[.,]\d)"
        if (
            not output.free(start, end)
            or len(re.findall(pattern, output.text)) != 1
            or re.search(pattern, output.question)
            or _BOUND.search(output.text[max(0, start - 24) : start])
            or _LOOSE.match(output.text[end : end + 12])
            or _EXAMPLE.search(sentence)
        ):
            continue
        new = _other_number(number, rng)
        # Another number of the text or of its source could be right as well.
        if not re.search(rf"(?<!\d){re.escape(new)}(?!\d)", f"{output.text} {output.asked}"):
            copies.append(put(output.text, start, end, new))
    return pick(copies, rng)


def _other_number(number: str, rng: np.random.Generator) -> str:
    for words in (_MONTHS, _COUNTS):
        if number in words:
            at = words.index(number)
            return words[(at + int(rng.integers(3, len(words) - 3))) % len(words)]
    sign, digits = ("$", number[1:]) if number.startswith("$") else ("", number)
    value = float(digits.replace(",", ""))
    if re.fullmatch(r"1[0-9]{3}|20[0-4]\d", digits):
        return f"{sign}{int(value) - int(rng.integers(23, 60))}"
    if value < 10 and "." not in digits:
        return f"{sign}{int(value) + int(rng.integers(3, 7))}"
    # A percentage stays one.
    new = value * 3 if value <= 30 or value > 100 else value - 23
    decimals = len(digits.partition(".")[2])
    return f"{sign}{new:,.{decimals}f}" if "," in digits else f"{sign}{new:.{decimals}f}"


def _unit(output: Output, rng: np.random.Generator) -> str | None:
    copies = []
    for match in re.finditer(r"(?<![\w.,-])(\d[\d,.]*|[a-z]+) (\w+)\b", output.text):
        count, unit = match.groups()
        counted = count[0].isdigit() or count in _COUNTS
        new = rules().units.get(unit)
        before = output.text[max(0, match.start() - 24) : match.start()]
        if new is None or not counted or not output.free(*match.span()) or _BOUND.search(before):
            continue
        if re.search(rf"\b{unit}\b", output.question) or f"{count} {new}" in output.asked:
            continue
        if len(re.findall(rf"\b{re.escape(count)}\b", output.text)) == 1:
            copies.append(put(output.text, match.start(2), match.end(2), new))
    return pick(copies, rng)


# Negations: one sentence whose claim turns to its opposite.

_NEGATION = re.compile(
    r"\b(?:no|not|never|nor|neither|none|nothing|nobody|nowhere|without|cannot|hardly|rarely|unless"
    r"|lack\w*|fail\w*|den(?:y|ies|ied)|false|myth|untrue|incorrect|unlikely|impossible|only|few"
    r"|little|depends?)\b|n['’]t\b",
    re.IGNORECASE,
)
_VAGUE = re.compile(
    r"\b(?:i|we|my|our|me|us|let|some|many|most|often|usually|sometimes|generally|typically"
    r"|several|may|might|could|can be|likely|probably|possibl[ey]|perhaps|varie[sd]|vary|comment"
    r"|should be able|too|either|whether|please|hope|know|sure)\b",
    re.IGNORECASE,
)
_IN_CLAUSE = re.compile(
    r"\b(?:who|whose|which|that|if|when|while|where|what|why|how|because|as|than|since|although"
    r"|though|unless|until|once|here|there|this is|so)\b",
    re.IGNORECASE,
)
_DROPPED = re.compile(
    r"\b(?P<verb>is|are|was|were|do|does|did|has|have|had|will|would|should|must|can)"
    r"(?: not|n['’]t)\b|\b(?P<can>cannot|can['’]t)\b|\b(?P<will>won['’]t)\b|\b(?P<never>never)\b"
    r"|\b(?P<proof>no) (?=(?:\w+ )?(?:evidence|proof))|^(?P<no>No),",
    re.IGNORECASE,
)
_KEEPS_NOT = re.compile(
    r"^\s*(?:only|just|necessarily|merely|simply|yet|all|every|always|really|clear|certain|enough"
    r"|hesitate|worry|the same|have to|need|be able|limited|forget|both|entirely|quite)\b",
    re.IGNORECASE,
)
_INSTEAD = {"can": "can", "will": "will", "never": "always", "proof": "strong", "no": "Yes"}
_ADDED = re.compile(r"\b(?:is|are|was|were|will|must|has been|have been|had been|can)\b(?![-'’])")
_KEEPS_VERB = re.compile(
    r"^\s*(?:also|still|already|always|to\b|be\b|often|it|they|because|[.,:;!?]|$)"
)


def _without_negation(sentence: str) -> str | None:
    if len(_NEGATION.findall(sentence)) != 1 or _VAGUE.search(sentence):
        return None
    match = _DROPPED.search(sentence)
    if (
        match is None
        or sentence.rstrip().endswith("?")
        or _KEEPS_NOT.match(sentence[match.end() :])
    ):
        return None
    if re.search(r"\b(?:who|whose|which|if|when|while|but)\b", sentence[: match.start()], re.I):
        return None
    name = match.lastgroup or ""
    new = match["verb"] or _INSTEAD[name]
    new = new.capitalize() if match.group()[0].isupper() else new
    return put(
        sentence,
        match.start(),
        match.end(),
        f"{new} " if name == "proof" else new + "," * (name == "no"),
    )


def _with_negation(sentence: str) -> str | None:
    if _NEGATION.search(sentence) or _VAGUE.search(sentence) or len(WORD.findall(sentence)) < 4:
        return None
    match = _ADDED.search(sentence)
    if match is None or sentence.rstrip().endswith(("?", ":")) or not match.start():
        return None
    before, after = sentence[: match.start()], sentence[match.end() :]
    if _IN_CLAUSE.search(before) or _KEEPS_VERB.match(after) or "," in before or "(" in before:
        return None
    auxiliary, _, rest = match.group().partition(" ")
    return f"{before}{auxiliary} not{' ' + rest if rest else ''}{after}"


def _turn_sentence(
    turn: Callable[[str], str | None],
    output: Output,
    rng: np.random.Generator,
    *,
    both: bool = False,
) -> str | None:
    """The text with one sentence turned, or with the turned one after it."""
    copies = []
    for start, sentence in output.sentences:
        new = turn(sentence) if output.free(start, start + len(sentence)) else None
        if new is not None and new != sentence:
            if both:
                stop = "" if sentence.endswith((".", "!")) else "."
                new = f"{sentence}{stop} {new[:1].upper()}{new[1:]}"
            copies.append(put(output.text, start, start + len(sentence), new))
    return pick(copies, rng)


def _contradiction(output: Output, rng: np.random.Generator) -> str | None:
    def turn(sentence: str) -> str | None:
        return _without_negation(sentence) or _with_negation(sentence)

    return _turn_sentence(turn, output, rng, both=True)


# Names and sentences.

_NAME = re.compile(r"\b[A-Z][\w’-]+(?: [A-Z][\w’-]+)*")
_VERB = re.compile(
    r"\b(?:is|are|was|were|has|have|had|will|would|could|beat|won|[a-z]{2,}(?:ed|[^s]s))\b"
)
_SYMMETRIC = re.compile(
    r"\b(?:and|or|both|between|versus|vs|met|married|faced|played|tied|drew|same|differ\w*|with"
    r"|compar\w*|like|as|including|also|other|equals?|border\w*|near|next)\b|[/&:|*#]",
    re.IGNORECASE,
)


def _names(output: Output, rng: np.random.Generator) -> str | None:
    copies, text = [], f"{output.text} {output.asked}"
    for start, sentence in output.sentences:
        names = [m for m in _NAME.finditer(sentence) if m.group().lower() not in rules().english]
        # What begins a sentence is a name only if it is written so within another.
        if names and not names[0].start():
            elsewhere = rf"[a-z,] {re.escape(names[0].group())}\b"
            if not re.search(elsewhere, text):
                continue
        # What is not so, or only the same as, may be true the other way round as well.
        if (
            len(names) != 2
            or _NEGATION.search(sentence)
            or not output.free(start, start + len(sentence))
        ):
            continue
        a, b = names
        between = sentence[a.end() : b.start()]
        if (
            set(a.group().split()) & set(b.group().split())
            or {a.group(), b.group()} & {*_MONTHS, "May"}
            or a.group().lower().endswith("day")
            or not _VERB.search(between)
            or between.split() in (["is"], ["was"], ["are"], ["were"])
            # A capitalised common word ("Other fans saw Rome") is no name.
            or any(re.search(rf"\b{name.group().lower()}\b", text) for name in names)
            or _SYMMETRIC.search(between)
        ):
            continue
        new = sentence[: a.start()] + b.group() + between + a.group() + sentence[b.end() :]
        copies.append(put(output.text, start, start + len(sentence), new))
    return pick(copies, rng)


def _foreign_sentence(output: Output, rng: np.random.Generator) -> str | None:
    if len(WORD.findall(output.text)) < SHORTEST or output.is_json:
        return None
    topic = _words(f"{output.text} {output.asked}")
    for n in rng.permutation(len(output.others))[:20].tolist():
        donor = Output(output.others[n])
        usable = [
            sentence
            for _, sentence in donor.sentences
            if len(words := _words(sentence)) >= 5 and not words & topic and not donor.is_code
        ]
        if usable and (sentence := pick(usable, rng)) is not None:
            start, first = output.sentences[int(rng.integers(len(output.sentences)))]
            place = start + len(first)
            stop = "" if first.rstrip().endswith((".", "!", "?")) else "."
            end = "" if sentence.endswith((".", "!", "?")) else "."
            return put(output.text, place, place, f"{stop} {sentence}{end}")
    return None


def _other_output(output: Output, rng: np.random.Generator) -> str | None:
    topic = _words(f"{output.text} {output.asked}")
    for n in rng.permutation(len(output.others))[:40].tolist():
        words = _words(output.others[n])
        if len(words) >= 3 and len(words & topic) <= len(words) // 20:
            return str(output.others[n])
    return None


def _cut(output: Output, rng: np.random.Generator) -> str | None:
    words = list(WORD.finditer(output.text))
    if len(words) < LEAST_TO_CUT:
        return None
    # Within a sentence: two words before and after the cut belong to it.
    for at in range(len(words) // 2, 2, -1):
        if not re.search(r"[.!?:\n]", output.text[words[at - 2].start() : words[at + 1].end()]):
            return output.text[: words[at - 1].end()]
    return None


_STEP = re.compile(
    r"^(\s*(?:Step )?)(\d+)([.):] *)(.*(?:\n(?!\s*(?:Step )?\d+[.):]|\s*\n).*)*)", re.M
)
_SEQUENCE = re.compile(r"\W*(?:then|next|finally|after|once|now|first|lastly)\b", re.IGNORECASE)
_PROCEDURE = re.compile(
    r"\b(?:steps?|recipe|procedure|instructions|in (?:this )?order)\b", re.IGNORECASE
)


def _steps(output: Output, rng: np.random.Generator) -> str | None:
    """Reverse the texts of a numbered list whose order matters: the question says so, or lines
    that begin with "then", "finally" and the like."""
    steps = list(_STEP.finditer(output.text))
    if len(steps) < 4 or [int(step[2]) for step in steps] != list(range(1, len(steps) + 1)):
        return None
    lead = f"{output.question} {output.text[: steps[0].start(4)]}"
    n_sequences = sum(bool(_SEQUENCE.match(step[4])) for step in steps)
    if n_sequences < 2 and not _PROCEDURE.search(lead):
        return None
    text = output.text
    for step, later in zip(reversed(steps), steps, strict=True):
        text = put(text, step.start(4), step.end(4), later[4])
    return text


RULES: Mapping[str, Rule] = MappingProxyType(
    {
        "number": _number,
        "negation-dropped": lambda output, rng: _turn_sentence(_without_negation, output, rng),
        "negation-added": lambda output, rng: _turn_sentence(_with_negation, output, rng),
        "names": _names,
        "unit": _unit,
        "contradiction": _contradiction,
        "foreign-sentence": _foreign_sentence,
        "cut": _cut,
        "other-output": _other_output,
        "empty": lambda output, rng: pick(rules().placeholders, rng),
        "steps": _steps,
        **HARMLESS_RULES,
    }
)
"""The rule of each kind."""
