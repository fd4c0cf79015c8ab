"""The paper's tables and their details: template pairs, flips, exclusions, unreadable answers.

Published figures have rows of their own: those of the second version first, then those of the
first, which its authors withdrew. What no source states is undefined.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from judgesense import published
from judgesense.reporting.tables import undecided_share
from judgesense.statistics.flips import flip_overlap
from judgesense.studies.common.result import Record, Table
from judgesense.studies.judge_sensitivity.beside import (
    FIRST,
    HERE,
    PAPER,
    SECOND,
    beside_note,
    by_judge,
    published_figures,
    published_ids,
    v2_figures,
)
from judgesense.studies.judge_sensitivity.log import Judged, JudgedCase, task_place
from judgesense.tasks import ERROR, REFUSED, UNCLEAR, UNDECIDED

INTERVAL = (
    "Intervals are 95% Wilson intervals on the effective sample, clustered by item and conditional "
    "on these wordings."
)


def main_results(judged: Judged, beside: bool) -> Table:
    """Table 1: raw JSS per judge and task, the judge with the highest coherence JSS first."""
    shared = ("jss", "flip_rate", "kappa", "ci_low", "ci_high", "n_pairs")
    rows: list[Record] = [
        {
            **_here(case),
            **{key: case.cells["raw"][key] for key in (*shared, "n_items")},
            "undecided": undecided_share(case.cells["raw"]),
        }
        for case in judged.cases
    ]
    rows += [
        {
            **published_ids(figure),
            **{key: getattr(figure, key) for key in shared},
            "n_items": figure.n_items,
            "undecided": None if figure.n_rows is None else 1 - figure.n_pairs / figure.n_rows,
        }
        for figure in (by_judge(judged) if beside else ())
    ]
    note = (
        "Raw decisions, as in the paper; table 3 maps them. Pairs are those decided on both sides. "
        f"{INTERVAL} κ is undefined if every decision is one label."
    )
    note = f"{note} {beside_note(judged)}" if beside else note
    return Table.from_records("table_1", "Table 1: main results", rows, note)


def _here(case: JudgedCase) -> dict[str, str]:
    return {"judge": case.judge, "measured": HERE, "scoring": case.scoring, "task": case.task}


def pairwise_results(judged: Judged, beside: bool) -> Table:
    """Table 2: the comparative tasks, where a judge that always says A is consistent too."""
    rows: list[Record] = []
    for case in judged.cases:
        if case.stream.task.comparative:
            cell = case.cells["mapped"]
            one_label = len({*case.stream.answers().raw} - set(UNDECIDED)) == 1
            rows.append({
                **_here(case), "jss": cell["jss"], "kappa": cell["kappa"],
                "first_position": cell["first_position_rate"],
                "position_consistency": cell["position_consistency"],
                "one_label": one_label, "n_pairs": cell["n_pairs"],
            })  # fmt: skip
    for task in sorted({str(row["task"]) for row in rows}, key=task_place) if beside else ():
        for figure in (*v2_figures(task), *published_figures(task)):
            first = figure.version == published.V1
            always = first and figure.jss == 1.0 and figure.kappa is None
            rows.append({
                **published_ids(figure), "jss": figure.jss, "kappa": figure.kappa,
                "first_position": 1.0 if always else figure.first_position,
                "position_consistency": None, "one_label": always, "n_pairs": figure.n_pairs,
            })  # fmt: skip
    note = (
        "One label: every decision is the same, so JSS says nothing. First position: the share of "
        "verdicts for the option shown first, over both orders if both were asked. Position "
        "consistency: the share of prompts whose verdict chooses the same option in both orders."
    )
    if beside:
        note += f" {beside_note(judged)} v1 saw one order only, v2 both."
    return Table.from_records("table_2", "Table 2: pairwise tasks", rows, note)


def polarity_results(judged: Judged, beside: bool) -> Table:
    """Table 3: JSS raw and through the label maps, with and without inverted wordings."""
    rows: list[Record] = []
    for case in judged.cases:
        stream = case.stream
        if not stream.inverted:
            continue
        raw, mapped = stream.agreement("raw"), stream.agreement("mapped")
        without = stream.agreement("mapped", ~stream.with_inverted)
        with_raw, with_mapped = (
            stream.agreement(labels, stream.with_inverted) for labels in ("raw", "mapped")
        )
        rows.append({
            **_here(case), "jss_raw": raw.jss, "jss": mapped.jss,
            "gain": difference(mapped.jss, raw.jss), "jss_without_t4": without.jss,
            "jss_raw_with_t4": with_raw.jss, "jss_with_t4": with_mapped.jss,
            "n_pairs_without_t4": without.n_pairs, "n_pairs_with_t4": with_raw.n_pairs,
        })  # fmt: skip
    for figure in v2_figures("factuality") if beside and rows else ():
        rows.append({
            **published_ids(figure), "jss_raw": None, "jss": figure.jss, "gain": None,
            "jss_without_t4": None, "jss_raw_with_t4": None, "jss_with_t4": None,
            "n_pairs_without_t4": None, "n_pairs_with_t4": None,
        })  # fmt: skip
    corrected = {figure.judge: figure.jss for figure in published_figures("factuality", "mapped")}
    for figure in published_figures("factuality") if beside and rows else ():
        without_jss, n_without, with_jss, n_with = published.template_4()[figure.judge]
        rows.append({
            **published_ids(figure), "jss_raw": figure.jss,
            "jss": corrected[figure.judge], "gain": corrected[figure.judge] - figure.jss,
            "jss_without_t4": without_jss, "jss_raw_with_t4": None, "jss_with_t4": with_jss,
            "n_pairs_without_t4": n_without, "n_pairs_with_t4": n_with,
        })  # fmt: skip
    note = (
        "JSS is mapped through the label maps of the wordings; raw JSS is not. T4 is the inverted "
        "wording (template 4 of factuality); the last columns split the pairs by whether one of "
        "their wordings is T4."
    )
    return Table.from_records(
        "table_3", "Table 3: effect of polarity correction", rows,
        f"{note} {beside_note(judged)}" if beside else note,
        jss_without_t4="JSS without T4", jss_raw_with_t4="raw JSS with T4",
        jss_with_t4="JSS with T4", jss_raw="raw JSS",
        n_pairs_without_t4="pairs without T4", n_pairs_with_t4="pairs with T4",
    )  # fmt: skip


def difference(one: float | None, two: float | None) -> float | None:
    """One figure less another; None if either is undefined."""
    return None if one is None or two is None else one - two


def template_pair_results(judged: Judged) -> Table:
    """JSS per pair of templates, with a column per judge and scoring."""
    columns = {
        (case.stream.judge, case.scoring): f"jss_{case.number + 1}_{case.scoring}"
        for case in judged.cases
    }
    headings = {
        columns[case.stream.judge, case.scoring]: f"{case.judge} · {case.scoring}"
        for case in judged.cases
    }
    inverted = {name for case in judged.cases for name in case.stream.inverted}
    found: dict[tuple[str, str, str, str], dict[str, dict[str, Any]]] = {}
    for entry in judged.report["template_pairs"]:
        mixed = (entry["template_a"] in inverted) != (entry["template_b"] in inverted)
        if entry["labels"] == "raw" and not mixed:
            continue  # Equal to the mapped figure.
        key = entry["task"], entry["template_a"], entry["template_b"], entry["labels"]
        found.setdefault(key, {})[columns[entry["judge"], entry["scoring"]]] = entry
    rows: list[Record] = []
    for key in sorted(found, key=lambda key: (task_place(key[0]), key[1:3], key[3])):
        cells = found[key]
        sizes = [cell["n_pairs"] for cell in cells.values()]
        rows.append({
            "task": key[0], "template_a": key[1], "template_b": key[2], "decisions": key[3],
            **{name: cells[name]["jss"] if name in cells else None for name in headings},
            "n_pairs_min": min(sizes), "n_pairs_max": max(sizes),
        })  # fmt: skip
    return Table.from_records(
        "template_pairs", "JSS per pair of templates", rows,
        "`raw` rows are shown only if exactly one of the two wordings is inverted; otherwise raw "
        "and mapped are equal.",
        template_a="wording", template_b="other wording", n_pairs_min="fewest pairs",
        n_pairs_max="most pairs", **headings,
    )  # fmt: skip


def published_template_pairs(judged: Judged) -> Table:
    """The published breakdown of factuality by the five template pairs that occur there."""
    nine = published.paper_judges()
    rows: list[Record] = [
        {"judge": judge, **{_pair_id(pair): own[pair][0] for pair in own}}
        for judge, own in published.template_pairs().items()
        if judge in nine
    ]
    pairs = published.template_pairs()[nine[0]]
    return Table.from_records(
        "published_template_pairs",
        "Published v1 (withdrawn): factuality by pair of templates",
        rows,
        f"Decisions of template 4 inverted; 25 items per pair in up to three runs (19 for T4-T5). "
        "Source: published/factuality_per_template_pair_JSS.csv. The other five of the ten pairs "
        f"do not occur in the published set. {beside_note(judged, v2=False)}",
        **{_pair_id(pair): pair for pair in pairs},
    )  # fmt: skip


def _pair_id(pair: str) -> str:
    return f"jss_{pair.lower().replace('-', '_')}"


def flip_results(judged: Judged, beside: bool) -> tuple[Table, Table]:
    """How many judges flip on the same pairs, and how far the flips of two judges coincide."""
    rows: list[Record] = []
    close: list[Record] = []
    for task, scoring, cases in judged.groups():
        first = cases[0].stream
        for labels in ("raw", "mapped") if first.inverted else ("mapped",):
            sides = {case.judge: case.stream.words(labels) for case in cases}
            if not all(len(side[0]) for side in sides.values()):
                continue
            overlap = flip_overlap(
                {judge: (one.tolist(), two.tolist()) for judge, (one, two) in sides.items()},
                list(range(len(first.pairs))),
            )
            counts, turned = Counter[int](), Counter[int]()
            for count, total, mixed in zip(
                overlap.flip_count, overlap.judged_count, first.with_inverted, strict=True
            ):
                if total:
                    counts[count] += 1
                    turned[count] += bool(mixed)
            place = {"task": task, "measured": HERE, "scoring": scoring, "decisions": labels}
            rows += [
                {
                    **place, "n_judges": len(cases), "n_judges_flipped": count, "n_pairs": n,
                    "n_pairs_inverted": turned[count] if first.inverted else None,
                }
                for count, n in sorted(counts.items())
            ]  # fmt: skip
            for a, b in combinations(range(len(cases)), 2):
                close.append({
                    "task": task, "scoring": scoring, "decisions": labels,
                    "judge": overlap.judges[a], "other_judge": overlap.judges[b],
                    "jaccard": overlap.jaccard[a][b],
                })  # fmt: skip
    note = (
        "If every judge flips on a pair, suspect its wordings. Pairs that no judge decided on both "
        "sides are left out."
    )
    if beside and any(row["task"] == "factuality" for row in rows):
        rows += [
            {
                "task": "factuality", "measured": FIRST, "scoring": "generate",
                "decisions": "raw", "n_judges": 13, "n_judges_flipped": count, "n_pairs": n,
                "n_pairs_inverted": None,
            }
            for count, n in sorted(Counter(published.pair_flips().values()).items())
        ]  # fmt: skip
    if beside:
        note += (
            " The published count covers thirteen judges and 119 pairs "
            "(published/factuality_pair_flip_overlap.csv); it does not say which are inverted. "
            + beside_note(judged, v2=False)
        )
    return (
        Table.from_records(
            "flip_overlap", "How many judges flip on the same pair?", rows, note,
            n_judges_flipped="judges that flip", n_pairs_inverted="of these, inverted wording",
        ),
        Table.from_records(
            "flip_jaccard", "Do two judges flip on the same pairs?", close,
            "Of the pairs that either judge flips, the share that both flip; undefined if neither "
            "flips any.",
            jaccard="Jaccard",
        ),
    )  # fmt: skip


def exclusion_results(judged: Judged, valid: Mapping[str, bool | None], beside: bool) -> Table:
    """JSS and kappa on all pairs and on those validated as equivalent."""
    rows: list[Record] = []
    for case in judged.cases:
        ids = judged.pair_ids.get(case.task, [])
        kept = np.array([valid.get(pair) is True for pair in ids], dtype=bool)
        if len(ids) != len(case.stream.pairs) or kept.all():
            continue
        every, some = case.stream.agreement("raw"), case.stream.agreement("raw", kept)
        jss, kappa = (every.jss, some.jss), (every.kappa, some.kappa)
        rows.append(_excluded(_here(case), jss, kappa, (every.n_pairs, some.n_pairs)))
    if beside:
        jss, kappa = (
            tuple(
                published.statement(PAPER, f"factuality_{name}_{when}_exclusion").value
                for when in ("before", "after")
            )
            for name in ("jss", "kappa")
        )
        nine = {
            "judge": "all nine, about", "measured": FIRST, "scoring": "generate",
            "task": "factuality",
        }  # fmt: skip
        rows.append(_excluded(nine, jss, kappa, (None, None)))
    return Table.from_records(
        "exclusion", "Effect of leaving out pairs", rows,
        "Raw decisions. Tasks with every pair validated are left out. Published: section 3.3, 125 "
        "pairs against 119. The published pairs name no verdict; the six that this leaves out "
        "there are those that published/factuality_paraphrase.jsonl answers NO."
        + (f" {beside_note(judged, v2=False)}" if beside else ""),
        jss="JSS, all", kappa="κ, all", n_pairs="pairs, all", jss_validated="JSS, validated",
        kappa_validated="κ, validated", n_pairs_validated="pairs, validated",
    )  # fmt: skip


def _excluded(
    ids: Mapping[str, str],
    jss: Sequence[float | None],
    kappa: Sequence[float | None],
    n: Sequence[int | None],
) -> Record:
    return {
        **ids,
        "jss": jss[0], "jss_validated": jss[1], "gain": difference(jss[1], jss[0]),
        "kappa": kappa[0], "kappa_validated": kappa[1],
        "n_pairs": n[0], "n_pairs_validated": n[1],
    }  # fmt: skip


def failure_results(judged: Judged, beside: bool) -> Table:
    """The shares of single answers that were unclear, refused, failed or cut."""
    rows: list[Record] = []
    for case in judged.cases:
        if case.scoring == "generate":
            said = case.stream.answers()
            shares = [float(np.mean(said.raw == word)) for word in (UNCLEAR, REFUSED, ERROR)]
            cut = sum(map(bool, said.column("truncated").to_pylist())) / len(said.raw)
            rows.append({
                "judge": case.judge, "measured": HERE, "task": case.task, "unclear": shares[0],
                "refused": shares[1], "failed": shares[2], "cut": cut, "n_prompts": len(said.raw),
            })  # fmt: skip
    if beside:
        rows += [
            {
                "judge": figure.judge, "measured": SECOND, "task": figure.task,
                "unclear": figure.unclear, "refused": figure.refused, "failed": None, "cut": None,
                "n_prompts": None,
            }
            for task in judged.tasks
            for figure in v2_figures(task)
        ]  # fmt: skip
        stated: dict[str, float] = published.statement(PAPER, "unclear_rate").value
        rows += [
            {
                "judge": judge, "measured": FIRST, "task": "all four", "unclear": share,
                "refused": None, "failed": None, "cut": None, "n_prompts": None,
            }
            for judge, share in stated.items()
        ]  # fmt: skip
    note = (
        "Shares of single prompts. Generated text only: option scoring always gives a decision. "
        "v1: section 5.2, which also states no refusals, and under 1% unclear for "
        "gemini-2.5-flash; its 6.4% for qwen are time-outs. " + beside_note(judged)
    )
    return Table.from_records("parse_failures", "Unreadable answers", rows, note if beside else "")
