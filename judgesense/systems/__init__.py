"""Decisions about systems: their scores and differences, corrected by human labels.

Also what an update of the judge moves, and whether the judge still behaves as it did.
"""
