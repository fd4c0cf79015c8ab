"""The tables of every output format: the main one, trust first, and those below it.

A table is a declaration of columns: a heading, and what it shows of an entry of the report.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from judgesense.log.view import BASELINES
from judgesense.measure.people import GOLD
from judgesense.measure.report_file import Key, identity, main_cells, task_rank
from judgesense.measure.thresholds import STEADY_JSS
from judgesense.text import brackets, interval, number, percent, s, sentence, short_names, span

Entry = Mapping[str, Any]
Columns = Mapping[str, str | Callable[[Entry], str]]
"""Heading -> a key of an entry, whose value is shown as text, or a function of the entry."""

COLUMNS = {
    "trust": "trust",
    "judge": "judge",
    "task": "task",
    "scoring": "scoring",
    "jss": "JSS",
    "interval": "95% interval",
    "kappa": "κ",
    "right": "right",
    "fair": "fair",
    "readable": "readable",
    "sample": "items",
}
"""Column of the main table -> heading."""

TEXT_COLUMNS = ("trust", "judge", "task", "scoring")

GLOSSES = {
    "jss": "JSS: share of verdicts that stay the same after rewording.",
    "kappa": "κ: agreement with people beyond chance (1 is perfect), quadratic-weighted on scales.",
    "right": "Right: share of verdicts that match people's (gold) labels.",
    "fair": "Fair: share of items with the same choice in both option orders.",
    "readable": "Readable: share of answers with a verdict.",
}
LEGEND = " ".join(GLOSSES.values())
BASELINE_NOTE = (
    "The oracle baseline is always right. The always-first baseline always takes the first option. "
    "Their scores depend only on the wordings and the data."
)

BASELINE = "baseline"


@dataclass(frozen=True)
class Row:
    """One row: the text of each column, the mapped cell behind it, and the judge's trust card.

    ``card`` is None for a baseline. ``figure`` holds the JSS that is shown and its interval: of the
    card's check `steady`, or of a baseline's cell.
    """

    texts: Mapping[str, str]
    cell: Entry
    card: Entry | None
    figure: Entry

    @property
    def key(self) -> Key:
        """Run, judge, task and scoring."""
        return identity(self.cell)

    @property
    def is_baseline(self) -> bool:
        """Whether it is no judge, but the score of a perfect or a blind one."""
        return self.card is None

    @property
    def tone(self) -> str:
        """The value of ``trust`` that gives the row its colour, or ``baseline``."""
        return self.texts["trust"]


def steady_threshold(report: Mapping[str, Any]) -> float:
    """The JSS above which the report calls a judge steady."""
    cards = report["trust"]
    return float(cards[0]["checks"]["steady"]["threshold"]) if cards else STEADY_JSS


def rows(report: Mapping[str, Any]) -> list[Row]:
    """The rows of the main table by task (coherence first), judges before baselines."""
    cells = main_cells(report)
    cards = {identity(entry): entry for entry in report["trust"]}
    names = short_names([judge for _, judge, _, _ in cells])
    ranked = []
    for key, both in cells.items():
        run_id, judge, task, scoring = key
        place = (judge in BASELINES, judge != "oracle", judge, scoring, run_id)
        ranked.append(((task_rank(task), *place), key, both["mapped"]))
    found = []
    for _, key, cell in sorted(ranked, key=lambda one: one[0]):
        card = cards.get(key)
        trust, figure, kappa, readable, n = BASELINE, cell, None, None, cell["n_items"]
        right, fair = cell["accuracy"], cell["position_consistency"]
        if card is not None:
            trust, checks = card["trust"], card["checks"]
            figure = {**checks["steady"], "jss": checks["steady"]["estimate"]}
            kappa, right = checks["right"]["estimate"], checks["right"]["details"].get("accuracy")
            fair, readable = checks["fair"]["estimate"], checks["readable"]["estimate"]
            n = checks["readable"]["n_items"]
        texts = {
            "trust": trust,
            "judge": names[key[1]],
            "task": key[2],
            "scoring": key[3],
            "jss": number(figure["jss"]),
            "interval": interval(figure, 2),
            "kappa": number(kappa, 2),
            "right": percent(right),
            "fair": percent(fair),
            "readable": percent(readable),
            "sample": str(n),
        }
        found.append(Row(texts, cell, card, figure))
    return found


def advice_by_case(report: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Findings of each judge, task and scoring: key, names, ``tone``, ``texts`` and ``next``."""
    names = short_names({f["judge"] for f in report["findings"]} | set(BASELINES))
    steps = {identity(step): step for step in report["next"]}
    found = []
    for key, group in groupby(report["findings"], key=identity):
        findings = list(group)
        found.append(
            {
                "key": key,
                "judge": names[key[1]],
                "task": key[2],
                "scoring": key[3],
                "tone": findings[0]["kind"],
                "texts": [sentence(finding["text"]) for finding in findings],
                "next": steps.get(key),
            }
        )
    return found


