"""The labels of a file of verdicts, and how people's words are read as the judge's."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from judgesense.answers import parse
from judgesense.errors import JudgeSenseError
from judgesense.importers.column_names import Column
from judgesense.importers.labels import levels_of, with_every_rating
from judgesense.importers.scale import code_question, codes_of
from judgesense.importers.values import (
    NUMBER,
    SAME,
    abbreviated,
    fold,
    is_usual,
    place_of,
    says_nothing,
)
from judgesense.importers.who import names_defect
from judgesense.importers.word_counts import WordCounts, comparable, longer, states
from judgesense.tasks import UNDECIDED, is_scale
from judgesense.text import join


def concludes(column: Column, labels: Collection[str]) -> tuple[str, ...] | None:
    """The labels of which most texts of a column state one: those given, or the sides of a
    choice."""
    size, longest = column.texts.total(), max(map(len, column.words), default=0)
    for known in (tuple(labels), ("A", "B", "C"), ("A", "B", "tie")):
        if len(known) > 1 and longest > max(map(len, known)) + _SENTENCE:
            read = sum(n for text, n in column.texts.items() if parse(text, known) in known)
            if 3 * read > 2 * size:
                return known
    return None


_SENTENCE = 10
"""A text of so many characters more than a label is no label, also where words are short."""


def space_of(
    found: Mapping[str, Column],
    judged: Sequence[str],
    people: Sequence[str],
    where: str,
    mapping: dict[str, str],
    notes: list[str],
    about: str = "",
    positive: str | None = None,
) -> tuple[str, ...] | None:
    """The labels in order, after adding to ``mapping`` what makes two vocabularies one.

    The labels are people's, else those of the verdicts; None where neither shows any. Raises
    JudgeSenseError for numbers with fractions and for texts, with the flag that makes them labels.
    ``about`` is the task, where the file names it, and ``positive`` the label that 1 or yes means.
    """
    file = _Vocabularies.of(found, judged, people, where, mapping, notes)
    file = file._replace(about=about, positive=fold(positive or ""))
    if mapping:
        return _mapped(file)
    if file.scores:
        return _cut_in_the_middle(file)
    _require_labels(file)
    texts = [name for name in judged if name in file.columns and not file.columns[name].labels]
    if texts or not file.ours.counts:
        _require_stated(file, texts)
        return (
            with_every_rating(file.known.values()) or None
        )  # The labels are looked for in the texts.
    if labels := _levels(file) or _sides(file):
        return labels
    if not file.known:
        return with_every_rating(file.ours.classes().values())
    if len(file.known) == 1:
        if not (file.ours.counts.keys() & file.known.keys() or is_usual(file.known)):
            raise _nothing_in_common(file)
        file = file._replace(known={**file.ours.classes(), **file.known})
    rules: tuple[Callable[[_Vocabularies], tuple[str, ...] | None], ...] = (
        _on_a_defect,
        _shared,
        lambda file: _read_as(file, file.ours.meaning(file.known)),
        _stated,
        _longer,
    )
    for rule in rules:
        if labels := rule(file):
            return labels
    raise _nothing_in_common(file)


class _Vocabularies(NamedTuple):
    """The words of a file's verdicts (``ours``) and of people's labels (``theirs``)."""

    columns: Mapping[str, Column]
    judged: Sequence[str]
    people: Sequence[str]
    ours: WordCounts
    theirs: WordCounts
    known: dict[str, str]
    """The labels that people's words show: folded word -> spelling."""
    scores: list[str]
    """The columns of numbers that cannot be labels as they are."""
    where: str
    mapping: dict[str, str]
    notes: list[str]
    about: str = ""
    positive: str = ""

    @classmethod
    def of(
        cls,
        found: Mapping[str, Column],
        judged: Sequence[str],
        people: Sequence[str],
        where: str,
        mapping: dict[str, str],
        notes: list[str],
    ) -> _Vocabularies:
        columns = {name: found[name] for name in (*judged, *people) if name in found}
        ours, theirs = (
            WordCounts.of(sum((columns[n].texts for n in names if n in columns), Counter[str]()))
            for names in (judged, people)
        )
        known, ours = theirs.classes(), ours.read(theirs.counts)
        classes = ours.classes()
        for word in [*known]:
            if full := abbreviated(known[word], classes):
                notes.append(f"{known.pop(word)!r} is read as {classes[full]!r}")
                known[full] = classes[full]
        two = len(known) > len(classes) == 2 and is_usual(classes)
        # Where a judge's texts state them, its own words do not tell people's apart.
        if two or (is_usual(known) and not is_scale(known) and not known.keys() & classes.keys()):
            for word, meant in theirs.synonyms(known).items():
                notes.append(f"{known.pop(word)!r} is read as {known[meant]!r}")
        scores = [n for n, c in columns.items() if c.decimals or (c.numeric and not c.labels)]
        verdicts, labels = {*ours.counts}, {*theirs.counts}
        one_kind = is_scale(verdicts) == is_scale(labels) or comparable(verdicts, labels)
        states_labels = not mapping and not scores and states(ours, tuple(known.values()))
        if verdicts and labels and not one_kind and not states_labels:
            # Whole numbers on one side, words on the other.
            scores = scores or [name for name in columns if (name in judged) is is_scale(verdicts)]
        return cls(columns, judged, people, ours, theirs, known, scores, where, mapping, notes)

    def words_of(self, names: Iterable[str]) -> Iterable[tuple[str, str]]:
        """Folded word and spelling in the columns of labels among some."""
        columns = (self.columns[name] for name in names if name in self.columns)
        return (pair for column in columns if column.labels for pair in column.words.items())


