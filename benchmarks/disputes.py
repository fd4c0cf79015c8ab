"""Whose fault: are policy gaps and wrong labels found that were planted in the labels of real logs?

    python benchmarks/disputes.py [--repetitions 50]

Two people are drawn around the gold labels of PandaLM (texts), LLMBar and RAG-Eval (columns): each
errs at random on 10%, or one is stricter everywhere, or both err on 40% of a kind of items. Then
one of them follows another policy on 90% of such items. Wrong labels replace 5% of one person's.
"""

from __future__ import annotations

import argparse
import csv
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from common import MIRROR, finish, machine

from judgesense.measure.disputes import disputes_of
from judgesense.measure.raters import Raters
from judgesense.measure.words import ItemWords
from judgesense.statistics.arrays import Bools, Codes, Words
from judgesense.statistics.intervals import wilson

LOGS = MIRROR.parent / "logs"


@dataclass(frozen=True)
class Source:
    """A log: real labels (codes), by person, and judges' verdicts, with what items have."""

    name: str
    labels: tuple[str, ...]
    gold: Codes
    people: Mapping[str, Codes]
    judges: Mapping[str, Codes]
    groups: Mapping[str, Words]
    texts: tuple[str, ...]

    def raters(self, at: Codes, people: Mapping[str, Codes], gold: Codes) -> Raters:
        """Some of the items, with these people."""
        judges = {name: codes[at] for name, codes in self.judges.items()}
        is_scale = self.labels[0] == "0"
        judge = next(iter(judges))
        own = np.arange(len(at))
        return Raters(own, own, self.labels, is_scale, judge, judges, people, gold)


