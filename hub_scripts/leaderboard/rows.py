"""The rows of the leaderboard: judges on tasks with their figures, ranked as far as tests do.

Judges of the same task, scoring and pairs are ranked by κ with the gold labels, with paired tests
on the items that all of them judged: see :func:`judgesense.statistics.ranks.paired_above`. Judges
of other data are never ranked against each other.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, islice
from types import MappingProxyType
from typing import Any

import numpy as np

from hub_scripts.evaluations import hub_model
from hub_scripts.leaderboard.records import FIGURE, REPORTED, RUN, Change, Row, Tables
from judgesense.log.view import BASELINES
from judgesense.measure.assessment import Assessment, ReportContents, task_rank
from judgesense.measure.card import TRUST, USABLE
from judgesense.measure.thresholds import LEAST_COVERAGE
from judgesense.published import V2, v2_figures
from judgesense.recipes.recipe import AS_ASKED
from judgesense.reporting.case import reasons
from judgesense.statistics.arrays import Bools
from judgesense.statistics.gold import table_figures
from judgesense.statistics.ranks import paired_above, ranks_of
from judgesense.text import percent, short_names
from local_judges.options import REMOTE

Key = tuple[str, str, str]
"""Judge, task and scoring."""

ALONE = "no other judge of this data can be ranked"

PEOPLE = "people"
"""Whose labels a published log has; a run has the gold labels of its data."""

_DATA = re.compile(r"\|data:([0-9a-f]{8})\|")
_LOCAL_ENGINES = ("transformers", "vllm", "ray")


NO_TABLES: Mapping[Key, Tables] = MappingProxyType({})


Entry = tuple[Row, Tables | None]
"""A row that is not ranked yet, and its judge's answers beside the gold labels."""


def entries(
    report: ReportContents, run: str, gold: Mapping[Key, Tables] = NO_TABLES, verified: bool = False
) -> Iterator[Entry]:
    """The rows of a run's checked report, not ranked yet; ``run`` is the name of its folder.

    ``gold`` has the answers beside the gold labels by judge, task and scoring. Only the judges of a
    ``verified`` run are named as models on the Hub, and measured here.
    """
    record: Mapping[str, Any] = report.runs[0] if report.runs else {}
    source = record.get("dataset") or {}
    data_name = "imported log" if "imported" in record else "own pairs"
    data = f"{source.get('name') or data_name} {source.get('version') or ''}".strip()
    descriptions = {
        judge["name"]: judge["describe"]
        for judge in record.get("judges") or []
        if judge.get("describe")
    }
    for assessment in report.assessments:
        if assessment.judge in BASELINES:
            continue
        description = descriptions.get(assessment.judge, {})
        engine = description.get("engine")
        tables = gold.get((assessment.judge, assessment.task, assessment.scoring))
        row = replace(
            row_of(assessment, run, data, tables),
            weights="open" if engine in _LOCAL_ENGINES else "api" if engine in REMOTE else None,
            model=hub_model(assessment.judge, description) if verified else None,
            kind=RUN if verified else REPORTED,
        )
        yield row, tables


