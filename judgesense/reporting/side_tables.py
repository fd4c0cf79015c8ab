"""The tables below the main one: repeats, people, variants, damage and attacks.

A table is a declaration of columns: a heading, and what it shows of a record.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeVar

from judgesense.measure.assessment import Assessment, ReportContents, Subject, task_rank
from judgesense.measure.disagreements import WRONG
from judgesense.measure.disputes import POLICY
from judgesense.measure.figures import (
    NO_RANDOM_PART,
    DamageFigures,
    HumanAgreement,
    RepeatFigures,
    Shared,
    VariantFigures,
)
from judgesense.measure.people import GOLD, MAJORITY
from judgesense.reporting.sentences import among_people, points
from judgesense.text import (
    brackets,
    interval,
    join,
    number,
    p_value,
    percent,
    short_names,
)


@dataclass(frozen=True)
class SideTable:
    """A table below the main one; its first ``n_text`` columns are text, the others numbers.

    ``links`` says of a row and column which items it counts: those of a subject, by what the page's
    address calls them.
    """

    heading: str
    columns: tuple[str, ...]
    n_text: int
    rows: Sequence[tuple[str, ...]]
    notes: Sequence[str]
    links: Mapping[tuple[int, int], tuple[Subject, Mapping[str, str]]] = field(default_factory=dict)


T = TypeVar("T")


Columns = Mapping[str, Callable[[T], str]]
"""Heading -> what it shows of a record."""


_WHO = ("judge", "task", "scoring")


def _side_table(
    heading: str,
    first: Sequence[str],
    columns: Columns[T],
    records: Iterable[tuple[Sequence[str], T]],
    notes: Sequence[str],
    n_text: int,
) -> SideTable:
    """A table of records; ``first`` are the headings of the texts beside each."""
    lines = [(*texts, *(show(record) for show in columns.values())) for texts, record in records]
    return SideTable(heading, (*first, *columns), n_text, lines, notes)


def _named(
    report: ReportContents,
    records: Callable[[Assessment], Sequence[T]],
    order: Callable[[Assessment], tuple[str, ...]] | None = None,
) -> list[tuple[Sequence[str], T]]:
    """Records of assessments with the judge's short name, task and scoring, by task and judge."""
    entries = [entry for entry in report.assessments if records(entry)]
    names = short_names({entry.judge for entry in entries})
    by = order or (lambda entry: (names[entry.judge],))
    entries.sort(key=lambda entry: (task_rank(entry.task), by(entry)))
    return [
        ((names[entry.judge], entry.task, entry.scoring), record)
        for entry in entries
        for record in records(entry)
    ]


def side_tables(report: ReportContents) -> list[SideTable]:
    """The tables that have rows."""
    tables = people_tables(report)
    for name in ("policies", "shared"):
        if any(getattr(entry.where_wrong, name, ()) for entry in report.assessments):
            tables.append(_shared(report, name))
    if any(entry.repeated for entry in report.assessments):
        tables.append(_repeated(report))
    if any(entry.variants for entry in report.assessments):
        tables.append(_variants(report))
    if any(entry.damage for entry in report.assessments):
        tables.append(_damage(report))
    return [*tables, *_attack_tables(report)]


def _repeated(report: ReportContents) -> SideTable:
    def by_kind(entry: Assessment) -> list[tuple[RepeatFigures, RepeatFigures]]:
        """The raw and the mapped figures."""
        of_kind = {row.labels: row for row in entry.repeated}
        return [(of_kind["raw"], of_kind["mapped"])] if of_kind else []

    columns: Columns[tuple[RepeatFigures, RepeatFigures]] = {
        "repeats": lambda both: f"{both[1].n_draws}×",
        "undecided": lambda both: "-" if (n := both[1].n_undecided) is None else str(n),
        "temperature": lambda both: number(both[1].temperature, 1),
        "raw JSS of draws": lambda both: number(both[0].jss),
        "mapped JSS of draws": lambda both: number(both[1].jss),
        "95% interval": lambda both: interval(both[1].ci_low, both[1].ci_high, 2),
        "noise floor": lambda both: percent(both[1].noise_floor),
        "net flip rate": lambda both: (
            f"{number(both[1].net_flip_rate)} "
            f"{interval(both[1].net_ci_low, both[1].net_ci_high, 2)}"
        ),
    }
    note = (
        "JSS of draws: how often two draws, one from each of two wordings, give the same verdict. "
        "Undecided: draws without a verdict, which are left out. Noise floor: how often repeating "
        "the prompt changes the verdict. Net flip rate: how much more often rewording changes it."
    )
    records = _named(report, by_kind, lambda entry: entry.subject)
    return _side_table("Each prompt repeated", _WHO, columns, records, [note], 3)


