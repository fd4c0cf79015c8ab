"""Advice in plain words: whether to trust a judge on a task, and which wording to prefer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from judgesense.decisions.streams import BASELINES, ORACLE
from judgesense.report_file import KAPPA_UNDEFINED, THRESHOLD, identity, main_cells, task_rank
from judgesense.text import interval, join, number, percent, sentence

GAP = 0.1
"""Raw and mapped JSS further apart than this: an inverted wording decides the raw figure."""

FEW_CLUSTERS = 10
MANY_UNDECIDED = 0.05
LOW_MASS = 0.5
FIRST_POSITION = (0.35, 0.65)
SAME_ITEM = 0.8
NO_DIFFERENCE = 0.02

Finding = dict[str, Any]


@dataclass(frozen=True)
class Case:
    """What is known of one judge, task and scoring: the main cells and what stands behind them."""

    raw: Mapping[str, Any]
    mapped: Mapping[str, Any]
    pairs: list[Mapping[str, Any]]
    wordings: list[Mapping[str, Any]]
    about: Mapping[str, Any]
    settle: int | None
    oracle_raw: float | None


def advise(report: Mapping[str, Any]) -> list[Finding]:
    """Findings on every judge, task and scoring, coherence first.

    A finding has ``judge``, ``task``, ``scoring``, ``kind`` and ``text``; the first of each case
    has kind ``use``, ``avoid`` or ``undecided``.
    """
    found = []
    for case in cases(report):
        for kind, text in _findings(case):
            names = {key: case.mapped[key] for key in ("run_id", "judge", "task", "scoring")}
            found.append({**names, "kind": kind, "text": text})
    return found


def as_sentence(finding: Mapping[str, Any]) -> str:
    """A finding with whom and what it is about."""
    where = f"{finding['judge']} on {finding['task']}"
    scoring = finding["scoring"]
    return f"{where} ({scoring} scoring): {finding['text']}"


def cases(report: Mapping[str, Any]) -> Iterator[Case]:
    """Judges' cases (no baselines), coherence first, then in the order of the tasks' names."""
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


MANY_CUT_OFF = 0.05
"""From this share of answers on, the cap is what to change."""

MOSTLY = 0.5
"""Below this coverage a JSS speaks for fewer than half of the pairs, and no advice rests on it."""


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
    if cell["coverage"] is not None and cell["coverage"] < MOSTLY:
        return "avoid", (
            f"avoid as it answers now: JSS {number(cell['jss'])} {interval(cell)} speaks for "
            f"{cell['n_pairs']} of {case.about['n_planned']} pairs only. Ask for its answers in a "
            "form that can be read, or score it by options."
        )
    if cell["verdict"] == "degenerate":
        reason = sentence(cell["degenerate"].removesuffix(KAPPA_UNDEFINED))
        return "avoid", (
            f"avoid. {reason}, so that JSS {number(cell['jss'])} says nothing about sensitivity to "
            "wording."
        )
    spread = f"{number(cell['jss'])} {interval(cell)}"
    if cell["verdict"] == "reliable":
        return _reliable(case, spread)
    if cell["verdict"] == "unstable":
        text = (
            f"avoid where wordings vary. Rewording alone changes {percent(cell['flip_rate'])} of "
            f"its verdicts: JSS {spread}."
        )
        if cell["kappa"] is not None and cell["kappa"] <= 0:
            text += f" κ is {number(cell['kappa'])}: two wordings agree no more often than chance."
        return "avoid", text
    if cell["ci_low"] is None:
        return "undecided", (
            f"not settled. JSS {number(cell['jss'])} rests on a single item, which has no "
            "interval: take more items."
        )
    text = f"not settled. JSS {spread} lies on both sides of {THRESHOLD}"
    if case.settle is None:
        return "undecided", f"{text}, and more items are unlikely to change that."
    return "undecided", (
        f"{text}. If the JSS stays as it is, about {case.settle} items would settle it "
        f"(now {cell['n_items']})."
    )


def _nothing_known(case: Case) -> tuple[str, str]:
    """There is no JSS: for want of pairs, of judgements, or of decisions."""
    reason = case.mapped["degenerate"]
    if not case.about["n_planned"]:
        return "undecided", (
            f"{reason}: it judged no item under two wordings. Judge the same items under two or "
            "more to learn how much the wording matters."
        )
    if not case.about["n_judged"] or case.mapped["n_error"]:
        return "undecided", f"not settled: {reason}."
    return "avoid", f"avoid. {sentence(reason)}: its answers could not be read as verdicts."


def _reliable(case: Case, spread: str) -> tuple[str, str]:
    """A consistent judge is of use only if it reads what it judges."""
    if _is_wrong(case):
        return "avoid", f"avoid, consistent though it is: JSS {spread}. Its verdicts are wrong."
    if _follows_place(case):
        return "avoid", (
            f"avoid, consistent though it is: JSS {spread}. Its verdicts follow the place of an "
            "option more than its content."
        )
    kappa = case.mapped["kappa"]
    if kappa is not None and kappa <= 0.2:
        return "use", (
            f"use with care. Rewording changes {percent(case.mapped['flip_rate'])} of its verdicts "
            f"(JSS {spread}), but mostly because one label dominates: κ is {number(kappa)}."
        )
    changed = percent(case.mapped["flip_rate"])
    return "use", f"use. Rewording changes {changed} of its verdicts: JSS {spread}."


def _follows_place(case: Case) -> bool:
    """Most pairs of orders go to the same place instead of the same thing."""
    same = case.mapped["position_consistency"]
    return same is not None and same < 0.5


def _is_wrong(case: Case) -> bool:
    """No better than always giving the commonest gold label."""
    accuracy, share = case.mapped["accuracy"], case.about["gold_share"]
    return accuracy is not None and share is not None and share < 1 and accuracy <= share


def _wrong(case: Case) -> str | None:
    accuracy, share = case.mapped["accuracy"], case.about["gold_share"]
    if accuracy is None:
        return None
    if share == 1:
        return (
            f"every gold label is {case.about['gold_label']}: an accuracy of {percent(accuracy)} "
            "cannot tell a judge that is right from one that always gives that answer."
        )
    constant = f"always answering {case.about['gold_label']}"
    if not _is_wrong(case):
        low = case.about["accuracy_ci"][0]
        if low is None or share is None or low > share:
            return None
        return (
            f"its accuracy of {percent(accuracy)} on {case.about['n_items']} items cannot be told "
            f"from that of {constant}, {percent(share)}."
        )
    jss = case.mapped["jss"]
    start = "consistent and wrong" if jss is not None and jss >= THRESHOLD else "often wrong"
    return (
        f"{start}: {percent(accuracy)} of its single verdicts match the gold labels, where "
        f"{constant} would match {percent(share)}."
    )


def _polarity(case: Case) -> str | None:
    raw, mapped = case.raw["jss"], case.mapped["jss"]
    inverted = [row["template"] for row in case.wordings if row["inverted"]]
    if not inverted or raw is None or mapped is None:
        return None
    names = join(inverted)
    if mapped - raw > GAP:
        text = (
            f"the raw JSS of {number(raw)} comes from the inverted wording {names}, in which the "
            f"same answer means the opposite, not from the judge: mapped, it is {number(mapped)}."
        )
        if case.oracle_raw is not None:
            text += f" A perfect judge has a raw JSS of {number(case.oracle_raw)} here."
        return text + " Quote the mapped figure, or drop the inverted wording."
    if raw - mapped > GAP:
        return (
            f"it overlooks the inversion in {names}: it gives the same answer as under the other "
            f"wordings (raw JSS {number(raw)}), which there means the opposite (mapped "
            f"{number(mapped)}). Drop the inverted wording."
        )
    return None


def _position(case: Case) -> str | None:
    if not case.about["comparative"]:
        return None
    rate, same = case.mapped["first_position_rate"], case.mapped["position_consistency"]
    if same is None:
        if len(case.about["orders"]) == 1:
            return (
                f"only the order {case.about['orders'][0]} was judged, so that position bias "
                "cannot be told from preference; run with --orders AB,BA."
            )
        return None
    low, high = FIRST_POSITION
    if same >= SAME_ITEM and low <= rate <= high:
        return None
    place, share = ("first", rate) if rate >= 0.5 else ("second", 1 - rate)
    start = f"with the options swapped it chooses the same one {percent(same)} of the time"
    if low <= rate <= high:
        return f"{start}, although it prefers no place. Ask in both orders and keep what agrees."
    return (
        f"position bias: {percent(share)} of its verdicts fall on the option shown {place}; "
        f"{start}. Ask in both orders and keep what agrees."
    )


def _noise(case: Case) -> str | None:
    noise, flips = case.raw["noise_floor"], case.mapped["flip_rate"]
    if noise is None or flips is None:
        return None
    if noise == 0:
        return "asked again, it gives the same answers: its flips are due to wording alone."
    if flips > 0 and noise >= flips / 2:
        return (
            f"the same prompt asked again flips {percent(noise)} of verdicts, rewording "
            f"{percent(flips)}: most of that is noise. Fix the decoding, batching and precision "
            "before blaming the wording."
        )
    return (
        f"of the flip rate of {percent(flips)}, up to {percent(noise)} is noise: the same prompt "
        "asked again flips that often."
    )


def _cut_off(case: Case) -> str | None:
    cut, n = case.about.get("n_cut_off", 0), case.about.get("n_prompts", 0)
    if not n or cut / n < MANY_CUT_OFF:
        return None
    return (
        f"the token cap ended {percent(cut / n)} of its answers before they decided anything: "
        "raise --max-tokens (a model that thinks aloud needs some thousands)."
    )


def _mass(case: Case) -> str | None:
    mass = case.about["option_mass"]
    if case.mapped["scoring"] != "options" or mass is None or mass >= LOW_MASS:
        return None
    return (
        f"the options together hold only {percent(mass)} of the probability in the median prompt: "
        "it wanted to say something else. Read these figures as forced choices."
    )


def _undecided(case: Case) -> str | None:
    cell, about = case.mapped, case.about
    texts = []
    if about["n_judged"] < about["n_planned"]:
        texts.append(
            f"{about['n_planned'] - about['n_judged']} of {about['n_planned']} pairs are not "
            "judged yet: give the run's command again to finish it."
        )
    counts = {kind: cell[f"n_{kind}"] for kind in ("unclear", "refused", "error")}
    lost = sum(counts.values())
    if about["n_judged"] and lost / about["n_judged"] > MANY_UNDECIDED:
        named = join([f"{count} {kind}" for kind, count in counts.items() if count])
        texts.append(
            f"{percent(lost / about['n_judged'])} of its pairs have no verdict on a side "
            f"({named}); counted as disagreeing or agreeing, JSS would be "
            f"{number(cell['jss_low'])} or {number(cell['jss_high'])}."
        )
    return " ".join(texts) or None


def _rests_on_little(case: Case) -> bool:
    """Whether wordings cannot be told apart: one label throughout, or most pairs undecided."""
    coverage = case.mapped["coverage"]
    return case.mapped["verdict"] == "degenerate" or (coverage is not None and coverage < MOSTLY)


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
        f"the wordings that agree least are {worst['template_a']} and {worst['template_b']}: JSS "
        f"{number(worst['jss'])} {interval(worst)} on {worst['n_pairs']} pairs."
    )


def _prefer(case: Case) -> str | None:
    if _rests_on_little(case):
        return None
    known = [row for row in case.wordings if row["agreement"] is not None]
    graded = bool(known) and all(row["accuracy"] is not None for row in known)

    def merit(row: Mapping[str, Any]) -> float:
        score: float = row["agreement"] + (row["accuracy"] if graded else 0.0)
        return score / (2 if graded else 1)

    if len(known) < 3:
        return None
    ranked = sorted(known, key=lambda row: (-merit(row), row["inverted"], row["template"]))
    if merit(ranked[0]) - merit(ranked[-1]) < NO_DIFFERENCE:
        return "no wording stands out: they agree with each other alike."
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
        f"all this rests on {clusters} independent {'item' if clusters == 1 else 'items'}, however "
        "many pairs were made of them: take more items before you conclude."
    )
