"""The list ``variants`` of a report."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np

from judgesense.log.answers import Answers, distinct
from judgesense.log.rows import Log
from judgesense.log.schema import CONTRAST, EQUIVALENT, REWORDING, VARIANT_CLASSES
from judgesense.measure.rewording import answered, same_polarity
from judgesense.statistics.arrays import Bools, Codes
from judgesense.statistics.intervals import mean_t_cluster, share_fields
from judgesense.statistics.rates import rate_ratio
from judgesense.tasks import ERROR

KEYS = (
    "variant",
    "variant_class",
    "n_prompts",
    "n_items",
    "unreadable",
    "unreadable_ci_low",
    "unreadable_ci_high",
    "jss",
    "ci_low",
    "ci_high",
    "follows",
    "follows_ci_low",
    "follows_ci_high",
    "ratio",
    "ratio_ci_low",
    "ratio_ci_high",
    "shift_rate",
    "shift_ci_low",
    "shift_ci_high",
    "net_shift",
    "score_shift",
    "score_shift_ci_low",
    "score_shift_ci_high",
    "n_pairs",
)
"""Keys of a row; those of another class are None.

``jss`` is the agreement of an equivalent variant with the base wording, ``follows`` how often the
answer follows a contrast and ``ratio`` that rate over the rate of rewording, ``shift_rate`` to
``score_shift`` what an intervention does. ``unreadable`` is the share of prompts that were answered
without a verdict.
"""


def variants(answers: Answers, mislabelled: Collection[str] = ()) -> list[dict[str, Any]]:
    """The figures of each variant of some answers; nothing if they are under rewordings alone.

    The first row is that of the rewordings; ``variant`` None pools all equivalent variants with
    them. ``mislabelled`` are wordings to leave out of the rewordings.
    """
    if not answers.variants:
        return []
    log = answers.log
    reworded_code = log.variants.index(REWORDING) if REWORDING in log.variants else -1
    plain = answers.rows[log.variant[answers.rows] == reworded_code]
    pairs = same_polarity(answers, mislabelled) & answers.decided()
    reworded = pairs.copy()
    if answers.row_a is not None and answers.row_b is not None:
        # Without the pairs that have a variant on either side.
        is_plain = np.append(log.variant == reworded_code, True)
        reworded &= is_plain[answers.row_a] & is_plain[answers.row_b]
    same, clusters = answers.mapped_a == answers.mapped_b, answers.pairs.cluster
    found = [
        {**_row(log, REWORDING, plain), **_jss(same[reworded], clusters[reworded])},
        {**_row(log, None, answers.rows), **_jss(same[pairs], clusters[pairs])},
    ]
    classes = log.variant_class
    by_class = sorted(answers.variants, key=lambda name: classes[answers.variants[name][0][0]])
    for name in by_class:
        rows, base, beside = answers.variants[name]
        row = _row(log, name, rows)
        if row["variant_class"] == EQUIVALENT:
            both = ~(log.undecided[log.decision[base]] | log.undecided[log.decision[beside]])
            one, two = base[both], beside[both]
            kept = log.decision[one] == log.decision[two]
            found.append({**row, **_jss(kept, log.cluster[one])})
        elif row["variant_class"] == CONTRAST:
            found.append({**row, **_followed(answers, base, beside, reworded)})
        else:
            found.append({**row, **_shifted(answers, base, beside)})
    return found


def _row(log: Log, name: str | None, rows: Codes) -> dict[str, Any]:
    """A row with what every variant has; an error is no answer, so it is not unreadable."""
    kinds = log.variant_class[rows]
    asked = rows[log.labels[log.raw[rows]] != ERROR]
    unread = log.undecided[log.raw[asked]]
    return {
        **dict.fromkeys(KEYS),
        "variant": name,
        "variant_class": VARIANT_CLASSES[int(kinds[0])] if len(kinds) else EQUIVALENT,
        "n_prompts": len(rows),
        "n_items": distinct(log.item[rows]),
        **share_fields("unreadable", unread, log.cluster[asked]),
        "n_pairs": 0,
    }


def _jss(same: Bools, clusters: Codes) -> dict[str, Any]:
    jss, low, high = share_fields("jss", same, clusters).values()
    return {"jss": jss, "ci_low": low, "ci_high": high, "n_pairs": len(same)}


def _followed(answers: Answers, base: Codes, beside: Codes, reworded: Bools) -> dict[str, Any]:
    log = answers.log
    base, beside = answered(answers, base, beside)
    if not len(base):
        return {}
    follows = log.raw[base] != log.raw[beside]
    figures = {**share_fields("follows", follows, log.cluster[base]), "n_pairs": len(base)}
    if reworded.any():
        moves = answers.mapped_a[reworded] != answers.mapped_b[reworded]
        ratio = rate_ratio(follows, log.cluster[base], moves, answers.clusters[reworded])
        figures |= {"ratio": ratio.ratio, "ratio_ci_low": ratio.low, "ratio_ci_high": ratio.high}
    return figures


def _shifted(answers: Answers, base: Codes, beside: Codes) -> dict[str, Any]:
    """What an intervention does; the mean change of the level on a scale has a t interval."""
    log, labels = answers.log, answers.task.labels
    place = log.codes_of(labels)
    one, two = place[log.decision[base]], place[log.decision[beside]]
    both = (one >= 0) & (two >= 0)
    one, two, clusters = one[both], two[both], log.cluster[base[both]]
    if not len(one):
        return {"net_shift": {}}
    found: dict[str, Any] = {"n_pairs": len(one)}
    moved, low, high = share_fields("shift", one != two, clusters).values()
    found |= {"shift_rate": moved, "shift_ci_low": low, "shift_ci_high": high}
    before, after = (np.bincount(codes, minlength=len(labels)) / len(one) for codes in (one, two))
    found["net_shift"] = dict(zip(labels, (after - before).tolist(), strict=True))
    if answers.task.ordinal:
        change = (two - one).astype(float)
        found["score_shift"] = float(change.mean())
        found |= mean_t_cluster(change, clusters).fields("score_shift")
    return found
