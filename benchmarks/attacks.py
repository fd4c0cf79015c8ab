"""Simulated judges with a known weakness: is it named, and does `resistant` pass only who resists?

Every log has items with the gold label NO, a base wording, four others and twelve kinds of attack.
An item's verdict is lost with a probability of its own under every wording (heavy-tailed, so that
hard items exist); an attack loses more right verdicts where it is effective.

    python benchmarks/attacks.py --logs 400
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from common import finish, machine

from judgesense.decisions.log import ATTACK, SCHEMA
from judgesense.decisions.view import view
from judgesense.trust.resistant import attacks, resistant

WORDINGS, KINDS = 5, 12
RECORD = {"tasks": {"t": {"labels": ["YES", "NO"], "comparative": False, "wins": "YES"}}}


def log_of(
    rng: np.random.Generator, n: int, noise: float, power: Sequence[float], orders: int
) -> pa.Table:
    """A log of n items: under each of ``power`` attacks, so many right verdicts are lost.

    Two wordings differ on ``noise`` of the items. With two ``orders`` each item has two prompts of
    each kind, whose verdicts depend on each other.
    """
    # A verdict that is lost with probability p differs between two wordings with 2 p (1 - p).
    mean = (1 - np.sqrt(1 - 2 * noise)) / 2
    lost = rng.beta(0.5, 0.5 * (1 - mean) / mean, (n, 1, 1)) if noise else np.zeros((n, 1, 1))
    wrong = rng.random((n, WORDINGS + len(power), orders)) < lost
    weak = rng.random((n, len(power), 1)) < np.array(power)[None, :, None]
    wrong[:, WORDINGS:] |= weak
    item, column, order = (axis.ravel() for axis in np.indices(wrong.shape))
    kind = column - WORDINGS
    names = np.array([*(f"w{w}" for w in range(WORDINGS)), *["w0"] * len(power)])
    decision = np.where(wrong.ravel(), "YES", "NO")
    facts = {
        "judge": "j", "task": "t", "scoring": "options", "status": "ok", "gold": "NO",
        "prompt_id": "", "repeat": 0,
    }  # fmt: skip
    columns = {name: pa.repeat(pa.scalar(value), len(item)) for name, value in facts.items()}
    columns |= {
        "item_id": pa.array(item.astype(str)), "cluster_id": pa.array(item.astype(str)),
        "template_id": pa.array(names[column]), "order": pa.array(np.array(["AB", "BA"])[order]),
        "raw_decision": pa.array(decision), "decision": pa.array(decision),
        "variant": pa.array([f"k{k}#1" if k >= 0 else None for k in kind.tolist()]),
        "variant_class": pa.array([ATTACK if k >= 0 else None for k in kind.tolist()]),
    }  # fmt: skip
    empty = pa.nulls(len(item))
    return pa.table(
        [columns.get(field.name, empty).cast(field.type) for field in SCHEMA], schema=SCHEMA
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--logs", type=int, default=400)
    n_logs = parser.parse_args().logs
    none = [0.0] * (KINDS - 1)
    cases = [
        ("weak to one kind (30%), 50 items: named", "named", 0.9, 50, 0.05, [0.3, *none], 1),
        ("the same in two orders: named", "named", 0.9, 50, 0.05, [0.3, *none], 2),
        ("harmless kinds, 50 items: any named", "any", 0.05, 50, 0.05, [0.0, *none], 1),
        ("harmless kinds, rewording moves 15%: any named", "any", 0.05, 50, 0.15, [0.0, *none], 2),
        ("one kind keeps 0.7, 50 items: passes", "pass", 0.02, 50, 0.0, [0.3, *none], 1),
        ("one kind keeps 0.7, 100 items: passes", "pass", 0.02, 100, 0.0, [0.3, *none], 1),
        ("one kind keeps 0.8, 100 items: passes", "pass", 0.05, 100, 0.0, [0.2, *none], 1),
        ("all kinds keep 0.95, 100 items: passes", "pass", 0.9, 100, 0.0, [0.05] * KINDS, 1),
        ("all kinds keep 0.82, 100 items: fails", "fail", 0.05, 100, 0.0, [0.18] * KINDS, 1),
    ]
    results = []
    for number, (name, what, wanted, n, noise, power, orders) in enumerate(cases):
        hits = 0
        for seed in range(n_logs):
            rng = np.random.default_rng([number, seed])
            (stream,) = view(log_of(rng, n, noise, power, orders), None, RECORD).judged
            rows = attacks(stream)
            named = {row["kind"] for row in rows if row["effective"]}
            hits += {
                "named": "k0" in named, "any": bool(named),
                "pass": (state := resistant(rows, 0.8).state) == "pass", "fail": state == "fail",
            }[what]  # fmt: skip
        share = hits / n_logs
        print(f"{name}: {share:.3f} of {n_logs} logs (wanted: {wanted:g})", flush=True)
        results.append({
            "name": f"attacks: {name}", "peer": "requirement", "ours": share, "theirs": wanted,
            "ratio": share / wanted, "unit": "share of logs", "n": n_logs, "machine": machine(),
        })  # fmt: skip
    finish(results)


if __name__ == "__main__":
    main()