def undecided_share(cell: Entry) -> float | None:
    """The share of judged pairs in which a prompt has no decision."""
    lost: int = cell["n_unclear"] + cell["n_refused"] + cell["n_error"]
    judged: int = cell["n_pairs"] + lost
    return lost / judged if judged else None


@dataclass(frozen=True)
class SideTable:
    """A table below the main one; its first ``n_text`` columns are text, the others numbers."""

    heading: str
    columns: tuple[str, ...]
    n_text: int
    rows: Sequence[tuple[str, ...]]
    notes: Sequence[str]


def _side_table(
    heading: str, columns: Columns, n_text: int, entries: Iterable[Entry], notes: Sequence[str]
) -> SideTable:
    lines = [
        tuple(
            str(entry[show]) if isinstance(show, str) else show(entry) for show in columns.values()
        )
        for entry in entries
    ]
    return SideTable(heading, tuple(columns), n_text, lines, notes)


def side_tables(report: Mapping[str, Any]) -> list[SideTable]:
    """The tables that have rows."""
    found = people_tables(report)
    for name, make in (("repeated", _repeated), ("variants", _variants)):
        if report.get(name):
            found.append(make(report))
    return [*found, *_attack_tables(report["attacks"])]


_WHO: Columns = {"judge": "judge", "task": "task", "scoring": "scoring"}


def _named(entries: Sequence[Entry]) -> list[dict[str, Any]]:
    """Entries with the judges' short names, by task and judge."""
    names = short_names({entry["judge"] for entry in entries})
    named = [{**entry, "judge": names[entry["judge"]]} for entry in entries]
    return sorted(named, key=lambda entry: (task_rank(entry["task"]), entry["judge"]))


def _repeated(report: Mapping[str, Any]) -> SideTable:
    raw = {identity(e): e["jss"] for e in report["repeated"] if e["labels"] == "raw"}
    entries = [
        {**entry, "raw": raw[identity(entry)]}
        for entry in report["repeated"]
        if entry["labels"] == "mapped"
    ]
    entries.sort(key=lambda entry: (task_rank(entry["task"]), identity(entry)))
    names = short_names({entry["judge"] for entry in entries})
    columns: Columns = {
        **_WHO,
        "judge": lambda entry: names[entry["judge"]],
        "repeats": lambda entry: f"{entry['n_draws']}×",
        "undecided": lambda entry: str(entry.get("n_undecided", "-")),
        "temperature": lambda entry: number(entry["temperature"], 1),
        "raw JSS of draws": lambda entry: number(entry["raw"]),
        "mapped JSS of draws": lambda entry: number(entry["jss"]),
        "95% interval": lambda entry: interval(entry, 2),
        "noise floor": lambda entry: percent(entry["noise_floor"]),
        "net flip rate": lambda entry: (
            f"{number(entry['net_flip_rate'])} "
            + interval({"ci_low": entry["net_ci_low"], "ci_high": entry["net_ci_high"]}, 2)
        ),
    }
    note = (
        "JSS of draws: how often two draws, one from each of two wordings, give the same verdict. "
        "Undecided: draws without a verdict, which are left out. Noise floor: how often repeating "
        "the prompt changes the verdict. Net flip rate: how much more often rewording changes it."
    )
    return _side_table("Each prompt repeated", columns, 3, entries, [note])


MOST_CONFUSIONS = 3
"""More judges and tasks than that have no table of each label."""


