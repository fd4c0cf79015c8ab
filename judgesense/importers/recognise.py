"""What the columns of a file of verdicts are, from their names and values.

What cannot be told is one error with the flag that says it.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence

from judgesense.errors import JudgeSenseError
from judgesense.files.tables import Rows
from judgesense.importers.column_names import (
    NOT_LABELS,
    PEOPLE,
    ROLES,
    VERDICT_OF,
    VERDICTS,
    Column,
    Columns,
    header_key,
)
from judgesense.importers.columns import ROW, values_in
from judgesense.importers.label_space import concludes
from judgesense.importers.numbers import flag_of
from judgesense.importers.people_columns import (
    are_systems,
    ask_codes,
    more_people,
    people_columns,
    with_final,
)
from judgesense.importers.roles import roles_of, shares_words, verdicts_of_arena
from judgesense.importers.sides import sides_of
from judgesense.importers.values import fold, is_usual
from judgesense.importers.who import (
    JUDGE,
    PERSON,
    akin,
    is_final,
    is_perhaps_person,
    subject,
    who,
)
from judgesense.importers.word_counts import WordCounts, states
from judgesense.tasks import is_scale
from judgesense.text import did_you_mean, join


def require_columns(found: Columns, where: str, names: Iterable[str], flag: str) -> None:
    """Raise JudgeSenseError for a name that is no column; ``flag`` is where it was given."""
    for name in names:
        if name not in found:
            hint = did_you_mean(name, found) or f"; its columns: {', '.join(found)}"
            raise JudgeSenseError(f"{where}: no column {name!r} ({flag}){hint}")


def own_label(found: Columns, blocks: Iterable[Rows]) -> str | None:
    """The column with a judge's own label: ``label`` beside its score, without any other column of
    verdicts or of people's labels, and with an explanation or a score that says the same."""
    by_name = {header_key(name.rpartition(".")[2]): name for name in found}
    others = [name for name in by_name if name in VERDICTS and name != "score"]
    people = [name for name in by_name if name in PEOPLE and name != "label"]
    if others or people or not by_name.keys() >= {"label", "score"}:
        return None
    label, score = by_name["label"], by_name["score"]
    if not found[label].labels:
        return None
    if by_name.keys() & {"explanation", "reason", "reasoning", "rationale", "justification"}:
        return label
    pairs = set[tuple[str, str]]()
    for rows in blocks:
        columns = (values_in(rows, name) or [] for name in (label, score))
        pairs |= {(str(one), str(other)) for one, other in zip(*columns, strict=False)}
    one_to_one = len(pairs) == len({one for one, _ in pairs}) == len({two for _, two in pairs})
    several = found[label].filled > 3 and len(pairs) < found[label].filled
    return label if one_to_one and len(pairs) > 1 and several else None


_RANKING = re.compile(r"\w+(?:\s*[>=<≻~]\s*\w+){2,}")


def _are_rankings(column: Column) -> bool:
    """Whether most cells rank three answers or more: ``A > C = B``."""
    ranked = sum(n for text, n in column.texts.items() if _RANKING.fullmatch(text))
    return 2 * ranked > column.filled > 0


def _alike(found: Columns) -> list[str]:
    """The columns of labels that share their words with another one."""
    columns = [name for name in found if found[name].labels and len(found[name].words) > 1]
    return [
        name
        for name in columns
        if any(name != n and shares_words(found[name], {*found[n].words}) for n in columns)
    ]


def looks_like_labels(found: Columns, used: Iterable[str], known: Iterable[str]) -> str | None:
    """The sentence on a column that looks like labels and is not used; None without one."""
    vocabulary, taken = set(map(fold, known)), set(used)
    alike: dict[str, set[str]] = {}
    for name, column in found.items():
        words = {*column.words}
        usual = is_usual(words) and not is_scale(words)
        usual |= who(name) == PERSON and not NOT_LABELS.fullmatch(header_key(name))
        if ((vocabulary and words <= vocabulary) or usual) and column.labels and len(words) > 1:
            alike |= {} if name in taken else {name: words}
    if not alike:
        return None
    first = next(iter(alike))
    names = [name for name, words in alike.items() if words == alike[first]]
    return (
        f"{join([repr(name) for name in names])} {'look' if names[1:] else 'looks'} like labels "
        f"({found[first].shown}), but {'are' if names[1:] else 'is'} not used. If these are "
        f"people's labels, add --human {shlex.quote(','.join(names))}"
    )


