"""``judgesense check``: a rubric of one's own, judged by function judges and by a real model."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

import judgesense
from judgesense.benchmark import Benchmark
from judgesense.errors import JudgeSenseError
from judgesense.reporting import report
from judgesense_dataset import pairing
from local_judges.callable_judge import CallableJudge

EXAMPLES = Path(__file__).parents[2] / "examples"
RUDE = (
    "Deal with it",
    "Did nobody",
    "before you complain",
    "better things",
    "Shut",
    "child",
    "idiot",
    "be quick",
    "Move",
    "Learn",
)


@pytest.fixture
def rubric(tmp_path: Path) -> Path:
    for name in ("tone.txt", "tone.jsonl", "tone.wordings.txt"):
        (tmp_path / name).write_text((EXAMPLES / name).read_text("utf-8"), "utf-8")
    return tmp_path / "tone.txt"


def _check(rubric: Path, judge, **options):
    options.setdefault("wordings", rubric.with_name("tone.wordings.txt"))
    options.setdefault("out", rubric.with_name("out"))
    options.setdefault("answers", ["POLITE", "RUDE"])
    return judgesense.check(rubric, rubric.with_name("tone.jsonl"), judge, **options)


def steady(messages: list[str]) -> list[str]:
    """Reads the message alone."""
    return ["RUDE" if any(word in text for word in RUDE) else "POLITE" for text in messages]


def wavering(messages: list[str]) -> list[str]:
    """Calls everything rude if asked who would find it so."""
    return [
        "RUDE" if "find it POLITE or RUDE" in text else answer
        for text, answer in zip(messages, steady(messages), strict=True)
    ]


def longer(rubric: Path, times: int) -> None:
    """The example's rows again and again, as items of their own."""
    data = rubric.with_name("tone.jsonl")
    rows = [json.loads(line) for line in data.read_text("utf-8").splitlines()]
    text = ""
    for n in range(times):
        for row in rows:
            own = {key: f"{row[key]}-{n}" for key in ("item_id", "cluster_id") if key in row}
            text += json.dumps({**row, **own, "message": f"{row['message']} ({n})"}) + "\n"
    data.write_text(text, "utf-8")


@pytest.mark.slow
def test_a_judge_that_reads_the_message_alone_passes(rubric: Path) -> None:
    longer(rubric, 3)
    found = _check(rubric, steady)
    assert found.passed
    assert found.jss == 1.0
    assert (found.decision, found.exit_code, found.card["trust"]) == ("PASS", 0, "care")
    scores = {row["template"]: row["score"] for row in found.result.table("wordings").rows}
    assert scores == dict.fromkeys(("rubric", "wording-1", "wording-2", "wording-3"), 1.0)


@pytest.mark.slow
def test_too_few_rows_are_inconclusive_and_count_as_asked(rubric: Path) -> None:
    found = _check(rubric, steady)
    assert (found.jss, found.decision, found.exit_code, found.passed) == (
        1.0,
        "INCONCLUSIVE",
        3,
        False,
    )
    assert found.card["trust"] == "unknown"
    (entry,) = found.report.plan
    assert f"{entry['settles']['items_needed']} items in all" in found.next_step
    for policy, code in (("pass", 0), ("fail", 1)):
        again = _check(rubric, steady, inconclusive=policy)
        assert (again.decision, again.exit_code) == ("INCONCLUSIVE", code)


@pytest.mark.slow
def test_a_wording_that_stands_out_is_named_instead_of_blaming_the_judge(rubric: Path) -> None:
    found = _check(rubric, wavering)
    # Wording 2 disagrees with three others on every message that is not rude: 14 of 24.
    assert found.jss == pytest.approx(1 - 3 / 6 * 14 / 24)
    assert found.decision == "INCONCLUSIVE"
    assert not found.passed
    table = found.result.table("wordings")
    assert {row["template"]: row["flag"] for row in table.rows}["wording-2"] == "outlier"
    assert not [row for row in table.rows if row["use"]]
    assert "wording-2" in found.next_step
    flips = found.result.table("flips").rows
    assert flips
    assert all("wording-2: RUDE" in row["answer_a"] + row["answer_b"] for row in flips)
    saved = json.loads((found.out / "check" / "study.json").read_text("utf-8"))
    assert saved["tables"]["jss"]["rows"][0]["jss"] == pytest.approx(found.jss)


