"""Scores of tracing and annotation tools: models' are verdicts, people's are labels.

Each name of a score is a task. `judgesense.importers.tools` knows what each tool calls the parts of
a score, and where it keeps them.
"""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from judgesense.errors import JudgeSenseError
from judgesense.files.documents import read_json
from judgesense.files.tables import Record, in_rows, read_table
from judgesense.importers import Importer, Items
from judgesense.importers.column_names import MOST_LABELS, header_key
from judgesense.importers.rows import texts_of
from judgesense.importers.tools import (
    CODE,
    CODE_NAMES,
    END_USER,
    KEYS,
    NESTED,
    PEOPLE,
    field_of,
    kind_of,
    rows_in,
    scores_in,
)
from judgesense.importers.values import fold, number_in, parsed, word_of
from judgesense.importers.who import JUDGE, matched, tokens, who
from judgesense.importers.word_counts import comparable
from judgesense.text import join, plural_s

_ONE = ("passed", "pass", "verdict", "label", "score", "value", "correct")
"""Names of the one value of an evaluator's output that is its verdict."""
_LISTS = ("traces", "scores", "feedback", "annotations", "data", "results", "content")


@dataclass(frozen=True)
class Score:
    """A score of one item: who gave what, when, and why."""

    task: str
    item: str
    cluster: str
    kind: str
    who: str
    label: Any
    value: Any
    correction: Any
    why: str | None
    when: str
    error: str | None
    context: Mapping[str, Any]
    place: str

    def given(self, number: bool) -> Any:
        """The label, or the ``number``; the other one without it."""
        first, second = (self.value, self.label) if number else (self.label, self.value)
        return second if first is None else first

    @property
    def said(self) -> tuple[object, ...]:
        """What two records of one score share."""
        return self.label, self.value, self.error, self.when

    @property
    def words(self) -> list[str]:
        """What it says, folded."""
        return [fold(word) for each in (self.label, self.value) if (word := word_of(_text(each)))]

    @property
    def is_by_person(self) -> bool:
        """Whether a person gave it."""
        return bool(PEOPLE.fullmatch(self.kind))


def read(path: Path, items: Items, pick: str | None) -> Iterator[Record]:
    """One record for each score of a model, with people's scores of the same name beside it.

    People's scores of another name are those of `_tasks_of_people`. ``pick`` names
    one of several scores. The same score twice is one, and a newer one replaces it. Raises
    JudgeSenseError for a row that is no score, and for a file without a model's.
    """
    scores = _newest(list(_scores(path, items)), items)
    judged = [score for score in scores if not score.is_by_person]
    users = Counter(each.task for each in judged if _is_of_users(each))
    if len(users) < len({each.task for each in judged}):
        judged = [each for each in judged if not _is_of_users(each)]
        for name, count in users.items():
            items.notes.append(
                f"{count} score{plural_s(count)} {name!r} by users are neither verdicts nor labels"
            )
    if not judged:
        raise JudgeSenseError(f"{path}: every score is by a person; export the evaluators' too")
    judged = _with_models(judged)
    names = list(dict.fromkeys(score.task for score in judged))
    if pick not in (None, *names):
        raise JudgeSenseError(
            f"{path}: no score {pick!r}; choose one with --pick: {', '.join(names)}"
        )
    labels: dict[tuple[str, str], dict[str, Score]] = {}
    people = [score for score in scores if score.is_by_person]
    tasks = _tasks_of_people(judged, people, pick, items)
    on_trace: dict[tuple[str, str], set[str]] = {}
    for score in judged:
        on_trace.setdefault((score.task, score.cluster), set()).add(score.item)
    unmatched = 0
    for score in people:
        if task := tasks[score.task]:
            # A person labels the trace of which a judge's score is on the one step, or the reverse.
            items_of = on_trace.get((task, score.cluster), set())
            one = len(items_of) == 1 and score.cluster in (score.item, *items_of)
            item = next(iter(items_of)) if one else score.item
            labels.setdefault((task, item), {})[score.who] = score
            unmatched += item not in items_of
    if unmatched:
        items.notes.append(
            f"{unmatched} score{plural_s(unmatched)} by people on what no evaluator scored"
        )
    corrected = sum(score.correction is not None for score in judged)
    if corrected:
        items.questions.append(
            f"{path}: people corrected {corrected} of {len(judged)} scores, and nothing says "
            "whether they looked at the others. If they did and agreed, add --human "
            f"{_CORRECTED}; if not, the corrections are no sample of its errors: --pick "
            f"{shlex.quote(judged[0].task)} reads the verdicts alone"
        )
    beside = [(task, each) for (task, _), by in labels.items() for each in by.values()]
    # One side's labels do not compare with the other's numbers; the numbers of both do.
    numbers = {
        task
        for task, each in [*((each.task, each) for each in judged), *beside]
        if each.label is None and each.value is not None
    }
    for score in judged:
        if pick in (None, score.task):
            yield Record(
                {
                    **score.context,
                    "judge": score.who,
                    "task": score.task,
                    "template_id": "as judged",
                    "item_id": score.item,
                    "cluster_id": score.cluster,
                    "repeat": items.repeat(score.who, score.task, score.item),
                    "raw_decision": None if score.error else score.given(score.task in numbers),
                    "raw_text": score.why,
                    "error": score.error,
                    **({_CORRECTED: _corrected(score, score.task in numbers)} if corrected else {}),
                    **({"status": "error"} if score.error else {}),
                    "people": {
                        who: each.given(score.task in numbers)
                        for who, each in labels.get((score.task, score.item), {}).items()
                    },
                },
                score.place,
            )


