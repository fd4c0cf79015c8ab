from __future__ import annotations

import csv
import dataclasses
import json
import shutil
from collections import Counter, defaultdict
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from judgesense.errors import JudgeSenseError
from judgesense_dataset.build import build_dataset
from judgesense_dataset.sources import get_source
from judgesense_dataset.sources.loader import Collected, Reader
from judgesense_dataset.sources.own import OwnData
from judgesense_dataset.sources.own import collect as collect_own
from judgesense_dataset.templates import DATA, TaskTemplates, load_templates

ROOT = Path(__file__).parents[2]
TRUTHFULQA = Path("truthfulqa/truthful_qa/generation/validation.parquet")
SUMMEVAL = Path("mteb/summeval/default/test.parquet")
MTBENCH = Path("lmsys/mt_bench_human_judgments/default/human.parquet")


@lru_cache(maxsize=32)
def collected(mirror: Path, name: str, n: int | None = 125, seed: int = 0) -> Collected:
    return get_source(name).collect(Reader(mirror), n, seed)


@pytest.fixture
def broken(mirror: Path, tmp_path: Path) -> Callable[..., Path]:
    """A copy of one of the mirror's sets in which a table was changed."""

    def make(path: Path, change: Callable[[pa.Table], pa.Table]) -> Path:
        name = Path(*path.parts[:2])
        shutil.copytree(mirror / name, tmp_path / name, copy_function=shutil.copyfile)
        for folder in (tmp_path / name).rglob("*"):
            folder.chmod(0o755)
        (tmp_path / name).chmod(0o755)
        pq.write_table(change(pq.read_table(mirror / path)), tmp_path / path)
        return tmp_path

    return make


def with_cell(table: pa.Table, column: str, row: int, value: object) -> pa.Table:
    values = table[column].to_pylist()
    values[row] = value
    at = table.column_names.index(column)
    return table.set_column(at, column, pa.array(values, table.schema.field(column).type))


def test_truthfulqa_asks_each_question_once_with_a_true_or_a_false_reference_answer(
    mirror: Path,
) -> None:
    items = collected(mirror, "truthfulqa").items
    assert len({item.fields["question"] for item in items}) == 125
    assert Counter(item.gold for item in items) == {"YES": 63, "NO": 62}
    rows = {row["question"]: row for row in pq.read_table(mirror / TRUTHFULQA).to_pylist()}
    for item in items:
        column = "correct_answers" if item.gold == "YES" else "incorrect_answers"
        answers = [answer.strip() for answer in rows[item.fields["question"]][column]]
        assert item.fields["response"] in answers


def test_summeval_gold_is_the_rounded_mean_of_the_very_summary_shown(mirror: Path) -> None:
    items = collected(mirror, "summeval").items
    assert Counter(item.gold for item in items) == dict.fromkeys("12345", 25)
    assert len({item.fields["summary"] for item in items}) == 125
    rows = {row["id"]: row for row in pq.read_table(mirror / SUMMEVAL).to_pylist()}
    for item in items:
        row = rows[item.cluster_id.removeprefix("summeval-")]
        system = int(item.system_id.rsplit("-", 1)[1])
        assert row["machine_summaries"][system].strip() == item.fields["summary"]
        assert abs(row["coherence"][system] - int(item.gold or 0)) <= 0.5


def test_scifact_sets_a_judged_passage_against_a_hard_unjudged_one(mirror: Path) -> None:
    items = collected(mirror, "scifact").items
    assert Counter(item.gold for item in items) == {"A": 63, "B": 62}
    judged = defaultdict(set)
    for split in ("train", "test"):
        for row in pq.read_table(
            mirror / f"BeIR/scifact-qrels/default/{split}.parquet"
        ).to_pylist():
            judged[str(row["query-id"])].add(str(row["corpus-id"]))
    corpus = pq.read_table(mirror / "BeIR/scifact/corpus/corpus.parquet").to_pylist()
    texts = {row["_id"]: row["text"].strip() for row in corpus}
    for item in items:
        ids = item.system_id.split("|")
        query = item.cluster_id.removeprefix("scifact-")
        right = "AB".index(item.gold or "")
        assert ids[right] in judged[query]
        assert ids[1 - right] not in judged[query]
        assert item.fields["passage_a"].endswith(texts[ids[0]])
        assert item.fields["passage_b"].endswith(texts[ids[1]])