MOST_CONFUSIONS = 3
"""More judges and tasks than that have no table of each label."""


def people_tables(report: ReportContents) -> list[SideTable]:
    """The tables of judges beside people, and of each label of a few judges."""
    people = _named(report, lambda entry: entry.people)
    judges = _named(report, lambda entry: [entry] if entry.people else [])
    tables = []
    if any(row.human != GOLD for _, row in people):
        columns: Columns[HumanAgreement] = {
            "people": lambda row: row.human,
            "n": lambda row: str(row.n),
            "κ": lambda row: number(row.kappa, 2),
            "95% interval": lambda row: interval(row.kappa_ci_low, row.kappa_ci_high, 2),
            "right": lambda row: percent(row.accuracy),
            "95% interval ": lambda row: _percents(row.accuracy_ci_low, row.accuracy_ci_high),
            "constant": lambda row: f"{percent(row.constant_accuracy)} ({row.constant_label})",
        }
        constant = "Constant: accuracy of always giving the label in brackets."
        notes = [f"{constant} κ: agreement beyond chance."]
        notes += [
            text for (judge, *_), entry in judges for text in among_people(judge, entry.people)
        ]
        table = _side_table("Judges and people", _WHO, columns, people, notes, 4)
        of_row = [(entry.subject, row.human) for _, entry in judges for row in entry.people]
        wrong = {
            (line, table.columns.index("right")): (subject, _of_person(human) or {"filter": WRONG})
            for line, (subject, human) in enumerate(of_row)
        }
        tables.append(replace(table, links=wrong))
    if len(judges) <= MOST_CONFUSIONS:
        for (judge, task, _), entry in judges:
            heading = f"{judge} on {task}, compared with {entry.people[0].human}"
            tables.append(_labels_table(heading, entry.people[0], entry.subject))
    return tables


def _of_person(human: str) -> dict[str, str]:
    """What the page's address says of a person's labels; nothing for the labels of the log."""
    return {} if human in (GOLD, MAJORITY) else {"person": human}


def _labels_table(heading: str, people: HumanAgreement, subject: Subject) -> SideTable:
    """How the items of each label were judged, and each label's share corrected for that."""
    columns: dict[str, Callable[[str], str]] = {}
    for verdict, counts in people.confusion.items():
        columns[f"→ {verdict}"] = partial(lambda counts, label: str(counts[label]), counts)

    def recall(label: str) -> str:
        row = people.per_label[label]
        return f"{percent(row.recall)} {_percents(row.recall_ci_low, row.recall_ci_high)}"

    def precision(label: str) -> str:
        row = people.per_label[label]
        ends = _percents(row.precision_ci_low, row.precision_ci_high)
        return f"{percent(row.precision)} {ends}"

    def corrected(label: str) -> str:
        row = people.corrected[label]
        return f"{percent(row.share)} {_percents(row.ci_low, row.ci_high)}" if row.share else "–"

    columns |= {"recall": recall, "precision": precision}
    note = (
        "Rows are people's labels. Columns with → are the judge's verdicts. Recall: of the "
        "items that people gave this label, the share that the judge labelled the same. Precision: "
        "of the items that the judge gave this label, the share that people labelled the same."
    )
    if people.corrected:
        columns["share"] = lambda label: percent(people.corrected[label].verdicts)
        columns["corrected"] = corrected
        note += (
            " Share: the label's share of all verdicts. Corrected: this share, corrected for the "
            "judge's errors."
        )
        if all(row.share is None for row in people.corrected.values()):
            note += f" {NO_RANDOM_PART}"
    records = [((label,), label) for label in people.per_label]
    links = {
        (line, column): (
            subject,
            {**_of_person(people.human), "label": label, "verdict": verdict},
        )
        for line, label in enumerate(people.per_label)
        for column, verdict in enumerate(people.confusion, 1)
    }
    return replace(_side_table(heading, ("label",), columns, records, [note], 1), links=links)


