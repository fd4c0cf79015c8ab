"""Scores for ``study prompt-ranking`` from a run.

    python docs/run_scores.py RUN OUT.csv [PREFIX]

A score is the share of an item's option orders in which the verdict is right, under a wording or
an equivalent variant. Wordings that lack an item or an order are left out. With PREFIX, only
items whose ids begin with it count.
"""

from __future__ import annotations

import csv
import sys
from collections import defaultdict
from pathlib import Path

from judgesense.log.folder import read_run
from judgesense.log.schema import EQUIVALENT


def main() -> None:
    """Write the table."""
    right: dict[tuple[str, str], dict[str, list[bool]]] = defaultdict(lambda: defaultdict(list))
    prefix = sys.argv[3] if len(sys.argv) > 3 else ""
    for row in read_run(Path(sys.argv[1])).log.to_pylist():
        if not row["item_id"].startswith(prefix):
            continue
        if row["variant_class"] in (None, EQUIVALENT) and row["repeat"] == 0 and row["gold"]:
            wording = "+".join(filter(None, (row["template_id"], row["variant"])))
            model = row["judge"].partition("@")[0]
            right[model, wording][row["item_id"]].append(row["decision"] == row["gold"])
    most = max(sum(map(len, items.values())) for items in right.values())
    with open(sys.argv[2], "w", newline="") as sink:
        table = csv.writer(sink)
        table.writerow(["model", "prompt", "item", "score"])
        for (model, wording), items in right.items():
            if sum(map(len, items.values())) == most:
                table.writerows(
                    [model, wording, item, sum(hits) / len(hits)] for item, hits in items.items()
                )


if __name__ == "__main__":
    main()