_CORRECTED = "corrected"
"""The column with what a person said instead of a verdict, or with the verdict."""


def _corrected(score: Score, number: bool) -> Any:
    return score.given(number) if score.correction is None else score.correction


def _with_models(judged: list[Score]) -> list[Score]:
    """Scores that name no model, given by the only model that others of their name state."""
    models: dict[str, set[str]] = {}
    for score in judged:
        models.setdefault(score.task, set()).add(score.who)
    return [
        replace(score, who=(models[score.task] - {score.task}).pop())
        if score.who == score.task and len(models[score.task]) == 2
        else score
        for score in judged
    ]


def _tasks_of_people(
    judged: list[Score], people: list[Score], pick: str | None, items: Items
) -> dict[str, str | None]:
    """The name of people's scores -> that of the evaluators' scores which they label, if any.

    It is the same name, one that differs by who scored or has a word in common, or that of the only
    pair whose values compare.
    """
    ours, theirs = _words_by_name(judged), _words_by_name(people)
    names = [name for name in ours if pick in (None, name)]
    stems = {_stem(name): name for name in reversed(names)}
    pairs = matched(stems, map(_stem, theirs))
    tasks = {
        name: name if name in names else stems.get(pairs.get(_stem(name), "")) for name in theirs
    }
    for numbers in (False, True):
        left = [name for name, task in tasks.items() if task is None]
        fits = [
            (name, task)
            for name in left
            for task in names
            if task not in tasks.values() and _compare(ours[task], theirs[name], numbers)
        ]
        if judges := [pair for pair in fits if who(pair[1]) == JUDGE]:
            fits = judges  # Beside a scorer that only counts: LLMJudgeScorer.
        named = all(_PERSON.match(name) for name, _ in fits)
        for pair in fits:
            if all(sum(each in other for other in fits) == 1 for each in pair[: 2 - named]):
                tasks[pair[0]] = pair[1]
    for name, task in tasks.items():
        if task not in (None, name):
            items.notes.append(f"scores {name!r} by people are read as labels of {task!r}")
    for name in tasks:
        if tasks[name] is None:
            count = sum(each.task == name for each in people)
            items.notes.append(
                f"{count} score{plural_s(count)} {name!r} by people belong to no evaluator's score "
                "and are not used; give both the same name, or choose one with --pick"
            )
    return tasks


_PERSON = re.compile(r"(annotator|reviewer|rater)[ _.:-]", re.IGNORECASE)
"""The name of a score that is a person's, not a criterion's."""


def _words_by_name(scores: list[Score]) -> dict[str, set[str]]:
    words: dict[str, set[str]] = {}
    for score in scores:
        words.setdefault(score.task, set()).update(score.words)
    return words


def _compare(ours: set[str], theirs: set[str], numbers: bool) -> bool:
    """Whether some scores may be labels of others: few words on both sides, of one vocabulary, or
    ``numbers`` on both."""
    if numbers:
        return all(number_in(word) is not None for word in ours | theirs)
    few = max(len(ours), len(theirs)) <= MOST_LABELS and min(len(ours), len(theirs)) > 1
    return few and comparable(ours, theirs)


def _verdict_in(value: Any) -> Any:
    """The verdict in an evaluator's output: the output itself, or one value of an object."""
    if not isinstance(value, Mapping):
        return value
    named = [value[name] for name in _ONE if name in value]
    flags = [each for each in value.values() if isinstance(each, (bool, int, float))]
    return (named or (flags if len(flags) == 1 else [value]))[0]


def _is_of_users(score: Score) -> bool:
    return score.kind.upper() == "API" and bool(END_USER.search(header_key(score.task)))


def _stem(name: str) -> str:
    """A score's name without who scored: ``tone`` of ``tone_human``."""
    return "_".join(word for word in tokens(name) if who(word) is None)


