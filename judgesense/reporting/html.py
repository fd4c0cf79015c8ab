"""``report.html``: one self-contained page, safe to open whatever the names and texts hold.

Python prepares records; ``templates/`` lays them out and escapes them.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256

from markupsafe import Markup

from judgesense.errors import MissingExtraError
from judgesense.measure.assessment import Assessment, RemedyFigures, ReportContents, Search, Subject
from judgesense.measure.disagreements import KINDS, NEAR, Disagreement
from judgesense.measure.figures import (
    GroupFigures,
    TemplateFigures,
    TemplatePair,
    TurnedItem,
    WhereWrong,
)
from judgesense.measure.texts import LONGEST_TEXT
from judgesense.recipes.recipe import AS_ASKED
from judgesense.reporting.case import Case
from judgesense.reporting.documents import render
from judgesense.reporting.palette import TEMPLATES, style_sheet
from judgesense.reporting.summary import first_screen
from judgesense.reporting.tables import rows
from judgesense.text import (
    middle_cut,
    printable,
    short_names,
    short_templates,
    signed,
)

MANY_TEMPLATES, LONG_NAME = 6, 4
SCRIPTS = ("copy.js", "disagreements.js")

MOST_ROWS, FIRST_ROWS = 20_000, 30
"""Disagreements in the page, and in its table for browsers without scripts."""
MOST_CHARACTERS, SHORTEST_TEXT, LONGEST_CELL = 4_000_000, 200, 160
"""The texts of disagreements are cut so that the page stays small; the CSV file has them whole."""

Texts = Mapping[str, Mapping[str, str]]
"""Task -> template -> text."""


def render_html(report: ReportContents, disagreements: Sequence[Disagreement] = ()) -> str:
    """The report as a page without requests, whose one script is the only one that runs.

    ``disagreements`` are the rows of ``disagreements.csv``.
    """
    script = "\n".join((TEMPLATES / name).read_text("utf-8") for name in SCRIPTS)
    digest = b64encode(sha256(script.encode()).digest()).decode()
    screen = first_screen(report)
    texts: dict[str, dict[str, str]] = {}
    for entry in report.assessments:
        for row in entry.wordings:
            if row.text is not None:
                texts.setdefault(entry.task, {}).setdefault(row.template, row.text)
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
        wrong=_wrong(report, disagreements, texts),
        picture=None if report.search is None else _picture(report.search),
        script=Markup(script),
        script_hash=f"sha256-{digest}",
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


def _first_text(row: Disagreement) -> str:
    """The first text of the judge, of the item, or the prompt."""
    texts = (*row.answers.values(), *row.columns.values())
    return " ".join(next(iter(texts), row.text or "").split())[:LONGEST_CELL]


@dataclass(frozen=True)
class Wrong:
    """The section on disagreements: groups, the first rows as a table, and all as data.

    ``cases`` are the names of judges and tasks, ``counts`` the kinds with their bit and number.
    ``groups`` and ``first`` have the case of each group and row.
    """

    near: str
    cases: tuple[str, ...]
    n_rows: int
    n_shown: int
    counts: tuple[tuple[str, int, int], ...]
    groups: tuple[tuple[str, WhereWrong, GroupFigures], ...]
    n_groups: int
    first: tuple[tuple[str, Disagreement, str], ...]
    data: Markup


def _wrong(
    report: ReportContents, disagreements: Sequence[Disagreement], texts: Texts
) -> Wrong | None:
    cases = list(_cases(report, lambda entry: [entry.where_wrong] if entry.where_wrong else []))
    if not cases:
        return None
    names = [f"{case.name} · {case.task} · {case.entry.scoring}" for case in cases]
    place = {case.subject: at for at, case in enumerate(cases)}
    # The clearest cases of each judge and task, so that none fills the page alone.
    counts: Counter[Subject] = Counter()
    ranks = []
    for row in disagreements:
        counts[row.subject] += 1
        ranks.append(counts[row.subject])
    clearest = sorted(range(len(disagreements)), key=ranks.__getitem__)[:MOST_ROWS]
    lines = sorted((disagreements[at] for at in clearest), key=lambda row: place[row.subject])
    longest = min(LONGEST_TEXT, max(SHORTEST_TEXT, MOST_CHARACTERS // max(1, len(lines))))

    def cut(texts: Mapping[str, str]) -> dict[str, str]:
        most = max(SHORTEST_TEXT, longest // max(1, len(texts)))
        return {
            name: text if len(text) <= most else f"{text[:most]} …" for name, text in texts.items()
        }

    kinds = [sum(1 << KINDS.index(kind) for kind in row.kinds) for row in lines]
    data = {
        "kinds": KINDS,
        "cases": [
            {"name": name, "task": case.task} for name, case in zip(names, cases, strict=True)
        ],
        "wordings": texts,
        "rows": [
            [
                place[row.subject],
                row.item_id,
                row.order,
                bits,
                row.label,
                row.verdict,
                row.margin,
                row.verdicts,
                cut(row.answers),
                row.people,
                cut({**row.columns, **({"prompt": row.text} if row.text else {})}),
            ]
            for row, bits in zip(lines, kinds, strict=True)
        ],
    }
    n_rows, n_groups, groups = 0, 0, list[tuple[str, WhereWrong, GroupFigures]]()
    for entry in report.assessments:
        if (wrong := entry.where_wrong) is not None:
            n_rows, n_groups = n_rows + wrong.n_listed, n_groups + wrong.n_groups
            name = names[place[entry.subject]]
            groups += [(name, wrong, group) for group in wrong.groups]
    return Wrong(
        near=f"{NEAR:g}",
        cases=tuple(names),
        n_rows=n_rows,
        n_shown=len(lines),
        counts=tuple(
            (kind, 1 << bit, sum(bits >> bit & 1 for bits in kinds))
            for bit, kind in enumerate(KINDS)
        ),
        groups=tuple(groups),
        n_groups=n_groups,
        first=tuple(
            (names[place[row.subject]], row, _first_text(row)) for row in lines[:FIRST_ROWS]
        ),
        data=page_data(data),
    )


def page_data(data: Mapping[str, object]) -> Markup:
    """Data for a script of a page; nothing in a text can end the script element."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return Markup(printable(text).replace("<", "\\u003c"))
