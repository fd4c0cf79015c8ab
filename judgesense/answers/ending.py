"""How a text ends: what the judge says after a second thought, and a verdict as its last sentence.

The last word counts: "Rating: 8. Wait, the dose is wrong. Revised rating: 5" says 5, and a text
that ends in a second thought says nothing.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from judgesense.answers.space import Space
from judgesense.answers.text import Sentence, without_json
from judgesense.answers.vocabulary import SUPPOSED, one_of, pattern

_JUDGEMENT = one_of(
    "verdict | decision | rating | score | grade | judge?ment | choice | answer | assessment",
    "preference | pick | vote | draft",
)
_IT = (
    rf"\s+(?:it|(?:that|this|the|my)(?:\s+\w+){{0,2}}?(?:\s+{_JUDGEMENT}|(?-i:\s+[A-Z]+))"
    r"|that|this)\b[^.!?;\n]{0,80}"
)
_AGAIN = pattern(
    r"(?:(?:^|[.!?…:;\n—–(]|\s-|,\s*no)[\s\"”’)*_]*(?:(?:but|oh|no|and|or|hm+|well|ah|ok(?:ay)?),?\s+)?(?:"
    + one_of(
        "hold on | hang on | hmm+ | let me (?:think again|think once more)",
        "let me re-?(?:consider|think|check|read|evaluat|assess|examin|visit|calcul|comput"
        "|count|weigh)\\w*",
        "let me (?:check|look|go|read) (?:\\w+ ){0,4}?(?:again|once more|over) | oops",
        "on second thoughts? | i (?:\\w+ )?take (?:that|it) back | come to think of it",
        "(?:actually|or rather),? (?:no|wait|hold on) | correction",
        "i (?:need|have|want) to (?:re-?think|reconsider)",
        "moment mal | warte mal | nein, doch | attendez | attends | um momento | un attimo",
    )
    + r"|(?:wait|moment|warte|halt|stop|espera|espere|aspetta|wacht|chwila|подождите"
    r"|стоп|bekle|vänta|vent)"
    r"(?=\s*[,.!…:;—–?]|\s+(?:no|actually|what|but|is|does|did|if|I|let|maybe)\b|\W*$)"
    r")(?![\w'’])|\b(?=(?:revised|corrected|updated|amended|adjusted)\s+(?:\w+\s+)?"
    r"(?:verdict|rating|score|grade|answer|decision|choice|judge?ment)\b)"
    rf"|\bI\s+(?:(?:hereby|now|must|have\s+to)\s+)*(?:withdraw|retract|rescind|take\s+back){_IT}"
    rf"|(?:^|[.!?;,]\s+|\bplease\s+)(?:disregard|ignore)\s+(?:that|the|my|this)\s[^.!?;\n]{{0,20}}?{_JUDGEMENT}\b[^.!?;\n]{{0,40}}"
    rf"|\b(?:I|my)\b[^.!?;\n]{{0,40}}(?:\b(?:is|am|are)|['’]m)\s+(?:(?:hereby|now)\s+)?(?:withdrawn|retracted|withdrawing{_IT}|retracting{_IT})"
    rf"|\bI\s+can(?:not|['’]t)?\s+(?:no\s+longer\s+)?(?:stand|stick)\s+(?:by|to|with){_IT}"
    r"|\bI\s+no\s+longer\s+(?:hold|believe|trust|think|stand\s+by)\b"
    rf"|\b{_JUDGEMENT}[^.!?\n]{{0,25}}\s(?:should|must|is|are)\s*(?:not|n['’]t)\s+(?:to\s+)?be\s+(?:used|counted|recorded)\b"
    r"|\b(?:consider|regard|treat)\s+(?:that|it|this|my\s[^.!?\n]{1,40})\s(?:as\s+)?(?:void|revoked|withdrawn|retracted)\b"
    rf"|\b{_JUDGEMENT}\s*:\s*(?:to\s+be\s+determined|TBD|pending|undecided)\b"
    r"|\b(?:scratch|strike|forget|belay)\s+that\b|等等|等一下|待って|待てよ|잠깐)"
)
"""Where a judge takes back what it said: "Wait,", "Scratch that."."""

_WORDS = {
    kind: {word for words in by_language.values() for word in words.split()}
    for kind, by_language in tomllib.loads(
        Path(__file__).with_name("endings.toml").read_text("utf-8")
    ).items()
}
_FINAL, _SO, _TIES = _WORDS["final"], _WORDS["so"], _WORDS["ties"]
_ALLOWED = set[str]().union(*_WORDS.values())
_ADVERBS = {"overall", "finally", "ultimately"}
_UNSPACED_FINAL = re.compile("最終|最终|최종|最后")
_UNSPACED = re.compile(
    "最終的?|更好的|较好的|より(?:良|よ|優れた)い?|더 (?:나은|좋은)"
    "|最终|최종|最后|判定|評価|评价|结论|結論|答案|答え|回答|选择"
    "|選択|判断|結果|结果|결론|판정|선택|답은?|평가"
    "|よって|したがって|従って|ゆえに|因此|所以|综上|总之|따라서|그러므로|我的?|会|私[はの]|제|です|입니다|이다|[是为は为]"
)
_IT_IS = pattern(r"\s+it\s+is\W*$")
_TIED = pattern(
    r"\s*[(\[,]\s*(?:(?:i\.e\.|meaning|=)\s+)?(?:(?:an?|it['’]s\s+an?)\s+)?(?:tie|tied|draw|equal)\s*[)\]]?\W*$"
)
_REASON = pattern(
    r"\s*[,;(–—-]?\s*\b"
    + one_of(
        "because | since | as (?=it|its|the|they|this|that|[ab]\\b) | due to | given that",
        "denn | weil | da | car | parce qu[e'’] | puisque",
        "ya que | porque | pues | perché | poiché | pois | omdat | want | ponieważ | bo | çünkü",
        "потому что | так как | поскольку | eftersom | fordi",
    )
    + r"\b.*$"
)
"""What ends a sentence with why: ", ya que B inventa una fuente"."""
_DEGREE = pattern(
    r"\s*,?\s*(?:by\s+an?\s+\w+(?:\s+margin)?|hands\s+down|without\s+(?:a\s+)?doubt|no\s+question|\w+ly"
    r"|of\s+course|here|overall)\W*$"
)
_CLAUSE = re.compile(
    r"[;:—–]\s+|\s-\s|,\s+(?=(?:but|so|then|hence|thus|therefore|which\s+makes|that|I|my|also|donc|quindi|dus)\b)"
)
_PREDICATE = re.compile(r"\s(?:is|wins)\b")
_PRO_FORM = pattern(
    r"\b(?:of\s+(?:the|these)\s+two|(?:better|best|right|it\s+the|other)\s+one)\W*$"
)
"""Words that are no name of a candidate: "which makes it the better of the two"."""
_LETTER = re.compile(r"\w")
_WORD = re.compile(r"[^\W\d_](?:[\w'’\u0300-\u036f\u0900-\u097f]*)")
_MOST_WORDS = 14


class Ending(NamedTuple):
    """The verdict that a sentence consists of; whether it says "final", or names it a verdict."""

    option: str
    is_final: bool
    is_named: bool


def after_second_thought(text: str) -> str | None:
    """What follows the last place where the judge takes back what it said; None without one."""
    # What a JSON string says is thought before the verdict beside it.
    ends = [match.end() for match in _AGAIN.finditer(text)]
    if not ends or "{" not in text[: ends[-1]]:
        return text[ends[-1] :] if ends else None
    rest = text[ends[-1] :]
    return rest if rest in without_json(text) else None


def stated_at_end(sentences: Sequence[Sentence], space: Space, *, is_choice: bool) -> Ending | None:
    """The verdict that the last sentence consists of: "My final verdict is B", "CORRECT.".

    "" where a final verdict before it differs, None without one. In a choice between numbered
    candidates "score: 2" is no verdict.
    """
    places = [n for n, each in enumerate(sentences) if _LETTER.search(each.text)]
    if not places:
        return None
    place = places[-1]
    end = _ending(sentences[place], space, is_choice)
    if end is None or not end.is_final:
        return end
    finals = {
        each.option
        for s in sentences[:place]
        if (each := _ending(s, space, is_choice)) and each.is_final
    }
    lead = "" if place == 0 else sentences[0].text.strip(" .!").casefold()
    finals |= {space.folded[lead]} if lead in space.folded else set()
    return end if finals <= {end.option} else Ending("", True, True)


def _ending(sentence: Sentence, space: Space, is_choice: bool) -> Ending | None:
    """What a sentence states if it consists of a verdict, or else its last clause."""
    reason = _REASON.search(sentence.text)
    text = sentence.text[: reason.start()] if reason and reason.start() else sentence.text
    text = _DEGREE.sub("", text)
    whole = _stated(text, sentence.begins_line, space, is_choice)
    if whole or SUPPOSED.search(text) or not (clause := [*_CLAUSE.finditer(text)]):
        return whole
    last = _stated(text[clause[-1].end() :], False, space, is_choice)
    # "Tone: B" and "...; B" may be of a list, "..., and that is decisive: B" is not.
    start, end = clause[-1].span()
    announced = not space.numeric and ":" in text[start:end] and len(text[:start].split()) >= 5
    return last if last and (last.is_named or announced) else None


def _stated(sentence: str, begins_line: bool, space: Space, is_choice: bool) -> Ending | None:
    text, tied = _TIED.subn("", _IT_IS.sub("", sentence))
    is_final = bool(_UNSPACED_FINAL.search(text))
    text, unspaced = _UNSPACED.subn(" ", text) if len(text) < 200 else (text, 0)
    parts = text.replace("’", "'").split()
    if not 0 < len(parts) <= _MOST_WORDS:
        return None
    for n_words in (1, 2, 3):
        head, value = parts[:-n_words], " ".join(parts[-n_words:])
        option = space.value(value)
        if option in space.exact and not _PREDICATE.search(value):
            break
    else:
        return None
    if is_choice and _PRO_FORM.search(sentence):
        return None
    words = {word.casefold() for part in head for word in _WORD.findall(part)}
    if words - _ALLOWED or value.endswith(":") or any(c.isdigit() for part in head for c in part):
        return None
    if any(part.strip(",.;:()") in space.exact for part in head):
        return None  # "A, B"
    is_final = is_final or bool(words & _FINAL - (_ADVERBS if "," in " ".join(head) else set()))
    is_candidate = option.casefold() in {"1", "2", "a", "b"}
    if {"so", "is"} == words:
        return None  # "So is B."
    if {"answer"} == words & _WORDS["verdict"] and space.numeric and not is_choice:
        is_final = is_final and bool(words & _WORDS["score"])  # It may be that of a judged sum.
    if words & _TIES and (is_candidate or option == space.tie):
        return None
    if words <= _WORDS["nouns"] and not (unspaced or is_final):
        # Alone on its line it may be a heading or an item: `conclusion` looks at what is before.
        is_whole = bool(tied) or (value[-1] in ".!" or not words or head[0] in {"→", "->", "=>"})
        is_item = begins_line and not tied
        return Ending(option, bool(tied), False) if is_whole and not is_item else None
    names = _WORDS["verdict"] | (set() if is_choice and is_candidate else _WORDS["score"])
    is_named = bool(unspaced or words & (names | _TIES)) or sentence != text
    is_so = not (space.numeric and begins_line) or bool(words & _SO)
    return Ending(option, is_final, is_named or bool(words & _SO)) if is_named or is_so else None
