"""How a file is laid out: headers of two rows, encodings, runs and games in columns."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import openpyxl
import pytest
from door.cases import checked, readable

from judgesense.files.encoding import encoding_of

TRUE = [True, False, False, True, False, False] * 5
SAID = [True, False, True, True, False, True] * 5
WORDS = ["no", "yes"]


def pairs() -> list[list[str]]:
    """A person's word and a judge's, a row an item: they agree on two thirds."""
    return [[WORDS[true], WORDS[said]] for true, said in zip(TRUE, SAID, strict=True)]


HEADERS = (
    [["", "Tone", "", "Style", ""], ["id", "Human", "GPT-4o", "Human", "GPT-4o"]],
    [["id", "Tone", "", "Style", ""], ["", "expert", "judge", "expert", "judge"]],
    [["A title"], ["", "Tone", "", "Style", ""], ["id", "Mensch", "KI", "Mensch", "KI"]],
)


@pytest.mark.parametrize("header", HEADERS)
@pytest.mark.parametrize("suffix", ["csv", "xlsx"])
def test_a_header_of_two_rows_is_joined(
    header: list[list[str]], suffix: str, tmp_path: Path
) -> None:
    rows = [*header, *([f"i-{n}", *pair, *pair[::-1]] for n, pair in enumerate(pairs()))]
    path = tmp_path / f"file.{suffix}"
    if suffix == "csv":
        rows = [row + [""] * (5 - len(row)) for row in rows]
        path.write_text("\n".join(map(",".join, rows)), "utf-8")
    else:
        book = openpyxl.Workbook()
        for row in rows:
            book.active.append([cell or None for cell in row])
        book.save(path)
    found, _ = checked(path, tmp_path)
    assert {task: entry["accuracy"] for (task, _), entry in found.items()} == pytest.approx(
        {"tone": 2 / 3, "style": 2 / 3}
    )


@pytest.mark.parametrize(
    ("encoding", "names", "words"),
    [
        ("cp932", "番号,人手評価,モデル判定", "悪いです,とても良い"),
        ("euc_jp", "番号,人手評価,モデル判定", "悪いです,とても良い"),
        ("gb18030", "编号,人工标注,模型判定", "错误,正确"),
        ("big5", "編號,人工標註,模型判定", "錯誤,正確"),
        ("cp949", "번호,사람 평가,모델 평가", "부적절,적절"),
        ("cp1251", "номер,эксперт,модель", "неверно,верно"),
        ("utf-16", "id,human,judge", "no,yes"),
        ("cp1252", "n,avaliação,juiz", "não,opções boas"),
        ("utf-16-le", "编号,人工标注,模型判定", "错误,正确"),
    ],
)
def test_a_table_is_read_in_its_encoding(
    encoding: str, names: str, words: str, tmp_path: Path
) -> None:
    said = words.split(",")
    rows = [f"{n},{said[t]},{said[s]}" for n, (t, s) in enumerate(zip(TRUE, SAID, strict=True))]
    path = tmp_path / "file.csv"
    path.write_bytes("\n".join([names, *rows]).encode(encoding))
    assert encoding_of(path) == encoding
    assert checked(path, tmp_path)[0].popitem()[1]["accuracy"] == pytest.approx(2 / 3)


def test_a_damaged_table_is_no_other_script(tmp_path: Path) -> None:
    path = tmp_path / "file.csv"
    path.write_bytes("编号,人工标注,模型判定\n1,正确,错误\n".encode() + b"2,\xe6\xad,a\n")
    assert encoding_of(path) == "utf-8-sig"


@pytest.mark.parametrize(
    "names", [("run_1", "run_2"), ("Judge (attempt 1)", "Judge (attempt 2)"), ("1回目", "2回目")]
)
def test_runs_in_columns_are_repeats(names: tuple[str, str], tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {"case": f"c{n}", "human": true, names[0]: ["error", said][n > 2], names[1]: said}
        for n, (true, said) in enumerate(pairs())
    ]
    found, result = checked(rows, tmp_path)
    assert found.popitem()[1]["n"] == 27  # Of reruns, the first.
    assert readable(result) == (pytest.approx(27 / 30), 30)
    assert result.report.runs[0]["repeats"] == 2
    assert not checked([{k: row[k] for k in ("case", *names)} for row in rows], tmp_path / "b")[0]


def test_the_second_game_of_arena_hard_is_swapped(tmp_path: Path) -> None:
    games = [("A>B", "B>>A"), ("A>>B", "B>A"), ("B>A", "B>A"), ("A=B", "A=B")]
    rows = [
        {"question_id": f"q{n}", "games": [{"score": score} for score in games[n % 4]]}
        for n in range(40)
    ]
    _, result = checked(rows, tmp_path)
    assert result.trust[0]["checks"]["fair"]["estimate"] == pytest.approx(0.75)


def test_pairs_of_label_studio_have_sides(tmp_path: Path) -> None:
    def given(word: str) -> list[dict[str, Any]]:
        side = ["left", "right"][word == "yes"]
        return [{"from_name": "pw", "type": "pairwise", "value": {"selected": side}}]

    tasks = [
        {
            "id": n,
            "data": {"q": n},
            "annotations": [{"completed_by": 1, "result": given(true)}],
            "predictions": [{"model_version": "m", "result": given(said)}],
        }
        for n, (true, said) in enumerate(pairs())
    ]
    path = tmp_path / "tasks.json"
    path.write_text(json.dumps(tasks), "utf-8")
    assert checked(path, tmp_path)[0].popitem()[1]["accuracy"] == pytest.approx(2 / 3)


def test_an_abbreviation_is_its_label(tmp_path: Path) -> None:
    labels = ["correct", "partly correct", "incorrect"]
    short = {"partly correct": "part. correct", "incorrect": "Incorr."}
    rows = [
        {"id": n, "human": short.get(labels[n % 3], labels[n % 3]), "llm": labels[n % 3]}
        for n in range(30)
    ]
    (entry,) = checked(rows, tmp_path)[0].values()
    assert (entry["n"], entry["accuracy"]) == (30, 1.0)


def test_a_judge_of_another_subject_is_left_out(tmp_path: Path) -> None:
    rows = [
        {"id": n, "human_toxic": true, "llm_toxic": said, "llm_urgent": WORDS[n % 2]}
        for n, (true, said) in enumerate(pairs())
    ]
    ((_, entry),) = checked(rows, tmp_path)[0].items()
    assert (entry["judge"], entry["accuracy"]) == ("llm_toxic", pytest.approx(2 / 3))
