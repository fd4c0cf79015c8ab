"""``report.html``: one self-contained page, safe to open whatever the names and texts hold.

Python prepares records; ``templates/`` lays them out and escapes them.
"""

from __future__ import annotations

from base64 import b64encode
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter

from markupsafe import Markup

from judgesense.errors import MissingExtraError
from judgesense.measure.assessment import Assessment, RemedyFigures, ReportContents, Search, Subject
from judgesense.measure.disagreements import KINDS, NEAR, WRONG, Disagreement
from judgesense.measure.figures import (
    GroupFigures,
    TemplateFigures,
    TemplatePair,
    TurnedItem,
    WhereWrong,
)
from judgesense.measure.texts import WordingTexts
from judgesense.recipes.recipe import AS_ASKED
from judgesense.reporting.case import Case
from judgesense.reporting.documents import render, script_of
from judgesense.reporting.listing import MOST_ROWS, Answer, ListedItem, Listing, address, listing
from judgesense.reporting.palette import style_sheet
from judgesense.reporting.summary import first_screen
from judgesense.reporting.tables import rows
from judgesense.text import middle_cut, short_names, short_templates, signed

MANY_TEMPLATES, LONG_NAME = 6, 4
REPORT_PAGE = "report.html"
SCRIPTS = ("element.js", "copy.js", "item.js", "listing.js")

FIRST_ROWS = 30
"""Disagreements in the table for browsers without scripts."""


def render_html(report: ReportContents, disagreements: Sequence[Disagreement] = ()) -> str:
    """The report as a page without requests, whose one script is the only one that runs.

    ``disagreements`` are the rows of ``disagreements.csv``.
    """
    screen = first_screen(report)
    texts: dict[str, dict[str, str]] = {}
    for entry in report.assessments:
        for row in entry.wordings:
            if row.text is not None:
                texts.setdefault(entry.task, {}).setdefault(row.template, row.text)
    wrong, names = _wrong(report, disagreements, texts) or (None, {})

    def items_at(subject: Subject, **facets: str) -> str | None:
        """The address of a judge's items; None where the page has none of them."""
        name = names.get(subject)
        if name is None or counts[subject].get(facets.get("filter", ""), 1) == 0:
            return None
        return address(name, **facets)

    counts = {e.subject: e.where_wrong.kinds for e in report.assessments if e.where_wrong}
    return render(
        "report.html",
        report,
        css=Markup(style_sheet()),
        screen=screen,
        folded=[row.subject for row in screen.others],
        heatmaps=list(map(_heatmap, _cases(report, _mapped_pairs))),
        wordings=list(_cases(report, _told_wordings)),
        texts=texts,
        turned=_turned(report),
        remedies=list(_cases(report, _measured_remedies)),
        gain_of=_gain,
        wrong=wrong,
        items_at=items_at,
        picture=None if report.search is None else _picture(report.search),
        **script_of(*SCRIPTS),
    )


def _told_wordings(entry: Assessment) -> Sequence[object]:
    """The wordings of a judge; of a single one without a text, there is nothing to say."""
    rows = entry.wordings
    return rows if len(rows) > 1 or any(row.text is not None for row in rows) else ()


def _measured_remedies(entry: Assessment) -> Sequence[object]:
    """The remedies of a judge, if any was measured."""
    measured = any(row.n_items and row.remedy != AS_ASKED for row in entry.remedies)
    return entry.remedies if measured else ()


def _picture(search: Search) -> str | None:
    """The plot of `judgesense improve` as a data URL; None without matplotlib, for the table has
    the same figures."""
    from io import BytesIO

    from judgesense.reporting.plots import ways

    try:
        figure = ways(search.rows)
    except MissingExtraError:
        return None
    image = BytesIO()
    figure.savefig(image, format="png", dpi=110, bbox_inches="tight", facecolor="white")
    return f"data:image/png;base64,{b64encode(image.getvalue()).decode()}"


def _cases(
    report: ReportContents, records: Callable[[Assessment], Sequence[object]]
) -> Iterator[Case]:
    """Each assessment with records, in the order of the main table."""
    entries = [row.entry for row in rows(report)]
    judged = [entry for entry in entries if isinstance(entry, Assessment) and records(entry)]
    names = short_names({entry.judge for entry in judged})
    return (Case(entry, middle_cut(names[entry.judge])) for entry in judged)


def _turned(report: ReportContents) -> list[tuple[Case, str, TurnedItem]]:
    """The judge, the attack and the item that it turned, those of the worst kinds first."""
    cases = list(_cases(report, lambda entry: entry.attacks))
    attacks = [
        (attack.kept, case, attack)
        for case in cases
        for attack in case.entry.attacks
        if attack.kept is not None and attack.defence is None
    ]
    return [
        (case, attack.kind, item)
        for _, case, attack in sorted(attacks, key=lambda row: row[0])
        for item in attack.turned_items
    ][:FIRST_ROWS]


def _gain(row: RemedyFigures) -> str:
    """What a remedy gains, in points."""
    gain, low, high = (
        signed(None if value is None else 100 * value, 1)
        for value in (row.gain, row.gain_ci_low, row.gain_ci_high)
    )
    return gain if row.gain_ci_low is None else f"{gain} [{low}, {high}]"


@dataclass(frozen=True)
class HeatmapLine:
    """A template: its agreement with each one (None for no pairs), and its own figures."""

    template: str
    short: str
    cells: tuple[tuple[TemplatePair | None, bool], ...]
    figures: TemplateFigures


