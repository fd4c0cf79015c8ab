"""The decision space of a prompt, compiled: what counts as naming one of its options."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

from judgesense.errors import JudgeSenseError
from judgesense.tasks import UNCLEAR, Aliases, alias_key, is_scale, wrong_alias

_STRIPPED = " \t\r\n*_`\"'“”‘’«»[](){}<>#$.,;:!"
TIES = frozenset({"tie", "tied", "equal", "same", "both", "draw", "neither", "c=tie"})
NOUN = (
    r"(?:outputs?|responses?|assistant|answers?|models?|options?|candidates?|summary|passage|text"
    r"|system|document|choice|version|reply|completion|solution|story|translation|image|result"
    r"|chatbot|generation|article|statement|conversation|explanation|argument|query|poem|essay"
    r"|review|paragraph|sentence|item|code)"
)
_WORDS = (("1", "one", "first"), ("2", "two", "second"))
_COMPARED = re.compile(r"^\s*(.{1,24}?)\s*(>{1,3}|<{1,3}|={1,2}|≻|≺)\s*(.{1,24}?)\s*$")
_PREFIX = re.compile(rf"^(?:{NOUN}|the|is|my|grade|score|rating|verdict|winner)[\s:#-]+", re.I)
_SUFFIX = re.compile(
    r"\s+(?:is\s+(?:the\s+)?(?:better|best|winner|correct)|wins|points?|stars?)$", re.I
)
FIRST = 0xE000
"""The private-use character that stands for the first option in tokenised text; others follow."""


class Space:
    """The options of a prompt and the patterns that find them in text.

    ``pairwise`` is a choice between two candidates named by a letter or a number (A/B, 1/2), with
    or without a label for ties; ``numeric`` a scale of whole numbers. ``aliases`` are further
    texts for an option.
    """

    def __init__(self, options: tuple[str, ...], aliases: tuple[tuple[str, str], ...] = ()) -> None:
        self.options = options
        self.numeric = is_scale(options)
        self.tie = next((o for o in options if o.casefold() in TIES), None)
        candidates = [option for option in options if option != self.tie]
        self.candidates = tuple(candidates)
        self.pairwise = len(candidates) == 2 and {c.casefold() for c in candidates} in (
            {"a", "b"}, {"1", "2"}, {"i", "ii"}, {"x", "y"}, {"first", "second"},
        )  # fmt: skip
        self.short = all(len(option) <= 2 for option in options)
        self.exact = {option: option for option in options}
        self.folded: dict[str, str] = {}
        for option in options:
            key = option.casefold()
            # Options that differ in case only are told apart by their case.
            self.folded[key] = "" if key in self.folded else option
        self.aliases = {alias_key(alias): option for alias, option in aliases}
        self.mention = re.compile(self._mention(), re.IGNORECASE)
        self.bare = re.compile(self._bare())
        longest_first = sorted(aliases, key=lambda pair: len(pair[0]), reverse=True)
        self.alias_words = [_as_word(alias) for alias, _ in longest_first]
        # Each alias is a group, because a match may differ from it in more than case ("İ" and "i").
        self._alias_of = [option for _, option in longest_first]
        names = "|".join(f"({_as_name(alias)})" for alias, _ in longest_first)
        self._alias = re.compile(names, re.IGNORECASE) if names else None

    def value(self, text: str) -> str | None:
        """The option that a short text is, or None: ``(a)``, ``Response 2``, ``4/5``, ``A>B``.

        A tie that the space has no label for is UNCLEAR.
        """
        text = text.strip()
        if text in self.exact:
            return text
        if compared := _COMPARED.match(text):
            left, sign, right = compared.groups()
            one, two = self.value(left), self.value(right)
            if one is not None and two is not None and one != two:
                if "=" in sign:
                    return self.tie or UNCLEAR
                return one if sign[0] in ">≻" else two
        return self._plain(text)

    def _plain(self, text: str) -> str | None:
        for _ in range(3):
            bare = text.strip(_STRIPPED)
            if bare in self.exact:
                return bare
            key = bare.casefold()
            if found := self.folded.get(key) or self.aliases.get(key):
                return found
            if self.pairwise and (found := self._ordinal(key)):
                return found
            if key in TIES and self.pairwise:
                return self.tie or UNCLEAR
            if self.numeric and (found := self._number(key)):
                return found
            shorter = _SUFFIX.sub("", _PREFIX.sub("", bare))
            if shorter == text:
                return None
            text = shorter
        return None

    def _ordinal(self, key: str) -> str | None:
        for option, words in zip(self.candidates, _WORDS, strict=True):
            if key.removeprefix("the ").split(" ")[0] in words:
                return option
        return None

    def _number(self, key: str) -> str | None:
        top = re.escape(self.options[-1])
        found = re.fullmatch(rf"(-?\d{{1,6}})(?:\.0+)?(?:\s*/\s*{top}|\s+out\s+of\s+{top})?", key)
        return self.folded.get(found.group(1)) if found else None

    def _mention(self) -> str:
        """Ways to name a candidate of a choice, whatever its case; group n is the n-th one."""
        if not self.pairwise:
            return r"(?!)"
        ways = []
        for option, (digit, word, ordinal) in zip(self.candidates, _WORDS, strict=True):
            name = re.escape(option)
            same = rf"{name}|{digit}|{word}" if option != digit else rf"{name}|{word}"
            letter = "AB"[int(digit) - 1]
            if option == digit:
                same += f"|{letter}"
            ways.append(
                rf"(?:(?:the\s+)?\b{NOUN}\s*[-#:]?\s*[(\[\"'“‘]?\s*(?:{same})(?!\w|['’](?!s\b)|-\w)\s*[)\]\"'”’]?"
                rf"|\(\s*(?:{name})\s*\)|\[\s*(?:{name})\s*\]"
                rf"|\bthe\s+{ordinal}(?:\s+(?:one|{NOUN}))(?!\w)"
                rf"|\b{ordinal}\s+(?:one|{NOUN})(?!\w))"
            )
        return "|".join(f"({way})" for way in ways)

    def _bare(self) -> str:
        """An option by itself, in its own case: "A" as a word, "B" in quotes."""
        names = "|".join(re.escape(o) for o in sorted(self.options, key=len, reverse=True))
        return rf"(?<![\w'’&/.-])[\"'“‘]?({names})[\"”’]?'?(?!\w|[&/]|['’](?!s\b)\w|-\w|\.\w)"

    def tokenised(self, text: str) -> str:
        """The text with one private-use character in place of each option it names.

        Lower-case letters count only after a noun ("output a" with brackets, "Response 2"): "a" is
        an article.
        """
        if self._alias is not None:
            text = self._alias.sub(
                lambda found: self._token(self._alias_of[(found.lastindex or 1) - 1]), text
            )
        if self.pairwise:
            text = self.mention.sub(self._of_mention, text)
        return self.bare.sub(lambda found: self._of_bare(found, text), text)

    def _of_mention(self, found: re.Match[str]) -> str:
        said = found.group()
        # "a text a reader likes": a lower-case letter without brackets is an article.
        if said[-1:] in ("a", "i") and said[-2:-1].isspace() and said[-1] not in self.exact:
            return said
        return self._token(self.candidates[(found.lastindex or 1) - 1]) + (
            " " if said[-1].isspace() else ""
        )

    def _of_bare(self, found: re.Match[str], text: str) -> str:
        option = found.group(1)
        if option == "A" and _ARTICLE.match(text, found.end()) and found.group() == "A":
            return found.group()
        if option == "I" and found.group() == "I" and _PRONOUN.match(text, found.end()):
            return found.group()
        return self._token(option)

    def _token(self, option: str) -> str:
        return chr(FIRST + self.options.index(option))

    def of_token(self, token: str) -> str:
        """The option behind a private-use character."""
        return self.options[ord(token) - FIRST]


_ARTICLE = re.compile(
    r"\s+(?!(?:is|was|were|seems|would|will|should|has|had|does|did|because|since|as|over|or|and|vs"
    r"|wins|won|gives|gave|provides|provided|answers|directly|clearly|more|better|but|than|to|for"
    r"|in|on|with|correctly|also|only|if|looks|appears|gets|fits|outperforms|beats|addresses"
    r"|contains|follows|meets|loses|lost|fails)\b)[a-z]"
)
# Thai, Lao, Burmese, Khmer, Japanese, Chinese and Korean join words, or words and particles.
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]"
)
_PRONOUN = re.compile(r"['’]|\s+[a-z]")


def _as_word(alias: str) -> str:
    """A pattern that finds an alias as a word of its own."""
    text = unicodedata.normalize("NFKC", alias).strip()
    before = r"(?<!\w)" if re.match(r"\w", text) else ""
    return before + re.escape(text) + (r"(?!\w)" if re.search(r"\w$", text) else "")


def _as_name(alias: str) -> str:
    """A pattern that finds a candidate's name, also where a script has no spaces around it.

    Short words are too often parts of others there: "はい" (yes) is in "答えはいいえ" (it is no).
    """
    text = unicodedata.normalize("NFKC", alias).strip()
    free = len(text) > 2 and _UNSPACED.match(text[0]) and _UNSPACED.match(text[-1])
    return re.escape(text) if free else _as_word(alias)


@lru_cache(maxsize=512)
def compiled(options: tuple[str, ...], aliases: tuple[tuple[str, str], ...] = ()) -> Space:
    """The space of these options, compiled once; ``aliases`` are (text, option).

    Raises JudgeSenseError for an alias of no option or of two.
    """
    listed: dict[str, list[str]] = {}
    for alias, option in aliases:
        listed.setdefault(option, []).append(alias)
    if wrong := wrong_alias(options, listed):
        raise JudgeSenseError(f"aliases: {wrong[2]}")
    return Space(options, aliases)


def space_of(options: tuple[str, ...], aliases: Aliases | None = None) -> Space:
    """The space of options with a template's aliases (option -> list of further texts).

    Raises JudgeSenseError for an alias of no option or of two.
    """
    if not aliases:
        return compiled(options)
    pairs = tuple(
        (alias, option)
        for option, texts in aliases.items()
        for alias in ([texts] if isinstance(texts, str) else texts)
    )
    return compiled(options, pairs)
