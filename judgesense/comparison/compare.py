"""Which of two judges is steadier and which more often right: paired tests on what both judged."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from judgesense.comparison.pairing import first_rows, grouped, shared_rows
from judgesense.errors import JudgeSenseError
from judgesense.log.folder import read_run
from judgesense.log.rows import Answers
from judgesense.log.stream import Stream, distinct
from judgesense.measure.card import TrustCard
from judgesense.measure.checks import trust_card
from judgesense.measure.report_file import task_rank
from judgesense.measure.thresholds import SIGNIFICANT
from judgesense.measure.wordings import Wordings
from judgesense.statistics.arrays import Bools, Codes
from judgesense.statistics.comparison import holm, paired_test
from judgesense.statistics.planning import smallest_difference
from judgesense.statistics.result import ResultMapping, data_frame, html_table
from judgesense.statistics.selection import largest
from judgesense.tasks import UNDECIDED
from judgesense.text import (
    brackets,
    join,
    number,
    p_value,
    percent,
    quoted,
    short_names,
    signed,
)

WORDS = {
    "jss": ("pairs", "gives the same verdict on", "is steadier under rewording"),
    "accuracy": ("prompts", "matches the gold label on", "is right more often"),
}
"""Unit, figure and advantage of each measure."""


@dataclass(frozen=True)
class _Judged:
    """A judge of a run, its trust card, and where its pairs and its prompts with gold are."""

    stream: Stream
    card: TrustCard

    @cached_property
    def pairs(self) -> dict[Hashable, int]:
        """Both prompts' ids -> the judged pair; runs may differ in which prompt comes first."""
        rows = np.flatnonzero(self.stream.known)
        one, two = (ids.take(pa.array(rows)) for ids in self.stream.pairs.prompt_ids)
        return first_rows(
            map(frozenset, zip(one.to_pylist(), two.to_pylist(), strict=True)), rows.tolist()
        )

    @cached_property
    def prompts(self) -> dict[Hashable, int]:
        """The ids of a prompt and its item -> the place of the answer, where gold is known."""
        place = np.flatnonzero(self.stream.log.gold[self.stream.rows] >= 0)
        ids = self.stream.log.table.select(["prompt_id", "item_id"])
        columns = ids.take(pa.array(self.stream.rows[place])).columns
        return first_rows(zip(*(c.to_pylist() for c in columns), strict=True), place.tolist())


def _judges(run_dir: Path) -> list[_Judged]:
    """The judges of a run, with the trust cards of its report."""
    streams = sorted(
        read_run(run_dir).judged, key=lambda each: (task_rank(each.task.name), each.judge)
    )
    return [
        _Judged(each, trust_card(each, mislabelled=Wordings.of(each).mislabelled))
        for each in streams
    ]


def _compare(a: _Judged, b: _Judged) -> Iterator[dict[str, Any]]:
    one, two = a.stream, b.stream
    left, right = shared_rows(a.pairs, b.pairs)
    if len(left):  # none under a single wording
        codes = [
            (side.log, side.mapped_a[rows], side.mapped_b[rows])
            for side, rows in ((one, left), (two, right))
        ]
        undecided = np.any([log.undecided[pair] for log, *both in codes for pair in both], axis=0)
        agree = [first == second for _, first, second in codes]
        clusters, items = one.pairs.cluster[left], one.pairs.item[left]
        yield _entry(one, two, "jss", agree, undecided, clusters, items)
    left, right = shared_rows(a.prompts, b.prompts)
    if not len(left):
        return
    answers = Answers.at(one.log, one.rows[left]), Answers.at(two.log, two.rows[right])
    gold, other = (side.gold for side in answers)
    if len(differing := np.flatnonzero(gold != other)):
        # The judges would be held to two standards.
        first = differing[0]
        raise JudgeSenseError(
            f"{one.task.name}: the runs have different gold labels for {len(differing)} of "
            f"{len(gold)} prompts; item {answers[0].item[first]!r} is {gold[first]} in the first "
            f"and {other[first]} in the second. Judge both on the same data"
        )
    undecided = np.any([np.isin(side.label, UNDECIDED) for side in answers], axis=0)
    if not undecided.all():
        hits = [side.label == gold for side in answers]
        items = one.log.item[answers[0].rows]
        yield _entry(one, two, "accuracy", hits, undecided, answers[0].cluster, items)


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
        return f"{entry['task']}: {one} and {two} have no {unit[:-1]} on which both gave a verdict."
    side = winner(entry)
    said = (
        "there is no clear difference" if side is None else f"{_name(entry, side, names)} {ahead}"
    )
    return (
        f"{entry['task']}: {said}. {one} {what} {percent(entry['a'])} of {entry['n']} {unit}, and "
        f"{two} on {percent(entry['b'])}. The difference is {signed(entry['difference'])} "
        f"{brackets(entry['ci_low'], entry['ci_high'], signed)} "
        f"({p_value(entry['p_holm'], 'corrected p')}, {entry['n_items']} items)."
    )


