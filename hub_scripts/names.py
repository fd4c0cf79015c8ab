"""The names of the project on the Hub."""

from __future__ import annotations

ORG = "judgesense"
DATASET = f"{ORG}/judgesense"
RESULTS = f"{ORG}/results"
LEADERBOARD = f"{ORG}/leaderboard"

REPOSITORY = "https://github.com/judgesense/judgesense"
PAPER = "https://arxiv.org/abs/2604.23478"
HUB_SITE = "https://huggingface.co"
