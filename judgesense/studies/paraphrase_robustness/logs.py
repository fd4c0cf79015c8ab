"""Robustness and panels measured on an existing log: an import, or any run.

The templates of the log are what is varied. They need not be paraphrases: LLMBar's are prompting
strategies of different style and length.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import numpy as np

from judgesense.errors import JudgeSenseError
from judgesense.statistics.arrays import Floats
from judgesense.statistics.ranks import chosen
from judgesense.statistics.robustness import Robustness, paraphrase_robustness
from judgesense.studies.common.result import Picture, Result, Table
from judgesense.studies.paraphrase_robustness.figures import accuracy_picture, gap_picture
from judgesense.studies.paraphrase_robustness.findings import gap_finding
from judgesense.studies.paraphrase_robustness.log_panels import panels, plurality
from judgesense.studies.paraphrase_robustness.log_votes import JudgeVote, codes_of, read_votes
from judgesense.studies.paraphrase_robustness.measures import (
    RESAMPLES,
    Record,
    anova_record,
    correlate,
    mean,
    robustness_figures,
)
from judgesense.studies.paraphrase_robustness.mitigations import aggregate, exact
from judgesense.studies.paraphrase_robustness.tables import STUDY, table
from judgesense.tasks import is_scale
from judgesense.text import join, number, percent, s, signed, span

NEARLY_ALL = 0.9
"""A template is measured if a judge answered it on at least this share of its most answered one."""


@dataclass(frozen=True)
class LogConfiguration:
    """A judge on a set of items under k templates; ``scores`` (n, k) are codes of the labels.

    ``fewer`` are the templates left out, with the share of item × order that was answered;
    ``left_out`` counts the item × order without a decided answer under one of the others.
    ``scale`` is True if the labels are numbers; otherwise codes stand for names.
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

    @property
    def majority_accuracy(self) -> float:
        """Accuracy of the templates' majority; without a scale, a tie of k labels counts 1/k."""
        if not self.scale or set(np.unique(self.scores)) <= {0.0, 1.0}:
            return float(plurality(self.scores, self.gold).mean())
        return float(exact(aggregate(self.scores, "majority"), self.gold).mean())


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
        JudgeSenseError: no log, an item without a gold label, or neither two templates nor three
            judges on the same items.
    """
    if by not in ("task", "set"):
        raise JudgeSenseError(f"--by {by}: use task, or set (the item id before its last slash)")
    votes, n_repeated = read_votes(Path(run_dir), by)
    found, skipped = _configurations(votes)
    tables, findings, pictures = [], [], []
    if found:
        tables += [_configurations_table(found), _judges_table(found), _anova_table(found)]
        link = correlate([(o.found.accuracy, o.found.win_rate_gap) for o in found])
        title = "Accuracy against win-rate gap"
        tables.append(table("correlations", title, [link], "Over judge × set."))
        findings += list(_findings(found))
        pictures += _pictures(found)
    made, said, drawn = panels(votes, tolerance) if panel else ([], [], [])
    if not tables + made:
        raise JudgeSenseError(
            f"{run_dir}: no judge answered the same items under two templates"
            + (", and no item was answered by three judges" if panel else "")
        )
    return Result(
        STUDY,
        "Robustness and panels on an existing log",
        {
            "log": str(run_dir),
            "judges": sorted({vote.judge for vote in votes}),
            "decisions": len(votes),
            "by": by,
        },
        tables + made,
        findings + said,
        list(_limits(found, skipped, n_repeated)),
        pictures + drawn,
    )


def _limits(
    found: Sequence[LogConfiguration], skipped: Mapping[str, Sequence[str]], n_repeated: int
) -> Iterator[str]:
    yield "the templates are those of the log: they need not be paraphrases"
    if found:
        yield (
            "a configuration uses the templates that the judge answered on at least "
            f"{percent(NEARLY_ALL)} of the items and orders of its most answered one, and only the "
            "items and orders that were decided under all of them"
        )
    else:
        yield "no judge decided two items under two templates: only panels are measured"
    shares: dict[str, list[float]] = {}
    for one in found:
        for name, share in one.fewer.items():
            shares.setdefault(name, []).append(share)
    if shares:
        yield f"templates left out because a judge answered less than {percent(NEARLY_ALL)}: " + (
            ", ".join(
                f"{name} ({span(own, percent)} in {len(own)} configuration{s(len(own))})"
                for name, own in shares.items()
            )
        )
    if found and skipped:
        yield "too few answers for a configuration (two items decided under two templates): " + (
            "; ".join(f"{judge} on {join(list(parts))}" for judge, parts in skipped.items())
        )
    if n_repeated:
        yield (
            f"{n_repeated} answers to repeated prompts are left out: each prompt counts with its "
            "first answer, so noise and wording are not separated (`judgesense report` gives a "
            "run's noise floor)"
        )
    else:
        yield "no prompt is repeated, so noise and wording are not separated"
    yield "intervals treat clusters as independent: the item, or what items share (a question)"


def _configurations(
    votes: Sequence[JudgeVote],
) -> tuple[list[LogConfiguration], dict[str, list[str]]]:
    """The configurations, and by judge the sets without two templates to compare."""
    found: list[LogConfiguration] = []
    skipped: dict[str, list[str]] = {}
    ranked = sorted(votes, key=lambda vote: (vote.part, vote.judge))
    for part, of_part in groupby(ranked, key=lambda vote: vote.part):
        in_part = list(of_part)
        codes = codes_of(in_part)
        for judge, of_judge in groupby(in_part, key=lambda vote: vote.judge):
            one = _configuration(list(of_judge), codes)
            if one is None:
                skipped.setdefault(judge, []).append(part)
            else:
                found.append(one)
    return found, skipped


def _configuration(own: Sequence[JudgeVote], codes: Mapping[str, float]) -> LogConfiguration | None:
    """One judge on one set; None without two items decided under two templates."""
    answers: dict[str, dict[tuple[str, str], JudgeVote]] = {}
    for vote in own:
        answers.setdefault(vote.template, {})[vote.item, vote.order] = vote
    most = max(answers.values(), key=len)
    shares = {name: len(given.keys() & most) / len(most) for name, given in answers.items()}
    full = [name for name, share in shares.items() if share >= NEARLY_ALL]
    asked = {unit for name in full for unit in answers[name]}
    kept = [answers[name] for name in full]
    labels = {
        unit: [given[unit].label if unit in given else None for given in kept] for unit in most
    }
    decided = [most[unit] for unit, given in labels.items() if None not in given]
    if len(full) < 2 or len({vote.item for vote in decided}) < 2:
        return None
    units = [(vote.item, vote.order) for vote in decided]
    scores = np.array([[codes[label] for label in labels[u] if label is not None] for u in units])
    gold = np.array([codes[vote.gold] for vote in decided])
    clusters = [vote.cluster for vote in decided]
    return LogConfiguration(
        judge=own[0].judge,
        part=own[0].part,
        templates=tuple(full),
        fewer={name: share for name, share in shares.items() if name not in full},
        items=tuple(vote.item for vote in decided),
        scores=scores,
        gold=gold,
        scale=is_scale(codes),
        left_out=len(asked) - len(decided),
        found=paraphrase_robustness(scores, gold, item_ids=clusters, n_resamples=RESAMPLES),
        both_orders=_both_orders(own, tuple(codes)),
    )


def _both_orders(votes: Sequence[JudgeVote], labels: tuple[str, ...]) -> float | None:
    """The share of item × template with the same winner in both orders.

    The two options swap names with the order; a third label (a tie) keeps its own.
    """
    one, other = labels if len(labels) == 2 else ("A", "B")
    swapped = {one: other, other: one}
    said = {(v.item, v.template, v.order): v.label for v in votes if v.label is not None}
    same = [
        swapped.get(label, label) == said[item, template, "BA"]
        for (item, template, order), label in said.items()
        if order == "AB" and (item, template, "BA") in said
    ]
    return float(np.mean(same)) if same else None


def _configurations_table(found: Sequence[LogConfiguration]) -> Table:
    rows = [
        {
            "set": one.part, "judge": one.judge, "n_templates": len(one.templates),
            **robustness_figures(one.found), **({} if one.scale else {"sensitivity": None}),
            "same_winner_in_both_orders": one.both_orders, "n_items": len(set(one.items)),
            "n_prompts": len(one.gold), "n_left_out": one.left_out,
            "fewer_items": ", ".join(f"{n} ({percent(x)})" for n, x in one.fewer.items()) or "–",
        }
        for one in found
    ]  # fmt: skip
    return table(
        "configurations",
        "Every judge on every set",
        rows,
        "accuracy: mean over templates, with Wilson's interval over clusters. gap: between the "
        "best and the worst template. consistency: item × order with the same label under every "
        "template. prompts: item × order. left out: item × order without a decided answer under "
        "one of these templates. fewer items: templates left out because the judge answered them "
        f"on less than {percent(NEARLY_ALL)} of the item × order of its most answered one. "
        "Sensitivity is undefined for labels without a scale.",
    )


def _judges_table(found: Sequence[LogConfiguration]) -> Table:
    rows: list[Record] = []
    for judge in dict.fromkeys(one.judge for one in found):
        own = [one for one in found if one.judge == judge]
        away: dict[str, list[float]] = {}
        for one in own:
            for name, value in zip(one.templates, one.found.accuracy_per_paraphrase, strict=True):
                away.setdefault(name, []).append(value - one.found.accuracy)
        often = [name for name, values in away.items() if 2 * len(values) >= len(own)] or [*away]
        means = np.array([np.mean(away[name]) for name in often])
        best, worst = int(chosen(means)), int(chosen(-means))
        link = correlate([(o.found.accuracy, o.found.win_rate_gap) for o in own])
        rows.append(
            {
                "judge": judge,
                **{name: mean(robustness_figures(o.found)[name] for o in own)
                   for name in ("accuracy", "gap", "gap_by_chance", "consistency")},
                "best_template": f"{often[best]} {signed(float(means[best]))}",
                "worst_template": f"{often[worst]} {signed(float(means[worst]))}",
                "majority_accuracy": mean(o.majority_accuracy for o in own),
                "pearson": link["pearson"], "pearson_p": link["pearson_p"], "n_sets": len(own),
            }
        )  # fmt: skip
    rows.sort(key=lambda row: -row["accuracy"])
    return table(
        "judges",
        "The judges",
        rows,
        "Means over sets, each set alike. best and worst template: mean difference from a set's "
        "mean accuracy, of the templates answered on half of the judge's sets or more, or of all "
        "if each set has its own. majority accuracy: accuracy of what most of the templates say. "
        "Pearson's r: of accuracy and gap.",
    )


def _anova_table(found: Sequence[LogConfiguration]) -> Table:
    by: dict[str, Callable[[LogConfiguration], str]] = {
        "judge": lambda one: one.judge,
        "set": lambda one: one.part,
    }
    rows = []
    for factor, key in by.items():
        groups: dict[str, list[float]] = {}
        for one in found:
            groups.setdefault(key(one), []).append(one.found.accuracy)
        rows.append(
            {"factor": factor, "over": "judge × set", **anova_record(list(groups.values()))}
        )
    shares: dict[str, list[float]] = {}
    for one in found:
        for name, value in zip(one.templates, one.found.accuracy_per_paraphrase, strict=True):
            shares.setdefault(name, []).append(value)
    test = anova_record(list(shares.values()))
    rows.append({"factor": "template", "over": "judge × set × template", **test})
    return table("anova", "What explains accuracy: one-way ANOVAs", rows)


def _findings(found: Sequence[LogConfiguration]) -> Iterator[str]:
    yield gap_finding(
        [(one.found.win_rate_gap, one.found.win_rate_gap_chance) for one in found], "templates"
    )
    judges: dict[str, list[LogConfiguration]] = {}
    for one in found:
        judges.setdefault(one.judge, []).append(one)
    means = {j: float(np.mean([o.found.accuracy for o in own])) for j, own in judges.items()}
    ranked = sorted(means, key=means.__getitem__, reverse=True)
    yield "accuracy by judge: " + ", ".join(f"{j} {number(means[j])}" for j in ranked)
    orders = {judge: mean(o.both_orders for o in own) for judge, own in judges.items()}
    if blind := [judge for judge, share in orders.items() if share is not None and share < 0.5]:
        yield f"{join(blind)}: usually another winner when the options are swapped"


def _pictures(found: Sequence[LogConfiguration]) -> list[Picture]:
    cells = [(one.part, one.judge, one.found) for one in found]
    return [
        gap_picture([(judge, each) for _, judge, each in cells], "a judge on a set", "templates"),
        accuracy_picture(cells, "Accuracy of each judge on each set, over templates."),
    ]
