"""``judgesense check FILE``: verdicts that exist already, beside people's labels."""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from judgesense.answers import parse
from judgesense.checking.annotators import LabelsByPerson, labels_by_item, pivot_people
from judgesense.checking.options import FileOptions, ResultOptions
from judgesense.checking.requirements import Requirement
from judgesense.checking.result import CheckResult
from judgesense.comparison.score_sides import judge_changes
from judgesense.errors import JudgeSenseError
from judgesense.files.data import Data, materialise
from judgesense.files.encoding import encoding_of
from judgesense.files.tables import SUFFIXES, Rows
from judgesense.importers import Items
from judgesense.importers.column_names import ROLES, columns_of, header_key
from judgesense.importers.columns import COMPARED
from judgesense.importers.copies import SHARED
from judgesense.importers.log import format_of, import_log, importer_of, source_digest
from judgesense.importers.outputs import OUTPUT, Levels, Outputs
from judgesense.importers.reading import FileReading, understand
from judgesense.importers.values import with_other
from judgesense.log.folder import RUN_FILE
from judgesense.log.invocation import invocation
from judgesense.reporting.report import report_runs
from judgesense.reporting.study_result import Result
from judgesense.text import join, plural_s, sentence

_READING_VERSION = 3
"""Counts the ways of reading a file: an answer that was read otherwise is not reused."""


def check_file(source: Data, options: FileOptions, output: ResultOptions) -> CheckResult:
    """Measure verdicts that were given already, as :func:`judgesense.check` describes.

    ``options.human`` may also name a file of labels, such as ``judgesense label`` writes. A note
    says how the file was understood, before anything is measured.

    Raises JudgeSenseError for an unknown file or column, and for verdicts or labels that cannot be
    compared; the message names the option that settles it.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "mine.csv")
    ...     _ = file.write_text("id,verdict,label\\n1,pass,PASS\\n2,fail,FAIL\\n3,pass,FAIL\\n")
    ...     output = ResultOptions(out=Path(folder, "out"), note=str)
    ...     check = check_file(file, FileOptions(), output)
    >>> check.report.people[0]["confusion"]["PASS"]
    {'FAIL': 1, 'PASS': 1}
    """
    for text in output.require:
        Requirement.parse(text)
    path = materialise(source, output.beside, "data")
    if output.baseline is None:
        return _measure(path, options, output).requiring(output.require)
    earlier = materialise(output.baseline, output.beside, "baseline")
    if not (earlier / RUN_FILE).is_file():
        quiet = ResultOptions(runs=output.runs, note=lambda _: None)
        file, measured = earlier, _measure(earlier, options, quiet)
        earlier = measured.out
        is_labelled = any(entry.people for entry in measured.report.assessments)
        if is_labelled and _lacks_labels(path, options, quiet) and file.suffix in SUFFIXES:
            output.note(f"{path.name} has no labels of people; those of {file.name} are used.")
            options = replace(options, human=(str(file),))
    newer = _measure(path, options, output)
    if changed := judge_changes(earlier, newer.out):
        output.note(
            f"The judge changed: {join(changed)}. What changed may be the judge, not the system."
        )
    return newer.against(earlier, output.margin, output.looks).requiring(output.require)


def _lacks_labels(path: Path, options: FileOptions, output: ResultOptions) -> bool:
    """Whether a file has no labels of people and nobody named any."""
    if options.human or format_of(path) != "table":
        return False
    return not _with_labels(path, "table", options, output).understood.people


def reading_of(source: Data, options: FileOptions, output: ResultOptions) -> tuple[str, ...]:
    """How a file of verdicts is read, one line a role; nothing is measured. Raises JudgeSenseError
    as `check_file`."""
    with tempfile.TemporaryDirectory() as scratch:
        # A table with one row a person is rewritten with one row a verdict, as in a check.
        output = replace(output, out=None, runs=Path(scratch))
        path = materialise(source, output.beside, "data")
        return _with_labels(path, format_of(path), options, output).understood.lines


def _measure(path: Path, options: FileOptions, output: ResultOptions) -> CheckResult:
    """Import a file of verdicts, and report on it."""
    out, joined = import_verdicts(path, options, output)
    report = report_runs(out)
    if joined and not any(entry.people for entry in report.assessments):
        raise JudgeSenseError(
            f"no label in {options.human[0]} matches an item of {path}; use the same ids"
        )
    tables = Result("check", f"Check of {path.name}", {})
    return replace(CheckResult.of(report, out, tables, output.inconclusive), is_gate=False)