def _recommend(
    entries: Sequence[Mapping[str, Any]], names: Mapping[str, str], cards: Mapping[str, TrustCard]
) -> str:
    """Which of two judges to prefer on a task; never one whose card says ``avoid``."""
    name = {side: _name(entries[0], side, names) for side in "ab"}
    ahead_by = {entry["measure"]: winner(entry) for entry in entries}
    steady, right = ahead_by.get("jss"), ahead_by.get("accuracy")
    ahead = [f"{name[right]} {WORDS['accuracy'][2]}"] if right else []
    ahead += [f"{name[steady]} {WORDS['jss'][2]}"] if steady else []
    best, able = right or steady, [side for side in "ab" if cards[side].trust != "avoid"]
    if not able:
        choice = "avoid both"
    elif best is None and len(able) == 2:
        usable = all(card.trust in ("use", "care") for card in cards.values())
        choice = f"add items{' or take either judge' if usable else ''}"
    elif best in able:
        choice = f"prefer {name[best]}"
    elif cards[able[0]].trust == "unknown":
        other = "b" if able[0] == "a" else "a"
        choice = f"avoid {name[other]}, and do not rely on {name[able[0]]} yet"
    else:
        choice = f"prefer {name[able[0]]}"
    trust = []
    for side, card in cards.items():
        because = f" (because of {quoted(card.because)})" if card.because else ""
        trust.append(f"{card.trust!r} for {name[side]}{because}")
    shown = join(ahead) if ahead else "The figures do not tell them apart"
    return f"{entries[0]['task']}: {choice}. {shown}. The trust value is {join(trust)}."


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
            "Differences are B minus A on what both judged. Their 95% intervals are not corrected. "
            "The sample is the items, or the clusters that items share. p-values come from "
            "permutation tests with a cluster-robust t. They are corrected for "
            f"{self.n_tests} comparison{'s' * (self.n_tests != 1)} (Holm).",
        ]
        if lost := sum(entry["n_undecided"] for entry in self.comparisons):
            lines.append(
                f"{lost} pairs and prompts are left out, because a judge gave no verdict on them."
            )
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        texts = [*self.advice, *(entry["text"] for entry in [*self.comparisons, *self.best])]
        return html_table((), [(text,) for text in texts])


