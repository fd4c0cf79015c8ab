"""``study judge-sensitivity --pool``: what rewording costs beyond asking again, over judges.

Two families, as in the paper's second version: Holm over the tasks' means, and Benjamini-Hochberg
over the cells, which are exploratory. `PoolRules` declares what is left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.stats import false_discovery_control, norm

from judgesense.comparison.paired import grouped
from judgesense.errors import JudgeSenseError
from judgesense.files.documents import validate
from judgesense.reporting.study_result import Record, Result
from judgesense.statistics.comparison import holm
from judgesense.statistics.pooling import (
    NORMAL_95,
    POWER_80,
    Pooled,
    pooled,
)
from judgesense.studies.common.figures import Points
from judgesense.studies.common.study import REANALYSIS, Figure, Study, Tables, table
from judgesense.studies.judge_sensitivity.cells import (
    PUBLISHED,
    UNKNOWN,
    Agreement,
    Cell,
    PoolRules,
    read_sources,
)
from judgesense.studies.judge_sensitivity.runs import task_place
from judgesense.text import join, number, p_value, plural_s

Group = tuple[str, str | None, str | None]


@dataclass(frozen=True)
class Pool:
    """Cells under rules. ``agreement`` are each judge's decided pairs, for groups of runs."""

    cells: Sequence[Cell]
    rules: PoolRules
    agreement: Agreement
    sources: Sequence[str]

    @cached_property
    def groups(self) -> dict[Group, list[Cell]]:
        """The cells by task, scale and scoring, in the paper's order of tasks."""
        cells = sorted(self.cells, key=lambda cell: task_place(cell.task))
        return grouped((cell.group for cell in cells), cells)

    def kept(self, cells: Sequence[Cell]) -> list[Cell]:
        """The cells that the rules leave in."""
        return [cell for cell in cells if self.rules.excluded(cell) is None]

    @cached_property
    def means(self) -> dict[Group, Pooled]:
        """The pooled contrast of each group."""
        means = {}
        for group, cells in self.groups.items():
            pooled_cells = self.kept(cells)
            values = [cell.delta_jss or 0.0 for cell in pooled_cells]
            means[group] = pooled(values, [cell.vendor for cell in pooled_cells], self.rules.floor)
        return means

    @cached_property
    def corrected(self) -> dict[Group, dict[str, float | None]]:
        """The Holm-corrected p-values of each group, one family of groups a test."""
        by_test = {
            f"{unit}_{p}": holm([figures[f"{unit}_{p}"] for figures in self.means.values()])
            for unit in ("judges", "vendors", "vendor_means")
            for p in ("p", "p_floor")
        }
        return {
            group: {name: values[at] for name, values in by_test.items()}
            for at, group in enumerate(self.means)
        }

    @cached_property
    def cell_tests(self) -> dict[int, tuple[float, float, float]]:
        """p, p after Benjamini-Hochberg, and the detectable difference of the cells in the family.

        By their place in ``cells``. The family are the pooled cells with an interval.
        """
        family = [
            at
            for at, cell in enumerate(self.cells)
            if self.rules.excluded(cell) is None
            and cell.delta_ci_low is not None
            and cell.delta_ci_high is not None
        ]
        if not family:
            return {}
        low, high, delta = (
            np.array([getattr(self.cells[at], key) for at in family], dtype=np.float64)
            for key in ("delta_ci_low", "delta_ci_high", "delta_jss")
        )
        errors = (high - low) / (2 * NORMAL_95)
        with np.errstate(divide="ignore", invalid="ignore"):
            z = np.nan_to_num(np.abs(delta) / errors, nan=0.0, posinf=np.inf)
        p = 2 * norm.sf(z)
        figures = p, false_discovery_control(p), (NORMAL_95 + POWER_80) * errors
        return dict(zip(family, zip(*(f.tolist() for f in figures), strict=True), strict=True))

    def best_accuracy(self, group: Group) -> float | None:
        """The accuracy of the most accurate judge, of those with enough items to be pooled."""
        least = self.rules.least_items
        cells = [cell for cell in self.groups[group] if (cell.n_items or least) >= least]
        accuracies = [cell.accuracy for cell in cells if cell.accuracy is not None]
        return max(accuracies, default=None)

    def discriminates(self, group: Group) -> bool | None:
        """Whether any judge is accurate enough for the task to tell judges apart."""
        best, least = self.best_accuracy(group), self.rules.least_accuracy.get(group[0])
        return None if best is None or least is None else best >= least

    def name(self, group: Group) -> str:
        """The task, with scale and scoring where the task has several."""
        values_by_part = [
            set(part) for part in zip(*(g for g in self.groups if g[0] == group[0]), strict=True)
        ]
        parts = [
            part or "not stated"
            for part, values in zip(group[1:], values_by_part[1:], strict=True)
            if len(values) > 1
        ]
        return f"{group[0]} ({', '.join(parts)})" if parts else group[0]