def _mapped(file: _Vocabularies) -> tuple[str, ...]:
    """The labels that the user named, and people's words that no mapping translates."""
    translated = {*map(fold, file.mapping)}
    has_limits = any(key.lstrip()[:1] in "<>" for key in file.mapping)
    named = [name for name in file.columns if name in file.people or not file.people]
    rest = [
        word
        for key, word in file.words_of(name for name in named if name not in file.scores)
        if key not in translated and not (has_limits and NUMBER.fullmatch(word))
    ]
    named = [label for label in file.mapping.values() if not says_nothing(label)]
    return with_every_rating(_distinct([*named, *rest]))


def _cut_in_the_middle(file: _Vocabularies) -> tuple[str, ...]:
    """Yes and no of people, where every score of the judge is a share; the error for others."""
    sides = [file.columns[name].sides for name in file.people if name in file.columns]
    yes_and_no = sides[0] if sides and all(sides) and len(sides) == len(file.people) else None
    if not yes_and_no or not {*file.scores} <= {*file.judged}:
        return _codes_or_scores(file)
    if not all(file.columns[name].is_share for name in file.scores):
        return _codes_or_scores(file)
    good, bad = yes_and_no.values()
    file.mapping.update({">=0.5": good, "<0.5": bad})
    file.notes.append(
        f"scores from 0 to 1 are cut in the middle: {good} from 0.5 on; for another cut "
        f"add --map {shlex.quote(f'>=0.7={good},<0.7={bad}')}"
    )
    return with_every_rating(_distinct([good, bad]))


def _codes_or_scores(file: _Vocabularies) -> tuple[str, ...]:
    """The words that codes stand for. Raises JudgeSenseError where no name says it, and for limits
    of a column of scores, with the words of the other side."""
    ours, theirs = codes_of(file.ours.counts), codes_of(file.theirs.counts)
    ours = ours if {*ours} <= {"0", "1", "2"} else ()  # 3 and 8 may be of a scale.
    sides = (ours or [*file.ours.classes().values()], theirs or [*file.known.values()])
    if (ours or theirs) and len(sides[0]) == len(sides[1]) == 2:
        if labels := _on_a_defect(file):
            return labels
        question = code_question(*sides, file.theirs.counts if theirs else ())
        raise JudgeSenseError(f"{file.where}: {question}")
    name = file.scores[0]
    other = file.theirs if name in file.judged else file.ours
    good, bad = (
        [other.spelled[word] for word in other.counts if place_of(word, SAME[0]) == place]
        for place in (0, 1)
    )
    words = (good[0], bad[0]) if good and bad else ("PASS", "FAIL")
    column = file.columns[name]
    most = max(float(text) for text in column.texts if NUMBER.fullmatch(text))
    limit = 0.5 if most <= 1 else most / 2
    limits = shlex.quote(f">={limit:g}={words[0]},<{limit:g}={words[1]}")
    raise JudgeSenseError(
        f"{file.where}: {name!r} holds numbers such as {column.shown}, not labels; "
        f"round them, or name the limits of the labels, such as --map {limits}"
    )


