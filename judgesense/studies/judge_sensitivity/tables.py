"""The paper's tables and what stands behind them: pairs of templates, flips, exclusions, failures.

Published figures stand in rows of their own, marked as measured with other wordings; what no
source states is left undefined.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from judgesense import published
from judgesense.published import PublishedFigure
from judgesense.reporting.table import undecided_share
from judgesense.statistics.breakdown import flip_overlap
from judgesense.studies.common.result import Table, Value
from judgesense.studies.judge_sensitivity.log import Case, Judged, task_place
from judgesense.tasks import ERROR, REFUSED, UNCLEAR

HERE, PUBLISHED = "here", "published"
PAPER = "judge-sensitivity"

MIXED = (
    f"`published` rows were {published.WORDINGS}: they stand here for comparison of the layout and "
    "the order of size, not of the figures. Their N counts each pair once in each of three runs, "
    "and their interval takes these rows as independent."
)
BRIEFLY = f"`published` rows were {published.WORDINGS} (see table 1)."
INTERVAL = (
    "Intervals are 95%, Wilson's on the effective sample, clustered by item and conditional on "
    "these wordings."
)


def paper_judges() -> tuple[str, ...]:
    """The nine judges of the paper; the published files hold four more."""
    return tuple(
        judge
        for judge in dict.fromkeys(figure.judge for figure in published.figures())
        if not any("in no paper" in note for note in published.for_judge(judge)[0].notes)
    )


def published_figures(task: str, labels: str = "raw") -> list[PublishedFigure]:
    """The nine judges' figures on a task, the highest JSS first."""
    nine = paper_judges()
    found = [f for f in published.figures() if (f.task, f.labels) == (task, labels)]
    return sorted((f for f in found if f.judge in nine), key=lambda f: -f.jss)


def main_results(judged: Judged, beside: bool) -> Table:
    """Table 1: raw JSS of every judge and task, the most coherent judge first."""
    rows: list[Sequence[Value]] = []
    for case in judged.cases:
        cell = case.cells["raw"]
        rows.append(
            (
                case.judge, HERE, case.scoring, case.task, cell["jss"], cell["flip_rate"],
                cell["kappa"], cell["ci_low"], cell["ci_high"], cell["n_pairs"], cell["n_items"],
                undecided_share(cell),
            )
        )  # fmt: skip
    for figure in _published_by_judge(judged) if beside else ():
        rows.append(
            (
                figure.judge, PUBLISHED, "generate", figure.task, figure.jss, figure.flip_rate,
                figure.kappa, figure.ci_low, figure.ci_high, figure.n_pairs, None, None,
            )
        )  # fmt: skip
    columns = (
        "judge", "measured", "scoring", "task", "JSS", "flip rate", "κ", "low", "high", "N",
        "items", "undecided",
    )  # fmt: skip
    note = (
        "Raw decisions, as in the paper; table 3 maps them. N is the pairs decided on both sides. "
        f"{INTERVAL} κ is undefined where every decision is one label."
    )
    note = f"{note} {MIXED}" if beside else note
    return Table("table_1", "Table 1: main results", columns, rows, note)


def _published_by_judge(judged: Judged) -> Iterator[PublishedFigure]:
    tasks = sorted({case.task for case in judged.cases}, key=task_place)
    by_task = {task: {f.judge: f for f in published_figures(task)} for task in tasks}
    for leader in published_figures("coherence"):
        yield from (by_task[task][leader.judge] for task in tasks if leader.judge in by_task[task])


