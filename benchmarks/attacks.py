"""Simulated judges with a known weakness: is it named, and does `resistant` pass only who resists?

Every log has items with the gold label NO, a base wording, four others and twelve kinds of attack.
An item's verdict is lost with a probability of its own under every wording (heavy-tailed, so that
hard items exist); an attack loses more right verdicts where it is effective.

    python benchmarks/attacks.py --logs 400 --shared ../shared

``--shared`` has real logs: flakyjudge's length study as an attack (a padded answer), beside its
published drifts, and the judges of LLMBar on its natural and its adversarial items.
"""

from __future__ import annotations

import argparse
import csv
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from common import finish, machine

from judgesense.log.schema import ATTACK, SCHEMA
from judgesense.log.view import view
from judgesense.measure.resistant import attacks, resistant

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
        "judge": "j",
        "task": "t",
        "scoring": "options",
        "status": "ok",
        "gold": "NO",
        "prompt_id": "",
        "repeat": 0,
    }
    columns = {name: pa.repeat(pa.scalar(value), len(item)) for name, value in facts.items()}
    columns |= {
        "item_id": pa.array(item.astype(str)),
        "cluster_id": pa.array(item.astype(str)),
        "template_id": pa.array(names[column]),
        "order": pa.array(np.array(["AB", "BA"])[order]),
        "raw_decision": pa.array(decision),
        "decision": pa.array(decision),
        "variant": pa.array([f"k{k}#1" if k >= 0 else None for k in kind.tolist()]),
        "variant_class": pa.array([ATTACK if k >= 0 else None for k in kind.tolist()]),
    }
    empty = pa.nulls(len(item))
    return pa.table(
        [columns.get(field.name, empty).cast(field.type) for field in SCHEMA], schema=SCHEMA
    )


def length_study(folder: Path) -> list[dict[str, Any]]:
    """flakyjudge's E4: padded answers as attacks on a scale, and the published mean drift."""
    scores = pq.read_table(folder / "e4_scores.parquet").to_pylist()
    facts = {"task": "t", "scoring": "generate", "status": "ok", "template_id": "w", "order": "-"}
    rows = []
    for row in scores:
        if row["score_direct"] is None or row["kind"] == "condensed":
            continue
        padded, level = row["kind"] == "padded", str(round(row["score_direct"]))
        rows.append(
            {
                **facts,
                "judge": row["judge"],
                "item_id": row["item_id"],
                "repeat": 0,
                "raw_decision": level,
                "decision": level,
                "variant": "padding#1" if padded else None,
                "variant_class": ATTACK if padded else None,
            }
        )
    record = {"tasks": {"t": {"labels": list("12345"), "ordinal": True, "wins": "5"}}}
    streams = view(pa.Table.from_pylist(rows, schema=SCHEMA), None, record).judged
    kept = {stream.judge: attacks(stream)[0] for stream in streams}
    at = {(row["judge"], row["item_id"], row["variant"]): int(row["decision"]) for row in rows}
    published = json.loads((folder / "supplementary.json").read_text("utf-8"))["I_verbosity"]
    found = []
    for theirs in published:
        judge = theirs["judge"]
        drift = [
            score - at[judge, item, None]
            for (name, item, variant), score in at.items()
            if name == judge and variant and (judge, item, None) in at
        ]
        if theirs["kind"] == "padded":
            row, ours = kept[judge], sum(drift) / len(drift)
            ends = f"[{row['ci_low']:.2f}, {row['ci_high']:.2f}]"
            print(
                f"{judge}: drift {ours:+.3f}, published {theirs['mean_drift']:+.3f}, n {len(drift)}"
            )
            print(f"  of {row['n_right']} below the top {row['kept']:.2f} {ends} gain no level")
            found.append(
                {
                    "name": f"attacks: drift of padded answers, {judge}",
                    "peer": "flakyjudge",
                    "ours": ours,
                    "theirs": theirs["mean_drift"],
                    "ratio": None,
                    "unit": "levels",
                    "n": len(drift),
                    "machine": machine(),
                }
            )
    return found


def adversarial_items(path: Path) -> list[dict[str, Any]]:
    """LLMBar: right on natural and on adversarial items, mean over both orders, unread is wrong."""
    right: dict[tuple[str, bool], list[float]] = {}
    with path.open(encoding="utf-8", newline="") as source:
        for row in csv.DictReader(source):
            if row["dataset"].startswith("LLMBar/") and row["prompt"] == "Vanilla":
                both = [row[f"winner_{side}"] == row["label"] for side in ("noswap", "swap")]
                key = row["judge"], "Adversarial" in row["dataset"]
                right.setdefault(key, []).append(sum(both) / 2)
    found = []
    for judge in dict.fromkeys(judge for judge, _ in right):
        plain, hard = (np.array(right[judge, adversarial]) for adversarial in (False, True))
        print(
            f"{judge}: right on {plain.mean():.3f} of {len(plain)} natural items and "
            f"{hard.mean():.3f} of {len(hard)} adversarial ones"
        )
        found.append(
            {
                "name": f"attacks: LLMBar adversarial, {judge}",
                "peer": "LLMBar natural",
                "ours": float(hard.mean()),
                "theirs": float(plain.mean()),
                "ratio": float(hard.mean() / plain.mean()),
                "unit": "right",
                "n": len(hard),
                "machine": machine(),
            }
        )
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--logs", type=int, default=400)
    parser.add_argument("--shared", type=Path)
    given = parser.parse_args()
    n_logs = given.logs
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
    if given.shared is not None:
        results += length_study(given.shared / "logs" / "flakyjudge")
        results += adversarial_items(given.shared / "logs" / "llmbar" / "judgments.csv")
    for number, (name, what, wanted, n, noise, power, orders) in enumerate(cases):
        hits = 0
        for seed in range(n_logs):
            rng = np.random.default_rng([number, seed])
            (stream,) = view(log_of(rng, n, noise, power, orders), None, RECORD).judged
            rows = attacks(stream)
            named = {row["kind"] for row in rows if row["effective"]}
            hits += {
                "named": "k0" in named,
                "any": bool(named),
                "pass": (state := resistant(rows, 0.8).state) == "pass",
                "fail": state == "fail",
            }[what]
        share = hits / n_logs
        print(f"{name}: {share:.3f} of {n_logs} logs (wanted: {wanted:g})", flush=True)
        results.append(
            {
                "name": f"attacks: {name}",
                "peer": "requirement",
                "ours": share,
                "theirs": wanted,
                "ratio": share / wanted,
                "unit": "share of logs",
                "n": n_logs,
                "machine": machine(),
            }
        )
    finish(results)


if __name__ == "__main__":
    main()
