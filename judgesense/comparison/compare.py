"""Which of two judges is steadier and which more often right: paired tests on what both judged."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any, Literal, NotRequired, TypedDict

import numpy as np
import pyarrow as pa

from judgesense.comparison.paired import PairedTable, grouped, shared_rows
from judgesense.comparison.verdicts import Verdicts, first_rows, verdicts_of
from judgesense.errors import JudgeSenseError
from judgesense.log.folder import read_run
from judgesense.log.stream import Stream
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


Side = Literal["a", "b"]


class JudgeComparison(TypedDict):
    """Two judges on what both decided: ``difference`` is B minus A.

    ``measure`` is ``jss`` or ``accuracy``. The interval (95%) and ``p_value`` are not corrected,
    ``p_holm`` is, by Holm's method over all comparisons. ``smallest_difference`` is what the sample
    shows with 80% probability. ``n_clusters`` counts what is independent: items, or what they
    share. ``n_undecided`` are left out because one of the judges gave no decision. ``trust_a`` and
    ``trust_b`` are from the trust cards.
    """

    task: str
    judge_a: str
    judge_b: str
    scoring_a: str
    scoring_b: str
    measure: Literal["jss", "accuracy"]
    a: float | None
    b: float | None
    difference: float | None
    ci_low: float | None
    ci_high: float | None
    p_value: float | None
    smallest_difference: float | None
    n: int
    n_items: int
    n_clusters: int
    n_undecided: int
    p_holm: NotRequired[float | None]
    trust_a: NotRequired[str]
    trust_b: NotRequired[str]
    text: NotRequired[str]


class BestJudge(TypedDict):
    """The judge of the highest kappa with gold, as measured and ``corrected`` for being the highest
    of several (`judgesense.statistics.selection.largest`)."""

    judge: str
    n_judges: int
    n_items: int
    kappa: float
    corrected: float
    ci_low: float | None
    ci_high: float | None
    task: str
    scoring: str
    text: str


@dataclass(frozen=True)
class _Judge:
    """A judge of a run on a task, and its trust card."""

    stream: Stream
    card: TrustCard
    folder: Path

    @cached_property
    def verdicts(self) -> Verdicts:
        """Its first answer to every prompt."""
        return verdicts_of(self.stream, self.folder, repeats=False)

    @cached_property
    def pairs(self) -> dict[frozenset[str], int]:
        """Both prompts' ids -> the judged pair; runs may differ in which prompt comes first."""
        places = np.flatnonzero(self.stream.known)
        ids = (side.take(pa.array(places)).to_pylist() for side in self.stream.pairs.prompt_ids)
        return first_rows(map(frozenset, zip(*ids, strict=True)), places.tolist())


def _judges(run_dir: Path) -> list[_Judge]:
    """The judges of a run, with the trust cards of its report."""
    streams = sorted(
        read_run(run_dir).judged, key=lambda stream: (task_rank(stream.task.name), stream.judge)
    )
    return [
        _Judge(stream, trust_card(stream, mislabelled=Wordings.of(stream).mislabelled), run_dir)
        for stream in streams
    ]


def _compare(a: _Judge, b: _Judge) -> Iterator[JudgeComparison]:
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
        yield _comparison(one, two, "jss", agree, ~undecided, clusters, items)
    prompts = PairedTable.of(a.verdicts, b.verdicts, "prompt", "item")
    has_gold = [
        side.gold[rows] != ""
        for side, rows in ((a.verdicts, prompts.before_row), (b.verdicts, prompts.after_row))
    ]
    prompts = prompts.where(has_gold[0] & has_gold[1])
    prompts.require_same_gold(one.task.name)
    if not prompts.is_undecided.all():
        rows = a.verdicts.answers.rows[prompts.before_row]
        hits = [prompts.old == prompts.gold, prompts.new == prompts.gold]
        clusters, items = one.log.cluster[rows], one.log.item[rows]
        yield _comparison(one, two, "accuracy", hits, ~prompts.is_undecided, clusters, items)


def _comparison(
    one: Stream,
    two: Stream,
    measure: Literal["jss", "accuracy"],
    hits: Sequence[Bools],
    decided: Bools,
    clusters: Codes,
    items: Codes,
) -> JudgeComparison:
    """The paired test on the rows that both judges decided."""
    test = paired_test(hits[0][decided], hits[1][decided], clusters[decided])
    smallest = None
    if test.ci_low is not None and test.ci_high is not None:
        smallest = smallest_difference(test.ci_low, test.ci_high, test.n_items)
    return {
        "task": one.task.name,
        "judge_a": one.judge,
        "judge_b": two.judge,
        "scoring_a": one.scoring,
        "scoring_b": two.scoring,
        "measure": measure,
        "a": test.first,
        "b": test.second,
        "difference": test.difference,
        "ci_low": test.ci_low,
        "ci_high": test.ci_high,
        "p_value": test.p_value,
        "smallest_difference": smallest,
        "n": test.n_pairs,
        "n_items": len(np.unique(items[decided])),
        "n_clusters": test.n_items,
        "n_undecided": int((~decided).sum()),
    }