def pairwise_results(judged: Judged, beside: bool) -> Table | None:
    """Table 2: the comparative tasks, where a judge can be consistent by always saying A."""
    rows: list[Sequence[Value]] = []
    for case in judged.cases:
        if not case.comparative:
            continue
        cell = case.cells["mapped"]
        first = cell["first_position_rate"]
        rows.append(
            (
                case.judge, HERE, case.scoring, case.task, cell["jss"], cell["kappa"], first,
                cell["position_consistency"], _one_label(case), cell["n_pairs"],
            )
        )  # fmt: skip
    if not rows:
        return None
    for task in sorted({str(row[3]) for row in rows}, key=task_place) if beside else ():
        for figure in published_figures(task):
            always = figure.jss == 1.0 and figure.kappa is None
            rows.append(
                (figure.judge, PUBLISHED, "generate", task, figure.jss, figure.kappa,
                 1.0 if always else None, None, always, figure.n_pairs)
            )  # fmt: skip
    columns = (
        "judge", "measured", "scoring", "task", "JSS", "κ", "first position",
        "position consistency", "one label", "N",
    )  # fmt: skip
    note = (
        "`one label`: every decision was the same, so that JSS tells nothing. First position: "
        "share of verdicts for the option shown first, over both orders where both were asked. "
        "Position consistency: share of prompts whose verdict "
        "followed the item when the options changed places."
    )
    if beside:
        note += f" {BRIEFLY} They saw one order alone."
    return Table("table_2", "Table 2: pairwise tasks", columns, rows, note)


def _one_label(case: Case) -> bool:
    words = set(case.prompts().raw.tolist()) - {UNCLEAR, REFUSED, ERROR}
    return len(words) == 1


def polarity_results(judged: Judged, beside: bool) -> Table | None:
    """Table 3: raw JSS against JSS through the label maps, with and without inverted wordings."""
    rows: list[Sequence[Value]] = []
    for case in judged.cases:
        if not case.inverted:
            continue
        turned = case.with_inverted
        raw, mapped = case.agreement("raw"), case.agreement("mapped")
        without = case.agreement("mapped", ~turned)
        parts = [case.agreement(labels, turned) for labels in ("raw", "mapped")]
        gain = None if raw.jss is None or mapped.jss is None else mapped.jss - raw.jss
        rows.append(
            (
                case.judge, HERE, case.scoring, case.task, raw.jss, mapped.jss, gain,
                without.jss, parts[0].jss, parts[1].jss,
                without.n_pairs, parts[0].n_pairs,
            )
        )  # fmt: skip
    if not rows:
        return None
    with_four = published.template_4()
    for raw_figure in published_figures("factuality") if beside else ():
        mapped_figure = next(
            f for f in published_figures("factuality", "mapped") if f.judge == raw_figure.judge
        )
        without_jss, n_without, with_jss, n_with = with_four[raw_figure.judge]
        rows.append(
            (
                raw_figure.judge, PUBLISHED, "generate", "factuality", raw_figure.jss,
                mapped_figure.jss, mapped_figure.jss - raw_figure.jss, without_jss, None, with_jss,
                n_without, n_with,
            )
        )  # fmt: skip
    columns = (
        "judge", "measured", "scoring", "task", "raw JSS", "corrected JSS", "gain",
        "without T4", "with T4, raw", "with T4, corrected", "N without", "N with",
    )  # fmt: skip
    note = (
        "Corrected: decisions through the wordings' label maps. T4 stands for the inverted wording "
        "(template 4 of factuality); `without` and `with` split the pairs by whether it takes part."
    )
    note = f"{note} {BRIEFLY}" if beside else note
    return Table("table_3", "Table 3: effect of polarity correction", columns, rows, note)


