"""What the columns of a file of verdicts are, from their names and values.

Names are compared without case and punctuation. What people use for a role is in `ROLES`,
`VERDICTS` and `PEOPLE`; a column of people's labels must also hold few, short values. Whatever
cannot be told is one error with the flag that says it.
"""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from judgesense.errors import JudgeSenseError
from judgesense.files.tables import ABSENT, Rows
from judgesense.importers.columns import TARGETS
from judgesense.importers.labels import MOST_LABELS, RARE
from judgesense.importers.people import ROW
from judgesense.importers.rows import fits, texts_of
from judgesense.tasks import UNDECIDED, is_scale
from judgesense.text import did_you_mean, join, s, shorten

ROLES: Mapping[str, str] = {
    "item_id": "item_id id item idx index example_id question_id row_id sample_id uid case_id "
    "test_id conversation_id trace_id pair_id",
    "judge": "judge judge_name judge_model grader evaluator evaluator_model",
    "system_id": "system_id system model model_name assistant generator candidate",
    "template_id": "template_id template wording prompt_version prompt_name prompt_template",
    "order": "order ab_order option_order",
    "repeat": "repeat trial epoch attempt",
    "task": "task task_type criterion criteria metric dimension aspect",
    "cluster_id": "cluster_id cluster group_id",
    "raw_text": "reason reasoning rationale explanation justification critique judge_reason "
    "comment feedback raw_text raw_output judge_output",
}
"""Column of the decision log -> names that a file may use, the best first."""

_JUDGED = (
    "raw_decision decision verdict judge_verdict llm_verdict ai_verdict model_verdict judge_label "
    "llm_label ai_label model_label predicted_label predicted prediction pred y_pred judgement "
    "judgment grade judge_grade choice winner judge_choice preference rating judge_rating "
    "llm_rating judge_score llm_score score passed judge"
)
VERDICTS = _JUDGED.split()
"""Names of a column of verdicts, the best first."""
_VERDICT_OF = re.compile(
    r"(.+)_(verdict|decision|judge?ment|rating|grade|score|choice|label|pred|prediction)"
)
_FEEDBACK = "feedback."
"""How LangSmith begins the name of an evaluator's column in ``to_pandas()`` of an experiment."""

_LABELLED = (
    "label labels human human_label gold gold_label golden ground_truth ground_truth_label truth "
    "true_label y_true target expected expected_label reference_label human_verdict human_score "
    "human_rating human_grade human_judgement human_judgment annotation expert expert_label"
)
PEOPLE = _LABELLED.split()
"""Names of a column of people's labels."""
_PERSON = re.compile(
    r"(annotator|rater|human|expert|person|reviewer|labell?er|coder|worker|crowd|label|gold)_?(.+)"
)
_NOT_LABELS = re.compile(r".*_(ids?|names?|comments?|reasons?|notes?|time|date|email|confidence)")

FRIENDLY = {
    "id": "item_id", "item": "item_id", "wording": "template_id", "template": "template_id",
    "system": "system_id", "cluster": "cluster_id", "reason": "raw_text",
}  # fmt: skip
"""Other names for targets in ``--columns``."""

_LONGEST = 40
_KEPT = 200
"""Distinct values of a column that are kept; with more it holds no labels."""

_SAME: tuple[tuple[str, ...], ...] = (
    ("1 yes y true t pass passed correct right good accept accepted positive win",
     "0 no n false f fail failed incorrect wrong bad reject rejected negative loss"),
    ("a 1 first left model_a response_a response_1 answer_a assistant_a",
     "b 2 second right model_b response_b response_2 answer_b assistant_b",
     "tie c both draw equal same"),
)  # fmt: skip
"""Words of different vocabularies that mean the same, place by place."""


def plain(name: str) -> str:
    """A column's name as names are compared: ``Human Label`` is ``human_label``."""
    return re.sub(r"[^a-z0-9]+", "_", name.casefold()).strip("_")


