"""The wheel in an environment of its own, far from any checkout: everything a person does first."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import sysconfig
import time
import urllib.error
import urllib.request
import zipfile

import pytest
from check_dist import ROOT, distributions, problems_of_sdist, problems_of_wheel

from judgesense.version import __version__

pytest.importorskip("hatchling")
pytest.importorskip("build")
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def dist(tmp_path_factory):
    """The folder with the wheel and the source distribution of this checkout."""
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    return folder


@pytest.fixture(scope="module")
def home(dist, tmp_path_factory):
    """An empty folder, and beside it an environment with our wheel alone.

    What the wheel needs is borrowed from the environment of the tests by a .pth line, which does
    not lend the checkout that an editable install points to.
    """
    base = tmp_path_factory.mktemp("elsewhere")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(base / "env")], check=True)
    pip = [sys.executable, "-m", "pip", "--python", str(base / "env" / "bin" / "python")]
    quiet = ["--no-deps", "--no-index", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "install", *quiet, str(distributions(dist)[0])], check=True)
    (site,) = (base / "env" / "lib").glob("python*/site-packages")
    (site / "borrowed.pth").write_text(sysconfig.get_paths()["purelib"] + "\n")
    (base / "empty").mkdir()
    return base / "empty"


@pytest.fixture
def start(home):
    """Start ``judgesense ...`` of the new environment in the empty folder."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "HF_"))}
    environment = {**kept, "HF_HUB_OFFLINE": "1", "HF_HOME": str(home.parent / "hf")}
    program = home.parent / "env" / "bin" / "judgesense"

    def call(*arguments):
        return subprocess.Popen(
            [str(program), *map(str, arguments)],
            cwd=home,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    return call


@pytest.fixture
def does(start):
    """Run ``judgesense ...`` to its end; returns what it says."""

    def call(*arguments):
        process = start(*arguments)
        out, err = process.communicate(timeout=300)
        assert process.returncode == 0, err[-3000:]
        return out

    return call


def test_wheel_and_source_hold_what_they_should_and_no_more(dist, tmp_path):
    wheel, sdist = distributions(dist)
    assert list(problems_of_wheel(wheel)) == []
    assert list(problems_of_sdist(sdist)) == []
    checked = [sys.executable, "-m", "twine", "check", "--strict", str(wheel), str(sdist)]
    done = subprocess.run(checked, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    # The check itself tells what is wrong.
    spoilt = tmp_path / wheel.name
    with zipfile.ZipFile(wheel) as whole, zipfile.ZipFile(spoilt, "w") as other:
        for name in whole.namelist():
            if name != "judgesense/py.typed":
                other.writestr(name, whole.read(name))
        other.writestr("tests/test_all.py", "")
    assert list(problems_of_wheel(spoilt)) == [
        "judgesense/py.typed is missing",
        "tests/ should not be there",
    ]


def test_it_judges_reports_and_shows_what_it_would_publish(does, dist, home):
    assert does("--version") == f"judgesense {__version__}\n"
    judged = ("--judge", "smollm2-135m", "--tasks", "factuality", "--limit", 2)
    said = does("run", *judged, "--scoring", "options", "--out", "run")
    assert "smollm2-135m" in said
    assert "oracle" in does("report", "run", "--verbose")
    cells = json.loads((home / "run" / "report.json").read_text("utf-8"))["cells"]
    assert {cell["task"] for cell in cells} == {"factuality"}

    rows = [
        {"question": f"What is {n} plus {n}?", "response": f"It is {2 * n + n % 2}.", "gold": gold}
        for n, gold in enumerate(["YES", "NO"] * 10)
    ]
    (home / "sums.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    own = ("--source", "own", "--task", "factuality", "--items", "sums.jsonl")
    does("dataset", "build", *own, "--no-verdicts", "--out", "pairs")
    for what, arguments, shown in (
        ("dataset", ("pairs", "--repo", "org/pairs"), "+ factuality/test.parquet"),
        ("results", ("run", "--repo", "org/results"), "/report.json"),
        ("metrics", ("--org", "org", "jss", "--wheel", distributions(dist)[0]), "+ jss.py"),
        ("space", ("--repo", "org/board", "--results", "run"), "+ board.json"),
    ):
        said = does("publish", what, *arguments, "--dry-run")
        assert shown in said
        assert "nothing was published (--dry-run)" in said


def test_pytest_and_inspect_find_the_plugins(home):
    (home / "test_nothing.py").write_text("def test_nothing(judge_check):\n    pass\n", "utf-8")
    python = str(home.parent / "env" / "bin" / "python")
    kept = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    command = [python, "-m", "pytest", "-q", "--strict-markers", "test_nothing.py", "--markers"]
    code = (
        "from inspect_ai._util.registry import registry_lookup as found;"
        "print(bool(found('scorer', 'judgesense/stable')))"
    )
    for arguments, shown in (
        (command, "@pytest.mark.judge(rubric"),
        (command[:-1], "1 passed"),
        ([python, "-c", code], "True"),
    ):
        done = subprocess.run(
            arguments, cwd=home, env=kept, capture_output=True, text=True, check=False
        )
        assert shown in done.stdout, done.stdout[-2000:] + done.stderr[-2000:]


def test_the_leaderboard_starts_answers_and_stops(start):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = start("leaderboard", "--no-browser", "--port", port)
    try:
        assert "JudgeSense" in first_answer(f"http://127.0.0.1:{port}/", process)
    finally:
        process.terminate()
        process.communicate(timeout=60)
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=5)


def first_answer(address, process):
    for _ in range(240):
        assert process.poll() is None, process.communicate()[1][-3000:]
        try:
            with urllib.request.urlopen(address, timeout=10) as answer:
                assert answer.status == 200
                return answer.read().decode()
        except (urllib.error.URLError, ConnectionError):
            time.sleep(0.5)
    raise AssertionError(f"{address} does not answer")
