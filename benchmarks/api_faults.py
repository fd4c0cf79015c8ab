"""2,000 prompts to a real server behind a proxy that breaks 30% of calls, with ten ``kill -9``.

    python benchmarks/api_faults.py [--prompts 2000] [--kills 10] [--url http://127.0.0.1:8000/v1]

The default server is ``transformers serve`` with SmolLM2-135M-Instruct. It answers one question at
a time, about one per second on two cores. ``--url`` takes a running server that serves the model
under its folder's name. ``vllm serve FOLDER --dtype float32 --max-model-len 1024``, in a separate
environment, answers many at a time.

The proxy returns 429 (with and without Retry-After), 500 and 502, resets connections, stalls, sends
truncated and invalid JSON and empty choices, and refuses one prompt in 40. Every prompt must end
exactly once, with the decision that the same model gives in this process. No file may contain the
key. There is no peer: the numbers are counts.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "judges"))

from common import finish, machine
from fault_trial import expected, local_judge, real_server, run_trial, sums


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--prompts", type=int, default=2000)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--url", help="a running server; 16 questions in flight instead of 4")
    given = parser.parse_args()
    judge = local_judge()
    at_hand = contextlib.nullcontext(given.url) if given.url else real_server(judge.folder)
    in_flight = 16 if given.url else 4
    with tempfile.TemporaryDirectory() as folder, at_hand as server:
        wanted = expected(judge, sums(given.prompts), Path(folder) / "local")
        trial = run_trial(
            server, judge.folder, given.prompts, given.kills, Path(folder) / "api", in_flight
        )
    wrong = [p for p, decision in trial.decisions.items() if wanted.get(p) != decision]
    counts = {
        "prompts lost": len(set(wanted) - set(trial.rows)),
        "prompts double": sum(count > 1 for count in trial.rows.values()),
        "prompts wrong": len(wrong),
        "files with the key": len(trial.leaks),
    }
    print(json.dumps({"faults": trial.faults, "answered by the server": trial.answered}))
    finish(
        [
            {
                "name": f"{what}, of {given.prompts} prompts with 30% faults",
                "ours": count,
                "unit": "prompts" if what != "files with the key" else "files",
                "n": given.prompts,
                "kills": trial.kills,
                "seconds": round(trial.seconds, 1),
                "machine": machine("openai", "transformers", "torch"),
            }
            for what, count in counts.items()
        ]
    )
    if any(counts.values()):
        sys.exit(1)


if __name__ == "__main__":
    main()