def recognise(
    found: Columns,
    where: str,
    notes: list[str],
    *,
    verdicts: Sequence[str] = (),
    people: Sequence[str] = (),
    columns: Mapping[str, str] | None = None,
    is_log: bool = False,
    flag: str = "--verdict ",
) -> tuple[list[str], list[str], dict[str, str]]:
    """The columns with verdicts, those with people's labels, and column of the decision log ->
    column of the file, as `understand`; ``notes`` gets what a person should know.

    ``flag`` is where a column of verdicts can be named.
    """
    given = dict(columns or {})
    require_columns(found, where, verdicts, "--verdict")
    require_columns(found, where, people, "--human")
    columns_given = [c for c in given.values() if c[:1] not in ":{*" and c != ROW]
    require_columns(found, where, columns_given, "--columns")
    judged = (
        ["raw_decision"] if is_log else [*verdicts] or [*filter(None, [given.get("raw_decision")])]
    )
    asked = [*people] or [*filter(None, [given.pop("gold", None)])]
    if (
        verdicts
        and people
        and header_key(verdicts[0]) in PEOPLE
        and header_key(people[0]) in VERDICTS
    ):
        notes.append(
            f"--verdict {judged[0]} and --human {asked[0]} look swapped. You may have meant "
            f"--verdict {asked[0]} --human {judged[0]}"
        )
    if constant := next((name for name in asked if name[:1] == ":"), None):
        raise JudgeSenseError(
            f"{where}: --columns gold={constant}: a constant is no label of people; name their "
            "column, or leave gold out"
        )
    left = {name: column for name, column in found.items() if name not in judged}
    named = judged or [n for n in found if header_key(n) in VERDICTS or who(n) == JUDGE]
    asked = asked or people_columns(
        {n: c for n, c in left.items() if "." in n or not is_log},
        notes,
        (word for name in named if name in found for word in found[name].words),
    )
    others = {name: column for name, column in left.items() if name not in asked}
    judged = judged or _on_same_subject(others, {name: found[name] for name in asked}, notes)
    judged = judged or _verdict_columns(others, [found[name] for name in asked])
    if judged and not asked and not is_log and (asked := more_people(found, judged)):
        notes.append(
            f"{join([*map(repr, asked)])} {'are' if asked[1:] else 'is'} read as people's labels. "
            "To read other columns, add --human COLUMN"
        )
    if judged and not (asked or verdicts or is_log):
        ask_codes(found, judged, where)
    if not (people or is_log):
        asked = with_final(found, judged, asked, notes)
    elif asked[2:] and (final := [name for name in asked if is_final(name)]):
        notes.append(
            f"{join([*map(repr, final)])} decides where it has a label. For the majority of all, "
            "leave it out of --human"
        )
    if ranked := [name for name in found if _are_rankings(found[name])]:
        raise JudgeSenseError(
            f"{where}: {join([*map(repr, ranked)])} rank answers ({found[ranked[0]].shown}), and a "
            "verdict is one label: write a row for each two answers, with the better one, or the "
            "best answer alone, and name these columns with --verdict and --human"
        )
    if not judged:
        alike = _alike(found)
        first, rest = (shlex.quote(",".join(names)) for names in (alike[:1], alike[1:]))
        said = (
            f"{join([*map(repr, alike)])} hold the same words, and their names do not say which is "
            f"the judge's: --verdict {first} --human {rest}, or "
            f"{'another of them' if alike[2:] else 'the reverse'}"
            if alike
            else f"no column holds a judge's verdicts; name it with {flag}COLUMN"
        )
        raise JudgeSenseError(
            f"{where}: {said}. To judge these rows: judgesense check RUBRIC.txt --data "
            f"{shlex.quote(where)} --judge JUDGE. The columns are {', '.join(found)}"
        )
    roles = given if is_log else roles_of(found, judged, asked, given, where, notes)
    return judged, asked, roles


def _on_same_subject(found: Columns, people: Columns, notes: list[str]) -> list[str]:
    """Judges' columns on what people's labels are on, ``llm_toxic`` beside ``human_toxic``;
    ``notes`` gets judges' labels on anything else."""
    about = {subject(name) for name in people}
    if len(about) > 1 or not all(about):
        return []
    judged = [n for n in found if who(n) == JUDGE and not NOT_LABELS.fullmatch(header_key(n))]
    judged = [n for n in judged if any(map(found[n].meets, people.values()))]
    same = [name for name in judged if subject(name) in about]
    same = same or [n for n in judged if any(akin(subject(n), each) for each in about)]
    if same and (others := [n for n in judged if n not in same and found[n].labels]):
        notes.append(
            f"{join([*map(repr, others)])} {'are' if others[1:] else 'is'} not used: no labels of "
            f"people are on {'their criteria' if others[1:] else 'its criterion'}"
        )
    return same


