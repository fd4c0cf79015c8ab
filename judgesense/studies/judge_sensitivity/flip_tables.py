"""The tables of where flips come from: inverted wordings, pairs, option orders, other judges."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from judgesense import published
from judgesense.log.answers import agreement
from judgesense.log.rows import Log
from judgesense.reporting.study_result import Record
from judgesense.statistics.arrays import Bools, Codes
from judgesense.statistics.flips import flip_overlap, flip_sources
from judgesense.studies.common.study import mean, table
from judgesense.studies.judge_sensitivity.runs import JudgedCase
from judgesense.studies.judge_sensitivity.tables import (
    FIRST,
    HERE,
    Sensitivity,
    difference,
    judged_here,
    published_note,
    stated_there,
    v1_figures,
    v2_figures,
)
from judgesense.tasks import ORDERS


@table(
    "table_3",
    "Table 3: effect of polarity correction",
    lambda study: (
        "JSS is mapped through the label maps of the wordings; raw JSS is not. T4 is the inverted "
        "wording (template 4 of factuality); the last columns split the pairs by whether one of "
        "their wordings is T4." + published_note(study)
    ),
    jss_raw="raw JSS",
    jss_without_t4="JSS without T4",
    jss_raw_with_t4="raw JSS with T4",
    jss_with_t4="JSS with T4",
    n_pairs_without_t4="pairs without T4",
    n_pairs_with_t4="pairs with T4",
)
def polarity_results(study: Sensitivity) -> Iterator[Record]:
    """JSS raw and through the label maps, with and without inverted wordings."""
    cases = [case for case in study.main.cases if case.answers.inverted]
    for case in cases:
        answers, mixed = case.answers, case.answers.with_inverted
        raw, mapped = answers.agreement("raw").jss, answers.agreement("mapped").jss
        without = answers.agreement("mapped", ~mixed)
        with_raw, with_mapped = (answers.agreement(labels, mixed) for labels in ("raw", "mapped"))
        fields = _polarity(
            raw, mapped, (without.jss, without.n_pairs), (with_mapped.jss, with_raw.n_pairs)
        )
        yield {**judged_here(case), **fields, "jss_raw_with_t4": with_raw.jss}
    if not cases or not study.with_published:
        return
    for figure in v2_figures("factuality"):
        yield {**stated_there(figure), **_polarity(None, figure.jss)}
    mapped_jss = {figure.judge: figure.jss for figure in v1_figures("factuality", "mapped")}
    for figure in v1_figures("factuality"):
        template_4 = published.published_data()["template_4"][figure.judge]
        fields = _polarity(figure.jss, mapped_jss[figure.judge], template_4[:2], template_4[2:])
        yield {**stated_there(figure), **fields}


Share = tuple[float | None, int | None]
"""A JSS and its number of pairs."""


def _polarity(
    raw: float | None,
    mapped: float | None,
    without: Share = (None, None),
    with_t4: Share = (None, None),
) -> Record:
    """The columns of the polarity table; raw JSS with T4 is left undefined."""
    return {
        "jss_raw": raw,
        "jss": mapped,
        "gain": difference(mapped, raw),
        "jss_without_t4": without[0],
        "jss_raw_with_t4": None,
        "jss_with_t4": with_t4[0],
        "n_pairs_without_t4": without[1],
        "n_pairs_with_t4": with_t4[1],
    }


def _flips(cases: Sequence[JudgedCase], labels: str) -> tuple[Codes, Codes] | None:
    """How many judges flip on each pair, and how many decided it; None if one judged no pair."""
    sides = {case.judge: case.answers.words(labels) for case in cases}
    if not all(len(first) for first, _ in sides.values()):
        return None
    return flip_overlap(
        {judge: (first.tolist(), second.tolist()) for judge, (first, second) in sides.items()}
    )


@table(
    "flip_overlap",
    "How many judges flip on the same pair?",
    lambda study: (
        "If every judge flips on a pair, suspect its wordings. Pairs that no judge decided on both "
        "sides are left out."
        + (
            " The published count covers thirteen judges and 119 pairs "
            "(published/factuality_pair_flip_overlap.csv); it does not say which are inverted."
            if study.with_published
            else ""
        )
        + published_note(study, v2=False)
    ),
    n_judges_flipped="judges that flip",
    n_pairs_inverted="of these, inverted wording",
)
def flip_results(study: Sensitivity) -> Iterator[Record]:
    """How many judges flip on the same pairs (section 5.3)."""
    factuality = False
    for task, scoring, cases in study.main.groups():
        first = cases[0].answers
        for labels in ("raw", "mapped") if first.inverted else ("mapped",):
            if (counts_of_judges := _flips(cases, labels)) is None:
                continue
            flips, judged = counts_of_judges
            counts, inverted = Counter[int](), Counter[int]()
            for count, total, mixed in zip(
                flips.tolist(), judged.tolist(), first.with_inverted, strict=True
            ):
                if total:
                    counts[count] += 1
                    inverted[count] += bool(mixed)
            factuality |= task == "factuality" and bool(counts)
            for count, n in sorted(counts.items()):
                yield {
                    "task": task,
                    "measured": HERE,
                    "scoring": scoring,
                    "decisions": labels,
                    "n_judges": len(cases),
                    "n_judges_flipped": count,
                    "n_pairs": n,
                    "n_pairs_inverted": inverted[count] if first.inverted else None,
                }
    if factuality and study.with_published:
        for count, n in sorted(Counter(published.published_data()["pair_flips"].values()).items()):
            yield {
                "task": "factuality",
                "measured": FIRST,
                "scoring": "generate",
                "decisions": "raw",
                "n_judges": 13,
                "n_judges_flipped": count,
                "n_pairs": n,
                "n_pairs_inverted": None,
            }


WITH, WITHOUT = "with an inverted wording", "without one"


@table(
    "template_pairs",
    "Flips by pair of wordings (section 5.3)",
    lambda study: (
        "flips: how many of the judges flip on a pair, the mean over pairs, raw. JSS: means over "
        "judges. Only tasks with an inverted wording."
        + (
            " Published: the paper's nine judges, from published/factuality_pair_flip_overlap.csv "
            "and factuality_per_template_pair_JSS.csv; their raw JSS counts each pair once."
            if study.with_published
            else ""
        )
        + published_note(study, v2=False)
    ),
    jss_raw="raw JSS",
)
def template_pair_results(study: Sensitivity) -> Iterator[Record]:
    """How often judges flip between two wordings, and how much an inverted one accounts for."""
    has_factuality = False
    for task, scoring, cases in study.main.groups():
        first = cases[0].answers
        if not first.inverted or (counts := _flips(cases, "raw")) is None:
            continue
        has_factuality |= task == "factuality"
        names = np.array([_pair_name(*sides) for sides in zip(*first.templates, strict=True)])
        parts = {name: names == name for name in sorted(set(names.tolist()))}
        parts |= {WITH: first.with_inverted, WITHOUT: ~first.with_inverted}
        for name, keep in parts.items():
            mask = keep & (counts[1] > 0)
            if mask.any():
                yield {
                    "task": task,
                    "measured": HERE,
                    "scoring": scoring,
                    "wordings": name,
                    "n_judges": len(cases),
                    "n_pairs": int(mask.sum()),
                    "flips": float(counts[0][mask].mean()),
                    "jss_raw": _mean_jss(cases, "raw", keep),
                    "jss": _mean_jss(cases, "mapped", keep),
                }
    if not has_factuality or not study.with_published:
        return
    pairs = published.published_data()["template_pairs"]
    inverted = [name for name in pairs if "T4" in name]
    groups = {name: [name] for name in pairs}
    groups |= {WITH: inverted, WITHOUT: [name for name in pairs if name not in inverted]}
    for name, members in groups.items():
        n, flips = (sum(pairs[member][at] for member in members) for at in (0, 1))
        yield {
            "task": "factuality",
            "measured": FIRST,
            "scoring": "generate",
            "wordings": name,
            "n_judges": 9,
            "n_pairs": n,
            "flips": flips / n,
            "jss_raw": 1 - flips / n / 9,
            "jss": pairs[name][2] if name in pairs else None,
        }


def _pair_name(first: str, second: str) -> str:
    """Two wordings; those of the published pairs as the paper writes them (T3-T4)."""
    first, second = sorted((first, second))
    if published.is_published_wording(first) and published.is_published_wording(second):
        return "-".join(f"T{name.rpartition('-')[2]}" for name in (first, second))
    return f"{first}, {second}"


def _mean_jss(cases: Sequence[JudgedCase], labels: str, keep: Bools) -> float | None:
    return mean(case.answers.agreement(labels, keep).jss for case in cases)


def _prompt(log: Log, rows: Codes) -> Codes:
    """A code of the item, wording and option order of some rows of the log."""
    wording = log.item[rows] * len(log.templates) + log.template[rows]
    prompts: Codes = wording * len(log.orders) + log.order[rows]
    return prompts


@table(
    "across_judges",
    "Agreement of different judges on the same prompts",
    "JSS across judges: the share of prompts to which both judges give the same verdict (mapped; "
    "prompts that both decided). itself: the lower of the two judges' own JSS under rewording. "
    "95% Wilson intervals, clustered by item.",
    jss="JSS across judges",
    jss_itself="itself",
    n_pairs="prompts",
)
def across_judges(study: Sensitivity) -> Iterator[Record]:
    """JSS with another judge in place of another wording (section 7, future work)."""
    for task, scoring, cases in study.main.groups():
        for case, other in combinations(cases, 2):
            log, rows, others = case.answers.log, case.answers.rows, other.answers.rows
            prompts = _prompt(log, rows), _prompt(log, others)
            _, at, other_at = np.intersect1d(*prompts, return_indices=True)
            rows, others = rows[at], others[other_at]
            mask = ~(log.undecided[log.decision[rows]] | log.undecided[log.decision[others]])
            rows, others = rows[mask], others[mask]
            figures = agreement(log, log.decision[rows], log.decision[others], log.cluster[rows])
            jss = [cell.jss for cell in (case.mapped, other.mapped) if cell.jss is not None]
            yield {
                "task": task,
                "scoring": scoring,
                "judge": case.judge,
                "other": other.judge,
                "jss": figures.jss,
                "ci_low": figures.ci_low,
                "ci_high": figures.ci_high,
                "kappa": figures.kappa,
                "jss_itself": min(jss, default=None),
                "n_pairs": len(rows),
            }


def _interval(sources: Any, name: str) -> dict[str, float | None]:
    """The interval of a difference of shares, cut to [-1, 1]."""
    ends = {f"{name}_{end}": getattr(sources, f"{name}_{end}") for end in ("ci_low", "ci_high")}
    return {key: None if end is None else max(-1.0, min(1.0, end)) for key, end in ends.items()}


@table(
    "orders",
    "Position against wording",
    "Verdicts follow the item. Flips: how often the verdicts on one item differ if only the "
    "wording changes, only the option order, or both, over all pairs of wordings, with equal "
    "weight per item. `flips, reworded` is not 1 - JSS, because JSS covers the pairs of the run. "
    "`flips, both` is the sum of four parts: `wording`, which rewording adds to a swap; "
    "`position`, which a swap adds to rewording; `together`, which either change causes alone; "
    "`asked again`, the flips of the same prompt (undefined without repeats). A part can be "
    "slightly negative. 95% intervals over clusters (the item, or what items share).",
    flips_reworded="flips, reworded",
    flips_swapped="flips, swapped",
    flips_both="flips, both",
)
def orders(study: Sensitivity) -> Iterator[Record]:
    """Do flips come from the wording or from the place of an option (section 7)?

    Only comparative tasks asked in both orders.
    """
    for case in study.main.cases:
        if case.comparative and set(case.rows.order.tolist()) == set(ORDERS):
            rows = case.answers.as_rows(repeats=True)
            sources = flip_sources(
                rows.label,
                rows.item,
                rows.template,
                rows.order,
                cluster_ids=rows.cluster,
                options=case.answers.task.labels[:2],
            )
            yield {
                "judge": case.judge,
                "scoring": case.scoring,
                "task": case.task,
                "jss": case.mapped.jss,
                "flips_reworded": difference(sources.flip_rate, sources.position),
                "flips_swapped": difference(sources.flip_rate, sources.wording),
                "flips_both": sources.flip_rate,
                "wording": sources.wording,
                **_interval(sources, "wording"),
                "position": sources.position,
                **_interval(sources, "position"),
                "together": sources.interaction,
                "asked_again": sources.rerun,
                "first_position": case.mapped.first_position_rate,
                "n_items": sources.n_items,
            }
