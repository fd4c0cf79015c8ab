"""The modules from a wheel, in a new environment, with no network; and eight processes at once."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

pytest.importorskip("evaluate")
pytest.importorskip("hatchling", reason="builds a wheel")

ROOT = Path(__file__).resolve().parents[2]

WITHOUT_TRANSFORMERS = """
import sys

class WithoutTransformers:
    # evaluate imports it, and with it torch, where it is there: seconds for nothing.
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "transformers":
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, WithoutTransformers())
"""

EVERY_MODULE = """
import importlib.util
import evaluate, judgesense
assert "site-packages" in judgesense.__file__ and sys.prefix in judgesense.__file__
assert importlib.util.find_spec("metrics") is None
rows = {
    "jss": (["A", "B"], ["A", "A"]),
    "paraphrase_robustness": ([[4, 5], [2, 2]], [4, 2]),
    "prompt_sensitivity": ([[0.5, 0.6], [0.7, 0.4]], None),
    "ranking_stability": ([[0.1, 0.5, 0.4], [0.3, 0.2, 0.6]], None),
    "position_bias": (["A", "B"], ["B", "B"]),
    "answer_match": (["The answer is B.", "C"], ["B", "A"]),
}
for name, (predictions, references) in rows.items():
    path = judgesense.metric_path(name)
    assert path.startswith(sys.prefix) and "_metrics" in path
    given = {"predictions": predictions}
    if references:
        given["references"] = references
    first, second = evaluate.load(path), evaluate.load(path)
    first.add_batch(**given)
    second.add_batch(**given)
    expected = getattr(judgesense, name)(**given)
    assert first.compute() == second.compute() == expected, name
both = evaluate.combine([judgesense.metric_path("jss"), judgesense.metric_path("position_bias")])
both.add_batch(predictions=["A", "B"], references=["A", "A"])
assert both.compute()["jss"] == 0.5
print("all modules agree")
"""

SHARED_EVALUATION = """
import evaluate, judgesense
me = int(sys.argv[1])
metric = evaluate.load(
    judgesense.metric_path("jss"), num_process=2, process_id=me, experiment_id="shared"
)
metric.add_batch(predictions=["A", "B"], references=["A", "A" if me else "B"])
result = metric.compute()
print(None if result is None else (result["jss"], result["n_pairs"]))
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """The python of a new environment with our wheel; what it needs is borrowed from this one."""
    home = tmp_path_factory.mktemp("installed")
    pip = [sys.executable, "-m", "pip"]
    quiet = ["--no-deps", "--no-index", "--quiet", "--disable-pip-version-check"]
    subprocess.run(
        [*pip, "wheel", *quiet, "--no-build-isolation", "-w", str(home), str(ROOT)], check=True
    )
    (wheel,) = home.glob("judgesense-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert not [name for name in names if name.startswith("metrics/") or "__pycache__" in name]
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(home / "env")], check=True)
    python = home / "env" / "bin" / "python"
    subprocess.run([*pip, "--python", str(python), "install", *quiet, str(wheel)], check=True)
    # A .pth line lends the packages, but not the checkout that an editable install points to.
    (site,) = (home / "env" / "lib").glob("python*/site-packages")
    (site / "borrowed.pth").write_text(sysconfig.get_paths()["purelib"] + "\n")
    return python


def start(python, folder, script=EVERY_MODULE, *arguments):
    """Run a script from an empty folder with a module cache of its own."""
    folder.mkdir(exist_ok=True)
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    environment.update(
        HF_HOME=str(folder / "home"),
        HF_MODULES_CACHE=str(folder / "modules"),
        HF_HUB_OFFLINE="1",
        HF_EVALUATE_OFFLINE="1",
        OMP_NUM_THREADS="1",
    )
    return subprocess.Popen(
        [str(python), "-c", WITHOUT_TRANSFORMERS + script, *arguments],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.slow
def test_every_module_loads_from_a_wheel_in_a_fresh_process_without_a_network(installed, tmp_path):
    process = start(installed, tmp_path)
    told, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors
    assert told == "all modules agree\n"


@pytest.mark.slow
def test_eight_processes_at_once_meet_in_an_empty_cache_and_agree(installed, tmp_path):
    processes = [start(installed, tmp_path) for _ in range(8)]
    outcomes = [process.communicate(timeout=600) for process in processes]
    assert [p.returncode for p in processes] == [0] * 8, outcomes
    assert {told for told, _ in outcomes} == {"all modules agree\n"}


@pytest.mark.slow
def test_two_processes_can_share_one_evaluation(installed, tmp_path):
    processes = [start(installed, tmp_path, SHARED_EVALUATION, str(me)) for me in range(2)]
    outcomes = [process.communicate(timeout=300) for process in processes]
    assert [told for told, _ in outcomes] == ["(0.75, 4)\n", "None\n"], outcomes
