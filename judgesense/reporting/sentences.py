"""Sentences about people, disagreements and policies, for the terminal and the page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from judgesense.measure.assessment import Assessment
from judgesense.measure.disputes import LESS, MORE, POLICY, WORD
from judgesense.measure.figures import (
    AltTest,
    BetweenPeople,
    HumanAgreement,
    Shared,
    VariantFigures,
    WhereWrong,
)
from judgesense.text import (
    brackets,
    join,
    number,
    percent,
    plural_s,
    signed,
    span,
)

UNSEEN = "if people labelled without seeing its verdicts"
"""The condition of what people's agreement with a judge shows; no file shows whether it holds."""


def among_people(judge: str, people: Sequence[HumanAgreement]) -> list[str]:
    """How several people agree, and whether the judge could replace one, in sentences.

    ``people`` has the majority first, then the judge beside each person.
    """
    between, test = people[0].between_people, people[0].alt_test
    if between is None:
        return []
    kappas = [pair.kappa for pair in between.pairs if pair.kappa is not None]
    spread = span(kappas, lambda value: number(value, 2)) if kappas else number(None)
    texts = [
        f"{between.people} people agree with each other at κ {spread} (Krippendorff's α "
        f"{number(between.alpha, 2)})."
        if kappas or between.alpha is not None
        else f"{between.people} people labelled, and too few items got labels from two of them "
        "to say how well people agree."
    ]
    if ties := between.ties:
        texts[0] += f" On {ties} item{plural_s(ties)}, no label has a majority."
    if (whole := people[0].accuracy_with_ties) is not None:
        ends = brackets(people[0].with_ties_ci_low, people[0].with_ties_ci_high, percent)
        texts[0] += f" With these, each label in part, {judge} is right on {percent(whole)} {ends}."
    names = {name for pair in between.pairs for name in (pair.a, pair.b)}
    if alone := [row.kappa for row in people if row.human in names and row.kappa]:
        texts[0] += f" {judge} agrees with each person at κ "
        texts[0] += f"{span(alone, lambda value: number(value, 2))}."
    if between.people < 3:
        texts.append("The alternative annotator test needs at least three people.")
    if test is not None:
        n_people = len(test.p_values)
        won = round(test.winning_rate * sum(p is not None for p in test.p_values.values()))
        reason = _not_shown(between, test)
        may = "is not shown to be able to replace a person"
        if test.winning_rate >= 0.5 and not reason:
            # People who accept what a tool proposes agree with it as with a common truth: no
            # figure of their agreement tells the two apart.
            may = f"may replace a person, {UNSEEN}"
            if (between.gap_ci_low or 0) > 0:
                reason = " People agree with it more than with each other."
        texts.append(
            f"By the alternative annotator test, {judge} {may}. It matches the "
            f"other people at least as well as a person does on "
            f"{percent(test.advantage_probability)} of items, and wins against {won} of "
            f"{n_people} people at ε {test.epsilon:g}.{reason}"
        )
    return texts


def _not_shown(between: BetweenPeople, test: AltTest) -> str:
    """What takes the yes of the alternative annotator test away, in a sentence; "" if nothing."""
    if names := between.like_judge:
        verb = "agrees" if len(names) == 1 else "agree"
        return (
            f" {join(names)} {verb} with it far more than with other people, and may have seen its "
            "verdicts: name only the others with --human."
        )
    if test.winning_rate >= 0.5 and test.constant is not None:
        return (
            f" A constant answer would pass this test, too: {test.constant!r} always is as close "
            "to people."
        )
    return ""


def distance(between: BetweenPeople | None) -> str | None:
    """How far a judge is from a person, in a sentence; None without two people."""
    if between is None or between.gap is None:
        return None
    two, judge, gap = (number(x, 2) for x in (between.kappa, between.kappa_with_judge, between.gap))
    ends = brackets(between.gap_ci_low, between.gap_ci_high, lambda x: number(x, 2))
    return f"Its κ is {judge} with a person, and {two} between two people: {gap} {ends} apart"


