"""Which of two judges is steadier and which more often right: paired tests on what both judged."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow as pa

from judgesense.comparison.compare_result import (
    BestJudge,
    Comparison,
    JudgeComparison,
    Side,
    comparison_text,
    recommendation,
)
from judgesense.comparison.paired import PairedTable, grouped, shared_rows
from judgesense.comparison.score_change import score_changes
from judgesense.comparison.score_change_result import ScoreChange
from judgesense.comparison.score_sides import judge_changes
from judgesense.comparison.verdicts import Verdicts, first_rows, verdicts_of
from judgesense.errors import JudgeSenseError
from judgesense.log.answers import Answers
from judgesense.log.folder import read_run
from judgesense.measure.assessment import task_rank
from judgesense.measure.card import TrustCard
from judgesense.measure.checks import trust_card
from judgesense.measure.wordings import Wordings
from judgesense.statistics.arrays import Bools, Codes
from judgesense.statistics.comparison import holm, paired_test
from judgesense.statistics.planning import smallest_difference
from judgesense.statistics.selection import largest
from judgesense.tasks import UNDECIDED
from judgesense.text import brackets, join, number, short_names


@dataclass(frozen=True)
class _Judge:
    """A judge of a run on a task, and its trust card."""

    answers: Answers
    card: TrustCard
    folder: Path

    @cached_property
    def verdicts(self) -> Verdicts:
        """Its first answer to every prompt."""
        return verdicts_of(self.answers, self.folder, repeats=False)

    @cached_property
    def pairs(self) -> dict[frozenset[str], int]:
        """Both prompts' ids -> the judged pair; runs may differ in which prompt comes first."""
        places = np.flatnonzero(self.answers.known)
        ids = (side.take(pa.array(places)).to_pylist() for side in self.answers.pairs.prompt_ids)
        return first_rows(map(frozenset, zip(*ids, strict=True)), places.tolist())


def _judges(run_dir: Path) -> list[_Judge]:
    """The judges of a run, with the trust cards of its report."""
    every = sorted(
        read_run(run_dir).judged, key=lambda answers: (task_rank(answers.task.name), answers.judge)
    )
    return [
        _Judge(answers, trust_card(answers, mislabelled=Wordings.of(answers).mislabelled), run_dir)
        for answers in every
    ]


def _compare(a: _Judge, b: _Judge) -> Iterator[JudgeComparison]:
    """The paired tests of two judges: on pairs of wordings, and on prompts with a gold label."""
    one, two = a.answers, b.answers
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
    has_gold = a.verdicts.gold[prompts.before_row] != "", b.verdicts.gold[prompts.after_row] != ""
    prompts = prompts.where(has_gold[0] & has_gold[1])
    gold = prompts.require_gold(one.task.name)
    decided = ~(np.isin(prompts.old, UNDECIDED) | np.isin(prompts.new, UNDECIDED))
    if decided.any():
        rows = a.verdicts.rows.log_rows[prompts.before_row]
        hits = [prompts.old == gold, prompts.new == gold]
        clusters, items = one.log.cluster[rows], one.log.item[rows]
        yield _comparison(one, two, "accuracy", hits, decided, clusters, items)


