"""Robustness and panels measured on an existing log: an import, or any run.

The templates of the log are what is varied. They need not be paraphrases: LLMBar's are prompting
strategies of different style and length.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from judgesense.decisions.view import view
from judgesense.errors import JudgeSenseError
from judgesense.reporting.result import Record, Result
from judgesense.run_folder.folder import read_run
from judgesense.statistics.robustness import paraphrase_robustness
from judgesense.studies.common.figures import Heatmap
from judgesense.studies.common.study import Figure, Study, table
from judgesense.studies.paraphrase_robustness.measures import (
    RESAMPLES,
    correlate,
    gap_finding,
    robustness_figures,
)
from judgesense.studies.paraphrase_robustness.strategies import (
    BEST,
    CONSTANT,
    METHODS,
    SINGLE,
    Ballot,
    aggregate,
    exact,
)
from judgesense.tasks import UNDECIDED, is_scale
from judgesense.text import percent

NEARLY_ALL = 0.9
"""A template is measured if a judge answered it on at least this share of its most answered one."""

LEAST_VOTES = 7
"""Panel sizes are compared on the items with at least this many votes."""

Unit = tuple[str, str]
"""An item in an option order."""


@dataclass(frozen=True)
class Votes:
    """The judges' first answers on one set of items; a row of the ballot is a prompt.

    ``prompts`` are the rows' units and templates; ``asked`` says which rows each judge (column)
    was asked. A vote is NaN where undecided or not asked.
    """

    ballot: Ballot
    prompts: list[tuple[Unit, str]]
    asked: np.ndarray

    def panel(self) -> Ballot | None:
        """The prompts with three votes or more; None without any."""
        kept = np.flatnonzero((~np.isnan(self.ballot.votes[:, 0])).sum(axis=1) >= 3)
        clusters = tuple(self.ballot.clusters[at] for at in kept)
        votes, gold = self.ballot.votes[kept], self.ballot.gold[kept]
        one = replace(self.ballot, clusters=clusters, votes=votes, gold=gold, human=gold)
        return one if len(kept) else None

    def configurations(self) -> Iterator[Record]:
        """A record for every judge that decided two items under two templates."""
        for column, judge in enumerate(self.ballot.judges):
            rows: dict[str, dict[Unit, int]] = {}
            for at in np.flatnonzero(self.asked[:, column]).tolist():
                unit, template = self.prompts[at]
                rows.setdefault(template, {})[unit] = at
            most = max(rows.values(), key=len)
            shares = {name: len(own.keys() & most) / len(most) for name, own in rows.items()}
            kept = [rows[name] for name, share in shares.items() if share >= NEARLY_ALL]
            units = [unit for unit in most if all(unit in own for own in kept)]
            if len(kept) < 2 or not units:
                continue
            scores = self.ballot.votes[[[own[unit] for own in kept] for unit in units], 0, column]
            decided = np.flatnonzero(~np.isnan(scores).any(axis=1)).tolist()
            n_items = len({units[at][0] for at in decided})
            if n_items < 2:
                continue
            first = [most[units[at]] for at in decided]
            found = paraphrase_robustness(
                scores[decided], self.ballot.gold[first],
                item_ids=[self.ballot.clusters[at] for at in first], n_resamples=RESAMPLES,
            )  # fmt: skip
            fewer = (f"{n} ({percent(share)})" for n, share in shares.items() if share < NEARLY_ALL)
            yield {
                "set": self.ballot.name, "judge": judge, "n_templates": len(kept),
                **robustness_figures(found),
                **({} if self.ballot.scale else {"sensitivity": None}), "n_items": n_items,
                "n_prompts": len(decided),
                "n_left_out": len({unit for own in kept for unit in own}) - len(decided),
                "fewer_items": ", ".join(fewer) or "–",
            }  # fmt: skip


Source = tuple[list[Record], list[Ballot]]
"""The configurations, and the prompts of each set that a panel can answer."""


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
    sets = _read(Path(run_dir), by, tolerance)
    rows = [row for votes in sets for row in votes.configurations()]
    ballots = [one for votes in sets if panel and (one := votes.panel()) is not None]
    if not rows and not ballots:
        raise JudgeSenseError(
            f"{run_dir}: no judge answered the same items under two templates"
            + (", and no item was answered by three judges" if panel else "")
        )
    judges = sorted({judge for votes in sets for judge in votes.ballot.judges})
    settings = {"log": str(run_dir), "judges": judges, "by": by, "tolerance": tolerance}
    return LOG_STUDY.result((rows, ballots), settings)


def _read(run_dir: Path, by: str, tolerance: float) -> list[Votes]:
    seen = view(read_run(run_dir).log)
    names = seen.names
    sets: dict[str, dict[tuple[Unit, str], dict[str, Any]]] = {}
    for stream in seen.judged:
        own, task, scoring = stream.answers(), stream.task.name, stream.scoring
        more = [task] if len(seen.log.tasks) > 1 and by == "set" else []
        more += [scoring] if len(seen.log.scorings) > 1 else []
        for item, order, template, label, gold, cluster in zip(
            own.item, own.order, own.template, own.label, own.gold, own.cluster, strict=True
        ):
            if not gold:
                raise JudgeSenseError(
                    f"item {item!r} has no gold label: accuracy needs one for every item"
                )
            name = ", ".join([task if by == "task" else item.rpartition("/")[0], *more])
            prompt = sets.setdefault(name, {}).setdefault(
                ((item, order), template), {"gold": gold, "cluster": str(cluster), "labels": {}}
            )
            prompt["labels"][names[stream.judge]] = label
    return [_votes(name, prompts, tolerance) for name, prompts in sorted(sets.items())]


def _votes(name: str, prompts: dict[Any, dict[str, Any]], tolerance: float) -> Votes:
    judges = tuple(sorted({judge for each in prompts.values() for judge in each["labels"]}))
    given = [[each["labels"].get(judge) for judge in judges] for each in prompts.values()]
    golds = [each["gold"] for each in prompts.values()]
    labels = sorted({*golds, *(x for row in given for x in row if x is not None)} - set(UNDECIDED))
    scale = is_scale(labels)
    codes = {label: float(label) if scale else float(at) for at, label in enumerate(labels)}
    votes = np.array([[[codes.get(label, np.nan) for label in row]] for row in given])
    gold = np.array([codes[label] for label in golds])
    clusters = tuple(each["cluster"] for each in prompts.values())
    free = ((0.0, None),) * len(judges)
    ballot = Ballot(name, "", judges, (), clusters, votes, gold, gold, free, tolerance, scale)
    return Votes(ballot, list(prompts), np.array([[x is not None for x in row] for row in given]))


@table(
    "configurations",
    "Every judge on every set",
    "accuracy: mean over templates, with Wilson's interval over clusters. gap: between the best "
    "and the worst template. consistency: item × order with the same label under every template. "
    "prompts: item × order. left out: item × order without a decided answer under one of these "
    "templates. fewer items: templates left out because the judge answered them on less than "
    f"{percent(NEARLY_ALL)} of the item × order of its most answered one. A judge that did not "
    "decide two items under two templates has no row.",
)
def configurations(source: Source) -> list[Record]:
    """Every judge on every set."""
    return source[0]


@table(
    "correlations", "Accuracy against win-rate gap", "Over judge × set.",
    pearson="Pearson's r", pearson_p="p of r", spearman="Spearman's ρ", spearman_p="p of ρ", n="n",
)  # fmt: skip
def correlations(source: Source) -> list[Record]:
    """Accuracy against gap."""
    points: Any = [(row["accuracy"], row["gap"]) for row in source[0]]
    return [correlate(points)] if points else []


@table(
    "panels",
    "Panels of the judges against the gold labels",
    "On the prompts that at least three judges answered. A panel uses the votes it has, a judge "
    "the prompts that it answered (answered: their share). mean single judge: the mean of the "
    "judges' accuracies. gain: over the mean single judge, each judge compared on the prompts that "
    "it answered. For labels without a scale, a tie of k counts 1/k if the right one is among "
    "them. best judge: among the judges that answered at least half, if any; each prompt is scored "
    "by the judge that others choose (with ten clusters or more). within τ: at most the tolerance "
    "from the gold label. Intervals are t intervals over clusters.",
    near="within τ", n="n",
)  # fmt: skip
def panels(source: Source) -> Iterator[Record]:
    """Every strategy on every set."""
    for ballot in source[1]:
        given = ~np.isnan(ballot.votes[:, 0])
        answered = dict(zip(ballot.judges, given.mean(axis=0).tolist(), strict=True))
        wider = {one.strategy: one.mean("near") for one in replace(ballot, tolerance=1).outcomes()}
        for one in ballot.outcomes():
            names = {SINGLE: "mean single judge", BEST: f"best judge: {one.judge}",
                     CONSTANT: "constant label"}  # fmt: skip
            alone = one.strategy == SINGLE
            accuracy, low, high = one.interval(one.exact)
            gain, gain_low, gain_high = (None,) * 3 if alone else one.interval(one.gain, -1.0)
            yield {
                "set": ballot.name, "strategy": names.get(one.strategy, one.strategy),
                "n_judges": int(one.calls), "accuracy": accuracy, "ci_low": low, "ci_high": high,
                "gain": gain, "gain_low": gain_low, "gain_high": gain_high,
                "near": one.mean("near") if ballot.scale else None,
                "within_1": wider[one.strategy] if ballot.scale else None,
                "answered": float(given.mean()) if alone else answered.get(one.judge, 1.0),
                "n": one.n,
            }  # fmt: skip


@table(
    "sizes",
    "Accuracy by the size of a panel",
    "Expected exact accuracy of this many judges drawn at random from those who answered, over all "
    f"draws, on the prompts with at least {LEAST_VOTES} votes; sets whose labels are numbers.",
    n="n",
)
def sizes(source: Source) -> Iterator[Record]:
    """Expected accuracy by panel size, over every choice of judges among those who answered."""
    for ballot in source[1]:
        enough = (~np.isnan(ballot.votes[:, 0])).sum(axis=1) >= LEAST_VOTES
        for size in range(1, LEAST_VOTES + 1) if ballot.scale and enough.any() else ():
            shares = []
            for votes, gold in zip(ballot.votes[enough, 0], ballot.gold[enough], strict=True):
                drawn = np.array(list(combinations(votes[~np.isnan(votes)], size)))
                truth = np.full(len(drawn), gold)
                shares.append([exact(aggregate(drawn, how), truth).mean() for how in METHODS])
            means = dict(zip(METHODS, np.mean(shares, axis=0).tolist(), strict=True))
            yield {"set": ballot.name, "n_judges": size, **means, "n": int(enough.sum())}


LOG_STUDY = Study(
    "paraphrase-robustness",
    "Robustness and panels on an existing log",
    tables=[configurations, correlations, panels, sizes],
    figures=[
        Figure(
            "accuracy_heatmap",
            "Accuracy of each judge on each set, over templates.",
            "configurations",
            Heatmap(row="set", column="judge", value="accuracy", label="accuracy"),
        )
    ],
    findings=[lambda source, _: [gap_finding(source[0], "templates")] if source[0] else []],
    limits=[
        lambda *_: [
            "the templates are those of the log: they need not be paraphrases",
            "a prompt counts with its first answer, so noise and wording are not separated",
        ]
    ],
)
