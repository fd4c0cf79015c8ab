"""The readers that are given wrong input: a folder of good files, and the command that reads them.

Each reader is a command line in which ``{dir}`` is the folder with the wrong file and ``{out}`` a
new one, or a Python function where no command reads the file without a model.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from hostile.good_files import as_judge, favours_first


@dataclass(frozen=True)
class Reader:
    """A reader: its name, its files, those to change, and how to call it.

    ``sealed``: run.json holds digests of the files, so a changed one may change no figure.
    ``weight``: its part of the cases; a report takes longer than an import.
    """

    name: str
    folder: str
    changed: tuple[str, ...]
    arguments: tuple[str, ...] = ()
    call: Callable[[Path], object] | None = None
    sealed: bool = False
    weight: float = 1.0


def _load_stabilised(folder: Path) -> object:
    from judgesense import load_judge

    judge = load_judge(folder / "stable.yaml", judge=as_judge(favours_first))
    return [v.verdict for v in judge([{"query": "sun", "passage_a": "a", "passage_b": "b"}])]


def _judge_items(name: str) -> Callable[[Path], object]:
    def call(folder: Path) -> object:
        import judgesense

        judge = as_judge(favours_first)
        found = judgesense.judge_items(
            folder / name, judge, folder / "out.jsonl", task="relevance", note=str
        )
        return str(found)

    return call


def _check_rows(folder: Path) -> object:
    import judgesense

    def polite(messages: list[str]) -> list[str]:
        return ["RUDE" if "!" in message else "POLITE" for message in messages]

    result = judgesense.check(
        folder / "rubric.txt",
        folder / "rows.jsonl",
        polite,
        out=folder / "out",
        note=str,
        wordings=folder / "rubric.wordings.yaml",
    )
    return result.to_dict()["jss"]


def _board(folder: Path) -> object:
    from hub_scripts.leaderboard.runs import find_runs
    from hub_scripts.leaderboard.site import write_site

    board = write_site(find_runs(str(folder)), folder / "site", note=str)
    return board["rows"], board["left_out"]


def _questions(folder: Path) -> object:
    from judgesense.pipeline.matching import read_questions
    from local_judges.responder import respond

    def four(messages: list[str]) -> list[str]:
        return ["4"] * len(messages)

    found = respond(four, read_questions(folder / "questions.jsonl"), folder / "out", note=str)
    return found.num_rows


def _action_inputs(folder: Path) -> object:
    from judgesense.integrations.github import read_inputs

    # GitHub's runner hands them over in a variable, which Python decodes like this.
    return str(read_inputs((folder / "inputs.json").read_text("utf-8", "surrogateescape")))


def _import(form: str, folder: str, file: str, *more: str, weight: float = 1.0) -> Reader:
    return Reader(
        f"import {form} {file}",
        folder,
        (file,),
        ("import", "{dir}/" + file, "--format", form, "--out", "{out}", *more),
        weight=weight,
    )


_OWN = ("--templates", "{dir}/own.yaml", "--items", "{dir}/items.jsonl", "--dry-run")
_RUN = ("run", "--judge", "smollm2-135m", "--out", "{out}")
_PARTS = ("decisions/part-00-*.parquet", "pairs.parquet", "prompts.parquet", "run.json")

READERS = (
    _import("table", "table", "log.csv"),
    _import("table", "table", "log.jsonl"),
    _import("table", "table", "log.parquet"),
    _import("inspect", "inspect", "log.json"),
    _import("inspect", "inspect", "log.eval"),
    _import("promptfoo", "promptfoo", "promptfoo_results.json"),
    _import("deepeval", "deepeval", "deepeval_test_run.json"),
    _import(
        "table",
        "wide",
        "wide.csv",
        "--columns",
        "task=:t,item_id={{query}}/{{doc}},gold=human,template_id=:one,raw_decision=*",
    ),
    Reader("report", "run", _PARTS, ("report", "{dir}"), sealed=True, weight=0.25),
    Reader("report without digests", "old-run", _PARTS, ("report", "{dir}"), weight=0.25),
    Reader("leaderboard", "run", ("report.json",), call=_board),
    Reader(
        "publish results",
        "run",
        ("report.json", "run.json"),
        ("publish", "results", "{dir}", "--repo", "me/results", "--dry-run"),
        weight=0.3,
    ),
    Reader(
        "compare",
        "old-run",
        ("report.json", "run.json"),
        ("compare", "{dir}", "{dir}", "--format", "json"),
        weight=0.2,
    ),
    Reader(
        "stabilise",
        "old-run",
        ("report.json", "run.json"),
        (
            "stabilise",
            "{dir}",
            "--task",
            "relevance",
            "--remedy",
            "both orders",
            "--judge",
            "hostile@callable",
            "--out",
            "{out}.yaml",
        ),
        weight=0.1,
    ),
    Reader(
        "rerun",
        "run",
        ("run.json",),
        ("report", "{dir}", "--format", "json"),
        sealed=True,
        weight=0.2,
    ),
    Reader("templates", "own", ("own.yaml",), (*_RUN, *_OWN)),
    Reader("items.jsonl", "own", ("items.jsonl",), (*_RUN, *_OWN)),
    Reader(
        "items.csv",
        "own",
        ("items.csv",),
        (*_RUN, "--templates", "{dir}/own.yaml", "--items", "{dir}/items.csv", "--dry-run"),
    ),
    Reader(
        "items.parquet",
        "own",
        ("items.parquet",),
        (*_RUN, "--templates", "{dir}/own.yaml", "--items", "{dir}/items.parquet", "--dry-run"),
    ),
    Reader(
        "variants",
        "own",
        ("variants.yaml",),
        (*_RUN, "--variants", "{dir}/variants.yaml", "--dry-run"),
    ),
    Reader("judge file", "own", ("judges.yaml",), ("judges", "list")),
    Reader(
        "dataset audit",
        "dataset",
        ("politeness/test.parquet", "README.md", "prompts/test.parquet"),
        ("dataset", "audit", "{dir}", "--format", "json"),
    ),
    Reader(
        "run --dataset",
        "dataset",
        ("politeness/test.parquet", "prompts/test.parquet"),
        ("run", "--judge", "smollm2-135m", "--dataset", "{dir}", "--dry-run", "--out", "{out}"),
    ),
    Reader(
        "study",
        "study",
        ("study.yaml",),
        ("study", "run", "{dir}/study.yaml", "--out", "{out}"),
        weight=0.3,
    ),
    Reader("match", "answers", ("answers.jsonl",), ("match", "{dir}/answers.jsonl")),
    Reader("match parquet", "answers", ("answers.parquet",), ("match", "{dir}/answers.parquet")),
    Reader("stabilised judge", "stable", ("stable.yaml",), call=_load_stabilised),
    Reader("judge items.jsonl", "stable", ("items.jsonl",), call=_judge_items("items.jsonl")),
    Reader("judge items.parquet", "stable", ("items.parquet",), call=_judge_items("items.parquet")),
    Reader(
        "monitor",
        "estimate",
        ("history.jsonl", "verdicts.parquet"),
        (
            "monitor",
            "{dir}/week.jsonl",
            "--against",
            "{dir}/verdicts.parquet",
            "--history",
            "{dir}/history.jsonl",
        ),
        weight=0.5,
    ),
    Reader(
        "migration",
        "estimate",
        ("week.jsonl",),
        ("compare", "{dir}/verdicts.jsonl", "{dir}/week.jsonl", "--migration"),
        weight=0.3,
    ),
    Reader("check", "check", ("rows.jsonl", "rubric.wordings.yaml"), call=_check_rows, weight=0.3),
    Reader(
        "estimate verdicts",
        "estimate",
        ("verdicts.jsonl", "verdicts.csv", "verdicts.parquet"),
        ("estimate", "{dir}/{file}", "--labels", "{dir}/labels.csv", "--positive", "Y"),
    ),
    Reader(
        "monitor week",
        "estimate",
        ("week.jsonl",),
        (
            "monitor",
            "{dir}/week.jsonl",
            "--against",
            "{dir}/verdicts.parquet",
            "--history",
            "{dir}/new.jsonl",
        ),
    ),
    Reader(
        "labels to add",
        "estimate",
        ("labels.csv",),
        ("estimate", "{dir}/verdicts.jsonl", "--labels", "{dir}/labels.csv", "--positive", "Y"),
    ),
    Reader(
        "match references",
        "answers",
        ("references.jsonl",),
        ("match", "{dir}/unreferenced.jsonl", "--references", "{dir}/references.jsonl"),
    ),
    Reader("questions", "answers", ("questions.jsonl",), call=_questions),
    Reader("check rubric", "check", ("rubric.txt",), call=_check_rows, weight=0.3),
    Reader(
        "estimate run",
        "old-run",
        ("run.json",),
        ("estimate", "{dir}", "--judge", "hostile@callable", "--positive", "A"),
        weight=0.3,
    ),
    Reader(
        "dataset show",
        "dataset",
        ("politeness/test.parquet", "README.md"),
        ("dataset", "show", "{dir}"),
        weight=0.5,
    ),
    Reader(
        "dataset build",
        "own",
        ("own.yaml", "items.jsonl"),
        (
            "dataset",
            "build",
            "--source",
            "own",
            "--templates",
            "{dir}/own.yaml",
            "--items",
            "{dir}/items.jsonl",
            "--no-verdicts",
            "--out",
            "{out}",
        ),
        weight=0.1,
    ),
    Reader(
        "prompt scores",
        "scores",
        ("scores.csv", "scores.jsonl"),
        ("study", "prompt-ranking", "--scores", "{dir}/{file}", "--sizes", "4,6", "--out", "{out}"),
        weight=0.2,
    ),
    Reader("action inputs", "action", ("inputs.json",), call=_action_inputs, weight=0.5),
    Reader(
        "estimate labels",
        "estimate",
        ("labels.csv",),
        ("estimate", "{dir}/verdicts.jsonl", "--labels", "{dir}/{file}", "--positive", "Y"),
    ),
)