def _comparison(
    one: Answers,
    two: Answers,
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


def compare(
    a: str | Path,
    b: str | Path,
    *,
    anchors: str | Path | None = None,
    positive: str | None = None,
) -> Comparison:
    """Compare every judge of run A with every judge of run B on what both judged.

    Where B is another run, the change of each task's mean from A to B is split into the judge's
    part and that of the judged system. Mapped decisions are compared. Only equal scorings are
    compared; if two runs share none, each scoring of A is compared with each of B. Pass the same
    folder twice to compare its judges with each other.

    Args:
        a: folder of the first run.
        b: folder of the second run, or the first again.
        anchors: folder with verdicts of B's judge on the outputs of A.
        positive: the label that counts as good, where the labels do not show it.

    Returns:
        The comparison; ``comparisons`` is empty if no labels and no wordings are shared, and
        ``changes`` if A and B are one run; never both.

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
    if same_run and len({judge.answers.judge for judge in first}) < 2:
        raise JudgeSenseError(
            f"{dirs[0]} holds only one judge, {first[0].answers.judge}; name the folder of another "
            "run to compare it with"
        )
    scorings = {judge.answers.scoring for judge in first} & {j.answers.scoring for j in second}
    couples: list[tuple[dict[Side, TrustCard], list[JudgeComparison]]] = []
    for left, right in product(first, second):
        one, two = left.answers, right.answers
        if one.task.name != two.task.name or (scorings and one.scoring != two.scoring):
            continue
        if (not same_run or one.judge < two.judge) and (entries := list(_compare(left, right))):
            couples.append(({"a": left.card, "b": right.card}, entries))
    comparisons = [entry for _, entries in couples for entry in entries]
    changes, reason = list[ScoreChange](), "both are the same run"
    if not same_run:
        again = None if anchors is None else Path(anchors)
        try:
            changes = score_changes(*dirs, anchors=again, positive=positive)
            reason = f"there are {len(changes)} tasks; each has its own"
        except JudgeSenseError as error:
            is_import = any(judge.answers.log.is_imported for judge in (*first, *second))
            if anchors is not None or (is_import and not comparisons):
                raise
            reason = str(error)
    if not comparisons and not changes:
        tasks = [join(sorted({j.answers.task.name for j in judges})) for judges in (first, second)]
        raise JudgeSenseError(
            f"the runs share neither pairs nor prompts with gold labels: {dirs[0]} judged "
            f"{tasks[0]}, and {dirs[1]} judged {tasks[1]}. Run both judges on the same data"
        )
    adjusted = holm([entry["p_value"] for entry in comparisons])
    for entry, p in zip(comparisons, adjusted, strict=True):
        entry["p_holm"] = p
    names = short_names({name for e in comparisons for name in (e["judge_a"], e["judge_b"])})
    for cards, entries in couples:
        for entry in entries:
            entry |= {"trust_a": cards["a"].trust, "trust_b": cards["b"].trust}
            entry["text"] = comparison_text(entry, names)
    best = []
    for judges in (first,) if same_run else (first, second):
        groups = grouped(((j.answers.task.name, j.answers.scoring) for j in judges), judges)
        best += [_best(group, names) for group in groups.values()]
    return Comparison(
        best=[row for row in best if row is not None],
        advice=[recommendation(entries, names, cards) for cards, entries in couples],
        comparisons=comparisons,
        n_tests=sum(entry["p_value"] is not None for entry in comparisons),
        runs=[str(path) for path in dirs],
        judge_changes=() if same_run else tuple(judge_changes(*dirs)),
        changes=tuple(changes),
        split=changes[0].split if len(changes) == 1 else None,
        split_reason=changes[0].split_reason if len(changes) == 1 else reason,
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
        measured.append((judge.answers, check.n_items))
        figures.append((check.estimate, check.ci_low, check.ci_high))
        verdicts = judge.verdicts
        has_gold = verdicts.gold != ""
        hits = (verdicts.verdict == verdicts.gold)[has_gold]
        gaps = grouped(verdicts.item[has_gold], (hits - hits.mean()).tolist())
        rights.append({item: sum(of_item) for item, of_item in gaps.items()})
    if len({answers.judge for answers, _ in measured}) < 2:
        return None
    items = dict.fromkeys(item for gaps_of in rights for item in gaps_of)
    table = np.array([[gaps_of.get(item, 0.0) for item in items] for gaps_of in rights])
    sizes = np.sqrt((table**2).sum(axis=1))
    alike = table @ table.T / np.maximum(np.outer(sizes, sizes), 1e-12)
    np.fill_diagonal(alike, 1.0)
    kappas, low, high = zip(*figures, strict=True)
    highest = largest(kappas, low, high, alike)
    (answers, n_items), kappa = measured[highest.place], kappas[highest.place]
    ends = brackets(highest.ci_low, highest.ci_high, lambda end: number(end, 2))
    text = (
        f"{answers.task.name}: {names[answers.judge]} has the highest κ of {len(measured)} judges "
        f"with the gold labels, {number(kappa, 2)} on {n_items} items. Corrected for being the "
        f"highest of several, it is {number(highest.estimate, 2)} {ends}."
    )
    return {
        "judge": answers.judge,
        "n_judges": len(measured),
        "n_items": n_items,
        "kappa": kappa,
        "corrected": highest.estimate,
        "ci_low": highest.ci_low,
        "ci_high": highest.ci_high,
        "task": answers.task.name,
        "scoring": answers.scoring,
        "text": text,
    }