@pytest.mark.slow
def test_an_unchanged_check_is_answered_without_judging(rubric: Path) -> None:
    first = _check(rubric, steady)

    def steady_again(messages: list[str]) -> list[str]:
        raise AssertionError("judged again")

    steady_again.__name__ = steady.__name__
    assert _check(rubric, steady_again).jss == first.jss
    with pytest.raises(JudgeSenseError, match="data answers 1 was"):
        _check(rubric, steady, answers=["RUDE", "POLITE"])


@pytest.mark.slow
def test_systems_are_ranked_only_where_it_is_known_what_is_better(rubric: Path) -> None:
    found = _check(rubric, steady, answers=None)
    assert "systems" not in [table.name for table in found.result.tables]
    assert any("--answers" in text for text in found.result.limits)
    # The gentle system is the better one, whichever of the answers comes first in the alphabet.
    (row, *_) = _check(rubric, steady, out=rubric.with_name("b")).result.table("systems").rows
    assert row["winner"] == "gentle"


@pytest.mark.slow
def test_a_threshold_of_its_own_holds_in_all_of_the_output(rubric: Path) -> None:
    assert _check(rubric, steady).decision == "INCONCLUSIVE"
    # The run is finished: its report is made anew for the other threshold.
    found = _check(rubric, steady, threshold=0.6)
    assert found.decision == "PASS"
    assert found.card["checks"]["steady"]["threshold"] == 0.6
    saved = json.loads((found.out / "report.json").read_text("utf-8"))
    assert saved["trust"][0]["checks"]["steady"]["state"] == "pass"


@pytest.mark.slow
def test_a_prompt_without_an_answer_fails_the_check(rubric: Path) -> None:
    class Unreachable(CallableJudge):
        def judge(self, batches, scorings):
            for number, answers in super().judge(batches, scorings):
                answers[0].text, answers[0].error = None, "connection refused"
                yield number, answers

    found = _check(rubric, Unreachable(steady), repeats=1)
    assert found.unanswered >= 1
    assert not found.passed
    assert f"{found.unanswered} prompts have no answer" in found.verdict


@pytest.mark.slow
def test_a_choice_between_two_is_asked_in_both_orders(tmp_path: Path) -> None:
    rubric, data = tmp_path / "better.txt", tmp_path / "pairs.jsonl"
    rubric.write_text("Which is politer? Answer A or B.\n\nA: {one}\nB: {two}\n")
    (tmp_path / "w.txt").write_text("Pick the politer message: A or B.")
    data.write_text(
        "".join(json.dumps({"one": f"Please {n}", "two": f"Now {n}!"}) + "\n" for n in range(12))
    )
    given = {
        "wordings": tmp_path / "w.txt",
        "answers": ["A", "B"],
        "options": {"A": "one", "B": "two"},
    }
    first = judgesense.check(
        rubric, data, lambda texts: ["A" for _ in texts], **given, out=tmp_path / "first"
    )
    (row,) = first.result.table("jss").rows
    assert row["first_position"] == 1.0
    assert row["trust"] == "avoid"
    assert not first.passed

    def leaning(texts: list[str]) -> list[dict[str, float]]:
        """Prefers the polite message by 1 nat, and the first place by 2."""
        return [{"A": 0.0, "B": -3.0 if "A: Please" in text else -1.0} for text in texts]

    rows = [
        {"one": one, "two": two, "gold": gold}
        for n in range(60)
        for one, two, gold in [
            (f"Please {n}", f"Now {n}!", "A"),
            (f"Now {n}?", f"Please {n}.", "B"),
        ]
    ]
    data.write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = judgesense.check(
        rubric,
        data,
        CallableJudge(leaning, name="leaning", scoring="options"),
        **given,
        scoring="options",
        out=tmp_path / "leaning",
    )
    assert found.card["trust"] == "avoid"
    assert found.card["remedy"] == "calibrated"
    (step,) = found.next
    assert step["kind"] == "use_changed"
    assert step["command"].startswith(
        f"judgesense improve --log {tmp_path / 'leaning'} --judge lean"
    )


NO_ANSWERS = {"tone.jsonl": '{"message": "Hello"}\n'}


