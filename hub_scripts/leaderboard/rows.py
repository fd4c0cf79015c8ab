"""The rows of the leaderboard: judges on tasks with their figures, ranked as far as tests do.

Judges of the same task, scoring and pairs are ranked by κ with the gold labels, with paired tests
on the items that all of them judged: see :func:`judgesense.statistics.ranks.paired_above`. Judges
of other data are never ranked against each other.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, islice
from types import MappingProxyType
from typing import Any

import numpy as np

from judgesense.log.view import BASELINES
from judgesense.measure.card import TRUST
from judgesense.measure.remedies import PASSING
from judgesense.measure.report_file import CELL_KEYS, identity, main_cells, task_rank
from judgesense.measure.thresholds import LEAST_COVERAGE
from judgesense.recipes.recipe import AS_ASKED
from judgesense.reporting.published import V2, v2_figures
from judgesense.reporting.summary import reasons
from judgesense.reporting.tables import undecided_share
from judgesense.statistics.arrays import Bools, Floats
from judgesense.statistics.gold import table_figures
from judgesense.statistics.ranks import paired_above, ranks_of
from judgesense.text import percent, short_names
from local_judges.local.gguf_files import NAMED
from local_judges.options import REMOTE

Figures = Mapping[str, Any]
Row = dict[str, Any]
Key = tuple[str, str, str]
NOTHING: Mapping[Any, Any] = MappingProxyType({})

ALONE = "no other judge of this data can be ranked"

RUN, LOG, FIGURE = "measured here", "measured here from a published log", "published figure"
"""What kind of figures a row has: from a run's decisions, from others' decisions, quoted."""

PEOPLE = "people"
"""Whose labels a published log has; a run has the gold labels of its data."""

_DATA = re.compile(r"\|data:([0-9a-f]{8})\|")
_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]{0,95}/[A-Za-z0-9][\w.-]{0,95}")
_LOCAL_ENGINES = ("transformers", "vllm", "ray")


@dataclass(frozen=True)
class Tables:
    """A judge's answers beside the gold labels: a table (gold x answer) for each cluster of items.

    Tables have shape (L, L + 1); the last answer is none of the labels. ``answered`` is the share
    of prompts with an answer, be it readable or not, and ``ordinal`` whether labels are a scale.
    """

    by_cluster: Mapping[str, Floats]
    ordinal: bool = False
    answered: float = 1.0


def entries(
    report: Mapping[str, Any], run: str, gold: Mapping[Key, Tables] = NOTHING
) -> Iterator[Row]:
    """The rows of a run's checked report, not ranked yet; ``run`` is the name of its folder.

    ``gold`` has the answers beside the gold labels by judge, task and scoring.
    """
    record: Mapping[str, Any] = report["runs"][0] if report["runs"] else {}
    source = record.get("dataset") or {}
    named = "imported log" if "imported" in record else "own pairs"
    data = f"{source.get('name') or named} {source.get('version') or ''}".strip()
    about = {
        judge["name"]: judge["describe"]
        for judge in record.get("judges") or []
        if judge.get("describe")
    }
    cards = {identity(card): card for card in report["trust"]}
    changes = {
        case: row
        for row in report["remedies"]
        if (case := identity(row)) in cards
        and row["remedy"] == cards[case].get("remedy") != AS_ASKED
        and row.get("trust") in PASSING
    }
    for case, cells in main_cells(report).items():
        _, judge, task, scoring = case
        if judge in BASELINES:
            continue
        pairs = _DATA.search(cells["mapped"]["signature"])
        engine = about.get(judge, {}).get("engine")
        yield row_of(
            (run, judge, task, scoring, pairs[1] if pairs else run, data),
            cells["mapped"],
            cells["raw"],
            cards.get(case),
            changes.get(case),
            weights="open" if engine in _LOCAL_ENGINES else "api" if engine in REMOTE else None,
            model=_model(judge, about.get(judge, {})),
            tables=gold.get((judge, task, scoring)),
        )


def _model(judge: str, about: Mapping[str, Any]) -> str | None:
    """The Hub name of a judge's model: where it came from, or where its package's came from."""
    origin = str(about.get("origin", ""))
    hub_id = origin.removeprefix("Hub ") if origin.startswith("Hub ") else ""
    packaged = NAMED.get(judge.partition("@")[0])
    if packaged and (origin.startswith("package ") or about.get("weights") == packaged.sha256):
        hub_id = packaged.hub_id
    return hub_id if _HUB_ID.fullmatch(hub_id) else None


def ranked_rows(board: Iterable[Row]) -> list[Row]:
    """The rows in groups of judges that can be compared: same task, pairs and scoring.

    In a group are the ranked judges by rank, then those without a rank by trust, whether a change
    makes them usable and how much more often they are right than a constant answer.
    """
    groups: dict[tuple[str, str, str], list[Row]] = {}
    for row in board:
        groups.setdefault((row["task"], row["pairs"], row["scoring"]), []).append({**row})
    return in_order(
        row for members in groups.values() for row in sorted(_ranked(members), key=_place)
    )


def in_order(rows: Iterable[Row]) -> list[Row]:
    """Rows by task; in a task, data with people's labels first and quoted figures last."""
    groups: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        key = row["task"], row["data"], row["pairs"], row["scoring"]
        groups.setdefault(key, []).append(row)

    def place(group: tuple[tuple[str, ...], list[Row]]) -> tuple[Any, ...]:
        key, members = group
        ranked = sum(row["rank"] is not None for row in members)
        first = members[0]
        people = first["labels"] != PEOPLE
        return task_rank(key[0]), people, first["kind"] == FIGURE, -ranked, -len(members), key

    return [row for _, group in sorted(groups.items(), key=place) for row in group]