def _require_labels(file: _Vocabularies) -> None:
    """Raise JudgeSenseError for people's texts, and for a judge's where people name no labels."""
    columns = file.columns
    if texts := [name for name in file.people if not columns[name].labels]:
        raise JudgeSenseError(
            f"{file.where}: {texts[0]!r} holds texts such as {columns[texts[0]].shown!r}, not "
            "labels; name the labels: --human COLUMN"
        )
    read = [name for name in file.judged if name in columns and not columns[name].labels]
    if read and not file.theirs.counts:
        raise JudgeSenseError(
            f"{file.where}: {read[0]!r} holds texts such as {columns[read[0]].shown!r}; list the "
            "possible verdicts, which are then read in them: --answers YES,NO"
        )


def _levels(file: _Vocabularies) -> tuple[str, ...] | None:
    """The levels of a scale in words, where nearly all that both say is on one; of two words for
    a level (``neutral`` and ``neither agree nor disagree``) people's commonest."""
    counts = Counter(file.ours.counts) + Counter(file.theirs.counts)
    words = [word for word, n in counts.items() if 50 * n > counts.total() or word in file.known]
    if (levels := levels_of(words)) is None:
        return None
    spelled = {**file.ours.spelled, **file.theirs.spelled}
    first: dict[int, str] = {}
    for word in sorted(words, key=lambda w: (-file.theirs.counts.get(w, 0), -counts[w])):
        if (label := spelled[first.setdefault(levels[word], word)]) != spelled[word]:
            file.mapping[spelled[word]] = label
            file.notes.append(f"{spelled[word]!r} is read as {label!r}")
    return with_every_rating(spelled[word] for word in first.values())


def _sides(file: _Vocabularies) -> tuple[str, ...] | None:
    """The sides of a choice between two and the tie, where each side has a word of its own for one
    (``A`` and ``model_a``): the commonest of people's words. Words of both sides are labels."""
    ours, theirs = file.ours.counts, {word: file.theirs.counts[word] for word in file.known}
    words = {**ours, **theirs}
    places = {word: place_of(word, SAME[1]) for word in words}
    strays = sum(ours.get(word, 0) for word, place in places.items() if place is None)
    if 20 * strays > sum(ours.values()) or any(places[word] is None for word in theirs):
        return None
    named: dict[int, list[str]] = {}
    for word in sorted(words, key=lambda word: (-theirs.get(word, 0), -words[word])):
        if (place := places[word]) is not None:
            named.setdefault(place, []).append(word)
    same = {
        word: first
        for place, (first, *rest) in named.items()
        for word in rest
        if (word not in ours or word not in theirs) and (theirs or place < 2)
    }
    if not {0, 1} <= named.keys() or not same:
        return None
    spelled = {**file.ours.spelled, **file.theirs.spelled}
    file.mapping.update({spelled[word]: spelled[label] for word, label in same.items()})
    file.notes.append(
        f"words for the same side are one label: {','.join(map('='.join, file.mapping.items()))}"
    )
    return tuple(spelled[w] for place in sorted(named) for w in named[place] if w not in same)


def _require_stated(file: _Vocabularies, texts: Sequence[str]) -> None:
    """Raise JudgeSenseError for a judge's texts of which none states a label of people's."""
    labels = tuple(file.known.values())
    for name in texts if len(labels) > 1 else ():
        column = file.columns[name]
        if column.filled and not any(parse(text, labels) in labels for text in column.texts):
            raise JudgeSenseError(
                f"{file.where}: no text in {name!r} states one of people's labels "
                f"({', '.join(labels[:5])}); name the judge's verdicts, and which label is which: "
                f"--answers PASS,FAIL --map {shlex.quote(f'{labels[0]}=PASS,{labels[1]}=FAIL')}"
            )


def _shared(file: _Vocabularies) -> tuple[str, ...] | None:
    """People's labels and what the judge alone says, where the two share a word."""
    ours, known = file.ours, file.known
    if not ours.counts.keys() & known.keys():
        return None
    _require_one_code(file)
    rated = [int(word) for word in ours.counts if is_scale([word])] if is_scale(known) else []
    most = max(map(int, known)) if rated else 0
    if rated and max(rated) > most + 1:
        file.notes.append(
            f"verdicts go up to {max(rated)}, and labels up to {most}. If these are two scales, "
            "translate one with --map"
        )
    own = ours.beside(known)
    if rated and len(known) > 2:
        # A rating that nobody among the people gave is on their scale.
        least = min(1, *map(int, known))
        top = next((end for end in (5, 10) if most <= end), most)
        own += [f"{n}" for n in rated if least <= n <= top and f"{n}" not in known]
    if own and not is_scale(known):
        file.notes.append(f"no person gave {join(own)}: verdicts of their own")
    return with_every_rating([*known.values(), *own])