def template_pair_results(judged: Judged) -> Table:
    """JSS of every pair of templates, a column a judge and scoring."""
    columns = list(dict.fromkeys((case.number, case.judge, case.scoring) for case in judged.cases))
    at = {
        (case.stream.judge, case.scoring): (case.number, case.judge, case.scoring)
        for case in judged.cases
    }
    inverted = {name for case in judged.cases for name in case.inverted}
    found: dict[tuple[str, str, str, str], dict[tuple[int, str, str], dict[str, Any]]] = {}
    for entry in judged.report["template_pairs"]:
        mixed = (entry["template_a"] in inverted) != (entry["template_b"] in inverted)
        if entry["labels"] == "raw" and not mixed:
            continue  # Equal to the mapped figure.
        key = entry["task"], entry["template_a"], entry["template_b"], entry["labels"]
        found.setdefault(key, {})[at[entry["judge"], entry["scoring"]]] = entry
    rows: list[Sequence[Value]] = []
    for key in sorted(found, key=lambda key: (task_place(key[0]), key[1:3], key[3])):
        cells = found[key]
        sizes = [cell["n_pairs"] for cell in cells.values()]
        shown = [cells[column]["jss"] if column in cells else None for column in columns]
        size = str(max(sizes)) if min(sizes) == max(sizes) else f"{min(sizes)}–{max(sizes)}"
        rows.append((*key, *shown, size))
    heads = (
        "task", "wording", "other wording", "decisions",
        *(f"{judge} · {scoring}" for _, judge, scoring in columns), "N",
    )  # fmt: skip
    note = "`raw` rows stand where exactly one of the two wordings is inverted; else raw = mapped."
    return Table("template_pairs", "JSS of every pair of templates", heads, rows, note)


def published_template_pairs() -> Table:
    """The published decomposition of factuality: the five template pairs that occur there."""
    nine = paper_judges()
    cells = {judge: pairs for judge, pairs in published.template_pairs().items() if judge in nine}
    pairs = list(dict.fromkeys(pair for own in cells.values() for pair in own))
    rows: list[Sequence[Value]] = [
        (judge, *(own[pair][0] for pair in pairs)) for judge, own in cells.items()
    ]
    note = (
        f"Decisions of template 4 inverted; {published.WORDINGS}; 25 items a pair in up to three "
        "runs (19 for T4-T5). Source: published/factuality_per_template_pair_JSS.csv. The other "
        "five of the ten pairs do not occur in the published set."
    )
    return Table(
        "published_template_pairs", "Published: factuality by pair of templates",
        ("judge", *pairs), rows, note,
    )  # fmt: skip


def flip_results(judged: Judged, beside: bool) -> tuple[Table, Table | None]:
    """How many judges flip on the same pairs, and how far each two judges' flips coincide."""
    rows: list[Sequence[Value]] = []
    close: list[Sequence[Value]] = []
    for task, scoring, cases in judged.groups():
        for labels in ("raw", "mapped") if cases[0].inverted else ("mapped",):
            sides = {case.judge: case.sides(labels) for case in cases}
            if not all(len(side[0]) for side in sides.values()):
                continue
            ids = list(range(len(cases[0].pairs)))
            overlap = flip_overlap(
                {judge: (one.tolist(), two.tolist()) for judge, (one, two) in sides.items()}, ids
            )
            for row in _by_count(overlap.flip_count, overlap.judged_count, cases[0]):
                rows.append((task, HERE, scoring, labels, len(cases), *row))
            for a, b in combinations(range(len(cases)), 2):
                names = overlap.judges[a], overlap.judges[b]
                close.append((task, scoring, labels, *names, overlap.jaccard[a][b]))
    if beside and any(row[0] == "factuality" for row in rows):
        rows += [("factuality", PUBLISHED, "generate", "raw", 13, *row) for row in _published()]
    columns = (
        "task", "measured", "scoring", "decisions", "judges", "judges that flip", "pairs",
        "of these with an inverted wording",
    )  # fmt: skip
    note = (
        "A pair on which every judge flips speaks against its wordings. Pairs that no judge decided"
        " on both sides are left out."
    )
    if beside:
        note += (
            " The published count is over thirteen judges and 119 pairs "
            "(published/factuality_pair_flip_overlap.csv), which do not say what is inverted."
        )
    first = Table("flip_overlap", "On how many pairs do how many judges flip?", columns, rows, note)
    if not close:
        return first, None
    heads = ("task", "scoring", "decisions", "judge", "other judge", "Jaccard")
    note = "Share of the pairs flipped by either judge that both flip; undefined if neither flips."
    return first, Table("flip_jaccard", "Do two judges flip on the same pairs?", heads, close, note)