def _ranked(members: Sequence[Row]) -> list[Row]:
    """Rows of a group, ranked by κ with the gold labels."""
    tables = [row["tables"] for row in members]
    for row, gold in zip(members, tables, strict=True):
        if gold is None:
            row["no_rank"] = "no gold labels"
        elif gold.answered < LEAST_COVERAGE:
            row["no_rank"] = f"answered only {percent(gold.answered)} of its prompts"
    able = [row for row in members if row["no_rank"] is None]
    names = [row["judge"] for row in able]
    if len(set(names)) < 2:
        # A first place among one judge says nothing.
        for row in able:
            row["no_rank"] = ALONE
    else:
        first, last = ranks_of(_above([row["tables"] for row in able]), names)
        for row, best, worst in zip(able, first.tolist(), last.tolist(), strict=True):
            row |= {"rank": best, "rank_last": worst}
    return [{key: value for key, value in row.items() if key != "tables"} for row in members]


def _above(able: Sequence[Tables]) -> Bools:
    """Whether a judge's κ is shown to be higher than another's, on the items that all judged."""
    shared = set.intersection(*(set(one.by_cluster) for one in able))
    if not shared:
        return np.zeros((len(able), len(able)), dtype=bool)
    tables = np.array([[one.by_cluster[name] for name in sorted(shared)] for one in able])
    whole, n = tables.sum(axis=1, keepdims=True), len(shared)
    ordinal = able[0].ordinal
    kappa = np.nan_to_num(table_figures(whole, ordinal)["kappa"])
    # The jackknife's values: what each cluster adds to κ.
    without = np.nan_to_num(table_figures(whole - tables, ordinal)["kappa"]) if n > 1 else kappa
    influences = (without.mean(axis=1, keepdims=True) - without) * ((n - 1) / n) ** 0.5
    return paired_above(kappa[:, 0], influences)


def row_of(
    named: tuple[str, str, str, str, str, str],
    mapped: Figures,
    raw: Figures,
    card: Figures | None = None,
    chosen: Figures | None = None,
    *,
    weights: str | None = None,
    model: str | None = None,
    tables: Tables | None = None,
) -> Row:
    """A judge on a task as the columns of board.json and of the CSV, not ranked yet.

    Shares are from 0 to 1, undefined is None. ``rank`` and ``rank_last`` are the best and the worst
    rank that the tests allow, ``no_rank`` says why there is none. ``change`` is the change that
    makes the judge usable, with its gains on the items where both ways of asking were tried.

    Args:
        named: run, judge, task, scoring, the data hash of the signature (rows with the same hash
            judged the same pairs), and the name of the data.
        mapped, raw: its cells of the report.
        card: its trust card; None for a quoted figure.
        chosen: the row of the report's remedies that makes it usable, if it is not as asked.
        weights: open, api or None.
        model: the model's name on the Hub.
        tables: its answers beside the gold labels, None without any.
    """
    run, judge, task, scoring, pairs, data = named
    page = re.sub(r"[^A-Za-z0-9._-]+", "-", judge.partition("@")[0])[:60].strip(".-") or "judge"
    page += f"-{hashlib.sha256(f'{run}|{judge}'.encode()).hexdigest()[:8]}.html"
    checks: Mapping[str, Figures] = (card or {}).get("checks", {})
    steady = checks.get("steady", {"estimate": None})
    figure = {key: mapped[key] for key in ("jss", "ci_low", "ci_high")}
    if steady["estimate"] is not None:
        figure = {"jss": steady["estimate"]} | {key: steady[key] for key in ("ci_low", "ci_high")}
    check, fair = checks.get("right", NOTHING), checks.get("fair", {})
    right = check.get("details", NOTHING)
    accuracy = right.get("accuracy")
    change = None
    if chosen is not None:
        wanted = ("remedy", "trust", "prompts_per_item", "accuracy", "gain", "jss")
        change = {key: chosen[key] for key in wanted}
        jss, before = chosen["jss"], chosen["jss_before"]
        change["jss_gain"] = None if jss is None or before is None else jss - before
    return {
        "task": task,
        "kind": RUN,
        "source": None,
        "labels": "gold" if tables else None,
        "scale": tables is not None and tables.ordinal,
        "data": data,
        "pairs": pairs,
        "scoring": scoring,
        "rank": None,
        "rank_last": None,
        "no_rank": None,
        "judge": judge,
        "run": run,
        "page": f"judges/{page}",
        "model": model,
        "weights": weights,
        "trust": card["trust"] if card else None,
        "reason": " and ".join(islice(reasons(card or {"because": ()}), 2)) or None,
        "change": change,
        **figure,
        "raw_jss": raw["jss"],
        "one_label": mapped["degenerate"] is not None,
        "accuracy": mapped["accuracy"] if accuracy is None else accuracy,
        "accuracy_ci_low": right.get("accuracy_ci_low"),
        "accuracy_ci_high": right.get("accuracy_ci_high"),
        "constant_accuracy": right.get("constant_accuracy"),
        **{
            f"beats_constant{end}": right.get(f"beats_constant{end}")
            for end in ("", "_ci_low", "_ci_high")
        },
        "kappa_gold": check.get("estimate"),
        "kappa_gold_ci_low": check.get("ci_low"),
        "kappa_gold_ci_high": check.get("ci_high"),
        "n_gold": check.get("n_items"),
        "answered": tables.answered if tables else None,
        "fair": fair.get("state") if fair.get("applies") else None,
        "position_consistency": mapped["position_consistency"],
        "position_ci_low": mapped["position_ci_low"],
        "position_ci_high": mapped["position_ci_high"],
        "first_position_rate": mapped["first_position_rate"],
        "no_verdict": undecided_share(mapped),
        "noise_floor": mapped["noise_floor"],
        "jss_repeat": mapped["jss_repeat"],
        "delta_jss": mapped["delta_jss"],
        "kappa": mapped["kappa"],
        "n_items": mapped["n_items"],
        "n_pairs": mapped["n_pairs"],
        "signature": mapped["signature"],
        "tables": tables,
    }


