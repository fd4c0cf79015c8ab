"""Labels given on the local page: kept through kills, blind, and read by check and estimate."""

from __future__ import annotations

import csv
import http.client
import importlib
import json
import math
import os
import signal
import socket
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

import judgesense
from judgesense.checking.label_server import LabelServer
from judgesense.checking.labelling import COLUMNS, open_labelling
from judgesense.comparison.estimate import estimate
from judgesense.errors import JudgeSenseError, MissingExtraError


def verdict_file(folder: Path, n: int = 60) -> Path:
    """Verdicts with margins: every third is NO, every fourth is doubtful."""
    path = folder / "verdicts.csv"
    with path.open("w", newline="") as file:
        sheet = csv.writer(file)
        sheet.writerow(["id", "question", "model", "verdict", "reason", "margin", "gpt4_verdict"])
        for k in range(n):
            verdict = "NO" if k % 3 == 0 else "YES"
            margin = 0.1 if k % 4 == 0 else 5.0
            sheet.writerow([f"q{k}", f"Question {k}?", "m", verdict, "told so", margin, verdict])
    return path


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def truth(item: str) -> str:
    """What people say: the judge is wrong on every fifth item."""
    k = int(item.removeprefix("q"))
    right = "NO" if k % 3 == 0 else "YES"
    return {"NO": "YES", "YES": "NO"}[right] if k % 5 == 0 else right


def test_the_page_shows_no_verdict_and_the_doubtful_come_first(tmp_path: Path) -> None:
    labelling, _ = open_labelling(verdict_file(tmp_path, 200), verdict="verdict")
    first = [labelling.state("ann", at)["item"] for at in range(60)]
    assert {name for item in first for name in item} == {"question"}
    doubtful = [int(item["question"].split()[1].strip("?")) % 4 == 0 for item in first]
    assert sum(doubtful) > 15
    labelling.put("ann", 0, "YES", "sure")
    (row,) = rows_of(labelling.out)
    assert tuple(row) == COLUMNS
    sizes = labelling._strata.tolist().count(row["stratum"])
    assert float(row["probability"]) == pytest.approx(1 / sizes, abs=1e-6)
    again, _ = open_labelling(verdict_file(tmp_path, 200), verdict="verdict")
    assert again.state("ann", 0)["label"] == "YES"
    assert again.state("ann", 0)["comment"] == "sure"
    assert again.state("bob")["at"] == 0
    assert again.undo("ann") == 0
    assert again.undo("ann") is None
    assert again.state("ann") == {**again.state("ann", 0), "at": 0}


def test_no_column_tells_what_the_judge_said(tmp_path: Path) -> None:
    path = tmp_path / "told.csv"
    names = ["item_id", "verdict", "question", "Bot reply", "judge_reply", "rationale"]
    rows = [
        [f"q{n}", "YES" if n % 3 else "NO", "Why?", "So.", "So: YES", "Clear"] for n in range(30)
    ]
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([names, *rows])
    labelling, _ = open_labelling(path, verdict="verdict")
    assert {*labelling.state("ann", 0)["item"]} == {"question", "Bot reply"}


def test_check_and_estimate_read_the_file_of_two_people(tmp_path: Path) -> None:
    source = verdict_file(tmp_path, 90)
    labelling, columns = open_labelling(source, verdict="verdict", limit=45)
    for name in ("ann", "bob"):
        for at in range(45):
            item = labelling._id(labelling._output(at))[0]
            label = truth(item) if name == "ann" or at % 9 else "YES"
            labelling.put(name, at, label, "")
    assert labelling.state("ann")["at"] is None
    labelling.names |= {"ann": None, "bob": None}
    assert labelling.is_finished()
    found = judgesense.check(
        source, verdict=["verdict"], human=[str(labelling.out)], out=tmp_path / "out", note=str
    )
    entries = {entry["human"]: entry for entry in found.report.people}
    own = [row for row in rows_of(labelling.out) if row["rater"] == "ann"]
    verdicts = {row["id"]: row["verdict"] for row in rows_of(source)}
    weights = [1 / float(row["probability"]) for row in own]
    hits = [verdicts[row["item_id"]] == row["label"] for row in own]
    assert entries["ann"]["n"] == 45
    assert entries["ann"]["accuracy"] == pytest.approx(np.average(hits, weights=weights))
    assert entries["majority"]["between_people"]["people"] == 2
    figures = estimate(source, labelling.out, columns=columns, positive=labelling.positive)
    assert figures.systems[0]["n_labels"] == 45
    share = sum(truth(item) == "YES" for item in verdicts) / len(verdicts)
    low, high = figures.systems[0]["ci_low"], figures.systems[0]["ci_high"]
    assert low <= share <= high
    (tmp_path / "other.csv").write_text("item_id,label\nz1,YES\nz2,NO\n")
    other = [str(tmp_path / "other.csv")]
    with pytest.raises(JudgeSenseError, match="no label in"):
        judgesense.check(source, verdict=["verdict"], human=other, out=tmp_path / "o2", note=str)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"answers": ["A"]}, "2 to 10"),
        ({"verdict": "verdit"}, "did you mean"),
        ({"show": ["questoin"]}, "did you mean"),
    ],
)
def test_what_cannot_be_labelled_is_refused(tmp_path: Path, arguments, message) -> None:
    with pytest.raises(JudgeSenseError, match=message):
        open_labelling(verdict_file(tmp_path), **arguments)


