"""Remedies that learn a judge's prior from input without content, or from permuted options."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import judgesense
from judgesense.decisions.view import view
from judgesense.errors import JudgeSenseError
from judgesense.pipeline.content_free import with_content_free
from judgesense.reporting.report import measure
from judgesense.run_folder.folder import read_run
from judgesense.run_folder.report import saved_report
from judgesense.statistics.calibration import permutation_offsets
from judgesense.trust.fitting import content_free_offsets, offsets_of, rotations
from judgesense.trust.grid import grid_of
from judgesense_dataset.load import load_benchmark
from local_judges.callable_judge import CallableJudge

LABELS = ("good", "fair", "poor")
PRIOR = {"A": 2.5, "B": 0.0, "C": -0.5}


def said(message: str) -> dict[str, float]:
    """A judge that reads the tone with noise, and prefers the names of the options by PRIOR."""
    head, _, tone = message.rpartition("Tone: ")
    noise = np.random.default_rng(list(message.encode())).normal(0, 0.3, 3)
    told = {}
    for (name, prior), own in zip(PRIOR.items(), noise, strict=True):
        meant = head.split(f"{name} = ")[1].split(",")[0].split(".")[0]
        told[name] = prior + (1.5 + own if meant == tone.split(" ")[0] else 0.0)
    total = np.log(np.exp(list(told.values())).sum())
    return {name: float(value - total) for name, value in told.items()}


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("priors")
    names = "ABC"
    templates = []
    for turn in range(3):
        meant = {name: LABELS[(at + turn) % 3] for at, name in enumerate(names)}
        shown = ", ".join(f"{name} = {label}" for name, label in meant.items())
        templates.append({"id": f"tone-{turn}", "text": f"Choose {shown}.", "label_map": meant})
    tasks = {"tone": {
        "labels": list(LABELS), "layout": "{instruction}\nTone: {tone}", "templates": templates,
    }}  # fmt: skip
    (folder / "templates.yaml").write_text(json.dumps({"tasks": tasks}))
    (folder / "items.jsonl").write_text(
        "\n".join(
            json.dumps({"item_id": str(n), "tone": f"{LABELS[n % 3]} {n}", "gold": LABELS[n % 3]})
            for n in range(30)
        )
    )
    return folder


@pytest.fixture(scope="module")
def run(place):
    judge = CallableJudge(lambda messages: [said(m) for m in messages], scoring="options")
    judgesense.run(
        judge, templates=place / "templates.yaml", items=place / "items.jsonl", out=place / "run",
        note=str, scoring="options", content_free=True,
    )  # fmt: skip
    return read_run(place / "run")


def test_both_priors_are_rows_of_the_report(run):
    found = {row["remedy"]: row for row in saved_report(run.folder)["remedies"]}
    assert found["as asked"]["accuracy"] < 0.5
    for name in ("calibrated by permuted options", "calibrated by content-free input"):
        assert found[name]["accuracy"] > 0.95
        assert found[name]["gain_ci_low"] > 0.3
        assert found[name]["prompts_per_item"] == 1


def test_content_free_prompts_change_nothing_else_in_the_report(run):
    asked = run.log.filter(run.log["variant"].is_null())
    assert len(run.log) - len(asked) == 9
    plain = measure(asked, run.pairs, run=run.record)
    whole = measure(run.log, run.pairs, run=run.record)
    for name in ("cells", "wordings", "recommendation"):
        assert plain[name] == whole[name]
    kept = [row for row in whole["remedies"] if "content-free" not in row["remedy"]]
    assert plain["remedies"] == kept
    assert len(kept) < len(whole["remedies"])
    assert plain["trust"][0]["checks"] == whole["trust"][0]["checks"]


def test_the_priors_are_those_of_the_judge(run):
    grid = grid_of(view(run.log, run.pairs, run.record).judged[0])
    mean = np.mean(list(PRIOR.values()))
    expected = np.array([[PRIOR[name] - mean for name in own] for own in grid.raw])
    assert rotations(grid) == [(0, 1, 2)]
    assert np.allclose(content_free_offsets(grid), expected, atol=1e-6)
    assert np.allclose(offsets_of(grid, "permuted"), expected, atol=0.15)
    by_name = np.stack(
        [grid.logprobs[:, n, 0][:, [grid.raw[n].index(x) for x in "ABC"]] for n in range(3)], axis=1
    )
    own = dict(zip("ABC", permutation_offsets(by_name), strict=True))
    assert offsets_of(grid, "permuted")[1].tolist() == [own[name] for name in grid.raw[1]]


def test_content_free_prompts_are_asked_once_a_wording(run):
    free = run.log.filter(run.log["variant"].is_valid()).to_pylist()
    assert sorted((row["template_id"], row["item_id"]) for row in free) == [
        (f"tone-{turn}", f"content-free-{n}") for turn in range(3) for n in (1, 2, 3)
    ]
    assert {row["gold"] for row in free} == {None}


@pytest.mark.parametrize("prior", ["content-free input", "permuted options"])
def test_a_prior_is_a_stabilised_judge(run, place, prior):
    made = judgesense.stabilise(
        run.folder, out=place / "stable.yaml", remedy=f"calibrated by {prior}"
    )
    assert made.rule.remedy == f"calibrated by {prior}"
    offsets = made.rule.offsets["tone-1"]  # A means fair here
    assert offsets["fair"] - offsets["good"] == pytest.approx(PRIOR["A"] - PRIOR["C"], abs=0.15)
    assert made.expected["accuracy"] > 0.95
    function = CallableJudge(lambda messages: [said(m) for m in messages], scoring="options")
    function.name = made.judge["name"]
    with judgesense.load_judge(place / "stable.yaml", judge=function) as judge:
        told = list(judge([{"tone": f"{label} new"} for label in LABELS]))
    assert [verdict.verdict for verdict in told] == list(LABELS)


def test_input_without_content_needs_probabilities_and_known_texts(place):
    with pytest.raises(JudgeSenseError, match="probabilities"):
        judgesense.run(str, out=place / "x", scoring="generate", content_free=True)
    assert not (place / "x").exists()
    with pytest.raises(JudgeSenseError, match="offers generate scoring only"):
        judgesense.run(
            lambda messages: ["A" for _ in messages], tasks=["relevance"], limit=2, note=str,
            content_free=True, out=place / "y",
        )  # fmt: skip
    known = load_benchmark("embedded").select(["coherence"], limit=2)
    unknown = pa.array([f"Say 1 to 5. {text}" for text in known.prompts["text"].to_pylist()])
    place_of = known.prompts.column_names.index("text")
    other = replace(
        known, wordings={}, layouts={}, prompts=known.prompts.set_column(place_of, "text", unknown)
    )
    with pytest.raises(JudgeSenseError, match="'coherence-1' is not known"):
        with_content_free(other)
