"""Numbers and names as people read them: the one place that rounds, signs and joins."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from difflib import get_close_matches
from itertools import pairwise, takewhile

UNDEFINED = "–"
"""How an undefined number is printed."""


CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
"""Characters that act on a terminal: escape codes, direction marks; not tab and newline."""


def printable(text: str) -> str:
    """Text whose `CONTROLS` are shown as a sign of their own.

    >>> printable("\\x1b[2Jgone\\u202e")
    '␛[2Jgone�'
    """
    return CONTROLS.sub(lambda found: chr(0x2400 + ord(found[0])) if found[0] < " " else "�", text)


def caseless(text: str) -> str:
    """A text in one case and one Unicode form; Turkish and English case the letter i differently.

    >>> caseless("HAYIR") == caseless("hayır"), caseless("İyi") == caseless("iyi"), caseless("ẞ")
    (True, True, 'ss')
    """
    folded = unicodedata.normalize("NFKC", text).casefold()
    return unicodedata.normalize("NFC", folded.replace("i\u0307", "i").replace("ı", "i"))


def fill(text: str, values: Mapping[str, str]) -> str:
    """The text with each ``{name}`` of ``values`` replaced in one pass, so that other braces, and
    braces inside the values, stay.

    >>> fill("{a}: {b} {c}", {"a": "{b}", "b": "2"})
    '{b}: 2 {c}'
    """
    names = "|".join(map(re.escape, values))
    return re.sub(rf"\{{({names})\}}", lambda found: values[found[1]], text)


def number(value: float | None, digits: int = 3) -> str:
    """A number with a true minus sign; a dash if undefined, no sign if it rounds to zero.

    >>> number(0.8), number(-0.0001), number(-0.5, 2), number(None)
    ('0.800', '0.000', '−0.50', '–')
    """
    return UNDEFINED if value is None else f"{value:z.{digits}f}".replace("-", "−")


def signed(value: float | None, digits: int = 3) -> str:
    """A difference with its sign; a dash if undefined.

    >>> signed(0.0312), signed(-0.2, 1), signed(None)
    ('+0.031', '−0.2', '–')
    """
    return UNDEFINED if value is None else f"{value:+z.{digits}f}".replace("-", "−")


def percent(value: float | None) -> str:
    """A share (0 to 1) in percent; never 0% or 100% unless it is exactly that.

    >>> percent(0.5), percent(0.004), percent(0.9999), percent(1), percent(None)
    ('50%', '0.4%', '>99.9%', '100%', '–')
    """
    if value is None:
        return UNDEFINED
    if 0 < value < 0.0005:
        return "<0.1%"
    if 0.9995 < value < 1:
        return ">99.9%"
    if 0 < value < 0.01 or 0.99 < value < 1:
        return f"{100 * value:.1f}%"
    return f"{100 * value:.0f}%"


def p_value(value: float | None, name: str = "p") -> str:
    """A p-value, never as zero; ``name=""`` leaves the name out, for a column headed ``p``.

    >>> p_value(0.0123), p_value(1e-7), p_value(0.2, "corrected p"), p_value(0.5, ""), p_value(None)
    ('p = 0.012', 'p < 0.001', 'corrected p = 0.200', '0.500', 'p = –')
    """
    if value is not None and value < 0.001:
        return f"{name} < 0.001".strip()
    return f"{name} = {number(value)}" if name else number(value)


def interval(low: float | None, high: float | None, digits: int = 3) -> str:
    """The two ends of an interval in brackets; a dash without an interval.

    >>> interval(0.71, 0.88, 2), interval(None, None)
    ('[0.71, 0.88]', '–')
    """
    if low is None:
        return UNDEFINED
    return f"[{number(low, digits)}, {number(high, digits)}]"


def brackets(
    low: float | None, high: float | None, form: Callable[[float | None], str] = number
) -> str:
    """The two ends of an interval in brackets; a dash for an end that is undefined.

    >>> brackets(0.71, 0.88, percent), brackets(1.2, None), brackets(None, None)
    ('[71%, 88%]', '[1.200, –]', '[–]')
    """
    if low is None and high is None:
        return f"[{UNDEFINED}]"
    return f"[{form(low)}, {form(high)}]"


def span(values: Sequence[float], form: Callable[[float], str] = number) -> str:
    """The lowest and the highest value; one of them if they print alike.

    >>> span([0.9, 0.2]), span([0.501, 0.5], percent)
    ('0.200 to 0.900', '50%')
    """
    low, high = form(min(values)), form(max(values))
    return low if low == high else f"{low} to {high}"


def join(names: Sequence[str], word: str = "and") -> str:
    """Names as a list in a sentence; at least one.

    >>> join(["a"]), join(["a", "b", "c"]), join(["a", "b"], "or")
    ('a', 'a, b and c', 'a or b')
    """
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} {word} {names[-1]}"


def quoted(names: Iterable[str], noun: str = "check") -> str:
    """Names in quotes before their noun, as a list in a sentence.

    >>> quoted(["fair"]), quoted(["fair", "right"])
    ("the 'fair' check", "the 'fair' and 'right' checks")
    """
    names = [repr(name) for name in names]
    return f"the {join(names)} {noun}{plural_s(len(names))}"


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """The end of an error on an unknown name: the known name that is most like it, if one is.

    >>> did_you_mean("verdcit", ["id", "verdict"]), did_you_mean("x", ["id"])
    ("; did you mean 'verdict'?", '')
    """
    known = {each.casefold(): each for each in names}
    close = get_close_matches(name.casefold(), known, n=1)
    return f"; did you mean {known[close[0]]!r}?" if close else ""


def plural_s(count: int) -> str:
    """The ending of a noun in the plural.

    >>> f"1 item{plural_s(1)}, 2 item{plural_s(2)}"
    '1 item, 2 items'
    """
    return "" if count == 1 else "s"


def aligned(table: Sequence[Iterable[str]], left: Sequence[bool] | None = None) -> list[str]:
    """The lines of a table in columns, with a rule below its first row, the headings.

    ``left`` says which columns are flush left (by default all); the others are flush right.

    >>> print("\\n".join(aligned([["judge", "JSS"], ["a", "0.9"]], [True, False])))
    judge  JSS
    -----  ---
    a      0.9
    """
    from rich.cells import cell_len

    heading, *body = (list(row) for row in table)
    widths = [max(map(cell_len, column)) for column in zip(heading, *body, strict=True)]
    lines = []
    for row in (heading, ["-" * width for width in widths], *body):
        padded = []
        for text, width, is_left in zip(row, widths, left or [True] * len(widths), strict=True):
            space = " " * (width - cell_len(text))
            padded.append(text + space if is_left else space + text)
        lines.append("  ".join(padded).rstrip())
    return lines


def sentence(text: str) -> str:
    """Text with a capital letter at its start, unless it starts with a name such as ``gpt-4``.

    >>> sentence("avoid it"), sentence("gpt-4 is steady")
    ('Avoid it', 'gpt-4 is steady')
    """
    first = text.split(" ", 1)[0].rstrip(".,:;")
    return text[:1].upper() + text[1:] if first.replace("'", "").isalpha() else text


# Where a sentence or a line ends; "e.g." ends none.
_SENTENCE_END = re.compile(r"(?<=[.!?])(?<!e\.g\.)(?<!i\.e\.)[ \t]+|\s*\n\s*")


def sentences(text: str) -> list[str]:
    """The sentences and lines of a text, each with the white space after it.

    >>> sentences("Be kind. Use facts, e.g. dates.\\n- Answer YES.")
    ['Be kind. ', 'Use facts, e.g. dates.\\n', '- Answer YES.']
    """
    ends = [0, *(found.end() for found in _SENTENCE_END.finditer(text)), len(text)]
    return [text[a:b] for a, b in pairwise(ends) if text[a:b].strip()]


def shorten(text: str, longest: int = 34) -> str:
    """Text of at most ``longest`` characters, with an ellipsis if it is cut.

    >>> shorten("a long name", 6)
    'a lon…'
    """
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def middle_cut(text: str, longest: int = 48) -> str:
    """Text of at most ``longest`` characters, cut in the middle: names often differ at their end.

    >>> middle_cut("organisation/model-large-1", 14)
    'organi…large-1'
    """
    if len(text) <= longest:
        return text
    start = (longest - 1) // 2
    return f"{text[:start]}…{text[start + 1 - longest :]}"


def short_names(judges: Collection[str]) -> dict[str, str]:
    """Judges without the fingerprint after ``@``, unless two would then share a name.

    >>> short_names({"qwen@1a2b"}) == {"qwen@1a2b": "qwen"}
    True
    """
    short = {judge: judge.split("@")[0] or judge for judge in judges}
    taken = list(short.values())
    return {judge: name if taken.count(name) == 1 else judge for judge, name in short.items()}


def short_templates(templates: Collection[str]) -> dict[str, str]:
    """Templates without the beginning that all share, cut at the end of a word.

    >>> short_templates(["factuality-1", "factuality-2"])
    {'factuality-1': '1', 'factuality-2': '2'}
    """
    shared = same_start(min(templates), max(templates)) if len(templates) > 1 else ""
    cut = max(shared.rfind(mark) for mark in "-_ ./") + 1
    return {name: name[cut:] or name for name in templates}


def same_start(first: str, second: str) -> str:
    """The beginning that two texts share.

    >>> same_start("wording-1", "wording-2")
    'wording-'
    """
    same = takewhile(lambda pair: pair[0] == pair[1], zip(first, second, strict=False))
    return "".join(letter for letter, _ in same)


def duration(seconds: float) -> str:
    """A duration in one unit.

    >>> duration(40.2), duration(390), duration(9000)
    ('40 seconds', '6 minutes', '2 hours')
    """
    amount, unit = (seconds, "second") if seconds < 90 else (seconds / 60, "minute")
    if unit == "minute" and amount >= 90:
        amount, unit = amount / 60, "hour"
    count = max(1, round(amount))
    return f"{count} {unit}{plural_s(count)}"
