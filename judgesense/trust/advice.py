"""Advice in plain sentences: whether to use a judge on a task, why, and with which wording."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from string import Formatter
from typing import Any

from judgesense.decisions.streams import BASELINES, ORACLE
from judgesense.report_file import KAPPA_UNDEFINED, identity, main_cells, task_rank
from judgesense.text import interval, join, number, percent, sentence
from judgesense.trust.thresholds import (
    EVEN_FIRST,
    FEW_CLUSTERS,
    FEWEST_WORDINGS,
    FOLLOWS_POSITION,
    LEAST_COVERAGE,
    LOW_KAPPA,
    LOW_OPTION_MASS,
    MANY_CUT_OFF,
    MANY_UNDECIDED,
    MOSTLY_NOISE,
    NO_DIFFERENCE,
    POLARITY_GAP,
    SAME_CHOICE,
    STEADY_JSS,
)
from judgesense.yaml_files import read_yaml

Finding = dict[str, Any]


@dataclass(frozen=True)
class AdviceCase:
    """One judge, task and scoring: its main cells and the figures behind them."""

    raw: Mapping[str, Any]
    mapped: Mapping[str, Any]
    pairs: list[Mapping[str, Any]]
    wordings: list[Mapping[str, Any]]
    about: Mapping[str, Any]
    settle: int | None
    oracle_raw: float | None


def advise(report: Mapping[str, Any]) -> list[Finding]:
    """Findings on every judge, task and scoring, coherence first.

    A finding has ``run_id``, ``judge``, ``task``, ``scoring``, ``kind`` and ``text``; the first of
    each case has kind ``use``, ``avoid`` or ``undecided``.
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
    about = {identity(entry): entry for entry in report["diagnostics"]}
    oracle = {key[2]: both["raw"]["jss"] for key, both in cells.items() if key[1] == ORACLE}
    for key in sorted(cells, key=lambda key: (task_rank(key[2]), key)):
        if key[1] in BASELINES or key not in about:
            continue
        both = cells[key]
        order = both["mapped"]["order"]
        settle = [
            entry["items"]
            for entry in report["to_settle"]
            if identity(entry) == key and (entry["order"], entry["labels"]) == (order, "mapped")
        ]
        yield AdviceCase(
            raw=both["raw"],
            mapped=both["mapped"],
            pairs=[
                row
                for row in report["template_pairs"]
                if identity(row) == key and row["labels"] == "mapped" and row["jss"] is not None
            ],
            wordings=[row for row in report["templates"] if identity(row) == key],
            about=about[key],
            settle=settle[0] if settle else None,
            oracle_raw=oracle.get(key[2]),
        )


def _findings(case: AdviceCase) -> Iterator[tuple[str, str]]:
    yield _headline(case)
    for check in (_wrong, _polarity, _position, _noise, _mass, _undecided, _cut_off, _worst,
                  _prefer, _sample):  # fmt: skip
        if text := check(case):
            yield check.__name__.strip("_"), text


def _headline(case: AdviceCase) -> tuple[str, str]:
    cell = case.mapped
    if cell["jss"] is None:
        return _nothing_known(case)
    if _hardly_covered(case):
        return "avoid", _say("hardly_covered", case)
    if cell["verdict"] == "degenerate":
        reason = sentence(cell["degenerate"].removesuffix(KAPPA_UNDEFINED))
        return "avoid", _say("degenerate", case, reason=reason)
    if cell["verdict"] == "reliable":
        return _reliable(case)
    if cell["verdict"] == "unstable":
        text = _say("unstable", case)
        if cell["kappa"] is not None and cell["kappa"] <= 0:
            text += f" {_say('no_better_than_chance', case)}"
        return "avoid", text
    if cell["ci_low"] is None:
        return "undecided", _say("one_item", case)
    key = "never_settled" if case.settle is None else "not_settled"
    return "undecided", _say(key, case, threshold=STEADY_JSS, items=case.settle)


def _nothing_known(case: AdviceCase) -> tuple[str, str]:
    """The headline without a JSS: no pairs, no judgements, or no decisions."""
    if not case.about["n_planned"]:
        return "undecided", _say("one_wording", case)
    if not case.about["n_judged"] or case.mapped["n_error"]:
        return "undecided", _say("not_judged", case)
    return "avoid", _say("unreadable", case, reason=sentence(case.mapped["degenerate"]))


def _reliable(case: AdviceCase) -> tuple[str, str]:
    """A steady judge is only useful if it reads what it judges."""
    same, kappa = case.mapped["position_consistency"], case.mapped["kappa"]
    if _is_wrong(case):
        return "avoid", _say("steady_but_wrong", case)
    if same is not None and same < FOLLOWS_POSITION:
        return "avoid", _say("steady_by_position", case)
    one_label = kappa is not None and kappa <= LOW_KAPPA
    return "use", _say("use_with_care" if one_label else "use", case)


