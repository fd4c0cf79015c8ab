"""One judge before and after an update."""

import json

import pytest
from typer.testing import CliRunner

from judgesense.cli import app
from judgesense.comparison.migration import migration
from judgesense.errors import JudgeSenseError


def steady(item: int, wording: str, repeat: int) -> str:
    return "YES" if item % 2 else "NO"


def worded(item: int, wording: str, repeat: int) -> str:
    """One wording in three differs on one item in five: 2 in 15 pairs of wordings."""
    flips = item % 5 == 0 and wording == "w3"
    return steady(item + flips, wording, repeat)


def updated(share: int):
    """Moves every item below ``share``, under every wording."""
    return lambda item, wording, repeat: worded(item + (item < share), wording, repeat)


def test_an_update_that_moves_less_than_rewording(write) -> None:
    found = migration(write("old", worded), write("new", updated(2), judge="m@new"))
    (task,) = found.tasks
    assert (found.claim, found.exit_code, task.claim) == ("no more", 0, "no more")
    assert task.reworded == pytest.approx(2 / 15)
    assert 0 < task.moved < 0.06
    assert task.ci_high < 0
    assert found.notes == ()


def test_an_update_that_moves_more(write) -> None:
    old = write("old", worded)
    update = migration(old, write("new", lambda i, w, r: steady(i + (i < 50), w, r)))
    (task,) = update.tasks
    assert (update.claim, update.exit_code) == ("more", 1)
    assert task.ci_low > 0
    assert task.excess == pytest.approx(task.moved - task.reworded)
    assert (task.n_prompts, task.n_items, task.n_wordings) == (300, 100, 3)
    assert "same name and fingerprint" in update.notes[0]
    other = migration(old, write("other", worded, judge="other@1"))
    assert "different names" in other.notes[0]


def test_direction_items_and_accuracy(write) -> None:
    def row(rule):
        def call(item, wording, repeat):
            return {"verdict": rule(item, wording, repeat), "gold": steady(item, wording, repeat)}

        return call

    lenient = row(lambda i, w, r: "YES" if i < 40 else steady(i, w, r))
    (task,) = migration(write("old", row(steady)), write("new", lenient)).tasks
    shifts = {shift.label: shift for shift in task.direction}
    assert shifts["YES"].difference == pytest.approx(0.2)
    assert shifts["YES"].p_holm < 0.001
    assert "YES rose from 50% to 70%" in task.text
    assert (task.accuracy_old, task.accuracy_new) == (1.0, 0.8)
    assert task.accuracy_ci_high < 0
    assert len(task.items) == 20
    assert (task.items[0].old, task.items[0].new, task.items[0].moved) == ("NO", "YES", 3)
    assert {item.item_id for item in task.items} == {f"i{n}" for n in range(0, 40, 2)}


def test_refusing_is_moving_and_a_failed_request_is_not(write) -> None:
    old = write("old", steady)
    refused = write("new", lambda i, w, r: "REFUSED" if i < 30 else steady(i, w, r))
    (task,) = migration(old, refused).tasks
    assert task.moved == pytest.approx(0.3)
    assert "REFUSED" in {shift.label for shift in task.direction}
    failed = write("new", lambda i, w, r: "ERROR" if i < 30 else steady(i, w, r))
    found = migration(old, failed)
    assert (found.tasks[0].moved, found.tasks[0].n_items) == (0, 70)
    assert "90 prompts" in found.notes[-1]


def test_asking_again_is_measured_beside(write) -> None:
    def noisy(item, wording, repeat):
        return steady(item + (item % 10 == 0 and repeat == 1), wording, repeat)

    old, new = (write(name, noisy, repeats=2) for name in ("old", "new"))
    (task,) = migration(old, new).tasks
    assert (task.moved, task.asked_again) == (0, 0.1)
    assert task.excess_again == pytest.approx(-0.1)


@pytest.mark.parametrize(
    ("cause", "rules", "how"),
    [
        ("open", (worded, updated(3)), {"items": range(12)}),
        ("one wording", (steady, steady), {"wordings": ["w1"]}),
        ("one label", (lambda i, w, r: "YES",) * 2, {}),
        ("one cluster", (worded, steady), {"items": range(1)}),
    ],
)
def test_what_keeps_a_claim_from_being_told(write, cause, rules, how) -> None:
    old, new = (write(n, rule, **how) for n, rule in zip(("old", "new"), rules, strict=True))
    found = migration(old, new)
    (task,) = found.tasks
    assert (found.claim, found.exit_code, task.cause) == ("cannot tell", 3, cause)
    assert (task.items_needed or 0) > 12 if cause == "open" else task.items_needed is None
    assert (task.reworded is None) == (cause == "one wording")


def test_several_tasks_share_the_error(folder) -> None:
    rules = {"factuality": worded, "toxicity": steady}
    old, new = folder("old", rules), folder("new", rules, judge="m@new")
    with pytest.raises(JudgeSenseError, match="begun is still being judged"):
        migration(old, folder("begun", rules, finished=False))
    found = migration(old, new)
    assert [task.task for task in found.tasks] == ["factuality", "toxicity"]
    assert {task.error for task in found.tasks} == {0.025}
    (only,) = migration(old, new, task="toxicity").tasks
    assert (only.task, only.error, only.reworded) == ("toxicity", 0.05, 0)


