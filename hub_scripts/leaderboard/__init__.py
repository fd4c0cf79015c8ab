"""The leaderboard: a Gradio app, run as a Space on the Hub or by ``judgesense leaderboard``.

`sources` finds runs and `board` holds them, `ranking` ranks them, `pages` has one module per page
and `templates` their HTML, `site` combines them. Files from other people (a results dataset, an
upload) are checked by `report_shape` and `unpack`, and measured by `worker` in its own process.
"""

from __future__ import annotations

from pathlib import Path

FILES = ("README.md", "app.py", "requirements.txt")

RESULTS_VARIABLE = "JUDGESENSE_RESULTS"
"""Environment variable of the Space: the results dataset (ORG/NAME) or folder to show."""


def space_files() -> dict[str, bytes]:
    """The Space's own files by their path in it.

    ``requirements.txt`` has one line for judgesense. Publishing adds the wheel of the core to these
    files and its URL to that line, as for the Spaces of the metrics.
    """
    folder = Path(__file__).parent
    return {name: (folder / name).read_bytes() for name in FILES}
