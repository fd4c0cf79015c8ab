"""The good files that wrong input is made from: `build` writes those of every reader once."""

from __future__ import annotations

import json
import math
import shutil
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

REPOSITORY = Path(__file__).resolve().parents[2]


def build(base: Path) -> None:
    """Write the good files of every reader under ``base``."""
    for write in (
        _tables,
        _inspect,
        _others,
        _runs,
        _own,
        _dataset,
        _answers,
        _stable,
        _check,
        _estimate,
        _studies,
        _action,
    ):
        write(base)


def _lines(path: Path, rows: Sequence[dict[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def _json(path: Path, document: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document))


def _tables(base: Path) -> None:
    rows = [
        {
            "judge": "j",
            "task": "tone",
            "item_id": f"i{item}",
            "cluster_id": f"c{item // 2}",
            "template_id": f"t{wording}",
            "order": "AB",
            "repeat": 0,
            "prompt_id": f"p{item}{wording}",
            "raw_text": "A.",
            "decision": "AB"[item % 2],
            "gold": "A",
            "latency_s": 0.5,
            "cost_usd": 0.001,
            "input_tokens": 10,
            "truncated": False,
            "status": "ok",
        }
        for item in range(4)
        for wording in range(2)
    ]
    folder = base / "table"
    _lines(folder / "log.jsonl", rows)
    pq.write_table(pa.Table.from_pylist(rows), folder / "log.parquet")
    header = list(rows[0])
    (folder / "log.csv").write_text(
        "\n".join([",".join(header), *(",".join(str(row[k]) for k in header) for row in rows)])
        + "\n"
    )


def _inspect(base: Path) -> None:
    samples = [
        {
            "id": item,
            "epoch": 1,
            "input": "Is it?",
            "target": ["yes"],
            "output": {
                "completion": "yes",
                "choices": [{"message": {"content": "yes"}}],
                "usage": {"m": {"input_tokens": 3, "output_tokens": 1}},
                "time": 0.5,
            },
            "scores": {
                "model_graded_qa": {
                    "value": "C",
                    "answer": "yes",
                    "explanation": "GRADE: C",
                    "metadata": {
                        "grading": [
                            {"role": "user", "content": "Grade it."},
                            {"role": "assistant", "content": "GRADE: C", "model": "g"},
                        ]
                    },
                }
            },
            "metadata": {"x": 1},
        }
        for item in (1, 2)
    ]
    header = {
        "version": 2,
        "status": "success",
        "eval": {
            "model": "m",
            "task": "tone",
            "task_args": {},
            "model_roles": {},
            "created": "2026-01-01T00:00:00+00:00",
            "scorers": [{"name": "model_graded_qa", "options": {}}],
        },
    }
    _json(base / "inspect" / "log.json", {**header, "samples": samples})
    with zipfile.ZipFile(base / "inspect" / "log.eval", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.json", json.dumps(header))
        for sample in samples:
            archive.writestr(f"samples/{sample['id']}_epoch_1.json", json.dumps(sample))


def _others(base: Path) -> None:
    for tool, name in (
        ("promptfoo", "promptfoo_results.json"),
        ("deepeval", "deepeval_test_run.json"),
    ):
        (base / tool).mkdir(parents=True)
        shutil.copy(REPOSITORY / "tests" / "importers" / "data" / name, base / tool / name)
    (base / "wide").mkdir()
    (base / "wide" / "wide.csv").write_text(
        "query,doc,human,judge-a,judge-b\n"
        + "".join(f"q{item // 2},d{item},{item % 4},{item % 4},1\n" for item in range(6))
    )


def _cli(*arguments: str, codes: tuple[int, ...] = (0,)) -> None:
    from typer.testing import CliRunner

    from judgesense.cli import app

    told = CliRunner().invoke(app, list(arguments))
    assert told.exit_code in codes, (told.output, told.exception)


def favours_first(messages: list[str]) -> list[dict[str, float]]:
    """Right in two of three prompts, and for the option shown first in the others."""
    replies = []
    for message in messages:
        first = 0.5 + 0.4 * math.sin(len(message))
        replies.append({"A": math.log(first), "B": math.log(1 - first)})
    return replies


def _favours_short(messages: list[str]) -> list[dict[str, float]]:
    """Whichever option the length of the prompt says."""
    return [{"A": -0.1 - len(m) % 3, "B": -0.2 - len(m) % 2} for m in messages]


def as_judge(function: Any, name: str = "hostile") -> Any:
    from local_judges.callable_judge import CallableJudge

    return CallableJudge(function, name=name, scoring="options")


def _runs(base: Path) -> None:
    import judgesense

    judges = [as_judge(favours_first, "hostile"), as_judge(_favours_short, "short")]
    judgesense.run(judges, out=base / "run", tasks=["relevance"], limit=6, scoring="options")
    for picture in (base / "run").glob("figures"):
        shutil.rmtree(picture)
    shutil.copytree(base / "run", base / "old-run")
    record = json.loads((base / "old-run" / "run.json").read_text())
    record.pop("digests")
    (base / "old-run" / "run.json").write_text(json.dumps(record))


def _own(base: Path) -> None:
    folder = base / "own"
    folder.mkdir()
    shutil.copy(REPOSITORY / "examples" / "politeness.yaml", folder / "own.yaml")
    shutil.copy(REPOSITORY / "examples" / "politeness.jsonl", folder / "items.jsonl")
    rows = [json.loads(line) for line in (folder / "items.jsonl").read_text().splitlines()]
    pq.write_table(pa.Table.from_pylist(rows), folder / "items.parquet")
    (folder / "items.csv").write_text(
        "item_id,gold,message\n"
        + "".join(f'{r["item_id"]},{r["gold"]},"{r["message"]}"\n' for r in rows)
    )
    (folder / "variants.yaml").write_text(_VARIANTS)
    (folder / "judges.yaml").write_text(_JUDGES)
    shutil.copytree(folder, base / "study")
    (base / "study" / "study.yaml").write_text(
        "title: Tone\nitems: items.jsonl\ntemplates: own.yaml\njudges: [gone.gguf]\n"
        "scoring: options\nrepeats: 2\nmeasures: [jss, wordings]\n"
    )


_VARIANTS = """\
variants:
  shout:
    class: equivalent
    group: format
    casing: upper
"""
_JUDGES = """\
endpoints:
  mine:
    base_url: http://127.0.0.1:9/v1
    key_variable: MY_KEY
judges:
  my-judge:
    summary: A judge of mine.
    endpoint: mine
    model: some-model
    options: {max_tokens: 20}
    price: {input: 1.0, output: 2.0, source: a page, date: 2026-01-01}
"""


def _dataset(base: Path) -> None:
    _cli(
        "dataset",
        "build",
        "--source",
        "own",
        "--templates",
        str(base / "own" / "own.yaml"),
        "--items",
        str(base / "own" / "items.jsonl"),
        "--out",
        str(base / "dataset"),
    )


def _answers(base: Path) -> None:
    rows = [
        {
            "model": "m",
            "prompt_id": f"p{item}",
            "item_id": f"i{item}",
            "template_id": "t1",
            "text": "The answer is 4",
            "finish_reason": "stop",
            "tokens": 5,
            "repeat": 0,
            "reference": "4",
            "latency_s": 0.5,
        }
        for item in range(3)
    ]
    _lines(base / "answers" / "answers.jsonl", rows)
    without = [{key: value for key, value in row.items() if key != "reference"} for row in rows]
    _lines(base / "answers" / "unreferenced.jsonl", without)
    _lines(
        base / "answers" / "references.jsonl",
        [{"item_id": row["item_id"], "reference": "4"} for row in rows],
    )
    _lines(
        base / "answers" / "questions.jsonl",
        [
            {
                "item_id": row["item_id"],
                "template_id": "t1",
                "message": "2 + 2?",
                "options": ["3", "4"],
            }
            for row in rows
        ],
    )
    pq.write_table(pa.Table.from_pylist(rows), base / "answers" / "answers.parquet")


def _stable(base: Path) -> None:
    import judgesense

    (base / "stable").mkdir()
    judgesense.stabilise(
        base / "run",
        judge="hostile@callable",
        task="relevance",
        out=base / "stable" / "stable.yaml",
        remedy="both orders",
    )
    items = [
        {
            "item_id": f"i{at}",
            "query": "sun",
            "passage_a": "a",
            "passage_b": "b",
            "gold": "A",
            "cluster_id": f"c{at}",
            "system_id": "s",
        }
        for at in range(3)
    ]
    _lines(base / "stable" / "items.jsonl", items)
    pq.write_table(pa.Table.from_pylist(items), base / "stable" / "items.parquet")


def _estimate(base: Path) -> None:
    folder = base / "estimate"
    rows = [
        {
            "item_id": f"i{item}",
            "system_id": system,
            "verdict": "YN"[(item + at) % 3 == 0],
            "judge": "j",
            "task": "t",
            "wording": wording,
            "probability": 0.8,
            "margin": 1.0,
            "ask_person": False,
        }
        for item in range(12)
        for at, system in enumerate("ab")
        for wording in ("w1", "w2")
    ]
    _lines(folder / "verdicts.jsonl", rows)
    pq.write_table(pa.Table.from_pylist(rows), folder / "verdicts.parquet")
    header = list(rows[0])
    (folder / "verdicts.csv").write_text(
        ",".join(header) + "\n" + "".join(",".join(map(str, r.values())) + "\n" for r in rows)
    )
    for name in ("week", "other-week"):
        _lines(folder / f"{name}.jsonl", rows)
    _cli(
        "monitor",
        str(folder / "other-week.jsonl"),
        "--against",
        str(folder / "verdicts.parquet"),
        "--history",
        str(folder / "history.jsonl"),
        codes=(0, 1, 3),
    )
    labelled = [
        (r["item_id"], r["system_id"], "YN"[at % 4 == 0]) for at, r in enumerate(rows[:32:2])
    ]
    (folder / "labels.csv").write_text(
        "item_id,system_id,label,rater\n" + "".join(f"{','.join(row)},me\n" for row in labelled)
    )


def _check(base: Path) -> None:
    shutil.copytree(REPOSITORY / "examples", base / "check", ignore=lambda *_: ["notebooks"])
    (base / "check" / "tone.txt").rename(base / "check" / "rubric.txt")
    (base / "check" / "tone.jsonl").rename(base / "check" / "rows.jsonl")
    (base / "check" / "rubric.wordings.yaml").write_text(_WORDINGS)


def _studies(base: Path) -> None:
    scores = [
        {"prompt": f"p{prompt}", "item": f"i{item}", "score": (prompt * item) % 3 % 2}
        for prompt in range(3)
        for item in range(12)
    ]
    _lines(base / "scores" / "scores.jsonl", scores)
    (base / "scores" / "scores.csv").write_text(
        "prompt,item,score\n" + "".join(",".join(map(str, r.values())) + "\n" for r in scores)
    )


def _action(base: Path) -> None:
    _json(
        base / "action" / "inputs.json",
        {
            "rubric": "r.txt",
            "data": "d.csv",
            "judge": "gpt-4o",
            "repeats": "1",
            "threshold": "0.8",
            "answers": "A,B",
            "options": "A=x,B=y",
            "settings": "dtype=bfloat16",
            "max-cost": "1.5",
        },
    )


_WORDINGS = """\
tasks:
  tone:
    labels: [POLITE, RUDE]
    layout: "{instruction}\\n\\nMessage: {message}"
    templates:
      - id: w1
        text: "Judge the tone of this message. One word: POLITE or RUDE."
      - id: w2
        text: "Decide whether the message below is POLITE or RUDE."
"""
