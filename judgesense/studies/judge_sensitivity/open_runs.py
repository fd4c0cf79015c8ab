"""Open questions that need further judging: tokens, temperature, scale, language, validators.

Each table compares a further run with the main one, on the same items and pairs of wordings.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean
from typing import Any

import numpy as np

from judgesense.decisions.view import NOTHING
from judgesense.statistics.agreement import Agreement, jss
from judgesense.statistics.comparison import compare_jss, holm
from judgesense.statistics.flips import flip_sources
from judgesense.statistics.kappa import cohen_kappa
from judgesense.studies.common.result import Record, Table, Value
from judgesense.studies.judge_sensitivity.log import Judged, JudgedCase
from judgesense.studies.judge_sensitivity.open_logs import share
from judgesense.tasks import ERROR, NO_ORDER, UNDECIDED

Sides = tuple[list[str], list[str], list[int]]
"""Decisions under the first and the second wording, and the cluster, of some pairs."""

Places = Sequence[tuple[str, str, str, str]]

TESTED = (
    "sign-flip test over clusters (the item, or what items share) with Holm's correction for this "
    "table, Newcombe's interval."
)


def matches(main: Judged, other: Judged) -> Iterator[tuple[JudgedCase, JudgedCase]]:
    """The cases of the main run and of another run that share judge, task and scoring, and whose
    other side has pairs."""
    for case in other.cases:
        if (same := main.matched(case)) is not None and len(case.stream.pairs):
            yield same, case


def _sides(case: JudgedCase, places: Places, clusters: Sequence[int], repeat: int = 0) -> Sides:
    """A case's decisions at pairs, perhaps another case's; ERROR where it has none."""
    said = case.verdicts
    return (
        [said.get((item, a, order, repeat), ERROR) for item, a, _, order in places],
        [said.get((item, b, order, repeat), ERROR) for item, _, b, order in places],
        list(clusters),
    )


def _score(sides: Sides) -> Agreement:
    return jss(sides[0], sides[1], sides[2], kappa_interval=False) if sides[0] else NOTHING


def _compared(one: Sides, two: Sides) -> dict[str, Value]:
    """The difference in JSS on the pairs that both sides decide."""
    gap = compare_jss((one[0], one[1]), (two[0], two[1]), one[2])
    return {
        "difference": gap.difference, "ci_low": gap.ci_low, "ci_high": gap.ci_high,
        "p_adjusted": gap.p_value, "n_pairs": gap.n_pairs,
    }  # fmt: skip


def _corrected(rows: Sequence[dict[str, Any]]) -> list[Record]:
    """The rows with the p-values of the table corrected for their number."""
    adjusted = holm([row["p_adjusted"] for row in rows])
    return [{**row, "p_adjusted": p} for row, p in zip(rows, adjusted, strict=True)]


def _unread(case: JudgedCase, places: Places) -> tuple[float, float, int]:
    """Of the prompts of some pairs: the share undecided, the share cut, and their number."""
    asked = {(item, t, order) for item, a, b, order in places for t in (a, b)}
    said = case.stream.answers()
    keys = zip(said.item, said.template, said.order, strict=True)
    used = np.array([key in asked for key in keys], dtype=bool)
    cut = np.array([bool(value) for value in said.column("truncated").to_pylist()])
    unread = np.isin(said.label, list(UNDECIDED))
    return float(unread[used].mean()), float(cut[used].mean()), int(used.sum())


def token_results(main: Judged, other: Judged) -> Table:
    """The same prompts answered within few tokens and within many (section 6.4)."""
    rows: list[dict[str, Any]] = []
    for case, long in matches(main, other):
        if case.scoring != "generate":
            continue
        budgets = [_budget(run, case.number) for run in (main, other)]
        # The further run's pairs, whichever of the two has the longer answers.
        places, clusters = long.stream.places, long.stream.pairs.cluster.tolist()
        if (budgets[0] or 0) > (budgets[1] or 0):
            case, long, budgets = long, case, budgets[::-1]
        few, many = (_sides(own, places, clusters) for own in (case, long))
        score_few, score_many = _score(few), _score(many)
        unread_few, unread_many = (_unread(own, places) for own in (case, long))
        rows.append({
            "judge": case.judge, "task": case.task, "tokens": f"{budgets[0]} → {budgets[1]}",
            "undecided_few": unread_few[0], "undecided_many": unread_many[0],
            "cut_few": unread_few[1], "cut_many": unread_many[1],
            "jss_few": score_few.jss, "jss_many": score_many.jss,
            "n_pairs_few": score_few.n_pairs, "n_pairs_many": score_many.n_pairs,
            **_compared(few, many), "n_prompts": unread_few[2],
        })  # fmt: skip
    return Table.from_records(
        "tokens", "Short against long answers", _corrected(rows),
        "Mapped decisions from generated text; `cut` is the share of answers that reached the "
        f"limit. The difference is on the pairs that both budgets decide: {TESTED}",
        p_adjusted="p, Holm", n_pairs="pairs, both",
    )  # fmt: skip


def _budget(judged: Judged, number: int) -> int | None:
    described: dict[str, Any] = judged.record["judges"][number]["describe"]
    found = described.get("decoding", described).get("max_tokens")
    return None if found is None else int(found)


def temperature_results(main: Judged, other: Judged) -> Table:
    """JSS of text drawn at T = 1 and of greedy text, and the same prompt drawn again."""
    rows: list[Record] = []
    for case, drawn in matches(main, other):
        if case.scoring != "generate":
            continue
        said = drawn.stream.answers(repeats=True)
        places, clusters = drawn.stream.places, drawn.stream.pairs.cluster.tolist()
        sides: Sides = ([], [], [])
        items: set[str] = set()
        for repeat in sorted(set(said.repeat.tolist())):
            one, two, _ = _sides(drawn, places, clusters, repeat)
            sides = (sides[0] + one, sides[1] + two, sides[2] + clusters)
            words = zip(places, one, two, strict=True)
            items |= {at[0] for at, a, b in words if a not in UNDECIDED and b not in UNDECIDED}
        greedy, found = _score(_sides(case, places, clusters)), _score(sides)
        # One order throughout, so the flips split into wording and asking again.
        sources = flip_sources(
            said.label, said.item, said.template, said.order,
            cluster_ids=said.cluster, options=case.stream.task.labels[:2],
        )  # fmt: skip
        rows.append({
            "judge": case.judge, "task": case.task, "jss": greedy.jss, "jss_t1": found.jss,
            "ci_low": found.ci_low, "ci_high": found.ci_high,
            "same_prompt": None if sources.rerun is None else 1 - sources.rerun,
            "wording": sources.wording, "wording_ci_low": share(sources.wording_ci_low),
            "wording_ci_high": share(sources.wording_ci_high),
            "undecided": _unread(case, places)[0],
            "undecided_t1": float(np.isin(said.label, list(UNDECIDED)).mean()),
            "n_pairs": greedy.n_pairs, "n_pairs_t1": found.n_pairs, "n_items": len(items),
        })  # fmt: skip
    return Table.from_records(
        "temperature", "T = 1, drawn", rows,
        "Mapped decisions from generated text, one option order. At T = 1 each pair counts once "
        "per draw; intervals are over clusters (the item, or what items share). Wording: the flip "
        "rate under another wording less that of the same prompt drawn again.",
        jss="JSS at T = 0", jss_t1="JSS at T = 1", same_prompt="same prompt again at T = 1",
        undecided="undecided, T = 0", undecided_t1="undecided, T = 1", n_pairs="pairs, T = 0",
        n_pairs_t1="pairs, T = 1",
    )  # fmt: skip


def scale_results(main: Judged, other: Judged) -> Table:
    """Binary tasks asked on a scale from 1 to 5 (section 6.1), and with the binary wordings."""
    rows: list[Record] = []
    for case, scale in matches(main, other):
        shown = "AB" if case.stream.task.comparative else NO_ORDER
        places, clusters = scale.stream.places, scale.stream.pairs.cluster.tolist()
        found = _score(_sides(case, [(i, a, b, shown) for i, a, b, _ in places], clusters))
        levels = _sides(scale, places, clusters)
        one, two = ([_side_of(word, case) for word in side] for side in levels[:2])
        decided = [
            (int(a), int(b))
            for a, b in zip(levels[0], levels[1], strict=True)
            if a not in UNDECIDED and b not in UNDECIDED
        ]
        apart = [abs(a - b) for a, b in decided]
        kappa = None
        if decided:
            first, second = ([str(level) for level in side] for side in zip(*decided, strict=True))
            kappa = cohen_kappa(first, second, "quadratic", [str(level) for level in range(1, 6)])
        asked = case.stream.answers()
        gold = {
            item: label
            for item, order, label in zip(asked.item, asked.order, asked.gold, strict=True)
            if order == shown and label
        }
        binary = [
            (item, word) for (item, _, order), word in case.first_verdicts.items() if order == shown
        ]
        graded = [(item, _side_of(word, case)) for (item, *_), word in scale.first_verdicts.items()]
        rows.append({
            **case.ids, "jss": found.jss, "kappa": found.kappa, "jss_scale": _score(levels).jss,
            "jss_3_steps": _score((one, two, clusters)).jss,
            "within_1_level": fmean([gap <= 1 for gap in apart]) if apart else None,
            "mean_distance": fmean(apart) if apart else None, "kappa_quadratic": kappa,
            "accuracy": _right(binary, gold), "accuracy_scale": _right(graded, gold),
            "n_pairs": found.n_pairs, "n_pairs_scale": len(decided),
        })  # fmt: skip
    return Table.from_records(
        "scale", "Binary tasks on a scale from 1 to 5", rows,
        "The same items and pairs of wordings, mapped decisions; comparative tasks in the order "
        "AB only. 3 steps: levels 1 and 2, 3, 4 and 5. Accuracy: the share of decided prompts on "
        "the right side; a 3 is on neither side and counts as wrong.",
        jss="binary JSS", kappa="binary κ", jss_scale="scale JSS", jss_3_steps="scale JSS, 3 steps",
        kappa_quadratic="scale κ, quadratic", accuracy="binary accuracy",
        accuracy_scale="scale accuracy", n_pairs="binary pairs", n_pairs_scale="scale pairs",
    )  # fmt: skip


def _side_of(level: str, binary: JudgedCase) -> str:
    """A level as an answer of the binary task: 1 and 2 mean A (or NO), 4 and 5 mean B (or YES)."""
    if level in UNDECIDED:
        return level
    low, high = (
        binary.stream.task.labels
        if binary.stream.task.comparative
        else reversed(binary.stream.task.labels)
    )
    return low if int(level) < 3 else high if int(level) > 3 else "middle"


def _right(said: Sequence[tuple[str, str]], gold: Mapping[str, str]) -> float | None:
    """The share of decided (item, answer) that are right, on items with a gold label."""
    right = [word == gold[item] for item, word in said if item in gold and word not in UNDECIDED]
    return fmean(right) if right else None


def language_results(main: Judged, other: Judged, language: str) -> Table:
    """Is a judge as consistent under translated wordings, and are its verdicts the same?"""
    rows: list[dict[str, Any]] = []
    for case, translated in matches(main, other):
        places, clusters = translated.stream.places, translated.stream.pairs.cluster.tolist()
        english, foreign = (_sides(own, places, clusters) for own in (case, translated))
        before, after = _score(english), _score(foreign)
        same = [
            case.first_verdicts[key] == word
            for key, word in translated.first_verdicts.items()
            if word not in UNDECIDED and case.first_verdicts.get(key, ERROR) not in UNDECIDED
        ]
        gap = _compared(english, foreign)
        rows.append({
            **case.ids, "jss_english": before.jss, "jss_translated": after.jss, **gap,
            "accuracy_english": case.cells["mapped"]["accuracy"],
            "accuracy_translated": translated.cells["mapped"]["accuracy"],
            "same_verdict": fmean(same) if same else None,
            "n_pairs_english": before.n_pairs, "n_pairs_translated": after.n_pairs,
        })  # fmt: skip
    return Table.from_records(
        "language", f"{language} and English", _corrected(rows),
        "The same items, pairs of wordings and option orders, mapped decisions; the judge keeps "
        f"its own system prompt. The difference is on the pairs decided in both languages: {TESTED}"
        " Same verdict: the share of single prompts decided alike in both.",
        jss_english="JSS, English", jss_translated=f"JSS, {language}", p_adjusted="p, Holm",
        n_pairs="pairs, both", accuracy_english="accuracy, English",
        accuracy_translated=f"accuracy, {language}", n_pairs_english="pairs, English",
        n_pairs_translated=f"pairs, {language}",
    )  # fmt: skip


def validator_results(main: Judged, verdicts: Sequence[dict[str, Any]]) -> tuple[Table, Table]:
    """The votes of several validators on the pairs, and JSS on the pairs that each accepts."""
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
    counts: list[Record] = []
    for name, own in said.items():
        for task, pairs in main.pair_ids.items():
            votes = [own[pair] for pair in pairs if pair in own]
            counts.append({
                "validator": name, "task": task, "equivalent": votes.count(True),
                "not_equivalent": votes.count(False), "no_verdict": votes.count(None),
            })  # fmt: skip
    rows: list[Record] = []
    for case in main.cases:
        ids = main.pair_ids.get(case.task, [])
        for name, own in said.items():
            kept = np.array([own.get(pair) is True for pair in ids], dtype=bool)
            dropped = np.array([own.get(pair) is False for pair in ids], dtype=bool)
            if len(ids) != len(case.stream.pairs) or not dropped.any():
                continue
            accepted, rejected = (case.stream.agreement("raw", some) for some in (kept, dropped))
            rows.append({
                **case.ids, "validator": name, "jss": case.cells["raw"]["jss"],
                "jss_accepted": accepted.jss, "jss_rejected": rejected.jss,
                "n_pairs_accepted": accepted.n_pairs, "n_pairs_rejected": rejected.n_pairs,
            })  # fmt: skip
    return (
        Table.from_records(
            "validators", "Votes of the validators", counts,
            "Pairs. Judges are asked the paper's question about each pair of wordings; `polarity`, "
            "`reading` and `surface` need no judge; `consensus` is the majority of the votes.",
        ),
        Table.from_records(
            "validator_effect", "JSS on the pairs that a validator accepts", rows,
            "Raw decisions; validators that reject no pair of a task are left out.",
            jss="JSS, all", jss_accepted="JSS, accepted", jss_rejected="JSS, rejected",
            n_pairs_accepted="pairs, accepted", n_pairs_rejected="pairs, rejected",
        ),
    )  # fmt: skip
