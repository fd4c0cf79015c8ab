"""Large synthetic files for ``measuring.py``, one function a kind of file."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.parquet as pq

from judgesense_dataset.folder import PAIR_ROWS

WORDINGS, ORDERS, LABELS = 5, ("AB", "BA"), ("A", "B")
SENTENCE = "The response is consistent with the source. "
CHUNK = 10_000
Codes = npt.NDArray[np.int64]

PREFERENCE = (
    "Which response is better? Answer A or B.",
    "Choose the preferred response: A or B.",
    "Given the user query, which assistant response is preferable — A or B?",
    "Compare the two responses. Pick A or B.",
    "Preference: A or B. One letter only.",
)


class Verdicts:
    """Verdicts of one judge: items in five wordings and both orders; a third of them are hard.

    ``update`` is the share of items on which another update of the judge draws again.
    """

    def __init__(self, rows: int, update: float = 0.0) -> None:
        rng = np.random.default_rng(0)
        items = rows // (WORDINGS * len(ORDERS))
        self.item = np.repeat(np.arange(items), WORDINGS * len(ORDERS))
        self.wording = np.tile(np.repeat(np.arange(WORDINGS), len(ORDERS)), items)
        self.order = np.tile(np.arange(len(ORDERS)), items * WORDINGS)
        self.gold = rng.integers(0, 2, items)[self.item] ^ self.order
        skill = np.where(rng.random(items) < 0.3, 0.65, 0.95)[self.item]
        right = rng.random(len(self.item)) < skill
        if update:
            again = np.random.default_rng(1)
            drawn = (again.random(items) < update)[self.item]
            right = np.where(drawn, again.random(len(self.item)) < skill, right)
        self.said = np.where(right, self.gold, 1 - self.gold)
        self.sure = np.abs(rng.normal(1.5, 0.8, len(self.item))) + 0.01

    def __len__(self) -> int:
        return len(self.item)

    def chunks(self) -> Iterator[slice]:
        """Slices of the rows, some at a time."""
        return (slice(at, at + CHUNK) for at in range(0, len(self), CHUNK))


def words(codes: Codes, names: tuple[str, ...] | list[str]) -> pa.Array:
    """The names at the codes."""
    indices = pa.array(codes.astype(np.int32))
    return pa.DictionaryArray.from_arrays(indices, pa.array(names)).cast(pa.string())


def write_log(path: Path, verdicts: Verdicts, characters: int = 0) -> None:
    """A CSV file of decisions; each answer has a text of so many characters."""
    reasons = SENTENCE * (characters // len(SENTENCE))
    names = ("judge", "task", "item_id", "template_id", "order", "raw_decision", "raw_text", "gold")
    schema = pa.schema((name, pa.string()) for name in names)
    with csv.CSVWriter(path, schema) as sink:
        for own in verdicts.chunks():
            decision = words(verdicts.said[own], LABELS)
            columns = {
                "judge": ["judge"] * len(decision),
                "task": ["preference"] * len(decision),
                "item_id": [f"item-{n}" for n in verdicts.item[own].tolist()],
                "template_id": words(
                    verdicts.wording[own], [f"preference-{n + 1}" for n in range(WORDINGS)]
                ),
                "order": words(verdicts.order[own], ORDERS),
                "raw_decision": decision,
                "raw_text": [f"{reasons}Verdict: {word}" for word in decision.to_pylist()],
                "gold": words(verdicts.gold[own], LABELS),
            }
            sink.write_table(pa.table(columns, schema=schema))


def write_probabilities(path: Path, verdicts: Verdicts) -> None:
    """A Parquet file of decisions with the log-probability of each option."""
    first = np.where(verdicts.said == 0, 1.0, -1.0) * verdicts.sure
    logprobs = np.stack([-np.logaddexp(0, -first), -np.logaddexp(0, first)], 1)
    columns: dict[str, Any] = {
        "judge": pa.array(["judge"] * len(verdicts)),
        "task": pa.array(["preference"] * len(verdicts)),
        "item_id": pa.array([f"item-{n}" for n in verdicts.item.tolist()]),
        "template_id": words(verdicts.wording, [f"preference-{n + 1}" for n in range(WORDINGS)]),
        "order": words(verdicts.order, ORDERS),
        "gold": words(verdicts.gold, LABELS),
        "option_logprobs": pa.ListArray.from_arrays(
            pa.array(np.arange(0, 2 * len(verdicts) + 1, 2, dtype=np.int32)),
            pa.StructArray.from_arrays(
                [words(np.tile([0, 1], len(verdicts)), LABELS), pa.array(logprobs.ravel())],
                ["option", "logprob"],
            ),
        ),
    }
    pq.write_table(pa.table(columns), path, row_group_size=CHUNK)


def write_responses(path: Path, rows: int) -> None:
    """Short free-text answers of four models in five wordings, with their references."""
    rng = np.random.default_rng(0)
    items = max(1, rows // (4 * WORDINGS))
    item = np.tile(np.arange(items), 4 * WORDINGS)
    names = [f"word{n}" for n in range(2000)]
    drawn = rng.integers(0, 2000, (len(item), 4)).tolist()
    truth = rng.integers(0, 2000, (items, 3)).tolist()
    right = rng.random(len(item)) < 0.6
    references = [f"the {names[a]} {names[b]} {names[c]}" for a, b, c in truth]
    texts = [
        f"I think it is {references[i]}." if good else f"It is {' '.join(names[k] for k in own)}."
        for i, own, good in zip(item.tolist(), drawn, right.tolist(), strict=True)
    ]
    table = {
        "model": words(np.repeat(np.arange(4), items * WORDINGS), [f"model-{n}" for n in range(4)]),
        "template_id": words(
            np.tile(np.repeat(np.arange(WORDINGS), items), 4), [f"w{n}" for n in range(WORDINGS)]
        ),
        "item_id": [f"q{n}" for n in item.tolist()],
        "text": texts,
        "reference": [references[n] for n in item.tolist()],
    }
    pq.write_table(pa.table(table), path)


def write_systems(verdicts: Path, labels: Path, rows: int) -> None:
    """Verdicts on four systems' outputs, and people's labels of 2% of them."""
    rng = np.random.default_rng(0)
    items = rows // 4
    system = np.tile(np.arange(4), items)
    item = np.repeat(np.arange(items), 4)
    good = rng.random(len(item)) < (0.5 + 0.05 * system)
    said = np.where(rng.random(len(item)) < 0.85, good, ~good)
    names = [f"system-{n}" for n in range(4)]
    table = pa.table(
        {
            "item_id": [f"item-{n}" for n in item.tolist()],
            "system_id": words(system, names),
            "verdict": words(said.astype(np.int64), ["FAIL", "PASS"]),
        }
    )
    csv.write_csv(table, verdicts)
    seen = np.flatnonzero(rng.random(len(item)) < 0.02)
    people = pa.table(
        {
            "item_id": [f"item-{n}" for n in item[seen].tolist()],
            "system_id": words(system[seen], names),
            "label": words(good[seen].astype(np.int64), ["FAIL", "PASS"]),
        }
    )
    csv.write_csv(people, labels)


def write_dataset(folder: Path, rows: int) -> None:
    """A dataset's folder of pairs: ten pairs of wordings an item, of alternating order."""
    rng = np.random.default_rng(0)
    names = np.array([f"word{n}" for n in range(5000)])
    pairs = [(a, b) for a in range(WORDINGS) for b in range(a + 1, WORDINGS)]
    path = folder / "preference" / "test.parquet"
    path.parent.mkdir(parents=True)
    (folder / "README.md").write_text(
        "---\nconfigs:\n- config_name: preference\n  data_files:\n  - split: test\n"
        "    path: preference/test.parquet\n---\n"
    )
    with pq.ParquetWriter(path, PAIR_ROWS) as sink:
        for start in range(0, rows // 10, 1000):
            found = []
            for n in range(start, min(start + 1000, rows // 10)):
                order = ORDERS[n % 2]
                query, one, two = (
                    " ".join(names[rng.integers(0, 5000, k)].tolist())
                    for k in (8, 12 + int(rng.integers(8)), 12 + int(rng.integers(8)))
                )
                gold = LABELS[int(rng.integers(2))]
                body = f"\n\nQuery: {query}\nA: {one}\nB: {two}"
                for a, b in pairs:
                    found.append(
                        {
                            "pair_id": f"i{n}:{order}:preference-{a + 1}~preference-{b + 1}",
                            "task_type": "preference",
                            "source_benchmark": "synthetic",
                            "prompt_a": PREFERENCE[a] + body,
                            "prompt_b": PREFERENCE[b] + body,
                            "response_being_judged": f"A: {one} | B: {two}",
                            "ground_truth_label": gold,
                            "item_id": f"i{n}",
                            "cluster_id": f"i{n}",
                            "template_a": f"preference-{a + 1}",
                            "template_b": f"preference-{b + 1}",
                            "order": order,
                            "label_map_a": '{"A":"A","B":"B"}',
                            "label_map_b": '{"A":"A","B":"B"}',
                            "license": "cc0-1.0",
                            "expected_a": gold,
                            "expected_b": gold,
                        }
                    )
            sink.write_table(pa.Table.from_pylist(found, schema=PAIR_ROWS))


def write_items(path: Path, rows: int) -> None:
    """Items for a judge: a query and two responses."""
    with path.open("w", encoding="utf-8") as sink:
        for n in range(rows):
            item = {
                "item_id": f"i{n}",
                "query": f"Which of {n} and {n + 1} is larger?",
                "response_a": f"The larger one is {n}.",
                "response_b": f"It is {n + 1}, by one.",
            }
            sink.write(json.dumps(item) + "\n")