def _hardly_covered(case: AdviceCase) -> bool:
    coverage = case.mapped["coverage"]
    return coverage is not None and coverage < LEAST_COVERAGE


def _is_wrong(case: AdviceCase) -> bool:
    """No better than always giving the commonest gold label."""
    accuracy, share = case.mapped["accuracy"], case.about["gold_share"]
    return accuracy is not None and share is not None and share < 1 and accuracy <= share


def _wrong(case: AdviceCase) -> str | None:
    jss, share = case.mapped["jss"], case.about["gold_share"]
    if case.mapped["accuracy"] is None:
        return None
    if share == 1:
        return _say("one_gold_label", case)
    if _is_wrong(case):
        steady = jss is not None and jss >= STEADY_JSS
        return _say("wrong", case, how="steady but" if steady else "often")
    low = case.about["accuracy_ci"][0]
    return None if low is None or share is None or low > share else _say("perhaps_constant", case)


def _polarity(case: AdviceCase) -> str | None:
    raw, mapped = case.raw["jss"], case.mapped["jss"]
    inverted = [row["template"] for row in case.wordings if row["inverted"]]
    if not inverted or raw is None or mapped is None:
        return None
    wordings = f"the inverted wording{'s' if len(inverted) > 1 else ''} {join(inverted)}"
    if mapped - raw > POLARITY_GAP:
        oracle = ""
        if case.oracle_raw is not None:
            oracle = " " + _say("inverted_oracle", case, oracle_raw=case.oracle_raw)
        return _say("inverted_gap", case, wordings=wordings, oracle=oracle)
    if raw - mapped > POLARITY_GAP:
        return _say("inverted_overlooked", case, wordings=wordings)
    return None


def _position(case: AdviceCase) -> str | None:
    if not case.about["comparative"]:
        return None
    rate, same = case.mapped["first_position_rate"], case.mapped["position_consistency"]
    if same is None:
        return _say("one_order", case) if len(case.about["orders"]) == 1 else None
    low, high = EVEN_FIRST
    if low <= rate <= high:
        return None if same >= SAME_CHOICE else _say("even_position", case)
    place, share = ("first", rate) if rate >= 0.5 else ("second", 1 - rate)
    return _say("position_bias", case, place=place, share=share)


def _noise(case: AdviceCase) -> str | None:
    noise, flips = case.raw["noise_floor"], case.mapped["flip_rate"]
    if noise is None or flips is None:
        return None
    if noise == 0:
        return _say("no_noise", case)
    mostly = flips > 0 and noise >= flips * MOSTLY_NOISE
    return _say("mostly_noise" if mostly else "some_noise", case)


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


def _rests_on_little(case: AdviceCase) -> bool:
    """Whether wordings cannot be told apart: one label throughout, or most pairs undecided."""
    return case.mapped["verdict"] == "degenerate" or _hardly_covered(case)


def _worst(case: AdviceCase) -> str | None:
    # Without an interval, a pair of wordings was decided on one item alone: that names no worst.
    other = [
        row
        for row in case.pairs
        if row["template_a"] != row["template_b"] and row["ci_low"] is not None
    ]
    if _rests_on_little(case) or len(other) < 2:
        return None
    worst = min(other, key=lambda row: (row["jss"], -row["n_pairs"]))
    return None if worst["jss"] > 1 - NO_DIFFERENCE else _say("worst", case, pair=worst)


def _prefer(case: AdviceCase) -> str | None:
    known = [row for row in case.wordings if row["agreement"] is not None]
    if _rests_on_little(case) or len(known) < FEWEST_WORDINGS:
        return None
    graded = all(row["accuracy"] is not None for row in known)

    def merit(row: Mapping[str, Any]) -> float:
        score: float = row["agreement"] + (row["accuracy"] if graded else 0.0)
        return score / (2 if graded else 1)

    ranked = sorted(known, key=lambda row: (-merit(row), row["inverted"], row["template"]))
    best, second = ranked[:2]
    if merit(best) - merit(ranked[-1]) < NO_DIFFERENCE:
        return _say("no_wording_stands_out", case)
    near = merit(best) - merit(second) < NO_DIFFERENCE
    gold = f" and with gold on {percent(best['accuracy'])} of its prompts" if graded else ""
    runner_up = f", hardly more than {second['template']}" if near else ""
    return _say("prefer", case, best=best, graded=gold, runner_up=runner_up)


def _sample(case: AdviceCase) -> str | None:
    clusters = case.mapped["n_clusters"]
    few = 0 < clusters < FEW_CLUSTERS
    return _say("few_clusters", case, noun="item" if clusters == 1 else "items") if few else None


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
