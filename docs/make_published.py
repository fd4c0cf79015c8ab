"""Write ``docs/results/published-logs.md``: ``python docs/make_published.py LOGS``.

LOGS holds the folders ``llmbar`` and ``rag_eval_9judges``. Both are imported and measured as any
run is.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from page_tables import card_row, percent, table, with_ends
from recipes import import_llmbar, import_rag_eval

from judgesense.reporting.report import measure_run
from judgesense.run_folder.folder import read_run

PAGE = Path(__file__).parent / "results" / "published-logs.md"

TEXT = """# Published logs

What the [trust card](../trust.md) makes of logs that others published
(`python docs/make_published.py ../shared/logs`). flakyjudge has [a page of its own](flakyjudge.md).

## LLMBar: six judges

[LLMBar](https://github.com/princeton-nlp/LLMBar) (MIT; revision 900616b) asked six judges which of
two outputs follows an instruction, in both orders, under up to 15 prompting strategies:
{llmbar_rows} decisions on {llmbar_items} items, {llmbar_unclear} of them unreadable.

```sh
python docs/recipes.py llmbar judgments.csv llmbar.parquet
judgesense import llmbar.parquet --format table --out runs/llmbar
judgesense report runs/llmbar
```

{llmbar}

*steady* is JSS over the strategies, which are not pure rewordings, so it is a lower bound. There is
no contrast wording, so no judge can be `use`. Falcon shows why JSS alone misleads: it prefers the
same output in both orders for only {falcon_fair}% of items.

## RAG-Eval: nine judges of relevance

[RAG-Eval-LLM-Judge](https://github.com/asukul/RAG-Eval-LLM-Judge) (scores CC-BY-4.0; revision
1b6065c): nine judges rate {rag_items} passages from 0 to 3, with one prompt.

{rag}

*right* is the quadratic κ with people, over {rag_clusters} queries. One wording says nothing about
steadiness, so every judge is `unknown` at best. *No score* counts blank cells, whose reason the
source does not give: read it before κ, because a judge that leaves out hard passages looks better
on the rest.

## The JudgeSense paper

Its authors withdrew the first version in August 2026. [The second version](v2.md) was recomputed.
"""


def cards_table(report: dict[str, Any], checks: tuple[str, ...]) -> str:
    """The cards of a report, the most right judge first."""
    order = {"use": 0, "care": 1, "unknown": 2, "avoid": 3}
    cards = sorted(
        report["trust"],
        key=lambda card: (order[card["trust"]], -card["checks"]["right"]["estimate"]),
    )
    return table(["judge", "trust", *checks], [card_row(card, checks) for card in cards])


def rag_table(report: dict[str, Any], log: Any) -> str:
    """A row per judge of RAG-Eval: trust, the share without a score, and κ with people."""
    judges, status = np.asarray(log["judge"]), np.asarray(log["status"])
    rows = []
    for card in sorted(report["trust"], key=lambda card: -card["checks"]["right"]["estimate"]):
        right = card["checks"]["right"]
        blank = (status[judges == card["judge"]] == "error").mean()
        rows.append(
            [
                card["judge"],
                card["trust"],
                percent(float(blank)),
                with_ends(right["estimate"], right["ci_low"], right["ci_high"]),
                right["state"],
            ]
        )
    return table(["judge", "trust", "no score, %", "right: κ", "state"], rows)


def write(logs: Path) -> None:
    """Import both logs, measure, and write the page."""
    with tempfile.TemporaryDirectory() as out:
        folders = Path(out) / "llmbar", Path(out) / "rag"
        record = import_llmbar(logs / "llmbar" / "judgments.csv", folders[0])
        import_rag_eval(logs / "rag_eval_9judges", folders[1])
        llmbar, rag = map(measure_run, folders)
        llmbar_log, rag_log = (read_run(folder).log for folder in folders)
    counts = record["counts"]["preference"]
    falcon = next(card for card in llmbar["trust"] if card["judge"] == "Falcon")
    PAGE.write_text(
        TEXT.format(
            llmbar=cards_table(llmbar, ("readable", "steady", "right", "fair")),
            llmbar_rows=f"{sum(counts.values()):,}",
            llmbar_items=f"{len(set(llmbar_log['item_id'].to_pylist())):,}",
            llmbar_unclear=f"{counts['unclear']:,}",
            falcon_fair=percent(falcon["checks"]["fair"]["estimate"], 0),
            rag=rag_table(rag, rag_log),
            rag_items=f"{len(set(rag_log['item_id'].to_pylist())):,}",
            rag_clusters=len(set(rag_log["cluster_id"].to_pylist())),
        ).rstrip()
        + "\n",
        "utf-8",
    )


if __name__ == "__main__":
    write(Path(sys.argv[1]))
