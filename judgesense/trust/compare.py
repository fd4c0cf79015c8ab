"""Which of two judges is steadier and which more often right: paired tests on what both judged."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from judgesense.decisions.stream import Stream, distinct
from judgesense.decisions.view import view
from judgesense.errors import JudgeSenseError
from judgesense.run_folder.folder import read_run
from judgesense.run_folder.report import task_rank
from judgesense.statistics.arrays import Bools, Codes
from judgesense.statistics.comparison import holm, paired_test
from judgesense.statistics.planning import smallest_difference
from judgesense.statistics.result import ResultMapping, data_frame, html_table
from judgesense.statistics.selection import largest
from judgesense.text import brackets, join, number, p_value, percent, s, short_names, signed
from judgesense.trust.card import TrustCard
from judgesense.trust.checks import trust_card
from judgesense.trust.thresholds import SIGNIFICANT
from judgesense.trust.wordings import Wordings

WORDS = {
    "jss": ("pairs", "agrees with itself on", "is steadier under rewording"),
    "accuracy": ("prompts", "matches gold on", "is more often right"),
}
"""Unit, figure and advantage of each measure."""

Cards = dict[tuple[str, str, str], TrustCard]
"""Task, judge and scoring -> trust card."""


def _streams(run_dir: Path) -> tuple[list[Stream], Cards]:
    """The judges of a run, and their trust cards, which are those of its report."""
    run = read_run(run_dir)
    streams = view(run.figures, run.pairs, run.record).judged
    streams.sort(key=lambda stream: (task_rank(stream.task.name), stream.judge))
    cards = {}
    for stream in streams:
        mislabelled = Wordings.of(stream).mislabelled
        key = (stream.task.name, stream.judge, stream.scoring)
        cards[key] = trust_card(stream, mislabelled=mislabelled)
    return streams, cards


def _compare(one: Stream, two: Stream) -> Iterator[dict[str, Any]]:
    matched = _match(_pair_table(one), _pair_table(two), ["first", "second"])
    if matched is None:
        return
    left, right, clusters, items = matched
    sides = [(one, one.sides("mapped"), left), (two, two.sides("mapped"), right)]
    agree = [codes[0][rows] == codes[1][rows] for _, codes, rows in sides]
    undecided = np.any(
        [side.log.undecided[code[rows]] for side, codes, rows in sides for code in codes], axis=0
    )
    yield _entry(one, two, "jss", agree, undecided, clusters, items)
    matched = _match(_prompt_table(one), _prompt_table(two), ["prompt_id", "item_id"])
    if matched is None:
        return
    left, right, clusters, items = matched
    places = one.rows[left], two.rows[right]
    gold, other = (
        side.log.labels[side.log.gold[rows]] for side, rows in zip((one, two), places, strict=True)
    )
    if len(differing := np.flatnonzero(gold != other)):
        # The judges would be held to two standards.
        first = differing[0]
        item = one.log.items[one.log.item[places[0][first]]]
        raise JudgeSenseError(
            f"{one.task.name}: the runs have different gold labels for {len(differing)} of "
            f"{len(gold)} prompts; item {item!r} is {gold[first]} in the first and {other[first]} "
            "in the second. Judge both on the same data"
        )
    decided = [side.decision[rows] for side, rows in ((one, left), (two, right))]
    undecided = one.log.undecided[decided[0]] | two.log.undecided[decided[1]]
    if undecided.all():
        return
    hits = [side.log.labels[codes] == gold for side, codes in zip((one, two), decided, strict=True)]
    yield _entry(one, two, "accuracy", hits, undecided, clusters, items)


def _pair_table(side: Stream) -> pa.Table:
    """The pairs that a judge has judged: both prompts' ids, cluster and item, and their place.

    The ids are sorted within a pair: runs and imports may differ in which prompt comes first.
    """
    rows = np.flatnonzero(side.known)
    one, two = (ids.take(pa.array(rows)).cast(pa.string()) for ids in side.pairs.prompt_ids)
    swap = pc.greater(one, two)
    return pa.table({
        "first": pc.if_else(swap, two, one),
        "second": pc.if_else(swap, one, two),
        "cluster": side.pairs.cluster[rows],
        "item": side.pairs.item[rows],
        "row": rows,
    })  # fmt: skip


def _prompt_table(side: Stream) -> pa.Table:
    """The judged prompts with a gold label, each once."""
    place = np.flatnonzero(side.log.gold[side.rows] >= 0)
    rows = side.rows[place]
    ids = side.log.table.select(["prompt_id", "item_id"]).take(pa.array(rows))
    return pa.table({
        "prompt_id": ids["prompt_id"],
        "item_id": ids["item_id"],
        "cluster": side.log.cluster[rows],
        "item": side.log.item[rows],
        "row": place,
    })  # fmt: skip


def _match(one: pa.Table, two: pa.Table, keys: list[str]) -> tuple[Codes, ...] | None:
    """Rows that both tables hold, in the first one's order: places in both, cluster, item."""
    one, two = (
        table.group_by(keys, use_threads=False).aggregate(
            [("row", "first"), ("cluster", "first"), ("item", "first")]
        )
        for table in (one, two)
    )
    both = one.join(two, keys, right_suffix="_b", join_type="inner").sort_by("row_first")
    if not both.num_rows:
        return None
    names = ("row_first", "row_first_b", "cluster_first", "item_first")
    return tuple(both[name].to_numpy() for name in names)


