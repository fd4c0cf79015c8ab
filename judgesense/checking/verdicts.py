"""``judgesense check FILE``: verdicts that exist already, beside people's labels."""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from judgesense.answers import parse
from judgesense.checking.annotators import LabelsByPerson, labels_by_item, one_row_an_item
from judgesense.checking.result import RUNS, CheckResult, Inconclusive
from judgesense.errors import JudgeSenseError
from judgesense.files.disk import require_file
from judgesense.files.documents import read_json
from judgesense.files.tables import SUFFIXES, Record, is_dataset, read_table_rows
from judgesense.importers import FORMATS, Items
from judgesense.importers.column_names import Column, columns_of
from judgesense.importers.columns import ColumnMap
from judgesense.importers.log import import_log, importer_of, source_digest
from judgesense.importers.people import PeopleLabels
from judgesense.importers.recognise import (
    looks_like_labels,
    people_columns,
    require_columns,
    understand,
)
from judgesense.log.invocation import invocation
from judgesense.pipeline import to_stderr
from judgesense.reporting.report import report_runs
from judgesense.reporting.study_result import Result
from judgesense.statistics.alternative_annotator import EPSILON
from judgesense.text import join


def check_file(
    source: str | Path,
    *,
    verdict: Sequence[str] = (),
    human: Sequence[str] = (),
    columns: Mapping[str, str] | None = None,
    map: Mapping[str, str] | None = None,
    answers: Sequence[str] | None = None,
    pick: str | None = None,
    epsilon: float = EPSILON,
    out: str | Path | None = None,
    runs: str | Path = RUNS,
    inconclusive: Inconclusive | None = None,
    note: Callable[[str], None] | None = None,
) -> CheckResult:
    """Measure verdicts that were given already, as :func:`judgesense.check` describes.

    ``human`` may also name a file of labels, such as ``judgesense label`` writes. ``note`` is
    called with what was understood, before anything is measured.

    Raises JudgeSenseError for an unknown file or column, and for verdicts or labels that cannot be
    compared; the message names the option that settles it.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "mine.csv")
    ...     _ = file.write_text("id,verdict,label\\n1,pass,PASS\\n2,fail,FAIL\\n3,pass,FAIL\\n")
    ...     found = check_file(file, out=Path(folder, "out"), note=str)
    >>> found.report.people[0]["confusion"]["PASS"]
    {'FAIL': 1, 'PASS': 1}
    """
    started = invocation(
        "check",
        check_file,
        {
            "source": source,
            "verdict": tuple(verdict),
            "human": tuple(human),
            "columns": columns,
            "map": map or None,
            "answers": answers,
            "pick": pick,
            "epsilon": epsilon,
            "out": out,
        },
    )
    if not 0 <= epsilon <= 1:
        raise JudgeSenseError(f"epsilon is {epsilon}; choose a number from 0 to 1, such as 0.2")
    path, tell = Path(source), note or to_stderr
    name = format_of(path)
    importer = importer_of(name)
    found, size = columns_of(importer.read(path, Items(), pick))
    joined: LabelsByPerson = {}
    chances: dict[str, float] = {}
    named = [each for each in human if not Path(each).is_file()]
    by_person = None
    if name == "table" and len(named) == len(human):
        by_person = one_row_an_item(
            path, found, Path(runs), human=human, columns=columns or {}, tell=tell
        )
    if by_person:
        path, joined = by_person
        columns = {"task": f":{Path(source).stem}", **(columns or {})}
        named = []
        found, size = columns_of(importer.read(path, Items(), pick))
    for file in [each for each in human if Path(each).suffix in SUFFIXES and Path(each).is_file()]:
        labels, picked = labels_by_item(Path(file))
        joined, chances = joined | labels, chances | picked
    for rater, by_item in joined.items():
        if rater in found:
            raise JudgeSenseError(f"{path}: {rater!r} names a column and a person; rename one")
        found[rater] = Column()
        found[rater].add([*by_item.values(), *[None] * max(0, size - len(by_item))])
    people = [*joined, *(named if joined else human)]
    if name != "table" and verdict:
        raise JudgeSenseError(f"--verdict names a column of a table; {path} is a {name} log")
    meant = understand(
        found,
        size,
        str(path),
        verdicts=verdict,
        people=people,
        columns=columns,
        mapping=map,
        labels=answers,
        is_log=name != "table",
    )
    for line in meant.lines:
        tell(line)
    asked: dict[str, Any] = {
        "columns": meant.columns,
        "labels": meant.labels,
        "people": meant.people,
        "mapping": dict(meant.mapping),
        "pick": pick,
        **({"joined": joined} if joined else {}),
    }
    if out is None:
        facts = [name, source_digest([path]), epsilon, sorted(asked.items())]
        digest = hashlib.sha256(json.dumps(facts, sort_keys=True, default=str).encode()).hexdigest()
        out = Path(runs) / f"{Path(source).stem.lstrip('.')}-{digest[:8]}"
    if len({*chances.values()}) > 1:
        tell(
            "items were picked with unequal probabilities: accuracy is weighted for this; κ "
            "and each label's figures describe the labelled items"
        )
        asked["label_chances"] = chances
    import_log(path, name, out, parse=parse, epsilon=epsilon, invocation=started, **asked)
    report = report_runs(out)
    if joined and not report.people:
        raise JudgeSenseError(f"no label in {human[0]} matches an item of {path}; use the same ids")
    result = Result("check", f"Check of {Path(source).name}", {})
    return CheckResult.of(report, Path(out), result, inconclusive)


