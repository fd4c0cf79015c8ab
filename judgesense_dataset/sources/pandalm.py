"""Preference from PandaLM's test set (Wang et al. 2024): two answers that three people compared."""

from __future__ import annotations

import re
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.request import urlopen

from judgesense.errors import JudgeSenseError
from judgesense.files.disk import sha256_of
from judgesense.files.tables import read_table
from judgesense.tasks import Item
from judgesense_dataset.sources.loader import (
    Collected,
    DataSource,
    Reader,
    SourceTable,
    all_or_drawn,
    citation,
    drop_repeated,
    generator,
    halves,
)

NAME, COMMIT = "WeOpenML/PandaLM", "3871806e72b4832f815ecafd24d3503c73403f48"
FILES = ("testset-v1.json", "verdicts.csv")
"""The repository's file, or the same rows as a table with the columns of `_ROW`."""

_LABELS = {"0": "TIE", "TIE": "TIE", "1": "1", "2": "2"}
_PEOPLE = ("annotator_1", "annotator_2", "annotator_3")
_ROW = (
    "instruction", "input", "response_1", "response_2", "system_1", "system_2", *_PEOPLE,
)  # fmt: skip


def collect(reader: Reader, n: int | None, seed: int) -> Collected:
    """Draw n pairs of answers on which at least two of three people prefer the same one.

    Ties, pairs without such a majority and pairs with an empty answer are left out. The cluster is
    the instruction with its input; ``system_id`` holds the two models in the order AB. The
    preferred answer is A in half of the items. Without a mirror, the file of the repository on
    GitHub is read, at ``--pin WeOpenML/PandaLM=COMMIT`` or `COMMIT`.
    """
    with tempfile.TemporaryDirectory() as scratch:
        path, revision = _file(reader, Path(scratch))
        rows = list(_rows(path))
    table = SourceTable(NAME, revision, "apache-2.0", rows)
    clusters: dict[str, str] = {}
    items: list[Item] = []
    empty = undecided = 0
    for number, row in enumerate(rows):
        query = "\n\n".join(filter(None, (row["instruction"], row["input"])))
        cluster = clusters.setdefault(query, f"pandalm-{number:03d}")
        (winner, votes), *_ = Counter(row[name] for name in _PEOPLE).most_common(1)
        if votes < 2 or winner == "TIE":
            undecided += 1
        elif not (row["response_1"] and row["response_2"]):
            empty += 1
        else:
            # One order for all, so that the same two answers are found whoever gave them.
            first, second = sorted("12", key=lambda side: row[f"response_{side}"])
            texts = {"query": query, "response_a": row[f"response_{first}"],
                     "response_b": row[f"response_{second}"]}  # fmt: skip
            items.append(
                table.item(
                    f"pandalm-{number:03d}", "preference", texts, "A" if winner == first else "B",
                    cluster, f"{row[f'system_{first}']}|{row[f'system_{second}']}",
                )
            )  # fmt: skip
    items, notes = drop_repeated(items, "pairs")
    rng = generator(seed, "pandalm")
    items = [
        item if (item.gold == "A") == winner_first else _swapped(item)
        for item, winner_first in zip(items, halves(len(items), rng), strict=True)
    ]
    notes.append(
        f"Gold is the answer that at least two of three people prefer; {undecided} of {len(rows)} "
        f"pairs are ties or have no majority and {empty} have an empty answer, and were left out. "
        "The number in item_id is the row of PandaLM's test set, from 0."
    )
    return all_or_drawn(items, notes, n, ("A", "B"), rng, "pairs")


def _swapped(item: Item) -> Item:
    one, two = item.fields["response_a"], item.fields["response_b"]
    return replace(
        item,
        fields={**item.fields, "response_a": two, "response_b": one},
        gold="B" if item.gold == "A" else "A",
        system_id="|".join(reversed(item.system_id.split("|"))),
    )


def _file(reader: Reader, scratch: Path) -> tuple[Path, str]:
    """The test set, and its revision: a commit, or the hash of a mirror's file."""
    if reader.mirror is not None:
        folder = reader.mirror / NAME
        path = next((folder / name for name in FILES if (folder / name).is_file()), None)
        if path is None:
            raise JudgeSenseError(
                f"the mirror {reader.mirror} lacks {NAME}/{FILES[0]}; copy data/{FILES[0]} of "
                f"github.com/{NAME} there"
            )
        return path, f"sha256:{sha256_of(path)}"
    commit = reader.revisions.get(NAME, COMMIT)
    url = f"https://raw.githubusercontent.com/{NAME}/{commit}/data/{FILES[0]}"
    try:
        with urlopen(url, timeout=60) as response:
            (scratch / FILES[0]).write_bytes(response.read())
    except OSError as error:
        raise JudgeSenseError(
            f"{url} cannot be read ({error}); copy the file to DIR/{NAME}/ and add --mirror DIR"
        ) from error
    return scratch / FILES[0], commit


def _rows(path: Path) -> Iterator[dict[str, str]]:
    for record in read_table(path):
        row = {_ours(name): _text(value) for name, value in record.values.items()}
        if "cmp_key" in row:
            row["system_1"], _, row["system_2"] = row["cmp_key"].partition("_")
        if missing := [name for name in _ROW if name not in row]:
            raise JudgeSenseError(
                f"{record.place}: no column {missing[0]!r}; it has {', '.join(row)}"
            )
        for name in _PEOPLE:
            if row[name] not in _LABELS:
                raise JudgeSenseError(
                    f"{record.place}, column {name}: must be 1, 2 or 0 (TIE), got {row[name]!r}"
                )
            row[name] = _LABELS[row[name]]
        yield row


def _ours(name: str) -> str:
    """response1 and annotator1 of the repository's file as response_1 and annotator_1."""
    return f"{name[:-1]}_{name[-1]}" if re.fullmatch(r"(response|annotator)\d", name) else name


def _text(value: Any) -> str:
    """A text; the file has NaN for no input, and a few answers are true or false."""
    return "" if value is None or value != value else str(value).strip()


SOURCE = DataSource("preference", "PandaLM's test set", collect, citation("wang2024pandalm"))
