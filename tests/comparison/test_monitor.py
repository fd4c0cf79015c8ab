"""A judge monitored over several looks."""

import json

import pytest
from typer.testing import CliRunner

from judgesense.cli import app
from judgesense.comparison.monitor import monitor
from judgesense.comparison.monitor_history import read_history
from judgesense.errors import JudgeSenseError

POOL = 180


def steady(item: int, wording: str, repeat: int) -> str:
    return "YES" if item % 2 else "NO"


def worded(item: int, wording: str, repeat: int) -> str:
    """Rewording moves 2 in 15 verdicts."""
    return steady(item + (item % 5 == 0 and wording == "w3"), wording, repeat)


def updated(item: int, wording: str, repeat: int) -> str:
    """An update that moves 40%."""
    return steady(item + (item % 5 < 2), wording, repeat)


@pytest.fixture
def baseline(write):
    return write("baseline", worded, items=range(POOL), repeats=2)


@pytest.fixture
def look(write, baseline):
    """Monitor a week of 30 other items under one wording."""

    def call(week: int, rule=worded, **options):
        items = range(30 * week, 30 * week + 30)
        run = write(f"week{week}", rule, items=items, wordings=["w1"], judge="m@new")
        return monitor(run, against=baseline, **options)

    return call


def test_an_unchanged_judge_is_fine(look, baseline) -> None:
    for week in range(2):
        found = look(week)
        assert (found.status, found.exit_code) == ("fine", 0)
    (task,) = found.tasks
    assert (found.n_looks, found.recorded, task.n_new) == (2, True, 30)
    assert (task.moved, task.alarm_look) == (0, None)
    # The wording in use differs from the two others on one item in five, from one of them.
    assert task.reworded == pytest.approx(0.1)
    assert found.history == str(baseline.with_name("baseline.monitor.jsonl"))
    assert len(read_history(baseline.with_name("baseline.monitor.jsonl"))) == 2


def test_an_update_raises_an_alarm_that_stays(look) -> None:
    for week in range(2):
        assert look(week).status == "fine"
    states = [look(week, updated) for week in range(2, 5)]
    assert states[-1].exit_code == 1
    (task,) = states[-1].tasks
    assert 2 <= task.since_look <= task.alarm_look <= 5
    assert 0 < task.excess_low < 0.3
    assert task.alarm_run == f"week{task.alarm_look - 1}.csv"
    back = look(5)
    assert (back.status, back.tasks[0].alarm_look) == ("alarm", task.alarm_look)
    assert [round(each.moved, 2) for each in back.tasks[0].looks] == [0.0] * 2 + [0.4] * 3 + [0.0]


@pytest.mark.parametrize(
    ("rule", "first", "how"),
    [
        (worded, {}, {"items": range(6)}),
        (lambda i, w, r: "YES", {}, {}),
        (steady, {"wordings": ["w1"]}, {"wordings": ["w1"]}),
    ],
)
def test_few_items_one_label_or_one_wording_cannot_tell(write, rule, first, how) -> None:
    base = write("base", rule, **first)
    found = monitor(write("week", rule, **how), against=base)
    (task,) = found.tasks
    assert (found.status, found.exit_code, task.moved) == ("cannot tell", 3, 0)
    assert (task.reworded is None) == (task.excess is None) == bool(first)


def test_the_same_run_is_not_counted_again(look, write, baseline) -> None:
    run = write("week0", worded, items=range(30), wordings=["w1"])
    monitor(run, against=baseline)
    again = monitor(run, against=baseline)
    assert (again.n_looks, again.recorded) == (1, False)
    assert (look(1, record=False).n_looks, look(1).n_looks) == (2, 2)


def test_the_same_items_add_no_evidence(write, baseline) -> None:
    for week in range(4):
        moved = lambda i, w, r: steady(i + (i % 3 == 0), w, r)  # noqa: E731
        run = write(f"w{week}", moved, items=range(60), wordings=["w1"], judge=f"m@{week}")
        (task,) = monitor(run, against=baseline).tasks
    assert (task.alarm_look, task.n_new) == (None, 0)


def test_tasks_share_the_error_and_any_alarm_counts(folder) -> None:
    rules = {"factuality": worded, "toxicity": worded}
    base = folder("base", rules, items=range(90), repeats=2)
    run = folder(
        "week", {"factuality": updated, "toxicity": worded}, items=range(90), judge="m@new"
    )
    found = monitor(run, against=base)
    assert [task.status for task in found.tasks] == ["alarm", "fine"]
    assert (found.status, found.tasks[0].error) == ("alarm", 0.025)
    assert found.history == str(base / "monitor.jsonl")


def test_a_damaged_or_newer_history_names_the_line(look, baseline) -> None:
    look(0)
    look(1)
    path = baseline.with_name("baseline.monitor.jsonl")
    lines = path.read_text().splitlines()
    for broken in (lines[1][:-9], lines[1].replace('"n_items":30', '"n_items":"many"')):
        path.write_text(f"{lines[0]}\n{broken}\n")
        with pytest.raises(JudgeSenseError, match=r"line 2.*damaged"):
            look(2)
    newer = json.dumps({**json.loads(lines[1]), "schema": 99})
    path.write_text(f"{lines[0]}\n{newer}\n")
    with pytest.raises(JudgeSenseError, match=r"line 2, schema.*newer"):
        look(2)


def test_rules_and_baseline_are_kept(look, write, baseline) -> None:
    look(0)
    with pytest.raises(JudgeSenseError, match="error was"):
        look(1, error=0.01)
    for options, named in (
        ({"tolerance": 2}, "tolerance"),
        ({"error": 0}, "error"),
        ({"history": "."}, "cannot|not a file"),
    ):
        with pytest.raises(JudgeSenseError, match=named):
            look(0, **options)
    other = write("other", worded, items=range(POOL), judge="m@other")
    with pytest.raises(JudgeSenseError, match="another baseline"):
        monitor(
            write("week1", worded),
            against=other,
            history=baseline.with_name("baseline.monitor.jsonl"),
        )


def test_command_line(write, baseline) -> None:
    run = str(write("week", updated, items=range(120), wordings=["w1"], judge="n@1"))
    asked = ["monitor", run, "--against", str(baseline)]
    done = CliRunner().invoke(app, asked)
    assert done.exit_code == 1
    assert done.stdout.startswith("factuality: alarm since look 1 (week.csv)")
    assert "different names" in done.stdout
    found = json.loads(CliRunner().invoke(app, [*asked, "--format", "json"]).stdout)
    assert (found["status"], found["recorded"], found["tasks"][0]["alarm_look"]) == (
        "alarm",
        False,
        1,
    )
