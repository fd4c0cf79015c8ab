"""Advice in plain sentences: whether to use a judge on a task, why, and with which wording."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
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

Finding = dict[str, Any]


@dataclass(frozen=True)
class Case:
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


def cases(report: Mapping[str, Any]) -> Iterator[Case]:
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
        yield Case(
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


def _findings(case: Case) -> Iterator[tuple[str, str]]:
    yield _headline(case)
    for check in (
        _wrong,
        _polarity,
        _position,
        _noise,
        _mass,
        _undecided,
        _cut_off,
        _worst,
        _prefer,
        _sample,
    ):
        if text := check(case):
            yield check.__name__.strip("_"), text


def _headline(case: Case) -> tuple[str, str]:
    cell = case.mapped
    if cell["jss"] is None:
        return _nothing_known(case)
    spread = f"{number(cell['jss'])} {interval(cell)}"
    if _hardly_covered(case):
        return "avoid", (
            f"avoid in this form. JSS {spread} covers only {cell['n_pairs']} of "
            f"{case.about['n_planned']} pairs. Ask for answers that can be parsed, or use options "
            "scoring."
        )
    if cell["verdict"] == "degenerate":
        reason = sentence(cell["degenerate"].removesuffix(KAPPA_UNDEFINED))
        return "avoid", (
            f"avoid. {reason}, so JSS {number(cell['jss'])} does not measure sensitivity to "
            "wording."
        )
    if cell["verdict"] == "reliable":
        return _reliable(case, spread)
    if cell["verdict"] == "unstable":
        text = (
            "avoid unless you keep to one wording. Rewording alone changes "
            f"{percent(cell['flip_rate'])} of its verdicts: JSS {spread}."
        )
        if cell["kappa"] is not None and cell["kappa"] <= 0:
            text += f" κ is {number(cell['kappa'])}: two wordings agree no more often than chance."
        return "avoid", text
    if cell["ci_low"] is None:
        return "undecided", (
            f"not settled. JSS {number(cell['jss'])} comes from a single item and has no interval. "
            "Add items."
        )
    text = f"not settled. The interval of JSS {spread} includes {STEADY_JSS}."
    if case.settle is None:
        return "undecided", f"{text} More items are unlikely to settle it."
    return "undecided", (
        f"{text} If JSS stays the same, about {case.settle} items will settle it (now "
        f"{cell['n_items']})."
    )


def _nothing_known(case: Case) -> tuple[str, str]:
    """There is no JSS: no pairs, no judgements, or no decisions."""
    reason = case.mapped["degenerate"]
    if not case.about["n_planned"]:
        return "undecided", (
            f"not measured: {reason}. No item was judged under two wordings; judge each item under "
            "at least two."
        )
    if not case.about["n_judged"] or case.mapped["n_error"]:
        return "undecided", f"not settled: {reason}."
    return "avoid", f"avoid. {sentence(reason)}: its answers could not be read as verdicts."


def _reliable(case: Case, spread: str) -> tuple[str, str]:
    """A steady judge is only useful if it reads what it judges."""
    cell = case.mapped
    if _is_wrong(case):
        return "avoid", f"avoid. It is steady (JSS {spread}), but its verdicts are wrong."
    same = cell["position_consistency"]
    if same is not None and same < FOLLOWS_POSITION:
        return "avoid", (
            f"avoid. It is steady (JSS {spread}), but its verdicts follow an option's place more "
            "than its content."
        )
    changed = f"Rewording changes {percent(cell['flip_rate'])} of its verdicts"
    if cell["kappa"] is not None and cell["kappa"] <= LOW_KAPPA:
        return "use", (
            f"use with care. {changed} (JSS {spread}), but mainly because one label dominates: κ "
            f"is {number(cell['kappa'])}."
        )
    return "use", f"use. {changed}: JSS {spread}."


def _hardly_covered(case: Case) -> bool:
    coverage = case.mapped["coverage"]
    return coverage is not None and coverage < LEAST_COVERAGE


def _is_wrong(case: Case) -> bool:
    """No better than always giving the commonest gold label."""
    accuracy, share = case.mapped["accuracy"], case.about["gold_share"]
    return accuracy is not None and share is not None and share < 1 and accuracy <= share


def _wrong(case: Case) -> str | None:
    accuracy, share = case.mapped["accuracy"], case.about["gold_share"]
    if accuracy is None:
        return None
    constant = f"always answering {case.about['gold_label']}"
    if share == 1:
        return (
            f"every gold label is {case.about['gold_label']}, so an accuracy of "
            f"{percent(accuracy)} does not distinguish it from {constant}."
        )
    if not _is_wrong(case):
        low = case.about["accuracy_ci"][0]
        if low is None or share is None or low > share:
            return None
        return (
            f"on {case.about['n_items']} items its accuracy of {percent(accuracy)} cannot be "
            f"distinguished from that of {constant}, {percent(share)}."
        )
    jss = case.mapped["jss"]
    start = "steady but wrong" if jss is not None and jss >= STEADY_JSS else "often wrong"
    return (
        f"{start}: {percent(accuracy)} of its verdicts match the gold labels; {constant} would "
        f"match {percent(share)}."
    )


def _polarity(case: Case) -> str | None:
    raw, mapped = case.raw["jss"], case.mapped["jss"]
    inverted = [row["template"] for row in case.wordings if row["inverted"]]
    if not inverted or raw is None or mapped is None:
        return None
    names = f"the inverted wording{'s' if len(inverted) > 1 else ''} {join(inverted)}"
    figures = f"raw JSS is {number(raw)}, mapped JSS {number(mapped)}"
    if mapped - raw > POLARITY_GAP:
        text = f"{figures}: the gap comes from {names}, not from the judge."
        if case.oracle_raw is not None:
            text += f" A perfect judge has a raw JSS of {number(case.oracle_raw)} here."
        return f"{text} Quote the mapped JSS, or drop {names}."
    if raw - mapped > POLARITY_GAP:
        return (
            f"{figures}: it overlooks the inversion and answers {names} like the others, although "
            f"the same answer means the opposite there. Drop {names}."
        )
    return None


def _position(case: Case) -> str | None:
    if not case.about["comparative"]:
        return None
    rate, same = case.mapped["first_position_rate"], case.mapped["position_consistency"]
    if same is None:
        if len(case.about["orders"]) == 1:
            return (
                f"only order {case.about['orders'][0]} was judged, so position bias cannot be "
                "separated from preference. Run with --orders AB,BA."
            )
        return None
    low, high = EVEN_FIRST
    even = low <= rate <= high
    if same >= SAME_CHOICE and even:
        return None
    place, share = ("first", rate) if rate >= 0.5 else ("second", 1 - rate)
    start = (
        "it favours neither position, but"
        if even
        else f"position bias: it takes the {place} option {percent(share)} of the time, and"
    )
    return (
        f"{start} makes the same choice in both orders {percent(same)} of the time. Judge both "
        "orders and keep the verdicts that agree."
    )


def _noise(case: Case) -> str | None:
    noise, flips = case.raw["noise_floor"], case.mapped["flip_rate"]
    if noise is None or flips is None:
        return None
    if noise == 0:
        return "it never flips when simply asked again: its flips come from wording alone."
    both = f"it flips {percent(noise)} of verdicts when simply asked again, {percent(flips)} when"
    if flips > 0 and noise >= flips * MOSTLY_NOISE:
        return (
            f"{both} reworded: most of that is noise. Fix decoding, batching and precision before "
            "you blame the wording."
        )
    return f"{both} reworded: up to {percent(noise)} is noise."


def _cut_off(case: Case) -> str | None:
    cut, n = case.about.get("n_cut_off", 0), case.about.get("n_prompts", 0)
    if not n or cut / n < MANY_CUT_OFF:
        return None
    return (
        f"{percent(cut / n)} of its answers reached the token cap before a verdict: raise it "
        "with --set max_tokens=N (a reasoning model needs a few thousand)."
    )


def _mass(case: Case) -> str | None:
    mass = case.about["option_mass"]
    if case.mapped["scoring"] != "options" or mass is None or mass >= LOW_OPTION_MASS:
        return None
    return (
        f"in the median prompt the options hold only {percent(mass)} of the probability: it would "
        "rather write something else. Read these figures as forced choices."
    )


def _undecided(case: Case) -> str | None:
    cell, about = case.mapped, case.about
    texts = []
    if about["n_judged"] < about["n_planned"]:
        texts.append(
            f"{about['n_planned'] - about['n_judged']} of {about['n_planned']} pairs are not "
            "judged yet: rerun the same command to finish the run."
        )
    counts = {kind: cell[f"n_{kind}"] for kind in ("unclear", "refused", "error")}
    lost = sum(counts.values())
    if about["n_judged"] and lost / about["n_judged"] > MANY_UNDECIDED:
        named = join([f"{count} {kind}" for kind, count in counts.items() if count])
        texts.append(
            f"{percent(lost / about['n_judged'])} of its pairs lack a verdict ({named}). JSS would "
            f"be {number(cell['jss_low'])} if all of them disagreed, {number(cell['jss_high'])} if "
            "all agreed."
        )
    return " ".join(texts) or None


def _rests_on_little(case: Case) -> bool:
    """Whether wordings cannot be told apart: one label throughout, or most pairs undecided."""
    return case.mapped["verdict"] == "degenerate" or _hardly_covered(case)


def _worst(case: Case) -> str | None:
    # Without an interval, a pair of wordings was decided on one item alone: that names no worst.
    other = [
        row
        for row in case.pairs
        if row["template_a"] != row["template_b"] and row["ci_low"] is not None
    ]
    if _rests_on_little(case) or len(other) < 2:
        return None
    worst = min(other, key=lambda row: (row["jss"], -row["n_pairs"]))
    if worst["jss"] > 1 - NO_DIFFERENCE:
        return None
    return (
        f"the wordings {worst['template_a']} and {worst['template_b']} agree least: JSS "
        f"{number(worst['jss'])} {interval(worst)} on {worst['n_pairs']} pairs."
    )


def _prefer(case: Case) -> str | None:
    known = [row for row in case.wordings if row["agreement"] is not None]
    if _rests_on_little(case) or len(known) < FEWEST_WORDINGS:
        return None
    graded = all(row["accuracy"] is not None for row in known)

    def merit(row: Mapping[str, Any]) -> float:
        score: float = row["agreement"] + (row["accuracy"] if graded else 0.0)
        return score / (2 if graded else 1)

    ranked = sorted(known, key=lambda row: (-merit(row), row["inverted"], row["template"]))
    if merit(ranked[0]) - merit(ranked[-1]) < NO_DIFFERENCE:
        return "no wording stands out: all agree with the others about equally."
    best = ranked[0]
    text = (
        f"prefer the wording {best['template']}: it agrees with the others on "
        f"{percent(best['agreement'])} of pairs"
    )
    if graded:
        text += f" and with gold on {percent(best['accuracy'])} of its prompts"
    if merit(best) - merit(ranked[1]) < NO_DIFFERENCE:
        text += f", hardly more than {ranked[1]['template']}"
    return text + "."


def _sample(case: Case) -> str | None:
    clusters = case.mapped["n_clusters"]
    if not 0 < clusters < FEW_CLUSTERS:
        return None
    return (
        f"these figures rest on {clusters} independent item{'' if clusters == 1 else 's'}, however "
        "many pairs that makes. Add items before you draw conclusions."
    )