def test_items_alone_and_changed_verdicts(tmp_path: Path) -> None:
    items = tmp_path / "items.csv"
    items.write_text("id,text\n" + "".join(f"{n},Text {n}\n" for n in range(30)))
    labelling, _ = open_labelling(items, answers=["good", "bad"])
    assert labelling.state("ann")["item"]["text"].startswith("Text")
    nameless = tmp_path / "nameless.csv"
    nameless.write_text("question,text\n" + "".join(f"Why {n}?,Text {n}\n" for n in range(30)))
    labelling, _ = open_labelling(nameless, answers=["good", "bad"])
    assert len(labelling.state("ann")["item"]) == 2
    source = verdict_file(tmp_path)
    first, _ = open_labelling(source, verdict="verdict")
    first.put("ann", 0, "YES", "")
    source.write_text(source.read_text().replace("YES", "NO").replace("q7,", "q7x,"))
    with pytest.raises(JudgeSenseError, match="--out"):
        open_labelling(source, answers=["YES", "NO"], verdict="verdict")


def test_the_server_answers_only_its_own_page(tmp_path: Path) -> None:
    from threading import Thread

    labelling, _ = open_labelling(verdict_file(tmp_path), verdict="verdict")
    server = LabelServer(labelling, grace=0.1)
    Thread(target=server.serve, daemon=True).start()

    def post(body: object, **headers: str) -> tuple[int, dict]:
        with closing(http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)) as sent:
            sent.request("POST", "/", json.dumps(body), headers)
            reply = sent.getresponse()
            return reply.status, json.loads(reply.read())

    ask = {"do": "label", "name": "ann", "at": 0, "label": "YES"}
    secret = {"X-Secret": server.secret}
    assert post(ask)[0] == 400
    assert post(ask, **secret, Host="evil.example:80")[0] == 400
    assert post({**ask, "comment": "x" * 70_000}, **secret)[0] == 400
    for wrong in (
        {"label": "MAYBE"},
        {"at": 60},
        {"at": -1},
        {"at": True},
        {"name": ""},
        {"do": 1},
    ):
        assert post({**ask, **wrong}, **secret)[0] == 400
    assert not labelling.out.exists()
    assert post(ask, **secret)[1]["done"] == 1
    assert post({"do": "stop", "name": "ann"}, **secret) == (200, {})


def test_the_page_names_the_extra_that_it_needs(monkeypatch) -> None:
    monkeypatch.delitem(sys.modules, LabelServer.__module__)
    monkeypatch.setitem(sys.modules, "fastapi", None)
    with pytest.raises(MissingExtraError, match=r"judgesense\[serve\]"):
        importlib.import_module(LabelServer.__module__)


LABELS = 40


