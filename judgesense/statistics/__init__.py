"""Agreement, intervals, robustness, ranking, bias, comparison and variance: numpy and scipy on arrays."""