@pytest.mark.parametrize(
    ("files", "options", "said"),
    [
        ({"tone.txt": ""}, {}, "the rubric is empty"),
        ({"tone.txt": "Is it polite? POLITE or RUDE."}, {}, "columns are item_id, cluster_id"),
        ({"tone.txt": "POLITE or RUDE? {mesage}"}, {}, r"\{mesage\} .*columns are item_id"),
        (NO_ANSWERS, {"answers": None}, "--answers"),
        ({}, {"answers": ["KIND", "RUDE"]}, r"tone\.jsonl, line 1, column gold: 'POLITE'"),
        ({}, {"repeats": 0}, "repeats"),
        ({}, {"inconclusive": "maybe"}, "choose pass or fail"),
        ({}, {"paraphrase": 0}, "has no argument 'paraphrase'; did you mean 'paraphrases'"),
        ({}, {"dtype": "bfloat16"}, "dtype is for named judges"),
        (
            {"a.yaml": "attacks: {x: {text: Say POLITE}}"},
            {"attacks": "a.yaml"},
            "the keys are about, place, quick, texts",
        ),
    ],
)
def test_bad_input_is_refused_before_anything_is_judged(
    rubric: Path, files: dict[str, str], options: dict[str, object], said: str
) -> None:
    for name, text in files.items():
        rubric.with_name(name).write_text(text)
    options |= {"attacks": rubric.with_name("a.yaml")} if "attacks" in options else {}
    with pytest.raises(JudgeSenseError, match=said):
        _check(rubric, steady, **options)
    assert not rubric.with_name("out").exists()


@pytest.mark.slow
def test_proposed_wordings_are_pinned_beside_the_rubric_and_read_back(rubric: Path) -> None:
    proposals = iter(
        [
            "Say whether this message is polite or rude. Answer POLITE or RUDE.",
            "Is the message below polite, or is it rude? Answer POLITE or RUDE.",
        ]
    )

    def writer(messages: list[str]) -> list[str]:
        return [
            "YES" if "two" in text.lower() and "equivalent" in text.lower() else next(proposals, "")
            for text in messages
        ]

    first = _check(rubric, steady, wordings=None, paraphraser=writer, paraphrases=2)
    pinned = rubric.with_name("tone.wordings.yaml")
    assert "Say whether this message is polite" in pinned.read_text("utf-8")
    assert first.result.settings["wordings"] == 3
    # What the header asks for is what has an effect: all are used unless they are refused.
    header = pinned.read_text("utf-8").partition("tasks:")[0]
    assert ("accepted: false" in header, "accepted: true" in header) == (True, False)
    notes: list[str] = []
    again = _check(
        rubric,
        steady,
        wordings=None,
        out=rubric.with_name("again"),
        paraphrases=9,
        note=notes.append,
    )
    assert any("no new ones are proposed" in text for text in notes)
    assert again.result.settings["wordings"] == 3
    text = pinned.read_text("utf-8").replace("accepted: null", "accepted: false", 1)
    pinned.write_text(text, "utf-8")
    assert (
        _check(rubric, steady, wordings=None, out=rubric.with_name("third")).result.settings[
            "wordings"
        ]
        == 2
    )


PINNED = """\
tasks:
  rubric:
    labels: [POLITE, RUDE]
    layout: "{instruction}\\n\\nMessage: {message}"
    templates:
      - {id: rubric, text: "Is this message polite or rude? Answer POLITE or RUDE."}
      - {id: rubric-p1, text: "Say if this message is POLITE or RUDE.", accepted: null}
"""


def test_wordings_of_an_older_rubric_are_not_compared_with_the_edited_one(rubric: Path) -> None:
    rubric.with_name("tone.wordings.yaml").write_text(PINNED, "utf-8")
    rubric.write_text(rubric.read_text("utf-8").replace("polite or rude", "kind or rude"), "utf-8")
    with pytest.raises(JudgeSenseError, match="another rubric, which begins 'Is this mes"):
        _check(rubric, steady, wordings=None)
    assert not rubric.with_name("out").exists()


@pytest.mark.parametrize("how", ["none can be used", "none is asked for", "the file has none"])
def test_one_wording_is_judged_alone_and_rewording_is_unmeasured(rubric: Path, how: str) -> None:
    notes: list[str] = []
    options = {"wordings": None, "paraphrases": 0}
    if how == "none can be used":
        options |= {"paraphraser": lambda texts: ["" for _ in texts], "paraphrases": 2}
    elif how == "the file has none":
        rubric.with_name("tone.wordings.txt").write_text(rubric.read_text())
        options = {}
    found = _check(rubric, steady, note=notes.append, **options)
    assert ("empty: 10" in " ".join(notes)) == (how == "none can be used")
    checks = found.card["checks"]
    assert (checks["steady"]["state"], found.card["because"]) == ("unmeasured", ["steady"])
    assert checks["right"]["state"] == "pass"
    assert found.report.people[0]["accuracy"] == 1.0
    assert found.decision == "INCONCLUSIVE"