def _rows(path: Path) -> Iterator[Record]:
    """The rows of the file: a table, or a JSON document with one list of objects."""
    if path.suffix.lower() != ".json" or not isinstance(file := read_json(path), dict):
        yield from read_table(path)
        return
    name = next((name for name in _LISTS if isinstance(file.get(name), list)), None)
    rows = [file] if name is None else file[name]
    for number, row in enumerate(rows, 1):
        if not isinstance(row, dict):
            raise JudgeSenseError(f"{path}, row {number}: expected a JSON object")
        yield Record(row, f"{path}, row {number}")


def _scores(path: Path, items: Items) -> Iterator[Score]:
    computed = dict[str, None]()
    flat = (
        (record, row)
        for record in _rows(path)
        for row in rows_in({name: parsed(value) for name, value in record.values.items()})
    )
    for record, row in flat:
        own = next(iter(scores_in(row)), None) is row
        for values in scores_in(row):
            name = field_of(values, "name")
            kind = kind_of(values, name)
            if CODE_NAMES.fullmatch(str(name)):
                computed[str(name)] = None
            if (
                kind in CODE
                # A person's new label replaces an old one; a judge's verdict that a person corrects
                # is still the judge's.
                or (values.get("valid") is False and PEOPLE.fullmatch(kind))
                or (name is None and "eventName" in row)
            ):
                continue
            if name is None or isinstance(name, (dict, list)):
                raise JudgeSenseError(f"{record.place}: expected a score with a name")
            named = field_of(row, "item")
            item = record.place.rpartition(" ")[2] if named is None else str(named)
            part = field_of(values, "part") if own else None
            error = field_of(values, "error")
            who = field_of(values, "who") or (name if kind == "HUMAN" else "1")
            task = re.sub(r"^wandb\.(?:annotation|runnable)\.([^:]*).*", r"\1", str(name))
            model = field_of(values, "model")
            # Langfuse numbers the categories of a label in the order of its configuration.
            coded = values.get("dataType") == "CATEGORICAL"
            judge = str(model or (who if kind == "LLM_JUDGE" else task))
            yield Score(
                task=task,
                item=item if part in (None, item) else f"{item}/{part}",
                cluster=item,
                kind=kind,
                who=f"annotator_{re.sub(r'[^0-9A-Za-z]+', '_', str(who))}"
                if PEOPLE.fullmatch(kind)
                else judge,
                label=field_of(values, "label"),
                value=None if coded else _verdict_in(field_of(values, "value")),
                correction=_verdict_in(values.get("correction")),
                why=None if (why := field_of(values, "why")) is None else str(why),
                when=str(field_of(values, "when") or ""),
                error=None if error is None else str(error)[:200],
                context={} if own else _context(row),
                place=record.place,
            )
    if computed:
        items.notes.append(f"{join([*map(repr, computed)])}: computed by code, no judge's verdicts")


def _context(row: Mapping[str, Any]) -> dict[str, Any]:
    """What a row says about its item, beside its scores."""
    flat = {**row, **(info if isinstance(info := row.get("info"), Mapping) else {})}
    taken = {"info", "judge", "task", "people", "status", "error", "order", "repeat", "gold"}
    scores = {name.rpartition(".")[2] for name in NESTED} | {"data", "spans", "predictions"}
    kept = {name: value for name, value in flat.items() if name not in taken | scores}
    return {
        name: {k: v for k, v in value.items() if k not in scores}
        if isinstance(value, Mapping)
        else value
        for name, value in kept.items()
        if value != ""
    }


def _newest(scores: list[Score], items: Items) -> list[Score]:
    """The scores without copies; of one's scores of an item, the newest if they have times."""
    kept: dict[tuple[object, ...], Score] = {}
    copies = replaced = 0
    for number, score in enumerate(scores):
        key: tuple[object, ...] = (score.task, score.item, score.who, score.kind)
        earlier = kept.get(key)
        if earlier is None:
            kept[key] = score
        elif earlier.said == score.said:
            copies += 1
        elif score.when and earlier.when:
            replaced += 1
            kept[key] = max(earlier, score, key=lambda each: each.when)
        elif score.is_by_person:
            replaced += 1
            kept[key] = score
        else:
            kept[(*key, number)] = score
    if copies:
        items.notes.append(f"{copies} score{plural_s(copies)} recorded twice count once")
    if replaced:
        items.notes.append(f"{replaced} score{plural_s(replaced)} replaced by a newer one")
    return list(kept.values())


def _text(value: Any) -> str | None:
    texts: list[str | None] = texts_of([value]) or [None]
    return texts[0]


IMPORTER = Importer(
    summary="scores and feedback of tracing tools (CSV, JSON or JSON lines)",
    patterns=("*.csv", "*.json", "*.jsonl", "*.parquet"),
    read=lambda *asked: in_rows(read(*asked)),
    has_pick=True,
    keys=("traces", "content", "resourceSpans", "resourceLogs"),
    row_keys=KEYS,
)
