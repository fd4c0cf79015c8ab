"""The statistics of a judge on plain arrays: numpy and scipy, nothing of the project.

Conventions of all functions: `clusters` has one id per row, strings or integers; rows of one
cluster are not independent, and None makes every row a cluster of its own. Intervals are 95% ones,
or at a `confidence_level` within (0, 1). `n_resamples` is a number of draws, `seed` one for
`numpy.random.default_rng`. A figure that is undefined is None. The functions that users call (the
metrics) check what they are given; those behind them do not check it again.
"""