def test_mtbench_gold_is_what_more_than_half_of_the_human_votes_say(mirror: Path) -> None:
    votes: dict[tuple[int, int, frozenset[str]], list[str]] = defaultdict(list)
    texts = {}
    for row in pq.read_table(mirror / MTBENCH).to_pylist():
        models = frozenset((row["model_a"], row["model_b"]))
        votes[row["question_id"], row["turn"], models].append(row.get(row["winner"], "tie"))
        for side in "ab":
            texts[row["question_id"], row[f"model_{side}"]] = [
                message["content"].strip() for message in row[f"conversation_{side}"]
            ]
    items = collected(mirror, "mtbench", None).items
    assert len(items) == 180
    assert Counter(item.gold for item in items) == {"A": 90, "B": 90}
    for item in items:
        question = int(item.cluster_id.removeprefix("mtbench-"))
        turn = int(item.item_id.split("-")[2].removeprefix("turn"))
        models = item.system_id.split("|")
        cast = votes[question, turn, frozenset(models)]
        winner = models["AB".index(item.gold or "")]
        assert 2 * cast.count(winner) > len(cast)
        for model, name in zip(models, ("response_a", "response_b"), strict=True):
            for text in texts[question, model][1 : 2 * turn : 2]:
                assert text in item.fields[name]


def test_pandalm_gold_is_what_two_of_three_people_prefer(shared: Path, tmp_path: Path) -> None:
    """The repository's file, made from the log: NaN for no input, 0 for a tie."""
    with (shared / "logs" / "pandalm" / "verdicts.csv").open(encoding="utf-8") as source:
        rows = [
            {
                "cmp_key": f"{row['system_1']}_{row['system_2']}",
                "instruction": row["instruction"],
                "input": row["input"] or float("nan"),
                "response1": row["response_1"],
                "response2": row["response_2"],
                **{
                    f"annotator{n}": int(row[f"annotator_{n}"].replace("TIE", "0"))
                    for n in (1, 2, 3)
                },
            }
            for row in csv.DictReader(source)
        ]
    file = tmp_path / "WeOpenML" / "PandaLM" / "testset-v1.json"
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps(rows), "utf-8")
    items = collected(tmp_path, "pandalm", None).items
    assert (len(items), len({item.cluster_id for item in items})) == (762, 153)
    assert Counter(item.gold for item in items) == {"A": 381, "B": 381}
    for item in items:
        row = rows[int(item.item_id.removeprefix("pandalm-"))]
        preferred = item.fields["response_a" if item.gold == "A" else "response_b"]
        side = 1 if str(row["response1"]).strip() == preferred else 2
        assert [row[f"annotator{n}"] for n in (1, 2, 3)].count(side) >= 2
        system = item.system_id.split("|")["AB".index(item.gold or "")]
        assert str(row["cmp_key"]).split("_")[side - 1] == system
    rows[4]["annotator2"] = 3
    file.write_text(json.dumps(rows), "utf-8")
    with pytest.raises(JudgeSenseError, match="row 5, column annotator2"):
        get_source("pandalm").collect(Reader(tmp_path), None, 0)
    with pytest.raises(JudgeSenseError, match="lacks WeOpenML/PandaLM"):
        get_source("pandalm").collect(Reader(tmp_path / "elsewhere"), None, 0)


@pytest.mark.parametrize("name", ["truthfulqa", "summeval", "scifact", "mtbench"])
def test_every_item_says_where_it_is_from(mirror: Path, name: str) -> None:
    for item in collected(mirror, name).items:
        assert (mirror / item.source).is_dir()
        assert item.revision.startswith("sha256:")
        assert len(item.revision) == 71
        assert item.license in ("apache-2.0", "mit", "cc-by-4.0")


@pytest.mark.parametrize(
    ("name", "n", "there_are"),
    [
        ("truthfulqa", 818, "817"),
        ("summeval", 180, "175"),
        ("scifact", 2000, "1105"),
        ("mtbench", 181, "180"),
    ],
)
def test_too_few_items_says_how_many_there_are(
    mirror: Path, name: str, n: int, there_are: str
) -> None:
    with pytest.raises(JudgeSenseError, match=rf"too few items.*\b{there_are}\b"):
        collected(mirror, name, n)


def with_column(table: pa.Table, column: str, values: object) -> pa.Table:
    return table.set_column(table.column_names.index(column), column, values)