def _entry(
    one: Stream,
    two: Stream,
    measure: str,
    hits: list[Bools],
    undecided: Bools,
    clusters: Codes,
    items: Codes,
) -> dict[str, Any]:
    """The paired test on the rows that both judges decided."""
    kept = ~undecided
    found = paired_test(hits[0][kept], hits[1][kept], clusters[kept])
    shown = None
    if found.ci_low is not None and found.ci_high is not None:
        shown = smallest_difference(found.ci_low, found.ci_high, found.n_items)
    return {
        "task": one.task.name,
        "judge_a": one.judge,
        "judge_b": two.judge,
        "scoring_a": one.scoring,
        "scoring_b": two.scoring,
        "measure": measure,
        "a": found.first,
        "b": found.second,
        "difference": found.difference,
        "ci_low": found.ci_low,
        "ci_high": found.ci_high,
        "p_value": found.p_value,
        "smallest_difference": shown,
        "n": found.n_pairs,
        "n_items": distinct(items[kept]),
        "n_clusters": found.n_items,
        "n_undecided": int(undecided.sum()),
    }


def winner(entry: Mapping[str, Any]) -> str | None:
    """``a`` or ``b``, the side that is clearly ahead; None if neither is.

    Interval and test are different methods: a difference is clear only if both say so.
    """
    if entry["p_holm"] is None or entry["p_holm"] >= SIGNIFICANT:
        return None
    if entry["ci_low"] is None or entry["ci_low"] <= 0 <= entry["ci_high"]:
        return None
    return "b" if entry["difference"] > 0 else "a"


def _sentence(entry: Mapping[str, Any], names: Mapping[str, str]) -> str:
    """One comparison in words, with its figures."""
    one, two = (_name(entry, side, names) for side in "ab")
    unit, what, ahead = WORDS[entry["measure"]]
    if entry["difference"] is None:
        return f"{entry['task']}: no {unit[:-1]} was decided by both {one} and {two}."
    side = winner(entry)
    said = "no clear difference" if side is None else f"{_name(entry, side, names)} {ahead}"
    return (
        f"{entry['task']}: {said} ({one} {what} {percent(entry['a'])}, {two} {percent(entry['b'])};"
        f" difference {signed(entry['difference'])} "
        f"{brackets(entry['ci_low'], entry['ci_high'], signed)}, "
        f"{p_value(entry['p_holm'], 'corrected p')}, {entry['n']} {unit} of {entry['n_items']} "
        f"item{s(entry['n_items'])})."
    )


def _recommend(
    jss: Mapping[str, Any], accuracy: Mapping[str, Any] | None, names: Mapping[str, str],
    cards: Mapping[str, TrustCard],
) -> str:  # fmt: skip
    """Which of two judges to prefer on a task; never one whose card says ``avoid``."""
    name = {side: _name(jss, side, names) for side in "ab"}
    steady, right = winner(jss), winner(accuracy) if accuracy else None
    ahead = [f"{name[right]} {WORDS['accuracy'][2]}"] if right else []
    ahead += [f"{name[steady]} {WORDS['jss'][2]}"] if steady else []
    best, able = right or steady, [side for side in "ab" if cards[side].trust != "avoid"]
    if not able:
        choice = "avoid both"
    elif best is None and len(able) == 2:
        usable = all(card.trust in ("use", "care") for card in cards.values())
        choice = f"add items{', or take either' if usable else ''}"
    elif best in able:
        choice = f"prefer {name[best]}"
    elif cards[able[0]].trust == "unknown":
        choice = "avoid one; whether you can trust the other is not known yet"
    else:
        choice = f"prefer {name[able[0]]}"
    trust = []
    for side, card in cards.items():
        because = f" ({join(card.because)})" if card.because else ""
        trust.append(f"{name[side]}: {card.trust}{because}")
    told = join(ahead or [f"{name['a']} and {name['b']} cannot be told apart"])
    return f"{jss['task']}: {choice}: {told}. Trust: {'; '.join(trust)}."


