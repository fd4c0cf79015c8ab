"""Open questions that any finished run answers: orders, consensus, variance, sampled."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from itertools import combinations
from statistics import fmean

import numpy as np

from judgesense.reporting.run_tables import majority
from judgesense.statistics.agreement import Agreement, jss
from judgesense.statistics.arrays import Words
from judgesense.statistics.flips import consensus, flip_sources
from judgesense.statistics.variance import label_components
from judgesense.studies.common.result import Record, Table
from judgesense.studies.judge_sensitivity.log import Judged, JudgedCase
from judgesense.studies.judge_sensitivity.tables import difference
from judgesense.tasks import ERROR, ORDERS, UNCLEAR, UNDECIDED


def order_results(judged: Judged) -> Table:
    """Do flips come from the wording or from the place of an option (section 7)?

    Only comparative tasks asked in both orders.
    """
    rows: list[Record] = []
    for case in judged.cases:
        asked = case.stream.answers(repeats=True)
        if not case.stream.task.comparative or set(asked.order.tolist()) != set(ORDERS):
            continue
        found = flip_sources(
            asked.label, asked.item, asked.template, asked.order,
            cluster_ids=asked.cluster, options=case.stream.task.labels[:2],
        )  # fmt: skip
        rows.append({
            **case.ids, "jss": case.cells["mapped"]["jss"],
            "flips_reworded": difference(found.flip_rate, found.position),
            "flips_swapped": difference(found.flip_rate, found.wording),
            "flips_both": found.flip_rate, "wording": found.wording,
            "wording_ci_low": share(found.wording_ci_low),
            "wording_ci_high": share(found.wording_ci_high), "position": found.position,
            "position_ci_low": share(found.position_ci_low),
            "position_ci_high": share(found.position_ci_high), "together": found.interaction,
            "asked_again": found.rerun,
            "first_position": case.cells["mapped"]["first_position_rate"],
            "n_items": found.n_items,
        })  # fmt: skip
    return Table.from_records(
        "orders", "Position against wording", rows,
        "Verdicts follow the item. Flips: how often two prompts on one item differ if only the "
        "wording changes, only the option order, or both, over all pairs of wordings, every item "
        "counting alike. `flips, reworded` is therefore not 1 - JSS: JSS covers the pairs of the "
        "run, and counts these alike. `flips, both` is a sum: `wording` is the part that "
        "rewording adds to a swap; `position` the part that a swap adds to rewording; `together` "
        "the part that either does alone; `asked again` the flips of the same prompt (undefined "
        "without repeats). 95% intervals over clusters (the item, or what items share); they have "
        "no width if all items agree. A part can be slightly negative.",
        flips_reworded="flips, reworded", flips_swapped="flips, swapped", flips_both="flips, both",
    )  # fmt: skip


def share(end: float | None) -> float | None:
    """The end of an interval for a difference of shares, cut to [-1, 1]."""
    return None if end is None else max(-1.0, min(1.0, end))


def consensus_results(judged: Judged) -> tuple[Table, Table]:
    """Do judges agree with each other under the same prompts (section 7), and does their majority
    agree with itself? Empty with a single judge."""
    rows: list[Record] = []
    each: list[Record] = []
    for task, scoring, cases in judged.groups():
        if len(cases) < 2:
            continue
        tables = {case.judge: case.first_verdicts for case in cases}
        keys = list(dict.fromkeys(key for table in tables.values() for key in table))
        decisions = {
            judge: [table.get(key, ERROR) for key in keys] for judge, table in tables.items()
        }
        cluster_of: dict[str, int] = {}
        for case in cases:
            asked = case.stream.answers()
            cluster_of.update(zip(asked.item, asked.cluster.tolist(), strict=True))
        found = consensus(decisions, [cluster_of[item] for item, *_ in keys])
        voted = zip(keys, zip(*decisions.values(), strict=True), strict=True)
        items = {key[0] for key, said in voted if sum(w not in UNDECIDED for w in said) > 1}
        own = [case.cells["mapped"]["jss"] for case in cases]
        alone = [value for value in own if value is not None]
        panel = _panel(cases, decisions, keys) if len(cases) > 2 else None
        rows.append({
            "task": task, "scoring": scoring, "n_judges": len(cases),
            "agreement": found.agreement, "ci_low": found.ci_low, "ci_high": found.ci_high,
            "alpha": found.alpha, "mean_jss": fmean(alone) if alone else None,
            **_panel_fields(panel), "n_prompts": found.n_prompts, "n_items": len(items),
        })  # fmt: skip
        each += [
            {
                "task": task, "scoring": scoring, "judge": found.judges[one],
                "other_judge": found.judges[two], "agreement": found.pairwise[one][two],
            }
            for one, two in combinations(range(len(cases)), 2)
        ]  # fmt: skip
    note = (
        "Agreement of two judges on one prompt, averaged over judges and prompts (mapped "
        "decisions, as shown), with its t interval over clusters (the item, or what items share); "
        "α is Krippendorff's, nominal. Mean JSS: how often one judge agrees with itself under "
        "another wording. Panel JSS: the same for the majority vote, undefined with fewer than "
        "three judges; a tied vote is no decision. Panel pairs: pairs of wordings with a majority "
        "on both sides; panel undecided: the share of pairs without; panel JSS low and high: JSS "
        "if all of those had disagreed, or agreed."
    )
    return (
        Table.from_records("consensus", "Cross-judge consensus", rows, note),
        Table.from_records("consensus_pairs", "Agreement per pair of judges", each),
    )


def _panel(
    cases: Sequence[JudgedCase],
    decisions: Mapping[str, Sequence[str]],
    keys: Sequence[tuple[str, str, str]],
) -> Agreement | None:
    """The majority vote under two wordings; a tie is undecided. None without pairs."""
    said = zip(*decisions.values(), strict=True)
    votes = {key: majority(words) or UNCLEAR for key, words in zip(keys, said, strict=True)}
    places = max((case.stream.places for case in cases), key=len)
    sides = [
        [votes.get((item, template[side], order), UNCLEAR) for item, *template, order in places]
        for side in (0, 1)
    ]
    return jss(*sides) if places else None


def _panel_fields(panel: Agreement | None) -> dict[str, float | None]:
    fields = "panel_jss", "panel_n_pairs", "panel_undecided", "panel_jss_low", "panel_jss_high"
    if panel is None:
        return dict.fromkeys(fields)
    lost = panel.n_unclear + panel.n_refused + panel.n_error
    undecided = lost / (panel.n_pairs + lost)
    values = panel.jss, panel.n_pairs, undecided, panel.jss_low, panel.jss_high
    return dict(zip(fields, values, strict=True))


def variance_results(judged: Judged) -> Table:
    """The sources of flips: polarity, shifts by a wording on all items, and the effect of wording
    on single items (section 6.3)."""
    rows: list[Record] = []
    for case in judged.cases:
        mapped, left_out = _grid(case, mapped=True)
        raw, _ = _grid(case, mapped=False)
        flips_raw, flips = (None if grid is None else _flips(grid) for grid in (raw, mapped))
        template = single = None
        if mapped is not None:
            found = label_components(mapped)
            template = sum(found.get(name, 0.0) for name in ("template", "template:order"))
            single = sum(found.get(name, 0.0) for name in ("item:template", "residual"))
        both = (template or 0.0) + (single or 0.0)
        rows.append({
            **case.ids, "flips_raw": None if mapped is None else flips_raw, "flips": flips,
            "polarity": difference(flips_raw, flips), "template_level": template,
            "wording_level": single,
            "template_share": template / both if template is not None and both else None,
            "n_items": 0 if mapped is None else len(mapped), "left_out": left_out,
            "n_templates": 0 if mapped is None else mapped.shape[1],
        })  # fmt: skip
    return Table.from_records(
        "variance", "Template level against wording level", rows,
        "Flip rates over all pairs of wordings, on items with every prompt decided (others are "
        "left out, and so are wordings decided on under half of the items). Polarity: the part "
        "that the label maps undo. The mapped flips are split by variance components of item × "
        "wording (× order): `template level` moves all items alike, `wording level` acts on single "
        "items (and includes rerun noise). The two add up to the mapped flips, except that "
        "estimates below 0 are shown as 0.",
        flips_raw="flips, raw", flips="flips, mapped", n_templates="wordings",
    )  # fmt: skip


def _grid(case: JudgedCase, mapped: bool) -> tuple[Words | None, int]:
    """Items x templates (x orders) of decisions that follow the item, and the number of items
    without a decision on every prompt. None with fewer than two complete items."""
    asked = case.stream.answers()
    words = asked.label if mapped else asked.raw
    swap = dict(
        zip(case.stream.task.labels[:2], reversed(case.stream.task.labels[:2]), strict=True)
    )
    turned = case.stream.task.comparative
    cells: dict[str, dict[tuple[str, str], str]] = defaultdict(dict)
    for item, template, order, word in zip(
        asked.item, asked.template, asked.order, words, strict=True
    ):
        if word not in UNDECIDED:
            follows = swap.get(word, word) if turned and order == "BA" else word
            cells[item][template, order] = follows
    orders = list(dict.fromkeys(asked.order))
    n_items = len(set(asked.item.tolist()))
    known = Counter(cell for own in cells.values() for cell in own)
    templates = [
        name
        for name in dict.fromkeys(asked.template)
        if min(known[name, order] for order in orders) >= n_items / 2
    ]
    grid_cells = [(template, order) for template in templates for order in orders]
    whole = [item for item in cells if all(cell in cells[item] for cell in grid_cells)]
    left_out = n_items - len(whole)
    if len(whole) < 2 or len(templates) < 2:
        return None, left_out
    grid = np.array(
        [[[cells[i][t, o] for o in orders] for t in templates] for i in whole], dtype=object
    )
    return (grid if len(orders) > 1 else grid[:, :, 0]), left_out


def _flips(grid: Words) -> float:
    """The flip rate of two wordings on one item and order."""
    pairs = combinations(range(grid.shape[1]), 2)
    return fmean(float(np.mean(grid[:, one] != grid[:, two])) for one, two in pairs)


def sampled_results(judged: Judged) -> Table:
    """JSS if verdicts were drawn at T = 1, computed exactly from the option probabilities.

    Two independent draws agree with probability sum p q. Only cases with option scoring.
    """
    rows: list[Record] = []
    for case in judged.cases:
        sides = case.stream.probabilities("mapped", case.stream.known)
        if sides is None:
            continue
        one, two, _ = sides
        again = float((np.concatenate([one, two]) ** 2).sum(axis=1).mean())
        drawn = float((one * two).sum(axis=1).mean())
        rows.append({
            "judge": case.judge, "task": case.task, "jss": case.cells["mapped"]["jss"],
            "jss_t1": drawn, "same_prompt": again, "wording": again - drawn,
            "n_pairs": len(one), "n_items": case.cells["mapped"]["n_items"],
        })  # fmt: skip
    return Table.from_records(
        "sampled", "T = 1, from option probabilities", rows,
        "Option scoring, mapped, probabilities normalised over the options: the chance that two "
        "independent draws agree, under two wordings and under one wording asked twice. Their "
        "difference is the effect of the wording at T = 1. Nothing is drawn, so there is no "
        "sampling noise.",
        jss="JSS, most probable", jss_t1="JSS at T = 1", same_prompt="same prompt again at T = 1",
    )  # fmt: skip
