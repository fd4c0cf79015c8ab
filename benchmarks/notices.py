"""The check `notices`: its coverage, the texts to read, and whether it ranks judges as labels do.

Coverage by simulation, also of judges that ignore damage and of harmless edits as damage:

    python benchmarks/notices.py

N copies of a kind from TruthfulQA, SummEval and MT-Bench, to read:

    python benchmarks/notices.py texts KIND N

Judges on the embedded tasks, asked once in the base wording, N damaged copies per task. Resumes:

    python benchmarks/notices.py judges FOLDER N JUDGE [JUDGE ...]
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc
from common import MIRROR, finish, machine

from judgesense.files.tables import read_parquet
from judgesense.log.folder import PAIR_SCHEMA
from judgesense.measure.notices import change_of, noticed_share
from judgesense.pipeline import Settings, execute, resolve_all
from judgesense.pipeline.data import DataReference
from judgesense_dataset.damage import changed
from judgesense_dataset.damage_design import with_damage
from judgesense_dataset.damage_rules import Output
from judgesense_dataset.embedded import embedded_items, embedded_templates, load_embedded

RUNS = 1_000


def simulate(runs: int = RUNS) -> list[dict[str, Any]]:
    """Coverage of the interval, and what judges that ignore damage get."""
    rng = np.random.default_rng(0)
    results = []
    for n_items, per in ((20, 2), (40, 1), (40, 3), (120, 1)):
        for truth in (0.0, 0.3, 0.6, 0.9):
            for noise in (0.0, 0.05, 0.2):
                for shared in (0.0, 0.3):
                    got = [_drawn(rng, n_items, per, truth, noise, shared) for _ in range(runs)]
                    shares, lows, highs = np.array(got).T
                    results.append(
                        {
                            "name": f"{n_items} items x {per}, noticed {truth}, noise {noise}, "
                            f"intra-item correlation {shared}",
                            "coverage": float(((lows <= truth) & (truth <= highs)).mean()),
                            "mean": float(shares.mean()),
                            "above_0.1": float((shares > 0.1).mean()),
                            "interval_above_0.1": float((lows > 0.1).mean()),
                            "passes": float((lows > 0.6).mean()),
                            "n": runs,
                        }
                    )
    return results


def _drawn(
    rng: np.random.Generator, n_items: int, per: int, truth: float, noise: float, shared: float
) -> tuple[float, float, float]:
    def of_items(mean: float) -> np.ndarray[Any, Any]:
        if not shared or mean in (0, 1):
            return np.full(n_items, mean)
        size = 1 / shared - 1
        return rng.beta(mean * size, (1 - mean) * size, n_items)

    notices, lowers = of_items(truth), of_items(noise)
    damaged = np.repeat(np.arange(n_items), per)
    harmless = damaged[: max(2, len(damaged) // 2)]
    caught = rng.random(len(damaged)) < notices[damaged]
    caught |= rng.random(len(damaged)) < lowers[damaged]
    share, ends = noticed_share(
        caught, damaged, rng.random(len(harmless)) < lowers[harmless], harmless
    )
    return share, 0.0 if ends.low is None else ends.low, 1.0 if ends.high is None else ends.high


def texts() -> Iterator[tuple[str, str, str, str]]:
    """Source, question, output and source text of real outputs."""
    for row in read_parquet(
        MIRROR / "truthfulqa/truthful_qa/generation/validation.parquet"
    ).to_pylist():
        yield "TruthfulQA", row["question"], row["best_answer"], ""
    for row in read_parquet(MIRROR / "mteb/summeval/default/test.parquet").to_pylist():
        for summary in (row["human_summaries"][0], *row["machine_summaries"][:6:5]):
            yield "SummEval", "", summary, row["text"]
    seen = set()
    path = MIRROR / "lmsys/mt_bench_human_judgments/default/human.parquet"
    for row in read_parquet(path).to_pylist():
        for side in "ab":
            question, answer = row[f"conversation_{side}"][:2]
            if answer["content"] not in seen and row[f"model_{side}"].startswith(("gpt", "claude")):
                seen.add(answer["content"])
                yield "MT-Bench", question["content"], answer["content"], ""


def print_copies(kind: str, n: int, seed: int) -> None:
    """Print n copies of a kind from each source."""
    every = list(texts())
    rng = np.random.default_rng(seed)
    left = dict.fromkeys(("TruthfulQA", "SummEval", "MT-Bench"), n)
    for at in rng.permutation(len(every)).tolist():
        name, question, text, source = every[at]
        if not left[name]:
            continue
        others = [other for set_, _, other, _ in every if set_ == name and other != text][:300]
        copy = changed(kind, Output(text, question, f"{question}\n{source}", others), rng)
        if copy is not None:
            left[name] -= 1
            print(f"{name}: {question[:100]!r}\n    {change_of(text, copy)}")


def judge(folder: Path, name: str, task: str, n: int) -> dict[str, Any]:
    """Accuracy and `notices` of a judge on an embedded task, in its base wording."""
    whole = load_embedded().select([task])
    base = f"{task}-1"
    prompts = whole.prompts.filter(pc.equal(whole.prompts["template_id"], base))
    plain = replace(whole, prompts=prompts, pairs=PAIR_SCHEMA.empty_table())
    benchmark = with_damage(plain, embedded_templates(), embedded_items(), n)
    settings = Settings.of("options", [task])
    data = DataReference({"embedded": task, "damage": n}, lambda: benchmark, benchmark=benchmark)
    place = folder / f"{Path(name).name}-{task}"
    report = execute(resolve_all([name], "options", {}), data, settings, place, print)
    (entry,) = report.assessments
    checks = entry.card.checks
    notices, right = checks["notices"], checks["right"]
    return {
        "judge": name,
        "task": task,
        "accuracy": right.details.get("accuracy"),
        "kappa": right.estimate,
        "noticed": notices.estimate,
        "ci_low": notices.ci_low,
        "ci_high": notices.ci_high,
        "caught": notices.details.get("caught"),
        "harmless": notices.details.get("harmless"),
        "n": notices.details.get("n_damaged"),
        "kinds": {row.kind: row.noticed for row in entry.damage if not row.harmless},
    }


def main() -> None:
    """Run one of the three parts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parts = parser.add_subparsers(dest="part")
    reading = parts.add_parser("texts")
    reading.add_argument("kind")
    reading.add_argument("n", type=int)
    reading.add_argument("--seed", type=int, default=0)
    judging = parts.add_parser("judges")
    judging.add_argument("folder", type=Path)
    judging.add_argument("n", type=int)
    judging.add_argument("judges", nargs="+")
    given = parser.parse_args()
    if given.part == "texts":
        print_copies(given.kind, given.n, given.seed)
        return
    if given.part == "judges":
        rows = []
        for name in given.judges:
            for task in ("factuality", "coherence", "relevance", "preference"):
                rows.append(judge(given.folder, name, task, given.n))
                print(json.dumps(rows[-1]), flush=True)
        finish([{**row, "name": "notices", "machine": machine()} for row in rows])
        return
    results = simulate()
    worst = min(results, key=lambda row: row["coverage"])
    print(f"worst coverage {worst['coverage']:.3f}: {worst['name']}")
    ignoring = [row for row in results if row["name"].split("noticed ")[1].startswith("0.0")]
    most = max(row["mean"] for row in ignoring)
    print(f"a judge that ignores damage has at most {most:.3f} on average")
    finish([{**row, "unit": "share", "machine": machine()} for row in results])


if __name__ == "__main__":
    main()
