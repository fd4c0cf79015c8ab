"""Preference from PandaLM's test set (Wang et al. 2024): two answers that three people compared."""

from __future__ import annotations

import tempfile
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.request import urlopen

from judgesense.errors import JudgeSenseError
from judgesense.files.disk import sha256_of
from judgesense.files.tables import read_table
from judgesense.tasks import Item
from judgesense_dataset.sources import loader

NAME, COMMIT = "WeOpenML/PandaLM", "3871806e72b4832f815ecafd24d3503c73403f48"
FILE = "testset-v1.json"

_PEOPLE = ("annotator1", "annotator2", "annotator3")
_TEXTS = ("cmp_key", "instruction", "input", "response1", "response2")


def collect(reader: loader.Reader, n: int | None, seed: int) -> loader.Collected:
    """Draw n pairs of answers on which at least two of three people prefer the same one.

    Ties, pairs without such a majority and pairs with an empty answer are left out. The cluster is
    the instruction with its input; ``system_id`` holds the two models in the order AB. The
    preferred answer is A in half of the items. Without a mirror, the file of the repository on
    GitHub is read, at ``--pin WeOpenML/PandaLM=COMMIT`` or `COMMIT`.
    """
    rows, revision = _rows(reader)
    table = loader.SourceTable(NAME, revision, "apache-2.0", rows)
    clusters: dict[str, str] = {}
    items: list[Item] = []
    empty = undecided = 0
    for number, row in enumerate(rows):
        query = "\n\n".join(filter(None, (row["instruction"], row["input"])))
        cluster = clusters.setdefault(query, f"pandalm-{number:03d}")
        (winner, votes), *_ = Counter(row[name] for name in _PEOPLE).most_common(1)
        sides = [(row[f"response{side}"], side) for side in "12"]
        if votes < 2 or winner == "0":
            undecided += 1
        elif not all(text for text, _ in sides):
            empty += 1
        else:
            # One order for all, so that the same two answers are found whoever gave them.
            (text_a, first), (text_b, _) = sorted(sides)
            systems = row["cmp_key"].split("_")
            fields = {"query": query, "response_a": text_a, "response_b": text_b}
            item = table.item(
                f"pandalm-{number:03d}",
                "preference",
                fields,
                "A" if winner == first else "B",
                cluster,
                "|".join(systems if first == "1" else systems[::-1]),
            )
            items.append(item)
    items, notes = loader.drop_repeated(items, "pairs")
    rng = loader.generator(seed, "pandalm")
    items = [
        item if (item.gold == "A") == winner_first else _swap(item)
        for item, winner_first in zip(items, loader.halves(len(items), rng), strict=True)
    ]
    notes.append(
        f"Gold is the answer that at least two of three people prefer; {undecided} of {len(rows)} "
        f"pairs are ties or have no majority and {empty} have an empty answer, and were left out. "
        "The number in item_id is the row of PandaLM's test set, from 0."
    )
    return loader.all_or_drawn(items, notes, n, ("A", "B"), rng, "pairs")


def _swap(item: Item) -> Item:
    first, second = item.fields["response_a"], item.fields["response_b"]
    fields = {**item.fields, "response_a": second, "response_b": first}
    systems = "|".join(reversed(item.system_id.split("|")))
    return replace(item, fields=fields, gold="B" if item.gold == "A" else "A", system_id=systems)


def _rows(reader: loader.Reader) -> tuple[list[dict[str, str]], str]:
    if reader.mirror is not None:
        path = reader.mirror / NAME / FILE
        if not path.is_file():
            raise JudgeSenseError(
                f"the mirror {reader.mirror} lacks {NAME}/{FILE}; copy data/{FILE} of "
                f"github.com/{NAME} there"
            )
        return _read_file(path), f"sha256:{sha256_of(path)}"
    commit = reader.revisions.get(NAME, COMMIT)
    url = f"https://raw.githubusercontent.com/{NAME}/{commit}/data/{FILE}"
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / FILE
        try:
            with urlopen(url, timeout=60) as response:
                path.write_bytes(response.read())
        except OSError as error:
            raise JudgeSenseError(
                f"{url} cannot be read ({error}); copy the file to DIR/{NAME}/ and add --mirror DIR"
            ) from error
        return _read_file(path), commit


def _read_file(path: Path) -> list[dict[str, str]]:
    rows = []
    for record in read_table(path):
        row = {name: _text(record.values.get(name)) for name in (*_TEXTS, *_PEOPLE)}
        if wrong := [name for name in _PEOPLE if row[name] not in ("0", "1", "2")]:
            raise JudgeSenseError(
                f"{record.place}, column {wrong[0]}: must be 1, 2 or 0 (tie), got {row[wrong[0]]!r}"
            )
        rows.append(row)
    return rows


def _text(value: Any) -> str:
    """A text; older versions of the file have NaN for no input, and a few answers are booleans."""
    return "" if value is None or value != value else str(value).strip()


SOURCE = loader.DataSource("preference", "PandaLM's test set", collect, ("wang2024pandalm",))
