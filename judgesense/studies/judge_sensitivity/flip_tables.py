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
from judgesense.statistics.arrays import Bools, Codes
from judgesense.statistics.flips import flip_overlap, flip_sources
from judgesense.studies.common.study import Record, mean, table
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
    columns = (
        "jss_raw",
        "jss",
        "gain",
        "jss_without_t4",
        "jss_raw_with_t4",
        "jss_with_t4",
        "n_pairs_without_t4",
        "n_pairs_with_t4",
    )
    cases = [case for case in study.main.cases if case.answers.inverted]
    for case in cases:
        answers, mixed = case.answers, case.answers.with_inverted
        raw, mapped = answers.agreement("raw").jss, answers.agreement("mapped").jss
        without = answers.agreement("mapped", ~mixed)
        with_raw, with_mapped = (answers.agreement(labels, mixed) for labels in ("raw", "mapped"))
        values = (
            raw,
            mapped,
            difference(mapped, raw),
            without.jss,
            with_raw.jss,
            with_mapped.jss,
            without.n_pairs,
            with_raw.n_pairs,
        )
        yield {**judged_here(case), **dict(zip(columns, values, strict=True))}
    if not cases or not study.with_published:
        return
    for figure in v2_figures("factuality"):
        yield {**stated_there(figure), **dict.fromkeys(columns), "jss": figure.jss}
    mapped_jss = {figure.judge: figure.jss for figure in v1_figures("factuality", "mapped")}
    for figure in v1_figures("factuality"):
        jss, (without_jss, n_without, with_jss, n_with) = (
            mapped_jss[figure.judge],
            published.published_data()["template_4"][figure.judge],
        )
        values = (
            figure.jss,
            jss,
            jss - figure.jss,
            without_jss,
            None,
            with_jss,
            n_without,
            n_with,
        )
        yield {**stated_there(figure), **dict(zip(columns, values, strict=True))}


def _flips(cases: Sequence[JudgedCase], labels: str) -> tuple[Codes, Codes] | None:
    """How many judges flip on each pair, and how many decided it; None if one judged no pair."""
    words = {case.judge: case.answers.words(labels) for case in cases}
    if not all(len(one) for one, _ in words.values()):
        return None
    return flip_overlap(
        {judge: (one.tolist(), two.tolist()) for judge, (one, two) in words.items()}
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
            if (found := _flips(cases, labels)) is None:
                continue
            flips, judged = found
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
_DECISIONS = {"jss_raw": "raw", "jss": "mapped"}


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
    shown = False
    for task, scoring, cases in study.main.groups():
        first = cases[0].answers
        if not first.inverted or (found := _flips(cases, "raw")) is None:
            continue
        shown |= task == "factuality"
        names = np.array([_pair_name(*sides) for sides in zip(*first.templates, strict=True)])
        parts = {name: names == name for name in sorted(set(names.tolist()))}
        parts |= {WITH: first.with_inverted, WITHOUT: ~first.with_inverted}
        for name, keep in parts.items():
            decided = keep & (found[1] > 0)
            if decided.any():
                yield {
                    "task": task,
                    "measured": HERE,
                    "scoring": scoring,
                    "wordings": name,
                    "n_judges": len(cases),
                    "n_pairs": int(decided.sum()),
                    "flips": float(found[0][decided].mean()),
                    **{name: _mean_jss(cases, of, keep) for name, of in _DECISIONS.items()},
                }
    pairs = published.published_data()["template_pairs"] if shown and study.with_published else {}
    inverted = [name for name in pairs if "T4" in name]
    groups = {name: [name] for name in pairs}
    groups |= {WITH: inverted, WITHOUT: [name for name in pairs if name not in inverted]}
    for name, own in groups.items() if pairs else ():
        n, flips = (sum(pairs[each][at] for each in own) for at in (0, 1))
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


def _pair_name(one: str, two: str) -> str:
    """Two wordings; those of the published pairs as the paper writes them (T3-T4)."""
    one, two = sorted((one, two))
    if published.is_published_wording(one) and published.is_published_wording(two):
        return "-".join(f"T{name.rpartition('-')[2]}" for name in (one, two))
    return f"{one}, {two}"


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
        for one, two in combinations(cases, 2):
            log, rows, others = one.answers.log, one.answers.rows, two.answers.rows
            _, here, there = np.intersect1d(
                _prompt(log, rows), _prompt(log, others), return_indices=True
            )
            rows, others = rows[here], others[there]
            known = ~(log.undecided[log.decision[rows]] | log.undecided[log.decision[others]])
            rows, others = rows[known], others[known]
            made = agreement(log, log.decision[rows], log.decision[others], log.cluster[rows])
            own = [jss for jss in (one.mapped.jss, two.mapped.jss) if jss is not None]
            yield {
                "task": task,
                "scoring": scoring,
                "judge": one.judge,
                "other": two.judge,
                "jss": made.jss,
                "ci_low": made.ci_low,
                "ci_high": made.ci_high,
                "kappa": made.kappa,
                "jss_itself": min(own, default=None),
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