def _by_count(
    flips: Sequence[int], decided: Sequence[int], case: Case
) -> Iterator[tuple[int, int, int | None]]:
    counts, turned = Counter[int](), Counter[int]()
    for count, total, mixed in zip(flips, decided, case.with_inverted, strict=True):
        if total:
            counts[count] += 1
            turned[count] += bool(mixed)
    for count in sorted(counts):
        yield count, counts[count], turned[count] if case.inverted else None


def _published() -> Iterator[tuple[int, int, None]]:
    counts = Counter(published.pair_flips().values())
    for count in sorted(counts):
        yield count, counts[count], None


def exclusion_results(
    judged: Judged, valid: Mapping[str, bool | None], beside: bool
) -> Table | None:
    """JSS and kappa on all pairs against those alone that were validated as equivalent."""
    rows: list[Sequence[Value]] = []
    for case in judged.cases:
        ids = judged.pair_ids.get(case.task, [])
        kept = np.array([valid.get(pair) is True for pair in ids], dtype=bool)
        if len(ids) != len(case.pairs) or kept.all():
            continue
        every, some = case.agreement("raw"), case.agreement("raw", kept)
        gain = None if some.jss is None or every.jss is None else some.jss - every.jss
        rows.append(
            (
                case.judge, HERE, case.scoring, case.task, every.jss, some.jss, gain,
                every.kappa, some.kappa, every.n_pairs, some.n_pairs,
            )
        )  # fmt: skip
    if beside:
        stated = {
            key: published.statement(PAPER, f"factuality_{key}").value
            for key in (
                "jss_before_exclusion", "jss_after_exclusion", "kappa_before_exclusion",
                "kappa_after_exclusion",
            )
        }  # fmt: skip
        jss, kappa = (
            [stated[f"{name}_{when}_exclusion"] for when in ("before", "after")]
            for name in ("jss", "kappa")
        )
        rows.append(
            ("all nine, about", PUBLISHED, "generate", "factuality", *jss, jss[1] - jss[0], *kappa,
             None, None)
        )  # fmt: skip
    if not rows:
        return None
    columns = (
        "judge", "measured", "scoring", "task", "JSS, all", "JSS, validated", "gain", "κ, all",
        "κ, validated", "N, all", "N, validated",
    )  # fmt: skip
    note = (
        "Raw decisions. Tasks of which every pair is validated are left out. Published: section "
        "3.3, 125 pairs against 119."
    )
    return Table("exclusion", "Effect of leaving out pairs", columns, rows, note)


def failure_results(judged: Judged, beside: bool) -> Table:
    """What of the single answers could not be read, was refused, failed, or was cut."""
    rows: list[Sequence[Value]] = []
    for case in judged.cases:
        if case.scoring != "generate":
            continue
        said = case.prompts().raw
        cut = [bool(value) for value in case.column("truncated").to_pylist()]
        shares = [float(np.mean(said == word)) for word in (UNCLEAR, REFUSED, ERROR)]
        rows.append(
            (case.judge, HERE, case.task, *shares, sum(cut) / len(cut), len(said))
        )  # fmt: skip
    for judge, share in _stated_unclear().items() if beside else ():
        rows.append((judge, PUBLISHED, "all four", share, None, None, None, None))
    columns = ("judge", "measured", "task", "unclear", "refused", "failed", "cut", "prompts")
    note = (
        "Shares of single prompts, generated text only: option scoring always gives a decision. "
        "Published: section 5.2, which also states no refusal at all and under 1% unclear for "
        "gemini-2.5-flash; its 6.4% for qwen are time-outs."
    )
    return Table("parse_failures", "What could not be read", columns, rows, note if beside else "")


def _stated_unclear() -> dict[str, float]:
    stated: dict[str, float] = published.statement(PAPER, "unclear_rate").value
    return stated
