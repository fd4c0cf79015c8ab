"""The study of paraphrase robustness, with functions as judges and with real models."""

from __future__ import annotations

import csv
import json
import math
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from judgesense.errors import JudgeSenseError
from judgesense.reporting.study_result import Result
from judgesense.studies.paraphrase_robustness import paraphrase_robustness
from judgesense.studies.paraphrase_robustness.grid import make_plan
from judgesense_dataset.embedded import load_attributes
from local_judges.callable_judge import CallableJudge
from local_judges.protocol import Answer, Request

ASKED: Counter[str] = Counter()
"""How many prompts each function was given."""


def without_cost(result: Result) -> Result:
    """The result without its times."""
    return replace(result, tables=[table for table in result.tables if table.name != "cost"])


def rater(name: str, score: Callable[[str], int]) -> Callable[[list[str]], list[str]]:
    """A judge that writes a score, and a sentence where it is asked why."""

    def judge(prompts: list[str]) -> list[str]:
        ASKED[name] += len(prompts)
        return [
            "It reads well." if "say in one sentence why" in p else str(score(p)) for p in prompts
        ]

    judge.__name__ = name
    return judge


def judges() -> list[Callable[[list[str]], list[str]]]:
    return [
        rater("steady", lambda prompt: 4),
        rater("reader", lambda prompt: int(re.findall(r"grade (\d)", prompt)[0])),
        rater("moody", lambda prompt: 1 + len(prompt.split("\n")[0]) % 3),
    ]


fuser = rater("fuser", lambda prompt: int(re.findall(r"Judge 2: (\d)", prompt)[0]))


def run(out: Path, essays: Path, **options: object) -> Any:
    given = {
        "tasks": ["essays"],
        "data": {"essays": str(essays)},
        "limit": 6,
        "paraphrases": 4,
        "scoring": "generate",
        **options,
    }
    asked = {"twice": judges()[:1] * 2, 2: judges()[:2]}.get(given.pop("judges", 3), judges())
    return paraphrase_robustness(asked, out, note=lambda _: None, **given)


@pytest.mark.slow
def test_a_study_with_functions_finds_who_reads_who_is_numb_and_who_is_moody(
    tmp_path: Path, essays: Path, golden: Callable[[Result, str], None]
) -> None:
    result = run(tmp_path / "out", essays, limit=12, fuser=fuser)
    golden(without_cost(result), "paraphrase-generate")
    cells = {(row["attribute"], row["judge"]): row for row in result.table("configurations").rows}
    reader = cells["essay-content", "reader"]
    assert (reader["accuracy"], reader["near"], reader["gap"]) == (1.0, 1.0, 0.0)
    assert reader["unrounded"] < 1.0  # some means are no whole numbers
    insensitive = [row["judge"] for row in result.table("judges").rows if row["finding"]]
    assert insensitive == ["steady"]
    strategies = {row["strategy"]: row for row in result.table("strategies").rows}
    assert strategies["fuser"]["accuracy"] == 1.0  # it takes the reader's word
    assert strategies["fuser"]["calls"] == 7  # three ratings, three reasons, one decision
    (best,) = result.table("best_strategies").rows  # all of essays is subjective
    single = strategies["single judge"]["accuracy"]
    assert (best["strategy"], best["accuracy"]) == ("fuser", 1.0)
    assert best["delta"] == pytest.approx(1 - single)
    assert best["gain"] == pytest.approx(1 - single)
    assert (best["paper_best"], best["paper_delta"]) == (0.54, pytest.approx(0.35))
    found = {(row["judge"], row["figure"]): row for row in result.table("correlations").rows}
    assert {judge for judge, _ in found} == {"all", "steady", "reader", "moody"}
    assert found["moody", "sensitivity"]["n"] == 3
    assert found["moody", "sensitivity"]["paper_pearson"] is None
    stated = {(row["who"], row["figure"]): row for row in result.table("published").rows}
    ours = stated["claude-sonnet-4.5", "accuracy"]
    means = [row["accuracy"] for row in result.table("judges").rows]
    assert (ours["lowest"], ours["highest"]) == (pytest.approx(min(means)), 1.0)
    assert stated["eight judges", "above 0.90 on understandability"]["status"] == "not asked"
    assert stated["three people", "consistency on answerability"]["status"] == "quoted"
    result.write(tmp_path / "out")
    for name in ("study.md", "study.json", "tables/mitigations.csv", "figures/accuracy_gap.svg"):
        assert (tmp_path / "out" / name).stat().st_size > 0


