"""Robustness and panels measured on a log that exists: an imported one, or any run's.

Whatever a log's templates are is what is varied: LLMBar's are prompting strategies, which ask in
different ways and at different length, so that what they do to a judge is not sensitivity to
paraphrase alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from judgesense.decisions import read_log
from judgesense.errors import JudgeSenseError
from judgesense.statistics.classical import TestResult, anova
from judgesense.statistics.robustness import Robustness, paraphrase_robustness
from judgesense.studies.common import figures as pictures
from judgesense.studies.common.result import Picture, Result, Table, Value
from judgesense.studies.paraphrase_robustness.grid import Floats
from judgesense.studies.paraphrase_robustness.log_panels import codes_of, panels, plurality
from judgesense.studies.paraphrase_robustness.measures import RESAMPLES, correlate
from judgesense.studies.paraphrase_robustness.mitigations import aggregate, exact
from judgesense.tasks import is_scale
from judgesense.text import join, number, percent, short_names

NEARLY_ALL = 0.9
"""A template is measured if a judge answered it on so much of what it answered most under one."""

_COLUMNS = ["judge", "task", "scoring", "item_id", "cluster_id", "template_id", "order", "repeat",
            "status", "decision", "gold"]  # fmt: skip


@dataclass(frozen=True)
class Configured:
    """A judge on a set of items under k templates; ``scores`` (n, k) are codes of the labels.

    ``fewer`` are the templates left out, with the share of item × order that was answered;
    ``left_out`` counts the item × order that lack a decided answer under one of the others.
    ``scale`` says whether the labels are numbers, else their codes are names.
    """

    judge: str
    part: str
    templates: tuple[str, ...]
    fewer: Mapping[str, float]
    items: tuple[str, ...]
    scores: Floats
    gold: Floats
    scale: bool
    left_out: int
    found: Robustness
    both_orders: float | None


def measure_log(
    run_dir: str | Path, *, by: str = "task", tolerance: float = 0.5, panel: bool = True
) -> Result:
    """Robustness over a log's templates, and panels of its judges against its gold labels.

    Args:
        run_dir: the folder of an import or a run.
        by: ``task``, or ``set``: the item ids' part before the last slash.
        tolerance: τ for labels that are numbers.
        panel: whether to measure panels of the judges.

    Raises:
        JudgeSenseError: no log there, no gold labels, or neither two templates nor two judges.
    """
    if by not in ("task", "set"):
        raise JudgeSenseError(f"--by {by}: give task, or set (the item id before its last slash)")
    log = read_log(Path(run_dir))
    rows = _rows(log, by)
    found, skipped = _configurations(rows)
    tables, findings, drawn = [], [], []
    if found:
        tables += [_configuration_table(found), _judge_table(found), _effects(found)]
        tables.append(_correlation_table(found))
        findings += list(_findings(found))
        drawn += _pictures(found)
    made, said, more = panels(rows, tolerance) if panel else ([], [], [])
    tables += made
    if not tables:
        raise JudgeSenseError(
            f"{run_dir}: no judge answered the same items under two templates"
            + (", and no item was answered by three judges" if panel else "")
            + ": there is nothing to compare"
        )
    return Result(
        "paraphrase-robustness",
        "Robustness and panels on an existing log",
        {
            "log": str(run_dir),
            "judges": sorted({row["judge"] for row in rows}),
            "decisions": len(rows),
            "by": by,
        },
        tables,
        findings + said,
        list(_limits(found, skipped, sum(map(bool, log["repeat"].to_pylist())))),
        drawn + more,
    )


def _limits(
    found: Sequence[Configured], skipped: Mapping[str, Sequence[str]], repeats: int
) -> Iterator[str]:
    yield "the templates are what the log has: they need not be paraphrases"
    if found:
        yield (
            f"a configuration holds the templates that the judge answered on at least "
            f"{percent(NEARLY_ALL)} of the items and orders of its most answered one, and is "
            "measured on those that all of these decided"
        )
    else:
        yield "no judge decided two items under two templates: panels alone are measured"
    shares: dict[str, list[float]] = {}
    for one in found:
        for name, share in one.fewer.items():
            shares.setdefault(name, []).append(share)
    if shares:
        yield (
            f"templates left out where a judge answered them on less than {percent(NEARLY_ALL)}: "
            + ", ".join(
                f"{name} ({_span(own)} in {len(own)} configuration{'s' * (len(own) > 1)})"
                for name, own in shares.items()
            )
        )
    if found and skipped:
        yield (
            "no configuration, for want of two items decided under two templates: "
            + "; ".join(f"{judge} on {join(list(parts))}" for judge, parts in skipped.items())
        )
    if repeats:
        yield (
            f"{repeats} answers to a prompt asked again are left out, each prompt counts with its "
            "first: noise and wording are not told apart here (`judgesense report` gives a run's "
            "noise floor)"
        )
    else:
        yield (
            "there is no repetition of the same prompt, so that noise and wording are not told "
            "apart"
        )
    yield "intervals take clusters as independent: the item, or what items share (a question)"


def _span(shares: Sequence[float]) -> str:
    low, high = percent(min(shares)), percent(max(shares))
    return low if low == high else f"{low} to {high}"


def _rows(log: pa.Table, by: str) -> list[dict[str, Any]]:
    names = short_names(set(log["judge"].unique().to_pylist()))
    rows = [row for row in log.select(_COLUMNS).to_pylist() if not row["repeat"]]
    for row in rows:
        row["judge"] = names[row["judge"]]
        row["cluster"] = row["cluster_id"] or row["item_id"]
        row["part"] = row["task"] if by == "task" else row["item_id"].rpartition("/")[0]
        if row["gold"] is None:
            raise JudgeSenseError(
                f"item {row['item_id']!r} has no gold label: accuracy needs one for every item"
            )
    _tell_apart(rows)
    return rows


def _tell_apart(rows: Sequence[dict[str, Any]]) -> None:
    """Name a set's tasks and scorings where it has several: each is measured by itself."""
    for kind in ("task", "scoring"):
        kinds: dict[str, set[str]] = {}
        for row in rows:
            kinds.setdefault(row["part"], set()).add(row[kind])
        for row in rows:
            if len(kinds[row["part"]]) > 1:
                row["part"] = f"{row['part']}, {row[kind]}"