@dataclass
class Column:
    """What a column holds: its distinct texts with their numbers, up to `_KEPT`, and its blanks."""

    name: str
    texts: Counter[str] = field(default_factory=Counter)
    filled: int = 0
    blank: int = 0
    longest: int = 0

    def add(self, values: Sequence[Any]) -> None:
        """Count some more cells."""
        cells = [None if value is ABSENT else value for value in values]
        texts = Counter(text.strip() for text in texts_of(cells) or () if text is not None)
        self.filled += texts.total()
        self.blank += len(values) - texts.total()
        self.longest = max([self.longest, *map(len, texts)])
        if len(self.texts) <= _KEPT:
            self.texts += texts

    @property
    def words(self) -> dict[str, str]:
        """The values that are not UNCLEAR and the like, by case-folded spelling, common first."""
        found: dict[str, str] = {}
        for text, _ in self.texts.most_common():
            if text not in UNDECIDED:
                found.setdefault(text.casefold(), text)
        return found

    @property
    def labels(self) -> bool:
        """Whether its values look like labels: few, short, repeated, or a scale."""
        few = 0 < len(self.words) <= MOST_LABELS and self.longest <= _LONGEST
        return few and (self.filled > len(self.texts) or self.filled < 5) and not self.decimals

    @property
    def decimals(self) -> bool:
        """Whether it holds numbers of which some are not whole."""
        numbers = [text for text in self.texts if re.fullmatch(r"-?\d*\.?\d+(e-?\d+)?", text)]
        return 2 * len(numbers) > len(self.texts) and not is_scale(numbers)

    @property
    def shown(self) -> str:
        """The values in a few words."""
        some = [shorten(text, 16) for text, _ in self.texts.most_common(4)]
        return ", ".join(some + ["..."] * (len(self.texts) > len(some)))


@dataclass(frozen=True)
class Understood:
    """What the columns of a file are.

    ``columns``, ``people``, ``labels`` and ``mapping`` are those of
    `judgesense.importers.log.import_log`; ``lines`` say them for a person.
    """

    columns: Mapping[str, str]
    people: tuple[str, ...]
    labels: tuple[str, ...] | None
    mapping: Mapping[str, str]
    lines: tuple[str, ...]


def columns_of(blocks: Iterable[Rows]) -> tuple[dict[str, Column], int]:
    """The columns of a file's rows by name, and the number of rows.

    What a column of objects holds is a column too, ``metadata.grade``.
    """
    found: dict[str, Column] = {}
    size = 0
    for rows in blocks:
        flat: dict[str, list[Any]] = {}
        for name, values in rows.columns.items():
            if any(isinstance(value, Mapping) for value in values):
                for key in {key for value in values if isinstance(value, Mapping) for key in value}:
                    flat[f"{name}.{key}"] = [
                        value.get(key) if isinstance(value, Mapping) else None for value in values
                    ]
            else:
                flat[name] = values
        for name, values in flat.items():
            found.setdefault(name, Column(name, blank=size)).add(values)
        for name in found.keys() - flat.keys():
            found[name].blank += len(rows)
        size += len(rows)
    return found, size


def require_columns(
    found: Mapping[str, Column], where: str, names: Iterable[str], flag: str
) -> None:
    """Raise JudgeSenseError for a name that is no column; ``flag`` is where it was given."""
    for name in names:
        if name not in found:
            hint = did_you_mean(name, found) or f"; its columns: {', '.join(found)}"
            raise JudgeSenseError(f"{where}: no column {name!r} ({flag}){hint}")


def people_columns(found: Mapping[str, Column], where: str) -> list[str]:
    """The columns with people's labels, by their names and values.

    Raises JudgeSenseError for two that are not a series such as annotator_1, annotator_2.
    """
    names: list[str] = []
    series: dict[str, list[str]] = {}
    for name, column in found.items():
        key = plain(name.rpartition(".")[2])
        if not column.labels and not (column.decimals and key.startswith("human")):
            continue
        person = _PERSON.fullmatch(key)
        if person and not _NOT_LABELS.fullmatch(key) and key not in PEOPLE:
            series.setdefault(person[1], []).append(name)
        elif key in PEOPLE:
            names.append(name)
    joined = [name for group in series.values() for name in group]
    if len(series) > 1 or (joined and names) or len(names) > 1:
        every = [*names, *joined]
        first, *rest = (found[name].texts for name in every)
        if all(texts == first for texts in rest) and not joined:
            return every[:1]
        raise JudgeSenseError(
            f"{where}: {join([repr(name) for name in every])} all look like people's labels; say "
            f"which to compare with: --human {shlex.quote(every[0])}, or several people's: "
            f"--human {shlex.quote(','.join(joined if len(joined) > 1 else every))}"
        )
    return names or joined


def looks_like_labels(
    found: Mapping[str, Column], used: Iterable[str], vocabulary: Iterable[str]
) -> str | None:
    """The sentence on a column that looks like labels and is not used; None without one."""
    known, taken = {word.casefold() for word in vocabulary}, set(used)
    for name, column in found.items():
        words = set(column.words)
        usual = any(words <= {*" ".join(family).split()} for family in _SAME)
        alike = (known and words <= known) or (usual and not is_scale(words))
        if alike and name not in taken and column.labels and len(words) > 1:
            return (
                f"not used: {name!r} looks like labels ({column.shown}); if they are people's, add "
                f"--human {shlex.quote(name)}"
            )
    return None


