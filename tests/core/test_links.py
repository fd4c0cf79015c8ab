"""Nothing that writes into a folder follows a link that lies in it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from judgesense.errors import JudgeSenseError
from judgesense.importers.log import import_log
from judgesense.log.folder import folder_lock
from judgesense.log.run_folder import RunFolder
from judgesense.pipeline.demo import demo
from judgesense.pipeline.matching import match_log
from judgesense.reporting.report import write_report
from judgesense.reporting.study_result import Result
from judgesense_dataset.folder import write_verdicts

PRIVATE = "mine"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("demo") / "run"
    demo(folder)
    return folder


def import_into(folder: Path) -> None:
    source = folder.parent / "log.csv"
    source.write_text("judge,task,item_id,template_id,decision\nj,t,1,a,YES\nj,t,1,b,NO\n")
    import_log(source, "table", folder)


def match_into(folder: Path) -> None:
    source = folder.parent / "answers.jsonl"
    source.write_text('{"model": "m", "template_id": "1", "text": "4", "reference": "4"}\n')
    match_log(source, out=folder, method="exact")


def claim(folder: Path) -> None:
    with folder_lock(folder):
        pass


WRITERS: dict[str, Callable[[Path], object]] = {
    "report": write_report,
    "run": lambda folder: RunFolder(folder, {}),
    "claim": claim,
    "study": Result("s", "S", {}).write,
    "import": import_into,
    "match": match_into,
    "verdicts": lambda folder: write_verdicts(folder, {}),
}


@pytest.mark.parametrize("name", ["report.html", "report.json", "check", "decisions", "tables"])
@pytest.mark.parametrize("writer", WRITERS)
def test_a_writer_refuses_a_folder_with_a_link(
    writer: str, name: str, run: Path, tmp_path: Path
) -> None:
    private = tmp_path / "private"
    private.mkdir()
    (private / "file").write_text(PRIVATE)
    folder = tmp_path / "theirs"
    if writer == "import":
        folder.mkdir()
    else:
        shutil.copytree(run, folder)
    link = folder / name
    if link.is_dir():
        shutil.rmtree(link)
    link.unlink(missing_ok=True)
    link.symlink_to(private / "file" if "." in name else private)
    with pytest.raises(JudgeSenseError, match=f"{name} is a link"):
        WRITERS[writer](folder)
    assert [path.read_text() for path in private.iterdir()] == [PRIVATE]


def test_the_folder_itself_may_be_a_link(run: Path, tmp_path: Path) -> None:
    shutil.copytree(run, tmp_path / "real")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert write_report(tmp_path / "link")["cells"]