def compare(a: str | Path, b: str | Path) -> Comparison:
    """Compare every judge of run A with every judge of run B on what both judged.

    Mapped decisions are compared. Only equal scorings are compared; if two runs share none, each
    scoring of A is compared with each of B. Pass the same folder twice to compare its judges with
    each other.

    Args:
        a: folder of the first run.
        b: folder of the second run, or the first again.

    Returns:
        The comparison; ``comparisons`` is never empty.

    Raises:
        JudgeSenseError: a folder without decisions, nothing in common, or one judge alone.

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
    first = _judges(dirs[0])
    second = first if same_run else _judges(dirs[1])
    if same_run and len({each.stream.judge for each in first}) < 2:
        raise JudgeSenseError(
            f"{dirs[0]} holds only one judge, {first[0].stream.judge}; name the folder of another "
            "run to compare it with"
        )
    shared = {each.stream.scoring for each in first} & {each.stream.scoring for each in second}
    couples = []
    for left, right in product(first, second):
        one, two = left.stream, right.stream
        if one.task.name != two.task.name or (shared and one.scoring != two.scoring):
            continue
        if (not same_run or one.judge < two.judge) and (entries := list(_compare(left, right))):
            couples.append(({"a": left.card, "b": right.card}, entries))
    found = [entry for _, entries in couples for entry in entries]
    if not found:
        judged = []
        for folder, judges in zip(dirs, (first, second), strict=True):
            pairs = {each.stream.task.name: len(each.stream.pairs) for each in judges}
            judged.append(f"{folder} judged {sum(pairs.values())} pairs of {join(list(pairs))}")
        raise JudgeSenseError(
            f"the runs share neither pairs nor prompts with gold labels: {', '.join(judged)}. Run "
            "both judges on the same data"
        )
    for entry, adjusted in zip(found, holm([e["p_value"] for e in found]), strict=True):
        entry["p_holm"] = adjusted
    names = short_names({e[key] for e in found for key in ("judge_a", "judge_b")})
    for cards, entries in couples:
        for entry in entries:
            entry |= {f"trust_{side}": card.trust for side, card in cards.items()}
            entry["text"] = _sentence(entry, names)
    best = []
    for judges in (first,) if same_run else (first, second):
        groups = grouped(((e.stream.task.name, e.stream.scoring) for e in judges), judges)
        best += [_best(each, names) for each in groups.values()]
    return Comparison(
        best=[each for each in best if each is not None],
        advice=[_recommend(entries, names, cards) for cards, entries in couples],
        comparisons=found,
        n_tests=sum(entry["p_value"] is not None for entry in found),
        runs=[str(path) for path in dirs],
    )


def _best(judges: Sequence[_Judged], names: Mapping[str, str]) -> dict[str, Any] | None:
    """The judge with the highest kappa, and where that kappa lies if it is the highest of several.

    None with fewer than two judges that have an interval. The kappas are taken to vary together as
    the judges' right answers to the same items do.
    """
    known, figures, rights = [], [], []
    for each in judges:
        check = each.card.checks["right"]
        if check.estimate is None or check.ci_low is None or check.ci_high is None:
            continue
        known.append((each.stream, check.n_items))
        figures.append((check.estimate, check.ci_low, check.ci_high))
        places = list(each.prompts.values())
        answers = Answers.at(each.stream.log, each.stream.rows[places])
        hits = answers.label == answers.gold
        gaps = grouped(answers.item, (hits - hits.mean()).tolist())
        rights.append({item: sum(of_item) for item, of_item in gaps.items()})
    if len({stream.judge for stream, _ in known}) < 2:
        return None
    items = dict.fromkeys(item for moved in rights for item in moved)
    table = np.array([[moved.get(item, 0.0) for item in items] for moved in rights])
    sizes = np.sqrt((table**2).sum(axis=1))
    alike = table @ table.T / np.maximum(np.outer(sizes, sizes), 1e-12)
    np.fill_diagonal(alike, 1.0)
    kappas, low, high = zip(*figures, strict=True)
    found = largest(kappas, low, high, alike)
    (stream, n_items), kappa = known[found.place], kappas[found.place]
    task, judge = stream.task.name, stream.judge
    ends = brackets(found.ci_low, found.ci_high, lambda end: number(end, 2))
    text = (
        f"{task}: {names[judge]} has the highest κ of {len(known)} judges with the gold labels, "
        f"{number(kappa, 2)} on {n_items} items. Corrected for being the highest of several, it is "
        f"{number(found.estimate, 2)} {ends}."
    )
    return {
        "judge": judge,
        "n_judges": len(known),
        "n_items": n_items,
        "kappa": kappa,
        "corrected": found.estimate,
        "ci_low": found.ci_low,
        "ci_high": found.ci_high,
        "task": task,
        "scoring": stream.scoring,
        "text": text,
    }
