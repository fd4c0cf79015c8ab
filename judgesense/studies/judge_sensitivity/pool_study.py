"""``study judge-sensitivity --pool``: what it shows of the pooled cells, and its sentences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from judgesense.errors import JudgeSenseError
from judgesense.files.documents import fit
from judgesense.reporting.result import Result
from judgesense.studies.common.figures import Points
from judgesense.studies.common.study import Figure, Study, Tables
from judgesense.studies.judge_sensitivity import pooled
from judgesense.studies.judge_sensitivity.cells import PUBLISHED, PoolRules, read_sources
from judgesense.studies.judge_sensitivity.pooled import Pool, deciding
from judgesense.text import join, number, p_value, s


def findings(pool: Pool, made: Tables) -> Iterator[str]:
    """One sentence a task, with the rule that decides; then the cells."""
    for group, one in pool.means.items():
        decided = deciding(pool, group)
        if decided is None:
            few = f"{one.judges.n} judge{s(one.judges.n)} left in"
            yield f"{pool.name(group)}: not tested, {few}; two that differ are needed"
            continue
        rule, p = decided
        shown = "costs more than asking again, beyond the floor" if p < pool.rules.alpha else (
            "is not shown to cost more than the floor"
        )  # fmt: skip
        detectable = f"; detectable with 80% power: {number(one.detectable)}"
        yield (
            f"{pool.name(group)}: rewording {shown} (mean ΔJSS {number(one.judges.mean)} over "
            f"{one.judges.n} judges). Deciding rule: {rule}, {p_value(p)}{detectable}"
        )
    if pool.cell_tests:
        q = pool.rules.fdr
        rejected = sum(p_bh <= q for _, p_bh, _ in pool.cell_tests.values())
        yield (
            f"{rejected} of {len(pool.cell_tests)} cells differ from 0 at a false discovery rate "
            f"of {q:g} (Benjamini-Hochberg, exploratory)"
        )


def limits(pool: Pool, made: Tables) -> Iterator[str]:
    """What the pooled figures leave out or cannot know."""
    out = Counter(
        why.partition(":")[0] for cell in pool.cells if (why := pool.rules.excluded(cell))
    )
    if out:
        yield f"left out: {join([f'{n} for {why}' for why, n in out.items()])}"
    kept = pool.kept(pool.cells)
    if bare := sum(cell.delta_ci_low is None or cell.delta_ci_high is None for cell in kept):
        yield f"{bare} cell{s(bare)} without an interval: pooled, but not tested one by one"
    if unknown := sorted({cell.judge for cell in kept if cell.vendor is None}):
        yield (
            f"the vendor of {join(unknown)} is unknown, so their tasks are not clustered by "
            'vendor; give it: --set "vendors={JUDGE: VENDOR}", or a column vendor'
        )
    tasks = Counter(cell.judge for cell in kept)
    n_tasks = len({cell.task for cell in kept})
    if n_tasks > 1 and (one := sorted(judge for judge, n in tasks.items() if n == 1)):
        yield f"on one task only: {join(one)}; the means of two tasks cover other judges"
    for task, n in Counter(group[0] for group in pool.groups).items():
        if n > 1:
            yield f"{task} has {n} scales or scorings, which are not pooled with each other"
    if len({bool(cell.scale) for cell in pool.cells}) > 1:
        yield "some cells do not state their scale; they form groups of their own"
    if any(source == PUBLISHED for source in pool.sources):
        yield (
            "v2 counts an unreadable answer as disagreement and takes canonical option orders only"
        )


FIGURES = (
    Figure(
        "pooled", "ΔJSS by judge, with 95% intervals; left of 0: less steady when reworded",
        lambda pool, made: (row for row in made["cells"].rows if row["left_out"] is None),
        Points(
            group="task", name="judge", values={"": ("delta_jss", "ci_low", "ci_high")},
            xlabel="ΔJSS", limits=(-0.3, 0.1),
        ),
    ),
)  # fmt: skip


def pool_cells(sources: Sequence[str], settings: Mapping[str, Any]) -> Result:
    """Pool the cells of tables and runs.

    Args:
        sources: tables of cells (columns as `cells.Cell`), run folders, or ``v2``, the published
            cells.
        settings: values for the fields of `PoolRules`.

    Raises:
        JudgeSenseError: for an unknown setting, a file that is no table of cells, and a judge that
            has two cells in one group.

    >>> result = pool_cells(["v2"], {})
    >>> [(row["task"], round(row["mean"], 4)) for row in result.table("pooled").rows][:2]
    [('coherence', -0.1809), ('factuality', -0.0567)]
    """
    if not sources:
        raise JudgeSenseError("--pool needs at least one table of cells or run folder")
    rules = fit(PoolRules, dict(settings), "--set", "a rule of --pool")
    read = read_sources(sources, rules)
    pool = Pool(read.cells, rules, read.agreement, sources)
    study = Study(
        "judge-sensitivity-pooled",
        "How much rewording costs beyond asking again, over judges",
        (
            pooled.pooled_results, pooled.common_results, pooled.cell_results,
        ),
        FIGURES,
        (findings,),
        (limits,),
    )  # fmt: skip
    shown = {"sources": list(sources), **rules.model_dump(exclude={"vendors"})}
    return study.result(pool, shown)
