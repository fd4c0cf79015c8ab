"""The names of the project on the Hub."""

from __future__ import annotations

ORG = "judgesense"
DATASET = f"{ORG}/judgesense"
RESULTS = f"{ORG}/results"
LEADERBOARD = f"{ORG}/leaderboard"
