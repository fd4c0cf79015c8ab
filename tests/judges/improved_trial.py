"""A judge that prefers A, items that it can judge, and a run of it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import yaml

import judgesense
from local_judges.callable_judge import CallableJudge

QUERIES = [f"the year {1500 + n}" for n in range(90)]


def items(start: int, stop: int) -> list[dict[str, str]]:
    """Passages of which one has the query's number; A is right in every other item."""
    found = []
    for n in range(start, stop):
        right, wrong = f"It happened in {1500 + n}.", f"It happened in {1700 + n}."
        first = n % 2 == 0
        found.append(
            {
                "item_id": f"i{n}",
                "query": QUERIES[n],
                "passage_a": right if first else wrong,
                "passage_b": wrong if first else right,
                "gold": "A" if first else "B",
            }
        )
    return found


def biased(messages: list[str]) -> list[dict[str, float]]:
    """Knows the answer (2 nats), but prefers A by 3 nats."""
    found = []
    for message in messages:
        year = re.findall(r"the year (\d+)", message)[-1]
        first = message.index(f"happened in {year}") < message.rindex("happened in")
        odds = 3.0 + (2.0 if first else -2.0)
        a = -float(np.log1p(np.exp(-odds)))
        found.append({"A": a, "B": a - odds})
    return found


TEMPLATES = """
tasks:
  relevance:
    labels: [A, B]
    options: {A: passage_a, B: passage_b}
    layout: "{instruction}\\n\\nQuery: {query}\\nA: {passage_a}\\nB: {passage_b}"
    templates:
      - {id: r1, text: "Which passage answers the query? Answer A or B."}
      - {id: r2, text: "Which passage is the relevant one, A or B?"}
      - {id: r3, text: "Choose the passage that fits the query. A or B?"}
      - {id: r4, text: "A or B: which passage is about the query?"}
"""


def options(function: Any = biased, name: str = "biased") -> CallableJudge:
    """A judge whose probabilities a function gives."""
    return CallableJudge(function, name=name, scoring="options")


def judged(folder: Path, judge: CallableJudge | None = None, **more: Any) -> Path:
    """The run of a judge on 60 items, with its templates and items beside it."""
    (folder / "templates.yaml").write_text(TEMPLATES)
    (folder / "items.jsonl").write_text("".join(json.dumps(each) + "\n" for each in items(0, 60)))
    judgesense.run(
        judge or options(),
        templates=folder / "templates.yaml",
        items=folder / "items.jsonl",
        out=folder / "run",
        note=str,
        **({} if judge else {"scoring": "options"}),
        **more,
    )
    return folder / "run"


def stable(run_dir: Path, path: Path, remedy: str = "both orders", **judge: Any) -> Path:
    """The run's judge as a file; with ``judge``, one that can be loaded by name."""
    judgesense.stabilise(run_dir, out=path, remedy=remedy, max_error=0.1)
    if judge:
        own = {"engine": "transformers", "model": "smollm2-135m", "options": {}, **judge}
        edit(path, judge={"name": "biased@callable", "judge": "biased", **own})
    return path


def edit(path: Path, **changes: Any) -> None:
    """Change keys of a file."""
    path.write_text(yaml.safe_dump({**yaml.safe_load(path.read_text()), **changes}))