def deciding(pool: Pool, group: Group) -> tuple[str, float] | None:
    """The rule that decides about a group, and its corrected p; None if nothing is tested."""
    mean, corrected = pool.means[group], pool.corrected[group]
    by_vendor, by_judge = corrected["vendors_p_floor"], corrected["judges_p_floor"]
    n_tested = sum(p["judges_p_floor"] is not None for p in pool.corrected.values())
    against = f"against −{pool.rules.floor:g}, Holm over {n_tested} task{plural_s(n_tested)}"
    if by_vendor is not None:
        return f"one-sided t over vendors (CR1, {mean['vendors'] - 1} df) {against}", by_vendor
    if by_judge is None:
        return None
    reason = "a single vendor" if mean["vendors"] else "some vendors unknown"
    return f"one-sided z over judges ({reason}) {against}", by_judge


@table(
    "pooled",
    "ΔJSS pooled over judges",
    "Mean: unweighted over the judges left in. p: z test over judges against 0. floor: one-sided "
    "test against the floor. vendors: the same mean, with errors clustered by vendor (CR1) and t "
    "on vendors - 1 degrees of freedom. vendor means: t test in which each vendor counts once. "
    "All p are Holm-corrected over the tasks. Detectable: smallest mean found with 80% power. "
    "Discriminates: the best judge's accuracy reaches the least that the rules ask of the task.",
    se="error",
    p_holm="p",
    floor_p="p, floor",
    vendor_se="error, vendors",
    vendor_p="p, vendors",
    vendor_floor_p="p, floor, vendors",
    means_floor_p="p, floor, vendor means",
    rule="deciding rule",
)
def pooled_results(pool: Pool) -> Iterator[Record]:
    """The pooled contrast of each task."""
    for group, cells in pool.groups.items():
        mean, p = pool.means[group], pool.corrected[group]
        rule = deciding(pool, group)
        yield {
            "task": pool.name(group),
            "judges": mean["judges"],
            "left_out": len(cells) - mean["judges"],
            **{name: mean[name] for name in ("mean", "sd", "se", "detectable")},
            "p_holm": p["judges_p"],
            "floor_p": p["judges_p_floor"],
            "vendors": mean["vendors"] or None,
            "vendor_se": mean["vendor_se"],
            "vendor_p": p["vendors_p"],
            "vendor_floor_p": p["vendors_p_floor"],
            "means_floor_p": p["vendor_means_p_floor"],
            "best_accuracy": pool.best_accuracy(group),
            "discriminates": pool.discriminates(group),
            "rule": rule and rule[0],
        }


@table(
    "common_support",
    "JSS on the pairs that every judge of a task decided",
    "Only judges from run folders, because tables of cells have no decisions.",
)
def common_results(pool: Pool) -> Iterator[Record]:
    """Whether judges differ only because they left out different pairs."""
    for group, judges in pool.agreement.items():
        common = set.intersection(*(set(pairs) for pairs in judges.values()))
        for judge, pairs in judges.items() if len(judges) > 1 else ():
            jss = sum(pairs.values()) / len(pairs) if pairs else None
            jss_common = sum(pairs[pair] for pair in common) / len(common) if common else None
            yield {
                "task": pool.name(group),
                "judge": judge,
                "n_pairs": len(pairs),
                "n_pairs_common": len(common),
                "jss": jss,
                "jss_common": jss_common,
                "shift": None if jss is None or jss_common is None else jss_common - jss,
            }


@table(
    "cells",
    "The cells",
    "p: from the interval's half width (normal). p after BH: Benjamini-Hochberg over the pooled "
    "cells with an interval; exploratory. Refusal discordance: the share of pairs in which the "
    "judge refused one wording only.",
    p_bh="p after BH",
)
def cell_results(pool: Pool) -> Iterator[Record]:
    """Every cell, with its test or the rule that leaves it out."""
    for at, cell in enumerate(pool.cells):
        p, p_bh, detectable = pool.cell_tests.get(at, (None, None, None))
        yield {
            "task": pool.name(cell.group),
            "judge": cell.judge,
            "vendor": cell.vendor or UNKNOWN,
            "n_items": cell.n_items,
            "jss": cell.jss,
            "jss_repeat": cell.jss_repeat,
            "delta_jss": cell.delta_jss,
            "ci_low": cell.delta_ci_low,
            "ci_high": cell.delta_ci_high,
            "p": p,
            "p_bh": p_bh,
            "detectable": detectable,
            "beyond_floor": None
            if cell.delta_jss is None
            else abs(cell.delta_jss) >= pool.rules.floor,
            "refusal_discordance": cell.refusal_discordance,
            "left_out": pool.rules.excluded(cell),
        }