def winner(entry: JudgeComparison) -> Side | None:
    """The side that is clearly ahead; None if neither is.

    Interval and test are different methods: a difference is clear only if both say so.
    """
    p, low, high = entry["p_holm"], entry["ci_low"], entry["ci_high"]
    if p is None or p >= SIGNIFICANT or low is None or high is None or low <= 0 <= high:
        return None
    return "b" if (entry["difference"] or 0.0) > 0 else "a"


def _sentence(entry: JudgeComparison, names: Mapping[str, str]) -> str:
    """One comparison in words, with its figures."""
    one, two = _name(entry, "a", names), _name(entry, "b", names)
    unit, what, ahead = WORDS[entry["measure"]]
    if entry["difference"] is None:
        return f"{entry['task']}: {one} and {two} have no {unit[:-1]} on which both gave a verdict."
    side = winner(entry)
    conclusion = (
        "there is no clear difference" if side is None else f"{_name(entry, side, names)} {ahead}"
    )
    return (
        f"{entry['task']}: {conclusion}. {one} {what} {percent(entry['a'])} of {entry['n']} {unit},"
        f" and {two} on {percent(entry['b'])}. The difference is {signed(entry['difference'])} "
        f"{brackets(entry['ci_low'], entry['ci_high'], signed)} "
        f"({p_value(entry['p_holm'], 'corrected p')}, {entry['n_items']} items)."
    )


def _recommend(
    entries: Sequence[JudgeComparison], names: Mapping[str, str], cards: Mapping[Side, TrustCard]
) -> str:
    """Which of two judges to prefer on a task; never one whose card says ``avoid``."""
    name = {side: _name(entries[0], side, names) for side in cards}
    winners = {entry["measure"]: winner(entry) for entry in entries}
    steady, right = winners.get("jss"), winners.get("accuracy")
    ahead = [f"{name[right]} {WORDS['accuracy'][2]}"] if right else []
    ahead += [f"{name[steady]} {WORDS['jss'][2]}"] if steady else []
    best, candidates = right or steady, [s for s, card in cards.items() if card.trust != "avoid"]
    if not candidates:
        choice = "avoid both"
    elif best is None and len(candidates) == 2:
        usable = all(card.trust in ("use", "care") for card in cards.values())
        choice = f"add items{' or take either judge' if usable else ''}"
    elif best in candidates:
        choice = f"prefer {name[best]}"
    elif cards[candidates[0]].trust == "unknown":
        other = name["b" if candidates[0] == "a" else "a"]
        choice = f"avoid {other}, and do not rely on {name[candidates[0]]} yet"
    else:
        choice = f"prefer {name[candidates[0]]}"
    trust = []
    for side, card in cards.items():
        because = f" (because of {quoted(card.because)})" if card.because else ""
        trust.append(f"{card.trust!r} for {name[side]}{because}")
    reasons = join(ahead) if ahead else "The figures do not tell them apart"
    return f"{entries[0]['task']}: {choice}. {reasons}. The trust value is {join(trust)}."


def _name(entry: JudgeComparison, side: Side, names: Mapping[str, str]) -> str:
    judges = {"a": entry["judge_a"], "b": entry["judge_b"]}
    scorings = {"a": entry["scoring_a"], "b": entry["scoring_b"]}
    if len({*judges.values()}) == len({*scorings.values()}) == 1:
        return f"{names[judges[side]]} ({side.upper()})"
    return f"{names[judges[side]]} ({scorings[side]})"