def test_the_papers_printed_wordings_are_two_of_coherence_and_five_of_interestingness() -> None:
    plan = make_plan(paper=True)
    counts = {name: len(plan.paraphrases_of(one)) for name, one in plan.attributes.items()}
    assert counts == {"summarisation-coherence": 2, "dialogue-interestingness": 5}
    text = plan.attributes["dialogue-interestingness"].templates.templates[0].text
    assert text.startswith("Is the response dull/interesting? When evaluating a response")
    with pytest.raises(JudgeSenseError, match="the paper prints wordings only of"):
        make_plan(paper=True, attributes=["clarity", "coherence"])


@pytest.mark.slow
def test_a_stopped_study_goes_on_and_a_finished_one_asks_nothing(
    tmp_path: Path, essays: Path
) -> None:
    ASKED.clear()
    first, second, third = judges()

    def broken(prompts: list[str]) -> list[str]:
        raise RuntimeError("the power is gone")

    broken.__name__ = "moody"
    options = {
        "tasks": ["essays"],
        "data": {"essays": str(essays)},
        "limit": 6,
        "paraphrases": 4,
        "scoring": "generate",
        "note": lambda _: None,
    }
    with pytest.raises(RuntimeError):
        paraphrase_robustness([first, second, broken], tmp_path / "out", **options)
    prompts = 3 * 6 * 5
    assert (ASKED["steady"], ASKED["reader"], ASKED["moody"]) == (prompts, prompts, 0)
    paraphrase_robustness([first, second, third], tmp_path / "out", **options)
    assert ASKED["steady"] == prompts
    before = dict(ASKED)
    paraphrase_robustness([first, second, third], tmp_path / "out", **options)
    assert before == ASKED
    essays.write_bytes(b"")
    with pytest.raises(JudgeSenseError, match="other settings"):
        paraphrase_robustness([first, second, third], tmp_path / "out", **options)
    assert before == ASKED


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"attributes": ["beauty"]}, "unknown attribute 'beauty'; choose from summarisation"),
        ({"tasks": ["poems"]}, "unknown task 'poems'"),
        ({"data": {"essays": "nowhere.csv"}}, "nowhere.csv: no such file; .*asap"),
        ({"data": {"poems": "x"}}, "--source: unknown task poems; use dialogue"),
        ({"limit": 1}, "use 2 items or more"),
        ({"paraphrases": 11}, "2 to 10 paraphrases"),
        ({"scoring": "both"}, "unknown scoring .both."),
        ({"tolerance": -1}, "tolerance"),
        ({"judges": 2, "fuser": fuser}, r"a fuser needs at least 3 judges, got 2"),
        ({"judges": "twice"}, r"steady is given twice"),
    ],
)
def test_bad_input_is_refused_before_judging(
    tmp_path: Path, essays: Path, options: dict[str, Any], said: str
) -> None:
    ASKED.clear()
    with pytest.raises(JudgeSenseError, match=said):
        run(tmp_path / "out", essays, **options)
    assert not ASKED
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("column", "value", "said"),
    [
        ("content", "7", "row 3, content: the human score '7' is off the scale of essay-content"),
        ("language", "", "row 3, language: the human score '' is off the scale"),
        ("essay", " ", "row 3, column essay: "),
        ("item_id", "e1", "row 3: the id 'e1' appears twice"),
    ],
)
def test_a_file_with_a_fault_is_named_with_its_row_before_judging(
    tmp_path: Path, essays: Path, column: str, value: str, said: str
) -> None:
    with essays.open(encoding="utf-8", newline="") as source:
        rows = list(csv.DictReader(source))
    rows[2][column] = value
    with essays.open("w", newline="", encoding="utf-8") as sink:
        writer = csv.DictWriter(sink, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    ASKED.clear()
    with pytest.raises(JudgeSenseError, match=re.escape(said)):
        run(tmp_path / "out", essays)
    assert not ASKED


NATURALNESS = load_attributes()["dialogue-naturalness"]
BASE = NATURALNESS.templates.templates[0].text
REASON = "Do not rate it again"


def judge(name: str, say: Callable[[str], Any], **options: Any) -> CallableJudge:
    return CallableJudge(lambda messages: [say(m) for m in messages], name=name, **options)


class Failing(CallableJudge):
    """A judge one of whose requests fails: the base wording on the third text."""

    def _answer(self, request: Request, reply: Any) -> Answer:
        if request.text.startswith(BASE) and "text 2," in request.text:
            return Answer(error="HTTP 500")
        return super()._answer(request, reply)


def rating(message: str) -> str:
    """Moved by wordings and texts."""
    return "It reads well." if REASON in message else str(1 + sum(map(ord, message)) % 3)


def probable(message: str) -> dict[str, float]:
    return {label: math.log(0.5 if label == rating(message) else 0.25) for label in "123"}


def naturalness(
    folder: Path, judges: list[CallableJudge], items: int = 6, **options: Any
) -> Result:
    """A study of dialogue-naturalness with three paraphrases."""
    folder.mkdir(exist_ok=True)
    data = folder / "dialogues.jsonl"
    rows = [
        {"context": "Hello.", "response": f"text {at}, a reply", "naturalness": 1 + at % 3}
        for at in range(items)
    ]
    data.write_text("\n".join(map(json.dumps, rows)) + "\n", "utf-8")
    return paraphrase_robustness(
        judges,
        folder / "out",
        attributes=["naturalness"],
        data={"dialogue": str(data)},
        limit=items,
        paraphrases=3,
        note=lambda _: None,
        **options,
    )


def test_a_failed_request_under_the_base_wording_leaves_its_item_out_of_the_control(
    tmp_path: Path, golden: Callable[[Result, str], None]
) -> None:
    failing = Failing(
        lambda messages: [probable(m) for m in messages], name="broken", scoring="options"
    )
    whole = judge("whole", probable, scoring="options")
    result = naturalness(tmp_path, [failing, whole])
    golden(without_cost(result), "paraphrase-options")
    assert [row["n_items"] for row in result.table("configurations").rows] == [6, 6]
    assert result.table("control").rows[-1]["n_items"] == 5 + 6


def test_the_same_prompt_is_really_asked_also_in_text(tmp_path: Path) -> None:
    asked: Counter[str] = Counter()

    def say(message: str) -> str:
        """Right whenever a text is shown for the first time, else a 1; wordings do not matter."""
        asked[message] += 1
        level = 1 + int(message.partition("text ")[2].partition(",")[0]) % 3
        return str(level if asked[message] < 3 else 1)

    options = {"scoring": "generate", "same_prompt": True}
    result = naturalness(tmp_path, [judge("tired", say)], **options)
    kind, every = result.table("control").rows
    assert kind["kind"] == "semi-objective"
    # Asked once in the grid and three times as the control: right, then on two of six texts.
    assert (every["n_items"], every["gap_reworded"]) == (6, 0.0)
    assert every["gap_same"] == pytest.approx(4 / 6)
    before = Counter(asked)
    again = naturalness(tmp_path, [judge("tired", say)], **options)
    assert asked == before
    assert again.table("control").rows == result.table("control").rows
    (tier,) = result.table("tiers").rows
    assert (tier["tier"], tier["tier_here"], tier["wording"]) == (2, 1, pytest.approx(-4 / 6))
    bare = naturalness(tmp_path / "bare", [judge("tired", rating)], scoring="generate")
    assert any("--same-prompt" in text for text in bare.limits)


def test_a_judge_that_decides_nothing_is_named_as_what_ends_the_panel(tmp_path: Path) -> None:
    mute = judge("mute", lambda message: "dunno")
    judges = [judge("one", rating), judge("two", rating), mute]
    result = naturalness(tmp_path, judges, scoring="generate")
    assert "strategies" not in {table.name for table in result.tables}
    assert any("0 of 6 texts" in text and "mute 6" in text for text in result.limits)
    with pytest.raises(JudgeSenseError, match="no item was decided"):
        naturalness(tmp_path / "out", [mute], scoring="generate")


def test_a_fuser_is_measured_on_the_texts_it_decided_and_so_is_what_it_is_compared_with(
    tmp_path: Path,
) -> None:
    def say(message: str) -> str:
        return "1" if "text 3," in message else rating(message)

    judges = [judge(name, say) for name in ("one", "two")]
    judges.append(judge("late", lambda m: "dunno" if m.startswith(BASE) else say(m)))
    fuser = judge("fuser", lambda message: "hm" if "text 3," in message else "1")
    result = naturalness(tmp_path, judges, fuser=fuser, scoring="generate", seed=3)
    rows = {row["strategy"]: row for row in result.table("mitigations").rows}
    assert (rows["single judge"]["n_items"], rows["fuser"]["n_items"]) == (6, 5)
    # It always says 1, which is right for the texts 0 and 3; of those it left out 3.
    assert rows["fuser"]["accuracy"] == pytest.approx(1 / 5)
    # `late` has no rating under the base wording, so that it is not asked for a reason.
    asked = [(tmp_path / "out" / "fuser" / f"reasons-{at}" / "run.json") for at in (1, 2, 3)]
    assert [path.exists() for path in asked] == [True, True, False]
    assert json.loads(asked[0].read_text("utf-8"))["asked"]["settings"]["seed"] == 3


VARIANTS = """
judges:
  smollm2-8: {engine: transformers, model: smollm2-135m, options: {max_tokens: 8}}
  smollm2-12: {engine: transformers, model: smollm2-135m, options: {max_tokens: 12}}
"""


@pytest.mark.slow
def test_real_models_end_to_end_and_again_without_a_model(
    tmp_path: Path, mirror: Path, command_line: Any
) -> None:
    (tmp_path / "judges.yaml").write_text(VARIANTS, "utf-8")
    out, own = tmp_path / "out", {"JUDGESENSE_JUDGES": str(tmp_path / "judges.yaml")}
    command = [
        "study",
        "paraphrase-robustness",
        "--mirror",
        str(mirror),
        "--out",
        str(out),
        "--judge",
        "smollm2-135m",
        "--judge",
        "smollm2-8",
        "--judge",
        "smollm2-12",
        "--attributes",
        "clarity,answerability,interestingness",
        "--limit",
        "2",
        "--paraphrases",
        "2",
        "--fuser",
        "smollm2-135m",
    ]
    done = command_line(*command, **own)
    assert done.returncode == 0, done.stderr
    result = json.loads((out / "study.json").read_text("utf-8"))
    tables = result["tables"]
    kinds = [row["kind"] for row in tables["kinds"]["rows"]]
    assert kinds == ["verifiable", "semi-objective", "subjective"]
    assert len(tables["configurations"]["rows"]) == 9
    strategies = [row["strategy"] for row in tables["strategies"]["rows"]]
    assert strategies[-1] == "fuser"
    first = (out / "study.md").read_text("utf-8")
    code = (
        "import sys; from judgesense.cli import app\n"
        f"app({command!r}, standalone_mode=False)\n"
        "assert 'torch' not in sys.modules, 'a finished study loads no model'"
    )
    again = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **own},
        text=True,
        capture_output=True,
        timeout=300,
        check=False,
    )
    assert again.returncode == 0, again.stderr
    assert (out / "study.md").read_text("utf-8") == first
