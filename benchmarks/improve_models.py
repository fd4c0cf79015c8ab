"""Improve real judges on public sets, and compare with what else a person would do.

Ask: every wording and order of a judge on a set, once, into a run folder:

    python benchmarks/improve_models.py ask JUDGE SET N FOLDER [KEY=VALUE ...]

Compare: replay the answers many times. Half of the items are there to choose on; the other half is
held out from every method: the judge as asked, both orders averaged (0.2's usual remedy, or
calibration where there is no order), the best of all ways quoted on its own data, and `improve`.

    python benchmarks/improve_models.py compare FOLDER ... --splits 100
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from common import MIRROR, finish, machine, write_csv
from improve import part_of

from judgesense.ask.answers import AnswersSoFar, JudgeScoring
from judgesense.ask.candidates import first_recipes
from judgesense.ask.prompt_store import PromptStore
from judgesense.ask.search import SearchResult, search
from judgesense.ask.wordings import WordingToTry, rule_paraphrases, wordings_to_try
from judgesense.log.array import array_of
from judgesense.log.folder import read_run
from judgesense.log.run_folder import RunFolder
from judgesense.log.schema import read_log
from judgesense.log.view import view
from judgesense.recipes.recipe import Recipe
from judgesense.statistics.intervals import mean_t_cluster
from judgesense_dataset.embedded import embedded_items, embedded_templates
from judgesense_dataset.sources import get_source
from judgesense_dataset.sources.loader import Reader
from judgesense_dataset.templates import TaskTemplates
from local_judges.registry import load_judge, resolve

# bm25s imports numba, which would take coverage.py of this folder for the package.
sys.path[:] = [path for path in sys.path if path != str(Path(__file__).parent)]

LEFT_OUT = ("+separators", "+role", "+fields-reversed")
"""Forms that are not asked here, to halve the prompts."""

TASKS = {
    "truthfulqa": "factuality",
    "summeval": "coherence",
    "scifact": "relevance",
    "mtbench": "preference",
}


def table_of(
    data: str, n: int, name: str, wordings: int, longest: int = 0, few: bool = False
) -> tuple[AnswersSoFar, list[Any]]:
    """The empty table of a set: N items, the first wordings of its task and other forms.

    ``longest`` leaves out items of more characters, ``few`` the forms and paraphrases: for sets
    of long texts.
    """
    task = TASKS.get(data, data)
    entry = embedded_templates()[task]
    entry = TaskTemplates(entry.task, entry.templates[:wordings])
    if data in TASKS:
        items = list(get_source(data).collect(Reader(MIRROR), None if longest else n, 0).items)
        if longest:
            np.random.default_rng(0).shuffle(items)  # type: ignore[arg-type]
            items = [i for i in items if sum(map(len, i.fields.values())) <= longest][:n]
    else:
        items = [item for item in embedded_items() if item.task == task][:n]
    tried = [
        each
        for each in wordings_to_try(
            entry, rule_paraphrases(entry), reasons=False, probabilities=True
        )
        if not each.template.template_id.endswith(LEFT_OUT)
        and not (few and each.kind in ("form", "paraphrase"))
    ]
    clusters = {c: k for k, c in enumerate(dict.fromkeys(i.cluster_id for i in items))}
    gold = [entry.task.labels.index(str(item.gold)) for item in items]
    return AnswersSoFar.empty(
        entry.task,
        [JudgeScoring(0, name, "options")],
        tried,
        np.array(gold),
        np.array([clusters[i.cluster_id] for i in items]),
    ), items


def shown(items: list[Any]) -> list[Any]:
    """Items that every wording shows alike, for `PromptStore`."""
    return [lambda *_, item=item: item for item in items]


def ask(folder: Path, record: dict[str, Any], options: dict[str, Any]) -> None:
    """Ask a judge everything about a set; resumes."""
    loaded = load_judge(record["judge"], **options)
    table, items = table_of_record(record)
    run = RunFolder(folder, {"data": record})
    store = PromptStore(
        run, [loaded], table, shown(items), lambda text: print(text, file=sys.stderr)
    )
    for column in columns_of(table):
        store.ask({column: np.arange(len(items))})
    loaded.close()


def tables_in(folder: Path) -> list[tuple[str, AnswersSoFar]]:
    """The full tables of a folder by name: of `ask`, or of a run of embedded items with option
    probabilities (its plain wordings, a table a task)."""
    record = json.loads((folder / "run.json").read_text())["asked"]["data"]
    if "set" in record:
        return [(f"{record['judge']} {record['set']}", read(folder, record))]
    run, tables = read_run(folder), []
    for stream in view(run.log, run.pairs, run.record).judged:
        entry, array = embedded_templates()[stream.task.name], array_of(stream)
        known = {template.template_id: WordingToTry(template) for template in entry.templates}
        names = [each.name for each in array.wordings if each.name in known]
        if (array.gold >= 0).all() and array.has_probabilities:
            whole = AnswersSoFar(
                entry.task,
                [JudgeScoring(0, stream.judge, "options")],
                [known[name] for name in names],
                (array.under(names, array.orders),),
                np.zeros(len(array), bool),
            )
            tables.append((f"{stream.judge} {stream.task.name}", whole))
    return tables


def columns_of(table: AnswersSoFar) -> list[Any]:
    """Every wording in every order."""
    return [(0, *column) for column in np.ndindex(table.arrays[0].verdicts.shape[1:])]


def table_of_record(record: dict[str, Any]) -> tuple[AnswersSoFar, list[Any]]:
    """The empty table of a folder's record."""
    return table_of(
        record["set"],
        record["n"],
        record["judge"],
        record["wordings"],
        record.get("longest", 0),
        record.get("few", False),
    )