def _shared(report: ReportContents, name: str) -> SideTable:
    """What disagreements share: of the judge with people, or of people among themselves."""
    columns: Columns[Shared] = {
        "between": lambda row: f"{row.one} and {row.two}",
        "labels": lambda row: row.other if row.label is None else f"{row.label}, {row.other}",
        "trait": lambda row: f"{row.by}: {row.name}",
        "such as": lambda row: join(row.examples),
        "with it": lambda row: percent(row.share),
        "without": lambda row: percent(row.rest),
        "items": lambda row: str(row.n),
        "p": lambda row: p_value(row.p_adjusted, ""),
    }
    found = [entry.where_wrong for entry in report.assessments if entry.where_wrong]
    n = max((each.n_traits for each in found), default=0)
    missing = {each.no_words for each in found if each.no_words}
    words = f" Words are not among them: {join(sorted(missing))}." if missing else ""
    note = (
        "Of the items with the trait to which the first gives the first label, the share to which "
        f"the second gives the second, and the share without the trait. {n} traits (columns, "
        f"length, words) are compared.{words} "
    )
    if name == "shared":
        heading = "What disagreements share"
        note += "The list is exploratory (Benjamini-Hochberg, false discovery rate 5%)."
    else:
        heading = "Labels by different policies"
        note += f"With a column of rounds, others are other rounds. p-values are Holm's. {POLICY}."
    rows = _named(report, lambda e: list(getattr(e.where_wrong, name, ())))
    return _side_table(heading, _WHO, columns, rows, [note], 7)


def _percents(low: float | None, high: float | None) -> str:
    return brackets(low, high, percent)


def _damage(report: ReportContents) -> SideTable:
    def missed(row: DamageFigures) -> str:
        return "; ".join(
            f"{item.item_id}: {item.change}" if item.change else item.item_id
            for item in row.missed_items
        )

    columns: Columns[DamageFigures] = {
        "change": lambda row: row.about,
        "class": lambda row: "harmless" if row.harmless else "damage",
        "missed": lambda row: missed(row) or "-",
        "noticed": lambda row: percent(row.noticed),
        "interval": lambda row: _percents(row.ci_low_corrected, row.ci_high_corrected),
        "changed": lambda row: percent(row.changed),
        "outputs": lambda row: str(row.n_copies if row.harmless else row.n_counted),
    }
    note = (
        "Noticed is the share of outputs made wrong on purpose that the judge marks down, "
        "corrected for what harmless edits mark down; only outputs that could be marked down "
        "count. The intervals hold for all kinds together. Changed is the share of harmless edits "
        "with another verdict. Missed shows two items that the judge did not mark down."
    )
    return _side_table(
        "Outputs made wrong on purpose",
        _WHO,
        columns,
        _named(report, lambda entry: list(entry.damage)),
        [note],
        6,
    )