def _name(entry: Mapping[str, Any], side: str, names: Mapping[str, str]) -> str:
    name = names[entry[f"judge_{side}"]]
    if entry["judge_a"] == entry["judge_b"] and entry["scoring_a"] == entry["scoring_b"]:
        return f"{name} ({side.upper()})"
    return f"{name} ({entry[f'scoring_{side}']})"


@dataclass(frozen=True, eq=False)
class Comparison(ResultMapping):
    """Two runs' judges on the pairs that both judged.

    ``advice`` says which judge to prefer on each task; a judge whose trust card says ``avoid`` is
    never preferred. ``comparisons`` has one entry per pair of judges, task, scoring and measure,
    with the keys ``task``, ``judge_a``, ``judge_b``, ``scoring_a``, ``scoring_b``, ``trust_a``,
    ``trust_b`` (from the trust cards), ``measure`` (``jss`` or ``accuracy``), ``a``, ``b``,
    ``difference`` (B minus A), ``ci_low``, ``ci_high`` (95%, not corrected), ``p_value``,
    ``p_holm`` (corrected by Holm's method over all comparisons, which are one family),
    ``smallest_difference`` (that the sample shows with 80% probability at an uncorrected 5%),
    ``n``, ``n_items``, ``n_clusters`` (what is independent: items, or what they share),
    ``n_undecided`` (left out because one of the judges gave no decision) and ``text``.
    ``best`` has one entry per task and scoring with the judge of the highest kappa with gold:
    ``task``, ``scoring``, ``judge``, ``n_judges``, ``n_items``, ``kappa`` as measured, that
    ``corrected`` for being the highest, with ``ci_low`` and ``ci_high``
    (`judgesense.statistics.selection.largest`), and ``text``.
    ``n_tests`` is the size of the family, ``correction`` its method. ``runs`` are the two folders.
    """

    advice: list[str]
    comparisons: list[dict[str, Any]]
    best: list[dict[str, Any]]
    n_tests: int
    runs: list[str]
    correction: str = "holm"

    def to_pandas(self) -> Any:
        """The comparisons as a `pandas.DataFrame`, one row each."""
        return data_frame(self.comparisons)

    def __str__(self) -> str:
        """The comparison as plain text: one line each, neither wrapped nor cut."""
        lines = ["What to do", *(f"  - {text}" for text in self.advice), "", "Figures"]
        lines += [f"  - {entry['text']}" for entry in [*self.comparisons, *self.best]]
        lines += [
            "",
            "Differences are B minus A on what both judged, with uncorrected 95% intervals. "
            "Intervals and tests treat items, or the clusters that items share, as the sample. "
            "p-values come from permutation tests with a cluster-robust t, Holm-corrected over the "
            f"{self.n_tests} comparisons as one family.",
        ]
        if lost := sum(entry["n_undecided"] for entry in self.comparisons):
            lines.append(
                f"Left out: {lost} pairs and prompts that one of the judges left undecided."
            )
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        texts = [*self.advice, *(entry["text"] for entry in [*self.comparisons, *self.best])]
        return html_table((), [(text,) for text in texts])