def read(folder: Path, record: dict[str, Any]) -> AnswersSoFar:
    """The full table of a folder of `ask`."""
    table, items = table_of_record(record)

    class Name:
        name = ""

    Name.name = read_log(folder)["judge"][0].as_py()
    store = PromptStore(
        RunFolder(folder, {"data": record}), [Name], table, shown(items), lambda _: None
    )
    with patch("judgesense.ask.prompt_store.run_judge"):
        store.ask(dict.fromkeys(columns_of(table), np.arange(len(items))))
    # An interrupted folder has some of the wordings.
    (array,) = table.arrays
    known = ~np.isnan(array.logprobs[..., 0]).any(axis=(0, 2))
    names = [each.name for each, whole in zip(array.wordings, known, strict=True) if whole]
    return AnswersSoFar(
        table.task,
        table.judges,
        [each for each in table.wordings if each.template.template_id in names],
        (array.under(names, array.orders),),
        table.attacked,
    )


def searched(
    whole: AnswersSoFar, items: np.ndarray, budget: float, seed: int
) -> tuple[SearchResult, dict[str, Any], int]:
    """`improve` on some of the items, replayed: the row that it would write, and its prompts."""
    part, ask_part = part_of(whole, items)
    made = search(part, budget * len(items), ask_part, seed=seed)
    return made, next(each for each in made.rows if each["written"]), int(part.spent)


