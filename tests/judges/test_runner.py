"""Each distinct prompt judged once, in whole parts, resumable at any moment."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from judgesense.benchmark import Benchmark, table_of_pairs, table_of_prompts
from judgesense.errors import JudgeSenseError
from judgesense.log.schema import part_files, read_log
from judgesense.tasks import Item, Task, Template, pair_up, render
from local_judges.callable_judge import CallableJudge
from local_judges.parts import Interrupted
from local_judges.runner import run_judge

TASK = Task("factuality", ("YES", "NO"))
STRAIGHT = {"YES": "YES", "NO": "NO"}
INVERTED = {"YES": "NO", "NO": "YES"}


def benchmark(n_items: int = 40, repeated: int = 1) -> Benchmark:
    """Items under a straight and an inverted wording; ``repeated`` items share each message."""
    layout = "{instruction}\n\nResponse: {response}"
    templates = [
        Template("t1", "factuality", "Is it right? YES or NO.", layout, STRAIGHT),
        Template("t2", "factuality", "Is it wrong? YES or NO.", layout, INVERTED),
    ]
    prompts, pairs = [], []
    for index in range(n_items):
        item = Item(
            item_id=f"item-{index:05d}",
            task="factuality",
            fields={"response": f"Number {index // repeated} is even."},
            gold="YES" if index // repeated % 2 == 0 else "NO",
        )
        both = [render(TASK, template, item, "-") for template in templates]
        prompts += both
        pairs.append(pair_up(*both))
    return Benchmark(
        {"factuality": TASK}, table_of_prompts(prompts), table_of_pairs(pairs), {"name": "test"}
    )


def tells_parity(messages: list[str]) -> list[str]:
    """A judge that is right under both wordings."""
    answers = []
    for message in messages:
        even = int(message.split("Number ")[1].split()[0]) % 2 == 0
        answers.append("YES" if even == ("right" in message) else "NO")
    return answers


def comparable(log: pa.Table) -> list[dict[str, object]]:
    """The rows without the one column that differs between two equal runs."""
    return log.drop_columns(["latency_s"]).to_pylist()


def test_a_prompt_is_judged_once_and_logged_for_each_item_that_has_it(tmp_path: Path) -> None:
    asked: list[str] = []

    def counting(messages: list[str]) -> list[str]:
        asked.extend(messages)
        return tells_parity(messages)

    data = benchmark(n_items=30, repeated=3)
    outcome = run_judge(CallableJudge(counting), data, tmp_path, ["generate"])
    log = read_log(tmp_path)
    assert len(asked) == len(set(asked)) == outcome.judged == 20
    assert log.num_rows == data.prompts.num_rows == 60
    assert set(log["item_id"].to_pylist()) == {f"item-{i:05d}" for i in range(30)}


def twin_wordings(first: dict[str, str], second: dict[str, str]) -> Benchmark:
    """One item under two templates with the same words and these label maps."""
    item = Item("item", "factuality", {"response": "2 is even."}, gold="YES")
    layout = "{instruction}\n\nResponse: {response}"
    templates = [
        Template(f"t{n}", "factuality", "Is it right?", layout, labels)
        for n, labels in enumerate((first, second), 1)
    ]
    prompts = [render(TASK, template, item, "-") for template in templates]
    assert prompts[0].prompt_id == prompts[1].prompt_id
    return Benchmark(
        {"factuality": TASK},
        table_of_prompts(prompts),
        table_of_pairs([pair_up(*prompts)]),
        {"name": "test"},
    )


@pytest.mark.parametrize("probable", [0.7, 0.45])
def test_templates_that_list_the_options_in_another_order_get_the_same_decision(
    tmp_path: Path, probable: float
) -> None:
    def sure(messages: list[str]) -> list[dict[str, float]]:
        return [{"YES": float(np.log(probable)), "NO": float(np.log(0.45))} for _ in messages]

    sure_yes = CallableJudge(sure, scoring="options")
    data = twin_wordings(STRAIGHT, {"NO": "NO", "YES": "YES"})
    run_judge(sure_yes, data, tmp_path, ["options"])
    first, second = read_log(tmp_path).to_pylist()
    assert first["decision"] == second["decision"] == "YES"
    told = [{e["option"]: e["logprob"] for e in r["option_logprobs"]} for r in (first, second)]
    assert told[0] == told[1] == {"YES": np.log(probable), "NO": np.log(0.45)}


def test_one_message_with_two_sets_of_options_is_refused_before_it_is_asked(
    tmp_path: Path,
) -> None:
    def refuses(messages: list[str]) -> list[dict[str, float]]:
        raise AssertionError("asked")

    data = twin_wordings(STRAIGHT, {"TRUE": "YES", "FALSE": "NO"})
    with pytest.raises(JudgeSenseError, match="YES, NO in one template and TRUE, FALSE"):
        run_judge(CallableJudge(refuses, scoring="options"), data, tmp_path, ["options"])
    outcome = run_judge(
        CallableJudge(lambda texts: ["TRUE"] * len(texts)), data, tmp_path, ["generate"]
    )
    assert outcome.judged == 1


def test_a_finished_run_asks_nothing_again(tmp_path: Path) -> None:
    data = benchmark(200)
    run_judge(CallableJudge(tells_parity), data, tmp_path, ["generate"])

    def refuses(messages: list[str]) -> list[str]:
        raise AssertionError("asked again")

    outcome = run_judge(CallableJudge(refuses), data, tmp_path, ["generate"])
    assert (outcome.judged, outcome.kept) == (0, 400)


def test_repeats_ask_again_in_other_batches(tmp_path: Path) -> None:
    shapes: list[tuple[str, ...]] = []

    def noting(messages: list[str]) -> list[str]:
        shapes.append(tuple(messages))
        return tells_parity(messages)

    judge = CallableJudge(noting, batch_size=16)
    data = benchmark(100)
    run_judge(judge, data, tmp_path, ["generate"], repeats=2, seed=3)
    log = read_log(tmp_path)
    assert log["repeat"].value_counts().to_pylist() == [
        {"values": 0, "counts": 200},
        {"values": 1, "counts": 200},
    ]
    half = len(shapes) // 2
    assert not set(map(frozenset, shapes[:half])) & set(map(frozenset, shapes[half + 1 :]))


def test_a_damaged_part_is_set_aside_and_judged_again(tmp_path: Path) -> None:
    data = benchmark(200)
    run_judge(CallableJudge(tells_parity), data, tmp_path, ["generate"])
    whole = comparable(read_log(tmp_path))
    first, second = part_files(tmp_path)[:2]
    content = bytearray(first.read_bytes())
    content[len(content) // 2] ^= 0xFF
    first.write_bytes(content)
    second.write_bytes(second.read_bytes()[:100])
    notes: list[str] = []
    outcome = run_judge(
        CallableJudge(tells_parity), data, tmp_path, ["generate"], note=notes.append
    )
    assert outcome.judged > 0
    assert len(notes) == 2
    assert len(list(first.parent.glob("*.damaged-*"))) == 2
    assert comparable(read_log(tmp_path)) == whole


def test_a_part_of_another_run_is_not_taken_for_ours(tmp_path: Path) -> None:
    data = benchmark(100)
    run_judge(CallableJudge(tells_parity), data, tmp_path, ["generate"])
    part = part_files(tmp_path)[0]
    pq.write_table(pq.read_table(part).slice(1), part)
    notes: list[str] = []
    run_judge(CallableJudge(tells_parity), data, tmp_path, ["generate"], note=notes.append)
    assert "other prompts" in notes[0]
    assert read_log(tmp_path).num_rows == 200


def test_an_answer_that_fails_is_an_error_with_its_prompt_named(tmp_path: Path) -> None:
    from local_judges.protocol import Answer

    class Stumbling(CallableJudge):
        def _answer(self, request: object, reply: object) -> Answer:
            if "Number 7 " in request.text:  # type: ignore[attr-defined]
                return Answer(error="the prompt has 9000 tokens, the context 8192")
            return super()._answer(request, reply)  # type: ignore[arg-type]

    outcome = run_judge(Stumbling(tells_parity), benchmark(), tmp_path, ["generate"])
    errors = read_log(tmp_path).filter(pc.field("status") == "error")
    assert errors.num_rows == 2 == len(outcome.failed)
    assert all("9000 tokens" in line for line in outcome.failed)
    assert set(errors["decision"].to_pylist()) == {"ERROR"}


def test_a_read_only_folder_is_refused_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "decisions").write_text("a file where the folder should be")
    with pytest.raises(JudgeSenseError, match=r"cannot write to .*part-00-000-000000"):
        run_judge(CallableJudge(tells_parity), benchmark(), tmp_path, ["generate"])


def test_ctrl_c_finishes_the_part_and_says_how_to_go_on(tmp_path: Path) -> None:
    calls = 0

    def interrupting(messages: list[str]) -> list[str]:
        nonlocal calls
        calls += 1
        if calls == 3:
            os.kill(os.getpid(), signal.SIGINT)
        return tells_parity(messages)

    data = benchmark(400)
    with pytest.raises(Interrupted, match=r"stopped at \d+ of 800 prompts"):
        run_judge(CallableJudge(interrupting, batch_size=32), data, tmp_path, ["generate"])
    assert 0 < read_log(tmp_path).num_rows < 800
    run_judge(CallableJudge(tells_parity, batch_size=32), data, tmp_path, ["generate"])
    assert read_log(tmp_path).num_rows == 800


@pytest.mark.slow
def test_three_kills_leave_the_log_of_an_uninterrupted_run(tmp_path: Path) -> None:
    script = textwrap.dedent(
        """
        import sys, time
        from pathlib import Path
        sys.path.insert(0, sys.argv[1])
        from test_runner import CallableJudge, benchmark, run_judge, tells_parity
        def slowly(messages):
            time.sleep(0.004)
            return tells_parity(messages)
        run_judge(CallableJudge(slowly, name="slowly", batch_size=8), benchmark(4000),
                  Path(sys.argv[2]), ["generate"], repeats=2)
        """
    )
    command = [sys.executable, "-c", script, str(Path(__file__).parent)]
    subprocess.run([*command, str(tmp_path / "whole")], check=True)
    rng = np.random.default_rng(0)
    kills = 0
    for _ in range(3):
        process = subprocess.Popen([*command, str(tmp_path / "killed")])
        time.sleep(float(rng.uniform(1.5, 4.0)))
        kills += process.poll() is None
        process.kill()
        process.wait()
    assert kills >= 2
    subprocess.run([*command, str(tmp_path / "killed")], check=True)
    killed, whole = (comparable(read_log(tmp_path / name)) for name in ("killed", "whole"))
    assert len(whole) == 16000
    assert killed == whole
