"""A judge's verdicts on a task, read from a run's folder or a table: `Verdicts`.

Estimates, comparisons of two times and labelling start from `read_verdicts`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from judgesense.errors import JudgeSenseError
from judgesense.files.data import RUNS, Data, materialise
from judgesense.files.tables import SUFFIXES, is_dataset
from judgesense.files.typed_rows import number_of
from judgesense.importers.values import USUAL_PAIRS, fold, is_label, with_other
from judgesense.importers.verdict_table import (
    NUMBERS,
    VerdictTable,
    import_of_tool,
    ordered,
    read_verdict_table,
)
from judgesense.log.answers import Answers
from judgesense.log.array import label_shares
from judgesense.log.folder import read_run
from judgesense.log.rows import AnswerRows
from judgesense.statistics.arrays import Codes, Floats, Words
from judgesense.statistics.bias import TIES
from judgesense.statistics.result import data_frame
from judgesense.tasks import UNCLEAR, UNDECIDED, is_scale

K = TypeVar("K")

GOOD = frozenset(good for good, _ in USUAL_PAIRS)
"""Words that are the good one of two labels."""


@dataclass(frozen=True, eq=False)
class Verdicts:
    """The verdicts of one judge on one task: n answers to equivalent prompts, repeats included.

    Arrays have shape (n,). ``verdict`` and ``gold`` are labels in the item's own order; ``verdict``
    is UNCLEAR, REFUSED or ERROR without a decision, ``gold`` "" where it is unknown. ``system``
    names the system that wrote the output, or both systems of a comparison as ``A|B``; "" without
    one. ``cluster`` is the id of what outputs share, the item by default. ``repeat`` counts answers
    to the same prompt from 0.

    ``labels`` is the decision space in order, as the source states it (``is_stated``) or as its
    verdicts show it; then some labels may never have been given. ``judge``, ``task`` and
    ``scoring`` are "" where the source names none. ``left_out`` are wordings of the source without
    rows here.
    """

    source: str
    judge: str
    task: str
    scoring: str
    labels: tuple[str, ...]
    is_stated: bool
    item: Words
    system: Words
    wording: Words
    order: Words
    repeat: Codes
    cluster: Words
    verdict: Words
    gold: Words
    answers: Answers
    rows: AnswerRows
    """The same answers, row by row."""
    left_out: tuple[str, ...] = ()
    table: VerdictTable | None = None
    """The table that the verdicts are from; None for a run's folder."""

    def __len__(self) -> int:
        return len(self.item)

    @property
    def notes(self) -> list[str]:
        """What a person should know about recognised columns, as at most one sentence."""
        if self.table is None or not self.table.recognised:
            return []
        columns = ",".join(f"{ours}={theirs}" for ours, theirs in self.table.recognised.items())
        return [f"the columns of {self.source} are read as {columns}"]

    @property
    def is_numeric(self) -> bool:
        """Whether every label is a number."""
        return all(number_of(label) is not None for label in self.labels)

    @cached_property
    def is_comparison(self) -> bool:
        """Whether verdicts choose between two systems: every ``system`` names two (``A|B``)."""
        return all(name.count("|") == 1 for name in self.system)

    @cached_property
    def prompt(self) -> Words | None:
        """The ids of the prompts; None for a table, which does not have their text."""
        if self.table is not None:
            return None
        return np.array(self.rows.column("prompt_id").to_pylist(), dtype=object)

    @cached_property
    def margin(self) -> Floats:
        """How much more probable the verdict is than the next label, in [0, 1]; NaN if unknown."""
        if self.table is None:
            nats = np.array(self.rows.column("margin").to_pylist(), dtype=float)
            return np.tanh(nats / 2)
        margins = self.table.numbers["margin"][self.rows.log_rows]
        # Files of 0.2 have nats, in which only an unsure verdict is below 1.
        return np.where(margins > 1, np.tanh(margins / 2), margins)

    @cached_property
    def score(self) -> Floats:
        """The expected score on a scale; NaN if unknown."""
        if self.table is not None:
            return self.table.numbers["score"][self.rows.log_rows]
        task, shares = self.answers.task, None
        if task.ordinal and is_scale(task.labels) and len(self):
            shares = label_shares(self.answers, self.rows.log_rows)
        if shares is None:
            return np.full(len(self), np.nan)
        scores: Floats = shares @ np.array([float(label) for label in task.labels])
        return scores

    def first_rows(self, *columns: str) -> dict[tuple[str, ...], int]:
        """What some columns hold -> the row of the first answer there, in the order of repeats."""
        rows = np.argsort(self.repeat, kind="stable")
        keys = zip(*(getattr(self, name)[rows].tolist() for name in columns), strict=True)
        return first_rows(keys, rows.tolist())

    def good(self, positive: str | None = None) -> str | None:
        """The label that counts as 1 in `values`; None on a scale of numbers.

        Raises JudgeSenseError if it has to be named with ``positive``.
        """
        if positive is not None:
            if (label := is_label(positive, self.labels)) == UNCLEAR:
                raise JudgeSenseError(
                    f"{self.source}: {positive!r} is not among its verdicts "
                    f"({', '.join(self.labels)})"
                )
            return label
        if self.is_comparison or (self.is_numeric and {*self.labels} != {"0", "1"}):
            return None
        good = [label for label in self.labels if fold(label) in GOOD]
        if len(good) != 1 or len(self.labels) > 2:
            raise JudgeSenseError(
                f"{self.source}: which verdict counts as good? Set --positive to one of "
                f"{', '.join(self.labels)}, or name both systems of a comparison in system_id (A|B)"
            )
        return good[0]

    def values(self, positive: str | None = None) -> Floats:
        """Each verdict as a number, shape (n,); NaN without a decision.

        On a scale, the expected ``score`` where there is one, else the number; for two labels, 1
        for the good one; in a comparison, 1 for the first system, 0 for the second and 0.5 for a
        tie. Raises JudgeSenseError for labels that are not numbers, without ``positive``.
        """
        values = self.numbers_of(self.verdict, positive)
        if self.good(positive) is None and not self.is_comparison:
            undecided = np.isnan(self.score) | np.isin(self.verdict, UNDECIDED)
            values = np.where(undecided, values, self.score)
        return values

    def numbers_of(self, labels: Iterable[str | None], positive: str | None = None) -> Floats:
        """Labels as numbers, as in `values`, shape (n,); NaN for None and for what is no label."""
        labels = list(labels)
        distinct = {label for label in labels if label}
        meaning: dict[str, float]
        if self.is_comparison and positive is None:
            first, second = [label for label in self.labels if label not in TIES][:2]
            meaning = {first: 1.0, second: 0.0, **dict.fromkeys(TIES, 0.5)}
        elif (good := self.good(positive)) is not None:
            meaning = {label: float(label == good) for label in self.labels}
        else:
            numbers = {label: number_of(label) for label in distinct}
            meaning = {label: value for label, value in numbers.items() if value is not None}
        labels_known = tuple(meaning)
        values = {label: meaning.get(is_label(label, labels_known)) for label in distinct}
        return np.array([values.get(label or "") for label in labels], dtype=float)

    def to_pandas(self) -> Any:
        """The verdicts as a `pandas.DataFrame`, one row each."""
        names = ("item", "system", "cluster", "wording", "order", "repeat", "verdict", "gold")
        columns = {name: getattr(self, name) for name in (*names, *NUMBERS)}
        return data_frame({**columns, "judge": self.judge, "task": self.task})


