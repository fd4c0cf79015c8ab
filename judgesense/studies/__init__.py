"""Protocols: declare a grid, judge it, measure it, tabulate it."""