def _verdict_columns(found: Columns, people: Sequence[Column]) -> list[str]:
    """The columns of verdicts: by an exact name, else judges' that meet people's labels, else by
    less."""
    vocabulary = {word for column in people for word in column.words}
    if exact := verdicts_of_arena(found) or _exactly_named(found, vocabulary) or _only_flag(found):
        return [exact]
    sides = sides_of(found) or ()
    all_found, found = found, {name: c for name, c in found.items() if name not in sides}
    models = [n for n in found if who(n) == JUDGE and not NOT_LABELS.fullmatch(header_key(n))]
    usual = list[str]()
    if not any(found[name].meets(each) for name in models for each in people):
        systems = [*dict.fromkeys(word for name in sides for word in all_found[name].words)]
        usual = [
            n
            for n in models
            if is_usual({*found[n].words}) or found[n].sides or are_systems(found[n], systems)
        ]
    if not people:
        others = [column for name, column in found.items() if name not in models]
        people = others if any(found[n].meets(o) for n in models for o in others) else ()
    named = _named_after_judges(found, models, people)
    if own := _beside_a_label(found, named):
        return [own]
    alike = [
        name
        for name, column in found.items()
        if shares_words(column, vocabulary)
        and not NOT_LABELS.fullmatch(header_key(name))
        and who(name) != PERSON
    ]
    by_name = {header_key(name): name for name in reversed([*found])}
    outputs = [key for key in ROLES["raw_text"].split() if re.search("output|raw|response", key)]
    said = {name: WordCounts.of(found[name].texts) for name in models}
    concluding = [n for n in models if concludes(found[n], vocabulary)] or [
        name
        for name, words in said.items()
        if (len(vocabulary) > 1 and states(words, tuple(vocabulary)))
        or is_usual({*words.classes()})
    ]
    models = [name for name in models if found[name].numeric] or concluding
    return (
        named or usual or alike or [by_name[key] for key in outputs if key in by_name][:1] or models
    )


def _exactly_named(found: Columns, vocabulary: set[str]) -> str | None:
    """The column with the first of `VERDICTS` as its name; ``judge`` may also name the judge."""
    by_name = {header_key(name): name for name in reversed([*found])}
    return next(
        (
            name
            for key in VERDICTS
            if (name := by_name.get(key)) and (key != "judge" or {*found[name].words} & vocabulary)
        ),
        None,
    )


def _only_flag(found: Columns) -> str | None:
    """The column that says whether a score passed, if there is one."""
    flags = [name for name in found if flag_of(found, name)]
    return flags[0] if len(flags) == 1 else None


def _named_after_judges(
    found: Columns, models: Sequence[str], people: Sequence[Column]
) -> list[str]:
    """The columns named for verdicts (``gpt4_verdict``) or, where their values meet people's, for
    ``models``."""
    named = [
        name
        for name, column in found.items()
        if VERDICT_OF.fullmatch(header_key(name)) and (column.labels or column.decimals)
    ]
    if {*named} & {*models}:
        named = [name for name in named if name in models or not is_perhaps_person(name)]
    elif people:
        named = [n for n in models if any(map(found[n].meets, people))] or named
    words = {word for name in named if name in models for word in found[name].words}
    if words and not any(VERDICT_OF.fullmatch(header_key(name)) for name in named):
        # A model of a name that no table has: pandalm_7b.
        same = (
            name
            for name, column in found.items()
            if re.search(r"\d[bB](?![a-z])|\d\.\d", name)
            and who(name) != PERSON
            and shares_words(column, words)
        )
        named += [n for n in same if n not in named and not NOT_LABELS.fullmatch(header_key(n))]
    return named


def _beside_a_label(found: Columns, named: Sequence[str]) -> str | None:
    """The judge's column with the words of another one, if all of ``named`` are called a label.

    A team's label is a person's, a model's is a verdict; where neither is named for a judge, this
    raises JudgeSenseError with both readings.
    """
    if not named or not all(header_key(name).endswith("_label") for name in named):
        return None
    words = {word for name in named for word in found[name].words}
    for name, column in found.items():
        if name in named or len({*column.words} & words) < 2:
            continue
        if who(named[0]) == JUDGE:
            return None
        if who(name) == JUDGE:
            return name
        raise JudgeSenseError(
            f"{named[0]!r} and {name!r} may be verdicts or people's labels; say which: "
            f"--verdict {shlex.quote(name)} --human {shlex.quote(named[0])}, or the reverse"
        )
    return None
