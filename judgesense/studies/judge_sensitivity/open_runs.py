"""Open questions of the paper that need further judging: 2048 tokens, T = 1, scale, language.

Each table sets a further run beside the main one, on the same items and pairs of wordings.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import fmean
from typing import Any, cast

import numpy as np

from judgesense.statistics.agreement import Agreement, jss
from judgesense.statistics.bias import flip_sources
from judgesense.statistics.comparison import PairedDifference, compare_jss, holm
from judgesense.statistics.kappa import cohen_kappa
from judgesense.studies.common.result import Table, Value
from judgesense.studies.judge_sensitivity.log import NOTHING, Case, Judged
from judgesense.studies.judge_sensitivity.open_logs import first_verdicts, share
from judgesense.tasks import ERROR, NO_ORDER, UNDECIDED

Sides = tuple[list[str], list[str], list[int]]
"""Decisions under the first and the second wording, and the cluster, of some pairs."""


HOLM = "p, Holm"


def matches(main: Judged, other: Judged) -> Iterator[tuple[Case, Case]]:
    """The cases of another run with those of the same judge, task and scoring in the main run."""
    for case in other.cases:
        if (same := main.matched(case)) is not None:
            yield same, case


def _sides(
    case: Case,
    places: Sequence[tuple[str, str, str, str]],
    clusters: Sequence[int],
    repeat: int = 0,
) -> Sides:
    """A case's decisions at pairs that may be another case's; ERROR where there is none."""
    said = case.verdicts
    return (
        [said.get((item, a, order, repeat), ERROR) for item, a, _, order in places],
        [said.get((item, b, order, repeat), ERROR) for item, _, b, order in places],
        list(clusters),
    )


def _score(sides: Sides) -> Agreement:
    return jss(sides[0], sides[1], sides[2], kappa_interval=False) if sides[0] else NOTHING


def _compared(one: Sides, two: Sides) -> PairedDifference:
    return compare_jss((one[0], one[1]), (two[0], two[1]), one[2])


def _unread(case: Case, places: Sequence[tuple[str, str, str, str]]) -> tuple[float, float, int]:
    """The shares of the prompts of some pairs that are undecided and that were cut, and how many
    they are."""
    asked = {(item, t, order) for item, a, b, order in places for t in (a, b)}
    prompts = case.prompts()
    keys = zip(prompts.item, prompts.template, prompts.order, strict=True)
    used = np.array([key in asked for key in keys], dtype=bool)
    cut = np.array([bool(value) for value in case.column("truncated").to_pylist()])
    unread = np.isin(prompts.label, list(UNDECIDED))
    return float(unread[used].mean()), float(cut[used].mean()), int(used.sum())


def _corrected(columns: Sequence[str], rows: Sequence[Sequence[Value]]) -> list[Sequence[Value]]:
    """The rows with the p-values of a table corrected for their number."""
    place = columns.index(HOLM)
    adjusted = holm([cast("float | None", row[place]) for row in rows])
    return [[*row[:place], p, *row[place + 1 :]] for row, p in zip(rows, adjusted, strict=True)]


def token_results(main: Judged, other: Judged) -> Table:
    """The same prompts answered within few tokens and within many (section 6.4)."""
    rows: list[Sequence[Value]] = []
    for case, long in matches(main, other):
        if case.scoring != "generate" or not len(long.pairs):
            continue
        budgets = [_budget(run, case.number) for run in (main, other)]
        # The further run's pairs, whichever of the two has the longer answers.
        places, clusters = long.places, long.pairs.cluster.tolist()
        if (budgets[0] or 0) > (budgets[1] or 0):
            case, long, budgets = long, case, budgets[::-1]
        sides = [_sides(own, places, clusters) for own in (case, long)]
        found = [_score(side) for side in sides]
        gap = _compared(*sides)
        unread = [_unread(own, places) for own in (case, long)]
        rows.append(
            (
                case.judge, case.task, f"{budgets[0]} → {budgets[1]}", unread[0][0], unread[1][0],
                unread[0][1], unread[1][1], *(each.jss for each in found),
                *(each.n_pairs for each in found), gap.difference, gap.ci_low,
                gap.ci_high, gap.p_value, gap.n_pairs, unread[0][2],
            )
        )  # fmt: skip
    columns = (
        "judge", "task", "tokens", "undecided, few", "undecided, many", "cut, few", "cut, many",
        "JSS, few", "JSS, many", "N, few", "N, many", "difference", "low", "high", HOLM, "N both",
        "prompts",
    )  # fmt: skip
    note = (
        "Mapped decisions from generated text; `cut` is the share of answers that ran into the "
        "limit. The difference is on the pairs that both budgets decide: sign-flip test over "
        "clusters (the item, or what items share) with Holm's correction for this table, "
        "Newcombe's interval."
    )
    corrected = _corrected(columns, rows)
    return Table("tokens", "Short against long answers", columns, corrected, note)


def _budget(judged: Judged, number: int) -> int | None:
    described: dict[str, Any] = judged.record["judges"][number]["describe"]
    found = described.get("decoding", described).get("max_tokens")
    return None if found is None else int(found)


def temperature_results(main: Judged, other: Judged) -> Table:
    """JSS of text drawn at T = 1 beside that of greedy text, and the same prompt drawn again."""
    rows: list[Sequence[Value]] = []
    for case, drawn in matches(main, other):
        if case.scoring != "generate" or not len(drawn.pairs):
            continue
        asked = drawn.prompts(repeats=True)
        places, clusters = drawn.places, drawn.pairs.cluster.tolist()
        sides: Sides = ([], [], [])
        items: set[str] = set()
        for repeat in sorted(set(asked.repeat.tolist())):
            one, two, _ = _sides(drawn, places, clusters, repeat)
            sides = (sides[0] + one, sides[1] + two, sides[2] + clusters)
            said = zip(places, one, two, strict=True)
            items |= {at[0] for at, a, b in said if a not in UNDECIDED and b not in UNDECIDED}
        greedy, found = _score(_sides(case, places, clusters)), _score(sides)
        # One order throughout, so that the flips split into wording and asking again.
        sources = flip_sources(
            asked.label, asked.item, asked.template, asked.order,
            cluster_ids=asked.cluster, options=case.labels[:2],
        )  # fmt: skip
        again = None if sources.rerun is None else 1 - sources.rerun
        rows.append(
            (
                case.judge, case.task, greedy.jss, found.jss,
                found.ci_low, found.ci_high, again, sources.wording,
                share(sources.wording_ci_low), share(sources.wording_ci_high),
                _unread(case, places)[0], float(np.isin(asked.label, list(UNDECIDED)).mean()),
                greedy.n_pairs, found.n_pairs, len(items),
            )
        )  # fmt: skip
    columns = (
        "judge", "task", "JSS at T = 0", "JSS at T = 1", "low", "high",
        "same prompt again at T = 1", "wording", "low ", "high ", "undecided, T = 0",
        "undecided, T = 1", "N, T = 0", "N, T = 1", "items",
    )  # fmt: skip
    note = (
        "Mapped decisions from generated text, one option order. N at T = 1 counts each pair once "
        "a draw; intervals are over clusters (the item, or what items share). `wording`: flip rate "
        "under another wording less that of the same prompt drawn again."
    )
    return Table("temperature", "T = 1, drawn", columns, rows, note)


def scale_results(main: Judged, other: Judged) -> Table:
    """Binary tasks asked on a scale from 1 to 5 (section 6.1), beside the binary wordings."""
    rows: list[Sequence[Value]] = []
    for case, scale in matches(main, other):
        if not len(scale.pairs):
            continue
        shown = "AB" if case.comparative else NO_ORDER
        clusters = scale.pairs.cluster.tolist()
        binary = _sides(case, [(i, a, b, shown) for i, a, b, _ in scale.places], clusters)
        levels = _sides(scale, scale.places, clusters)
        sided = tuple([_side_of(word, case) for word in side] for side in levels[:2])
        found, exact = _score(binary), _score(levels)
        three = _score((sided[0], sided[1], levels[2]))
        decided = [
            (int(a), int(b))
            for a, b in zip(levels[0], levels[1], strict=True)
            if a not in UNDECIDED and b not in UNDECIDED
        ]
        apart = [abs(a - b) for a, b in decided]
        kappa = None
        if decided:
            one, two = ([str(level) for level in side] for side in zip(*decided, strict=True))
            kappa = cohen_kappa(one, two, "quadratic", [str(level) for level in range(1, 6)])
        rows.append(
            (
                case.judge, case.scoring, case.task, found.jss, found.kappa,
                exact.jss, three.jss,
                fmean([gap <= 1 for gap in apart]) if apart else None,
                fmean(apart) if apart else None, kappa, _right(case, shown), _right_on(scale, case),
                found.n_pairs, len(decided),
            )
        )  # fmt: skip
    columns = (
        "judge", "scoring", "task", "binary JSS", "binary κ", "scale JSS", "scale JSS, 3 steps",
        "within 1 level", "mean distance", "scale κ, quadratic", "binary accuracy",
        "scale accuracy", "N binary", "N scale",
    )  # fmt: skip
    note = (
        "The same items and pairs of wordings, mapped decisions; comparative tasks in the order "
        "AB alone. 3 steps: levels 1 and 2, 3, 4 and 5. Accuracy: share of decided prompts on the "
        "right side; a 3 is on neither side and counts as wrong."
    )
    return Table("scale", "Binary tasks on a scale from 1 to 5", columns, rows, note)


def _side_of(level: str, binary: Case) -> str:
    """What a level means in the binary task: 1 and 2 speak for A (or for NO), 4 and 5 for B."""
    if level in UNDECIDED:
        return level
    low, high = binary.labels if binary.comparative else reversed(binary.labels)
    return low if int(level) < 3 else high if int(level) > 3 else "middle"


def _gold(case: Case, order: str) -> dict[str, str]:
    asked = case.prompts()
    rows = zip(asked.item, asked.order, asked.gold, strict=True)
    return {item: gold for item, shown, gold in rows if shown == order and gold}


def _right(case: Case, order: str) -> float | None:
    gold = _gold(case, order)
    said = [
        word == gold[item]
        for (item, _, shown), word in first_verdicts(case).items()
        if shown == order and item in gold and word not in UNDECIDED
    ]
    return fmean(said) if said else None


def _right_on(scale: Case, binary: Case) -> float | None:
    gold = _gold(binary, "AB" if binary.comparative else NO_ORDER)
    said = [
        _side_of(word, binary) == gold[item]
        for (item, _, _), word in first_verdicts(scale).items()
        if item in gold and word not in UNDECIDED
    ]
    return fmean(said) if said else None


def language_results(main: Judged, other: Judged, language: str) -> Table:
    """Is a judge as consistent under translated wordings, and are its verdicts the same?"""
    rows: list[Sequence[Value]] = []
    for case, translated in matches(main, other):
        if not len(translated.pairs):
            continue
        places, clusters = translated.places, translated.pairs.cluster.tolist()
        sides = [_sides(own, places, clusters) for own in (case, translated)]
        found = [_score(side) for side in sides]
        gap = _compared(*sides)
        before, after = first_verdicts(case), first_verdicts(translated)
        same = [
            before[key] == word
            for key, word in after.items()
            if word not in UNDECIDED and before.get(key, ERROR) not in UNDECIDED
        ]
        cells = [own.cells["mapped"] for own in (case, translated)]
        rows.append(
            (
                case.judge, case.scoring, case.task, *(each.jss for each in found),
                gap.difference, gap.ci_low, gap.ci_high, gap.p_value,
                *(cell["accuracy"] for cell in cells), fmean(same) if same else None,
                *(each.n_pairs for each in found), gap.n_pairs,
            )
        )  # fmt: skip
    columns = (
        "judge", "scoring", "task", "JSS, English", f"JSS, {language}", "difference", "low", "high",
        HOLM, "accuracy, English", f"accuracy, {language}", "same verdict", "N English",
        f"N {language}", "N both",
    )  # fmt: skip
    note = (
        "The same items, pairs of wordings and option orders, mapped decisions; the judge keeps "
        "its own system prompt. The difference is on the pairs decided in both languages: "
        "sign-flip test over clusters (the item, or what items share) with Holm's correction for "
        "this table, Newcombe's interval. Same verdict: share of single prompts decided alike in "
        "both."
    )
    corrected = _corrected(columns, rows)
    return Table("language", f"{language} beside English", columns, corrected, note)


def validator_results(main: Judged, verdicts: Sequence[dict[str, Any]]) -> tuple[Table, Table]:
    """What several validators say of the pairs, and JSS on the pairs that each accepts."""
    names = list(dict.fromkeys(name for row in verdicts for name in row["validation"]))
    said: dict[str, dict[str, bool | None]] = {
        name: {
            row["pair_id"]: {"YES": True, "NO": False}.get(
                row["validation"].get(name, {}).get("verdict")
            )
            for row in verdicts
        }
        for name in names
    }
    said["consensus"] = {row["pair_id"]: row["valid"] for row in verdicts}
    counts: list[Sequence[Value]] = []
    rows: list[Sequence[Value]] = []
    tasks = {pair: task for task, pairs in main.pair_ids.items() for pair in pairs}
    for name, own in said.items():
        for task in main.pair_ids:
            votes = [vote for pair, vote in own.items() if tasks.get(pair) == task]
            counts.append(
                (name, task, votes.count(True), votes.count(False), votes.count(None))
            )  # fmt: skip
    for case in main.cases:
        ids = main.pair_ids.get(case.task, [])
        for name, own in said.items():
            kept = np.array([own.get(pair) is True for pair in ids], dtype=bool)
            dropped = np.array([own.get(pair) is False for pair in ids], dtype=bool)
            if len(ids) != len(case.pairs) or not dropped.any():
                continue
            one, two = case.agreement("raw", kept), case.agreement("raw", dropped)
            rows.append(
                (
                    case.judge, case.scoring, case.task, name, case.cells["raw"]["jss"],
                    one.jss, two.jss, one.n_pairs,
                    two.n_pairs,
                )
            )  # fmt: skip
    first = Table(
        "validators", "What several validators say",
        ("validator", "task", "equivalent", "not equivalent", "no verdict"), counts,
        "Pairs. Judges are asked the paper's question about each two wordings; `polarity`, "
        "`reading` and `surface` need no judge; `consensus` is the majority of the voices.",
    )  # fmt: skip
    columns = (
        "judge", "scoring", "task", "validator", "JSS, all", "JSS, accepted", "JSS, rejected",
        "N accepted", "N rejected",
    )  # fmt: skip
    note = "Raw decisions; validators that reject no pair of a task are left out."
    return first, Table(
        "validator_effect", "JSS on the pairs that a validator accepts", columns, rows, note
    )
