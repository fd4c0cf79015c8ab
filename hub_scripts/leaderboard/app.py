"""The leaderboard's Space: shows the dataset in JUDGESENSE_RESULTS, or the project's results."""

import os

from hub_scripts.leaderboard import RESULTS_VARIABLE
from hub_scripts.leaderboard.site import build, launch
from hub_scripts.leaderboard.sources import open_results
from hub_scripts.names import RESULTS

demo = build(open_results(os.environ.get(RESULTS_VARIABLE, RESULTS), or_embedded=True))

if __name__ == "__main__":
    launch(demo)
