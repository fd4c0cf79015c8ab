"""The bill of materials of a release, and its hashes."""

from __future__ import annotations

import json
import subprocess
import zipfile
from pathlib import Path

import pytest
from sums import problems_of_sbom, write_sums


def wheel(folder: Path) -> Path:
    path = folder / "mine-1-py3-none-any.whl"
    needs = ["numpy>=1.26", "Typing_Extensions>=4", 'torch>=2.4; extra == "local"']
    text = "".join(f"Requires-Dist: {need}\n" for need in needs)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("mine-1.dist-info/METADATA", f"Name: mine\n{text}")
    return path


def bill(folder: Path, **parts: str | None) -> Path:
    path = folder / "mine-1.cdx.json"
    listed = [{"name": name, "version": version} for name, version in parts.items()]
    path.write_text(json.dumps({"bomFormat": "CycloneDX", "components": listed}))
    return path


@pytest.mark.parametrize(
    ("parts", "problems"),
    [
        ({"numpy": "2.0", "typing-extensions": "4.1"}, []),
        ({"numpy": "2.0"}, ["mine-1.cdx.json lacks typing-extensions"]),
        (
            {"numpy": None, "typing_extensions": "file:///root/x"},
            [
                "mine-1.cdx.json has no version of numpy",
                "mine-1.cdx.json names a local path",
                "mine-1.cdx.json names a local path",
            ],
        ),
    ],
)
def test_what_a_bill_lacks_is_named(tmp_path: Path, parts: dict, problems: list[str]) -> None:
    assert list(problems_of_sbom(bill(tmp_path, **parts), wheel(tmp_path))) == problems


def test_sha256sum_accepts_the_sums(tmp_path: Path) -> None:
    write_sums(wheel(tmp_path).parent)
    write_sums(tmp_path)
    check = ["sha256sum", "--check", "--strict", "SHA256SUMS"]
    assert subprocess.run(check, cwd=tmp_path, capture_output=True).returncode == 0
    wheel(tmp_path).write_bytes(b"other")
    assert subprocess.run(check, cwd=tmp_path, capture_output=True).returncode == 1