def understand(
    found: Mapping[str, Column],
    size: int,
    where: str,
    *,
    verdicts: Sequence[str] = (),
    people: Sequence[str] = (),
    columns: Mapping[str, str] | None = None,
    mapping: Mapping[str, str] | None = None,
    labels: Sequence[str] | None = None,
) -> Understood:
    """What the columns of a table are; what is given is taken as it is.

    Args:
        found: the columns, as `columns_of` makes them.
        size: the number of rows.
        where: the file, for errors.
        verdicts: the columns with verdicts, one a judge.
        people: the columns with people's labels.
        columns: targets to columns, as for an import.
        mapping: words of the file to labels.
        labels: the possible labels, in order.

    Raises:
        JudgeSenseError: an unknown column, no verdicts, and labels that cannot be compared.
    """
    given = dict(columns or {})
    require_columns(found, where, verdicts, "--verdict")
    require_columns(found, where, people, "--human")
    require_columns(found, where, [c for c in given.values() if c[:1] not in ":{*"], "--columns")
    notes: list[str] = []
    judged = list(verdicts) or [given[name] for name in ("raw_decision",) if name in given]
    asked = list(people) or [given[name] for name in ("gold",) if name in given]
    if judged and asked and plain(judged[0]) in PEOPLE and plain(asked[0]) in VERDICTS:
        notes.append(
            f"--verdict {judged[0]} and --human {asked[0]} look swapped; the usual reading is "
            f"--verdict {asked[0]} --human {judged[0]}"
        )
    if not asked:
        kept = {name: column for name, column in found.items() if name not in judged}
        asked = people_columns(kept, where)
    judged = judged or _verdict_columns(found, asked)
    if not judged:
        raise JudgeSenseError(
            f"{where}: no column holds a judge's verdicts; name it with --verdict COLUMN. To judge "
            f"these rows: judgesense check RUBRIC.txt --data {shlex.quote(where)} --judge JUDGE. "
            f"The columns are {', '.join(found)}"
        )
    roles = _roles(found, {*judged, *asked, *given.values()}, given, notes)
    roles["raw_decision"] = ",".join(judged)
    if len(judged) > 1:
        roles.pop("judge", None)
        reasons = [_reason_of(found, name) for name in judged]
        if all(reasons):
            roles["raw_text"] = ",".join(map(str, reasons))
        else:
            roles.pop("raw_text", None)
    elif "judge" not in roles:
        generic = plain(judged[0]) in VERDICTS
        roles["judge"] = ":judge" if generic else f":{judged[0].removeprefix(_FEEDBACK)}"
        if (reason := _reason_of(found, judged[0])) and "raw_text" not in roles:
            roles["raw_text"] = reason
    roles.setdefault("task", f":{Path(where).stem}")
    roles.setdefault("template_id", ":as judged")
    roles.setdefault("prompt", ":")  # elsewhere than in a log, what the judged system was asked
    _item(found, where, roles)
    words = _Words(found, judged, asked, where, dict(mapping or {}), notes)
    space = tuple(labels) if labels else words.space()
    lines = [_line(Path(where).name, size, judged, asked, roles, space)]
    for name in judged:
        if blank := found[name].blank if name in found else 0:
            notes.append(
                f"{blank} row{s(blank)} without a verdict in {name!r}: counted as failed, and left "
                "out of the figures"
            )
    used = {*judged, *asked, *(part for source in roles.values() for part in source.split(","))}
    if said := looks_like_labels(found, used, space or ()):
        notes.append(said)
    return Understood(roles, tuple(asked), space, words.mapping, (*lines, *notes))


def understand_log(
    found: Mapping[str, Column],
    where: str,
    people: Sequence[str] = (),
    mapping: Mapping[str, str] | None = None,
    labels: Sequence[str] | None = None,
) -> Understood:
    """As `understand`, for a log of another tool, whose verdicts are known.

    People's labels are in its metadata. Raises JudgeSenseError as `understand`.
    """
    require_columns(found, where, people, "--human")
    inside = {name: column for name, column in found.items() if "." in name}
    asked = list(people) or people_columns(inside, where)
    notes: list[str] = []
    words = _Words(found, ["raw_decision"], asked, where, dict(mapping or {}), notes)
    space = tuple(labels) if labels else words.space() if asked else None
    who = f"people's labels in {join(asked)}" if asked else "no people's labels but the log's own"
    line = f"{Path(where).name}: {found['judge'].filled} verdicts; {who}"
    return Understood({}, tuple(asked), space, words.mapping, (line, *notes))


