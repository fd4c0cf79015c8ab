"""The decision space of a prompt, compiled: what counts as naming one of its options."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

from judgesense.errors import JudgeSenseError
from judgesense.tasks import UNCLEAR, Aliases, alias_key, is_scale, wrong_alias

_STRIPPED = " \t\r\n*_`\"'“”‘’«»[](){}<>#$.,;:!。"
TIES = frozenset({"tie", "tied", "equal", "same", "both", "draw", "neither", "c=tie"})
NOUN = (
    r"(?:outputs?|responses?|assistant|answers?|models?|options?|candidates?|summary|passage|text"
    r"|system|document|choice|version|reply|completion|solution|story|translation|image|result"
    r"|chatbot|generation|article|statement|conversation|explanation|argument|query|poem|essay"
    r"|letter|draft|email|guide|recipe|itinerary|proposal|message|report|tutorial|description|speech"
    r"|submission|entry|review|paragraph|sentence|item|code|antwort|ausgabe|r[ée]ponse|respuesta|resposta|risposta"
    r"|opci[óo]n|opç[ãa]o|opzione)"
)
_GRADES = {
    "c": ("correct", "right"),
    "i": ("incorrect", "wrong"),
    "p": ("partial", "partially correct", "partially", "partly correct", "partial credit"),
    "n": ("not attempted", "not_attempted", "no attempt", "none"),
}
_WORDED = {
    "yes": "ja oui sí sim si si tak da да evet はい 是 是的 네 예 हाँ हां نعم vâng có",
    "no": "nein non não nie nee nej нет hayır いいえ 否 不是 아니요 아니오 नहीं لا không",
    "pass": "passed passes",
    "fail": "failed fails",
}
"""Further words for a label, where they are a whole answer."""
NUMBER_WORDS = {
    word: str(number)
    for number, word in enumerate(
        ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
    )
}
_PAIRS = ({"a", "b"}, {"1", "2"}, {"i", "ii"}, {"x", "y"}, {"first", "second"})
_NAMES = (("1", "one", "first", "a"), ("2", "two", "second", "b"))
_COMPARED = re.compile(r"^\s*(.{1,24}?)\s*(>{1,3}|<{1,3}|={1,2}|≻|≺)\s*(.{1,24}?)\s*$")
_PREFIX = re.compile(
    rf"^(?:{NOUN}|the|is|my|grade|score|rating|verdict|winner)(?:\s*[-–]\s+|[\s:#_]+|-)", re.I
)
_SUFFIX = re.compile(
    r"\s+(?:is\s+(?:the\s+)?(?:better|best|winner|correct)|wins|points?|stars?)$", re.I
)
_ARTICLE = re.compile(
    r"\s+(?!(?:is|was|were|seems|would|will|should|has|had|does|did|because|since|as|over|or|and|vs"
    r"|wins|won|gives|gave|provides|provided|answers|directly|clearly|more|better|but|than|to|for|by"
    r"|in|on|with|correctly|also|only|if|looks|appears|gets|fits|outperforms|beats|addresses"
    r"|contains|follows|meets|loses|lost|fails|ist|war|gibt|liefert|hat|gewinnt|weil|est|donne|l|es|tiene|gana"
    r"|ofrece|porque|vince|foi|jest|wint|und|et|y|e|oder|ou|o)(?:n['’]t)?\b)[a-z]"
)
_VERB = re.compile(r"\s+(?!series\b|species\b)(?:[a-z]+[^aisu]s|having|being)\b")
"""A verb after a name ("A covers"), as against a noun after an article ("A bonus")."""
_STATES = re.compile(r"(?:the\s+)?(?:answer|choice|option)s?\s*:", re.I)
_NTH = re.compile(rf"(?:the\s+)?(\w+)(?:\s+(?:one|{NOUN}))?$")
_PRONOUN = re.compile(r"['’]|\s+[a-z]")
# Thai, Lao, Burmese, Khmer, Japanese, Chinese and Korean join words, or words and particles.
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]"
)
_QUANTITY = (
    r"(?![\w%°]|[.,:]\d|\s*[*/+=^×]\s*\d|\s+(?!because|since|as|which|is|and|or|but|not|rather|based"
    r"|due|given|here|over|wins|than)[a-z])"
)
_NO_QUANTITY = re.compile(_QUANTITY)
_COMPUTED = re.compile(r"(?:[=+*/^×]|\s-|\b(?:result|sum|total)\s+(?:is|of))\s*$", re.IGNORECASE)
FIRST = 0xE000
"""The private-use character that stands for the first option in tokenised text; others follow."""


class Space:
    """The options of a prompt and the patterns that find them in text.

    ``pairwise`` is a choice between two candidates named by a letter or a number (A/B, 1/2), with
    or without a label for ties; ``numeric`` a scale of whole numbers; ``short`` if every option
    has at most two characters. ``aliases`` are further texts for an option. ``numbered`` options
    are candidates, although their names are numbers.
    """

    def __init__(
        self,
        options: tuple[str, ...],
        aliases: tuple[tuple[str, str], ...] = (),
        numbered: bool = False,
    ) -> None:
        self.options = options
        self.numeric = is_scale(options) and not numbered
        self.tie = next((o for o in options if o.casefold() in TIES), None)
        candidates = [option for option in options if option != self.tie]
        self.pairwise = len(candidates) == 2 and {c.casefold() for c in candidates} in _PAIRS
        self.short = all(len(option) <= 2 for option in options)
        self.exact = frozenset(options)
        self.folded: dict[str, str] = {}
        for option in options:
            key = option.casefold()
            # Options that differ in case only are told apart by their case.
            self.folded[key] = "" if key in self.folded else option
        # Grades by a letter are spelled out as well, in a marker: "GRADE: Correct".
        graded = {o.casefold() for o in options} <= _GRADES.keys()
        self.spelled = {
            word: option
            for option in (options if graded else ())
            for word in _GRADES[option.casefold()]
        }
        worded = ((word, o) for o in options for word in _WORDED.get(o.casefold(), "").split())
        self.worded = dict(worded)
        self.aliases = {alias_key(alias): option for alias, option in aliases}
        longest_first = sorted(aliases, key=lambda pair: len(pair[0]), reverse=True)
        self.alias_words = [_as_word(alias) for alias, _ in longest_first]
        # Each alias is a group, because a match may differ from it in more than case ("İ" and "i").
        self._alias_option = [option for _, option in longest_first]
        names = "|".join(f"({_as_name(alias)})" for alias, _ in longest_first)
        self._alias = re.compile(names, re.IGNORECASE) if names else None
        # What may follow a noun ("Response 2"), and the ordinals of a choice between two.
        self._named = {key: option for key, option in self.folded.items() if option}
        self._ordinal: dict[str, str] = {}
        if self.pairwise:
            for option, words in zip(candidates, _NAMES, strict=True):
                self._named |= {w: option for w in words if w not in self._named}
                self._ordinal |= dict.fromkeys(words[:3], option)
        self._mention = re.compile(self._mentions(), re.IGNORECASE)
        listed = "|".join(re.escape(o) for o in sorted(options, key=len, reverse=True))
        self._bare = re.compile(
            # A letter may stand within Chinese, Japanese or Korean: "回答Bの方が".
            rf"(?<![^\W\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|['’&/.-])[\"'“‘]?({listed})[\"”’]?'?"
            rf"(?![^\W\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|[&/+#]|['’](?!s\b)\w|-\w|\.\w)"
        )
        dash = r"|(?<=\s)[-–](?=\s)" if self.numeric else ""
        self.legend = re.compile(
            rf"(?<![\w.])[\"'“(\[]*({listed})[\"'”)\]]*\s*"
            rf"(?:=|means|stands for|indicates|denotes|for|:{dash})\s*[\"'“]?[a-zA-Z]",
            re.IGNORECASE,
        )
        """A label with what it means, as in "0 = none, 3 = full"."""
        self._listed = re.compile(
            rf"^\W*(?:{NOUN}\s*)?[(\[]?({listed}|\d{{1,2}})[)\]]?\s*[.):=–-]+\s+\S", re.IGNORECASE
        )

    def _mentions(self) -> str:
        """A noun with an option's name, an option in brackets, and "the second one"."""
        if not self._named or not (self.pairwise or (self.short and not self.numeric)):
            return r"(?!)"
        names = "|".join(re.escape(name) for name in sorted(self._named, key=len, reverse=True))
        named = sorted(set(self.options) - {self.tie or ""}, key=len, reverse=True)
        own = "|".join(map(re.escape, named))
        ordinals = r"|\b(?:the\s+)?(?P<nth>first|second)\s+(?:one|" + NOUN + r")(?!\w)"
        # "That leaves the second, which ..."
        ordinals += r"|\bthe\s+(?P<bare>first|second)(?=\s*(?:[,.;:!)]|$))"
        return (
            rf"(?:the\s+)?\b{NOUN}\s*(?:[-#:]|number\b|no\.)?\s*[(\[\"'“‘]?\s*(?P<noun>{names})"
            r"(?!\w|['’](?!s\b)|-\w)\s*(?:[)\]\"”]|['’](?!s\b))?"
            rf"|\(\s*(?P<round>{own})\s*\)|\[\s*(?P<square>{own})\s*\]"
            rf"|\b(?:answer|choice|option)\s+is:?\s+(?P<stated>{own})(?=\s*(?:$|[.,;:)\n]))"
            + (ordinals if self.pairwise else "")
        )

    def value(self, text: str | None) -> str | None:
        """The option that a short text is, or None: ``(a)``, ``Response 2``, ``4/5``, ``A>B``.

        A tie that the space has no label for is UNCLEAR.
        """
        text = (text or "").strip()
        if text in self.exact:
            return text
        if compared := _COMPARED.match(text):
            left, sign, right = compared.groups()
            one, two = self.value(left), self.value(right)
            if one is not None and two is not None and one != two:
                if "=" in sign:
                    return self.tie or UNCLEAR
                return one if sign[0] in ">≻" else two
        for _ in range(3):
            bare = text.strip(_STRIPPED)
            if bare in self.exact:
                return bare
            key = bare.casefold()
            if option := self.folded.get(key) or self.aliases.get(key) or self.spelled.get(key):
                return option
            if option := self.worded.get(key):
                return option
            if (nth := _NTH.match(key)) and (option := self._ordinal.get(nth[1])):
                return option
            if key in TIES and self.pairwise:
                return self.tie or UNCLEAR
            if self.numeric and (option := self._number(key)):
                return option
            shorter = _SUFFIX.sub("", _PREFIX.sub("", bare))
            if shorter == text:
                return None
            text = shorter
        return None

    def _number(self, key: str) -> str | None:
        top = re.escape(self.options[-1])
        key = NUMBER_WORDS.get(key, key)
        number = re.fullmatch(rf"(-?\d{{1,6}})(?:\.0+)?(?:\s*/\s*{top}|\s+out\s+of\s+{top})?", key)
        return self.folded.get(number[1]) if number else None

    def listed(self, line: str) -> int | None:
        """The place of the option that a line of a list of options begins with, from 0."""
        match = self._listed.match(line)
        if match is None:
            return None
        if option := self.folded.get(match[1].casefold()):
            return self.options.index(option)
        return int(match[1]) - 1 if match[1].isdigit() else None

    def tokenised(self, text: str) -> str:
        """The text with one private-use character in place of each option it names.

        Lower-case letters count only after a noun ("output a" with brackets, "Response 2"): "a" is
        an article.
        """
        if self._alias is not None:
            text = self._alias.sub(
                lambda match: self._token(self._alias_option[(match.lastindex or 1) - 1]), text
            )
        text = self._mention.sub(self._mention_token, text)
        return self._bare.sub(lambda match: self._bare_token(match, text), text)

    def _mention_token(self, match: re.Match[str]) -> str:
        words = match.group()
        # "a text a reader likes": a lower-case letter without brackets is an article.
        if words[-1:] in ("a", "i") and words[-2:-1].isspace() and match.lastgroup == "noun":
            return words
        name = match[match.lastgroup or 0].casefold()
        option = (
            self._ordinal[name] if match.lastgroup in ("nth", "bare") else self._named.get(name)
        )
        if option is None:  # options that differ in case only
            return words
        # "Answer: B" and "the answer is b" state a verdict; "Response B" names a candidate.
        stated = "answer is " if match.lastgroup == "stated" else ""
        before = "answer: " if _STATES.match(words) else stated
        return before + self._token(option) + (" " if words[-1].isspace() else "")

    def _bare_token(self, match: re.Match[str], text: str) -> str:
        option = match[1]
        if option.isdigit() and not _is_named(match, text):
            return match.group()
        is_article = _ARTICLE.match(text, match.end()) and not _VERB.match(text, match.end())
        if option == "A" and match.group() == "A" and is_article:
            return match.group()
        if option == "I" and match.group() == "I" and _PRONOUN.match(text, match.end()):
            return match.group()
        return self._token(option)

    def _token(self, option: str) -> str:
        return chr(FIRST + self.options.index(option))

    def token_option(self, token: str) -> str:
        """The option behind a private-use character."""
        return self.options[ord(token) - FIRST]


