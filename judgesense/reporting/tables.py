"""The tables of every output format: the main one, trust first, and those below it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np

from judgesense.decisions.rows import mapped_shares
from judgesense.decisions.view import BASELINES, Stream
from judgesense.published import WORDINGS, to_show
from judgesense.run_folder.report import identity, main_cells, task_rank
from judgesense.statistics.agreement import sampled_jss
from judgesense.text import interval, number, percent, sentence, short_names
from judgesense.trust.card import CHECKS, QUESTIONS
from judgesense.trust.discrimination import by_task
from judgesense.trust.thresholds import DISCRIMINATING_KAPPA

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
"""Column -> heading."""

TEXT_COLUMNS = ("trust", "judge", "task", "scoring")

LEGEND = (
    "JSS: same verdict after rewording. Right: matches the gold labels; κ: the same beyond chance. "
    "Fair: same choice in both orders. Readable: answers with a verdict."
)
BASELINE_NOTE = (
    "Baselines: oracle is always right, always-first always takes the first option. Their scores "
    "come from the wordings and the data."
)

BASELINE = "baseline"
_STATES = {"pass": "✓", "fail": "✗", "open": "?", "unmeasured": "–"}


@dataclass(frozen=True)
class Row:
    """One row: the text of each column, the mapped cell behind it, and the judge's trust card.

    ``card`` is None for a baseline. ``figure`` holds the JSS that is shown and its interval.
    """

    texts: Mapping[str, str]
    cell: Mapping[str, Any]
    card: Mapping[str, Any] | None

    @property
    def is_baseline(self) -> bool:
        """Whether it is no judge, but the score of a perfect or a blind one."""
        return self.card is None

    @property
    def figure(self) -> Mapping[str, Any]:
        """``jss``, ``ci_low`` and ``ci_high``: the card's check `steady`, or a baseline's cell."""
        return self.cell if self.card is None else _steady(self.card)

    @property
    def tone(self) -> str:
        """The value of ``trust`` that gives the row its colour, or ``baseline``."""
        return BASELINE if self.card is None else str(self.card["trust"])

    @property
    def checks(self) -> list[tuple[str, str, str, str]]:
        """Each check that applies: its mark, name, figure, and what it asks."""
        if self.card is None:
            return []
        return [
            (_STATES[check["state"]], name, _figure(name, check), QUESTIONS[name])
            for name, check in ((name, self.card["checks"][name]) for name in CHECKS)
            if check["applies"]
        ]


def rows(report: Mapping[str, Any]) -> list[Row]:
    """Rows by task (coherence first), judges before baselines."""

    def place(key: tuple[str, str, str, str]) -> tuple[Any, ...]:
        run_id, judge, task, scoring = key
        return task_rank(task), judge in BASELINES, judge != "oracle", judge, scoring, run_id

    found = main_cells(report)
    cards = {identity(entry): entry for entry in report["trust"]}
    names = short_names({key[1] for key in found})
    result = []
    for key in sorted(found, key=place):
        cell, card = found[key]["mapped"], cards.get(key)
        texts = _texts(cell, card, names[key[1]])
        result.append(Row(dict(zip(COLUMNS, texts, strict=True)), cell, card))
    return result


def _texts(cell: Mapping[str, Any], card: Mapping[str, Any] | None, judge: str) -> tuple[str, ...]:
    who = (judge, cell["task"], cell["scoring"])
    if card is None:
        return (
            BASELINE,
            *who,
            number(cell["jss"]),
            interval(cell, 2),
            number(None),
            percent(cell["accuracy"]),
            percent(cell["position_consistency"]),
            percent(None),
            str(cell["n_items"]),
        )
    figure, checks = _steady(card), card["checks"]
    return (
        str(card["trust"]),
        *who,
        number(figure["jss"]),
        interval(figure, 2),
        number(checks["right"]["estimate"], 2),
        percent(checks["right"]["details"].get("accuracy")),
        percent(checks["fair"]["estimate"]),
        percent(checks["readable"]["estimate"]),
        str(checks["readable"]["n_items"]),
    )


def _steady(card: Mapping[str, Any]) -> dict[str, Any]:
    check = card["checks"]["steady"]
    return {"jss": check["estimate"], "ci_low": check["ci_low"], "ci_high": check["ci_high"]}


def _figure(name: str, check: Mapping[str, Any]) -> str:
    if check["estimate"] is None:
        return "not measured"
    if name == "responsive":
        return f"{number(check['estimate'], 1)}×"
    if name in ("steady", "right"):
        return ("JSS " if name == "steady" else "κ ") + number(check["estimate"], 2)
    return percent(check["estimate"])


def advice_by_case(report: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The findings of each judge, task and scoring: key, names, ``tone`` and ``texts``."""
    names = short_names({f["judge"] for f in report["findings"]} | set(BASELINES))
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
            }
        )
    return found


