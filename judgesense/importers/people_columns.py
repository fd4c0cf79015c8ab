"""The columns with people's labels, by their names and by their values beside a judge's."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Sequence

from judgesense.errors import JudgeSenseError
from judgesense.importers.column_names import (
    NOT_LABELS,
    PEOPLE,
    ROLES,
    SCORED,
    Column,
    Columns,
    header_key,
)
from judgesense.importers.columns import ADDED
from judgesense.importers.label_space import concludes
from judgesense.importers.roles import shares_words
from judgesense.importers.scale import code_question, codes_of
from judgesense.importers.sides import sides_of
from judgesense.importers.values import fold, is_choice, is_tie, side_named
from judgesense.importers.who import (
    JUDGE,
    PERSON,
    akin,
    is_final,
    is_perhaps_person,
    names_defect,
    person_at_edge,
    subject,
    tokens,
    who,
)
from judgesense.importers.word_counts import comparable
from judgesense.tasks import is_scale
from judgesense.text import join

_ROLE = 6
"""Letters of a word for a person that its feminine and plural share."""


def people_columns(found: Columns, notes: list[str], vocabulary: Iterable[str] = ()) -> list[str]:
    """The columns with people's labels, by their names and values.

    Of several, those with words of the judge's ``vocabulary`` come first, then several people's,
    then the order of `PEOPLE`; ``notes`` then says how to choose others.
    """
    series: dict[str, list[str]] = {}
    systems = {word for name in sides_of(found) or () for word in found[name].words}
    judges = [
        found[n] for n in found if who(n) == JUDGE and not NOT_LABELS.fullmatch(header_key(n))
    ]
    for name, column in found.items():
        last = name.rpartition(".")[2]
        key = header_key(last)
        if (whole := header_key(name)) in PEOPLE:
            key = whole  # human.verdict
        edge = person_at_edge(last) or next(iter(re.findall(r"^(label|gold)_?.+", key)), None)
        if column.labels or (column.numeric and (key in PEOPLE or edge or SCORED.fullmatch(key))):
            kin = " ".join(tokens(name)[:1] + tokens(name)[-1:])
            if key in PEOPLE and who(name) != JUDGE:
                series.setdefault(kin if who(name) == PERSON else name, []).append(name)
            elif NOT_LABELS.fullmatch(key):
                continue
            elif (
                edge
                and "?" not in name
                and (len(tokens(last)) > 1 or (edge < key and key[0] > "\u3000"))
            ):
                series.setdefault(edge[:_ROLE], []).append(name)
            elif who(name) == PERSON and (
                any(map(column.meets, judges))
                or len({*column.words} & systems) > 1
                or any(concludes(judge, column.words) for judge in judges)
                or any(_are_codes(*each) for j in judges for each in ((j, column), (column, j)))
            ):
                series.setdefault((person_at_edge(name, True) or kin)[:_ROLE], []).append(name)
    words = {*vocabulary}

    def rank(group: list[str]) -> tuple[bool, bool, int]:
        key = header_key(group[0].rpartition(".")[2])
        place = PEOPLE.index(key) if key in PEOPLE else len(PEOPLE)
        return not comparable(words, {*found[group[0]].words}), len(group) == 1, place

    first, *others = sorted(series.values(), key=rank) or [[]]
    for group in others:
        if not is_final(group[0]) and found[group[0]].texts != found[first[0]].texts:
            notes.append(
                f"{join([*map(repr, group)])} may be labels, too ({found[group[0]].shown}), but "
                f"{'are' if group[1:] else 'is'} not used. To compare with "
                f"{'them' if group[1:] else 'it'}, add --human {shlex.quote(','.join(group))}"
            )
    return first


def _are_codes(codes: Column, words: Column) -> bool:
    """Whether a column of 0 and 1 may be of two words of which one names a defect."""
    two = codes_of(codes.words) == ("0", "1") and len(words.words) == 2
    return two and sum(names_defect(word) is True for word in words.words) == 1


def more_people(found: Columns, judged: Sequence[str]) -> list[str]:
    """Columns of other names that hold a judge's words, as people's labels do.

    Yes, no and numbers may say anything: such a column's name has to be a person's (``Maria``
    among names in lower case) or to say who it was.
    """
    by_name = {header_key(name): name for name in found}
    if by_name.keys() >= {"model_a", "model_b", "winner"} and by_name["winner"] not in judged:
        return [by_name["winner"]]  # The votes of an arena.
    verdicts = {word for name in judged if name in found for word in found[name].words}
    usual = is_scale(verdicts) or verdicts <= {"yes", "no", "y", "n", "true", "false"}
    lower = 2 * sum(name[:1].islower() for name in found) >= len(found)
    roles = [key for key in " ".join(ROLES.values()).split() if key != "feedback"]
    # One column of such a name, unlike several, may be a metric: EM.
    initials = [n for n in found if re.fullmatch(r"[A-Z]{2,3}|[a-z]{2}", n)]
    initials = [n for n in initials if n.casefold() not in ("em", "ok", "ai", "pii", "rag", "qa")]
    initials = [n for n in initials if any(found[n].meets(found[j]) for j in judged if j in found)]
    sure = any(who(n) == JUDGE or (n in found and found[n].is_share) for n in judged)
    sides = sides_of(found) or ()
    systems = [*dict.fromkeys(fold(text) for name in sides for text in found[name].texts)]
    by_name_of_system = len(systems) > 2 and 2 * len(verdicts & {*systems}) > len(verdicts)
    if by_name_of_system or (len(systems) > 1 and is_choice(verdicts)):
        # Each row compares two systems, which people name, and judges, or these name the sides.
        free = [n for n in found if n not in (*judged, *sides) and who(n) != JUDGE]
        free = [
            n
            for n in free
            if header_key(n) not in roles and not NOT_LABELS.fullmatch(header_key(n))
        ]
        if named := [n for n in free if found[n].labels and are_systems(found[n], systems)]:
            return named
    return [
        name
        for name, column in found.items()
        if name not in (*judged, *sides)
        and who(name) != JUDGE
        and (key := header_key(name)) not in roles
        and not (re.match(r"(is|was)_", key) and name[-1] != "?")
        and not re.match(r"(has|can|did|previous|old|contains?|includes?|mentions?|needs?)_", key)
        and (
            is_perhaps_person(name)
            or who(name) == PERSON
            or (name in initials and len(initials) > 1)
            or (lower and re.fullmatch(r"[A-Z][a-z]\w+", name))
            if usual or not shares_words(column, verdicts)
            else True
        )
        and (
            shares_words(column, verdicts)
            or (sure and any(n in found and column.meets(found[n]) for n in judged))
        )
    ]


def are_systems(column: Column, systems: Sequence[str]) -> bool:
    """Whether most cells of a column name one of some systems, folded, or a tie."""
    texts = column.texts.items()
    named = [n for text, n in texts if side_named(text, systems) is not None or is_tie(text)]
    return 10 * sum(named) > 9 * column.filled


def with_final(
    found: Columns, judged: Sequence[str], people: list[str], notes: list[str]
) -> list[str]:
    """People's columns and that of what they agreed on, which is alone where it has most rows:
    those without it are not settled yet."""
    own = [found[name] for name in (*people, *judged) if name in found]
    final = [
        name
        for name, column in found.items()
        if is_final(name)
        and name not in judged
        and who(name) != JUDGE
        and not NOT_LABELS.fullmatch(header_key(name))
        and any(map(column.meets, own))
    ]
    several = [n for n, c in found.items() if n not in (*judged, *final) and any(map(c.meets, own))]
    if len(final) != 1 or people == final or len(people) == 1 or len(several) < 2:
        return people  # Beside one person's it may be anybody's.
    most = max((found[name].filled for name in people if name not in final), default=0)
    alone = 2 * found[final[0]].filled > most
    notes.append(
        f"{final[0]!r} is {'the label' if alone else 'the label where it has one'}: what people "
        "agreed on. To read other columns, add --human COLUMN"
    )
    return final if alone else [*people, *final] if final[0] not in people else people


def ask_codes(found: Columns, judged: Sequence[str], where: str) -> None:
    """Raise JudgeSenseError for a column of two other codes than a judge's on what that is on, in
    which nobody says whose they are: ``V7_code`` (1, 2) beside ``LLM_V7`` (0, 1)."""
    roles = " ".join(ROLES.values()).split()
    free = [n for n in found if n not in ADDED and header_key(n) not in roles]
    for name, column in ((n, found[n]) for n in free if not NOT_LABELS.fullmatch(header_key(n))):
        for own in (n for n in judged if n in free and n != name):
            sides, theirs = found[own].sides or {}, codes_of(column.words)
            ours = codes_of(found[own].words) or (
                tuple(sides.values()) if theirs != ("0", "1") else ()
            )
            if ours and theirs and ours != theirs and akin(subject(own), subject(name)):
                raise JudgeSenseError(
                    f"{where}: {name!r} may be people's labels of {own!r}; if it is, add --human "
                    f"{shlex.quote(name)}: {code_question(ours, theirs, column.words)}. If not, "
                    f"name the verdicts alone: --verdict {shlex.quote(own)}"
                )
