"""Advice in plain sentences: the trust card's conclusion, and what it does not say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from string import Formatter
from typing import Any

from judgesense.decisions.view import ORACLE
from judgesense.files.documents import read_yaml
from judgesense.run_folder.report import identity, main_cells, task_rank
from judgesense.text import interval, join, number, percent, s, sentence
from judgesense.trust.thresholds import (
    FEW_CLUSTERS,
    LOW_KAPPA,
    LOW_OPTION_MASS,
    MANY_CUT_OFF,
    MANY_UNDECIDED,
    MOSTLY_NOISE,
    NO_DIFFERENCE,
    POLARITY_GAP,
)

Finding = dict[str, Any]


@dataclass(frozen=True)
class AdviceCase:
    """One judge, task and scoring: its card, its main cells and the figures behind them."""

    card: Mapping[str, Any]
    raw: Mapping[str, Any]
    mapped: Mapping[str, Any]
    wordings: list[Mapping[str, Any]]
    inverted: list[str]
    recommendation: Mapping[str, Any] | None
    about: Mapping[str, Any]
    oracle_raw: float | None


def advise(report: Mapping[str, Any]) -> list[Finding]:
    """Findings on every judge, task and scoring, coherence first.

    A finding has ``run_id``, ``judge``, ``task``, ``scoring``, ``kind`` and ``text``. The first of
    each case is the trust card's sentence; its kind is the value of ``trust``. The others add what
    the card does not say.
    """
    found = []
    for case in cases(report):
        for kind, text in _findings(case):
            names = {key: case.mapped[key] for key in ("run_id", "judge", "task", "scoring")}
            found.append({**names, "kind": kind, "text": text})
    return found


def as_sentence(finding: Mapping[str, Any]) -> str:
    """A finding with the judge, task and scoring that it is about."""
    where = f"{finding['judge']} on {finding['task']}"
    return f"{where} ({finding['scoring']} scoring): {finding['text']}"


def cases(report: Mapping[str, Any]) -> Iterator[AdviceCase]:
    """The cases of judges (no baselines), coherence first, then by task."""
    cells = main_cells(report)
    about, recommended, cards = (
        {identity(entry): entry for entry in report[name]}
        for name in ("diagnostics", "recommendation", "trust")
    )
    oracle = {key[2]: both["raw"]["jss"] for key, both in cells.items() if key[1] == ORACLE}
    for key in sorted(cards, key=lambda key: (task_rank(key[2]), key)):
        both = cells[key]
        yield AdviceCase(
            card=cards[key],
            raw=both["raw"],
            mapped=both["mapped"],
            wordings=[row for row in report["wordings"] if identity(row) == key],
            inverted=[
                row["template"]
                for row in report["templates"]
                if identity(row) == key and row["inverted"]
            ],
            recommendation=recommended.get(key),
            about=about[key],
            oracle_raw=oracle.get(key[2]),
        )


def _findings(case: AdviceCase) -> Iterator[tuple[str, str]]:
    yield case.card["trust"], f"{case.card['text']}."
    for check in (_missing, _wording, _polarity, _one_label, _noise, _mass, _undecided, _cut_off,
                  _prefer, _sample, _missed):  # fmt: skip
        if text := check(case):
            yield check.__name__.strip("_"), text


def _missing(case: AdviceCase) -> str | None:
    """What else is unmeasured; the text of a card with `care` says it already."""
    if case.card["trust"] != "unknown":
        return None
    texts = [
        check["text"]
        for name, check in case.card["checks"].items()
        if check["state"] == "unmeasured" and check["applies"] and name != "steady"
    ]
    return f"{'; '.join(texts)}." if texts else None


def _wording(case: AdviceCase) -> str | None:
    """Wordings that stand out: mislabelled, unlike the others, or unreadable."""
    texts = []
    for flag in ("inverted", "outlier", "unreadable"):
        names = [row["template"] for row in case.wordings if row["flag"] == flag]
        if flag == "inverted" and len(names) > 1 and len(names) == len(case.wordings):
            # Two camps, and no gold labels to tell which of them is mislabelled.
            texts.append(sentence(_say("inverted_all", case, names=join(names))))
        elif names and not (flag == "inverted" and set(names) <= set(case.inverted)):
            number = "one" if len(names) == 1 else "many"
            texts.append(sentence(_say(f"{flag}_{number}", case, names=join(names))))
    return " ".join(texts) or None


def _one_label(case: AdviceCase) -> str | None:
    steady = case.card["checks"]["steady"]
    if steady["state"] != "pass":
        return None
    kappa = steady["details"]["kappa"]
    if kappa is not None and kappa > LOW_KAPPA:
        return None
    return _say("constant" if kappa is None else "one_label", case, kappa=kappa)


def _polarity(case: AdviceCase) -> str | None:
    raw, mapped = case.raw["jss"], case.mapped["jss"]
    inverted = case.inverted
    if not inverted or raw is None or mapped is None:
        return None
    wordings = f"the inverted wording{s(len(inverted))} {join(inverted)}"
    if mapped - raw > POLARITY_GAP:
        oracle = ""
        if case.oracle_raw is not None:
            oracle = " " + _say("inverted_oracle", case, oracle_raw=case.oracle_raw)
        return _say("inverted_gap", case, wordings=wordings, oracle=oracle)
    if raw - mapped > POLARITY_GAP:
        return _say("inverted_overlooked", case, wordings=wordings)
    return None


def _noise(case: AdviceCase) -> str | None:
    """How much of the flips under rewording comes back without rewording."""
    steady = case.card["checks"]["steady"]
    repeat = steady["details"].get("jss_repeat")
    if repeat is None:
        return None
    noise, flips = 1 - repeat, 1 - steady["estimate"]
    if noise == 0:
        return _say("no_noise", case)
    key = "some_noise"
    if abs(flips - noise) < NO_DIFFERENCE:
        key = "only_noise"
    elif noise >= flips * MOSTLY_NOISE:
        key = "mostly_noise"
    return _say(key, case, noise=noise, flips=flips)


def _cut_off(case: AdviceCase) -> str | None:
    cut, n = case.about.get("n_cut_off", 0), case.about.get("n_prompts", 0)
    many = n and cut / n >= MANY_CUT_OFF
    return _say("cut_off", case, share=cut / n) if many else None


def _mass(case: AdviceCase) -> str | None:
    mass = case.about["option_mass"]
    low = case.mapped["scoring"] == "options" and mass is not None and mass < LOW_OPTION_MASS
    return _say("low_mass", case) if low else None


def _undecided(case: AdviceCase) -> str | None:
    n_judged, n_planned = case.about["n_judged"], case.about["n_planned"]
    texts = []
    if n_judged < n_planned:
        texts.append(_say("not_finished", case, missing=n_planned - n_judged))
    counts = {kind: case.mapped[f"n_{kind}"] for kind in ("unclear", "refused", "error")}
    lost = sum(counts.values())
    if n_judged and lost / n_judged > MANY_UNDECIDED:
        named = join([f"{count} {kind}" for kind, count in counts.items() if count])
        texts.append(_say("many_undecided", case, share=lost / n_judged, counts=named))
    return " ".join(texts) or None


def _prefer(case: AdviceCase) -> str | None:
    """Which wording to use; a judge to avoid gets none, unless one passes."""
    found = case.recommendation
    if found is None or (case.card["trust"] == "avoid" and found["template"] is None):
        return None
    return f"{found['text']}."


def _sample(case: AdviceCase) -> str | None:
    clusters = case.mapped["n_clusters"]
    few = 0 < clusters < FEW_CLUSTERS
    return _say("few_clusters", case, noun="item" if clusters == 1 else "items") if few else None


def _missed(case: AdviceCase) -> str | None:
    """What so few wordings can miss; of interest for a judge that may be used."""
    if case.card["trust"] not in ("use", "care"):
        return None
    return _say("missed", case, **case.card["checks"]["steady"]["details"])


def _say(key: str, case: AdviceCase, **facts: Any) -> str:
    """A sentence of ``advice.yaml`` about a case."""
    cells = {"mapped": case.mapped, "raw": case.raw, "about": case.about}
    return _Formatter().format(_sentences()[key], **cells, **facts)


@cache
def _sentences() -> Mapping[str, str]:
    sentences: Mapping[str, str] = read_yaml(Path(__file__).with_suffix(".yaml"))
    return sentences


class _Formatter(Formatter):
    """``str.format`` with the fields' formats of ``advice.yaml``."""

    def format_field(self, value: Any, format_spec: str) -> str:
        if format_spec == "jss":
            return f"{number(value['jss'])} {interval(value)}"
        if format_spec == "percent":
            return percent(value)
        return number(value) if format_spec == "number" else str(value)