def people_tables(report: Mapping[str, Any]) -> list[SideTable]:
    """The tables of judges beside people, and of each label of a few judges."""
    entries = _named(report["people"])
    first = list({identity(entry): entry for entry in reversed(entries)}.values())[::-1]
    tables = []
    if any(entry["human"] != GOLD for entry in entries):
        columns: Columns = {
            **_WHO,
            "people": "human",
            "n": lambda entry: str(entry["n"]),
            "κ": lambda entry: number(entry["kappa"], 2),
            "95% interval": lambda entry: interval(_ends(entry, "kappa"), 2),
            "right": lambda entry: percent(entry["accuracy"]),
            "95% interval ": lambda entry: _percents(entry, "accuracy"),
            "constant": lambda entry: (
                f"{percent(entry['constant_accuracy'])} ({entry['constant_label']})"
            ),
        }
        constant = "Constant: accuracy of always giving the label in brackets."
        notes = [f"{constant} κ: agreement beyond chance."]
        notes += [text for entry in first for text in among_people(entry, report["people"])]
        tables.append(_side_table("Judges and people", columns, 4, entries, notes))
    if len(first) <= MOST_CONFUSIONS:
        tables += map(_labels_table, first)
    return tables


def _labels_table(entry: Entry) -> SideTable:
    """How the items of each label were judged, and each label's share corrected for that."""
    columns: Columns = {
        "label": "label",
        **{f"→ {verdict}": f"verdict {verdict}" for verdict in entry["confusion"]},
        "recall": lambda row: f"{percent(row['recall'])} {_percents(row, 'recall')}",
        "precision": lambda row: f"{percent(row['precision'])} {_percents(row, 'precision')}",
    }
    note = (
        "Rows are people's labels. Columns with → are the judge's verdicts. Recall: of the "
        "items that people gave this label, the share that the judge labelled the same. Precision: "
        "of the items that the judge gave this label, the share that people labelled the same."
    )
    if entry["corrected"]:
        columns = {
            **columns,
            "share": lambda row: percent(row["verdicts"]),
            "corrected": lambda row: f"{percent(row['share'])} {_percents(row, '')}",
        }
        note += (
            " Share: the label's share of all verdicts. Corrected: this share, corrected for the "
            "judge's errors."
        )
    shown = [
        {
            "label": label,
            **{f"verdict {verdict}": n[label] for verdict, n in entry["confusion"].items()},
            **figures,
            **entry["corrected"].get(label, {}),
        }
        for label, figures in entry["per_label"].items()
    ]
    heading = f"{entry['judge']} on {entry['task']}, compared with {entry['human']}"
    return _side_table(heading, columns, 1, shown, [note])


def among_people(entry: Entry, every: Sequence[Entry]) -> list[str]:
    """How several people agree, and whether the judge could replace one, in sentences.

    ``every`` has the judges beside each person, too.
    """
    between, test = entry["between_people"], entry["alt_test"]
    if between is None:
        return []
    kappas = [pair["kappa"] for pair in between["pairs"] if pair["kappa"] is not None]
    spread = span(kappas, lambda value: number(value, 2)) if kappas else number(None)
    texts = [
        f"{between['people']} people agree with each other at κ {spread} (Krippendorff's α "
        f"{number(between['alpha'], 2)})."
    ]
    if ties := between["ties"]:
        texts[0] += f" On {ties} item{s(ties)}, no label has a majority."
    own = {e["human"]: e for e in every if identity(e) == identity(entry)}
    named = {pair[side] for pair in between["pairs"] for side in "ab"}
    if alone := [own[name]["kappa"] for name in own if name in named and own[name]["kappa"]]:
        judged = span(alone, lambda value: number(value, 2))
        texts[0] += f" {entry['judge']} agrees with each person at κ {judged}."
    if between["people"] < 3:
        texts.append("The alternative annotator test needs at least three people.")
    if test is not None:
        people = len(test["p_values"])
        won = round(test["winning_rate"] * sum(p is not None for p in test["p_values"].values()))
        may = "may" if test["winning_rate"] >= 0.5 else "is not shown to be able to"
        texts.append(
            f"By the alternative annotator test, {entry['judge']} {may} replace a person. It "
            f"matches the other people at least as well as a person does on "
            f"{percent(test['advantage_probability'])} of items, and wins against {won} of "
            f"{people} people at ε {test['epsilon']:g}."
        )
    return texts