def row_of(assessment: Assessment, run: str, data: str, tables: Tables | None = None) -> Row:
    """An assessment as a row, not ranked yet, of a run and of data as they are named."""
    card, cell = assessment.card, assessment.mapped
    steady, right, fair = (card.checks[name] for name in ("steady", "right", "fair"))
    details, figure = right.details, (cell.jss, cell.ci_low, cell.ci_high)
    if steady.estimate is not None:
        figure = (steady.estimate, steady.ci_low, steady.ci_high)
    accuracy = details.get("accuracy")
    change = None
    for remedy in assessment.remedies:
        if remedy.remedy == card.remedy != AS_ASKED and remedy.trust in USABLE:
            change = Change.of(remedy)
    pairs = _DATA.search(cell.signature)
    return Row(
        task=assessment.task,
        labels="gold" if tables else None,
        scale=tables is not None and tables.ordinal,
        data=data,
        pairs=pairs[1] if pairs else run,
        scoring=assessment.scoring,
        judge=assessment.judge,
        run=run,
        page=page_of(run, assessment.judge),
        trust=card.trust,
        reason=" and ".join(islice(reasons(card), 2)) or None,
        change=change,
        jss=figure[0],
        ci_low=figure[1],
        ci_high=figure[2],
        raw_jss=assessment.raw.jss,
        one_label=cell.degenerate is not None,
        accuracy=cell.accuracy if accuracy is None else accuracy,
        accuracy_ci_low=details.get("accuracy_ci_low"),
        accuracy_ci_high=details.get("accuracy_ci_high"),
        constant_accuracy=details.get("constant_accuracy"),
        beats_constant=details.get("beats_constant"),
        beats_constant_ci_low=details.get("beats_constant_ci_low"),
        beats_constant_ci_high=details.get("beats_constant_ci_high"),
        kappa_gold=right.estimate,
        kappa_gold_ci_low=right.ci_low,
        kappa_gold_ci_high=right.ci_high,
        n_gold=right.n_items,
        answered=tables.answered if tables else None,
        fair=fair.state if fair.applies else None,
        position_consistency=cell.position_consistency,
        position_ci_low=cell.position_ci_low,
        position_ci_high=cell.position_ci_high,
        first_position_rate=cell.first_position_rate,
        no_verdict=cell.undecided_share,
        noise_floor=cell.noise_floor,
        jss_repeat=cell.jss_repeat,
        delta_jss=cell.delta_jss,
        kappa=cell.kappa,
        n_items=cell.n_items,
        n_pairs=cell.n_pairs,
        signature=cell.signature,
    )


def page_of(run: str, judge: str) -> str:
    """The address of a judge's page, below the board's."""
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", judge.partition("@")[0])[:60].strip(".-") or "judge"
    return f"judges/{name}-{hashlib.sha256(f'{run}|{judge}'.encode()).hexdigest()[:8]}.html"


def ranked_rows(board: Iterable[Entry]) -> list[Row]:
    """The rows in groups of judges that can be compared: same task, pairs and scoring.

    In a group are the ranked judges by rank, then those without a rank by trust, whether a change
    makes them usable and how much more often they are right than a constant answer.
    """
    groups: dict[tuple[str, str, str], list[Entry]] = {}
    for row, tables in board:
        groups.setdefault((row.task, row.pairs, row.scoring), []).append((row, tables))
    return sorted_rows(
        row for members in groups.values() for row in sorted(_ranked_group(members), key=_sort_key)
    )


def sorted_rows(rows: Iterable[Row]) -> list[Row]:
    """Rows by task; in a task, data with people's labels first and quoted figures last."""
    groups: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(row.group, []).append(row)

    def group_key(group: tuple[tuple[str, ...], list[Row]]) -> tuple[Any, ...]:
        key, members = group
        n_ranked = sum(row.rank is not None for row in members)
        lacks_people = members[0].labels != PEOPLE
        is_quoted = members[0].kind == FIGURE
        return task_rank(key[0]), lacks_people, is_quoted, -n_ranked, -len(members), key

    return [row for _, group in sorted(groups.items(), key=group_key) for row in group]


def _ranked_group(members: Sequence[Entry]) -> list[Row]:
    """Rows of a group, ranked by κ with the gold labels."""
    rows, rankable = [], list[Entry]()
    for row, tables in members:
        if tables is None:
            rows.append(replace(row, no_rank="no gold labels"))
        elif tables.answered < LEAST_COVERAGE:
            reason = f"answered only {percent(tables.answered)} of its prompts"
            rows.append(replace(row, no_rank=reason))
        else:
            rankable.append((row, tables))
    names = [row.judge for row, _ in rankable]
    if len(set(names)) < 2:
        # A first place among one judge says nothing.
        return [*rows, *(replace(row, no_rank=ALONE) for row, _ in rankable)]
    first, last = ranks_of(_is_above([tables for _, tables in rankable if tables]), names)
    for (row, _), best, worst in zip(rankable, first.tolist(), last.tolist(), strict=True):
        rows.append(replace(row, rank=best, rank_last=worst))
    return rows


