"""A judge file for one test, and none of the machine's own."""

from __future__ import annotations

from pathlib import Path

import pytest

from local_judges.judge_files import VARIABLE


@pytest.fixture(autouse=True)
def no_file_of_ones_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "nothing"))


def own_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> Path:
    path = tmp_path / "mine.yaml"
    path.write_text(text, "utf-8")
    monkeypatch.setenv(VARIABLE, str(path))
    return path
