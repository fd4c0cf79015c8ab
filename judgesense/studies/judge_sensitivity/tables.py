"""The paper's tables and their details: flips, exclusions, unreadable answers, orders.

Published figures have rows of their own: those of the second version first, then those of the
first, which its authors withdrew. What no source states is undefined.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from judgesense import published
from judgesense.measure.cost import costs
from judgesense.published import PublishedFigure
from judgesense.statistics.flips import flip_overlap, flip_sources
from judgesense.studies.common.study import Record, table
from judgesense.studies.common.study import published as published_figures
from judgesense.studies.judge_sensitivity.runs import TASKS, JudgedCase, JudgedRun, task_place
from judgesense.tasks import ERROR, ORDERS, REFUSED, UNCLEAR, UNDECIDED

PAPER = "judge-sensitivity"

HERE, SECOND, FIRST = "here", "published v2", "published v1 (withdrawn)"
"""Where a row was measured."""


@dataclass(frozen=True)
class Sensitivity:
    """What the study measured: a run of its own, or a ``log`` that somebody else judged."""

    main: JudgedRun
    log: Path | None = None

    @property
    def with_published(self) -> bool:
        """Whether to show published figures: beside a log, only if it is of the published pairs."""
        comparable = self.log is None or self.main.published_wordings
        return comparable and any(case.task in TASKS for case in self.main.cases)


def v1_figures(task: str, labels: str = "raw") -> list[PublishedFigure]:
    """The figures of the first version's nine judges on a task, the highest JSS first."""
    nine = published.paper_judges()
    figures = [f for f in published.figures() if (f.task, f.labels) == (task, labels)]
    return sorted((f for f in figures if f.judge in nine), key=lambda f: -f.jss)


def v2_figures(task: str) -> list[PublishedFigure]:
    """The figures of the second version on a task, the highest JSS first."""
    return sorted((f for f in published.v2_figures() if f.task == task), key=lambda f: -f.jss)


def published_note(study: Sensitivity, v2: bool = True) -> str:
    """What to know of the published rows; ``v2`` if the table has some of the second version."""
    if not study.with_published:
        return ""
    second = (
        f" `{SECOND}` rows: 25 judges, up to 250 items per task, {published.WORDINGS}, mapped "
        "decisions."
    )
    how = (
        "measured on the same pairs"
        if study.main.published_wordings
        else f"{published.WORDINGS}: compare their size, not their values"
    )
    return (second if v2 else "") + (
        f" `{FIRST}` rows: the authors withdrew this version in August 2026 and advise against "
        f"using it; {how}. They count each pair once in each of three runs, and their intervals "
        "treat these rows as independent."
    )


def _here(case: JudgedCase) -> dict[str, str]:
    return {"judge": case.judge, "measured": HERE, "scoring": case.scoring, "task": case.task}


def _there(figure: PublishedFigure) -> dict[str, str]:
    measured = FIRST if figure.version == published.V1 else SECOND
    return {
        "judge": figure.judge,
        "measured": measured,
        "scoring": "generate",
        "task": figure.task,
    }


def difference(one: float | None, two: float | None) -> float | None:
    """One figure less another; None if either is undefined."""
    return None if one is None or two is None else one - two


@table(
    "table_1",
    "Table 1: main results",
    lambda study: (
        "Raw decisions, as in the paper; table 3 maps them. Pairs are those decided on both sides. "
        "Intervals are 95% Wilson intervals on the effective sample, clustered by item and "
        "conditional on these wordings. κ is undefined if every decision is one label."
        + published_note(study)
    ),
)
def main_results(study: Sensitivity) -> Iterator[Record]:
    """Raw JSS per judge and task, the judge with the highest coherence JSS first."""
    shared = ("jss", "flip_rate", "kappa", "ci_low", "ci_high", "n_pairs", "n_items")
    for case in study.main.cases:
        figures = {key: getattr(case.raw, key) for key in shared}
        yield {**_here(case), **figures, "undecided": case.raw.undecided_share}
    for of_task in (v2_figures, v1_figures) if study.with_published else ():
        by_task = {task: {f.judge: f for f in of_task(task)} for task in study.main.tasks}
        for leader in of_task("coherence"):
            for figure in (own[leader.judge] for own in by_task.values() if leader.judge in own):
                undecided = None if figure.n_rows is None else 1 - figure.n_pairs / figure.n_rows
                figures = {key: getattr(figure, key) for key in shared}
                yield {**_there(figure), **figures, "undecided": undecided}


@table(
    "table_2",
    "Table 2: pairwise tasks",
    lambda study: (
        "One label: every decision is the same, so JSS is uninformative. First position: the share "
        "of verdicts for the option shown first, over both orders if both were asked. Position "
        "consistency: the share of prompts whose verdict chooses the same option in both orders."
        + published_note(study)
        + (" v1 saw one order only, v2 both." if study.with_published else "")
    ),
)
def pairwise_results(study: Sensitivity) -> Iterator[Record]:
    """The comparative tasks, where a judge that always says A is consistent too."""
    cases = [case for case in study.main.cases if case.comparative]
    for case in cases:
        yield {
            **_here(case),
            "jss": case.mapped.jss,
            "kappa": case.mapped.kappa,
            "first_position": case.mapped.first_position_rate,
            "position_consistency": case.mapped.position_consistency,
            "one_label": len({*case.rows.raw} - set(UNDECIDED)) == 1,
            "n_pairs": case.mapped.n_pairs,
        }
    tasks = sorted({case.task for case in cases}, key=task_place) if study.with_published else ()
    for figure in (f for task in tasks for f in (*v2_figures(task), *v1_figures(task))):
        always = figure.version == published.V1 and figure.jss == 1.0 and figure.kappa is None
        yield {
            **_there(figure),
            "jss": figure.jss,
            "kappa": figure.kappa,
            "first_position": 1.0 if always else figure.first_position,
            "position_consistency": None,
            "one_label": always,
            "n_pairs": figure.n_pairs,
        }


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
        yield {**_here(case), **dict(zip(columns, values, strict=True))}
    if not cases or not study.with_published:
        return
    for figure in v2_figures("factuality"):
        yield {**_there(figure), **dict.fromkeys(columns), "jss": figure.jss}
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
        yield {**_there(figure), **dict(zip(columns, values, strict=True))}


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
            words = {case.judge: case.answers.words(labels) for case in cases}
            if not all(len(one) for one, _ in words.values()):
                continue
            flips, judged = flip_overlap(
                {judge: (one.tolist(), two.tolist()) for judge, (one, two) in words.items()}
            )
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