def first_rows(keys: Iterable[K], rows: Iterable[int]) -> dict[K, int]:
    """The first row of each key.

    >>> first_rows("aba", [4, 5, 6])
    {'a': 4, 'b': 5}
    """
    firsts: dict[K, int] = {}
    for key, row in zip(keys, rows, strict=True):
        firsts.setdefault(key, row)
    return firsts


def read_verdicts(
    source: Data,
    *,
    judge: str | None = None,
    task: str | None = None,
    scoring: str | None = None,
    columns: Mapping[str, str] | None = None,
) -> Verdicts:
    """Read the verdicts of one judge on one task.

    Args:
        source: a file of ``judgesense judge`` or your own (Parquet, JSONL, CSV, TSV), a list of
            dicts, a DataFrame or a ``datasets.Dataset``, with at least ``item_id`` and ``verdict``;
            rows in memory are kept in a file in ``runs``. Or the folder of a run or an
            import, whose equivalent wordings are all read.
        judge: a judge of the source, with or without its fingerprint; needed if it has several.
        task: a task of the source; needed if it has several.
        scoring: ``options`` or ``generate``, for a run with both (options).
        columns: your names of the columns, ``{"verdict": "rating"}``. Usual names are recognised,
            as ``judgesense check`` does.

    Returns:
        The verdicts, in the source's order. An empty ``verdict`` is a failed request.

    Raises:
        JudgeSenseError: no such source, a missing column, a row that does not fit (file, row and
            field are named), a verdict on the same output twice, or several judges or tasks of
            which none is named.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "mine.csv")
    ...     _ = file.write_text("item_id,system_id,verdict\\n1,a,YES\\n1,b,NO\\n")
    ...     read_verdicts(file).values().tolist()
    [1.0, 0.0]
    """
    path = materialise(source, RUNS, "verdicts")
    if path.is_dir() and not is_dataset(path):
        return verdicts_of(
            select_answers(read_run(path).judged, judge, task, scoring, str(path)), path
        )
    if not path.exists():
        raise JudgeSenseError(
            f"no file or folder {path}; name a file of verdicts ({', '.join(SUFFIXES)}) or the "
            "--out folder of a run"
        )
    if not columns and (out := import_of_tool(path, RUNS)) is not None:
        answers = select_answers(read_run(out).judged, judge, task, None, str(path))
        return verdicts_of(answers, path)
    return verdicts_in(read_verdict_table(path, judge, columns), path, judge, task)