def _place(row: Row) -> tuple[Any, ...]:
    usable: tuple[float, ...] = ()
    if row["rank"] is None:
        # The more usable judge first: a constant answer is steady and useless.
        beats = row["beats_constant"]
        trust = TRUST.index(row["trust"] or "unknown")
        usable = (trust, row["change"] is None, -(-1 if beats is None else beats))
    return (
        row["rank"] is None,
        row["rank"] or 0,
        *usable,
        *(-(-1 if row[key] is None else row[key]) for key in ("kappa_gold", "jss")),
        row["judge"],
        row["run"],
    )


def answer(rows: Sequence[Row]) -> list[Row]:
    """Which judge for a task: for each data with gold labels, the leader and what it leads.

    ``leader`` is the row of the judge with the highest κ, ``beaten`` the number of judges shown to
    have a lower one, ``alike`` of those not told apart from it, ``usable`` the row of the first
    judge to use, if need be with care. Where no judge with labels can be
    used, the steadiest of the published figures follows.
    """
    found: list[Row] = []
    by_group = groupby(rows, key=lambda row: (row["data"], row["pairs"], row["scoring"]))
    for group in [list(members) for _, members in by_group]:
        ranked = [row for row in group if row["rank"] is not None]
        helps = [
            one for one in found if one["leader"]["trust"] != "avoid" or one["leader"]["change"]
        ]
        if not group[0]["labels"] and helps:
            continue
        names = short_names({row["judge"] for row in group})
        leader = (ranked or group)[0]
        n = len({row["judge"] for row in ranked})
        beaten = n - leader["rank_last"] if ranked else 0
        usable = next((row for row in group if row["trust"] in PASSING), None)
        found.append(
            {
                "leader": leader,
                "name": names[leader["judge"]],
                "beaten": beaten,
                "alike": max(0, n - 1 - beaten),
                "judges": len(group),
                "usable": usable,
            }
        )
    return found


def figure_rows() -> Iterator[Row]:
    """The published figures of the JudgeSense paper's second version: no trust, no rank."""
    cell = dict.fromkeys(CELL_KEYS) | dict.fromkeys(("n_unclear", "n_refused", "n_error"), 0)
    for one in sorted(v2_figures(), key=lambda one: -one.jss):
        figures = {
            key: getattr(one, key)
            for key in (
                "jss",
                "ci_low",
                "ci_high",
                "kappa",
                "jss_repeat",
                "delta_jss",
            )
        }
        figures |= {
            "accuracy": one.accuracy,
            "first_position_rate": one.first_position,
            "n_items": one.n_items,
            "n_pairs": one.n_pairs,
        }
        mapped = {**cell, **figures, "signature": f"{one.source}, as {one.published_as}"}
        named = (f"published/{V2}", one.published_as, one.task, "generate", V2, "JudgeSense v2")
        row = row_of(named, mapped, cell)
        del row["tables"]
        row["no_rank"] = "; ".join(
            ("quoted from a paper with other items and wordings", *one.notes[1:])
        )
        yield row | {"kind": FIGURE, "no_verdict": one.unclear}
