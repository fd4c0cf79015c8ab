"""Which outputs are picked for labels, and scales, on small arrays."""

from dataclasses import replace

import numpy as np

from judgesense.comparison.outputs import Outputs, pick, uncertainty

NAN = float("nan")


def outputs_with(verdicts, margins=None, system=None):
    """Outputs with one verdict each, of one system or of x and y."""
    n = len(verdicts)
    return Outputs(
        items=np.arange(n).astype(object),
        system=np.zeros(n, int) if system is None else np.asarray(system),
        systems=("x", "y")[: 1 + (system is not None)],
        cluster=np.arange(n),
        predictions=np.asarray(verdicts, float).reshape(-1, 1),
        wordings=("",),
        margin=np.full(n, NAN) if margins is None else np.asarray(margins, float),
        gold=np.full(n, NAN),
        flipped=np.zeros(n, bool),
        rows=np.arange(n),
        is_comparison=False,
    )


def test_picked_outputs_weigh_what_they_stand_for():
    outputs, labels = outputs_with([0] * 40 + [1] * 60), np.full(100, NAN)
    labels[[0, 1, 2, 3, 4, 40, 41, 42, 43, 44]] = [0, 0, 0, 1, 0, 1, 1, 1, 1, 0]
    picked, _, weights, n_strata = pick(outputs, labels, [0], 10)
    assert n_strata == 2
    assert np.isnan(labels[picked]).all()
    assert len(set(picked)) == 10
    sizes, taken = (40, 60), np.array([5, 5])
    added = np.array([sum(picked < 40), sum(picked >= 40)])
    for stratum in (0, 1):
        assert set(weights[(picked >= 40) == stratum]) == {
            sizes[stratum] / (taken + added)[stratum]
        }


def test_doubtful_outputs_are_picked_more_often():
    # A margin of 0.1 is 55% against 45%, one of 0.995 is sure.
    outputs = outputs_with([0] * 50 + [1] * 150, [0.1] * 50 + [0.995] * 150)
    picked, *_ = pick(outputs, np.full(200, NAN), [0], 60)
    assert sum(picked < 50) > 30
    assert sum(picked >= 50) > 5
    # Wordings that differ are a sign of doubt as well.
    outputs = replace(
        outputs_with([0] * 4), predictions=np.array([[0, 0], [1, 1], [0, 1], [NAN, NAN]])
    )
    assert uncertainty(outputs).tolist() == [0, 0, 1, 1]


def test_a_small_system_gets_as_many_labels_as_a_large_one():
    outputs = outputs_with([1] * 220, system=[0] * 20 + [1] * 200)
    picked, *_ = pick(outputs, np.full(220, NAN), [0, 1], 20)
    assert sum(picked < 20) == 10