def _verdict_columns(found: Mapping[str, Column], people: Sequence[str]) -> list[str]:
    """The columns with verdicts: by name, or those with people's vocabulary."""
    left = {name: found[name] for name in found if name not in people}
    by_name = {plain(name): name for name in reversed(left)}
    vocabulary = {word for name in people if name in found for word in found[name].words}
    for key in VERDICTS:
        if (name := by_name.get(key)) and (key != "judge" or {*found[name].words} & vocabulary):
            return [name]
    several = [
        name
        for name, column in left.items()
        if (name.startswith(_FEEDBACK) or _VERDICT_OF.fullmatch(plain(name)))
        and (column.labels or column.decimals)
    ]
    shares = {
        name: {*column.words} <= vocabulary and len(column.words) > 1 and column.labels
        for name, column in left.items()
    }
    return several or [name for name, same in shares.items() if same and vocabulary]


def _reason_of(found: Mapping[str, Column], verdict: str) -> str | None:
    """The column with a judge's reasons, such as ``gpt4_reason`` beside ``gpt4``."""
    base = plain(verdict)
    stems = {base, base.rpartition("_")[0]} - {""}
    ends = ROLES["raw_text"].split()
    wanted = {f"{stem}_{end}" for stem in stems for end in ends}
    return next((name for name in found if plain(name) in wanted), None)


def _roles(
    found: Mapping[str, Column], used: set[str], given: Mapping[str, str], notes: list[str]
) -> dict[str, str]:
    """Column of the decision log -> column of the file; what is given goes first."""
    roles = {target: source for target, source in given.items() if target != "gold"}
    by_name = {plain(name): name for name in reversed(list(found)) if name not in used}
    for target, names in ROLES.items():
        for key in names.split():
            if target not in roles and key in by_name and by_name[key] not in roles.values():
                column = found[by_name[key]]
                if column.filled and fits(target, column.texts):
                    roles[target] = by_name[key]
    for target in TARGETS:
        # A column of the log's own name would be read as such; one with other values is not.
        if target in found and target not in roles and not fits(target, found[target].texts):
            roles[target] = ":"
            notes.append(f"not used: {target!r} ({found[target].shown}) is not JudgeSense's column")
    return roles


def _item(found: Mapping[str, Column], where: str, roles: dict[str, str]) -> None:
    """Set ``item_id``: the id; with the system, where each id has several; without one the row."""
    if "item_id" not in roles:
        several = [
            roles[target]
            for target in ("template_id", "order", "repeat", "judge")
            if roles.get(target, ":")[:1] != ":" and len(found[roles[target]].texts) > 1
        ]
        if several:
            raise JudgeSenseError(
                f"{where}: each item has several rows (column {several[0]!r}), but no column says "
                f"which item a row is of; name it with --columns item_id=COLUMN. The columns are "
                f"{', '.join(found)}"
            )
        roles["item_id"] = ROW
    elif (system := roles.get("system_id", ":"))[:1] != ":" and len(found[system].texts) > 1:
        roles.setdefault("cluster_id", roles["item_id"])
        roles["item_id"] = f"{{{roles['item_id']}}}/{{{system}}}"


