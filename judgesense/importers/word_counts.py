"""The distinct words of a column, how often each is given, and the labels that they show."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from difflib import SequenceMatcher
from typing import NamedTuple

from judgesense.importers.values import (
    LONGEST,
    SAME,
    UNREAD,
    abbreviated,
    fold,
    has_failed,
    is_usual,
    misspelt,
    place_of,
    stated,
    without_none,
)
from judgesense.tasks import UNDECIDED, is_scale

_YES_NO = (
    "yes y true correct right pass passed 1 是 对 正确 通过 合格 はい 正しい 正解 네 예 맞음 적합",
    "no n false incorrect wrong fail failed 0 否 不是 不对 错误 不正确 不通过 不合格 いいえ "
    "間違い 不正解 아니오 틀림 부적합",
)
"""Words that have no degrees."""
_UNDECIDED = (
    "none,skip,skipped,unsure,not sure,unclear,maybe,cannot tell,can't tell,don't know,não sei,"
    "no sé,unklar,weiß nicht,je ne sais pas,non so,dudoso,duda,わからない,不明,不确定,모름,모르겠음"
)
_ASIDE = frozenset(map(fold, _UNDECIDED.split(",")))
_CANNOT = re.compile(
    r"(?:(?:not?|nicht|non|niet|nao|cannot|can't|unable) .*\b(?:beurteil|bewert|judg|determin"
    r"|assess|evalua|rated?\b|beoordel|giudic|jug|valora|valuta|avalia|decid)|(?:无法|無法|不能).*[判评評])"
)
"""What says that nothing can be said, if it stands beside a usual pair."""
_FEW = 0.03
"""Beside a usual pair these are no labels, nor is any other word with at most this share."""
RARE = 0.02
"""An answer is a label only if it has at least this share of the task's answers."""


class WordCounts(NamedTuple):
    """Distinct answers: how often each is given, and its commonest spelling, by `fold`."""

    counts: Mapping[str, int]
    spelled: Mapping[str, str]

    @classmethod
    def of(cls, texts: Mapping[str, int]) -> WordCounts:
        """The answers among some texts: neither undecided ones nor failed calls."""
        counts: Counter[str] = Counter()
        spelled: dict[str, str] = {}
        for text, count in sorted(texts.items(), key=lambda pair: -pair[1]):
            if text not in UNDECIDED and not has_failed(text):
                counts[fold(text)] += count
                spelled.setdefault(fold(text), text)
        without_none(counts)
        return cls(counts, spelled)

    def read(self, people: Collection[str] = ()) -> WordCounts:
        """The answers without `UNREAD`, unless people use it or it is one of two."""
        if UNREAD not in self.counts or "valid" in self.counts or UNREAD in people:
            return self
        rest = {word: count for word, count in self.counts.items() if word != UNREAD}
        return self if len(rest) < 2 else WordCounts(rest, self.spelled)

    def classes(self) -> dict[str, str]:
        """The labels that these answers show by themselves, by `fold`.

        A text that states another answer is no label, nor is one that abbreviates another, nor a
        rare one that misspells a frequent one, nor ``none`` beside yes and no.
        """
        common = sorted(self.counts, key=lambda word: -self.counts[word])
        total = sum(self.counts.values())
        if leads := self._leads(total):
            return leads
        common = [word for n, word in enumerate(common) if not _inflects(word, common[:n])]
        short = [word for word in common if len(word.split()) < 3 and len(word) <= LONGEST]
        words = tuple(self.spelled[word] for word in short)
        kept: dict[str, str] = {}
        for word in common:
            if (word not in short and len(words) > 1) and (
                len(word) > LONGEST or stated(self.spelled[word], words) in words
            ):
                continue
            if self.counts[word] < RARE * total and is_near(word, kept):
                continue
            if abbreviated(self.spelled[word], self.counts):
                continue
            if (near := misspelt(word, kept)) and 3 * self.counts[word] <= self.counts[near]:
                continue
            kept[word] = self.spelled[word]
        rest = [w for w in kept if not _abstains(w) and self.counts[w] >= _FEW * total]
        if len(rest) > 1 and is_usual(rest) and not is_usual(kept):
            kept = {w: kept[w] for w in kept if w in rest or is_usual([*rest, w])}
        return kept

    def _leads(self, total: int) -> dict[str, str]:
        """Yes and no where nearly all answers say why, too: ``PASS - covers the point``."""
        leads: Counter[str] = Counter()
        spelled: dict[str, str] = {}
        for word, count in self.counts.items():
            lead, dash, _ = self.spelled[word].partition(" - ")
            if dash and place_of(fold(lead), SAME[0]) is not None:
                leads[fold(lead)] += count
                spelled.setdefault(fold(lead), lead)
        return spelled if len(leads) == 2 and 10 * leads.total() > 9 * total else {}

    def synonyms(self, known: Mapping[str, str]) -> dict[str, str]:
        """Folded words of ``known`` that mean yes or no as a more frequent one does, and that."""
        first: dict[int | None, str] = {}
        places = {word: place_of(word, SAME[0]) for word in known}
        # Words that may have degrees (ok) mean yes or no where every word does.
        core = (
            {word: place_of(word, _YES_NO) for word in known} if None in places.values() else places
        )
        words = sorted(known, key=lambda word: -self.counts.get(word, 0))
        return {
            word: other
            for word in words
            if core[word] is not None and (other := first.setdefault(core[word], word)) != word
        }

    def beside(self, known: Mapping[str, str]) -> list[str]:
        """Answers that are labels too, although no person gave them: frequent, short, neither a
        label misspelt nor a text that states one; numbers beside numbers only."""
        labels, total = tuple(known.values()), sum(self.counts.values())
        return [
            self.spelled[word]
            for word, count in self.counts.items()
            if word not in known
            and count >= max(2, RARE * total)
            and len(word) <= LONGEST
            and len(word.split()) < 4
            and is_scale(known) == is_scale([word])
            and not is_near(word, known)
            and misspelt(word, known) is None
            and abbreviated(self.spelled[word], known) is None
            and stated(self.spelled[word], labels) not in labels
            and not (_abstains(word) and is_usual(known))
        ]

    def meaning(self, known: Mapping[str, str]) -> dict[str, str] | None:
        """Folded answer -> folded label of ``known``, where both vocabularies are of one family;
        None where they are not. Rare answers of no family are strays."""
        total = sum(self.counts.values())
        for family in SAME:
            labels = {place_of(word, family): word for word in known}
            if None in labels or len(labels) != len(known) or len(known) < 2:
                continue
            places = {word: place_of(word, family) for word in self.counts}
            strays = sum(self.counts[word] for word, place in places.items() if place is None)
            meant = {word: place for word, place in places.items() if place is not None}
            if meant and strays < 0.5 * total and {*meant.values()} <= {*labels}:
                # Of two words for one place, such as C and tie, both are read as the label.
                return {word: labels[place] for word, place in meant.items()}
        return None