def findings(pool: Pool, _: Tables) -> Iterator[str]:
    """One sentence a task, with the rule that decides; then the cells."""
    for group, mean in pool.means.items():
        decision = deciding(pool, group)
        if decision is None:
            support = f"{mean['judges']} judge{plural_s(mean['judges'])} left in"
            yield f"{pool.name(group)}: not tested ({support}; a test needs two judges that differ)"
            continue
        rule, p = decision
        verb = "lowers" if p < pool.rules.alpha else "is not shown to lower"
        verb += " JSS below that of repeated prompts by more than the floor"
        detectable = f"; smallest mean detectable with 80% power: {number(mean['detectable'])}"
        yield (
            f"{pool.name(group)}: rewording {verb} (mean ΔJSS {number(mean['mean'])} over "
            f"{mean['judges']} judges). Deciding rule: {rule}, {p_value(p)}{detectable}"
        )
    for group in pool.means:
        if pool.discriminates(group) is False:
            least = pool.rules.least_accuracy[group[0]]
            yield (
                f"{pool.name(group)} does not discriminate: its best judge is right on "
                f"{number(pool.best_accuracy(group))}, under {least:g}"
            )
    if pool.cell_tests:
        q = pool.rules.fdr
        rejected = sum(p_bh <= q for _, p_bh, _ in pool.cell_tests.values())
        yield (
            f"{rejected} of {len(pool.cell_tests)} cells differ from 0 at a false discovery rate "
            f"of {q:g} (Benjamini-Hochberg, exploratory)"
        )


def limits(pool: Pool, _: Tables) -> Iterator[str]:
    """What the pooled figures leave out or cannot know."""
    reasons = Counter(
        reason.partition(":")[0] for cell in pool.cells if (reason := pool.rules.excluded(cell))
    )
    if reasons:
        yield f"left out: {join([f'{n} for {reason}' for reason, n in reasons.items()])}"
    kept = pool.kept(pool.cells)
    if n_bare := sum(cell.delta_ci_low is None or cell.delta_ci_high is None for cell in kept):
        cells = f"{n_bare} cell{plural_s(n_bare)} without an interval"
        yield f"{cells}: pooled, but not tested individually"
    if unknown := sorted({cell.judge for cell in kept if cell.vendor is None}):
        yield (
            f"the vendor of {join(unknown)} is unknown, so their tasks are not clustered by "
            'vendor; add --set "vendors={JUDGE: VENDOR}" or a column vendor'
        )
    tasks = Counter(cell.judge for cell in kept)
    n_tasks = len({cell.task for cell in kept})
    if n_tasks > 1 and (singles := sorted(judge for judge, n in tasks.items() if n == 1)):
        yield f"on one task only: {join(singles)}; so the means of the tasks cover different judges"
    for task, n in Counter(group[0] for group in pool.groups).items():
        if n > 1:
            yield f"{task} has {n} scales or scorings, which are not pooled with each other"
    if len({bool(cell.scale) for cell in pool.cells}) > 1:
        yield "some cells do not state their scale; these cells form separate groups"
    if any(source == PUBLISHED for source in pool.sources):
        yield (
            "v2 counts an unreadable answer as disagreement and uses canonical option orders only"
        )


FIGURES = (
    Figure(
        "pooled",
        "ΔJSS by judge, with 95% intervals; left of 0: less steady when reworded",
        lambda pool, results: (row for row in results["cells"].rows if row["left_out"] is None),
        Points(
            group="task",
            name="judge",
            values={"": ("delta_jss", "ci_low", "ci_high")},
            xlabel="ΔJSS",
            limits=(-0.3, 0.1),
        ),
    ),
)


def pool_cells(sources: Sequence[str], settings: Mapping[str, Any]) -> Result:
    """Pool the cells of tables (columns as `cells.Cell`), of run folders, or of ``v2`` (published).

    ``settings`` are values for the fields of `PoolRules`. Raises JudgeSenseError for an unknown
    setting, a file without a table of cells, and a judge with two cells in one group.

    >>> result = pool_cells(["v2"], {})
    >>> [(row["task"], round(row["mean"], 4)) for row in result.table("pooled").rows][:2]
    [('coherence', -0.1809), ('factuality', -0.0567)]
    """
    if not sources:
        raise JudgeSenseError("--pool needs at least one table of cells or run folder")
    rules = validate(PoolRules, dict(settings), "--set", "a rule of --pool")
    cells, agreement = read_sources(sources, rules)
    pool = Pool(cells, rules, agreement, sources)
    study = Study(
        "judge-sensitivity-pooled",
        "How much rewording costs beyond asking again, over judges",
        (pooled_results, common_results, cell_results),
        FIGURES,
        (findings,),
        (limits,),
    )
    entries = {
        **REANALYSIS,
        "sources": list(sources),
        **rules.model_dump(exclude={"vendors", "least_accuracy"}),
    }
    return study.result(pool, entries)