def _is_above(judges: Sequence[Tables]) -> Bools:
    """Whether a judge's κ is shown to be higher than another's, on the items that all judged."""
    shared = set.intersection(*(set(judge.by_cluster) for judge in judges))
    if not shared:
        return np.zeros((len(judges), len(judges)), dtype=bool)
    tables = np.array([[judge.by_cluster[name] for name in sorted(shared)] for judge in judges])
    totals, n = tables.sum(axis=1, keepdims=True), len(shared)
    ordinal = judges[0].ordinal
    kappa = np.nan_to_num(table_figures(totals, ordinal)["kappa"])
    # The jackknife's values: what each cluster adds to κ.
    jackknife = np.nan_to_num(table_figures(totals - tables, ordinal)["kappa"]) if n > 1 else kappa
    influences = (jackknife.mean(axis=1, keepdims=True) - jackknife) * ((n - 1) / n) ** 0.5
    return paired_above(kappa[:, 0], influences)


def _sort_key(row: Row) -> tuple[Any, ...]:
    usable: tuple[float, ...] = ()
    if row.rank is None:
        # The more usable judge first: a constant answer is steady and useless.
        beats = -1 if row.beats_constant is None else row.beats_constant
        usable = (TRUST.index(row.trust or "unknown"), row.change is None, -beats)
    figures = (-(-1 if value is None else value) for value in (row.kappa_gold, row.jss))
    return row.rank is None, row.rank or 0, *usable, *figures, row.judge, row.run


@dataclass(frozen=True)
class Recommendation:
    """The judge to use for a task, by some data.

    ``leader`` is the row of the judge with the highest κ, ``name`` its short name, ``beaten`` the
    number of judges shown to have a lower one, ``alike`` of those not told apart from it, of
    ``judges`` in all. ``usable`` is the row of the first judge to use, if need be with care.
    """

    leader: Row
    name: str
    beaten: int
    alike: int
    judges: int
    usable: Row | None


def recommendations(rows: Sequence[Row]) -> list[Recommendation]:
    """The judges to use for a task: for each data with gold labels, the leader and its lead.

    Where no judge with labels can be used, the steadiest of the published figures follows.
    """
    advice: list[Recommendation] = []
    for _, group in groupby(rows, key=lambda row: (row.data, row.pairs, row.scoring)):
        group_rows = list(group)
        ranked = [row for row in group_rows if row.rank is not None]
        has_usable = any(other.leader.trust != "avoid" or other.leader.change for other in advice)
        if not group_rows[0].labels and has_usable:
            continue
        names = short_names({row.judge for row in group_rows})
        leader = (ranked or group_rows)[0]
        n = len({row.judge for row in ranked})
        beaten = n - leader.rank_last if leader.rank_last is not None else 0
        advice.append(
            Recommendation(
                leader=leader,
                name=names[leader.judge],
                beaten=beaten,
                alike=max(0, n - 1 - beaten),
                judges=len(group_rows),
                usable=next((row for row in group_rows if row.trust in USABLE), None),
            )
        )
    return advice


def figure_rows() -> Iterator[Row]:
    """The published figures of the JudgeSense paper's second version: no trust, no rank."""
    run = f"published/{V2}"
    for figure in sorted(v2_figures(), key=lambda figure: -figure.jss):
        reasons = ("quoted from a paper with other items and wordings", *figure.notes[1:])
        yield Row(
            task=figure.task,
            kind=FIGURE,
            data="JudgeSense v2",
            pairs=V2,
            scoring="generate",
            no_rank="; ".join(reasons),
            judge=figure.published_as,
            run=run,
            page=page_of(run, figure.published_as),
            jss=figure.jss,
            ci_low=figure.ci_low,
            ci_high=figure.ci_high,
            accuracy=figure.accuracy,
            first_position_rate=figure.first_position,
            no_verdict=figure.unclear,
            jss_repeat=figure.jss_repeat,
            delta_jss=figure.delta_jss,
            kappa=figure.kappa,
            n_items=figure.n_items,
            n_pairs=figure.n_pairs,
            signature=f"{figure.source}, as {figure.published_as}",
        )