def _require_one_code(file: _Vocabularies) -> None:
    """Raise JudgeSenseError where two codes are a judge's and two others people's."""
    ours, theirs = codes_of(file.ours.counts), codes_of(file.theirs.counts)
    if ours and theirs and ours != theirs:
        raise JudgeSenseError(f"{file.where}: {code_question(ours, theirs, file.theirs.counts)}")


def _on_a_defect(file: _Vocabularies) -> tuple[str, ...] | None:
    """The words beside codes (0 and 1, false and true) where one names a defect: a code may count
    it, or its absence. Raises JudgeSenseError where no column's name says which."""
    ours, theirs = ({**file.ours.classes()}, dict(file.known))
    for codes, words, names in ((ours, theirs, file.judged), (theirs, ours, file.people)):
        sides = {place_of(word, _CODES): word for word in codes}
        defects = [word for word in words if names_defect(word)]
        told = {names_defect(name) for name in (*names, file.about)} - {None}
        if file.positive in words:
            defects, told = [word for word in words if word != file.positive], {False}
        if {*sides} != {0, 1} or len(words) != 2 or len(defects) != 1:
            continue
        good = next(word for word in words if word not in defects)
        pair = [words[good], words[defects[0]]]
        if len(told) != 1:
            spelled = [codes[sides[1]], codes[sides[0]]]
            asked = (spelled, pair) if codes is ours else (pair, spelled)
            raise JudgeSenseError(f"{file.where}: {code_question(*asked, ())}")
        yes, no = pair[::-1] if told.pop() else pair
        meant = {codes[sides[0]]: yes, codes[sides[1]]: no}
        file.mapping.update(meant)
        file.notes.append(
            f"{join([*names])} says that {codes[sides[0]]} is {yes}; to read it otherwise, add "
            f"--map {shlex.quote(','.join(map('='.join, zip(meant, [no, yes], strict=True))))}"
        )
        return with_every_rating(pair)
    return None


_CODES = ("1 true t yes y", "0 false f no n")
"""Answers that say nothing of the question."""


def _longer(file: _Vocabularies) -> tuple[str, ...] | None:
    """The verdicts' words as labels, where one side's are words of the other's."""
    words = [word for word in file.ours.classes() if word not in UNDECIDED]
    turned = longer(file.known, words) or {}
    return _read_as(
        file, longer(words, file.known) or {word: label for label, word in turned.items()}
    )


def _read_as(file: _Vocabularies, meaning: Mapping[str, str] | None) -> tuple[str, ...] | None:
    """The verdicts' words as labels, by folded verdict -> folded label."""
    ours, known = file.ours, file.known
    if not meaning or not {*meaning.values()} <= known.keys():
        return None
    # Of two words for one label, the commonest names it.
    by_label = {known[label]: ours.spelled[word] for word, label in [*meaning.items()][::-1]}
    same = {ours.spelled[word]: by_label[known[label]] for word, label in meaning.items()}
    file.mapping.update({**by_label, **same})
    pairs = sorted(by_label.items(), key=lambda pair: ours.spelled.get(fold(pair[1]), ""))
    file.notes.append(
        f"labels are read as verdicts: {','.join(map('='.join, pairs))}. To read them "
        "otherwise, add --map"
    )
    return with_every_rating(_distinct([by_label.get(word, word) for word in known.values()]))


def _stated(file: _Vocabularies) -> tuple[str, ...] | None:
    """People's labels, where the verdicts are short texts that state them."""
    labels = with_every_rating(file.known.values())
    return labels if states(file.ours, labels) else None


def _nothing_in_common(file: _Vocabularies) -> JudgeSenseError:
    ours, theirs = [*file.ours.spelled.values()], [*file.known.values()]
    pairs = ",".join(map("=".join, zip(theirs, ours, strict=False)))
    return JudgeSenseError(
        f"{file.where}: labels ({', '.join(theirs[:5])}) and verdicts ({', '.join(ours[:5])}) "
        "have no word in common; say which label is which verdict, such as "
        f"--map {shlex.quote(pairs)}"
    )


def _distinct(words: Iterable[str]) -> list[str]:
    """The words, of each spelling the first."""
    spelled: dict[str, str] = {}
    for word in words:
        spelled.setdefault(fold(word), word)
    return [*spelled.values()]
