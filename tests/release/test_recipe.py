"""The conda recipe says what ``pyproject.toml`` says."""

from __future__ import annotations

import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml

from judgesense.version import __version__

ROOT = Path(__file__).parents[2]


def test_the_recipe_says_what_the_project_says() -> None:
    whole = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    project, wheel = whole["project"], whole["tool"]["hatch"]["build"]["targets"]["wheel"]
    recipe = yaml.safe_load((ROOT / "packaging/conda/recipe.yaml").read_text("utf-8"))
    python, *run = recipe["requirements"]["run"]
    # Conda has no extras, so none may be among the dependencies.
    assert [each.replace(" ", "") for each in run] == project["dependencies"]
    assert python == "python >=${{ python_min }}"
    assert project["requires-python"] == f">={recipe['context']['python_min']}"
    assert {each.replace(" ", "") for each in recipe["requirements"]["host"][1:]} == {
        "pip",
        *whole["build-system"]["requires"],
    }
    ((name, target),) = project["scripts"].items()
    assert recipe["build"]["python"]["entry_points"] == [f"{name} = {target}"]
    assert recipe["tests"][0]["python"]["imports"] == wheel["packages"]
    about = recipe["about"]
    assert about["summary"] == project["description"]
    assert about["license"] == project["license"]
    assert about["license_file"] == project["license-files"]
    assert about["homepage"] == project["urls"]["Homepage"]
    assert about["documentation"] == project["urls"]["Documentation"]


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
def test_the_release_fills_in_the_version_and_the_hash(tmp_path: Path) -> None:
    planned = subprocess.run(
        ["make", "--dry-run", "release"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    (line,) = [line for line in planned.stdout.splitlines() if line.endswith("dist/recipe.yaml")]
    (tmp_path / "dist").mkdir()
    hashes = {"x.whl": "a" * 64, "judgesense-1.tar.gz": "b" * 64}
    sums = "".join(f"{digest}  {name}\n" for name, digest in hashes.items())
    (tmp_path / "dist/SHA256SUMS").write_text(sums)
    (tmp_path / "packaging").symlink_to(ROOT / "packaging")
    subprocess.run(["sh", "-c", line], cwd=tmp_path, check=True)
    recipe = yaml.safe_load((tmp_path / "dist/recipe.yaml").read_text("utf-8"))
    assert recipe["context"]["version"] == __version__
    assert recipe["source"]["sha256"] == "b" * 64