def _configurations(
    rows: Sequence[dict[str, Any]],
) -> tuple[list[Configured], dict[str, list[str]]]:
    """What can be measured, and by judge the sets on which it has no two templates to compare."""
    found: list[Configured] = []
    skipped: dict[str, list[str]] = {}
    parts: dict[str, list[dict[str, Any]]] = {}
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in rows:
        parts.setdefault(row["part"], []).append(row)
        groups.setdefault((row["part"], row["judge"]), []).append(row)
    codes_in = {part: codes_of(own) for part, own in parts.items()}
    for (part, judge), own in sorted(groups.items()):
        codes = codes_in[part]
        answers: dict[str, dict[tuple[str, str], dict[str, Any]]] = {}
        for row in own:
            answers.setdefault(row["template_id"], {})[row["item_id"], row["order"]] = row
        most = max(answers.values(), key=len)
        shares = {name: len(given.keys() & most) / len(most) for name, given in answers.items()}
        full = [name for name, share in shares.items() if share >= NEARLY_ALL]
        asked = {unit for name in full for unit in answers[name]}
        decided = [
            unit
            for unit in most
            if all(unit in answers[t] and answers[t][unit]["status"] == "ok" for t in full)
        ]
        if len(full) < 2 or len({item for item, _ in decided}) < 2:
            skipped.setdefault(judge, []).append(part)
            continue
        scores = np.array([[codes[answers[t][u]["decision"]] for t in full] for u in decided])
        gold = np.array([codes[answers[full[0]][u]["gold"]] for u in decided])
        items = tuple(item for item, _ in decided)
        clusters = [answers[full[0]][unit]["cluster"] for unit in decided]
        found.append(
            Configured(
                judge, part, tuple(full), {t: shares[t] for t in answers if t not in full}, items,
                scores, gold, is_scale(codes), len(asked) - len(decided),
                paraphrase_robustness(scores, gold, item_ids=clusters, n_resamples=RESAMPLES),
                _both_orders(own, tuple(codes)),
            )
        )  # fmt: skip
    return found, skipped