@dataclass(frozen=True, eq=False)
class Comparison(ResultMapping):
    """Two runs' judges on the pairs that both judged.

    ``advice`` says which judge to prefer on each task; a judge whose trust card says ``avoid`` is
    never preferred. ``comparisons`` has a `JudgeComparison` for each pair of judges, task, scoring
    and measure; they are one family of ``n_tests`` tests, corrected by the method ``correction``.
    ``best`` has a `BestJudge` for each task and scoring. ``runs`` are the two folders.
    """

    advice: list[str]
    comparisons: list[JudgeComparison]
    best: list[BestJudge]
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
    if same_run and len({judge.stream.judge for judge in first}) < 2:
        raise JudgeSenseError(
            f"{dirs[0]} holds only one judge, {first[0].stream.judge}; name the folder of another "
            "run to compare it with"
        )
    scorings = {judge.stream.scoring for judge in first} & {j.stream.scoring for j in second}
    couples: list[tuple[dict[Side, TrustCard], list[JudgeComparison]]] = []
    for left, right in product(first, second):
        one, two = left.stream, right.stream
        if one.task.name != two.task.name or (scorings and one.scoring != two.scoring):
            continue
        if (not same_run or one.judge < two.judge) and (entries := list(_compare(left, right))):
            couples.append(({"a": left.card, "b": right.card}, entries))
    comparisons = [entry for _, entries in couples for entry in entries]
    if not comparisons:
        judged = []
        for folder, judges in zip(dirs, (first, second), strict=True):
            pairs = {judge.stream.task.name: len(judge.stream.pairs) for judge in judges}
            judged.append(f"{folder} judged {sum(pairs.values())} pairs of {join(list(pairs))}")
        raise JudgeSenseError(
            f"the runs share neither pairs nor prompts with gold labels: {', '.join(judged)}. Run "
            "both judges on the same data"
        )
    adjusted = holm([entry["p_value"] for entry in comparisons])
    for entry, p in zip(comparisons, adjusted, strict=True):
        entry["p_holm"] = p
    names = short_names({e[key] for e in comparisons for key in ("judge_a", "judge_b")})
    for cards, entries in couples:
        for entry in entries:
            entry |= {"trust_a": cards["a"].trust, "trust_b": cards["b"].trust}
            entry["text"] = _sentence(entry, names)
    best = []
    for judges in (first,) if same_run else (first, second):
        groups = grouped(((j.stream.task.name, j.stream.scoring) for j in judges), judges)
        best += [_best(group, names) for group in groups.values()]
    return Comparison(
        best=[row for row in best if row is not None],
        advice=[_recommend(entries, names, cards) for cards, entries in couples],
        comparisons=comparisons,
        n_tests=sum(entry["p_value"] is not None for entry in comparisons),
        runs=[str(path) for path in dirs],
    )


def _best(judges: Sequence[_Judge], names: Mapping[str, str]) -> BestJudge | None:
    """The judge with the highest kappa, and where that kappa lies if it is the highest of several.

    None with fewer than two judges that have an interval. The kappas are taken to vary together as
    the judges' right answers to the same items do.
    """
    measured, figures, rights = [], [], []
    for judge in judges:
        check = judge.card.checks["right"]
        if check.estimate is None or check.ci_low is None or check.ci_high is None:
            continue
        measured.append((judge.stream, check.n_items))
        figures.append((check.estimate, check.ci_low, check.ci_high))
        verdicts = judge.verdicts
        has_gold = verdicts.gold != ""
        hits = (verdicts.verdict == verdicts.gold)[has_gold]
        gaps = grouped(verdicts.item[has_gold], (hits - hits.mean()).tolist())
        rights.append({item: sum(of_item) for item, of_item in gaps.items()})
    if len({stream.judge for stream, _ in measured}) < 2:
        return None
    items = dict.fromkeys(item for gaps_of in rights for item in gaps_of)
    table = np.array([[gaps_of.get(item, 0.0) for item in items] for gaps_of in rights])
    sizes = np.sqrt((table**2).sum(axis=1))
    alike = table @ table.T / np.maximum(np.outer(sizes, sizes), 1e-12)
    np.fill_diagonal(alike, 1.0)
    kappas, low, high = zip(*figures, strict=True)
    highest = largest(kappas, low, high, alike)
    (stream, n_items), kappa = measured[highest.place], kappas[highest.place]
    task, judge_name = stream.task.name, stream.judge
    ends = brackets(highest.ci_low, highest.ci_high, lambda end: number(end, 2))
    text = (
        f"{task}: {names[judge_name]} has the highest κ of {len(measured)} judges with the gold "
        f"labels, {number(kappa, 2)} on {n_items} items. Corrected for being the highest of "
        f"several, it is {number(highest.estimate, 2)} {ends}."
    )
    return {
        "judge": judge_name,
        "n_judges": len(measured),
        "n_items": n_items,
        "kappa": kappa,
        "corrected": highest.estimate,
        "ci_low": highest.ci_low,
        "ci_high": highest.ci_high,
        "task": task,
        "scoring": stream.scoring,
        "text": text,
    }
