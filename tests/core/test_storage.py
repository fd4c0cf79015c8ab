"""A run's place: a folder or a URL; parts are there whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path
from uuid import uuid4

import pyarrow as pa
import pytest

from judgesense.errors import JudgeSenseError
from judgesense.run_folder.storage import PartFolder, opened, remote_path

TABLE = pa.table({"prompt_id": ["a", "b"], "raw_decision": ["YES", None]})


@pytest.fixture(params=["folder", "memory"])
def parts(request: pytest.FixtureRequest, tmp_path: Path) -> PartFolder:
    if request.param == "folder":
        return PartFolder(tmp_path / "decisions")
    return PartFolder(remote_path(f"memory://{uuid4().hex}/decisions"))


def test_a_part_reads_back_as_it_was_written(parts: PartFolder) -> None:
    assert parts.names() == []
    assert parts.read("part-0.parquet") is None
    parts.write(TABLE, "part-1.parquet")
    parts.write(TABLE.slice(1), "part-0.parquet")
    assert parts.names() == ["part-0.parquet", "part-1.parquet"]
    assert parts.read("part-1.parquet") == TABLE


def test_a_part_set_aside_is_no_part_any_more(parts: PartFolder) -> None:
    parts.write(TABLE, "part-0.parquet")
    aside = parts.set_aside("part-0.parquet")
    assert "part-0.parquet" in aside
    assert parts.names() == []


def test_a_storage_without_atomic_puts_is_written_under_another_name_first(tmp_path: Path) -> None:
    # fsspec's own view of a folder, which is a storage with a rename.
    parts = PartFolder(remote_path(f"file://{tmp_path}/run/decisions"))
    parts.write(TABLE, "part-0.parquet")
    assert os.listdir(tmp_path / "run" / "decisions") == ["part-0.parquet"]
    assert parts.read("part-0.parquet") == TABLE


def test_what_a_run_leaves_at_a_url_is_there_when_it_is_opened_again() -> None:
    url = f"memory://{uuid4().hex}/run-7"
    with opened(url) as place:
        assert place.folder.name == "run-7"
        (place.folder / "run.json").write_text("{}")
        (place.folder / "figures").mkdir()
        (place.folder / "figures" / "a.png").write_bytes(b"png")
        place.parts.write(TABLE, "part-0.parquet")
        place.save()
    with opened(url, to_write=False) as place:
        assert (place.folder / "run.json").read_text() == "{}"
        assert not place.holds(["part-0.parquet", "part-1.parquet"])
        place.fetch_parts()
        assert PartFolder(place.folder / "decisions").read("part-0.parquet") == TABLE


def test_parts_without_their_run_json_are_refused() -> None:
    url = f"memory://{uuid4().hex}/run"
    PartFolder(remote_path(f"{url}/decisions")).write(TABLE, "part-0.parquet")
    with pytest.raises(JudgeSenseError, match=r"holds decisions but no run\.json"), opened(url):
        pass


def test_a_file_url_is_the_folder_itself(tmp_path: Path) -> None:
    with opened(f"file://{tmp_path}/run") as place:
        assert place.folder == tmp_path / "run"
        assert place.url is None


def test_errors_name_the_url_and_not_the_folder_that_stands_for_it() -> None:
    url = f"memory://{uuid4().hex}/run"
    with pytest.raises(JudgeSenseError) as raised, opened(url) as place:
        raise JudgeSenseError(f"{place.folder} holds another run")
    assert str(raised.value) == f"{url} holds another run"


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("s33://bucket/run", "unknown storage"),
        ("oci://bucket/run", "not installed"),
        ("https://me:secret@127.0.0.1:1/run", "cannot write to https://127.0.0.1:1/run"),
    ],
)
def test_a_url_that_cannot_be_written_is_refused_before_any_work(url: str, said: str) -> None:
    with pytest.raises(JudgeSenseError, match=said) as raised, opened(url):
        pass
    assert "secret" not in str(raised.value)


def test_a_url_that_became_a_path_is_refused() -> None:
    with pytest.raises(JudgeSenseError, match="as a string"), opened(Path("s3://bucket/run")):
        pass


def test_a_machine_that_does_not_share_the_folder_is_told_so(tmp_path: Path) -> None:
    parts = PartFolder(tmp_path / "run" / "decisions")
    with pytest.raises(JudgeSenseError, match="all machines share"):
        parts.require_usable("prompts.parquet")
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "prompts.parquet").touch()
    parts.require_usable("prompts.parquet")
    assert os.listdir(tmp_path / "run") == ["prompts.parquet"]