def _is_named(match: re.Match[str], text: str) -> bool:
    """Whether a number may name a candidate: it counts nothing and is no result of a sum."""
    before = text[max(0, match.start() - 12) : match.start()]
    return bool(_NO_QUANTITY.match(text, match.end())) and not _COMPUTED.search(before)


def _as_word(alias: str) -> str:
    """A pattern that finds an alias as a word of its own; a number only where it counts nothing."""
    text = unicodedata.normalize("NFKC", alias).strip()
    if text.isdigit():
        return rf"(?<![\w.,=+*/^-])(?<![=+*/^]\s){text}{_QUANTITY}"
    before = r"(?<!\w)" if re.match(r"\w", text) else ""
    return before + re.escape(text) + (r"(?!\w)" if re.search(r"\w$", text) else "")


def _as_name(alias: str) -> str:
    """A pattern that finds a candidate's name, also where a script has no spaces around it.

    Short words are too often parts of others there: "はい" (yes) is in "答えはいいえ" (it is no).
    """
    text = unicodedata.normalize("NFKC", alias).strip()
    free = len(text) > 2 and _UNSPACED.match(text[0]) and _UNSPACED.match(text[-1])
    return re.escape(text) if free else _as_word(alias)


def space_of(
    options: tuple[str, ...], aliases: Aliases | None = None, *, numbered: bool = False
) -> Space:
    """The space of options with a template's aliases (option -> further texts), compiled once.

    Raises JudgeSenseError for an alias of no option or of two.
    """
    listed = {o: (a,) if isinstance(a, str) else tuple(a) for o, a in (aliases or {}).items()}
    return _compiled(options, tuple(listed.items()), numbered)


@lru_cache(maxsize=512)
def _compiled(
    options: tuple[str, ...], aliases: tuple[tuple[str, tuple[str, ...]], ...], numbered: bool
) -> Space:
    if wrong := wrong_alias(options, dict(aliases)):
        raise JudgeSenseError(f"aliases: {wrong[2]}")
    pairs = tuple((text, option) for option, texts in aliases for text in texts)
    return Space(options, pairs, numbered)