def _attack_tables(report: ReportContents) -> list[SideTable]:
    """Which kinds of attack, and which of their sentences, turn which judge, side by side."""
    entries = [entry for entry in report.assessments if entry.attacks]
    entries.sort(key=lambda entry: task_rank(entry.task))
    judges = short_names({entry.judge for entry in entries})
    several = len({entry.scoring for entry in entries}) > 1
    kinds: dict[tuple[str, ...], dict[str, str]] = {}
    sentences: dict[tuple[str, ...], dict[str, str]] = {}
    names = set()
    for entry in entries:
        name = judges[entry.judge] + (f" · {entry.scoring}" if several else "")
        names.add(name)
        for attack in entry.attacks:
            share = "-"
            if attack.kept is not None:
                share = f"{percent(attack.kept)} {_percents(attack.ci_low, attack.ci_high)}"
            key = (entry.task, attack.defence or "-", attack.kind)
            kinds.setdefault(key, {})[name] = share + (" *" if attack.effective else "")
            for text in attack.texts if attack.defence is None else ():
                row = sentences.setdefault((entry.task, attack.kind, text.text or "-"), {})
                row[name] = f"{text.n - round(text.kept * text.n)} of {text.n}"
    turned = {
        key: row
        for key, row in sentences.items()
        if any(not n.startswith("0 ") for n in row.values())
    }
    notes = (
        "Cells show the share of right verdicts that stay right under an attack. An asterisk (*) "
        "marks an attack that makes more of them wrong than rewording does.",
        "Cells show how many of the judge's right verdicts the sentence makes wrong.",
    )
    return [
        SideTable(
            heading,
            (*first, *sorted(names)),
            3,
            [(*key, *(row.get(name, "-") for name in sorted(names))) for key, row in rows.items()],
            [note],
        )
        for heading, first, rows, note in (
            ("Attacks", ("task", "defence", "attack"), kinds, notes[0]),
            ("Sentences that change verdicts", ("task", "attack", "sentence"), turned, notes[1]),
        )
        if rows
    ]


def _variants(report: ReportContents) -> SideTable:
    def shown(entry: Assessment) -> list[tuple[VariantFigures, bool]]:
        """The variants, and whether more than one is equivalent to the base wording."""
        equivalent = sum(row.variant_class == "equivalent" for row in entry.variants)
        # With one equivalent variant, the pool of all repeats its row.
        return [(row, equivalent > 2) for row in entry.variants if row.variant or equivalent > 2]

    def ends(both: tuple[VariantFigures, bool]) -> str:
        row, several = both
        if row.variant_class == "contrast":
            return interval(row.follows_ci_low, row.follows_ci_high, 2)
        if row.variant_class == "intervention":
            return interval(row.shift_ci_low, row.shift_ci_high, 2)
        if row.variant_class == "equivalent" and not several:
            return "-"  # The only equivalent variant's JSS is the card's, and so is its interval.
        return interval(row.ci_low, row.ci_high, 2)

    def moved(both: tuple[VariantFigures, bool]) -> str:
        gains = (both[0].net_shift or {}).items()
        return " ".join(f"{label} {gain:+.0%}" for label, gain in gains if gain) or "-"

    columns: Columns[tuple[VariantFigures, bool]] = {
        "variant": lambda both: (
            f"without {both[0].left_out!r}"
            if both[0].left_out
            else both[0].variant or "all equivalent"
        ),
        "class": lambda both: both[0].variant_class,
        "JSS": lambda both: number(both[0].jss),
        "follows": lambda both: percent(both[0].follows),
        "shift rate": lambda both: percent(both[0].shift_rate),
        "95% interval": ends,
        "net shift": moved,
        "towards labels": lambda both: points(both[0]),
        "unreadable": lambda both: percent(both[0].unreadable),
        "pairs": lambda both: str(both[0].n_pairs),
    }
    note = (
        "JSS is the share of verdicts that stay the same when an equivalent variant replaces the "
        "base wording. Follows is how often the answer changes under a contrast, a variant that "
        "changes the question or the item. Shift rate is the share of verdicts that an "
        "intervention changes. Net shift is how much an intervention raises each label's share. "
        "Towards labels is the gain in verdicts that are people's label, in points, with an "
        "interval for all interventions together. "
        "Unreadable is the share of answers without a verdict."
    )
    heading = "Variants compared with the base wording"
    return _side_table(heading, _WHO, columns, _named(report, shown), [note], 5)
