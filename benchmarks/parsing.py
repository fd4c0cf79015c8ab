"""How many real judge outputs the parser reads right, by form, beside the last option mentioned.

    python benchmarks/parsing.py [CORPUS.jsonl]

The corpus holds one output per line: ``text``, ``options``, the verdict that it states (``label``)
and its ``form``. The peer takes the last option that the text mentions, which is what short
answer-extraction scripts do.
"""

from __future__ import annotations

import json
import re
import sys
import time
from collections import Counter, defaultdict
from pathlib import Path

from common import MIRROR, finish, machine

from judgesense.answers import parse
from judgesense.tasks import REFUSED, UNCLEAR

CORPUS = MIRROR.parent / "judge_outputs" / "corpus.jsonl"
NONE = (UNCLEAR, REFUSED)


def last_mention(text: str, options: list[str]) -> str:
    """The option that the text mentions last, in its own case or in brackets in any case."""
    names = "|".join(re.escape(option) for option in sorted(options, key=len, reverse=True))
    found = re.findall(rf"(?<![\w]){names}(?![\w])|\((?i:{names})\)", text)
    folded = {option.casefold(): option for option in options}
    return folded[found[-1].strip("()").casefold()] if found else UNCLEAR


def outcome(read: str, label: str) -> str:
    if read == label:
        return "right"
    return "unread" if read in NONE else "wrong"


def main() -> None:
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else CORPUS
    if not path.is_file():
        print(f"no corpus at {path}; name one")
        return finish([])
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    started = time.process_time()
    ours = [outcome(parse(row["text"], row["options"]), row["label"]) for row in rows]
    seconds = time.process_time() - started
    peer = Counter(outcome(last_mention(row["text"], row["options"]), row["label"]) for row in rows)
    forms: dict[str, Counter[str]] = defaultdict(Counter)
    for row, read in zip(rows, ours, strict=True):
        forms[row["form"]][read] += 1
    print("| form | n | right | wrong verdict | not read |\n| --- | ---: | ---: | ---: | ---: |")
    total = Counter(ours)
    for form, counts in [*sorted(forms.items(), key=lambda each: -each[1].total()), ("all", total)]:
        cells = (counts.total(), counts["right"], counts["wrong"], counts["unread"])
        print(f"| {form} | {' | '.join(map(str, cells))} |")
    result = {
        "name": "judge outputs read right",
        "peer": "last option mentioned",
        "ratio": total["right"] / peer["right"],
        "ours": total["right"] / len(rows),
        "theirs": peer["right"] / len(rows),
        "unit": "share",
        "n": len(rows),
        "machine": machine(),
        "wrong": total["wrong"] / len(rows),
        "wrong_peer": peer["wrong"] / len(rows),
        "texts_per_second": round(len(rows) / seconds),
    }
    return finish([result])


if __name__ == "__main__":
    main()