def undecided_share(cell: Mapping[str, Any]) -> float | None:
    """The share of judged pairs in which a prompt has no decision."""
    lost: int = cell["n_unclear"] + cell["n_refused"] + cell["n_error"]
    judged: int = cell["n_pairs"] + lost
    return lost / judged if judged else None


_FLOATING = "floating: the name may refer to another checkpoint by now"
_CAP = re.compile(r"-max\d+$")


@dataclass(frozen=True)
class SideTable:
    """A table below the main one; its first ``n_text`` columns are text, the others numbers."""

    heading: str
    columns: tuple[str, ...]
    n_text: int
    rows: Sequence[tuple[str, ...]]
    notes: Sequence[str]


def side_tables(report: Mapping[str, Any]) -> list[SideTable]:
    """The tables that have rows."""
    made = (
        _discrimination(report),
        _repeated(report),
        _variants(report),
        _budget(report),
        _published(report),
    )
    return [table for table in made if table.rows]


def _discrimination(report: Mapping[str, Any]) -> SideTable:
    found = by_task(report)
    names = short_names({one.judge for _, one in found if one.judge})
    rows = [
        (
            task,
            names[one.judge] if one.judge else "-",
            one.scoring or "-",
            one.state,
            number(one.kappa, 2),
            interval({"ci_low": one.ci_low, "ci_high": one.ci_high}, 2),
            str(one.n_judges),
        )
        for task, one in found
    ]
    return SideTable(
        "Which tasks tell judges apart",
        ("task", "best judge", "scoring", "tells apart", "κ with gold", "95% interval", "judges"),
        4,
        rows,
        [
            f"Yes: the best judge's whole interval lies above {DISCRIMINATING_KAPPA}; a constant "
            "answer has a κ of 0. No (non-discriminating): every judge's lies below. Rank judges "
            "only by tasks with a yes."
        ],
    )  # fmt: skip


