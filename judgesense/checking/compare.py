"""``judgesense compare``: two runs, or two files of verdicts, each of which is imported first."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from judgesense.checking.file import import_verdicts
from judgesense.checking.options import FileOptions, ResultOptions
from judgesense.comparison import compare as runs_compared
from judgesense.comparison.compare_result import Comparison
from judgesense.files.data import Data, materialise
from judgesense.files.tables import is_dataset
from judgesense.pipeline.settings import to_stderr
from judgesense.reporting.change_page import write_change_page

RUNS = Path("runs/compare")


def compare(
    a: Data,
    b: Data,
    *,
    anchors: Data | None = None,
    positive: str | None = None,
    verdict: str | Sequence[str] = (),
    human: str | Sequence[str] = (),
    columns: Mapping[str, str] | None = None,
    map: Mapping[str, str] | None = None,
    answers: Sequence[str] | None = None,
    pick: str | None = None,
    out: str | Path | None = None,
    runs: str | Path = RUNS,
    note: Callable[[str], None] | None = None,
) -> Comparison:
    """Compare two results: whose judge is better, and was a change of the mean the judge's?

    No labels are needed. Where an output is the same in both results, only the judge can have
    changed; the change of the mean is split into its part and that of the judged system.

    Args:
        a: the earlier result: the folder of a run, a file of verdicts, or rows in memory.
        b: the later one.
        anchors: verdicts of B's judge on outputs of A, where too few outputs are the same.
        positive: the label that counts as good, where the labels do not show it.
        verdict: for files, the column of verdicts, as in :func:`judgesense.check`.
        human: for files, the columns with people's labels.
        columns: for files, other columns: ``{"item_id": "question", "output": "reply"}``.
        map: words of the judge to labels.
        answers: the possible verdicts.
        pick: the scorer or score to read, if a log has several.
        out: the page with every changed verdict, an HTML file; by default none is written.
        runs: the folder of what is imported.
        note: takes what a person should know of how the files are read; by default it is printed
            to standard error.

    Raises:
        JudgeSenseError: a source that cannot be read, no common task or item, or verdicts on two
            scales.

    >>> import tempfile
    >>> old = [{"id": i, "output": f"text {i}", "verdict": "pass"} for i in range(40)]
    >>> new = [row | {"verdict": "fail"} for row in old[:20]] + old[20:]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     result = compare(old, new, runs=folder, note=lambda text: None)
    >>> result.split.judge, result.split.system, result.changes[0].flips[0]["cause"]
    (-0.5, 0.0, 'judge')
    """
    options = FileOptions(
        verdict=(verdict,) if isinstance(verdict, str) else tuple(verdict),
        human=(human,) if isinstance(human, str) else tuple(human),
        columns=columns,
        map=map,
        answers=answers,
        pick=pick,
    )
    output = ResultOptions(runs=runs, note=note or to_stderr)
    sources: list[Any] = [a, b] if anchors is None else [a, b, anchors]
    names = ("old", "new", "anchors")
    folders = [
        _folder(source, name, options, output) for source, name in zip(sources, names, strict=False)
    ]
    found = runs_compared.compare(
        folders[0],
        folders[1],
        anchors=folders[2] if anchors is not None else None,
        positive=positive,
    )
    if out is None or not found.changes:
        return found
    title = found.changes[0].sentences[0] if len(found.changes) == 1 else "What changed"
    sentences = [text for text in found.sentences if text != title]
    flips = [row for change in found.changes for row in change.flips]
    page = write_change_page(Path(out), folders[0], folders[1], title, sentences, flips)
    return replace(found, page=str(page))


def _folder(source: Data, name: str, options: FileOptions, output: ResultOptions) -> Path:
    """The folder of a run; a file of verdicts is imported into one first."""
    path = materialise(source, output.beside, name)
    if path.is_dir() and not is_dataset(path):
        return path
    # Two files that are equal are still two results.
    apart = replace(output, runs=Path(output.runs) / name)
    folder, _ = import_verdicts(path, options, apart, with_outputs=True)
    return folder