@dataclass
class _Words:
    """The vocabularies of verdicts and labels, made one by ``mapping``."""

    found: Mapping[str, Column]
    judged: Sequence[str]
    people: Sequence[str]
    where: str
    mapping: dict[str, str]
    notes: list[str]

    def space(self) -> tuple[str, ...] | None:
        """The labels, in order; None if only texts show them, which are then read as they are."""
        theirs, ours = self._of(self.people), self._of(self.judged)
        if self.mapping:
            return tuple(dict.fromkeys(self.mapping.values()))
        for name in self.people:
            self._require_labels(name)
        scores = [name for name in self.judged if name in self.found and self.found[name].decimals]
        texts = not scores and not all(self._is_labels(name) for name in self.judged)
        if scores:
            self._refuse_scores(scores[0], theirs)
        if not theirs:
            if texts:
                raise JudgeSenseError(
                    f"{self.where}: {self.judged[0]!r} holds texts such as "
                    f"{self.found[self.judged[0]].shown!r}; list the possible verdicts, which are "
                    "then read in them: --answers YES,NO"
                )
            return _ordered(ours)
        if texts:
            return _ordered(theirs)
        common = ours.keys() & theirs.keys()
        if not common:
            return self._translated(ours, theirs)
        total = sum(self.found[name].filled for name in self.judged if name in self.found)
        counts = Counter[str]()
        for name in self.judged:
            for text, number in self.found[name].texts.items():
                counts[text.casefold()] += number
        more = {key: word for key, word in ours.items() if counts[key] >= RARE * total}
        both = {**theirs, **{key: word for key, word in more.items() if key not in theirs}}
        if is_scale(both) and max(map(int, ours)) > max(map(int, theirs)) + 1:
            self.notes.append(
                f"verdicts go up to {max(map(int, ours))}, labels up to {max(map(int, theirs))}: "
                "if these are two scales, map one to the other with --map"
            )
        return _ordered(both)

    def _of(self, names: Sequence[str]) -> dict[str, str]:
        return {
            key: word
            for name in names
            if name in self.found
            for key, word in self.found[name].words.items()
        }

    def _is_labels(self, name: str) -> bool:
        return name not in self.found or self.found[name].labels

    def _require_labels(self, name: str) -> None:
        if not self._is_labels(name):
            column = self.found[name]
            how = "--map '>=0.5=PASS,<0.5=FAIL'" if column.decimals else "--human COLUMN"
            kind = "numbers" if column.decimals else "texts"
            raise JudgeSenseError(
                f"{self.where}: {name!r} holds {kind} such as {column.shown!r}, not labels; "
                + ("say what they mean: " if column.decimals else "name the labels: ")
                + how
            )

    def _refuse_scores(self, name: str, theirs: Mapping[str, str]) -> None:
        good, bad = self._two(theirs) or ("PASS", "FAIL")
        told = f"{shlex.quote(f'>=0.5={good},<0.5={bad}')}"
        raise JudgeSenseError(
            f"{self.where}: {name!r} holds scores such as {self.found[name].shown}, not verdicts; "
            f"say from which score it counts as which: --map {told}"
        )

    def _two(self, words: Mapping[str, str]) -> tuple[str, str] | None:
        """The good and the bad one of two labels, if these are usual words."""
        sides = _SAME[0][0].split(), _SAME[0][1].split()
        good, bad = ([words[key] for key in words if key in side] for side in sides)
        return (good[0], bad[0]) if len(good) == len(bad) == 1 and len(words) == 2 else None

    def _translated(self, ours: Mapping[str, str], theirs: Mapping[str, str]) -> tuple[str, ...]:
        """The verdicts' labels, with people's words mapped to them where both are usual."""
        for family in _SAME:
            places = [
                {place: words[key] for place, side in enumerate(family) for key in side.split()
                 if key in words}
                for words in (ours, theirs)
            ]  # fmt: skip
            mine, other = places
            whole = len(mine) == len(ours) and len(other) == len(theirs)
            if whole and len(other) > 1 and other.keys() <= mine.keys():
                self.mapping |= {word: mine[place] for place, word in other.items()}
                told = ",".join(f"{word}={mine[place]}" for place, word in sorted(other.items()))
                self.notes.append(f"labels read as verdicts: {told} (other meanings: --map)")
                return _ordered(ours)
        shown = [", ".join(list(words.values())[:5]) for words in (theirs, ours)]
        pairs = ",".join(
            f"{word}={verdict}"
            for word, verdict in zip(theirs.values(), ours.values(), strict=False)
        )
        raise JudgeSenseError(
            f"{self.where}: labels ({shown[0]}) and verdicts ({shown[1]}) have no word in common; "
            f"say which label is which verdict, such as --map {shlex.quote(pairs)}"
        )


def _ordered(words: Mapping[str, str]) -> tuple[str, ...]:
    """Labels in order: a scale with every step of it, other words by name."""
    if is_scale(words.values()) and words:
        low, high = (pick(map(int, words.values())) for pick in (min, max))
        if high - low < MOST_LABELS:
            return tuple(map(str, range(low, high + 1)))
    return tuple(sorted(words.values()))


_SHOWN = {
    "judge": "judges", "template_id": "wordings", "raw_text": "reasons", "order": "orders",
    "repeat": "repeats", "item_id": "items",
}  # fmt: skip


def _line(
    name: str,
    size: int,
    judged: Sequence[str],
    people: Sequence[str],
    roles: Mapping[str, str],
    labels: Sequence[str] | None,
) -> str:
    """What the columns are, in one line."""
    parts = [f"verdicts in {join(list(judged))}"]
    parts.append(f"people's labels in {join(list(people))}" if people else "no people's labels")
    for target, what in _SHOWN.items():
        if (source := roles.get(target, ":"))[:1] != ":" and source != ROW:
            parts.append(f"{what} in {join(source.split(','))}")
    if labels:
        parts.append(f"labels {', '.join(labels)}")
    return f"{name}: {size} rows; {'; '.join(parts)}"
