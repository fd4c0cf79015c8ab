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
Texts = Iterator[tuple[str, str]]
"""Kinds of findings and their texts."""


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
    cells = main_cells(report)
    about = dict(zip(map(identity, report["diagnostics"]), report["diagnostics"], strict=True))
    advised = dict(
        zip(map(identity, report["recommendation"]), report["recommendation"], strict=True)
    )
    oracle = {key[2]: both["raw"]["jss"] for key, both in cells.items() if key[1] == ORACLE}
    found = []
    for card in sorted(report["trust"], key=lambda card: (task_rank(card["task"]), identity(card))):
        key = identity(card)
        names = dict(zip(("run_id", "judge", "task", "scoring"), key, strict=True))
        inverted = [row for row in report["templates"] if row["inverted"] and identity(row) == key]
        case = AdviceCase(
            card=card,
            raw=cells[key]["raw"],
            mapped=cells[key]["mapped"],
            wordings=[row for row in report["wordings"] if identity(row) == key],
            inverted=[row["template"] for row in inverted],
            recommendation=advised.get(key),
            about=about[key],
            oracle_raw=oracle.get(key[2]),
        )
        found += [{**names, "kind": kind, "text": text} for kind, text in _findings(case)]
    return found


def as_sentence(finding: Mapping[str, Any]) -> str:
    """A finding with the judge, task and scoring that it is about."""
    where = f"{finding['judge']} on {finding['task']}"
    return f"{where} ({finding['scoring']} scoring): {finding['text']}"


def _findings(case: AdviceCase) -> Texts:
    yield case.card["trust"], f"{case.card['text']}."
    if case.card["trust"] == "unknown":
        # The text of a card with `care` says what is unmeasured already.
        missing = [
            check["text"]
            for name, check in case.card["checks"].items()
            if check["state"] == "unmeasured" and check["applies"] and name != "steady"
        ]
        if missing:
            yield "missing", f"{'; '.join(missing)}."
    yield from _on_wordings(case)
    yield from _on_answers(case)
    advised = case.recommendation
    # A judge to avoid gets no wording to use, unless one passes.
    if advised and (case.card["trust"] != "avoid" or advised["template"] is not None):
        yield "prefer", f"{advised['text']}."
    if 0 < (clusters := case.mapped["n_clusters"]) < FEW_CLUSTERS:
        yield "sample", _say("few_clusters", case, noun=f"item{s(clusters)}")
    if case.card["trust"] in ("use", "care"):
        # What so few wordings can miss is of interest for a judge that may be used.
        yield "missed", _say("missed", case, **case.card["checks"]["steady"]["details"])


def _on_wordings(case: AdviceCase) -> Texts:
    """Wordings that stand out: mislabelled, unlike the others, unreadable, or inverted."""
    texts = []
    for flag in ("inverted", "outlier", "unreadable"):
        names = [row["template"] for row in case.wordings if row["flag"] == flag]
        if flag == "inverted" and len(names) > 1 and len(names) == len(case.wordings):
            # Two camps, and no gold labels to tell which of them is mislabelled.
            texts.append(sentence(_say("inverted_all", case, names=join(names))))
        elif names and not (flag == "inverted" and set(names) <= set(case.inverted)):
            count = "one" if len(names) == 1 else "many"
            texts.append(sentence(_say(f"{flag}_{count}", case, names=join(names))))
    if texts:
        yield "wording", " ".join(texts)
    raw, mapped = case.raw["jss"], case.mapped["jss"]
    if not case.inverted or raw is None or mapped is None:
        return
    wordings = f"the inverted wording{s(len(case.inverted))} {join(case.inverted)}"
    if mapped - raw > POLARITY_GAP:
        oracle = ""
        if case.oracle_raw is not None:
            oracle = " " + _say("inverted_oracle", case, oracle_raw=case.oracle_raw)
        yield "polarity", _say("inverted_gap", case, wordings=wordings, oracle=oracle)
    elif raw - mapped > POLARITY_GAP:
        yield "polarity", _say("inverted_overlooked", case, wordings=wordings)


def _on_answers(case: AdviceCase) -> Texts:
    """One label throughout, noise, forced choices, and answers that are missing."""
    steady, about = case.card["checks"]["steady"], case.about
    if steady["state"] == "pass":
        kappa = steady["details"]["kappa"]
        if kappa is None:
            yield "one_label", _say("constant", case)
        elif kappa <= LOW_KAPPA:
            yield "one_label", _say("one_label", case, kappa=kappa)
    repeat = steady["details"].get("jss_repeat")
    if repeat is not None:
        # How much of the flips under rewording comes back without rewording.
        noise, flips = 1 - repeat, 1 - steady["estimate"]
        key = "some_noise"
        if noise == 0:
            key = "no_noise"
        elif abs(flips - noise) < NO_DIFFERENCE:
            key = "only_noise"
        elif noise >= flips * MOSTLY_NOISE:
            key = "mostly_noise"
        yield "noise", _say(key, case, noise=noise, flips=flips)
    mass = about["option_mass"]
    if case.mapped["scoring"] == "options" and mass is not None and mass < LOW_OPTION_MASS:
        yield "mass", _say("low_mass", case)
    judged, texts = about["n_judged"], []
    if judged < about["n_planned"]:
        texts.append(_say("not_finished", case, missing=about["n_planned"] - judged))
    counts = {kind: case.mapped[f"n_{kind}"] for kind in ("unclear", "refused", "error")}
    lost = sum(counts.values())
    if judged and lost / judged > MANY_UNDECIDED:
        named = join([f"{count} {kind}" for kind, count in counts.items() if count])
        texts.append(_say("many_undecided", case, share=lost / judged, counts=named))
    if texts:
        yield "undecided", " ".join(texts)
    cut, n = about.get("n_cut_off", 0), about.get("n_prompts", 0)
    if n and cut / n >= MANY_CUT_OFF:
        yield "cut_off", _say("cut_off", case, share=cut / n)


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