@table(
    "exclusion",
    "Effect of leaving out pairs",
    lambda study: (
        "Raw decisions. Every other table covers the validated pairs only. Tasks with every pair "
        "validated are left out. Published: section 3.3, 125 pairs against 119. The published "
        "pairs carry no verdict; the six left out are those answered NO in "
        "published/factuality_paraphrase.jsonl." + published_note(study, v2=False)
    ),
    jss="JSS, all",
    kappa="κ, all",
    n_pairs="pairs, all",
    jss_validated="JSS, validated",
    kappa_validated="κ, validated",
    n_pairs_validated="pairs, validated",
)
def exclusion_results(study: Sensitivity) -> Iterator[Record]:
    """JSS and kappa on all pairs and on those validated as equivalent (section 3.3)."""
    factuality = False
    for case in study.main.cases:
        all_pairs = study.main.every.get((case.answers.judge, case.task, case.scoring))
        if all_pairs is not None and len(all_pairs.pairs) > len(case.answers.pairs):
            factuality |= case.task == "factuality"
            every, some = all_pairs.agreement("raw"), case.answers.agreement("raw")
            yield {
                **_here(case),
                "jss": every.jss,
                "jss_validated": some.jss,
                "gain": difference(some.jss, every.jss),
                "kappa": every.kappa,
                "kappa_validated": some.kappa,
                "n_pairs": every.n_pairs,
                "n_pairs_validated": some.n_pairs,
            }
    if factuality and study.with_published:
        stated = published_figures(PAPER)
        before, jss, kappa_before, kappa = (
            stated[f"factuality_{name}_{when}_exclusion"].value
            for name in ("jss", "kappa")
            for when in ("before", "after")
        )
        yield {
            "judge": "all nine, about",
            "measured": FIRST,
            "scoring": "generate",
            "task": "factuality",
            "jss": before,
            "jss_validated": jss,
            "gain": jss - before,
            "kappa": kappa_before,
            "kappa_validated": kappa,
            "n_pairs": None,
            "n_pairs_validated": None,
        }


@table(
    "cost",
    "Calls, tokens and cost",
    "From the log. US dollars are undefined without a price (`--set price=INPUT,OUTPUT`). v1 "
    "(withdrawn): the bill in section 4.4, for three runs of every pair.",
    cost_usd="US dollars",
)
def cost_results(study: Sensitivity) -> Iterator[Record]:
    """What each judge's answers cost, beside the paper's bill (section 4.4)."""
    columns = ("n_prompts", "input_tokens", "output_tokens", "cost_usd")
    rows = costs(study.main.log, study.main.report.runs)
    if all(row.input_tokens is None and row.cost_usd is None for row in rows):
        return
    for row in rows:
        figures = {name: getattr(row, name) for name in columns}
        yield {"judge": row.judge, "measured": HERE, **figures}
    stated: dict[str, Any] = {}
    for key, figure in published_figures(PAPER).items() if study.with_published else ():
        column, _, judge = key.partition("/")
        if column in columns:
            nothing = {"judge": judge, "measured": FIRST, **dict.fromkeys(columns)}
            value = figure.value if column == "cost_usd" else int(figure.value)
            stated.setdefault(judge, nothing)[column] = value
    yield from stated.values()


@table(
    "parse_failures",
    "Unreadable answers",
    lambda study: (
        "Shares of prompts, with generated text only: option scoring always gives a decision."
        + (
            " v1: section 5.2, which also states no refusals and under 1% unclear answers for "
            "gemini-2.5-flash. Its 6.4% for qwen are time-outs."
            if study.with_published
            else ""
        )
        + published_note(study)
    ),
)
def failure_results(study: Sensitivity) -> Iterator[Record]:
    """The shares of single answers that were unclear, refused, failed or cut."""
    columns = ("unclear", "refused", "failed", "cut", "n_prompts")
    for case in study.main.cases:
        if case.scoring == "generate":
            rows = case.rows
            shares = [float(np.mean(rows.raw == word)) for word in (UNCLEAR, REFUSED, ERROR)]
            cut = sum(map(bool, rows.column("truncated").to_pylist())) / len(rows.raw)
            values = dict(zip(columns, (*shares, cut, len(rows.raw)), strict=True))
            yield {"judge": case.judge, "measured": HERE, "task": case.task, **values}
    if study.with_published:
        nothing = dict.fromkeys(columns)
        for figure in (f for task in study.main.tasks for f in v2_figures(task)):
            stated = {**nothing, "unclear": figure.unclear, "refused": figure.refused}
            yield {"judge": figure.judge, "measured": SECOND, "task": figure.task, **stated}
        for key, stated_share in published_figures(PAPER).items():
            kind, _, judge = key.partition("/")
            if kind == "unclear":
                where = {"judge": judge, "measured": FIRST, "task": "all four"}
                yield {**where, **nothing, "unclear": stated_share.value}


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