def compare(a: str | Path, b: str | Path) -> Comparison:
    """Compare every judge of run A with every judge of run B on the pairs that both judged.

    Mapped decisions are compared. Only equal scorings are compared; if two runs share none, each
    scoring of A is compared with each of B. Pass the same folder twice to compare its judges with
    each other.

    Args:
        a: folder of the first run.
        b: folder of the second run, or the first again.

    Returns:
        The comparison; ``comparisons`` is never empty.

    Raises:
        JudgeSenseError: a folder without decisions, no pair in common, or one judge alone.

    >>> import tempfile
    >>> from judgesense.pipeline import run
    >>> def yes(messages):
    ...     return ["YES" for _ in messages]
    >>> def no(messages):
    ...     return ["NO" for _ in messages]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = run([yes, no], tasks=["factuality"], limit=4, out=f"{folder}/run", note=str)
    ...     result = compare(f"{folder}/run", f"{folder}/run")
    >>> result.n_tests, result.comparisons[0]["difference"]
    (2, 0.0)
    """
    dirs = [Path(a), Path(b)]
    same_run = dirs[0].resolve() == dirs[1].resolve()
    first, cards = _streams(dirs[0])
    second, other_cards = (first, cards) if same_run else _streams(dirs[1])
    if same_run and len({stream.judge for stream in first}) < 2:
        raise JudgeSenseError(
            f"{dirs[0]} holds one judge, {first[0].judge}, and nothing to compare it with; "
            "name the folder of another run"
        )
    shared = {stream.scoring for stream in first} & {stream.scoring for stream in second}
    couples = []
    for one, two in product(first, second):
        if one.task.name != two.task.name or (shared and one.scoring != two.scoring):
            continue
        if (not same_run or one.judge < two.judge) and (entries := list(_compare(one, two))):
            couples.append(entries)
    found = [entry for entries in couples for entry in entries]
    if not found:
        told = []
        for folder, streams in zip(dirs, (first, second), strict=True):
            pairs = {stream.task.name: len(stream.pairs) for stream in streams}
            told.append(f"{folder} judged {sum(pairs.values())} pairs of {join(list(pairs))}")
        raise JudgeSenseError(
            f"the runs share no pairs: {', '.join(told)}. Run both judges on the same data"
        )
    for entry, adjusted in zip(found, holm([e["p_value"] for e in found]), strict=True):
        entry["p_holm"] = adjusted
    names = short_names({e[key] for e in found for key in ("judge_a", "judge_b")})
    advice = []
    for entries in couples:
        jss, accuracy = entries[0], entries[1] if len(entries) > 1 else None
        of_couple = {
            "a": cards[jss["task"], jss["judge_a"], jss["scoring_a"]],
            "b": other_cards[jss["task"], jss["judge_b"], jss["scoring_b"]],
        }
        for entry in entries:
            entry |= {f"trust_{side}": card.trust for side, card in of_couple.items()}
            entry["text"] = _sentence(entry, names)
        advice.append(_recommend(jss, accuracy, names, of_couple))
    best = []
    groups: dict[tuple[str, str], list[tuple[Stream, TrustCard]]] = {}
    for streams, of_run in [(first, cards), (second, other_cards)][: 1 if same_run else 2]:
        for stream in streams:
            card = of_run[stream.task.name, stream.judge, stream.scoring]
            groups.setdefault((stream.task.name, stream.scoring), []).append((stream, card))
    for (task, scoring), judged in groups.items():
        if (highest := _best(judged)) is not None:
            ends = brackets(highest["ci_low"], highest["ci_high"], lambda end: number(end, 2))
            text = (
                f"{task}: of {highest['n_judges']} judges, {names[highest['judge']]} has the "
                f"highest κ with gold, {number(highest['kappa'], 2)} on {highest['n_items']} "
                "items; corrected for being the highest, "
                f"{number(highest['corrected'], 2)} {ends}."
            )
            best.append({**highest, "task": task, "scoring": scoring, "text": text})
    return Comparison(
        best=best,
        advice=advice,
        comparisons=found,
        n_tests=sum(entry["p_value"] is not None for entry in found),
        runs=[str(path) for path in dirs],
    )


def _best(judged: Iterable[tuple[Stream, TrustCard]]) -> dict[str, Any] | None:
    """The judge with the highest kappa, and where that kappa lies if it is the highest of several.

    None with fewer than two judges that have an interval. The kappas are taken to vary together as
    the judges' right answers to the same items do.
    """
    known, figures, rights = [], [], []
    for stream, card in judged:
        check = card.checks["right"]
        if check.estimate is None or check.ci_low is None or check.ci_high is None:
            continue
        known.append((stream.judge, check.n_items))
        figures.append((check.estimate, check.ci_low, check.ci_high))
        prompts = _prompt_table(stream)
        rows = prompts["row"].to_numpy()
        hits = stream.decision[rows] == stream.log.gold[stream.rows[rows]]
        moved: dict[str, float] = {}
        for item, gap in zip(prompts["item_id"].to_pylist(), hits - hits.mean(), strict=True):
            moved[item] = moved.get(item, 0.0) + float(gap)
        rights.append(moved)
    if len({judge for judge, _ in known}) < 2:
        return None
    items = dict.fromkeys(item for moved in rights for item in moved)
    table = np.array([[moved.get(item, 0.0) for item in items] for moved in rights])
    sizes = np.sqrt((table**2).sum(axis=1))
    alike = table @ table.T / np.maximum(np.outer(sizes, sizes), 1e-12)
    np.fill_diagonal(alike, 1.0)
    kappas, low, high = zip(*figures, strict=True)
    found = largest(kappas, low, high, alike)
    judge, n_items = known[found.place]
    return {
        "judge": judge, "n_judges": len(known), "n_items": n_items, "kappa": kappas[found.place],
        "corrected": found.estimate, "ci_low": found.ci_low, "ci_high": found.ci_high,
    }  # fmt: skip