def compare(table: str, whole: AnswersSoFar, splits: int, budget: float) -> list[dict[str, Any]]:
    """The methods on one table, over random splits of its items by cluster.

    No method asks more prompts than `improve` did: the best of all ways is chosen on as many items
    as these pay for. ``asked_per_item`` are the prompts per item of the half that chooses.
    """
    rng = np.random.default_rng(0)
    names = np.unique(whole.clusters)
    pool = first_recipes(whole)
    base, every = pool[0], whole.columns(*pool)
    usual = next((c for c in pool if c.name == "both orders"), None) or next(
        (c for c in pool if c.name == "calibrated"), base
    )
    found: dict[str, list[list[float]]] = {}
    held_out: dict[str, list[np.ndarray]] = {}
    better = covered = 0
    for split in range(splits):
        half = np.isin(whole.clusters, rng.permutation(names)[: len(names) // 2])
        dev, test = rng.permutation(np.flatnonzero(half)), np.flatnonzero(~half)

        def truth(recipe: Recipe, fit: np.ndarray, test: np.ndarray = test) -> np.ndarray:
            right = np.full(len(whole.gold), np.nan)
            right[test] = whole.right(recipe, test, fit)
            return right

        made, row, spent = searched(whole, dev, budget, split)
        better += row["gain_ci_low"] is not None and row["gain_ci_low"] > 0
        own_truth = float(np.nanmean(truth(made.chosen, dev[made.fit])))
        covered += bool(row["right_ci_low"] <= own_truth <= row["right_ci_high"])
        known = dev[: spent // len(every)]
        own = [float(whole.right(c, known, known).mean()) for c in pool]
        best = pool[int(np.argmax(own))]
        for name, way, promised, items, asked in (
            ("as asked", base, None, dev, len(dev)),
            (usual.name, usual, None, dev, len(dev) * len(whole.columns(usual))),
            ("best of all, on its own data", best, max(own), known, len(known) * len(every)),
            ("improve", made.chosen, row["right"], dev[made.fit], spent),
        ):
            own_right = float(whole.right(way, items, items).mean())
            quoted = own_right if promised is None else promised
            found.setdefault(name, []).append(
                [quoted, whole.cost(way, dev, items)[0], asked / len(dev)]
            )
            held_out.setdefault(name, []).append(truth(way, items))
    whole_items = np.arange(len(whole.gold))
    written = [searched(whole, whole_items, budget, seed)[1] for seed in range(20)]
    claimed = np.mean([(row["gain_ci_low"] or 0) > 0 for row in written])
    # The share of its splits in which an item that is held out is right; intervals are by item.
    right = {name: np.nanmean(np.stack(each), axis=0) for name, each in held_out.items()}
    n, rows = len(whole.gold), []
    for name, values in found.items():
        promised, cost, asked = np.array(values).T
        gain = right[name] - right["as asked"]
        ends = mean_t_cluster(right[name], whole.clusters)
        gain_ends = mean_t_cluster(gain, whole.clusters)
        rows.append(
            {
                "name": f"{table}: {name}",
                "promised": promised.mean(),
                "held_out": right[name].mean(),
                "held_out_low": ends.low,
                "held_out_high": ends.high,
                "gain": gain.mean(),
                "gain_low": gain_ends.low,
                "gain_high": gain_ends.high,
                "prompts_per_item": cost.mean(),
                "asked_per_item": asked.mean(),
                "n": n,
                "splits": splits,
                **(
                    {
                        "better": better / splits,
                        "covered": covered / splits,
                        "better_with_all_items": float(claimed),
                    }
                    if name == "improve"
                    else {}
                ),
            }
        )
        print(
            json.dumps(
                {k: round(v, 3) if isinstance(v, float) else v for k, v in rows[-1].items()}
            ),
            file=sys.stderr,
        )
    return rows


def main() -> None:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("ask")
    for name in ("judge", "data"):
        one.add_argument(name)
    one.add_argument("n", type=int)
    one.add_argument("folder", type=Path)
    one.add_argument("options", nargs="*")
    one.add_argument("--wordings", type=int, default=5)
    one.add_argument("--longest", type=int, default=0, help="leave out items of more characters")
    one.add_argument("--few", action="store_true", help="no forms and no paraphrases")
    two = commands.add_parser("compare")
    two.add_argument("folders", type=Path, nargs="+")
    two.add_argument("--splits", type=int, default=100)
    two.add_argument("--budget", type=float, default=8.0)
    two.add_argument("--csv", type=Path)
    args = parser.parse_args()
    if args.command == "ask":
        options = dict(each.split("=", 1) for each in args.options)
        resolve(args.judge, **options)
        record = {"set": args.data, "n": args.n, "wordings": args.wordings, "judge": args.judge}
        if args.longest or args.few:
            record |= {"longest": args.longest, "few": args.few}
        ask(args.folder, record, options)
        return
    tables = [each for folder in args.folders for each in tables_in(folder)]
    rows = [row for name, whole in tables for row in compare(name, whole, args.splits, args.budget)]
    if args.csv:
        write_csv(args.csv, rows)
    finish([{**row, "machine": machine("numpy")} for row in rows])


if __name__ == "__main__":
    main()