def _ends(entry: Entry, name: str) -> Entry:
    prefix = f"{name}_" if name else ""
    return {"ci_low": entry[f"{prefix}ci_low"], "ci_high": entry[f"{prefix}ci_high"]}


def _percents(entry: Entry, name: str) -> str:
    ends = _ends(entry, name)
    return brackets(ends["ci_low"], ends["ci_high"], percent)


def _attack_tables(entries: Sequence[Entry]) -> list[SideTable]:
    """Which kinds of attack, and which of their sentences, turn which judge, side by side."""
    if not entries:
        return []
    judges = short_names({entry["judge"] for entry in entries})
    several = len({entry["scoring"] for entry in entries}) > 1

    def who(entry: Entry) -> str:
        return judges[entry["judge"]] + (f" · {entry['scoring']}" if several else "")

    kinds: dict[tuple[str, ...], dict[str, str]] = {}
    sentences: dict[tuple[str, ...], dict[str, str]] = {}
    for entry in sorted(entries, key=lambda entry: task_rank(entry["task"])):
        defence = entry["defence"] or "-"
        named = " *" if entry["effective"] else ""
        shown = "-" if entry["kept"] is None else f"{percent(entry['kept'])} {_percents(entry, '')}"
        kinds.setdefault((entry["task"], defence, entry["kind"]), {})[who(entry)] = shown + named
        for each in entry["texts"] if entry["defence"] is None else ():
            row = sentences.setdefault((entry["task"], entry["kind"], each["text"] or "-"), {})
            row[who(entry)] = f"{each['n'] - round(each['kept'] * each['n'])} of {each['n']}"
    names = sorted({who(entry) for entry in entries})
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
            (*first, *names),
            3,
            [(*key, *(row.get(name, "-") for name in names)) for key, row in rows.items()],
            [note],
        )
        for heading, first, rows, note in (
            ("Attacks", ("task", "defence", "attack"), kinds, notes[0]),
            ("Sentences that change verdicts", ("task", "attack", "sentence"), turned, notes[1]),
        )
        if rows
    ]


def _variants(report: Mapping[str, Any]) -> SideTable:
    def stream(entry: Entry) -> tuple[str, str, str]:
        return entry["judge"], entry["task"], entry["scoring"]

    def ends(entry: Entry) -> str:
        if entry["variant_class"] == "equivalent" and equivalent[stream(entry)] <= 2:
            return "-"  # The only equivalent variant's JSS is the card's, and so is its interval.
        prefix = {"contrast": "follows_", "intervention": "shift_"}.get(entry["variant_class"], "")
        return interval({key: entry[f"{prefix}{key}"] for key in ("ci_low", "ci_high")}, 2)

    def moved(entry: Entry) -> str:
        gains = (entry["net_shift"] or {}).items()
        return " ".join(f"{label} {gain:+.0%}" for label, gain in gains if gain) or "-"

    found = report["variants"]
    equivalent = Counter(stream(e) for e in found if e["variant_class"] == "equivalent")
    columns: Columns = {
        **_WHO,
        "variant": lambda entry: entry["variant"] or "all equivalent",
        "class": "variant_class",
        "JSS": lambda entry: number(entry["jss"]),
        "follows": lambda entry: percent(entry["follows"]),
        "shift rate": lambda entry: percent(entry["shift_rate"]),
        "95% interval": ends,
        "net shift": moved,
        "unreadable": lambda entry: percent(entry["unreadable"]),
        "pairs": "n_pairs",
    }
    note = (
        "JSS is the share of verdicts that stay the same when an equivalent variant replaces the "
        "base wording. Follows is how often the answer changes under a contrast, a variant that "
        "changes the question or the item. Shift rate is the share of verdicts that an "
        "intervention changes. Net shift is how much an intervention raises each label's share. "
        "Unreadable is the share of answers without a verdict."
    )
    # With one equivalent variant, the pool of all repeats its row.
    shown = _named([e for e in found if e["variant"] or equivalent[stream(e)] > 2])
    return _side_table("Variants compared with the base wording", columns, 5, shown, [note])
