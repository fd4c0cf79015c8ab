"""What the variants of a prompt do to a judge's answers."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from types import MappingProxyType

import numpy as np

from judgesense.log.answers import Answers, agreement, distinct
from judgesense.log.rows import Log
from judgesense.log.schema import (
    CONTRAST,
    EQUIVALENT,
    INTERVENTION,
    REWORDING,
    VARIANT_CLASSES,
    WITHOUT,
)
from judgesense.measure.agreement import same_polarity
from judgesense.measure.figures import VariantFigures
from judgesense.measure.rewording import answered
from judgesense.measure.thresholds import SIGNIFICANT
from judgesense.statistics.agreement import Agreement
from judgesense.statistics.arrays import Bools, Codes
from judgesense.statistics.comparison import paired_gain
from judgesense.statistics.intervals import mean_t_cluster, share_fields
from judgesense.statistics.rates import rate_ratio
from judgesense.tasks import ERROR
from judgesense.text import sentences

_INTERVENTION = VARIANT_CLASSES.index(INTERVENTION)


def variants(
    answers: Answers,
    mislabelled: Collection[str] = (),
    wordings: Mapping[str, str] = MappingProxyType({}),
) -> tuple[VariantFigures, ...]:
    """The figures of each variant of some answers; nothing if they are under rewordings alone.

    The first row is that of the rewordings, the second pools all equivalent variants with them.
    ``mislabelled`` are wordings to leave out of the rewordings, ``wordings`` the texts by template.
    """
    if not answers.variants:
        return ()
    log = answers.log
    reworded_code = log.variants.index(REWORDING) if REWORDING in log.variants else -1
    plain = answers.rows[log.variant[answers.rows] == reworded_code]
    pairs = same_polarity(answers, mislabelled) & answers.decided()
    reworded = pairs.copy()
    if answers.row_a is not None and answers.row_b is not None:
        # Without the pairs that have a variant on either side.
        is_plain = np.append(log.variant == reworded_code, True)
        reworded &= is_plain[answers.row_a] & is_plain[answers.row_b]
    figures = [
        _with_jss(_figures(log, REWORDING, plain), answers.agreement("mapped", reworded)),
        _with_jss(_figures(log, None, answers.rows), answers.agreement("mapped", pairs)),
    ]
    classes = log.variant_class
    n_moved = sum(classes[each[0][0]] == _INTERVENTION for each in answers.variants.values())
    by_class = sorted(answers.variants, key=lambda name: classes[answers.variants[name][0][0]])
    for name in by_class:
        rows, base, beside = answers.variants[name]
        row = _figures(log, name, rows)
        if row.variant_class == EQUIVALENT:
            both = ~(log.undecided[log.decision[base]] | log.undecided[log.decision[beside]])
            one, two = base[both], beside[both]
            agreed = agreement(log, log.decision[one], log.decision[two], log.cluster[one])
            figures.append(_with_jss(row, agreed))
        elif row.variant_class == CONTRAST:
            figures.append(_followed(row, answers, base, beside, reworded))
        else:
            row = _shifted(row, answers, base, beside)
            row = _gained(row, answers, base, beside, 1 - SIGNIFICANT / max(n_moved, 1))
            text = wordings.get(log.templates[log.base[base[0]]], "") if len(base) else ""
            figures.append(replace(row, left_out=_left_out(name, text)))
    return tuple(figures)


def _figures(log: Log, name: str | None, rows: Codes) -> VariantFigures:
    """What every variant has; an error is no answer, so it is not unreadable."""
    kinds = log.variant_class[rows]
    answered_rows = rows[log.labels[log.raw[rows]] != ERROR]
    unread = log.undecided[log.raw[answered_rows]]
    return VariantFigures(
        variant=name,
        variant_class=VARIANT_CLASSES[int(kinds[0])] if len(kinds) else EQUIVALENT,
        n_prompts=len(rows),
        n_items=distinct(log.item[rows]),
        **share_fields("unreadable", unread, log.cluster[answered_rows]),
    )


def _with_jss(row: VariantFigures, agreed: Agreement) -> VariantFigures:
    return replace(
        row,
        jss=agreed.jss,
        ci_low=agreed.ci_low,
        ci_high=agreed.ci_high,
        n_pairs=agreed.n_pairs,
    )


def _followed(
    row: VariantFigures, answers: Answers, base: Codes, beside: Codes, reworded: Bools
) -> VariantFigures:
    """How often the answer follows a contrast."""
    log = answers.log
    base, beside = answered(answers, base, beside)
    if not len(base):
        return row
    follows = log.raw[base] != log.raw[beside]
    row = replace(row, **share_fields("follows", follows, log.cluster[base]), n_pairs=len(base))
    if not reworded.any():
        return row
    moves = answers.mapped_a[reworded] != answers.mapped_b[reworded]
    ratio = rate_ratio(follows, log.cluster[base], moves, answers.clusters[reworded])
    return replace(row, ratio=ratio.ratio, ratio_ci_low=ratio.low, ratio_ci_high=ratio.high)


def _gained(
    row: VariantFigures, answers: Answers, base: Codes, beside: Codes, level: float
) -> VariantFigures:
    """How much oftener the verdict is the label; without a verdict it is not."""
    log = answers.log
    base, beside = answered(answers, base, beside)
    known = log.gold[base] >= 0
    base, beside = base[known], beside[known]
    if not len(base):
        return row
    before, after = (log.decision[rows] == log.gold[rows] for rows in (base, beside))
    gain = paired_gain(before, after, log.cluster[base], level)
    return replace(row, gain=gain.gain, gain_ci_low=gain.ci_low, gain_ci_high=gain.ci_high)


def _left_out(name: str, text: str) -> str | None:
    """The sentence that a variant leaves out of a wording."""
    n = name.removeprefix(WITHOUT)
    parts = sentences(text)
    if n == name or not 0 < int(n) <= len(parts):
        return None
    return parts[int(n) - 1].strip()


def _shifted(row: VariantFigures, answers: Answers, base: Codes, beside: Codes) -> VariantFigures:
    """What an intervention does; the mean change of the level on a scale has a t interval."""
    log, labels = answers.log, answers.task.labels
    place = log.codes_of(labels)
    one, two = place[log.decision[base]], place[log.decision[beside]]
    both = (one >= 0) & (two >= 0)
    one, two, clusters = one[both], two[both], log.cluster[base[both]]
    if not len(one):
        return replace(row, net_shift={})
    rate, low, high = share_fields("shift", one != two, clusters).values()
    before, after = (np.bincount(codes, minlength=len(labels)) / len(one) for codes in (one, two))
    row = replace(
        row,
        n_pairs=len(one),
        shift_rate=rate,
        shift_ci_low=low,
        shift_ci_high=high,
        net_shift=dict(zip(labels, (after - before).tolist(), strict=True)),
    )
    if not answers.task.ordinal:
        return row
    change = (two - one).astype(float)
    ends = mean_t_cluster(change, clusters)
    return replace(
        row,
        score_shift=float(change.mean()),
        score_shift_ci_low=ends.low,
        score_shift_ci_high=ends.high,
    )
