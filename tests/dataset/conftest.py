"""Folders that several dataset tests read: built once, never changed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from judgesense_dataset.build import build_dataset
from judgesense_dataset.sources.own import OwnData


@pytest.fixture(scope="session")
def four_tasks(mirror: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All four sources from the mirror, 125 items a task as drawn, not yet validated."""
    folder = tmp_path_factory.mktemp("dataset") / "four"
    build_dataset(["all"], folder, mirror=mirror, verdicts=False)
    return folder


@pytest.fixture(scope="session")
def own_items(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Thirty claims with columns of other names than ours."""
    path = tmp_path_factory.mktemp("own") / "claims.jsonl"
    rows = (
        {
            "key": f"c{n}",
            "q": f"What is {n} plus {n}?",
            "a": f"It is {2 * n + n % 2}.",
            "ok": (n % 2 == 0 and "true") or "false",
        }
        for n in range(30)
    )
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


OWN_COLUMNS = {"item_id": "key", "question": "q", "response": "a", "gold": "ok"}
OWN_LABELS = {"true": "YES", "false": "NO"}


@pytest.fixture(scope="session")
def own_data(own_items: Path) -> OwnData:
    """The claims with the map of their columns and labels."""
    return OwnData(path=own_items, columns=OWN_COLUMNS, labels=OWN_LABELS, license="cc0-1.0")


@pytest.fixture(scope="session")
def own_folder(own_data: OwnData, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dataset folder of the claims: needs no mirror."""
    folder = tmp_path_factory.mktemp("built") / "own"
    build_dataset(["own"], folder, own=own_data, own_task="factuality", items=None, verdicts=False)
    return folder
