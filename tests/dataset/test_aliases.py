"""Aliases of a template: read from its file, kept by a dataset, and read in the judges' answers."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import judgesense
from judgesense.errors import JudgeSenseError
from judgesense.log.folder import read_record
from judgesense.log.schema import read_log
from judgesense_dataset.build import build_dataset
from judgesense_dataset.load import load_benchmark
from judgesense_dataset.sources.own import OwnData
from judgesense_dataset.templates import load_templates

HEAD = """tasks:
  tono:
    labels: [A, B]
    layout: "{instruction} {text}"
    templates:
      - id: es
        text: "¿Opción uno o dos?"
"""
ALIASES = """        aliases:
          A: ["Opción uno", "Option one"]
          B: ["opción dos"]
"""
TAIL = """      - id: en
        text: "A or B?"
"""


@pytest.fixture
def items(tmp_path: Path) -> Path:
    path = tmp_path / "items.jsonl"
    rows = [{"item_id": f"i{n}", "text": f"text {n}", "gold": "AB"[n % 2]} for n in range(4)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return path


@pytest.fixture
def templates(tmp_path: Path) -> Callable[[str], Path]:
    def written(aliases: str = ALIASES) -> Path:
        path = tmp_path / "templates.yaml"
        path.write_text(HEAD + aliases + TAIL, "utf-8")
        return path

    return written


def speaks_spanish(messages: Sequence[str]) -> list[str]:
    return ["opción dos" if message.startswith("¿") else "B" for message in messages]


@pytest.mark.parametrize(
    ("aliases", "line", "reason"),
    [
        ('{A: ["uno"], C: ["tres"]}', 8, "'C' is not an answer; the answers are A, B"),
        ('{A: ["b"]}', 8, "'b' is the answer 'B'"),
        ('{A: ["(Ｂ)"]}', 8, "is the answer 'B'"),
        ('\n          A: ["uno"]\n          B: ["dos",\n             "UNO"]', 8, "alias of 'A'"),
        ('{A: ["..."]}', 8, "only punctuation"),
        ('{A: [""]}', 8, "must not be empty"),
        ('{A: "uno"}', 8, "valid list"),
        ("[uno]", 8, "valid dictionary"),
    ],
)
def test_an_alias_that_cannot_be_used_is_refused_with_its_line(
    templates: Callable[[str], Path], aliases: str, line: int, reason: str
) -> None:
    path = templates(f"        aliases: {aliases}\n")
    with pytest.raises(JudgeSenseError) as caught:
        load_templates(path)
    assert str(caught.value).startswith(f"{path}, line {line}: ")
    assert reason in str(caught.value)


def test_a_run_reads_them_records_them_and_is_not_resumed_with_others(
    templates: Callable[[str], Path], items: Path, tmp_path: Path
) -> None:
    def run(aliases: str = ALIASES, out: str = "run") -> None:
        judgesense.run(
            speaks_spanish, templates=templates(aliases), items=items, out=tmp_path / out, note=str
        )

    run()
    found = {row["template_id"]: row["decision"] for row in read_log(tmp_path / "run").to_pylist()}
    assert found == {"es": "B", "en": "B"}
    record = read_record(tmp_path / "run")
    assert record is not None
    assert record["aliases"] == {"es": {"A": ["Opción uno", "Option one"], "B": ["opción dos"]}}
    with pytest.raises(JudgeSenseError, match="other settings: data templates sha256"):
        run("")
    run("", "without")
    log = read_log(tmp_path / "without").to_pylist()
    assert {row["raw_decision"] for row in log if row["template_id"] == "es"} == {"UNCLEAR"}
    assert "aliases" not in (read_record(tmp_path / "without") or {})


def test_a_dataset_keeps_them(
    templates: Callable[[str], Path], items: Path, tmp_path: Path
) -> None:
    def built(aliases: str, name: str) -> Path:
        build_dataset(
            ["own"],
            tmp_path / name,
            templates=templates(aliases),
            own=OwnData(path=items),
            design="full",
            items=None,
            verdicts=False,
        )
        return tmp_path / name

    folder = built(ALIASES, "with")
    wanted = {"es": {"A": ("Opción uno", "Option one"), "B": ("opción dos",)}}
    benchmark = load_benchmark(folder)
    assert benchmark.aliases == wanted
    assert benchmark.select(limit=1).aliases == wanted
    assert "- name: aliases" in (folder / "README.md").read_text("utf-8")
    # A dataset without aliases has the columns that it always had.
    plain = built("", "without")
    assert "aliases" not in pq.read_schema(plain / "prompts" / "test.parquet").names
    assert load_benchmark(plain).aliases == {}


@pytest.mark.parametrize("column", ["{", "[]", '{"A": "uno"}', '{"C": ["uno"]}', '{"A": ["b"]}'])
def test_invalid_aliases_of_a_dataset_are_refused_with_their_place(
    templates: Callable[[str], Path], items: Path, tmp_path: Path, column: str
) -> None:
    build_dataset(
        ["own"],
        tmp_path / "set",
        templates=templates(ALIASES),
        own=OwnData(path=items),
        design="full",
        items=None,
        verdicts=False,
    )
    path = tmp_path / "set" / "prompts" / "test.parquet"
    table = pq.read_table(path).drop_columns(["aliases"])
    pq.write_table(table.append_column("aliases", pa.array([column] * len(table))), path)
    with pytest.raises(JudgeSenseError, match=r"template 'e[sn]', column aliases"):
        load_benchmark(tmp_path / "set")
