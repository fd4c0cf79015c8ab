"""How often each of the compared models wins, by a judge's verdicts and by people's labels."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from judgesense.log.answers import Answers
from judgesense.statistics.arrays import Bools, Codes, Floats
from judgesense.statistics.intervals import wilson_cluster
from judgesense.text import brackets, percent, plural_s


@dataclass(frozen=True)
class ModelWins:
    """The share of its comparisons that a model wins; a tie is half a win.

    An item counts once, in however many orders and wordings it was judged. The figures of people
    are None without labels.
    """

    model: str
    n_items: int
    wins: float
    ci_low: float | None
    ci_high: float | None
    n_labelled: int
    people: float | None
    people_ci_low: float | None
    people_ci_high: float | None

    @property
    def text(self) -> str:
        """The figures in a sentence."""
        ends = brackets(self.ci_low, self.ci_high, percent)
        n = self.n_items
        text = f"{self.model} wins {percent(self.wins)} {ends} of its {n} comparison{plural_s(n)}"
        text += " by the judge's verdicts"
        if self.people is None:
            return text
        ends = brackets(self.people_ci_low, self.people_ci_high, percent)
        return f"{text}, and {percent(self.people)} {ends} of {self.n_labelled} by people's labels"


def model_wins(answers: Answers, mislabelled: Collection[str] = ()) -> tuple[ModelWins, ...]:
    """The wins of each model, the best first; nothing where no pair of models is named.

    ``system_id`` names the pair, ``A|B`` in the order AB. The templates ``mislabelled`` are left
    out.
    """
    log = answers.log
    used = ~np.isin(log.templates, list(mislabelled))[log.template[answers.rows]]
    rows, verdict = answers.rows[used], answers.decision[used]
    names = log.table["system_id"].take(pa.array(rows)).to_pylist()
    if not answers.task.comparative or not all(name and name.count("|") == 1 for name in names):
        return ()
    is_swapped = np.array([order == "BA" for order in log.orders])[log.order[rows]]
    items, first, at = np.unique(log.item[rows], return_index=True, return_inverse=True)
    clusters = log.cluster[rows][first]
    pairs = [names[place].split("|") for place in first]
    shares = [
        _means(_first_wins(answers, codes, is_swapped), at, len(items))
        for codes in (verdict, log.gold[rows])
    ]
    found = []
    for model in dict.fromkeys(name for pair in pairs for name in pair):
        figures: list[tuple[int, float | None, float | None, float | None]] = []
        for of_items in shares:
            own = [
                (share if pair[0] == model else 1 - share, cluster)
                for pair, share, cluster in zip(pairs, of_items, clusters, strict=True)
                if model in pair and pair[0] != pair[1] and not np.isnan(share)
            ]
            if not own:
                figures.append((0, None, None, None))
                continue
            values = np.array([share for share, _ in own])
            ends = wilson_cluster(values, np.array([cluster for _, cluster in own]))
            figures.append((len(own), float(values.mean()), ends.low, ends.high))
        (n, wins, low, high), of_people = figures
        if wins is not None:
            found.append(ModelWins(model, n, wins, low, high, *of_people))
    return tuple(sorted(found, key=lambda row: -row.wins))


def _first_wins(answers: Answers, codes: Codes, is_swapped: Bools) -> Floats:
    """1 where the first of the pair wins, 0 where the other does, 0.5 for a tie, NaN for none."""
    log, labels = answers.log, answers.task.labels
    words = np.append(log.labels, "")[codes]
    wins = np.where(words == labels[0], 1.0, np.where(words == labels[1], 0.0, np.nan))
    wins = np.where(np.isin(words, labels[2:]), 0.5, wins)
    found: Floats = np.where(is_swapped, 1 - wins, wins)
    return found


def _means(values: Floats, at: Codes, n: int) -> Floats:
    known = ~np.isnan(values)
    with np.errstate(invalid="ignore"):
        means: Floats = np.bincount(at[known], values[known], n) / np.bincount(
            at[known], minlength=n
        )
    return means