def verdicts_in(table: VerdictTable, path: Path, judge: str | None, task: str | None) -> Verdicts:
    """The verdicts of a judge on a task in a table. Raises JudgeSenseError as `select_answers`."""
    return verdicts_of(
        select_answers(table.answers, judge, task, None, str(path)), path, table=table
    )


def verdicts_of(
    answers: Answers,
    path: Path,
    *,
    table: VerdictTable | None = None,
    left_out: Collection[str] = (),
    repeats: bool = True,
    as_shown: bool = False,
) -> Verdicts:
    """The verdicts of a judge: all of its answers, or the first to each prompt.

    Those under the wordings in ``left_out`` are left out. With ``as_shown``, labels name the
    options as they were shown, as in the log.
    """
    rows = answers.as_rows(repeats=repeats)
    if left_out:
        rows = AnswerRows.at(answers.log, rows.log_rows[~np.isin(rows.template, [*left_out])])
    names = {} if table is None else table.columns
    system = np.array(rows.column("system_id").fill_null("").to_pylist(), dtype=object)
    stated = zip(rows.column("cluster_id").to_pylist(), rows.item, strict=True)
    # Items of the same text share the cluster of the first.
    codes, names_of_codes = rows.cluster.tolist(), dict[int, str]()
    for code, (cluster_id, name) in zip(codes, stated, strict=True):
        names_of_codes.setdefault(code, cluster_id or name)
    cluster = np.array([names_of_codes[code] for code in codes], dtype=object)
    verdict, gold = rows.label, rows.gold
    if (table is None or table.as_shown) and not as_shown:
        verdict, gold = (_in_own_order(answers, rows, labels) for labels in (verdict, gold))
    item = rows.item
    if "system_id" in names:
        # The log's item is the table's item with its system.
        names_of = zip(item, system, strict=True)
        item = np.array([name.removesuffix(f"/{of}") for name, of in names_of], dtype=object)
    return Verdicts(
        source=str(path),
        judge=answers.judge if table is None or "judge" in names else "",
        task=answers.task.name if table is None or "task" in names else "",
        scoring=answers.scoring if table is None else "",
        labels=answers.task.labels if table is None else _labels_given(verdict, gold),
        is_stated=table is None,
        item=item,
        system=system,
        wording=rows.template,
        order=rows.order,
        repeat=rows.repeat,
        cluster=cluster,
        verdict=verdict,
        gold=gold,
        answers=answers,
        rows=rows,
        left_out=tuple(sorted(left_out)),
        table=table,
    )


def _in_own_order(answers: Answers, rows: AnswerRows, labels: Words) -> Words:
    """Labels in the item's own order: in BA the two labels of a choice change places."""
    task = answers.task
    if not task.comparative or len(task.labels) < 2:
        return labels
    first, second = task.labels[:2]
    swapped = np.select([labels == first, labels == second], [second, first], labels)
    return np.where(rows.order == "BA", swapped, labels).astype(object)


def _labels_given(verdict: Words, gold: Words) -> tuple[str, ...]:
    """The labels of some verdicts and gold labels, in order.

    Beside a single label of a usual pair, the other one is a label too.
    """
    labels = {*verdict, *gold} - {"", *UNDECIDED}
    if len(labels) == 1 and not labels & {*TIES}:
        labels.update(with_other(*labels) or ())
    return ordered(labels)


def select_answers(
    candidates: Sequence[Answers],
    judge: str | None,
    task: str | None,
    scoring: str | None,
    source: str,
) -> Answers:
    """The answers of a judge on a task under a scoring, by default options.

    Raises JudgeSenseError if one is not there, or if there are several and none is named.
    """
    scorings = sorted({answers.scoring for answers in candidates})
    if scoring not in (None, *scorings):
        raise JudgeSenseError(
            f"{source} has no scoring {scoring!r}; choose from {', '.join(scorings)}"
        )
    candidates = [answers for answers in candidates if scoring in (None, answers.scoring)]
    # Options carry probabilities: they come first where a run has both.
    candidates.sort(key=lambda answers: answers.scoring != "options")
    candidates = select(candidates, "task", lambda answers: answers.task.name, task, source)
    return select(candidates, "judge", lambda answers: answers.judge, judge, source)[0]


def select(
    candidates: Sequence[Answers],
    what: str,
    name_of: Callable[[Answers], str],
    wanted: str | None,
    source: str,
) -> list[Answers]:
    """The answers of the judge or task (``what``) that is ``wanted``, by default the only one.

    A judge may be named without its fingerprint. Raises JudgeSenseError if it is not there, or if
    there are several and none is named.
    """
    names = list(dict.fromkeys(map(name_of, candidates)))
    fits = [name for name in names if wanted in (None, name)]
    fits = fits or [name for name in names if name.split("@")[0] == wanted]
    if len(fits) != 1:
        problem = f"has several {what}s" if fits else f"has no {what} {wanted!r}"
        raise JudgeSenseError(
            f"{source} {problem}; choose one with --{what}: {', '.join(fits or names)}"
        )
    return [answers for answers in candidates if name_of(answers) == fits[0]]
