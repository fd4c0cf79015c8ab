"""Advice in plain sentences: the trust card's conclusion, and what it does not say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from judgesense.log.view import ORACLE
from judgesense.measure.assessment import Assessment, Finding, GateOutlook, JudgeCells, task_rank
from judgesense.measure.card import TrustCard
from judgesense.measure.figures import WordingRow
from judgesense.measure.thresholds import (
    FEW_CLUSTERS,
    LOW_KAPPA,
    LOW_OPTION_MASS,
    MANY_CUT_OFF,
    MANY_UNDECIDED,
    MOSTLY_NOISE,
    NO_DIFFERENCE,
    POLARITY_GAP,
)
from judgesense.text import join, number, percent, plural_s

Texts = Iterator[tuple[str, str]]
"""Kinds of findings and their texts."""

_FLAGS = {
    "inverted": (
        "{} asks the opposite of the other wordings, or its label map is wrong. The checks leave "
        "it out until you correct the label map.",
        "{} ask the opposite of the other wordings, or their label maps are wrong. The checks "
        "leave them out until you correct the label maps.",
    ),
    "outlier": (
        "{} is an outlier: it disagrees with the other wordings more than those disagree with each "
        "other.",
        "{} are outliers: they disagree with the other wordings more than those disagree with each "
        "other.",
    ),
    "less right": (
        "{} is an outlier: it is right less often than the other wordings.",
        "{} are outliers: they are right less often than the other wordings.",
    ),
    "unreadable": (
        "Most answers under {} cannot be read. Ask for a shorter answer in a fixed form.",
        "Most answers under {} cannot be read. Ask for a shorter answer in a fixed form.",
    ),
}
"""What is wrong with one wording of each flag, and with several."""


def advise(
    measured: Sequence[JudgeCells], runs: Sequence[Mapping[str, Any]]
) -> tuple[Finding, ...]:
    """Findings on every judge, task and scoring, coherence first.

    The first of each assessment is the trust card's sentence; its kind is the value of ``trust``.
    Those of kind ``check`` and ``missing`` are the texts of its checks; the others add what these
    do not say.
    """
    perfect = {entry.task: entry.raw.jss for entry in measured if entry.judge == ORACLE}
    assessments = [entry for entry in measured if isinstance(entry, Assessment)]
    findings = []
    for entry in sorted(assessments, key=lambda entry: (task_rank(entry.task), entry.subject)):
        for kind, text in _on_judge(entry, runs, perfect.get(entry.task)):
            findings.append(Finding(*entry.subject, kind, text))
    return tuple(findings)


def _on_judge(entry: Assessment, runs: Sequence[Mapping[str, Any]], perfect: float | None) -> Texts:
    """The findings on one judge; ``perfect`` is the raw JSS of a perfect one."""
    card = entry.card
    declared = [row.template for row in entry.templates if row.inverted]
    yield from _on_card(card)
    for row in entry.wins:
        yield "wins", f"{row.text}."
    if card.trust != "avoid" and entry.outlook is not None and entry.outlook.gate is not None:
        yield from _on_gate(entry.outlook.gate)
    yield from _on_wordings(entry.wordings, declared)
    if declared:
        yield from _on_polarity(entry, declared, perfect)
    yield from _on_answers(entry, _noise_known(entry, runs))
    # A judge to avoid gets no wording to use, unless one passes; nor does a single wording.
    compared = card.checks["steady"].state != "unmeasured"
    if (card.trust != "avoid" and compared) or entry.recommendation.template is not None:
        yield "prefer", f"{entry.recommendation.text}."
    if 0 < (n := entry.mapped.n_clusters) < FEW_CLUSTERS:
        text = (
            f"these figures come from only {n} independent item{plural_s(n)}, however many pairs "
        )
        yield "sample", f"{text}the items form."


def _on_card(card: TrustCard) -> Texts:
    """The conclusion, the checks behind it, and the wordings that a sample can lack."""
    yield card.trust, f"{card.text}."
    checks = card.checks
    # What an unusable judge passes does not help it.
    others = () if card.trust == "avoid" else checks
    # Without people's labels, damage tells most of whether the judge is right.
    noticed = "notices" in checks and checks["notices"].estimate is not None
    first = ["notices"] if noticed and checks["right"].state == "unmeasured" else []
    for name in dict.fromkeys([*first, *card.because, *others]):
        if checks[name].applies:
            kind = "missing" if checks[name].state == "unmeasured" else "check"
            yield kind, f"{checks[name].text}."
    details = checks["steady"].details
    if card.trust != "avoid" and details:
        yield (
            "missed",
            "the interval for JSS covers other wordings like these. But a sample of "
            f"{details.get('n_families', details['n_wordings'])} may miss a kind that makes up as "
            f"much as {percent(details['missed'])} of all wordings.",
        )


def _on_gate(gate: GateOutlook) -> Texts:
    """How a gate on JSS behaves at this size."""
    text = "if it judged the same number of new items, it would pass the 'steady' check "
    text += f"with {percent(gate.passes)} probability and fail it with {percent(gate.fails)}. "
    if gate.passes_from is None:
        text += "With so few items, no judge passes it with 80% probability."
    else:
        text += "To pass it with 80% probability, a judge needs a JSS of "
        text += f"{number(gate.passes_from, 2)}."
    yield "gate", text


def _on_wordings(wordings: Sequence[WordingRow], declared: list[str]) -> Texts:
    """Wordings that stand out: mislabelled, unlike the others, or unreadable."""
    texts = []
    for flag, (one, several) in _FLAGS.items():
        names = []
        for row in wordings:
            # With gold labels, an outlier is a wording that is right less often.
            graded = row.flag == "outlier" and row.accuracy is not None
            if flag == ("less right" if graded else row.flag):
                names.append(row.template)
        if flag == "inverted" and 1 < len(names) == len(wordings):
            # Two camps, and no gold labels to tell which of them is mislabelled.
            texts.append(
                f"The wordings {join(names)} contradict each other: some of them ask the opposite, "
                "or their label maps are wrong. It is unknown which, so the checks leave all of "
                "them out. Correct the label maps, or add gold labels."
            )
        elif names and not (flag == "inverted" and set(names) <= set(declared)):
            texts.append((one if len(names) == 1 else several).format(join(names)))
    if texts:
        yield "wording", " ".join(texts)


def _on_polarity(entry: Assessment, declared: list[str], perfect: float | None) -> Texts:
    """What the declared inverted wordings do to raw JSS."""
    raw, mapped = entry.raw.jss, entry.mapped.jss
    if raw is None or mapped is None or abs(mapped - raw) <= POLARITY_GAP:
        return
    wordings = f"the inverted wording{plural_s(len(declared))} {join(declared)}"
    text = f"raw JSS is {number(raw)}, and JSS mapped through the label maps is {number(mapped)}. "
    if mapped > raw:
        text += f"The gap comes from {wordings}, not from the judge."
        if perfect is not None:
            text += f" A perfect judge has a raw JSS of {number(perfect)} here."
        yield "polarity", f"{text} Quote the mapped JSS, or drop {wordings}."
    else:
        text += f"The judge answers {wordings} like the others, although the same answer means the "
        yield "polarity", f"{text}opposite there. Drop {wordings}."


def _noise_known(entry: Assessment, runs: Sequence[Mapping[str, Any]]) -> bool:
    """Whether a judge that never flips when asked again shows something by that.

    One that takes the most probable token and was asked twice in one batch does not.
    """
    for run in runs:
        settings = (run.get("asked") or {}).get("settings") or {}
        if run.get("run_id") == entry.run_id and settings.get("repeats", 1) > 1:
            return True
    return any(row.temperature or row.n_draws > 2 for row in entry.repeated)


def _on_answers(entry: Assessment, noise_known: bool) -> Texts:
    """One label throughout, noise, forced choices, and answers that are missing."""
    checks, mapped, about = entry.card.checks, entry.mapped, entry.diagnostics
    steady = checks["steady"]
    if steady.state == "pass" and (steady.details["kappa"] or 0.0) <= LOW_KAPPA:
        kappa = steady.details["kappa"]
        text = "every verdict is the same."
        if kappa is not None:
            text = "nearly all verdicts are the same "
            text += f"(κ between two wordings: {number(kappa)})."
        yield "one_label", f"it is steady mainly because {text}"
    repeat = steady.details.get("jss_repeat")
    if repeat is not None and steady.estimate is not None:
        # How much of the flips under rewording comes back without rewording.
        noise, flips = 1 - repeat, 1 - steady.estimate
        text = f"repeating the same prompt changes {percent(noise)} of its verdicts, and rewording "
        text += f"changes {percent(flips)}. "
        blame = "Fix decoding, batching and precision before you blame the wording."
        ordered = checks["fair"].estimate
        if noise == 0 and not (flips and noise_known):
            text = ""
        elif noise == 0 and ordered is not None and 1 - ordered > flips:
            text += "The wording is the cause. Swapping the options changes "
            text += f"{percent(1 - ordered)} of its choices."
        elif noise == 0:
            text += "The wording alone is the cause."
        elif abs(flips - noise) < NO_DIFFERENCE:
            text += f"Rewording adds nothing. {blame}"
        elif noise >= flips * MOSTLY_NOISE:
            text += f"Most of these changes are noise. {blame}"
        else:
            text += "Most of these changes are not noise."
        if text:
            yield "noise", text
    mass = about.option_mass
    if entry.scoring == "options" and mass is not None and mass < LOW_OPTION_MASS:
        text = "on the median prompt, the probabilities of all options add up to only "
        text += f"{percent(mass)}. The judge would rather write something else."
        yield "mass", f"{text} Read its verdicts as forced choices."
    judged, planned = about.n_judged, about.n_planned
    if judged < planned:
        yield "undecided", f"{planned - judged} of {planned} pairs of prompts are not judged yet."
    lost = mapped.n_undecided
    if judged and lost / judged > MANY_UNDECIDED:
        text = f"{percent(lost / judged)} of its pairs of wordings lack a verdict. JSS would be "
        text += f"{number(mapped.jss_low)} if all of these disagreed, and "
        yield "undecided", f"{text}{number(mapped.jss_high)} if they all agreed."
    if about.n_prompts and about.n_cut_off / about.n_prompts >= MANY_CUT_OFF:
        text = f"{percent(about.n_cut_off / about.n_prompts)} of its answers reached the "
        text += "token cap before a verdict. Raise the cap with --set max_tokens=N. A reasoning "
        yield "cut_off", f"{text}model needs a few thousand tokens."