def not_utf8(table: pa.Table) -> pa.Table:
    texts = [text.encode() for text in table["question"].to_pylist()]
    texts[2] = b"caf\xe9?"
    return with_column(table, "question", pa.array(texts, pa.binary()).view(pa.string()))


@pytest.mark.parametrize(
    ("path", "change", "reason"),
    [
        (
            TRUTHFULQA,
            lambda table: table.drop_columns(["incorrect_answers"]),
            "revision sha256:.*lacks the 'incorrect_answers' column",
        ),
        (
            SUMMEVAL,
            lambda table: with_column(table, "coherence", pa.array(["4.0"] * table.num_rows)),
            "has str, not list, in column 'coherence'",
        ),
        (
            TRUTHFULQA,
            lambda table: with_cell(table, "incorrect_answers", 4, ["No", " "]),
            "row 5, column incorrect_answers: must be non-empty",
        ),
        (TRUTHFULQA, not_utf8, "row 3: holds text that is not UTF-8"),
        (
            SUMMEVAL,
            lambda table: with_cell(table, "coherence", 0, [7.0] * 12),
            "row 1, column coherence: .*between 1 and 5",
        ),
        (
            SUMMEVAL,
            lambda table: pa.concat_tables([table, table.slice(0, 1)]),
            "row 101, column id: .*occurs twice",
        ),
        (
            MTBENCH,
            lambda table: with_cell(table, "winner", 1, "both"),
            "row 2, column winner: .*'both'",
        ),
    ],
)
def test_a_changed_set_is_refused_by_revision_row_and_column(
    broken: Callable[..., Path], path: Path, change: Callable[[pa.Table], pa.Table], reason: str
) -> None:
    names = {TRUTHFULQA: "truthfulqa", SUMMEVAL: "summeval", MTBENCH: "mtbench"}
    with pytest.raises(JudgeSenseError, match=reason):
        collected(broken(path, change), names[path])


def test_a_mirror_without_the_set_says_which_and_how_to_get_it(tmp_path: Path) -> None:
    with pytest.raises(JudgeSenseError, match=r"lacks the set mteb/summeval.*hf download"):
        collected(tmp_path, "summeval")


# Data of one's own.


@pytest.fixture(scope="module")
def factuality() -> TaskTemplates:
    return load_templates(DATA / "templates.yaml")["factuality"]


def test_own_columns_and_labels_are_mapped(own_data: OwnData, factuality: TaskTemplates) -> None:
    items = collect_own(own_data, factuality, Reader(), None, 0).items
    assert len(items) == 30
    assert items[1].item_id == "c1"
    assert items[1].fields == {"question": "What is 1 plus 1?", "response": "It is 3."}
    assert items[1].gold == "NO"
    assert items[1].license == "cc0-1.0"
    assert items[1].revision.startswith("sha256:")


def test_own_data_in_a_mirror_folder_of_a_hub_set(mirror: Path, factuality: TaskTemplates) -> None:
    data = OwnData(
        hub_id="openai/gsm8k", config="main", columns={"question": "question", "response": "answer"}
    )
    items = collect_own(data, factuality, Reader(mirror), 7, 0).items
    assert len(items) == 7
    assert items[0].source == "openai/gsm8k"
    assert items[0].license == "mit"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"a": ""}, "line 3, fields.response: "),
        ({"a": "half \ud800"}, "line 3: .*surrogate"),
        ({"key": "c0"}, "line 3, column item_id: 'c0' is already the id"),
        ({"ok": "perhaps"}, "line 3, column ok: the label 'perhaps' is not in --gold-map"),
    ],
)
def test_a_bad_row_of_ones_own_is_named_and_nothing_is_written(
    own_items: Path, own_data: OwnData, tmp_path: Path, change: dict[str, str], reason: str
) -> None:
    lines = own_items.read_text(encoding="utf-8").splitlines()
    lines[2] = json.dumps({**json.loads(lines[2]), **change})
    file = tmp_path / "bad.jsonl"
    file.write_text("\n".join(lines), encoding="utf-8")
    bad = dataclasses.replace(own_data, path=file)
    with pytest.raises(JudgeSenseError, match=reason):
        build_dataset(["own"], tmp_path / "out", own=bad, own_task="factuality", items=None)
    assert [path.name for path in tmp_path.iterdir()] == ["bad.jsonl"]
