"""Open questions of the paper that any finished run answers: orders, consensus, variance, T = 1."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from itertools import combinations
from statistics import fmean

import numpy as np

from judgesense.decisions.streams import mapped_shares, option_shares
from judgesense.statistics.agreement import Agreement, jss
from judgesense.statistics.bias import flip_sources
from judgesense.statistics.breakdown import consensus
from judgesense.statistics.variance import label_components
from judgesense.studies.common.result import Table, Value
from judgesense.studies.judge_sensitivity.log import Case, Judged, Words
from judgesense.tasks import ERROR, ORDERS, UNCLEAR, UNDECIDED


def order_results(judged: Judged) -> Table | None:
    """Do flips come from the wording or from the place of an option (section 7)?

    Only comparative tasks asked in both orders; None without one.
    """
    rows: list[Sequence[Value]] = []
    for case in judged.cases:
        asked = case.prompts(repeats=True)
        if not case.comparative or set(asked.order.tolist()) != set(ORDERS):
            continue
        found = flip_sources(
            asked.label, asked.item, asked.template, asked.order,
            cluster_ids=asked.cluster, options=case.labels[:2],
        )  # fmt: skip
        reworded = swapped = None
        if found.flip_rate is not None and found.position is not None:
            reworded = found.flip_rate - found.position
        if found.flip_rate is not None and found.wording is not None:
            swapped = found.flip_rate - found.wording
        rows.append(
            (
                case.judge, case.scoring, case.task, reworded, swapped, found.flip_rate,
                found.wording, share(found.wording_ci_low), share(found.wording_ci_high),
                found.position, share(found.position_ci_low), share(found.position_ci_high),
                found.interaction, found.rerun,
                case.cells["mapped"]["first_position_rate"], found.n_items,
            )
        )  # fmt: skip
    if not rows:
        return None
    columns = (
        "judge", "scoring", "task", "flips, reworded", "flips, swapped", "flips, both", "wording",
        "low", "high", "position", "low ", "high ", "together", "asked again", "first position",
        "items",
    )  # fmt: skip
    note = (
        "Verdicts follow the item. `flips`: two prompts on one item that differ in the wording "
        "alone (1 - JSS in one order), in the option order alone, and in both (1 - JSS in "
        "opposite orders). The last is a sum: `wording`, what rewording adds to a swap; "
        "`position`, what a swap adds to rewording; `together`, what either alone does already; "
        "and `asked again`, the same prompt twice (undefined where none was). 95% intervals over "
        "clusters (the item, or what items share), of no width where all items say the same. A "
        "part may come out slightly negative."
    )
    return Table("orders", "Position against wording", columns, rows, note)


def share(end: float | None) -> float | None:
    """The end of an interval of a difference of shares, cut to [-1, 1]."""
    return None if end is None else max(-1.0, min(1.0, end))


def consensus_results(judged: Judged) -> tuple[Table, Table] | None:
    """Do judges agree with each other under the same prompts (section 7), and does their majority
    agree with itself? None with a single judge."""
    rows: list[Sequence[Value]] = []
    each: list[Sequence[Value]] = []
    for task, scoring, cases in judged.groups():
        if len(cases) < 2:
            continue
        tables = {case.judge: first_verdicts(case) for case in cases}
        keys = list(dict.fromkeys(key for table in tables.values() for key in table))
        decisions = {
            judge: [table.get(key, ERROR) for key in keys] for judge, table in tables.items()
        }
        cluster_of: dict[str, int] = {}
        for case in cases:
            asked = case.prompts()
            cluster_of.update(zip(asked.item, asked.cluster.tolist(), strict=True))
        found = consensus(decisions, [cluster_of[item] for item, *_ in keys])
        voted = zip(keys, zip(*decisions.values(), strict=True), strict=True)
        items = {key[0] for key, said in voted if sum(w not in UNDECIDED for w in said) > 1}
        own = [case.cells["mapped"]["jss"] for case in cases]
        alone = [value for value in own if value is not None]
        panel = _panel(cases, decisions, keys) if len(cases) > 2 else None
        rows.append(
            (
                task, scoring, len(cases), found.agreement, found.ci_low, found.ci_high,
                found.alpha, fmean(alone) if alone else None,
                *(_panel_cells(panel) if panel else [None] * 5), found.n_prompts, len(items),
            )
        )  # fmt: skip
        for one, two in combinations(range(len(cases)), 2):
            each.append(
                (task, scoring, found.judges[one], found.judges[two], found.pairwise[one][two])
            )
    if not rows:
        return None
    columns = (
        "task", "scoring", "judges", "agreement", "low", "high", "α", "mean JSS", "panel JSS",
        "panel N", "panel undecided", "panel JSS low", "panel JSS high", "prompts", "items",
    )  # fmt: skip
    note = (
        "Agreement of two judges on one prompt, averaged over judges and prompts (mapped "
        "decisions, as shown), with its t interval over clusters (the item, or what items share); "
        "α is Krippendorff's, nominal. Mean JSS: how often one judge agrees with itself under "
        "another wording. Panel JSS: the same of the majority vote, undefined under three judges; "
        "a tied vote is no decision. Panel N: the pairs of wordings with a majority on both sides; "
        "panel undecided: the share without; panel JSS low and high: if all of those had "
        "disagreed, or agreed."
    )
    heads = ("task", "scoring", "judge", "other judge", "agreement")
    return (
        Table("consensus", "Cross-judge consensus", columns, rows, note),
        Table("consensus_pairs", "Agreement of each two judges", heads, each),
    )


def first_verdicts(case: Case) -> dict[tuple[str, str, str], str]:
    """The first decision at every item, template and order."""
    asked = case.prompts()
    keys = zip(asked.item, asked.template, asked.order, strict=True)
    return dict(zip(keys, asked.label.tolist(), strict=True))


def _panel(
    cases: Sequence[Case],
    decisions: Mapping[str, Sequence[str]],
    keys: Sequence[tuple[str, str, str]],
) -> Agreement | None:
    """The majority vote under two wordings; a tie is undecided. None without pairs."""
    said = zip(*decisions.values(), strict=True)
    votes = {key: _majority(words) for key, words in zip(keys, said, strict=True)}
    places = max((case.places for case in cases), key=len)
    sides = [
        [votes.get((item, template[side], order), UNCLEAR) for item, *template, order in places]
        for side in (0, 1)
    ]
    return jss(*sides) if places else None


def _panel_cells(panel: Agreement) -> list[Value]:
    left_out = panel.n_unclear + panel.n_refused + panel.n_error
    share_out = left_out / (panel.n_pairs + left_out)
    return [panel.jss, panel.n_pairs, share_out, panel.jss_low, panel.jss_high]


def _majority(said: Sequence[str]) -> str:
    ranked = Counter(word for word in said if word not in UNDECIDED).most_common(2)
    if not ranked or (len(ranked) == 2 and ranked[0][1] == ranked[1][1]):
        return UNCLEAR
    return ranked[0][0]


def variance_results(judged: Judged) -> Table:
    """What flips come from: polarity, shifts that a wording makes on all items, and wording that
    acts on single items (section 6.3)."""
    rows: list[Sequence[Value]] = []
    for case in judged.cases:
        mapped, left_out = _grid(case, mapped=True)
        if mapped is None:
            rows.append((case.judge, case.scoring, case.task, *[None] * 6, 0, left_out, 0))
            continue
        raw, _ = _grid(case, mapped=False)
        flips_raw, flips = (None if grid is None else _flips(grid) for grid in (raw, mapped))
        found = label_components(mapped).variances
        template = sum(found.get(name) or 0.0 for name in ("template", "template:order"))
        single = sum(found.get(name) or 0.0 for name in ("item:template", "residual"))
        both = template + single
        rows.append(
            (
                case.judge, case.scoring, case.task, flips_raw, flips,
                None if flips_raw is None or flips is None else flips_raw - flips, template,
                single, template / both if both else None, len(mapped), left_out, mapped.shape[1],
            )
        )  # fmt: skip
    columns = (
        "judge", "scoring", "task", "flips, raw", "flips, mapped", "polarity", "template level",
        "wording level", "template share", "items", "left out", "wordings",
    )  # fmt: skip
    note = (
        "Flip rates over all pairs of wordings of the items of which every prompt was decided (the "
        "others are left out, and so are wordings decided on under half of the items). Polarity: "
        "what the label maps undo. The mapped flips are split by "
        "variance components of item × wording (× order): `template level` moves all items alike, "
        "`wording level` acts on single items (with the rerun noise). The two add up to the mapped "
        "flips but for estimates below 0, which stand as 0."
    )
    return Table("variance", "Template level against wording level", columns, rows, note)


def _grid(case: Case, mapped: bool) -> tuple[Words | None, int]:
    """Items x templates (x orders) of decisions that follow the item; and how many items lack a
    decided prompt. None under two complete items."""
    asked = case.prompts()
    words = asked.label if mapped else asked.raw
    swap = dict(zip(case.labels[:2], reversed(case.labels[:2]), strict=True))
    turned = case.comparative
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
    """Flip rate of two wordings on one item and order."""
    pairs = combinations(range(grid.shape[1]), 2)
    return fmean(float(np.mean(grid[:, one] != grid[:, two])) for one, two in pairs)


def sampled_results(judged: Judged) -> Table | None:
    """JSS if verdicts were drawn at T = 1, exactly, from the options' probabilities.

    Two independent draws agree with probability sum p q; None without option scoring.
    """
    rows: list[Sequence[Value]] = []
    for case in judged.cases:
        sides = _probabilities(case)
        if sides is None:
            continue
        one, two = sides
        again = float((np.concatenate([one, two]) ** 2).sum(axis=1).mean())
        drawn = float((one * two).sum(axis=1).mean())
        rows.append(
            (
                case.judge, case.task, case.cells["mapped"]["jss"], drawn, again, again - drawn,
                len(one), case.cells["mapped"]["n_items"],
            )
        )  # fmt: skip
    if not rows:
        return None
    columns = (
        "judge", "task", "JSS, most probable", "JSS at T = 1", "same prompt again at T = 1",
        "wording", "N", "items",
    )  # fmt: skip
    note = (
        "Option scoring, mapped, probabilities of the options among themselves: the chance that "
        "two independent draws agree, under two wordings and under one wording asked again. Their "
        "difference is what the wording does at T = 1; nothing is drawn, so this has no sampling "
        "noise."
    )
    return Table("sampled", "T = 1, from option probabilities", columns, rows, note)


def _probabilities(case: Case) -> tuple[np.ndarray, np.ndarray] | None:
    stream, pairs = case.stream, case.pairs
    if case.scoring != "options" or stream.row_a is None or stream.row_b is None:
        return None
    shares, columns = option_shares(case.log, stream.rows)
    if not len(columns):
        return None
    place = np.full(len(case.log.raw) + 1, -1)
    place[stream.rows] = np.arange(len(stream.rows))
    shares = np.vstack([shares, np.full((1, len(columns)), np.nan)])
    one, two = shares[place[stream.row_a]], shares[place[stream.row_b]]
    used = stream.known & ~np.isnan(one[:, 0]) & ~np.isnan(two[:, 0])
    if not used.any():
        return None
    n_labels = len(case.log.labels)
    return (
        mapped_shares(one[used], columns, pairs.map_a[used], pairs, n_labels),
        mapped_shares(two[used], columns, pairs.map_b[used], pairs, n_labels),
    )