def repeated_figures(stream: Stream, run: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """A stream's JSS over every draw of its prompts, raw and mapped; nothing without repeats."""
    log, pairs = stream.log, stream.pairs
    if stream.reruns is None or not len(pairs):
        return
    rows = np.concatenate([stream.rows, stream.reruns[1]])
    rows = rows[log.stimulus[rows] >= 0]
    # A prompt that several items share is logged for each, but drawn once per repeat.
    draw = log.stimulus[rows] * (int(log.repeat.max()) + 1) + log.repeat[rows]
    _, once = np.unique(draw, return_index=True)
    rows = rows[once]
    drawn = np.bincount(log.stimulus[rows])
    n_draws = int(drawn.max())
    if stream.variants and drawn[drawn > 0].min() < n_draws:
        return  # Only the base wording was asked again: see jss_repeat.
    undecided = log.undecided[log.raw[rows]]
    rows = rows[~undecided]
    counts = np.zeros((log.n_stimuli, len(log.labels)))
    np.add.at(counts, (log.stimulus[rows], log.raw[rows]), 1)
    first, second = counts[pairs.first], counts[pairs.second]
    labels = np.arange(len(log.labels))
    known = {"run_id": str(run.get("run_id") or "-"), "judge": stream.judge}
    known |= {"task": stream.task.name, "scoring": stream.scoring}
    for kind in ("raw", "mapped"):
        if kind == "mapped":
            first = mapped_shares(first, labels, pairs.map_a, pairs, len(labels))
            second = mapped_shares(second, labels, pairs.map_b, pairs, len(labels))
        yield {
            **known,
            "labels": kind,
            **sampled_jss(first, second, pairs.cluster).to_dict(),
            "n_draws": n_draws,
            "n_undecided": int(undecided.sum()),
            "temperature": _temperature(run, stream.judge),
        }


def _temperature(run: Mapping[str, Any], judge: str) -> float | None:
    for entry in run.get("judges") or []:
        if entry.get("name") == judge:
            value = entry.get("describe", {}).get("decoding", {}).get("temperature")
            return None if value is None else float(value)
    return None


def _repeated(report: Mapping[str, Any]) -> SideTable:
    cases: dict[Any, dict[str, Mapping[str, Any]]] = {}
    for entry in report.get("repeated", []):
        cases.setdefault(identity(entry), {})[entry["labels"]] = entry
    names = short_names({key[1] for key in cases})
    rows = []
    for key in sorted(cases, key=lambda key: (task_rank(key[2]), key)):
        raw, mapped = cases[key]["raw"], cases[key]["mapped"]
        spread = {"ci_low": mapped["net_ci_low"], "ci_high": mapped["net_ci_high"]}
        rows.append(
            (
                names[key[1]],
                key[2],
                key[3],
                f"{mapped['n_draws']}×",
                str(mapped.get("n_undecided", "-")),
                number(mapped["temperature"], 1),
                number(raw["jss"]),
                number(mapped["jss"]),
                interval(mapped, 2),
                percent(mapped["noise_floor"]),
                f"{number(mapped['net_flip_rate'])} {interval(spread, 2)}",
            )
        )
    return SideTable(
        "Each prompt asked again",
        ("judge", "task", "scoring", "asked", "undecided", "temperature", "raw JSS", "mapped JSS",
         "95% interval", "noise floor", "net flip rate"),
        3,
        rows,
        [
            "JSS over every pair of draws, one of each wording. Undecided: draws without a "
            "decision, which are left out. Noise floor: flips when simply asked again. Net flip "
            "rate: flips of rewording beyond that."
        ],
    )  # fmt: skip


def _stream(entry: Mapping[str, Any]) -> tuple[str, str, str]:
    return entry["judge"], entry["task"], entry["scoring"]


def _variants(report: Mapping[str, Any]) -> SideTable:
    found = report.get("variants", [])
    equivalent = Counter(_stream(e) for e in found if e["variant_class"] == "equivalent")
    # With one equivalent variant, the pool of all repeats its row.
    found = [entry for entry in found if entry["variant"] or equivalent[_stream(entry)] > 2]
    names = short_names({entry["judge"] for entry in found})
    rows = []
    for entry in sorted(found, key=lambda e: (task_rank(e["task"]), e["task"], names[e["judge"]])):
        prefix = {"contrast": "follows_", "intervention": "shift_"}.get(entry["variant_class"], "")
        ends = {key: entry[f"{prefix}{key}"] for key in ("ci_low", "ci_high")}
        moved = [
            f"{label} {gain:+.0%}" for label, gain in (entry["net_shift"] or {}).items() if gain
        ]
        rows.append(
            (
                names[entry["judge"]],
                entry["task"],
                entry["scoring"],
                entry["variant"] or "all equivalent",
                entry["variant_class"],
                number(entry["jss"]),
                percent(entry["follows"]),
                percent(entry["shift_rate"]),
                interval(ends, 2),
                " ".join(moved) or "-",
                percent(entry["unreadable"]),
                str(entry["n_pairs"]),
            )
        )
    return SideTable(
        "Variants beside the base wording",
        ("judge", "task", "scoring", "variant", "class", "JSS", "follows", "shift rate",
         "95% interval", "net shift", "unreadable", "pairs"),
        5,
        rows,
        [
            "JSS: same verdict as under the base wording (equivalent). Follows: the answer changes "
            "when the question or the item does (contrast). Shift rate: verdicts that an "
            "intervention changes, and by how much each label gains. Unreadable: answers without a "
            "verdict."
        ],
    )  # fmt: skip


def _budget(report: Mapping[str, Any]) -> SideTable:
    found = report.get("variance_budget", [])
    names = short_names({entry["judge"] for entry in found})
    rows = []
    for entry in sorted(found, key=lambda e: (task_rank(e["task"]), e["task"], names[e["judge"]])):
        case = (names[entry["judge"]], entry["task"], entry["scoring"], entry["source"])
        figures = (number(entry["variance"]), interval(entry, 2), percent(entry["noise_share"]))
        rows.append((*case, *figures, str(entry["n_pairs"] or "-")))
    notes = [
        f"{names[e['judge']]} on {e['task']}, {e['scoring']} scoring: {e['text']}."
        for e in found
        if e["text"]
    ]
    return SideTable(
        "Where the variance of a verdict comes from",
        ("judge", "task", "scoring", "source", "variance", "95% interval", "of the noise", "pairs"),
        4,
        rows,
        [
            "Variance: the chance that two verdicts differ for this reason, on a scale squared "
            "levels. Noise: all but the item.",
            *notes,
        ],
    )


def _published(report: Mapping[str, Any]) -> SideTable:
    floating = {
        entry.get("name")
        for run in report["runs"]
        for entry in run.get("judges") or []
        if (entry.get("describe") or {}).get("floating")
    }
    cells = main_cells(report)
    names = short_names({key[1] for key in cells})
    rows, notes = [], dict[str, int]()
    for key in sorted(cells, key=lambda key: (task_rank(key[2]), key)):
        _, judge, task, scoring = key
        if judge in BASELINES:
            continue
        for figure in to_show(_CAP.sub("", judge.partition("@")[0])):
            if figure.task != task:
                continue
            own = cells[key][figure.labels]
            theirs = {"ci_low": figure.ci_low, "ci_high": figure.ci_high}
            said = [f"{figure.source}, as {figure.published_as}", *figure.notes]
            said += [_FLOATING] if judge in floating else []
            marks = [str(notes.setdefault(note, len(notes) + 1)) for note in said]
            mark = " (floating)" if judge in floating else ""
            rows.append(
                (
                    f"{names[judge]}{mark}",
                    task,
                    scoring,
                    figure.labels,
                    number(own["jss"]),
                    interval(own, 2),
                    number(figure.jss),
                    interval(theirs, 2),
                    str(figure.n_pairs),
                    " ".join(marks),
                )
            )
    return SideTable(
        f"Published beside ours ({WORDINGS})",
        ("judge", "task", "scoring", "labels", "JSS here", "95% interval", "published JSS",
         "published interval", "rows", "notes"),
        4,
        rows,
        [f"{number}  {note}" for note, number in notes.items()],
    )  # fmt: skip