def labelled_rows(
    data: Path, human: Sequence[str], shown: set[str], note: Callable[[str], None]
) -> list[Record]:
    """The rows of a table to judge, with people's labels as ``gold``.

    ``human`` are their columns; by default they are recognised among those that the rubric does not
    show. Raises JudgeSenseError for an unknown column, and for several that could be meant.
    """
    blocks = list(read_table_rows(data))
    found, _ = columns_of(blocks)
    require_columns(found, str(data), human, "--human")
    others = {name: column for name, column in found.items() if name not in shown}
    people = list(human)
    if not people and "gold" not in found:
        lines: list[str] = []
        people = people_columns(others, lines)
        for line in lines:
            note(line)
    if people:
        more = ": the majority counts, ties have no label" if len(people) > 1 else ""
        note(f"{data.name}: people's labels in {join(people)}{more}")
        words = tuple(word for name in people for word in found[name].words.values())
        labels = PeopleLabels(ColumnMap({}), people, labels=words)
        blocks = [labels.labelled(rows) for rows in blocks]
    elif said := looks_like_labels(others, ["gold"], ()):
        note(said)
    return [record for rows in blocks for record in rows.records()]


def format_of(path: Path) -> str:
    """The import format of a file, by its suffix and contents.

    Raises JudgeSenseError for no such file, and for one that no format reads.
    """
    if is_dataset(path):
        return "table"
    require_file(path)
    if zipfile.is_zipfile(path) and path.suffix != ".parquet":
        return "inspect"
    suffix, keys, columns = path.suffix.lower(), set[str](), set[str]()
    if suffix == ".eval":
        return "inspect"
    if suffix == ".json" and isinstance(content := read_json(path), dict) and "data" not in content:
        keys = set(content)
    elif suffix in (*SUFFIXES, ".json"):
        columns = set(next(iter(read_table_rows(path))).columns)
    for name in FORMATS:
        importer = importer_of(name)
        tables = any(columns >= {*each} for each in importer.row_keys)
        if tables or keys & {*importer.keys}:
            return name
    if suffix in (*SUFFIXES, ".json"):
        return "table"
    raise JudgeSenseError(
        f"{path}: not a file of verdicts; check reads {', '.join(SUFFIXES)}, .json, Inspect's "
        ".eval and folders of datasets, and a rubric as RUBRIC.txt with --data FILE --judge JUDGE"
    )
