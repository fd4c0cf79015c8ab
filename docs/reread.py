"""Read the texts of a decision log again: ``python docs/reread.py DIR [EXAMPLES]``.

DIR is a run or an import. The script prints how many of its texts the parser reads otherwise than
the log says, and a fixed sample of them.
"""

from __future__ import annotations

import random
import sys
from collections import Counter
from pathlib import Path

from judgesense.answers import parse
from judgesense.run_folder.folder import Run, read_run
from judgesense.tasks import load_label_map

_COLUMNS = ["task", "scoring", "prompt_id", "raw_text", "raw_decision"]


def options_of(run: Run) -> dict[str, tuple[str, ...]]:
    """The options of each prompt of a run; an import has none."""
    if run.prompts is None:
        return {}
    prompts = run.prompts.select(["prompt_id", "label_map"]).to_pylist()
    return {row["prompt_id"]: tuple(load_label_map(row["label_map"])) for row in prompts}


def reread(folder: Path, examples: int = 10) -> None:
    """Print what is read otherwise."""
    run = read_run(folder)
    own, tasks = options_of(run), run.record["tasks"]
    read, changed = 0, []
    for row in run.log.select(_COLUMNS).to_pylist():
        if row["scoring"] != "generate" or not row["raw_text"]:
            continue
        read += 1
        options = own.get(row["prompt_id"]) or tuple(tasks[row["task"]]["labels"])
        now = parse(row["raw_text"], options)
        if now != row["raw_decision"]:
            changed.append((row["task"], row["raw_decision"], now, row["raw_text"]))
    print(f"{folder}: {read} texts, {len(changed)} read otherwise")
    for (task, then, now), count in Counter(line[:3] for line in changed).most_common():
        print(f"  {task}: {then} -> {now}, {count} times")
    for task, then, now, text in random.Random(0).sample(changed, min(examples, len(changed))):
        print(f"    {task}, {then} -> {now}: {text[:100]!r}")


if __name__ == "__main__":
    reread(Path(sys.argv[1]), *map(int, sys.argv[2:]))
