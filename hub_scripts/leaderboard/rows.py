"""The rows of the leaderboard: judges on tasks with their figures, ranked as far as tests do.

Judges of the same task, scoring and pairs are ranked by paired tests on their items: see
:func:`judgesense.statistics.ranks.paired_above`.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from statistics import NormalDist
from types import MappingProxyType
from typing import Any

import numpy as np

from judgesense.decisions.view import BASELINES
from judgesense.reporting.summary import reasons
from judgesense.reporting.tables import undecided_share
from judgesense.run_folder.report import KAPPA_UNDEFINED, identity, main_cells, task_rank
from judgesense.statistics.arrays import Bools
from judgesense.statistics.ranks import intervals_above, paired_above, ranks_of
from judgesense.text import number, short_names
from judgesense.trust.card import AS_ASKED, TRUST
from judgesense.trust.remedies import PASSING
from judgesense.trust.thresholds import DISCRIMINATING_KAPPA, LEAST_COVERAGE
from local_judges.local.packaged_models import NAMED
from local_judges.options import REMOTE

Figures = Mapping[str, Any]
Row = dict[str, Any]
Key = tuple[str, str, str]
ByCluster = Mapping[str, tuple[int, int]]
NOTHING: Mapping[Any, Any] = MappingProxyType({})

ALONE = "no other judge on these pairs can be ranked"

ANSWERS = {
    "use": "Use",
    "care": "Use with care",
    "changed": "Use after a change",
    "unknown": "Not known yet",
    "avoid": "Avoid",
}
"""What the first line says of judges, the usable ones first."""

_DATA = re.compile(r"\|data:([0-9a-f]{8})\|")
_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]{0,95}/[A-Za-z0-9][\w.-]{0,95}")
_LOCAL_ENGINES = ("transformers", "vllm", "ray")


@dataclass(frozen=True)
class Entry:
    """A judge or a baseline on a task in a run, before it is ranked.

    ``pairs`` is the data hash of the signature: entries with the same hash judged the same pairs.
    ``mapped`` and ``raw`` are its cells of the report, ``card`` its trust card (None for a
    baseline), and ``change`` the row of the report's remedies that makes it usable, if it is not
    usable as asked. ``weights`` is open, api or None, ``model`` the model's name on the Hub.
    ``by_cluster`` has the numbers of equal and of decided pairs of each cluster of items; without
    them it is ranked by its interval.
    """

    run: str
    judge: str
    task: str
    scoring: str
    pairs: str
    data: str
    mapped: Figures
    raw: Figures
    card: Figures | None = None
    change: Figures | None = None
    weights: str | None = None
    model: str | None = None
    by_cluster: ByCluster | None = None

    @property
    def is_baseline(self) -> bool:
        """Whether this is the score of a perfect judge, or of one that always answers first."""
        return self.judge in BASELINES

    @property
    def checks(self) -> Mapping[str, Figures]:
        """The checks of its trust card by name; empty without a card."""
        found: Mapping[str, Figures] = (self.card or {}).get("checks", {})
        return found

    @property
    def steady(self) -> Figures:
        """``jss`` with its interval: those of the trust card, or else of the mapped cell."""
        check = self.checks.get("steady")
        if check is None or check["estimate"] is None:
            return {key: self.mapped[key] for key in ("jss", "ci_low", "ci_high")}
        return {"jss": check["estimate"], "ci_low": check["ci_low"], "ci_high": check["ci_high"]}

    @property
    def reason(self) -> str | None:
        """The two worst reasons of its trust card; None if it has none."""
        return "; ".join(islice(reasons(self.card or {"because": ()}), 2)) or None

    @property
    def page(self) -> str | None:
        """The path of its judge's page; None for a baseline."""
        return None if self.is_baseline else judge_page(self.run, self.judge)


