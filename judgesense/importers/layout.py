"""How the columns of a file are laid out, and the steps that make its rows one row a verdict."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from judgesense.errors import JudgeSenseError
from judgesense.files.tables import Rows
from judgesense.importers.choices import Choices, as_sides, choices_of, concluded, winners_of
from judgesense.importers.column_names import Column, Columns, columns_of
from judgesense.importers.columns import CONVERSATION, ORDER, ROW, VERDICT
from judgesense.importers.conversations import conversation_of, with_beginnings
from judgesense.importers.criteria import OnTheirTask, criteria_of, require_one_criterion
from judgesense.importers.label_space import concludes
from judgesense.importers.numbers import contradictions, is_range, rescaled
from judgesense.importers.recognise import own_label, recognise
from judgesense.importers.repeats import RepeatSteps
from judgesense.importers.roles import with_part
from judgesense.importers.shape import Shape, Step, shape_of, through
from judgesense.importers.values import fold
from judgesense.text import join

_OWN_LABEL = (
    "no labels from people: {0!r} beside a score and its explanation, or one that says the same in "
    "each row, is the judge's. If people gave it, add --human {0}"
)


class Layout(NamedTuple):
    """What the columns of a file are after its steps: those of verdicts, of people's labels, and
    column of the decision log -> column.

    ``mapping`` are words of verdicts and labels, ``steps`` makes the steps anew for each pass over
    the file, and ``choices`` says how its choices between two are read.
    """

    found: dict[str, Column]
    size: int
    judged: list[str]
    people: list[str]
    roles: dict[str, str]
    mapping: dict[str, str]
    steps: Callable[[], Sequence[Step]]
    choices: Choices | None
    rescaled: bool = False
    """Whether the user said on which scales the scores are."""


class _Options(NamedTuple):
    """What is known of a file before its steps: people's columns of other files, whether it is a
    log or a table of verdicts, and whether the user names its clusters."""

    joined: Collection[str]
    is_log: bool
    is_table: bool
    has_cluster: bool


def lay_out(
    read: Callable[[], Iterable[Rows]],
    where: str,
    notes: list[str],
    *,
    joined: Mapping[str, Mapping[str, str]] | None = None,
    mapping: Mapping[str, str] | None = None,
    is_log: bool = False,
    people: Sequence[str] = (),
    verdicts: Sequence[str] = (),
    columns: Mapping[str, str] | None = None,
    flag: str = "--verdict ",
) -> Layout:
    """How the rows of a file are laid out; what is given is taken as it is.

    ``verdicts``, ``people`` and ``columns`` are those of `recognise`, ``joined`` people's labels
    from other files, by person and item. In a log of another tool (``is_log``) verdicts and their
    roles are known. Raises JudgeSenseError for an unknown column, and without verdicts.
    """
    columns = dict(columns or {})
    roles_named = (columns[name] for name in ("raw_decision", "gold", "task") if name in columns)
    named = [*verdicts, *people, *(name for name in roles_named if name[:1] != ":")]
    pairs = criteria_of(verdicts, people)
    shape, found, size = (
        (Shape(), *columns_of(read()))
        if is_log
        else shape_of(read, [*named, *columns.values()], named, pairs, where)
    )
    if pairs and shape.has_tasks:
        verdicts, people = (), ()  # They are columns of the step now.
    notes += shape.notes
    added = _joined(joined or {}, found, size, where)
    found = {**found, **added}
    if not named and not is_log and (own := own_label(found, shape.rows(read()))):
        verdicts = [own]
        notes.append(_OWN_LABEL.format(own))
    judged, asked, roles = recognise(
        found,
        where,
        notes,
        verdicts=verdicts,
        people=[*added, *(people or shape.people)],
        columns={**shape.added, **columns},
        is_log=is_log,
        flag=flag,
    )
    given = verdicts or shape.people or is_log or (people and len(judged) == 1)
    if not given and OnTheirTask.of(found, asked, roles, where) is None:
        require_one_criterion(judged, asked, where)
    if not is_log and "margin" in found and "raw_decision" not in judged:
        roles.setdefault("margin", ":")  # In a file of `judge` it is a probability, not in nats.
    if len(judged) == 1 and (text := contradictions(found, judged[0], shape.rows(read()))):
        notes.append(text)
    if shape.has_tasks and asked and not shape.people:
        notes.append(
            f"{join([*map(repr, asked)])} {'are' if asked[1:] else 'is'} on none of the criteria: "
            "each is compared with the whole, which is no agreement on the criterion"
        )
    layout = Layout(found, size, judged, asked, roles, dict(mapping or {}), list, None)
    options = _Options({*added}, is_log, flag.startswith("--columns"), "cluster_id" in columns)
    return _with_steps(read, layout, shape, options, where, notes)


def _with_steps(
    read: Callable[[], Iterable[Rows]],
    layout: Layout,
    shape: Shape,
    options: _Options,
    where: str,
    notes: list[str],
) -> Layout:
    """The layout after the steps that its columns need: verdicts in texts, labels of one task,
    scales, choices between two, winners' names, conversations and repeats. Raises JudgeSenseError
    as `lay_out`."""
    is_log = options.is_log
    found, judged, asked, roles = layout.found, layout.judged, layout.people, layout.roles
    steps, words, choices = list(shape.steps), layout.mapping, None

    def apply(step: Step) -> None:
        """Add a step; the columns are those after it."""
        steps.append(step)
        found.update(columns_of(through(steps, read()))[0])

    one = judged[0] in found and len(judged) == 1 and "order" in roles and not is_log
    if one and (labels := concludes(found[judged[0]], ())):
        apply(partial(concluded, name=judged[0], labels=labels))
        roles |= {"raw_text": judged[0], "raw_decision": VERDICT}
        judged = [VERDICT]
    if not is_log:
        inside = [name for name in asked if name not in options.joined]
        rows = through(steps, read())
        choices = choices_of(
            rows, found, judged, inside, roles, words, notes, where, is_table=options.is_table
        )
    if choices is None and "order" in shape.added:
        raise JudgeSenseError(
            f"{where}: {shape.notes[-1]}, but {found[judged[0]].shown} are no choices between two; "
            "say which is which: --map FIRST=model_a,SECOND=model_b, or name one with --verdict"
        )
    scales = {key: value for key, value in words.items() if is_range(key) and is_range(value)}
    words = {key: value for key, value in words.items() if key not in scales}
    if on_tasks := OnTheirTask.of(found, asked, roles, where):
        apply(on_tasks)
    if scales:
        apply(partial(rescaled, names=judged, scales=scales))
    if choices is not None:
        roles["order"] = ORDER
        _name_pairs(choices, found, roles)
        apply(choices)
        words = {key: word for key, word in words.items() if fold(key) not in choices.sides}
    elif sides := winners_of(found, judged, asked, roles):
        apply(partial(as_sides, names=[*judged, *asked], sides=sides))
        notes.append(f"winners are named by {join([*map(repr, sides)])}")
    if not is_log and not options.has_cluster:
        item, cluster = conversation_of(found, roles, notes)
        if cluster is not None:
            roles["cluster_id"] = cluster
        if cluster == CONVERSATION:
            apply(partial(with_beginnings, item=item))
    repeats = RepeatSteps(steps, found, judged, roles, is_log)
    size = repeats.count(read(), notes) or layout.size
    return Layout(found, size, judged, asked, roles, words, repeats, choices, bool(scales))


def _joined(
    labels: Mapping[str, Mapping[str, str]], found: Columns, size: int, where: str
) -> dict[str, Column]:
    """The labels of each person in other files, as a column beside those of the file."""
    added: dict[str, Column] = {}
    for rater, by_item in labels.items():
        if rater in found:
            raise JudgeSenseError(f"{where}: {rater!r} names a column and a person; rename one")
        added[rater] = Column()
        added[rater].add([*by_item.values(), *[None] * max(0, size - len(by_item))])
    return added


def _name_pairs(choices: Choices, found: Columns, roles: dict[str, str]) -> None:
    """Where a file names both systems, an item is a pair of them, and the question a cluster."""
    if choices.names is None or "system_id" in roles:
        return
    pair = f"{{{choices.names[0]}}}|{{{choices.names[1]}}}"
    roles["system_id"] = pair
    if roles["item_id"] != ROW and any(len(found[n].texts) > 1 for n in choices.names):
        roles.setdefault("cluster_id", roles["item_id"])
        roles["item_id"] = with_part(roles["item_id"], pair)