def _both_orders(rows: Sequence[Mapping[str, Any]], labels: tuple[str, ...]) -> float | None:
    """The share of item × template on which the same thing wins in both orders.

    The two options change names with the order; a third label (a tie) keeps its own.
    """
    one, other = labels if len(labels) == 2 else ("A", "B")
    swapped = {one: other, other: one}
    said = {
        (r["item_id"], r["template_id"], r["order"]): r["decision"]
        for r in rows
        if r["status"] == "ok" and r["order"] in ("AB", "BA")
    }
    same = [
        swapped.get(said[item, template, "AB"], said[item, template, "AB"])
        == said[item, template, "BA"]
        for item, template, order in said
        if order == "AB" and (item, template, "BA") in said
    ]
    return float(np.mean(same)) if same else None


def _configuration_table(found: Sequence[Configured]) -> Table:
    return Table(
        "configurations", "Every judge on every set",
        ("set", "judge", "templates", "accuracy", "low", "high", "gap", "gap by chance",
         "consistency", "same winner in both orders", "items", "item × order", "left out",
         "fewer items"),
        [
            (
                one.part, one.judge, len(one.templates), one.found.accuracy,
                one.found.accuracy_ci_low, one.found.accuracy_ci_high, one.found.win_rate_gap,
                one.found.win_rate_gap_chance, one.found.consistency, one.both_orders,
                len(set(one.items)), len(one.gold), one.left_out,
                ", ".join(f"{name} ({percent(share)})" for name, share in one.fewer.items()) or "–",
            )
            for one in found
        ],
        "accuracy: mean over templates, with Wilson's interval over clusters; gap: between the "
        "best and the worst template; consistency: item × order with the same label under every "
        "template; left out: item × order without a decided answer under one of these templates; "
        f"fewer items: templates left out because the judge answered them on less than "
        f"{percent(NEARLY_ALL)} of the item × order of its most answered one. Sensitivity is "
        "undefined for labels without a scale.",
    )  # fmt: skip


def _judge_table(found: Sequence[Configured]) -> Table:
    rows: list[Sequence[Value]] = []
    for judge in dict.fromkeys(one.judge for one in found):
        own = [one for one in found if one.judge == judge]
        away: dict[str, list[float]] = {}
        for one in own:
            for name, value in zip(one.templates, one.found.accuracy_per_paraphrase, strict=True):
                away.setdefault(name, []).append(value - one.found.accuracy)
        means = {name: float(np.mean(values)) for name, values in away.items()}
        often = [name for name, values in away.items() if 2 * len(values) >= len(own)] or [*away]
        best, worst = max(often, key=means.__getitem__), min(often, key=means.__getitem__)
        link = correlate(judge, "gap", [(o.found.accuracy, o.found.win_rate_gap) for o in own])
        rows.append(
            (
                judge, float(np.mean([o.found.accuracy for o in own])),
                float(np.mean([o.found.win_rate_gap or 0 for o in own])),
                float(np.mean([o.found.win_rate_gap_chance or 0 for o in own])),
                float(np.mean([o.found.consistency or 0 for o in own])),
                f"{best} {means[best]:+.3f}", f"{worst} {means[worst]:+.3f}",
                float(np.mean([_agreed(o) for o in own])), link.pearson,
                link.pearson_p, len(own),
            )
        )  # fmt: skip
    rows.sort(key=lambda row: -float(row[1] or 0))
    return Table(
        "judges", "The judges",
        ("judge", "accuracy", "gap", "gap by chance", "consistency", "best template",
         "worst template", "majority of templates", "r of accuracy and gap", "p", "sets"),
        rows, "Means over sets, each set alike; best and worst template: mean difference from "
        "a set's mean accuracy, of the templates answered on half of its sets or more, or of all "
        "where each set has its own. "
        "majority of templates: accuracy of what most of them say.",
    )  # fmt: skip