def whose(wrong: WhereWrong | None) -> Iterator[str]:
    """Where a judge is reliably worst, and whether it is the judge, the labels or the policy."""
    if wrong is None:
        return
    if wrong.policies:
        yield f"{policy_text(wrong.policies[0])} {POLICY}."
    if wrong.groups:
        yield _worst_group(wrong)
    if wrong.shared and not wrong.policies:
        first, n = wrong.shared[0], wrong.n_traits
        yield f"Exploratory, of {n} traits compared: {shared_text(first)}"


def _of_trait(row: Shared) -> str:
    trait = f"the word {row.name!r}" if row.by == WORD else f"{row.by} {row.name!r}"
    return f"the {row.n} items with {trait}" + (
        "" if row.label is None else f" that {row.one} labels {row.label}"
    )


def shared_text(row: Shared) -> str:
    """What disagreements of a judge and people share, in a sentence."""
    verdict = f"{row.other} than people do" if row.other in (MORE, LESS) else row.other
    return (
        f"of {_of_trait(row).replace('people labels', 'people label')}, {row.two} gives "
        f"{percent(row.share)} {verdict}, and {percent(row.rest)} elsewhere."
    )


def policy_text(row: Shared) -> str:
    """Which items two people, or two rounds of labels, treat by different policies."""
    other = f"{row.other} than {row.one} does" if row.other in (MORE, LESS) else row.other
    if row.source is None:
        who, rest = f"{row.two} gives", "elsewhere"
    else:
        who, rest = f"people give in {row.source} {row.two!r}", f"in any other {row.source}"
    return (
        f"Different policies: of {_of_trait(row)}, {who} {other} to {percent(row.share)}, and "
        f"{percent(row.rest)} {rest} (such as {join(row.examples)})."
    )


def _worst_group(wrong: WhereWrong) -> str:
    worst = min(wrong.groups, key=lambda group: group.difference)
    points = brackets(100 * worst.ci_low, 100 * worst.ci_high, lambda x: number(x, 0))
    return (
        f"Worst group: {worst.by} {worst.name!r}, {percent(worst.estimate)} of {worst.n} items "
        f"{wrong.measure}, {percent(worst.rest)} elsewhere ({number(100 * worst.difference, 0)} "
        f"points {points}; {wrong.n_groups} group{plural_s(wrong.n_groups)} compared)."
    )


def points(row: VariantFigures) -> str:
    """How far a variant moves verdicts towards people's labels, in points with an interval."""
    if row.gain is None:
        return "-"
    low, high = (None if end is None else 100 * end for end in (row.gain_ci_low, row.gain_ci_high))
    return f"{signed(100 * row.gain, 0)} {brackets(low, high, lambda x: signed(x, 0))}"


def sentence_effects(entry: Assessment) -> str | None:
    """Which sentence of the rubric moves verdicts, and whether towards people's labels; None where
    none was left out."""
    rows = [row for row in entry.variants if row.left_out and row.shift_rate is not None]
    if not rows:
        return None
    first = max(rows, key=lambda row: row.shift_rate or 0.0)
    sure = [r for r in rows if (r.gain_ci_low or 0.0) > 0 or (r.gain_ci_high or 0.0) < 0]
    if sure:
        first = max(sure, key=lambda row: abs(row.gain or 0.0))
    ends = brackets(first.shift_ci_low, first.shift_ci_high, percent)
    text = f"Without the sentence {first.left_out!r}, {percent(first.shift_rate)} {ends} of "
    text += "verdicts change"
    if first.gain is not None:
        text += f", and agreement with people's labels by {points(first)} points"
        text += "" if sure else " (no sentence moves it reliably)"
    text += f". {len(rows)} sentence{plural_s(len(rows))} left out in turn, corrected for their "
    text += "number"
    again = entry.mapped.jss_repeat
    if again is not None and again < 1:
        text += f"; asking the same prompt again changes {percent(1 - again)}"
    return f"{text}."
