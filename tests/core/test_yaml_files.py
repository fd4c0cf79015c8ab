from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from judgesense.errors import JudgeSenseError
from judgesense.files.yaml import parse_yaml, read_nodes, read_yaml

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
        ("a: 1\nb: &x [*x]\n", 2, "alias contains itself"),
        (BOMB, 5, "expand to more than"),
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
        ("[" * 100_000 + "]" * 100_000, "line 1: nested deeper than 100 levels"),
        ("".join(" " * i + "a:\n" for i in range(2000)), "line 101: nested deeper"),
        ("[" + "x," * 200_000 + "]", "line 1: the file has more than 100,000 values"),
    ],
)
def test_a_file_too_deep_or_too_large_is_refused_before_it_is_built(
    tmp_path: Path, read: Callable[[Path], object], text: str, said: str
) -> None:
    path = tmp_path / "f.yaml"
    path.write_text(text, "utf-8")
    with pytest.raises(JudgeSenseError, match=said):
        read(path)


@pytest.mark.parametrize("value", ["1" * 100_000, "9" * 30, "2020-99-99", "0x" + "f" * 5000])
def test_a_scalar_that_python_cannot_hold_is_named_by_its_line(value: str) -> None:
    with pytest.raises(JudgeSenseError, match=r"f\.yaml, line 2: invalid YAML"):
        parse_yaml(f"a: 1\nb: {value}", "f.yaml")
