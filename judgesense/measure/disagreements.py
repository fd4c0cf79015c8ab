"""Where a judge is wrong, wavers or cannot be read: a row per item, and the groups that fare worse.

The rows are in ``disagreements.csv`` and in the page; the assessment has their numbers and the
groups.
"""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from judgesense.errors import JudgeSenseError
from judgesense.files.disk import write_text
from judgesense.files.tables import cell_text, csv_text
from judgesense.log.answers import Answers, cube_of, has_foreign_gold
from judgesense.measure.assessment import SubjectFields
from judgesense.measure.details import ROW
from judgesense.measure.disputes import disputes_of
from judgesense.measure.figures import GroupFigures, GroupShare, WhereWrong
from judgesense.measure.people import judged_rows
from judgesense.measure.raters import Raters, in_item_order
from judgesense.measure.texts import LONGEST_TEXT
from judgesense.measure.thresholds import SIGNIFICANT
from judgesense.measure.words import ItemWords, columns_of_items
from judgesense.statistics.arrays import Bools, Codes, Floats, Words
from judgesense.statistics.intervals import wilson_cluster
from judgesense.tasks import ERROR

FILE = "disagreements.csv"
SECOND_LOOK = "second_look.csv"
"""The items of a task whose label is in doubt, to be labelled again without it."""

WRONG, BY_WORDING, BY_ORDER, UNREADABLE, NEAR_MARGIN, DOUBTED = KINDS = (
    "wrong",
    "flipped by wording",
    "flipped by order",
    "unreadable",
    "near the margin",
    "label in doubt",
)
"""Why an item is listed: at least half of its readable verdicts differ from the label; wordings or
option orders give it different verdicts; an answer has no verdict; the two most probable labels
are less than `NEAR` apart; or the judges and all other people agree against one person's label
(`judgesense.measure.raters.Raters.doubted`)."""

NEAR = 0.2
"""A margin, as a difference of probabilities: 60% against 40%."""

SPLIT = "split"
"""The verdict of an item whose wordings have no majority."""

MOST_GROUPS = 12
"""A column with more values than that groups nothing."""

MOST_RIGHT = 20_000
"""Rows of a judge and task on which nothing is wrong; the page has them, the file does not."""

LENGTH = "length of the text"
"""The grouping of items by the length of their text."""

_JSON = ("verdicts", "answers", "people")


@dataclass(frozen=True)
class Disagreement(SubjectFields):
    """A row of ``disagreements.csv``, whose columns are its fields; those of an imported file, its
    ``columns``, follow. Without ``kinds``, nothing is wrong, and the file does not have the row.

    ``verdicts`` and ``answers`` have what each wording got, ``people`` each person's label: JSON
    objects in the file. ``answers`` are the judge's texts where they say more than the verdict.
    ``margin`` is the difference between the two largest option probabilities, averaged over
    wordings; None without probabilities. In order BA verdict and label name the option as shown.
    ``text`` is the prompt of a run. ``shares`` are the
    probabilities of the wordings' verdicts, where there are any, and ``groups`` the item's groups
    by what no column says; the file does not have them.
    """

    item_id: str
    order: str
    kinds: tuple[str, ...]
    label: str | None
    verdict: str | None
    margin: float | None
    verdicts: Mapping[str, str]
    answers: Mapping[str, str]
    people: Mapping[str, str]
    text: str | None
    columns: Mapping[str, str]
    shares: Mapping[str, float] = field(default_factory=dict)
    groups: Mapping[str, str] = field(default_factory=dict)


COLUMNS = tuple(
    each.name for each in fields(Disagreement) if each.name not in ("columns", "shares", "groups")
)

Listed = tuple[Disagreement, Mapping[str, int]]
"""A row whose texts are still missing, and the row of the log with the answer of each wording."""


