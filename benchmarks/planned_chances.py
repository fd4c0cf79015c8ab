"""Whether the chances that a plan prints are what then happens, on data whose larger run is known.

Pilots are the first items of a larger run; the plan of each open card says how likely the larger
run settles it, and the larger run's real card says whether it did. Three kinds of runs: verdicts
and wordings drawn on the logit scale; verdicts where items are hard or easy and some get no
verdict; and the logs of flakyjudge and LLMBar, items drawn with replacement, whose judges and
wordings are as they are. A gate is repeated on as many other items of the run. Printed chances are
compared with the outcome in bins.

With ``--redraws`` the chance that a report has no time for stands beside the printed one: items
drawn from the pilot's (weighted at random, the Bayesian bootstrap) make up the larger run, and the
real card is drawn as often.

    python benchmarks/planned_chances.py --runs 300
    python benchmarks/planned_chances.py --runs 70 --redraws 24
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from common import finish, machine

from judgesense.log.answers import Answers
from judgesense.log.schema import SCHEMA, read_log
from judgesense.log.view import view
from judgesense.measure.card import Check
from judgesense.measure.checks import trust_card
from judgesense.measure.planning import gate_outlook, plan
from judgesense.measure.wordings import Wordings

RUNS = Path(os.environ.get("JUDGESENSE_RUNS", "runs"))
"""Imported logs (`LOGS`) to resample; those that are not there are left out."""

PILOTS, TIMES = (40, 80), (2, 4)


def drawn_log(rng: np.random.Generator, n: int, hard: bool) -> tuple[Any, Any, Any]:
    """Right verdicts by item and wording on the logit scale, gold labels, and which are silent."""
    wordings = int(rng.choice([3, 5, 8]))
    base, sd = rng.uniform(1.0, 4.0), rng.choice([0.0, 0.3, 0.6])
    item = rng.normal(0, 2.0 if hard else 1.0, (n, 1))
    logit = base + item + rng.normal(0, sd, (1, wordings))
    usual = rng.random((n, wordings)) < 1 / (1 + np.exp(-logit))
    own = rng.integers(0, 2, n)
    right = rng.random(n) < rng.uniform(0.55, 0.95)
    verdict = np.where(usual, own[:, None], 1 - own[:, None])
    silent = np.zeros(verdict.shape, bool)
    if hard:
        silent = (np.abs(logit) < 0.5) & (rng.random(verdict.shape) < 0.5)
    return verdict, np.where(right, own, 1 - own), silent


def stream_of(verdict: Any, gold: Any, silent: Any) -> Answers:
    labels = np.array(["YES", "NO"])
    rows = []
    for i, w in np.ndindex(verdict.shape):
        said = "UNCLEAR" if silent[i, w] else labels[verdict[i, w]]
        rows.append(
            {
                "judge": "j",
                "task": "t",
                "scoring": "generate",
                "item_id": f"i{i}",
                "cluster_id": f"i{i}",
                "template_id": f"w{w}",
                "order": "-",
                "repeat": 0,
                "prompt_id": f"{i}-{w}",
                "raw_decision": said,
                "decision": said,
                "status": "unclear" if silent[i, w] else "ok",
                "gold": labels[gold[i]],
            }
        )
    return only(pa.Table.from_pylist(rows, schema=SCHEMA), {"t": {"labels": ["YES", "NO"]}})


def only(log: pa.Table, tasks: Any) -> Answers:
    (stream,) = view(log, None, {"tasks": tasks}).judged
    return stream


def checks_of(stream: Answers) -> Mapping[str, Check]:
    return trust_card(stream, mislabelled=Wordings.of(stream).mislabelled).checks


def settles(waiting: Sequence[str], checks: Mapping[str, Check]) -> bool:
    """Whether a card settles the checks that were open."""
    states = [checks[name].state for name in waiting]
    return "fail" in states or set(states) == {"pass"}


def trial(given: tuple[str, int, int]) -> tuple[str, list[Any], list[Any]]:
    kind, seed, redraws = given
    rng = np.random.default_rng([len(kind), seed])
    n = int(rng.choice(PILOTS))
    times = int(rng.choice(TIMES))
    if kind in LOGS:
        tasks, by_item = LOGS[kind] if LOGS[kind] else _load(kind)
        parts = by_item[int(rng.integers(len(by_item)))]
        chosen = [parts[at] for at in rng.integers(0, len(parts), n * times)]

        def run_of(rows: list[int]) -> Answers:
            tables = [named(chosen[row], f"i{at}") for at, row in enumerate(rows)]
            return only(pa.concat_tables(tables), tasks)

    else:
        whole = drawn_log(rng, n * times, kind == "hard items")

        def run_of(rows: list[int]) -> Answers:
            return stream_of(*(part[rows] for part in whole))

    every = list(range(n * times))
    pilot, larger, fresh = (
        checks_of(run_of(rows)) for rows in (every[:n], every, every[n : 2 * n])
    )
    gate, state = gate_outlook(pilot["steady"]), fresh["steady"].state
    gates = [] if gate is None else [(gate.passes, state == "pass"), (gate.fails, state == "fail")]
    found = plan(pilot, sizes=(n * times,))
    if found is None:
        return kind, [], gates
    waiting, redrawn = found.open, []
    for _ in range(redraws):
        more = rng.choice(n, n * times - n, p=rng.dirichlet(np.ones(n)))
        redrawn.append(settles(waiting, checks_of(run_of([*every[:n], *more.tolist()]))))
    chance = found.chances[0].chance, settles(waiting, larger)
    return kind, [(*chance, float(np.mean(redrawn)) if redraws else None)], gates


LOGS: dict[str, Any] = {"flaky": None, "llmbar": None}


def _load(kind: str) -> Any:
    """A real log: for each judge with several wordings, a table of each item."""
    import json

    log = read_log(RUNS / kind).filter(pa.compute.equal(read_log(RUNS / kind)["repeat"], 0))
    record = json.loads((RUNS / kind / "run.json").read_text("utf-8"))
    task = log["task"][0].as_py()
    found = []
    for judge in sorted(set(log["judge"].to_pylist())):
        own = log.filter(pa.compute.equal(log["judge"], judge))
        if "variant_class" in own.column_names:
            kept = [each in (None, "equivalent") for each in own["variant_class"].to_pylist()]
            own = own.filter(pa.array(kept))
        if len(set(own["template_id"].to_pylist())) < 2:
            continue
        places = defaultdict(list)
        for at, item in enumerate(own["cluster_id"].to_pylist()):
            places[item].append(at)
        if len(places) >= 60:
            found.append([own.take(pa.array(rows)) for rows in places.values()])
    LOGS[kind] = ({task: record["tasks"][task]}, found)
    return LOGS[kind]


def named(part: pa.Table, name: str) -> pa.Table:
    """An item's rows as another item."""
    for column in ("item_id", "cluster_id", "prompt_id"):
        values = [f"{name}/{value}" for value in part[column].to_pylist()]
        if column == "cluster_id":
            values = [name] * len(part)
        part = part.set_column(part.column_names.index(column), column, pa.array(values))
    return part


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--redraws", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=None)
    given = parser.parse_args()
    kinds = ["logit", "hard items", *(name for name in LOGS if (RUNS / name).is_dir())]
    asked = [(kind, seed, given.redraws) for kind in kinds for seed in range(given.runs)]
    found: dict[str, list[tuple[float, bool]]] = defaultdict(list)
    with multiprocessing.get_context("spawn").Pool(given.jobs) as pool:
        for kind, pairs, gates in pool.imap_unordered(trial, asked, chunksize=5):
            found[kind] += [pair[:2] for pair in pairs]
            if given.redraws:
                found[f"{kind}, redrawn"] += [(pair[2], pair[1]) for pair in pairs]
            found["gate passes on other items"] += gates[:1]
            found["gate fails on other items"] += gates[1:]
    rows = []
    for more in ["", *([", redrawn"] if given.redraws else [])]:
        found[f"all{more}"] = [pair for kind in kinds for pair in found[f"{kind}{more}"]]
    for kind, pairs in found.items():
        chance, settled = np.array([p for p, _ in pairs]), np.array([s for _, s in pairs])
        bins = np.digitize(chance, [0.2, 0.4, 0.6, 0.8])
        kept = [bins == at for at in range(5) if (bins == at).any()]
        table = [
            [round(float(each[mask].mean()), 3) for each in (chance, settled)] + [int(mask.sum())]
            for mask in kept
        ]
        score = float(((chance - settled) ** 2).mean())
        print(
            f"{kind}: printed {chance.mean():.3f}, happened {settled.mean():.3f} ({len(pairs)}), "
            f"mean squared error {score:.4f}"
        )
        print(f"    by bin: {table}")
        rows.append(
            {
                "name": f"chances of a plan: {kind}",
                "ours": float(chance.mean()),
                "theirs": float(settled.mean()),
                "peer": "what then happened",
                "ratio": float(chance.mean() / max(settled.mean(), 1e-9)),
                "unit": "share",
                "n": len(pairs),
                "squared_error": score,
                "bins": table,
                "machine": machine("numpy"),
            }
        )
    finish(rows)


if __name__ == "__main__":
    sys.exit(main())
