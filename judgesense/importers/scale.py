"""The cut that makes scores labels, the scales on which scores are, and codes of yes and no."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from judgesense.errors import JudgeSenseError
from judgesense.files.tables import Rows
from judgesense.importers.column_names import Columns
from judgesense.importers.numbers import ScoresOfJudge, cut_of, has_levels, top_of
from judgesense.importers.rows import cells_in
from judgesense.importers.values import SAME, fold, place_of
from judgesense.tasks import is_scale
from judgesense.text import join, sentence


def at_a_cut(
    found: Columns,
    judged: list[str],
    people: Sequence[str],
    roles: dict[str, str],
    scores: Sequence[ScoresOfJudge],
    where: str,
    notes: list[str],
) -> tuple[list[str], dict[str, str]]:
    """The judges whose scores become labels, and the mapping of `cut_at`. A judge on another scale
    than people is left out, unless every judge is."""
    others = {each.column for each in scores if each.scale is not None}
    left = [name for name in judged if name not in others] or judged
    if left != judged:
        notes.append(
            f"{join(sorted(others))} {'are' if len(others) > 1 else 'is'} left out of the agreement"
        )
        reasons = roles.get("raw_text", ":").split(",")
        if len(reasons) == len(judged):
            reasons = [each for name, each in zip(judged, reasons, strict=True) if name in left]
            roles["raw_text"] = ",".join(reasons)
        roles["raw_decision"] = ",".join(left)
        if len(left) == 1:
            roles["judge"] = f":{left[0]}"
    kept = [each for each in scores if each.column in left]
    return left, cut_at(found, left, people, kept, where, notes)


def cut_at(
    found: Columns,
    judged: Sequence[str],
    people: Sequence[str],
    scores: Sequence[ScoresOfJudge],
    where: str,
    notes: list[str],
) -> dict[str, str]:
    """The mapping that makes scores labels; none where whole numbers or people's words are labels.

    Raises JudgeSenseError for a judge on another scale than people, and for one whose scores are
    low where people say yes.
    """
    if off := [each for each in scores if each.scale is not None]:
        texts = ". ".join(sentence(each.text) for each in off)
        raise JudgeSenseError(
            f"{where}: {texts}. Put both on one scale, such as --map "
            f"'{_scale(found, judged)}={_scale(found, people)}'"
        )
    if opposite := [each.judge for each in scores if each.is_opposite]:
        yes, no = (found[people[0]].sides or {0: "yes", 1: "no"}).values()
        raise JudgeSenseError(
            f"{where}: people say {yes!r} to what {join(opposite)} scores low; say which side of "
            f"the cut is which: --map {shlex.quote(f'<0.5={yes},>=0.5={no}')}, or the reverse"
        )
    if not scores or scores[0].binary:
        return {}
    if all(has_levels(found[name]) for name in (*judged, *people)):
        return {}
    cut = f"{cut_of(found, people):g}"
    above, below = f">={cut}", f"<{cut}"
    notes.append(
        f"agreement is on scores of at least {cut}; for another cut add "
        f"--map {shlex.quote(f'{above}=PASS,{below}=FAIL')}"
    )
    return {above: f"at least {cut}", below: f"below {cut}"}


def require_same_side(
    blocks: Iterable[Rows],
    judged: Sequence[str],
    people: Sequence[str],
    mapping: Mapping[str, str],
    where: str,
    notes: list[str],
) -> None:
    """Raise JudgeSenseError where the labels that ``mapping`` makes of people's words are reliably
    the opposite of a judge's: ``hallucination: yes`` beside ``faithful``. ``notes`` says so where
    both have the same words."""
    same: Counter[tuple[str, bool]] = Counter()
    alone: Counter[str] = Counter()
    meant = {fold(key): fold(label) for key, label in mapping.items()}
    for rows in blocks:
        sides = {
            name: [
                place_of(meant.get(word := fold(text or ""), word), SAME[0])
                for text in cells_in(rows, name)
            ]
            for name in (*judged, *people)
        }
        for name in judged:
            for person in people:
                for one, two in zip(sides.get(name, ()), sides.get(person, ()), strict=False):
                    alone[name] += one is not None and two is None
                    if None not in (one, two):
                        same[name, one == two] += 1
    for name in judged:
        yes, no = same[name, True], same[name, False]
        if no >= _CORRECTIONS and not yes and alone[name] > no:
            raise JudgeSenseError(
                f"{where}: people's labels are on {no} of {no + alone[name]} rows, all of which "
                f"differ from {name!r}: they look like corrections, which are no sample of its "
                f"errors. In {people[0]!r}, write the label of every row that a person looked at, "
                "also where it is the same"
            )
        if no - yes > 3 * (yes + no) ** 0.5 and not mapping:
            notes.append(
                f"{name!r} says the opposite of people on {no} of {yes + no}: if the columns ask "
                "opposite questions, turn the words of one"
            )
        elif no - yes > 3 * (yes + no) ** 0.5:
            labels = [*dict.fromkeys(mapping.values())]
            own = {key: label for key, label in mapping.items() if key not in labels}
            turned = {key: labels[-1 - labels.index(label)] for key, label in own.items()}
            maps = (shlex.quote(",".join(map("=".join, m.items()))) for m in (turned, own))
            raise JudgeSenseError(
                f"{where}: {name!r} says the opposite of people on {no} of {yes + no}; say which "
                f"word is which: --map {' or --map '.join(maps)}"
            )


_CORRECTIONS = 5
"""The fewest labels that all differ from the verdicts beside them, among more without a label."""
_DECLARED = re.compile(r"(\d+)\s*(?:-|–|to|\.\.)\s*(\d+)")
"""In the name of a column, its scale: ``AI rating (0-10)``."""


def _scale(found: Columns, names: Sequence[str]) -> str:
    """The scale that a column's name states, else the usual one on which some columns' scores
    are."""
    for declared in filter(None, map(_DECLARED.search, names)):
        return f"{declared[1]}..{declared[2]}"
    low, most = min(found[n].low for n in names), top_of(found[n].high for n in names)
    return f"{1 if low >= 1 and most < 100 else min(0, low):g}..{most:g}"


_MISSING = frozenset(["9", "99", "999", "-1", "-9", "-99"])
"""Codes of an answer that is missing."""


def codes_of(words: Iterable[str]) -> tuple[str, ...]:
    """Two whole numbers that stand for yes and no, without those for a missing answer; else ().

    >>> codes_of(["1", "2", "9"]), codes_of(["0", "1"]), codes_of(["1", "2", "3"])
    (('1', '2'), ('0', '1'), ())
    """
    codes = tuple(sorted({*words} - _MISSING))
    return codes if len(codes) == 2 and is_scale(codes) else ()


def code_question(ours: Sequence[str], theirs: Sequence[str], words: Iterable[str]) -> str:
    """The question which of people's codes, or words, is which of a judge's, with the maps that
    say it."""
    missing = {code: "n/a" for code in words if code not in theirs}

    def flag(*pairs: tuple[str, str]) -> str:
        return f"--map {shlex.quote(','.join(map('='.join, [*pairs, *missing.items()])))}"

    if is_scale([*ours, *theirs]):
        shared = [code for code in theirs if code in ours]
        other, alone = (
            [c for c in a if c not in b][-1] for a, b in ((ours, theirs), (theirs, ours))
        )
        same = (
            f"{flag((other, alone))} if {shared[0]} means the same to both, or " if shared else ""
        )
        ends = flag((f"{ours[0]}..{ours[1]}", f"{theirs[0]}..{theirs[1]}"))
        maps = f"{same}{ends} if people's {theirs[1]} is the judge's {ours[1]}"
    else:
        codes, names = (ours, theirs) if is_scale(ours) else (theirs, ours)
        one, other = (flag(*zip(codes, pair, strict=True)) for pair in (names, names[::-1]))
        maps = f"{one} or {other}"
    return (
        f"people's labels are {' and '.join(theirs)}, the judge's {' and '.join(ours)}; say which "
        f"is which: {maps}"
    )