def import_verdicts(
    path: Path, options: FileOptions, output: ResultOptions, *, with_outputs: bool = False
) -> tuple[Path, bool]:
    """Import a file of verdicts, as it is understood; its folder, and whether labels were joined.

    ``with_outputs``: the id of a prompt then says which output was judged, and ``run.json`` names
    the columns of the output. Raises JudgeSenseError as `check_file`.
    """
    if not 0 <= options.epsilon <= 1:
        raise JudgeSenseError(
            f"epsilon is {options.epsilon}; choose a number from 0 to 1, such as 0.2"
        )
    columns = dict(options.columns or {})
    stated = columns.pop(OUTPUT, None)
    name = format_of(path)
    if name != "table" and options.verdict:
        raise JudgeSenseError(f"--verdict names a column of a table; {path} is a {name} log")
    arguments = {"source": path, **asdict(options), "map": options.map or None, "out": output.out}
    arguments |= {"verdict": tuple(options.verdict), "human": tuple(options.human)}
    options = replace(options, columns=columns)
    file, levels = _read(path, name, options, output, with_levels=with_outputs)
    outputs = Outputs.of(file.path, file.understood, stated) if with_outputs else None
    output.note("\n".join([*file.understood.lines, *([outputs.line] if outputs else [])]))
    facts = file.facts | {"pick": options.pick}
    steps = [*file.understood.steps()]
    if levels is not None:
        steps.append(levels)
    if outputs is not None and len(facts["labels"] or ()) == 1:
        # Every verdict may be the same in one of two results.
        facts["labels"] = with_other(facts["labels"][0])
    if outputs is not None and outputs.names:
        steps.append(outputs)
        facts["columns"] = {**facts["columns"], "prompt": COMPARED}
    out = output.out
    if out is None:
        outputs_read = [outputs.names] if outputs else []
        out = _folder(path, name, file, [options.epsilon, sorted(facts.items()), *outputs_read])
        out = Path(output.runs) / out
    if len({*file.chances.values()}) > 1:
        output.note(
            "items were picked with unequal probabilities: the figures are weighted for this; "
            "the table of verdicts by label and where the judge is wrong describe the labelled "
            "items only"
        )
        facts["label_chances"] = file.chances
    facts["scores"] = file.understood.scores
    facts["identity"] = dict(file.understood.identity)
    if outputs is not None:
        facts["outputs"] = list(outputs.names)
    record = import_log(
        file.path,
        name,
        out,
        parse=parse,
        epsilon=options.epsilon,
        invocation=invocation("check", FileOptions, arguments),
        steps=steps,
        **facts,
    )
    for line in _not_read(record, path, has_labels=bool(options.answers or options.map)):
        output.note(line)
    return Path(out), bool(file.joined)


def _read(
    path: Path, name: str, options: FileOptions, output: ResultOptions, with_levels: bool
) -> tuple[_File, Levels | None]:
    """The file as it is understood; its scores are levels where ``with_levels`` allows it and
    nothing else makes them labels."""
    try:
        return _with_labels(path, name, options, output), None
    except JudgeSenseError:
        levels = None
        if with_levels and not (options.answers or options.map):
            levels = _levels(path, name, options, output)
        if levels is None:
            raise
    output.note(levels.line)
    return _with_labels(path, name, replace(options, answers=levels.labels), output), levels


def _folder(path: Path, name: str, file: _File, options: Sequence[object]) -> str:
    """The name of the folder for a file, its contents and how it is read."""
    identity = [_READING_VERSION, name, source_digest([file.path]), *options]
    text = json.dumps(identity, sort_keys=True, default=str)
    return f"{path.stem.lstrip('.')}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"


def _not_read(record: Mapping[str, Any], path: Path, has_labels: bool) -> Iterator[str]:
    """What is no verdict, and which items repeat another one. Raises JudgeSenseError where most
    rows are unread and nobody named the labels."""
    counts = record.get("no_verdict", {})
    lines = list(no_verdict(counts))
    rows = sum(sum(of_task.values()) for of_task in record["counts"].values())
    if not has_labels and 2 * counts.get("unread", 0) > rows:
        unread = next(line for line in lines if "unread" in line)
        raise JudgeSenseError(
            f"{path}: {unread} That is most of {rows}: name the labels with --answers, or "
            "translate the words with --map"
        )
    yield from lines
    texts = {
        what: sum(of_task.get(status, 0) for of_task in record["counts"].values())
        for status, what in (("refused", "a refusal"), ("unclear", "undecided"))
    }
    if some := [f"{n} {'is' if n == 1 else 'are'} {what}" for what, n in texts.items() if n]:
        yield f"Of the verdicts, {join(some)}: wrong beside people's labels."
    if shared := record.get("shared"):
        parts = [
            f"{n} item{plural_s(n)} repeat{'s' * (n == 1)} {what} of another one"
            for name, what in SHARED.items()
            if (n := shared[name])
        ]
        yield f"{join(parts)}: intervals count them as one ({shared['clusters']} clusters)."