def sources() -> list[Source]:
    """The three logs."""
    with (LOGS / "pandalm" / "verdicts.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    texts = ("instruction", "input", "response_1", "response_2")
    three = ("1", "2", "TIE")
    found = [
        _source(
            "pandalm",
            rows,
            three,
            ("annotator_1", "annotator_2", "annotator_3"),
            ("gpt_3.5_turbo", "pandalm_7b"),
            ("system_1", "system_2"),
            texts,
        )
    ]
    items: dict[tuple[str, str], dict[str, str]] = {}
    with (LOGS / "llmbar" / "judgments.csv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            item = items.setdefault((row["dataset"], row["item"]), {})
            kind = row["dataset"].rpartition("/")
            item |= {"kind": kind[2], "human": row["label"]}
            item.setdefault(row["judge"], row["winner_noswap"])
    judges = ("GPT-4", "ChatGPT", "LLaMA2", "PaLM2")
    found.append(
        _source("llmbar", [*items.values()], ("1", "2"), ("human",), judges, ("kind",), ())
    )
    rows = []
    for path in sorted((LOGS / "rag_eval_9judges").glob("*_wide.csv")):
        with path.open(encoding="utf-8") as file:
            rows += list(csv.DictReader(file))
    judges = tuple(
        name for name in rows[0] if name not in ("dataset", "query_id", "doc_id", "human")
    )
    scale = ("0", "1", "2", "3")
    found.append(_source("rag_eval", rows, scale, ("human",), judges, ("dataset",), ()))
    return found


def _source(name, rows, labels, people, judges, groups, texts) -> Source:  # type: ignore[no-untyped-def]
    code = {label: at for at, label in enumerate(labels)}
    column = lambda of: np.array([code.get(row.get(of, ""), -1) for row in rows])  # noqa: E731
    given = {person: column(person) for person in people}
    votes = np.stack([np.sum([c == k for c in given.values()], axis=0) for k in range(len(labels))])
    gold = np.where(votes.max(axis=0) * 2 > len(people), votes.argmax(axis=0), -1)
    said = {judge: column(judge) for judge in judges}
    read = tuple("\n".join(row[t] for t in texts) for row in rows) if texts else ()
    kinds = {by: np.array([row[by] for row in rows], dtype=object) for by in groups}
    return Source(name, labels, gold, given, said, kinds, read)


def kinds_of(source: Source, at: Codes) -> tuple[dict[str, Words], ItemWords]:
    """The groups of some items by column and length, and their words."""
    groups = {by: names[at] for by, names in source.groups.items()}
    if source.texts:
        size = np.array([len(source.texts[item]) for item in at])
        third = np.digitize(size, np.quantile(size, [1 / 3, 2 / 3]))
        groups["length"] = np.array(["short", "middle", "long"], dtype=object)[third]
    words = words_of(source.texts)
    if not source.texts:
        return groups, words
    read = {str(n): n for n in range(len(at))}
    return groups, replace(words, items=read, among=words.among[:, at])


@cache
def words_of(texts: tuple[str, ...]) -> ItemWords:
    """The words of all items of a log."""
    return ItemWords.of({str(n): text for n, text in enumerate(texts)})


def noisy(gold: Codes, share: float | np.ndarray, n: int, rng: np.random.Generator) -> Codes:
    """Labels of which a share is another one, a neighbour on a scale of four."""
    other = (gold + rng.integers(1, n, len(gold))) % n
    if n > 3:
        other = np.clip(gold + rng.choice([-1, 1], len(gold)), 0, n - 1)
    return np.where(rng.random(len(gold)) < share, other, gold)


def drawn(source: Source, n: int, world: str, rng: np.random.Generator) -> tuple[bool, bool] | None:
    """Whether a different policy is claimed of two people, and whether it is the planted one; None
    where no kind of items of this sort has a tenth to a third of them."""
    at = rng.permutation(np.flatnonzero(source.gold >= 0))[:n]
    gold, size = source.gold[at], len(source.labels)
    groups, words = kinds_of(source, at)
    rows: list[Bools] = (
        list(words.among) if world in ("word", "hard", "rounds") and len(words.names) else []
    )
    if world == "column" or not rows:
        rows = [names == g for by, names in groups.items() if by != "length" for g in set(names)]
    if world == "length":
        rows = [groups["length"] == g for g in set(groups["length"])] if source.texts else []
    rows = [row for row in rows if 0.1 <= row.mean() <= 0.4]
    if not rows:
        return None
    kind = rows[rng.integers(len(rows))]
    share = np.where(kind, 0.4, 0.05) if world == "hard" else 0.1
    a, b = noisy(gold, share, size, rng), noisy(gold, share, size, rng)
    # Not the label that most of these items have anyhow.
    to = int(rng.choice([k for k in range(size) if (gold[kind] == k).mean() <= 0.5]))
    if "strict" in world:
        b = np.where(rng.random(len(at)) < 0.3, to, b)
    elif world not in ("noise", "hard"):
        b = np.where(kind & (rng.random(len(at)) < 0.9), to, b)
    people, named_labels = {"a": a, "b": b}, gold
    if "round" in world:
        # Each half of the items has the labels of one of them.
        half = rng.random(len(at)) < 0.5
        named_labels = np.where(half, a, b)
        people, groups["round"] = {"people": named_labels}, half.astype(str).astype(object)
    raters = source.raters(at, people, named_labels)
    found = disputes_of(raters, [str(x) for x in range(len(at))], groups, words)["policies"]
    named = {int(item) for each in found for item in each.examples}
    return bool(found), bool(named) and bool(np.mean([kind[item] for item in named]) > 0.5)


def errors(source: Source, rng: np.random.Generator) -> np.ndarray:
    """Of wrong labels planted at 5%: planted, found; of labels in doubt: planted, in all. The items
    are those on which all people agree."""
    every = np.stack([*source.people.values()])
    at = np.flatnonzero((source.gold >= 0) & (every == every[0]).all(axis=0))
    name = rng.choice([*source.people])
    people = {person: codes[at] for person, codes in source.people.items()}
    wrong = rng.random(len(at)) < 0.05
    size = len(source.labels)
    other = (people[name] + rng.integers(1, size, len(at))) % size
    people[name] = np.where(wrong, other, people[name])
    doubted = source.raters(at, people, source.gold[at]).doubted()
    before = source.raters(at, {k: v[at] for k, v in source.people.items()}, source.gold[at])
    return np.array([wrong.sum(), (wrong & doubted).sum(), doubted.sum(), before.doubted().sum()])


def main() -> None:
    """Print the rates, then one line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=50)
    options = parser.parse_args()
    rng, started, rows = np.random.default_rng(0), time.perf_counter(), []

    def add(name: str, hits: int, n: int, unit: str) -> None:
        low, high = wilson(hits / n, n, 1.96)
        rows.append(
            {
                "name": name,
                "peer": None,
                "ratio": None,
                "ours": round(hits / n, 3),
                "theirs": None,
                "unit": unit,
                "n": n,
                "machine": machine("numpy", "scipy"),
                "ci": [round(low, 3), round(high, 3)],
            }
        )
        print(f"{name}: {hits / n:.3f} [{low:.3f}, {high:.3f}] of {n}", flush=True)

    for source in sources():
        for world in (
            "noise",
            "strict",
            "hard",
            "word",
            "length",
            "column",
            "rounds",
            "strict round",
        ):
            for n in (300, 600):
                if world == "word" and not source.texts:
                    continue
                every = [drawn(source, n, world, rng) for _ in range(options.repetitions)]
                known = [each for each in every if each is not None]
                if not known:
                    continue
                which = world in ("word", "length", "column", "rounds")
                unit = "share that finds the planted policy" if which else "share with a claim"
                hits = sum(each[which] for each in known)
                add(f"{source.name}, {n} items, {world}", hits, len(known), unit)
        planted, found, doubted, before = sum(errors(source, rng) for _ in range(20))
        add(f"{source.name}, wrong labels found", int(found), int(planted), "recall")
        add(
            f"{source.name}, labels in doubt that are planted",
            int(found),
            int(doubted),
            "precision, if every real label is right",
        )
        print(f"  {before / 20:.0f} real labels are in doubt")
    print(f"{time.perf_counter() - started:.0f} s")
    finish(rows)


if __name__ == "__main__":
    main()