def where_wrong(
    answers: Answers,
    mislabelled: Collection[str] = (),
    items: pa.Table | None = None,
    lengths: Mapping[str, int] | None = None,
    disagreements: list[Listed] | None = None,
    run_id: str = "-",
    people: pa.Table | None = None,
    words: Callable[[str], ItemWords] | None = None,
) -> WhereWrong:
    """What is wrong with a judge's verdicts, and what the items have in common on which it is.

    The templates ``mislabelled`` are left out, as in the `right` check. ``items`` are other columns
    of an imported file (`judgesense.log.folder.ITEM_SCHEMA`), ``lengths`` the characters of
    each item's text. ``disagreements`` takes a row for each such item, the clearest cases first,
    then at most `MOST_RIGHT` others. Where ``people`` tie, each label that ties counts in part.
    ``words`` has the words of a task's items.
    """
    log = answers.log
    is_used = ~np.isin(log.templates, list(mislabelled))[log.template[answers.rows]]
    rows, decision = answers.rows[is_used], answers.decision[is_used]
    place, first, at = np.unique(
        log.item[rows] * len(log.orders) + log.order[rows], return_index=True, return_inverse=True
    )
    n, n_labels = len(place), len(log.labels)
    counts = np.bincount(at * n_labels + decision, minlength=n * n_labels).reshape(n, n_labels)
    decided = counts[:, ~log.undecided]
    gold = np.full(n, -1)
    if not has_foreign_gold(answers):
        has_gold = log.gold[rows] >= 0
        gold[at[has_gold][::-1]] = log.gold[rows][has_gold][::-1]
    total = decided.sum(axis=1)
    misses = total - np.where(gold >= 0, counts[np.arange(n), gold], total)
    shares_of_rows = _shares(answers, rows)
    margin = _margins(shares_of_rows, at, n)
    by_order = _flipped_by_order(answers, rows, decision)[place // len(log.orders)]
    kinds: dict[str, Bools] = {
        WRONG: (misses > 0) & (2 * misses >= total),
        BY_WORDING: (decided > 0).sum(axis=1) > 1,
        BY_ORDER: by_order,
        UNREADABLE: counts[:, log.undecided].sum(axis=1) > 0,
        NEAR_MARGIN: np.nan_to_num(margin, nan=1.0) < NEAR,
        DOUBTED: np.zeros(n, dtype=np.bool_),
    }
    raters = None
    if (gold >= 0).any() or people is not None:
        raters = Raters.of(answers, rows, people)
        kinds[DOUBTED] = np.isin(place // len(log.orders), raters.items[raters.doubted()])
    wrong = np.column_stack(list(kinds.values()))
    columns = columns_of_items(items, answers.task.name)
    answered = counts[:, log.labels != ERROR].sum(axis=1) > 0
    labelled = (gold >= 0) & answered
    good = (~(kinds[WRONG] | (total == 0))).astype(np.float64)
    if labelled.any() and (tied := _right_on_ties(answers, mislabelled, people, place)) is not None:
        labelled |= (is_tie := ~np.isnan(tied))
        good[is_tie] = tied[is_tie]
    disputes: dict[str, Any] = {}
    measure, used = "right", labelled
    if not labelled.any():
        measure, used = "same verdict", total > 1
        good = (~(kinds[BY_WORDING] | by_order)).astype(np.float64)
    items_at, item_of = np.unique(place[used] // len(log.orders), return_inverse=True)
    shares = np.bincount(item_of, good[used]) / np.maximum(np.bincount(item_of), 1)
    clusters = np.zeros(len(items_at), dtype=np.int64)
    clusters[item_of] = log.cluster[rows[first]][used]
    names_at = [log.items[code] for code in items_at]
    groups = _groupings(answers, rows, names_at, columns, lengths or {})
    if disagreements is not None:
        judged = (rows, decision, at, _of_verdict(answers, shares_of_rows, decision))
        named = {by: groups[by].tolist() for by in (LENGTH, "system") if by in groups}
        of_item = {
            item: {by: values[n] for by, values in named.items()} for n, item in enumerate(names_at)
        }
        rows_of_items = _rows(
            answers, run_id, wrong, place, judged, counts, gold, margin, columns, of_item
        )
        disagreements += rows_of_items
    if measure == "right" and raters is not None:
        read = ItemWords.none() if words is None else words(answers.task.name)
        disputes = disputes_of(raters.at(items_at), names_at, groups, read)
        labels = np.full(len(items_at), "", dtype=object)
        in_order = in_item_order(answers, gold[used], place[used] % len(log.orders))
        labels[item_of] = np.where(gold[used] < 0, "", log.labels[in_order])
        groups["label"] = labels
    compared: list[GroupFigures] = []
    if several := {by: names for by, names in groups.items() if len(set(names)) > 1}:
        from judgesense.statistics.groups import compare_groups

        compared = [GroupFigures(**row) for row in compare_groups(shares, several, clusters)]
    return WhereWrong(
        n_listed=int(wrong.any(axis=1).sum()),
        n_judged=n,
        kinds={kind: int(mask.sum()) for kind, mask in kinds.items()},
        measure=measure if len(items_at) else None,
        n_groups=len(compared),
        groups=tuple(row for row in compared if row.difference < 0 and row.p_holm <= SIGNIFICANT),
        shares=tuple(
            _share(by, name, shares[names == name], clusters[names == name])
            for by, names in groups.items()
            for name in dict.fromkeys(names.tolist())
            if name != ""
        ),
        **disputes,
    )


def _right_on_ties(
    answers: Answers, mislabelled: Collection[str], people: pa.Table | None, place: Codes
) -> Floats | None:
    """How far the verdicts are right at each place where people tie, NaN elsewhere; None without
    ties."""
    judged = judged_rows(answers, mislabelled).with_ties(people)
    if judged.parts is None:
        return None
    log, is_tied = answers.log, judged.parts < 1
    rows, parts = judged.rows[is_tied], judged.parts[is_tied]
    at = np.searchsorted(place, log.item[rows] * len(log.orders) + log.order[rows])
    hits = parts * (judged.verdict == judged.gold)[is_tied]
    whole = np.bincount(at, parts, minlength=len(place))
    with np.errstate(invalid="ignore"):
        shares: Floats = np.bincount(at, hits, minlength=len(place)) / whole
    return shares


def _share(by: str, name: str, good: Floats, clusters: Codes) -> GroupShare:
    found = wilson_cluster(good, clusters)
    return GroupShare(by, name, len(good), float(good.mean()), found.low, found.high)


def _rows(
    answers: Answers,
    run_id: str,
    wrong: Bools,
    place: Codes,
    judged: tuple[Codes, Codes, Codes, Floats | None],
    counts: Codes,
    gold: Codes,
    margin: Floats,
    columns: Mapping[str, Mapping[str, str]],
    groups: Mapping[str, Mapping[str, str]],
) -> Iterator[Listed]:
    """A row for each place at which one of `KINDS`, the columns of ``wrong``, holds; then others.

    ``judged`` are the log's rows, the verdict of each, its place and the verdict's probability.
    """
    log, (rows, decision, at, shares) = answers.log, judged
    is_listed = wrong.any(axis=1)
    places = np.flatnonzero(is_listed)
    places = places[
        np.lexsort((places, -np.nan_to_num(margin[places]), wrong[places].argmax(axis=1)))
    ]
    places = np.concatenate([places, np.flatnonzero(~is_listed)[:MOST_RIGHT]])
    by_place = np.argsort(at, kind="stable")
    ends = np.cumsum(np.bincount(at, minlength=len(place)))
    starts, ends = (bounds[places].tolist() for bounds in (ends - np.bincount(at), ends))
    # The commonest readable verdict; without any, the commonest reason for that.
    votes, readable = counts[places], counts[places][:, ~log.undecided].any(axis=1)
    votes[np.ix_(readable, log.undecided)] = 0
    tied = (votes == votes.max(axis=1, keepdims=True)).sum(axis=1) > 1
    verdict = np.where(tied, SPLIT, log.labels[votes.argmax(axis=1)])
    words, names = np.append(log.labels, ""), np.array(log.templates, dtype=object)
    wordings = names[log.template[rows[by_place]]].tolist()
    verdicts = words[decision[by_place]].tolist()
    source = log.table[ROW].to_numpy()[rows[by_place]].tolist()
    sure = None if shares is None else shares[by_place].round(4).tolist()
    for start, end, item_at, order_at, kinds, label, most, gap in zip(
        starts,
        ends,
        (place[places] // len(log.orders)).tolist(),
        (place[places] % len(log.orders)).tolist(),
        wrong[places].tolist(),
        words[gold[places]].tolist(),
        verdict.tolist(),
        margin[places].tolist(),
        strict=True,
    ):
        item = log.items[item_at]
        row = Disagreement(
            run_id=run_id,
            judge=answers.judge,
            task=answers.task.name,
            scoring=answers.scoring,
            item_id=item,
            order=log.orders[order_at],
            kinds=tuple(kind for kind, holds in zip(KINDS, kinds, strict=True) if holds),
            label=label or None,
            verdict=most,
            margin=None if math.isnan(gap) else round(gap, 4),
            verdicts=dict(zip(wordings[start:end], verdicts[start:end], strict=True)),
            answers={},
            people={},
            text=None,
            columns=columns.get(item, {}),
            shares={}
            if sure is None
            else {
                name: share
                for name, share in zip(wordings[start:end], sure[start:end], strict=True)
                if not math.isnan(share)
            },
            groups=groups.get(item, {}),
        )
        yield row, dict(zip(wordings[start:end], source[start:end], strict=True))


def _shares(answers: Answers, rows: Codes) -> Floats | None:
    """The probability of each label at the log's rows, shape (n, L), if any is known."""
    logprobs = answers.log.table["option_logprobs"]
    if not len(rows) or logprobs.null_count == len(logprobs):
        return None
    from judgesense.log.array import label_shares

    return label_shares(answers, rows)


def _of_verdict(answers: Answers, shares: Floats | None, decision: Codes) -> Floats | None:
    """The probability of the verdict at each of the log's rows, NaN where it is unknown."""
    if shares is None:
        return None
    label = answers.log.codes_of(answers.task.labels)[decision]
    return np.where(label < 0, np.nan, shares[np.arange(len(label)), label])


def _margins(shares: Floats | None, at: Codes, n: int) -> Floats:
    """The margin at each place as a difference of probabilities, NaN without any."""
    if shares is None or shares.shape[1] < 2:
        return np.full(n, np.nan)
    has_shares = ~np.isnan(shares[:, 0])
    sums = np.zeros((n, shares.shape[1]))
    np.add.at(sums, at[has_shares], shares[has_shares])
    size = np.bincount(at[has_shares], minlength=n)
    mean = np.sort(sums / np.where(size > 0, size, np.nan)[:, None], axis=1)
    gaps: Floats = mean[:, -1] - mean[:, -2]
    return gaps


def _flipped_by_order(answers: Answers, rows: Codes, decision: Codes) -> Bools:
    """Whether a wording gives an item another verdict in the other order, shape (items of log,)."""
    log = answers.log
    flipped = np.zeros(len(log.items), dtype=np.bool_)
    cube = cube_of(log, rows, log.template[rows])
    orders = [log.orders[code] for code in cube.orders]
    if not {"AB", "BA"} <= {*orders}:
        return flipped
    verdicts = np.append(in_item_order(answers, decision, log.order[rows]), -1)
    verdicts = np.append(np.where(log.undecided[verdicts[:-1]], -1, verdicts[:-1]), -1)
    one, two = (verdicts[cube.places[:, :, orders.index(order)]] for order in ("AB", "BA"))
    flipped[cube.items] = ((one >= 0) & (two >= 0) & (one != two)).any(axis=1)
    return flipped


def _groupings(
    answers: Answers,
    rows: Codes,
    items: Sequence[str],
    columns: Mapping[str, Mapping[str, str]],
    lengths: Mapping[str, int],
) -> dict[str, Words]:
    """The group of each item, by what groups them: the system, thirds by length, other columns."""
    log = answers.log
    groups: dict[str, Words] = {}
    by_name = {}
    if (system := log.table["system_id"]).null_count < len(system):
        codes = log.item[rows].tolist()
        systems = dict(zip(codes, system.take(pa.array(rows)).to_pylist(), strict=True))
        of_item = {log.items[code]: name for code, name in systems.items()}
        by_name["system"] = [of_item.get(item) or "" for item in items]
    for name in dict.fromkeys(name for row in columns.values() for name in row):
        by_name[name] = [columns.get(item, {}).get(name, "") for item in items]
    for name, values in by_name.items():
        if 1 < len(set(values) - {""}) <= MOST_GROUPS:
            groups[name] = np.array(values, dtype=object)
    texts = {item: sum(map(len, row.values())) for item, row in columns.items()}
    size = np.array([lengths.get(item) or texts.get(item, 0) for item in items])
    if len(size) and size.any() and len(np.unique(size)) > 2:
        low, high = np.quantile(size, [1 / 3, 2 / 3])
        thirds = [
            f"up to {low:.0f} characters",
            f"{low:.0f} to {high:.0f} characters",
            f"more than {high:.0f} characters",
        ]
        groups[LENGTH] = np.array(thirds, dtype=object)[(size > low).astype(int) + (size > high)]
    return groups


def with_texts(
    rows: Sequence[Listed],
    read: Callable[[list[int]], list[str | None]],
    prompts: pa.Table | None,
    people: pa.Table | None,
) -> Iterator[Disagreement]:
    """Rows with the judge's texts, people's labels and the prompts."""
    at = sorted({number for _, places in rows for number in places.values()})
    texts = {n: t.strip() for n, t in zip(at, read(at), strict=True) if t} if at else {}
    labels: dict[tuple[str, str, str], dict[str, str]] = {}
    if people is not None:
        names = ("task", "item_id", "order", "human", "label")
        for *key, human, label in zip(*(people[n].to_pylist() for n in names), strict=True):
            labels.setdefault(tuple(key), {})[human] = label
    prompt_of: dict[tuple[str, str], str] = {}
    if prompts is not None and {"item_id", "order", "text"} <= set(prompts.column_names):
        ids = pa.array({row.item_id for row, _ in rows}, pa.string())
        few = prompts.filter(pc.is_in(prompts["item_id"], value_set=ids))
        for item, order, text in zip(
            *(few[name].to_pylist() for name in ("item_id", "order", "text")), strict=True
        ):
            prompt_of.setdefault((item, order or "-"), text[:LONGEST_TEXT])
    for row, places in rows:
        replies = {name: texts.get(number, "") for name, number in places.items() if texts}
        more = not {*row.verdicts.values()}.issuperset(replies.values())
        prompt = prompt_of.get((row.item_id, row.order))
        yield replace(
            row,
            answers={n: t[:LONGEST_TEXT] for n, t in replies.items() if t} if more else {},
            people=labels.get((row.task, row.item_id, row.order), {}),
            text=prompt or None,
        )


def write_rows(rows: Sequence[Disagreement], folder: Path) -> None:
    """Write ``disagreements.csv``: the rows that have ``kinds``; and, of a single task,
    ``second_look.csv``. Raises OSError."""
    doubted = {row.item_id: row for row in rows if DOUBTED in row.kinds}
    (folder / SECOND_LOOK).unlink(missing_ok=True)
    if doubted and len({row.task for row in rows}) == 1:
        texts = [
            {**({"text": row.text} if row.text else {}), **row.columns, "item_id": item}
            for item, row in doubted.items()
        ]
        names_of = dict.fromkeys(["item_id", *(name for row in texts for name in row)])
        write_text(folder / SECOND_LOOK, csv_text([*names_of], texts))
    rows = [row for row in rows if row.kinds]
    theirs = dict.fromkeys(name for row in rows for name in row.columns)
    names = {name: f"{name} (item)" if name in COLUMNS else name for name in theirs}

    @lru_cache(maxsize=4096)
    def encoded(items: tuple[tuple[str, str], ...]) -> str:
        return json.dumps(dict(items), ensure_ascii=False)

    lines = (
        {
            **{name: getattr(row, name) for name in COLUMNS},
            "kinds": ", ".join(row.kinds),
            **{name: encoded((*getattr(row, name).items(),)) for name in _JSON},
            **{names[name]: text for name, text in row.columns.items()},
        }
        for row in rows
    )
    write_text(folder / FILE, csv_text([*COLUMNS, *names.values()], lines))


def read_rows(folder: Path) -> list[dict[str, Any]]:
    """The rows of a folder's ``disagreements.csv``: `COLUMNS`, then those of the imported file.

    Raises JudgeSenseError if there is none, or if it is damaged.
    """
    csv.field_size_limit(2**31 - 1)
    path, rows = folder / FILE, list[dict[str, Any]]()
    try:
        with path.open(encoding="utf-8", newline="") as source:
            for line in csv.DictReader(source, strict=True):
                row: dict[str, Any] = {
                    cell_text(name): cell_text(text) or None for name, text in line.items()
                }
                row |= {name: json.loads(row[name] or "{}") for name in _JSON}
                row["kinds"] = (row["kinds"] or "").split(", ")
                row["margin"] = None if row["margin"] is None else float(row["margin"])
                rows.append(row)
    except FileNotFoundError:
        raise JudgeSenseError(f"no {path}; write it with: judgesense report {folder}") from None
    except (OSError, ValueError, KeyError, TypeError, csv.Error) as error:
        raise JudgeSenseError(
            f"{path} is damaged ({error}); write it again with: judgesense report {folder}"
        ) from error
    return rows