def _levels(path: Path, name: str, options: FileOptions, output: ResultOptions) -> Levels | None:
    """The levels of a file's scores, if its one column of verdicts holds fractions."""
    anything = replace(options, answers=("0", "1"))
    quiet = replace(output, note=lambda _: None)
    file = _with_labels(path, name, anything, quiet)
    judged = file.understood.columns.get("raw_decision", "")
    return Levels.of(importer_of(name).read(file.path, Items(), options.pick), judged)


def no_verdict(counts: Mapping[str, Any]) -> Iterator[str]:
    """What a file's cells without a verdict are, one sentence a kind, with the commonest texts."""
    if blank := counts.get("blank"):
        rows = f"{blank} row{plural_s(blank)} without a verdict"
        yield f"{rows}: counted in readable, left out elsewhere."
    for kind, what in (("failed", "failed call"), ("unread", "unread cell")):
        if count := counts.get(kind):
            texts = ", ".join(f"{text!r} {n}" for text, n in counts["texts"][kind].items())
            are = "are no verdicts" if count > 1 else "is no verdict"
            yield f"{count} {what}{plural_s(count)}, which {are}: {texts}."
    if count := counts.get("misspelt"):
        texts = ", ".join(f"{text!r} {n}" for text, n in counts["texts"]["misspelt"].items())
        cells = f"{count} cell{plural_s(count)} misspelt or shortened"
        yield f"{cells}, read as the label meant: {texts}."


@dataclass(frozen=True)
class _File:
    """A file of verdicts, or a copy of it with one row a verdict, and how it is understood.

    ``joined`` are people's labels from other files, by person and item, and ``chances`` those with
    which ``judgesense label`` picked these items.
    """

    path: Path
    understood: FileReading
    joined: LabelsByPerson = field(default_factory=dict)
    chances: Mapping[str, float] = field(default_factory=dict)

    @property
    def facts(self) -> dict[str, Any]:
        """What :func:`judgesense.importers.log.import_log` is asked."""
        return self.understood.facts | ({"joined": self.joined} if self.joined else {})


def _with_labels(path: Path, name: str, options: FileOptions, output: ResultOptions) -> _File:
    """The file in the format ``name``, its columns understood together with people's labels."""
    source, joined, chances = path, LabelsByPerson(), dict[str, float]()
    importer, columns = importer_of(name), options.columns
    files = [Path(each) for each in options.human if Path(each).is_file()]
    people = [each for each in options.human if not Path(each).is_file()]
    verdicts: Sequence[str] = options.verdict
    if name == "table" and not files:
        held, _ = columns_of(importer.read(path, Items(), options.pick))
        pivoted = pivot_people(
            path, held, Path(output.runs), human=people, columns=columns or {}, tell=output.note
        )
        if pivoted:
            path, people, models, pair = pivoted
            verdicts = verdicts or models
            columns = {**pair, **(columns or {})}
            if not any(header_key(name) in ROLES["task"].split() for name in held):
                columns = {"task": f":{source.stem}", **columns}
    for file in files:
        if file.suffix in SUFFIXES:
            labels, picked = labels_by_item(file)
            joined, chances = joined | labels, chances | picked
    read = list[Items]()

    def rows() -> Iterable[Rows]:
        read.append(Items())
        return importer.read(path, read[-1], options.pick)

    understood = understand(
        rows,
        str(source),
        joined=joined,
        verdicts=verdicts,
        people=people,
        columns=columns,
        mapping=options.map,
        labels=options.answers or importer.labels,
        positive=options.positive,
        is_log=name != "table",
    )
    if read and read[0].questions and not (people or options.pick):
        raise JudgeSenseError(read[0].questions[0])
    found = [*read[0].notes] if read else []
    encoding = encoding_of(source) if source.suffix.lower() in (".csv", ".tsv") else "utf"
    if not encoding.startswith("utf"):
        found.append(f"the text is not UTF-8, and is read as {encoding}")
    notes = tuple(map(sentence, found))
    understood = understood._replace(lines=(*understood.lines, *notes))
    return _File(path, understood, joined, chances)
