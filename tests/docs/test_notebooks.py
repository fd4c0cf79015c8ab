"""The notebooks in examples/ run from top to bottom, without a Hub, and are stored as they ran."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import sys
from pathlib import Path

import pytest

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
NOTEBOOKS = sorted((EXAMPLES / "notebooks").glob("*.ipynb"))


def code_cells(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_stored_small_with_the_outputs_of_one_run(path):
    assert path.stat().st_size < 40_000
    notebook = nbformat.read(path, 4)
    nbformat.validate(notebook)
    cells = code_cells(notebook)
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    outputs = [output for cell in cells for output in cell.outputs]
    assert len(outputs) >= 3
    assert not [output for output in outputs if output.output_type == "error"]
    assert "/work" not in path.read_text("utf-8")


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_opens_in_colab_and_installs_there(path):
    title, *rest = nbformat.read(path, 4).cells
    assert title.source.startswith("[![Open in Colab](")
    assert title.source.partition("\n")[0].endswith(f"/blob/main/examples/notebooks/{path.name})")
    assert "google.colab" in rest[0].source


def test_no_two_notebooks_write_to_one_folder():
    folders = {}
    for path in NOTEBOOKS:
        code = "\n".join(cell.source for cell in code_cells(nbformat.read(path, 4)))
        folders[path.stem] = set(re.findall(r'["(]runs/(\w+)', code))
    assert len(set.union(*folders.values())) == sum(map(len, folders.values())), folders


@pytest.fixture(scope="module")
def examples(tmp_path_factory):
    """One folder for all notebooks, as a reader has it."""
    return shutil.copytree(EXAMPLES, tmp_path_factory.mktemp("notebooks") / "examples")


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_from_top_to_bottom(path, examples, monkeypatch):
    for package in ("datasets", "evaluate"):
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"needs {package}")
    # Its shell lines find the same program as its Python.
    programs = str(Path(sys.executable).parent)
    monkeypatch.setenv("PATH", os.pathsep.join((programs, os.environ["PATH"])))
    folder = examples / "notebooks"
    notebook = nbformat.read(folder / path.name, 4)
    stored = [bool(cell.outputs) for cell in code_cells(notebook)]
    nbclient.NotebookClient(
        notebook,
        timeout=300,
        kernel_name="python3",
        resources={"metadata": {"path": str(folder)}},
    ).execute()
    for cell, before in zip(code_cells(notebook), stored, strict=True):
        shown = [output for output in cell.outputs if output.get("name") != "stderr"]
        assert bool(shown) == before, cell.source
