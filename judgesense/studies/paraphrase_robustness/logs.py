"""Panels of the judges of an existing log: an import, or any run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from judgesense.errors import JudgeSenseError
from judgesense.log.folder import read_run
from judgesense.log.view import view
from judgesense.reporting.study_result import Record, Result
from judgesense.studies.common.figures import Points
from judgesense.studies.common.study import REANALYSIS, Figure, Study, table
from judgesense.studies.paraphrase_robustness.strategies import BEST, CONSTANT, SINGLE, Ballot
from judgesense.tasks import UNDECIDED, is_scale

LEAST_VOTES = 3
"""A panel is measured on the prompts with at least this many votes."""


def measure_log(run_dir: str | Path, *, by: str = "task", tolerance: float = 0.5) -> Result:
    """Panels of the judges of a log against its gold labels.

    Items are grouped ``by`` task, or by set: the item ids' part before the last slash. Raises
    JudgeSenseError for no log, an item without a gold label, and no prompt that three judges
    decided.
    """
    run = view(read_run(Path(run_dir)).log)
    sets: dict[str, dict[Any, dict[str, Any]]] = {}
    for answers in run.judged:
        rows, task, scoring = answers.as_rows(), answers.task.name, answers.scoring
        suffixes = [task] if len(run.log.tasks) > 1 and by == "set" else []
        suffixes += [scoring] if len(run.log.scorings) > 1 else []
        for item, order, template, label, gold, cluster in zip(
            rows.item, rows.order, rows.template, rows.label, rows.gold, rows.cluster, strict=True
        ):
            if not gold:
                raise JudgeSenseError(
                    f"item {item!r} has no gold label, but accuracy needs one for every item"
                )
            name = ", ".join([task if by == "task" else item.rpartition("/")[0], *suffixes])
            prompt = sets.setdefault(name, {}).setdefault(
                (item, order, template), {"gold": gold, "cluster": str(cluster), "labels": {}}
            )
            prompt["labels"][run.names[answers.judge]] = label
    ballots = [_ballot(name, list(sets[name].values()), tolerance) for name in sorted(sets)]
    ballots = [ballot for ballot in ballots if len(ballot.votes)]
    if not ballots:
        raise JudgeSenseError(f"{run_dir}: no prompt was decided by {LEAST_VOTES} judges")
    judges = sorted({judge for ballot in ballots for judge in ballot.judges})
    settings = {
        **REANALYSIS,
        "log": str(run_dir),
        "judges": judges,
        "by": by,
        "tolerance": tolerance,
    }
    return LOG_STUDY.result(ballots, settings)


def _ballot(name: str, prompts: Sequence[Mapping[str, Any]], tolerance: float) -> Ballot:
    """The prompts of a set with enough votes, a row for each."""
    judges = tuple(sorted({judge for each in prompts for judge in each["labels"]}))
    labels = {label for each in prompts for label in (each["gold"], *each["labels"].values())}
    names = sorted(labels - set(UNDECIDED))
    scale = is_scale(names)
    codes = {label: float(label) if scale else float(at) for at, label in enumerate(names)}
    votes = np.array(
        [[[codes.get(each["labels"].get(judge), np.nan) for judge in judges]] for each in prompts]
    )
    rows = np.flatnonzero((~np.isnan(votes[:, 0])).sum(axis=1) >= LEAST_VOTES).tolist()
    gold = np.array([codes[prompts[at]["gold"]] for at in rows])
    clusters = tuple(prompts[at]["cluster"] for at in rows)
    costs = np.zeros((len(judges), 2))
    return Ballot(name, "", judges, (), clusters, votes[rows], gold, gold, costs, tolerance, scale)


@table(
    "panels",
    "Panels of the judges against the gold labels",
    "On the prompts that at least three judges answered. A panel uses the votes it has; a judge "
    "is scored on the prompts that it answered (answered: their share). mean single judge: the "
    "mean of the judges' accuracies. gain: over the mean single judge, each judge compared on the "
    "prompts that it answered. For labels without a scale, a tie of k labels counts 1/k if one is "
    "right. best judge: among the judges that answered at least half, if any; with ten clusters "
    "or more, other prompts choose the judge that scores a prompt. within τ: at most the "
    "tolerance from the gold label. Intervals are t intervals over clusters.",
    near="within τ",
    n="n",
)
def panels(ballots: Sequence[Ballot]) -> Iterator[Record]:
    """Every strategy on every set."""
    for ballot in ballots:
        has_vote = ~np.isnan(ballot.votes[:, 0])
        shares = dict(zip(ballot.judges, has_vote.mean(axis=0).tolist(), strict=True))
        wider = replace(ballot, tolerance=1)
        near_1 = {outcome.strategy: outcome.mean("near") for outcome in wider.outcomes()}
        for outcome in ballot.outcomes():
            names = {
                SINGLE: "mean single judge",
                BEST: f"best judge: {outcome.judge}",
                CONSTANT: "constant label",
            }
            is_single = outcome.strategy == SINGLE
            undefined = [*(("gain", "gain_low", "gain_high") if is_single else ())]
            undefined += [] if ballot.scale else ["near"]
            yield {
                "set": ballot.name,
                "strategy": names.get(outcome.strategy, outcome.strategy),
                "n_judges": int(outcome.calls),
                **outcome.figures(),
                **dict.fromkeys(undefined),
                "within_1": near_1[outcome.strategy] if ballot.scale else None,
                "answered": float(has_vote.mean()) if is_single else shares.get(outcome.judge, 1.0),
                "n": outcome.n,
            }


LOG_STUDY = Study(
    "paraphrase-robustness",
    "Panels on an existing log",
    tables=[panels],
    figures=[
        Figure(
            "gains",
            "Gain in exact accuracy over the mean single judge, with 95% intervals.",
            lambda _, results: (row for row in results["panels"].rows if row["gain"] is not None),
            Points(
                group="set",
                name="strategy",
                values={"": ("gain", "gain_low", "gain_high")},
                xlabel="gain in accuracy",
                limits=(-0.2, 0.2),
            ),
        )
    ],
    limits=[lambda *_: ["only the first answer to a prompt counts, so noise is not measured"]],
)
