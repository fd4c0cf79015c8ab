"""The report on a terminal, in colour and in its width, or as plain text with whole lines."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.console import Console
from rich.text import Text

from judgesense.measure.assessment import Assessment, ReportContents
from judgesense.measure.card import TRUST
from judgesense.measure.disagreements import DOUBTED, SECOND_LOOK, WRONG
from judgesense.measure.figures import NO_RANDOM_PART, HumanAgreement
from judgesense.measure.people import GOLD
from judgesense.measure.wins import ModelWins
from judgesense.reporting.layout import fitted, terminal_width
from judgesense.reporting.palette import STYLES
from judgesense.reporting.sentences import among_people, sentence_effects, whose
from judgesense.reporting.side_tables import side_tables
from judgesense.reporting.summary import first_screen
from judgesense.reporting.tables import (
    BASELINE_NOTE,
    COLUMNS,
    GLOSSES,
    LEGEND,
    TEXT_COLUMNS,
    Advice,
    Row,
    advice,
    rows,
)
from judgesense.text import aligned, brackets, number, percent, plural_s, printable

MOST_LINES = 20
"""Lines of a report that is printed without ``--verbose``."""

_FINDINGS = 3
_ROWS = 6
_LABELS = 5
"""Rows and labels that are shown in a few lines."""


def render_terminal(report: ReportContents) -> str:
    """The tables, the advice and the next steps as plain text, one line per row and finding."""
    return "\n".join(printable(line.plain) for line in _lines(report))


def render_brief(report: ReportContents) -> str:
    """The conclusion, the cards, the worst finding and the next step as plain text."""
    return "\n".join(printable(line.plain) for line in _brief(report, None, MOST_LINES))


def print_report(
    report: ReportContents,
    folder: str | Path | None = None,
    *,
    verbose: bool = False,
    most: int = MOST_LINES,
) -> None:
    """Print a report, in colour on a terminal.

    Without ``verbose``, these are at most ``most`` lines: the conclusion, the cards, the worst
    finding, the next step and the path. ``folder`` is where ``report.html`` lies; None for a report
    of several runs.
    """
    lines = list(_lines(report) if verbose else _brief(report, folder, most))
    texts, width = [printable(line.plain) for line in lines], terminal_width()
    console = Console(width=width, highlight=False)
    page = None if folder is None else f"{folder}/report.html"
    for at, text in enumerate(texts) if width is None else fitted(texts, width):
        if not sys.stdout.isatty():
            print(text)
            continue
        styled = Text(text, lines[at].style)
        for span in lines[at].spans:
            if text[: span.end] == texts[at][: span.end]:
                styled.stylize(span.style, span.start, span.end)
        if page is not None and page in text:
            start = text.index(page)
            styled.stylize(f"link {Path(page).resolve().as_uri()}", start, start + len(page))
        console.print(styled, crop=False, no_wrap=True, overflow="ignore")


_WHO = ("judge", "task", "scoring")


def _varying(table: Sequence[Row], columns: Sequence[str]) -> list[str]:
    """The columns that tell rows apart or say something: a task that all share is in the title."""
    shared = {key for key in _WHO if len({row.texts[key] for row in table}) == 1}
    if shared == {*_WHO}:
        shared.remove("judge")
    if {row.texts["readable"] for row in table} == {percent(1)}:
        shared.add("readable")
    return [key for key in columns if key not in shared]


def _brief(report: ReportContents, folder: str | Path | None, most: int) -> list[Text]:
    screen = first_screen(report)
    places = {case.subject: place for place, case in enumerate(screen.rows)}
    table = [row for row in rows(report) if row.subject in places]
    table.sort(key=lambda row: (TRUST.index(row.texts["trust"]), places[row.subject]))
    texts = [row.texts for row in table] or [COLUMNS]
    columns = [key for key in COLUMNS if any(row[key] != number(None) for row in texts)]
    columns = _varying(table, columns)
    head = [Text(f"{screen.title}.", "bold"), Text(), *_table(table[:_ROWS], columns)]
    if more := len(report.assessments) - len(table[:_ROWS]):
        head.append(Text(f"… and {more} more rows", "dim"))
    gloss = " ".join(text for key, text in GLOSSES.items() if key in columns)
    head += [Text(gloss, "dim"), Text()]
    tail = [Text(f"Note: {note}", "yellow") for note in report.notes[:2]]
    if step := screen.next_step:
        tail += [Text(f"Next: {step.text}", "bold")]
        tail += [Text(f"  {step.command}")] if step.command else []
    if folder is not None:
        wrong = [entry.where_wrong for entry in report.assessments if entry.where_wrong]
        shows = "shows the verdicts"
        if any(entry.kinds[WRONG] for entry in wrong):
            shows = "and disagreements.csv list the wrong verdicts"
        tail.append(Text(f"{folder}/report.html {shows}; --verbose prints every finding."))
    body: list[Text] = []
    cases = {case.subject: case for case in advice(report)}
    # The gold labels of a benchmark need no more than the column "right".
    people = {}
    for entry in report.assessments:
        if any(row.human != GOLD for row in entry.people):
            people[entry.subject] = entry.people
    beside = {entry.subject: [*_beside(entry, folder)] for entry in report.assessments}
    wins = {entry.subject: entry.wins for entry in report.assessments}
    first = None if screen.first is None else screen.first.subject
    for key in sorted(places, key=lambda key: (key != first, key not in people, places[key])):
        block = list(
            _block(cases[key], people.get(key, ()), beside.get(key, ()), wins.get(key, ()))
        )
        room = most - len(head) - len(tail) - len(body)
        if body and len(block) > room:
            break
        body += block[: max(room, 1)]
        if not people:
            break
    return [*head, *body, *tail]


def _beside(entry: Assessment, folder: str | Path | None) -> Iterator[str]:
    """What explains wrong verdicts, and the labels to look at again."""
    yield from whose(entry.where_wrong)
    if text := sentence_effects(entry):
        yield text
    n = 0 if entry.where_wrong is None else entry.where_wrong.kinds.get(DOUBTED, 0)
    if n and folder is not None and any(row.human != GOLD for row in entry.people):
        where, labels = Path(folder) / SECOND_LOOK, ",".join(entry.people[0].per_label)
        how = f" with judgesense label {shlex.quote(str(where))} --answers {shlex.quote(labels)}"
        yield (
            f"{n} label{plural_s(n)} stand{'s' * (n == 1)} alone: no judge and no other person "
            f"agrees. Look again{how if where.is_file() else ' (disagreements.csv)'}; judges "
            "and people can err together."
        )


def _block(
    case: Advice,
    people: Sequence[HumanAgreement],
    beside: Sequence[str] = (),
    wins: Sequence[ModelWins] = (),
) -> Iterator[Text]:
    """A judge on a task: the conclusion, the worst finding, and how it agrees with people: on each
    label or, where models are compared, on how often each of them wins."""
    conclusion, *findings = case.texts
    yield Text(case.heading, "bold")
    yield Text(f"  {conclusion}")
    yield from (Text(f"  {text}") for text in beside)
    if not people:
        yield from (Text(f"  {text}") for text in findings[:_FINDINGS])
        return
    yield from (Text(f"  {row.text}.") for row in wins[:_LABELS])
    # Each row of an item, one in each order or wording, is a verdict.
    noun = "items" if people[0].n == people[0].n_items else "verdicts"
    for label, figures in [] if wins else list(people[0].per_label.items())[:_LABELS]:
        text = (
            f"  {label}: of the {figures.n} {noun} with this label from people, the judge finds "
            f"{percent(figures.recall)} (recall). Of its verdicts with this label, "
            f"{percent(figures.precision)} are right (precision)."
        )
        if share := people[0].corrected.get(label):
            text += f" It gives this label to {percent(share.verdicts)} of all {noun}."
            if share.share is None:
                text += f" {NO_RANDOM_PART}"
            else:
                ends = brackets(share.ci_low, share.ci_high, percent)
                text += " Corrected for its errors, this share is about "
                text += f"{percent(share.share)} {ends}."
        yield Text(text)
    yield from (Text(f"  {text}") for text in among_people(case.subject.judge, people))


def _table(table: Sequence[Row], columns: Sequence[str] = tuple(COLUMNS)) -> Iterator[Text]:
    texts = [tuple(COLUMNS[key] for key in columns)]
    texts += [tuple(row.texts[key] for key in columns) for row in table]
    heading, rule, *body = aligned(texts, [key in TEXT_COLUMNS for key in columns])
    yield from (Text(heading, "bold"), Text(rule, "dim"))
    for row, text in zip(table, body, strict=True):
        line = Text(text, STYLES["baseline"] if row.is_baseline else "")
        if not row.is_baseline:
            line.stylize(STYLES[row.tone], 0, len(row.texts["trust"]))
        yield line


def _lines(report: ReportContents) -> Iterator[Text]:
    yield from _table(rows(report))
    yield from (Text(), Text(LEGEND, "dim"), Text(BASELINE_NOTE, "dim"))
    for side in side_tables(report):
        yield from (Text(), Text(side.heading, "bold"))
        left = [at < side.n_text for at in range(len(side.columns))]
        yield from map(Text, aligned([side.columns, *side.rows], left))
        yield from (Text(note, "dim") for note in side.notes)
    found = [entry.where_wrong for entry in report.assessments if entry.where_wrong]
    for why in sorted({each.no_words for each in found if each.no_words}):
        yield from (Text(), Text(f"Disagreements are not compared by their words: {why}.", "dim"))
    for case in advice(report):
        yield from (Text(), Text(f"{case.heading}, {case.subject.scoring} scoring", "bold"))
        yield from (Text(f"  - {text}") for text in case.texts)
        if step := case.next_step:
            yield Text(f"  Next: {step.text}", "bold")
            if step.command:
                yield Text(f"    {step.command}")
    if report.notes:
        yield from (Text(), *(Text(f"Note: {note}", "yellow") for note in report.notes))
