"""Variants that change how a prompt is sent, and variants of a dataset folder."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import judgesense
from judgesense.errors import JudgeSenseError
from judgesense.pipeline.data import data_reference
from judgesense.pipeline.requirements import answerable
from judgesense.pipeline.settings import Settings
from judgesense_dataset.embedded import embedded_items
from judgesense_dataset.load import load_benchmark
from judgesense_dataset.recognition import language_of, recover_parts
from judgesense_dataset.templates import DATA, load_templates
from local_judges.api.endpoint import body_of
from local_judges.callable_judge import CallableJudge
from local_judges.options import ApiOptions, Style
from local_judges.plan import Requests
from local_judges.registry import JudgeSpec

ASKED = {"model": "m", "logprobs": False}
EFFORTS = {"effort-low", "effort-high"}
TAKES_EFFORT = JudgeSpec("m", "api", "m", {"style": {"reasoning_effort": True}})


def prompts_of(names: list[str], task: str = "relevance") -> pa.Table:
    settings = Settings.of(tasks=[task], limit=2)
    return data_reference(None, None, None, names).selected(settings).prompts


def test_the_instruction_is_sent_as_the_end_of_the_system_message() -> None:
    prompts = prompts_of(["system-message"])
    by_kind = {row["variant"]: row for row in prompts.to_pylist() if row["order"] == "AB"}
    base, moved = by_kind[None], by_kind["system-message"]
    assert moved["prompt_id"] != base["prompt_id"]
    assert f"{moved['system']}\n\n{moved['text']}" == base["text"]
    assert moved["system"] == "Which passage is more relevant to the query? Answer A or B."
    (request,) = [r for r in Requests(prompts) if r.prompt_id == moved["prompt_id"]]
    assert (request.message, request.system) == (base["text"], moved["system"])
    options = ApiOptions(system_prompt="Be fair.")
    system, user = body_of(request, options=options, **ASKED)["messages"]
    assert system == {"role": "system", "content": f"Be fair.\n\n{moved['system']}"}
    assert user == {"role": "user", "content": moved["text"]}
    plain = ApiOptions(system_prompt="Be fair.", style=Style(system_role=False))
    (whole,) = body_of(request, options=plain, **ASKED)["messages"]
    assert whole["content"] == f"Be fair.\n\n{base['text']}"


def test_an_effort_is_sent_where_the_endpoint_takes_one_and_else_left_out(tmp_path: Path) -> None:
    prompts = prompts_of(["effort-low", "effort-high"])
    requests = {r.effort: r for r in Requests(prompts)}
    assert requests["low"].prompt_id != requests["high"].prompt_id
    body = body_of(requests["high"], options=ApiOptions(), **ASKED)
    assert body["extra_body"] == {"reasoning_effort": "high"}
    assert "extra_body" not in body_of(requests[""], options=ApiOptions(), **ASKED)
    with pytest.raises(JudgeSenseError, match="'effort-low' variant sets a reasoning effort"):
        judgesense.run(
            lambda texts: ["A"] * len(texts),
            tasks=["relevance"],
            limit=2,
            note=str,
            variants=["effort-low"],
            out=tmp_path / "named",
        )
    whole = data_reference(None, None, None, ["intervention"]).selected(Settings.of(limit=1))
    for judge, wanted in ((CallableJudge(lambda texts: texts), set()), (TAKES_EFFORT, EFFORTS)):
        asked = set(answerable(judge, whole).prompts["variant"].to_pylist())
        assert "persona" in asked
        assert asked & EFFORTS == wanted


def test_a_dataset_folder_has_the_variants_of_its_items(four_tasks: Path) -> None:
    tasks = ["factuality", "relevance", "preference"]
    whole = load_benchmark(four_tasks).select(tasks, limit=6)
    entries, items = recover_parts(whole)
    assert list(entries) == tasks
    assert {item.task for item in items} == set(tasks)
    data = data_reference(four_tasks, None, None, ["json", "opposite-item"])
    found = data.selected(Settings.of(tasks=["relevance"], limit=6)).prompts.to_pylist()
    known = {row["prompt_id"] for row in load_benchmark(four_tasks).prompts.to_pylist()}
    assert {row["prompt_id"] for row in found if not row["variant"]} <= known
    added = [row for row in found if row["variant"] == "json"]
    assert len(added) == 6 * 2
    assert all(row["prompt_id"] not in known for row in added)


def test_an_embedded_set_is_recovered_as_it_was() -> None:
    _, items = recover_parts(load_benchmark("embedded"))
    own = {item.item_id: item for item in embedded_items()}
    assert len(items) == len(own)
    for item in items:
        wanted = own[item.item_id]
        assert (item.fields, item.gold, item.cluster_id) == (
            wanted.fields,
            wanted.gold,
            wanted.cluster_id,
        )
    assert language_of(load_templates(DATA / "de" / "templates.yaml")) == "de"
    assert language_of(recover_parts(load_benchmark("embedded-de"))[0]) == "de"


def test_an_item_that_reads_in_two_ways_has_no_variants(own_folder: Path, tmp_path: Path) -> None:
    folder = tmp_path / "unclear"
    shutil.copytree(own_folder, folder)
    (path,) = (folder / "prompts").glob("*.parquet")
    table = pq.read_table(path)
    rows = table.to_pylist()
    unclear = rows[0]["item_id"]
    for row in rows:
        if row["item_id"] == unclear:
            row["text"] += "\nResponse: Both."
    pq.write_table(pa.Table.from_pylist(rows, schema=table.schema), path)
    _, items = recover_parts(load_benchmark(folder))
    assert len(items) == len({row["item_id"] for row in rows}) - 1
    assert unclear not in {item.item_id for item in items}


def test_a_dataset_of_unknown_wordings_needs_their_file(own_folder: Path, tmp_path: Path) -> None:
    own = tmp_path / "mine.yaml"
    own.write_text((DATA / "templates.yaml").read_text("utf-8").replace("factuality-", "mine-"))
    whole = load_benchmark(own_folder)
    mine = pc.replace_substring(whole.prompts["template_id"], "factuality-", "mine-")
    place = whole.prompts.column_names.index("template_id")
    other = replace(whole, prompts=whole.prompts.set_column(place, "template_id", mine))
    with pytest.raises(JudgeSenseError, match="--templates FILE"):
        recover_parts(other)
    entries, items = recover_parts(other, own)
    assert entries["factuality"].templates[0].template_id == "mine-1"
    assert [i.fields for i in items] == [i.fields for i in recover_parts(whole)[1]]
    with pytest.raises(JudgeSenseError, match="--templates needs --items"):
        data_reference(None, own, None, ["json"])