def test_inverted_wordings_are_left_out(folder) -> None:
    rules = {"factuality": worded}
    old = folder("old", rules, wordings=["w1", "w2", "w3", "w4"], inverted="w4")
    found = migration(old, folder("new", rules))
    assert "w4" in found.notes[-1]
    assert (found.tasks[0].n_wordings, found.tasks[0].reworded) == (3, pytest.approx(2 / 15))


def test_items_with_one_wording_are_left_out_beside_others(write) -> None:
    def some(item, wording, repeat):
        return "ERROR" if item >= 60 and wording != "w1" else worded(item, wording, repeat)

    found = migration(write("old", some), write("new", steady, wordings=["w1"]))
    assert (found.tasks[0].n_prompts, found.tasks[0].reworded) == (60, pytest.approx(0.1))
    assert "40 prompts are left out" in found.notes[-1]


@pytest.mark.parametrize(
    ("new", "named"),
    [
        ({"items": range(200, 300)}, "no common items"),
        ({"wordings": ["other"]}, "no common items"),
        ({"task": "coherence"}, "no common task|no task"),
        ({"rule": lambda i, w, r: "12345"[i % 5]}, "labels"),
        ({"rule": lambda i, w, r: {"verdict": "YES", "gold": "NO"}}, "gold"),
    ],
)
def test_what_cannot_be_compared_is_named(write, new, named) -> None:
    def graded(item, wording, repeat):
        return {"verdict": steady(item, wording, repeat), "gold": "YES"}

    old = write("old", graded)
    with pytest.raises(JudgeSenseError, match=named):
        migration(old, write("new", **{"rule": steady, **new}))
    for name, value in (("tolerance", -1), ("error", 0)):
        with pytest.raises(JudgeSenseError, match=name):
            migration(old, old, **{name: value})


def test_other_scales_are_told_apart(write) -> None:
    old = write("old", lambda i, w, r: str(1 + i % 5))
    with pytest.raises(JudgeSenseError, match="one scale"):
        migration(old, write("new", lambda i, w, r: str(1 + i % 10)))
    # A file that never gave a 5 is still on the same scale.
    assert migration(old, write("new", lambda i, w, r: str(1 + i % 4))).tasks[0].moved > 0


def test_command_line(write) -> None:
    old, new = str(write("old", worded)), str(write("new", updated(60)))
    done = CliRunner().invoke(app, ["compare", old, new, "--migration"])
    assert done.exit_code == 1
    assert done.stdout.startswith("factuality: the update changes more verdicts")
    asked = ["compare", old, old, "--migration", "--format", "json"]
    found = json.loads(CliRunner().invoke(app, asked).stdout)
    assert (found["claim"], found["tasks"][0]["moved"]) == ("no more", 0)
    with pytest.raises(JudgeSenseError, match="--tolerance needs --migration"):
        CliRunner().invoke(app, ["compare", old, new, "--tolerance", "0"], catch_exceptions=False)


def test_wordings_that_differ_leave_the_claim_to_these_alone(write) -> None:
    moves = {"w1": 0, "w2": 9, "w3": 8, "w4": 1}
    wordings = list(moves)
    steady = lambda i, w, r: "YES" if i % 2 else "NO"  # noqa: E731
    updated = lambda i, w, r: steady(i + (i % 10 < moves[w]), w, r)  # noqa: E731
    old = write("old", steady, items=range(60), wordings=wordings)
    new = write("new", updated, items=range(60), wordings=wordings, judge="m@new")
    (task,) = migration(old, new).tasks
    assert (task.claim, task.cause, task.items_needed) == ("cannot tell", "few wordings", None)
    assert task.claim_these == "more"
    assert task.ci_low < 0 < task.these_ci_low < task.excess < task.these_ci_high
    few = migration(
        *(
            write(name, rule, items=range(60), wordings=["w2", "w3"], judge=f"m@{name}")
            for name, rule in (("a", steady), ("b", updated))
        )
    ).tasks[0]
    assert (few.claim, few.claim_these, few.these_ci_low) == ("more", None, None)


@pytest.mark.slow
def test_what_may_be_noise_is_not_called_the_update(write) -> None:
    def moved(item, wording, repeat):
        return steady(item + (item % 5 == 1), wording, repeat)

    def noisy(item, wording, repeat):
        return worded(item + (repeat == 1 and item % 5 == 2), wording, repeat)

    new = write("new", moved, items=range(300), wordings=["w1"])
    tasks = {}
    for cause, rule, repeats in (
        ("no repeats", worded, 1),
        ("noise", noisy, 2),
        (None, worded, 2),
    ):
        old = write("old", rule, items=range(300), repeats=repeats)
        (tasks[cause],) = migration(old, new).tasks
        assert tasks[cause].cause == cause
        # Twice as many verdicts changed as rewording changes, in each case.
        assert (tasks[cause].moved, tasks[cause].reworded) == pytest.approx((0.3, 0.1), abs=0.11)
        assert tasks[cause].ci_low > 0
    assert [task.claim for task in tasks.values()] == ["cannot tell", "cannot tell", "more"]
    assert "may be noise" in tasks["no repeats"].text