def _abstains(word: str) -> bool:
    return word in _ASIDE or bool(_CANNOT.match(word))


def is_near(word: str, others: Collection[str]) -> bool:
    """Whether a word is one of the others misspelt, in the plural, or with an ending.

    >>> is_near("complaints", ["complaint"]), is_near("incorrect", ["correct"])
    (True, False)
    """
    return any(
        other[:1] == word[:1]
        and len(other) > 3
        and other != word
        and SequenceMatcher(None, word, other).ratio() > 0.75
        for other in others
    )


def inflected(word: str, labels: Iterable[str]) -> str | None:
    """The one label, folded, of which a folded word is another form.

    >>> inflected("n", ["ja", "nein"]), inflected("passed", ["pass", "fail"])
    ('nein', 'pass')
    """
    alike = [label for label in labels if _inflects(word, [label])]
    return alike[0] if len(alike) == 1 else None


def _inflects(word: str, others: Iterable[str]) -> bool:
    """Whether a word of a usual family is another one with an ending, or its first letter.

    >>> _inflects("passed", ["pass"]), _inflects("n", ["no"]), _inflects("ok", ["good"])
    (True, True, False)
    """
    place = place_of(word, SAME[0])
    return place is not None and any(
        place == place_of(other, SAME[0]) and (word.startswith(other) or other.startswith(word))
        for other in others
    )


def comparable(ours: set[str], theirs: set[str]) -> bool:
    """Whether two vocabularies, folded, share a word, mean the same (`SAME`), or one's words are
    parts of the other's."""
    same = any(all(place_of(w, family) is not None for w in ours | theirs) for family in SAME)
    parts = longer(ours, theirs) or longer(theirs, ours)
    return bool(ours & theirs or (ours and theirs and (same or parts)))


def longer(short: Iterable[str], long: Iterable[str]) -> dict[str, str] | None:
    """Each short label, folded -> the one long label that it is a word of; None where some label is
    left over or two fit.

    >>> longer(["send", "rewrite"], ["yes, send", "no, rewrite"])
    {'send': 'yes, send', 'rewrite': 'no, rewrite'}
    >>> longer(["correct", "wrong"], ["correct", "not correct"])
    """
    words = {label: {*re.findall(r"\w+", label)} for label in long}
    fits = {one: [label for label in words if one in words[label]] for one in short}
    found = {one: labels[0] for one, labels in fits.items() if len(labels) == 1}
    whole = len(found) == len(fits) == len(words) == len({*found.values()}) > 1
    return found if whole else None


def states(words: WordCounts, labels: tuple[str, ...]) -> bool:
    """Whether most distinct answers state one of the labels."""
    texts = words.spelled.values()
    return bool(labels) and 2 * sum(stated(text, labels) in labels for text in texts) > len(texts)
