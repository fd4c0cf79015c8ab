"""The door: what cannot be read is one error with its place; what is written is written whole."""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from judgesense.comparison.monitor_history import read_history
from judgesense.errors import JudgeSenseError
from judgesense.files.disk import write_text
from judgesense.files.documents import parse_json, parse_yaml, read_json, read_nodes, read_yaml
from judgesense.files.tables import column_names, read_parquet, read_table
from judgesense.log.folder import read_record
from judgesense.measure.report_file import load_report

READERS: dict[str, Callable[[Path], Any]] = {
    "run.json": lambda path: read_record(path.parent),
    "report.json": lambda path: load_report(path.parent),
    "looks.jsonl": read_history,
    "log.json": read_json,
    "log.jsonl": lambda path: list(read_table(path)),
    "log.csv": lambda path: list(read_table(path)),
    "part.parquet": read_parquet,
    "footer.parquet": column_names,
    "own.yaml": read_yaml,
}


@pytest.mark.parametrize("name", READERS)
def test_a_pipe_is_no_file(name: str, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / name)
    with pytest.raises(JudgeSenseError, match=f"{name}.*a pipe or a device|damaged.*a pipe"):
        READERS[name](tmp_path / name)


def test_a_pipe_is_written_to_and_stays_one(tmp_path: Path) -> None:
    pipe, read = tmp_path / "pipe", list[str]()
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: read.append(pipe.read_text("utf-8")), daemon=True)
    reader.start()
    write_text(pipe, "verdicts")
    reader.join(20)
    assert read == ["verdicts"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert os.listdir(tmp_path) == ["pipe"]


def test_a_link_is_kept_and_its_file_replaced(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "real.txt").write_text("old", "utf-8")
    (tmp_path / "link.txt").symlink_to(Path("kept", "real.txt"))
    write_text(tmp_path / "link.txt", "new")
    assert (tmp_path / "link.txt").is_symlink()
    assert (tmp_path / "kept" / "real.txt").read_text("utf-8") == "new"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "not JSON .Expecting value, column 1"),
        ('{\n"a": }', "line 2, column 6"),
        (b"\xff{}", "not UTF-8 at byte 0"),
        ("[" * 100_000, "nested too deeply"),
        ("[" * 100_000 + "]" * 100_000, "nested too deeply"),
        ('{"a": ' + "1" * 100_000 + "}", "Exceeds the limit"),
        ('{"id": "\\ud83d"}', "half a surrogate pair"),
        (b'{"\\udc00": 1}', "half a surrogate pair"),
        ('{"a": {"b": 1, "c": 2, "b": 1}}', "the key 'b' appears twice"),
    ],
)
def test_what_cannot_be_read_is_one_error_that_names_its_place(
    text: str | bytes, said: str
) -> None:
    with pytest.raises(JudgeSenseError, match=f"log.jsonl, line 3: .*{said}"):
        parse_json(text, "log.jsonl, line 3")


@pytest.mark.parametrize("number", ["NaN", "-Infinity", "1e400"])
def test_a_number_that_is_not_finite_is_refused_where_none_may_be(number: str) -> None:
    with pytest.raises(JudgeSenseError, match=f"run.json: holds {number}, which is not a finite"):
        parse_json(f'{{"a": [{number}]}}', "run.json", finite=True)
    assert list(parse_json(f'{{"a": {number}}}', "run.json")) == ["a"]


def test_what_can_be_read_is_unchanged() -> None:
    text = '{"a": [1, 2.5, null, "\\ud83d\\ude00 \\u00e9"]}'
    assert parse_json(text, "x") == {"a": [1, 2.5, None, "😀 é"]}
    assert parse_json(text.encode(), "x") == parse_json(text, "x")


BOMB = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 12)
)


def test_values_are_typed_and_nodes_keep_text_and_line(tmp_path: Path) -> None:
    path = tmp_path / "f.yaml"
    path.write_text("seed: 1\nlabels: [YES, 1.0]\nbase: &b {x: 1}\nother: {<<: *b, y: 2}\n")
    assert read_yaml(path)["labels"] == [True, 1.0]
    assert read_yaml(path)["other"] == {"x": 1, "y": 2}
    labels = read_nodes(path).value["labels"]
    assert [label.value for label in labels.value] == ["YES", "1.0"]
    assert labels.where == f"{path}, line 2"
    assert parse_yaml("", "empty") is None


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ("a: 1\nb: {c: 1, c: 2}\n", 2, "'c' appears twice"),
        ("a: 1\nb: [1\n", 3, "invalid YAML"),
        ("a:\n  ? [1, 2]\n  : 3\n", 2, "must be text"),
        ("a: 1\nb: &x [*x]\n", 2, "aliases of aliases"),
        (BOMB, 2, "aliases of aliases"),
    ],
)
@pytest.mark.parametrize("read", [read_yaml, read_nodes])
def test_an_error_names_file_and_line(read, text: str, line: int, says: str, tmp_path) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text(text)
    with pytest.raises(JudgeSenseError) as raised:
        read(path)
    assert str(raised.value).startswith(f"{path}, line {line}: ")
    assert says in str(raised.value)


@pytest.mark.parametrize("read", [read_yaml, read_nodes])
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[" * 500 + "]" * 500, "line 1: nested deeper than 100 levels"),
        # PyYAML from 6.0.4 on refuses a thousand levels itself, in its own words.
        ("[" * 100_000 + "]" * 100_000, "line 1: .*nest"),
        ("".join(" " * i + "a:\n" for i in range(2000)), "line 101: nested deeper"),
        ("[" + "x," * 200_000 + "]", "line 1: .*more than 100,000 values"),
    ],
)
def test_a_file_too_deep_or_too_large_is_refused_before_it_is_built(
    tmp_path: Path, read: Callable[[Path], object], text: str, said: str
) -> None:
    path = tmp_path / "f.yaml"
    path.write_text(text, "utf-8")
    with pytest.raises(JudgeSenseError, match=said):
        read(path)


@pytest.mark.parametrize("value", ["1" * 100_000, "2020-99-99"])
def test_a_scalar_that_python_cannot_hold_is_refused(value: str) -> None:
    with pytest.raises(JudgeSenseError, match=r"f\.yaml: invalid YAML"):
        parse_yaml(f"a: 1\nb: {value}", "f.yaml")