@dataclass(frozen=True)
class Heatmap:
    """Template x template agreement of one judge, beside the templates' own figures.

    ``upright`` says whether the headings are long, and are turned.
    """

    case: Case
    wide: bool
    n_pairs: int
    lines: tuple[HeatmapLine, ...]
    upright: bool

    @property
    def subject(self) -> Subject:
        """What the heatmap is about."""
        return self.case.subject


def _mapped_pairs(entry: Assessment) -> list[TemplatePair]:
    return [row for row in entry.template_pairs if row.labels == "mapped"]


def _heatmap(case: Case) -> Heatmap:
    pairs = _mapped_pairs(case.entry)
    templates = sorted({name for row in pairs for name in (row.template_a, row.template_b)})
    short = short_templates(templates)
    pair_of = {frozenset((row.template_a, row.template_b)): row for row in pairs}
    figures = {row.template: row for row in case.entry.templates}
    lines = tuple(
        HeatmapLine(
            one,
            short[one],
            tuple((pair_of.get(frozenset((one, two))), one == two) for two in templates),
            figures.get(one) or TemplateFigures("-", one, None, None, False, 0),
        )
        for one in templates
    )
    return Heatmap(
        case=case,
        wide=len(case.entry.templates) > MANY_TEMPLATES,
        n_pairs=sum(row.n_pairs for row in pairs),
        lines=lines,
        upright=max(map(len, short.values())) > LONG_NAME,
    )


@dataclass(frozen=True)
class Wrong:
    """The section on disagreements: groups, the first rows as a table, and all items as data.

    ``groups`` and ``first`` have the case of each group and row; the latter also what tells the
    item from others.
    """

    near: str
    n_rows: int
    n_items: int
    groups: tuple[tuple[Case, WhereWrong, GroupFigures], ...]
    n_groups: int
    first: tuple[tuple[str, Disagreement, str], ...]
    listed: Listing


RIGHT = "right"
"""Of an item with a label whose verdicts match it in every order."""


def _wrong(
    report: ReportContents, disagreements: Sequence[Disagreement], texts: WordingTexts
) -> tuple[Wrong, Mapping[Subject, str]] | None:
    """The section, and the name of each case in the page's addresses."""
    cases = list(_cases(report, lambda entry: [entry.where_wrong] if entry.where_wrong else []))
    if not cases:
        return None
    names = _names(cases)
    place = {case.subject: at for at, case in enumerate(cases)}
    # The clearest cases of each judge and task, so that none fills the page alone.
    counts: Counter[Subject] = Counter()
    ranks = []
    for row in disagreements:
        counts[row.subject] += 1
        ranks.append(counts[row.subject])
    clearest = sorted(range(len(disagreements)), key=ranks.__getitem__)[:MOST_ROWS]
    of_item: dict[tuple[int, str], list[Disagreement]] = {}
    for row in sorted((disagreements[at] for at in clearest), key=lambda row: place[row.subject]):
        of_item.setdefault((place[row.subject], row.item_id), []).append(row)
    items = [
        _item(case, sorted(rows, key=attrgetter("order"))) for (case, _), rows in of_item.items()
    ]
    listed = listing(
        items,
        (*KINDS, RIGHT),
        [
            {"name": name, "task": case.task, "labels": _two_options(report, case)}
            for name, case in zip(names, cases, strict=True)
        ],
        texts,
        KINDS,
    )
    briefs = dict(zip(of_item, listed.briefs, strict=True))
    first = [(key, row) for key, rows in of_item.items() for row in rows if row.kinds]
    wrong = [(case, case.entry.where_wrong) for case in cases if case.entry.where_wrong]
    section = Wrong(
        near=f"{NEAR:g}",
        n_rows=sum(found.n_listed for _, found in wrong),
        n_items=len({(row.subject, row.item_id) for row in disagreements}),
        groups=tuple((case, found, group) for case, found in wrong for group in found.groups),
        n_groups=sum(found.n_groups for _, found in wrong),
        first=tuple((names[key[0]], row, briefs[key]) for key, row in first[:FIRST_ROWS]),
        listed=listed,
    )
    return section, dict(zip(place, names, strict=True)) if items else {}


def _names(cases: Sequence[Case]) -> list[str]:
    """The judges' names, with task and scoring where they tell two apart."""
    for parts in (
        [(case.name,) for case in cases],
        [(case.name, case.task) for case in cases],
        [(case.name, case.task, case.entry.scoring) for case in cases],
    ):
        if len({*parts}) == len(parts):
            return [" · ".join(each) for each in parts]
    return [f"{n}. {case.name} · {case.task}" for n, case in enumerate(cases, 1)]


def _two_options(report: ReportContents, case: Case) -> Sequence[str] | None:
    """The labels of a comparison of two options, in the order AB; None of another task."""
    for run in report.runs:
        if run.get("run_id") == case.entry.run_id:
            task = (run.get("tasks") or {}).get(case.task) or {}
            labels = task.get("labels") or ()
            return labels if task.get("comparative") and len(labels) == 2 else None
    return None


def _item(case: int, rows: Sequence[Disagreement]) -> ListedItem:
    """An item in all orders of its options."""
    kinds = {kind for row in rows for kind in row.kinds}
    if WRONG not in kinds and all(row.label and row.verdict == row.label for row in rows):
        kinds.add(RIGHT)
    prompts = {f"prompt {row.order}".removesuffix(" -"): row.text for row in rows if row.text}
    return ListedItem(
        case,
        rows[0].item_id,
        frozenset(kinds),
        # A row's fields of the same names.
        tuple(Answer(*(getattr(row, name) for name in Answer._fields)) for row in rows),
        {**rows[0].columns, **prompts},
        rows[0].groups,
    )