def judge_page(run: str, judge: str) -> str:
    """The path of the page of a run's judge: readable, and another one for every judge."""
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", judge.partition("@")[0])[:60].strip(".-") or "judge"
    return f"judges/{name}-{hashlib.sha256(f'{run}|{judge}'.encode()).hexdigest()[:8]}.html"


def entries(
    report: Mapping[str, Any], run: str, by_cluster: Mapping[Key, ByCluster] = NOTHING
) -> Iterator[Entry]:
    """The entries of a run's checked report; ``run`` is the name of its folder.

    ``by_cluster`` are those of `Entry`, by judge, task and scoring.
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
        pairs = _DATA.search(cells["mapped"]["signature"])
        engine = about.get(judge, {}).get("engine")
        yield Entry(
            run=run,
            judge=judge,
            task=task,
            scoring=scoring,
            pairs=pairs[1] if pairs else run,
            data=data,
            mapped=cells["mapped"],
            raw=cells["raw"],
            card=cards.get(case),
            change=changes.get(case),
            weights="open" if engine in _LOCAL_ENGINES else "api" if engine in REMOTE else None,
            model=_model(judge, about.get(judge, {})),
            by_cluster=by_cluster.get((judge, task, scoring)),
        )


def _model(judge: str, about: Mapping[str, Any]) -> str | None:
    """The Hub name of a judge's model: where it came from, or where its package's came from."""
    origin = str(about.get("origin", ""))
    hub_id = origin.removeprefix("Hub ") if origin.startswith("Hub ") else ""
    packaged = NAMED.get(judge.partition("@")[0])
    if packaged and (origin.startswith("package ") or about.get("weights") == packaged.sha256):
        hub_id = packaged.hub_id
    return hub_id if _HUB_ID.fullmatch(hub_id) else None


def ranked_rows(board: Iterable[Entry]) -> list[Row]:
    """One row an entry, in the order of the table: groups of judges that can be compared.

    A group has the same task, pairs and scoring; those with more ranked judges come first. In it
    are the ranked judges by rank and JSS, then those without a rank by trust, whether a change
    makes them usable and how much more often they are right than a constant answer, then the
    baselines of its pairs, each once.
    """
    groups: dict[tuple[str, str, str], list[Entry]] = {}
    baselines: dict[tuple[str, str], dict[str, Entry]] = {}
    for entry in board:
        if entry.is_baseline:
            known = baselines.setdefault((entry.task, entry.pairs), {})
            known.setdefault(entry.judge, entry)
        else:
            groups.setdefault((entry.task, entry.pairs, entry.scoring), []).append(entry)
    same_pairs: dict[tuple[str, str], list[Entry]] = {}
    for (task, pairs, _), members in groups.items():
        same_pairs.setdefault((task, pairs), []).extend(members)
    unfit = {key: _ranks_nobody(members) for key, members in same_pairs.items()}
    ranked = []
    for (task, pairs, scoring), members in groups.items():
        rows = _ranked(members, unfit[task, pairs])
        for entry in baselines.get((task, pairs), {}).values():
            rows.append(_row(entry, None, None, None) | {"scoring": scoring})
        ranked.append(sorted(rows, key=_place))
    ranked.sort(
        key=lambda rows: (
            task_rank(rows[0]["task"]),
            -sum(row["rank"] is not None for row in rows),
            -len(rows),
            rows[0]["data"],
            rows[0]["pairs"],
            rows[0]["scoring"],
        )
    )
    return [row for rows in ranked for row in rows]


def _ranks_nobody(members: Iterable[Entry]) -> str | None:
    """Why the task of these entries, which judged the same pairs, ranks nobody; None if it does.

    On a task that no judge can do, judges differ by what they do instead. So the κ with gold of one
    judge must be shown to lie above `DISCRIMINATING_KAPPA`: a constant answer has a κ of 0. The
    best of several judges looks better than it is, so the lower ends are those of simultaneous
    intervals (Bonferroni), and the text names an end instead of the best estimate.
    """
    known = [entry.checks["right"] for entry in members if entry.checks]
    known = [right for right in known if right["estimate"] is not None]
    if not known:
        return None
    normal = NormalDist()
    wider = normal.inv_cdf(1 - 0.025 / len(known)) / normal.inv_cdf(0.975)
    low = -1.0
    for right in known:
        if right["ci_low"] is not None:
            low = max(low, right["estimate"] - wider * (right["estimate"] - right["ci_low"]))
    if low > DISCRIMINATING_KAPPA:
        return None
    n = len(known)
    of = "" if n == 1 else f", whichever of {n} judges is best"
    shown = f"κ with gold is shown to be at least {number(low, 2)}{of}"
    highs = [right["ci_high"] for right in known]
    if all(high is not None and high < DISCRIMINATING_KAPPA for high in highs):
        return f"non-discriminating: no judge beats a constant answer by a margin ({shown})"
    return f"not shown to tell judges apart ({shown}): add items"


def _ranked(members: Sequence[Entry], unfit: str | None) -> list[Row]:
    """Rows of a group; ``unfit`` is why its task ranks nobody."""
    reasons = [why_unranked(entry) or unfit for entry in members]
    able = [entry for entry, why in zip(members, reasons, strict=True) if why is None]
    names = [entry.judge for entry in able]
    if len(set(names)) < 2:
        # A first place among one judge says nothing.
        return [_row(e, None, None, why or ALONE) for e, why in zip(members, reasons, strict=True)]
    first, last = ranks_of(_above(able), names)
    ranks = iter(zip(first.tolist(), last.tolist(), strict=True))
    rows = []
    for entry, why in zip(members, reasons, strict=True):
        if why is not None:
            rows.append(_row(entry, None, None, why))
            continue
        rows.append(_row(entry, *next(ranks), None))
    return rows


def _above(able: Sequence[Entry]) -> Bools:
    """Which entries are shown to be steadier than which: by paired tests, or else by intervals."""
    low, high = ([entry.steady[end] for entry in able] for end in ("ci_low", "ci_high"))
    above = intervals_above(low, high)
    paired = [at for at, entry in enumerate(able) if entry.by_cluster]
    clusters = dict.fromkeys(name for at in paired for name in able[at].by_cluster or ())
    counts = np.array(
        [[(able[at].by_cluster or {}).get(name, (0, 0)) for name in clusters] for at in paired],
        dtype=np.float64,
    ).reshape(len(paired), len(clusters), 2)
    same, pairs = counts[..., 0], counts[..., 1]
    sizes = pairs.sum(axis=1, keepdims=True)
    shares = same.sum(axis=1, keepdims=True) / sizes
    above[np.ix_(paired, paired)] = paired_above(shares[:, 0], (same - shares * pairs) / sizes)
    return above


def why_unranked(entry: Entry) -> str | None:
    """Why an entry cannot have a rank; None if it can.

    A rank compares how steady judges are. It presumes that each is right and fair, and that its own
    steadiness is settled.
    """
    cell, steady = entry.mapped, entry.steady
    if steady["jss"] is None:
        return "no pair is decided on both sides"
    if cell["degenerate"] is not None:
        return f"says nothing about rewording: {cell['degenerate'].removesuffix(KAPPA_UNDEFINED)}"
    if steady["ci_low"] is None or steady["ci_high"] is None:
        return "no interval"
    if cell["coverage"] is not None and cell["coverage"] < LEAST_COVERAGE:
        return "fewer than half of its pairs are decided"
    if entry.card is None:
        return None
    trust, right, fair = entry.card["trust"], entry.checks["right"], entry.checks["fair"]
    if trust == "avoid" and set(entry.card["because"]) - {"steady"}:
        return entry.reason
    if right["estimate"] is None:
        return "no gold labels, so it is not compared with a constant answer"
    if (right["details"].get("beats_constant_ci_low") or 0) <= 0:
        short = "not shown to be more right than a constant answer"
        beyond = "agrees with people beyond chance, but is "
        return beyond + short if right["state"] == "pass" else short
    if fair["applies"] and fair["state"] != "pass":
        return "not shown to choose the same in both orders"
    return entry.reason if trust == "unknown" else None


def _row(entry: Entry, rank: int | None, last: int | None, why: str | None) -> Row:
    """The columns of board.json and of the CSV; shares are from 0 to 1, undefined is None.

    ``rank`` and ``rank_last`` are the best and the worst rank that the intervals allow, ``no_rank``
    says why there is none. ``change`` is the change that makes the judge usable: its name, trust,
    prompts per item and accuracy.
    """
    cell = entry.mapped
    right = entry.checks["right"]["details"] if entry.checks else {}
    fair = entry.checks.get("fair", {})
    accuracy = right.get("accuracy")
    change = None
    if entry.change is not None:
        wanted = ("remedy", "trust", "prompts_per_item", "accuracy")
        change = {key: entry.change[key] for key in wanted}
    return {
        "task": entry.task,
        "data": entry.data,
        "pairs": entry.pairs,
        "scoring": entry.scoring,
        "rank": rank,
        "rank_last": last,
        "no_rank": why,
        "judge": entry.judge,
        "run": entry.run,
        "page": entry.page,
        "model": entry.model,
        "weights": entry.weights,
        "trust": entry.card["trust"] if entry.card else None,
        "reason": entry.reason,
        "change": change,
        **entry.steady,
        "raw_jss": entry.raw["jss"],
        "one_label": cell["degenerate"] is not None,
        "accuracy": cell["accuracy"] if accuracy is None else accuracy,
        "accuracy_ci_low": right.get("accuracy_ci_low"),
        "accuracy_ci_high": right.get("accuracy_ci_high"),
        "constant_accuracy": right.get("constant_accuracy"),
        **{
            f"beats_constant{end}": right.get(f"beats_constant{end}")
            for end in ("", "_ci_low", "_ci_high")
        },
        "fair": fair.get("state") if fair.get("applies") else None,
        "position_consistency": cell["position_consistency"],
        "position_ci_low": cell["position_ci_low"],
        "position_ci_high": cell["position_ci_high"],
        "first_position_rate": cell["first_position_rate"],
        "no_verdict": undecided_share(cell),
        "noise_floor": cell["noise_floor"],
        "kappa": cell["kappa"],
        "n_items": cell["n_items"],
        "n_pairs": cell["n_pairs"],
        "signature": cell["signature"],
    }


def _place(row: Row) -> tuple[Any, ...]:
    usable: tuple[float, ...] = ()
    if row["rank"] is None:
        # The more usable judge first: a constant answer is steady and useless.
        beats = row["beats_constant"]
        trust = TRUST.index(row["trust"] or "unknown")
        usable = (trust, row["change"] is None, -(-1 if beats is None else beats))
    return (
        row["page"] is None,
        row["rank"] is None,
        row["rank"] or 0,
        *usable,
        -(-1 if row["jss"] is None else row["jss"]),
        row["judge"],
        row["run"],
    )


def answer(rows: Sequence[Row]) -> list[tuple[str, list[str]]]:
    """Which of a task's judges can be used: names by what holds of them, the usable ones first."""
    best: dict[str, tuple[int, str]] = {}
    names = short_names({row["judge"] for row in rows})
    words = list(ANSWERS)
    for row in rows:
        if row["trust"] is None:
            continue
        name, word = names[row["judge"]], row["trust"]
        if row["change"]:
            name, word = f"{name} ({row['change']['remedy']})", "changed"
        place = (words.index(word), name)
        best[row["judge"]] = min(place, best.get(row["judge"], place))
    found: dict[str, list[str]] = {}
    for at, name in sorted(best.values()):
        found.setdefault(ANSWERS[words[at]], []).append(name)
    return list(found.items())