@pytest.fixture
def start():
    """Start ``judgesense label`` and wait until it serves."""
    started: list[subprocess.Popen] = []

    def call(source: Path, port: int) -> subprocess.Popen:
        command = [sys.executable, "-m", "judgesense", "label", str(source), "--port", str(port)]
        rubric = source.with_name("rubric.txt")
        rubric.write_text("YES: <b>helps</b>.\nNO: does not.\n" + "Explained at length.\n" * 30)
        more = ["--verdict", "verdict", "--rubric", str(rubric)]
        running = subprocess.Popen([*command, *more], stderr=subprocess.PIPE, text=True)
        started.append(running)
        assert running.stderr is not None
        while "Open" not in (line := running.stderr.readline()):
            assert line, "the server did not start"
        running.address = line.split()[1]
        return running

    yield call
    for each in started:
        each.kill()
        each.wait()
        each.stderr.close()


@pytest.mark.slow
def test_killed_twice_while_labelling_by_keyboard_nothing_is_lost(
    tmp_path: Path, browser, violations, start
) -> None:
    source = verdict_file(tmp_path, LABELS)
    file = tmp_path / "verdicts.labels.csv"
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]

    context = browser.new_context(bypass_csp=True, color_scheme="dark")
    page = context.new_page()
    server = start(source, port)
    page.goto(server.address)
    assert violations(page) == []
    page.keyboard.type("ann")
    page.keyboard.press("Enter")
    page.wait_for_selector(".field")
    assert violations(page) == []
    # What the labels mean stays in sight, and the next goal is said.
    assert "YES: <b>helps</b>." in page.locator(".rubric").inner_text()
    page.mouse.wheel(0, 2000)
    assert page.locator(".rubric").bounding_box()["y"] < 300
    assert "more for about ±20 points" in page.locator("[role=status]").inner_text()
    page.keyboard.press("?")
    assert violations(page) == []
    page.keyboard.press("1")  # For the dialog, not a label.
    page.keyboard.press("Escape")
    given: dict[str, str] = {}

    def count() -> int:
        return int(page.locator("[role=status]").inner_text().split()[0])

    def label(until: int) -> None:
        while (done := count()) < until:
            item = "q" + page.locator(".field p").first.inner_text().split()[1].strip("?")
            given[item] = truth(item)
            page.keyboard.press({"NO": "1", "YES": "2"}[given[item]])
            page.wait_for_function(
                f"document.querySelector('[role=status]').textContent.startsWith('{done + 1} ')"
            )

    for until in (13, 27):
        label(until)
        os.kill(server.pid, signal.SIGKILL)
        server.wait()
        page.keyboard.press("1")
        page.wait_for_function("document.querySelector('[role=alert]').textContent !== ''")
        assert {row["item_id"]: row["label"] for row in rows_of(file)} == given
        server = start(source, port)
        page.goto(server.address)
        page.wait_for_selector(".field")
        assert count() == until
    page.keyboard.press("c")
    page.keyboard.type("hard, but 1")
    page.keyboard.press("Enter")
    page.wait_for_function("document.activeElement === document.body")
    label(30)
    page.keyboard.press("u")
    page.wait_for_function("document.querySelector('[role=status]').textContent.startsWith('29 ')")
    label(LABELS)
    page.wait_for_selector(".done:not([hidden])")
    assert violations(page) == []
    page.get_by_role("button", name="Stop now").click()
    assert server.wait(timeout=20) == 0
    rows = rows_of(file)
    assert {row["item_id"]: row["label"] for row in rows} == given
    assert len(rows) == LABELS
    assert [row["comment"] for row in rows if row["comment"]] == ["hard, but 1"]
    assert all(math.isclose(float(row["probability"]), 1) for row in rows)
    context.close()


@pytest.mark.slow
def test_the_page_on_a_phone(tmp_path: Path, browser, violations) -> None:
    labelling, _ = open_labelling(verdict_file(tmp_path), verdict="verdict")
    server = LabelServer(labelling)
    from threading import Thread

    Thread(target=server.serve, daemon=True).start()
    context = browser.new_context(
        viewport={"width": 360, "height": 640}, has_touch=True, bypass_csp=True
    )
    page = context.new_page()
    page.goto(server.address)
    page.fill("#name", "ann")
    page.get_by_role("button", name="Start").tap()
    page.wait_for_selector(".field")
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    for button in page.locator(".choices button").all():
        box = button.bounding_box()
        assert box["height"] >= 44
        assert box["y"] + box["height"] <= 640
    page.get_by_role("button", name="YES").tap()
    page.wait_for_function("document.querySelector('[role=status]').textContent.startsWith('1 ')")
    assert violations(page) == []
    context.close()
    server.stop()