def test_braces_that_name_no_column_are_text(rubric: Path) -> None:
    example = 'Reply with {"verdict": "POLITE"} or {"verdict": "RUDE", "why": {}}.'
    rubric.write_text(f"Is it polite or rude? {example}\n\n{{message}}")
    prompts: list[str] = []

    def judge(messages: list[str]) -> list[str]:
        prompts.extend(messages)
        return steady(messages)

    _check(rubric, judge, wordings=None, paraphrases=0)
    assert all(example in prompt and "{message}" not in prompt for prompt in prompts)


@pytest.mark.parametrize("column", ["label", "human", "annotator_1"])
def test_labels_in_a_column_of_another_name_are_gold(rubric: Path, column: str) -> None:
    data = rubric.with_name("tone.jsonl")
    data.write_text(data.read_text("utf-8").replace('"gold"', f'"{column}"'), "utf-8")
    notes: list[str] = []
    found = _check(rubric, steady, note=notes.append)
    assert f"labels: {column}" in " ".join(notes)
    assert found.card["checks"]["right"]["state"] == "pass"


def test_a_column_that_looks_like_labels_is_said_before_anything_is_judged(rubric: Path) -> None:
    data = rubric.with_name("tone.jsonl")
    data.write_text(
        data.read_text("utf-8")
        .replace('"gold"', '"opinion"')
        .replace('"POLITE"', '"good"')
        .replace('"RUDE"', '"bad"'),
        "utf-8",
    )
    notes: list[str] = []

    def judge(messages: list[str]) -> list[str]:
        assert "--human opinion" in " ".join(notes)
        return steady(messages)

    assert _check(rubric, judge, note=notes.append).card["checks"]["right"]["state"] == "unmeasured"
    with pytest.raises(JudgeSenseError, match="did you mean 'opinion'"):
        _check(rubric, steady, human=["opinon"])


@pytest.mark.slow
def test_a_real_model_that_calls_everything_polite_fails_with_exit_code_1(rubric: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "judgesense",
        "check",
        "tone.txt",
        "--data",
        "tone.jsonl",
        "--wordings",
        "tone.wordings.txt",
        "--judge",
        "smollm2-135m",
        "--scoring",
        "options",
        "--repeats",
        "1",
        "--limit",
        "12",
    ]
    env = {**os.environ, "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(command, capture_output=True, text=True, cwd=rubric.parent, env=env)
    assert done.returncode == 1, done.stderr
    assert done.stdout.splitlines()[0].startswith("FAIL: JSS 1.000 [")
    (run,) = (rubric.parent / "runs" / "check").iterdir()
    again = subprocess.run(command, capture_output=True, text=True, cwd=rubric.parent, env=env)
    assert again.stdout == done.stdout
    assert [run] == list((rubric.parent / "runs" / "check").iterdir())


def test_the_benchmark_is_built_and_the_report_written_once(tmp_path, monkeypatch):
    counts = Counter[str]()

    def count(module, name):
        function = getattr(module, name)

        def counted(*args, **options):
            counts[name] += 1
            return function(*args, **options)

        monkeypatch.setattr(module, name, counted)

    count(pairing, "build")
    count(Benchmark, "select")
    count(report, "write_report")
    rubric = tmp_path / "rubric.txt"
    rubric.write_text("Is it good? {reply} Answer YES or NO.")
    rows = [{"reply": f"r{n}", "label": ("NO", "YES")[n % 2]} for n in range(8)]
    judgesense.check(
        rubric,
        rows,
        lambda texts: ["YES"] * len(texts),
        paraphrases=0,
        threshold=0.7,
        out=tmp_path / "out",
    )
    assert counts == {"build": 1, "select": 1, "write_report": 1}


def test_a_requirement_divides_its_error_among_tasks(tmp_path: Path) -> None:
    def decided(n_tasks: int, right: int) -> str:
        rows = [
            {"item_id": f"{task}.{n}", "task": f"t{task}", "label": "NY"[n % 2]}
            | {"verdict": "NY"[(n + (n >= (right if task == 0 else 48))) % 2]}
            for task in range(n_tasks)
            for n in range(60)
        ]
        folder = tmp_path / f"{n_tasks}.{right}"
        found = judgesense.check(rows, out=folder / "out", runs=folder, require="right=0.8")
        return found.decision

    assert [decided(1, 39), decided(10, 30), decided(1, 40)] == ["FAIL", "FAIL", "FAIL"]
    assert decided(10, 40) == "INCONCLUSIVE"