def _agreed(one: Configured) -> float:
    """Accuracy of the majority of the templates; without a scale a tie of k labels counts 1/k."""
    if not one.scale or set(np.unique(one.scores)) <= {0.0, 1.0}:
        return float(plurality(one.scores, one.gold).mean())
    return float(exact(aggregate(one.scores, "majority"), one.gold).mean())


def _effects(found: Sequence[Configured]) -> Table:
    rows: list[Sequence[Value]] = []
    for factor, key in (("judge", "judge"), ("set", "part")):
        groups: dict[str, list[float]] = {}
        for one in found:
            groups.setdefault(getattr(one, key), []).append(one.found.accuracy)
        rows.append((factor, "judge × set", *_test(list(groups.values()))))
    shares: dict[str, list[float]] = {}
    for one in found:
        for name, value in zip(one.templates, one.found.accuracy_per_paraphrase, strict=True):
            shares.setdefault(name, []).append(value)
    rows.append(("template", "judge × set × template", *_test(list(shares.values()))))
    return Table(
        "anova", "What explains accuracy: one-way ANOVAs",
        ("factor", "over", "F", "p", "η²", "n"), rows,
    )  # fmt: skip


def _test(groups: Sequence[Sequence[float]]) -> tuple[Value, Value, Value, Value]:
    if len(groups) < 2 or sum(map(len, groups)) <= len(groups):
        return None, None, None, None
    test: TestResult = anova(groups)
    return test.statistic, test.p_value, test.effect, test.n


def _correlation_table(found: Sequence[Configured]) -> Table:
    link = correlate("all", "gap", [(o.found.accuracy, o.found.win_rate_gap) for o in found])
    return Table(
        "correlations", "Accuracy against win-rate gap",
        ("n", "Pearson's r", "p", "Spearman's ρ", "p of ρ"),
        [(link.n, link.pearson, link.pearson_p, link.spearman, link.spearman_p)],
        "Over judge × set.",
    )  # fmt: skip


def _findings(found: Sequence[Configured]) -> Iterator[str]:
    wide = sum((o.found.win_rate_gap or 0) > (o.found.win_rate_gap_chance or 0) for o in found)
    yield (
        f"the gap between the best and the worst template is wider than dealing the answers at "
        f"random would make it in {wide} of {len(found)} configurations (mean "
        f"{number(float(np.mean([o.found.win_rate_gap for o in found])))} against "
        f"{number(float(np.mean([o.found.win_rate_gap_chance for o in found])))})"
    )
    judges: dict[str, list[Configured]] = {}
    for one in found:
        judges.setdefault(one.judge, []).append(one)
    means = {j: float(np.mean([o.found.accuracy for o in own])) for j, own in judges.items()}
    ranked = sorted(means, key=means.__getitem__, reverse=True)
    yield "accuracy by judge: " + ", ".join(f"{j} {number(means[j])}" for j in ranked)
    orders = {
        judge: float(np.mean([o.both_orders for o in own if o.both_orders is not None]))
        for judge, own in judges.items()
        if any(o.both_orders is not None for o in own)
    }
    if blind := [judge for judge, share in orders.items() if share < 0.5]:
        yield f"{join(blind)}: more often than not another winner when the options are swapped"


def _pictures(found: Sequence[Configured]) -> list[Picture]:
    judges = list(dict.fromkeys(one.judge for one in found))
    parts = list(dict.fromkeys(one.part for one in found))
    cell = {(one.judge, one.part): one.found.accuracy for one in found}

    return [
        Picture(
            "accuracy_gap",
            "Accuracy against the gap between templates; a point is a judge on a set.",
            lambda: pictures.scatter(
                {
                    j: [(o.found.accuracy, o.found.win_rate_gap or 0.0) for o in found
                        if o.judge == j]
                    for j in judges
                },
                xlabel="accuracy", ylabel="gap between templates",
            ),
        ),
        Picture(
            "accuracy_heatmap",
            "Accuracy of each judge on each set, over templates.",
            lambda: pictures.heatmap(
                [[cell.get((j, p)) for j in judges] for p in parts], parts, judges,
                label="accuracy",
            ),
        ),
    ]  # fmt: skip
