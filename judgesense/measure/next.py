"""The next step: the one thing to do about a judge on a task, with a command that runs as printed.

`RULES` decides it for the report, its pages, the terminal, ``check``, GitHub and Python.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from judgesense.measure.assessment import Assessment, NextStep, RemedyFigures
from judgesense.measure.disputes import POLICY
from judgesense.measure.planning import chances_text
from judgesense.measure.situation import Commands, Situation
from judgesense.measure.thresholds import MANY_CUT_OFF
from judgesense.recipes.recipe import AS_ASKED
from judgesense.text import join, number, percent, plural_s, quoted

KINDS = (
    "use",
    "use_changed",
    "finish_run",
    "raise_cap",
    "read_options",
    "correct_wording",
    "decide_policy",
    "add_wordings",
    "add_orders",
    "add_contrast",
    "add_defences",
    "read_disagreements",
    "label_more",
    "add_items",
    "improve",
    "another_judge",
    "nothing_settles",
)
"""Every kind of a next step."""

MORE_TOKENS = 2048
"""Enough for the reasons that a judge writes before its verdict."""

_ONCE = "Measure again only with all of them: each look adds to the chance of a wrong conclusion."
"""Who follows a plan until every check is decided passes or fails a judge at the threshold two to
four times as often as in one look (`benchmarks/conclusions`)."""

MANY_TIMES = 5
"""So many times the present items are likely to be more than anybody has."""

_LABELS = 20
"""The fewest labelled items with which a search for another way of asking makes sense."""


def next_step(
    assessment: Assessment, record: Mapping[str, Any], folder: str | Path | None = None
) -> NextStep:
    """What to do next about a judge on a task: the advice of the first rule that applies.

    Args:
        assessment: everything but its next step.
        record: the run's ``run.json``, whose ``invocation`` the command repeats.
        folder: the run's folder, for commands that read it.
    """
    case = Situation(assessment, record, Commands(record, folder, assessment.subject))
    return next(advice(case) for applies, advice in RULES if applies(case))


def _finish_run(case: Situation) -> NextStep:
    what = "Some prompts are not judged yet"
    if case.unanswered:
        what = f"{case.unanswered} prompts have no answer"
    text = f"{what}. Rerun the command to finish the run."
    return NextStep("finish_run", text, case.commands.again())


def _use_changed(case: Situation) -> NextStep:
    row = case.better_remedy
    assert row is not None
    lead = "Use the judge" if row.trust == "use" else "Use the judge with care, and"
    text = f"{lead} only with the remedy {row.remedy!r}. {_gain(row, case)}"
    return NextStep("use_changed", text, case.commands.write(None))


_FAULTS = {
    "inverted": "asks the opposite or has a wrong label map",
    "unreadable": "gets answers that cannot be read",
    "outlier": "gets other verdicts than the other wordings",
}


def _correct_wording(case: Situation) -> NextStep:
    wrong = case.wrong_wordings
    names = join([row.template for row in wrong])
    fault = join(sorted({_FAULTS[row.flag] for row in wrong}), "or")
    they = "It" if len(wrong) == 1 else "Each"
    text = f"Correct {names}{_where('in', case.commands.wordings)}. {they} {fault}. Then measure "
    return NextStep("correct_wording", f"{text}again.", case.commands.with_wordings())


def _another_judge(case: Situation) -> NextStep:
    text = f"Try another judge. This one fails {quoted(case.card.because)}"
    if any(row.n_items and row.remedy != AS_ASKED for row in case.assessment.remedies):
        text += ", and no measured remedy helps"
    installed = case.commands.started and case.commands.format is None
    command = "judgesense judges list" if installed else None
    return NextStep("another_judge", f"{text}.", command)


def _read(case: Situation) -> NextStep:
    about = case.assessment.diagnostics
    noun = "items" if about.n_prompts <= about.n_items else "verdicts"
    text = f"First read what the judge gets wrong: {case.often_wrong} {noun}."
    wrong = case.assessment.where_wrong
    if wrong is not None and wrong.measure == "right" and wrong.groups:
        worst = min(wrong.groups, key=lambda group: group.difference)
        text += f" It is right on only {percent(worst.estimate)} of the {worst.n} items with "
        text += f"{worst.by} {worst.name!r}."
    return NextStep("read_disagreements", text, case.commands.read())


def _add_wording(case: Situation) -> NextStep:
    text = f"Add another wording of the question{_where('to', case.commands.wordings)} "
    text += "to see whether the judge is steady."
    if case.commands.format:
        text = "See whether rewording changes the judge's verdicts: save the judge's prompt to a "
        text += (
            f"text file, and check it on the rows{_where('of', case.commands.data)} with --data "
        )
        text += "and --judge."
    return NextStep("add_wordings", text, case.commands.with_wordings())


def _add_items(case: Situation) -> NextStep:
    n, commands = case.n_items, case.commands
    few_text = f"{n} are too few for a conclusion."
    if case.limited:
        n += case.more_items
        return NextStep(
            "add_items", f"Judge {n} items. {few_text}", commands.changed(limit=[str(n)])
        )
    text = f"Add {case.more_items} items{_where('to', commands.data)}. {few_text}"
    return NextStep("add_items", text, commands.with_data())


def _settle(case: Situation) -> NextStep:
    """More labels, items or wordings, as many as the plan says; or that nothing settles it."""
    planned, commands, lead = case.plan, case.commands, ""
    assert planned is not None
    if case.avoid and case.promising:
        row, _ = case.promising
        lead = f"The most promising remedy is {row.remedy!r}. {_gain(row, case)} "
    what, n, labels = quoted(planned.open), planned.n_items, planned.labels_needed
    where = _where("in", commands.data)
    if labels is not None:
        text = (
            f"{lead}Label {max(1, labels - planned.n_labels)} more items{where}. {labels} labels "
            f"in all would decide {what} with 80% probability. {_ONCE}"
        )
        return NextStep("label_more", text, commands.with_data())
    if (items := planned.items_needed) is not None:
        likely = f"would decide {what} with 80% probability. {chances_text(planned)} {_ONCE}"
        if case.limited:
            text = f"{lead}Judge {items} items, which {likely}"
            return NextStep("add_items", text, commands.changed(limit=[str(items)]))
        if items > MANY_TIMES * n:
            checks = "checks are" if len(planned.open) > 1 else "check is"
            lead += f"With {n} items, the {checks} undecided: treat that as not passed. "
        if planned.open == ("right",) and planned.n_labels < n:
            labels = math.ceil(items * planned.n_labels / n)
            text = (
                f"{lead}Get a label, or a majority, for the other {n - planned.n_labels} items"
                f"{where} and add {labels - n} labelled ones. {labels} labels would decide {what} "
                f"with 80% probability. {_ONCE}"
            )
            return NextStep("label_more", text, commands.with_data())
        text = f"{lead}Add {items - n} item{plural_s(items - n)}{_where('to', commands.data)}. "
        return NextStep("add_items", f"{text}{items} items in all {likely}", commands.with_data())
    if (wordings := planned.wordings_needed) is not None:
        text = f"Add wordings{_where('to', commands.wordings)} until there are {wordings}. "
        text += "The present ones differ too much for more items to show whether the judge is "
        return NextStep("add_wordings", f"{text}steady.", commands.with_wordings())
    text = (
        f"{lead}Even {planned.chances[-1].items} items are unlikely to decide {what}, because the "
        "estimates are too close to the thresholds. Treat an undecided check as not passed."
    )
    return NextStep("nothing_settles", text, None)


def _gain(row: RemedyFigures, case: Situation) -> str:
    """What a remedy brings: ``With it, the judge is right on 75% of items instead of 65%, ...``."""
    parts = []
    if row.accuracy is not None:
        instead = "" if row.gain is None else f" instead of {percent(row.accuracy_before)}"
        parts.append(f"is right on {percent(row.accuracy)} of items{instead}")
    if row.same_choice is not None and "fair" in case.card.because:
        parts.append(f"makes the same choice in both orders on {percent(row.same_choice)}")
    lead = f"{join(parts)}. It " if parts else ""
    n = row.prompts_per_item or 0
    cost = f"needs {n} prompt{plural_s(n)} per item"
    if row.jss is not None:
        cost = f"has a JSS of {number(row.jss, 2)} and {cost}"
    return f"With it, the judge {lead}{cost}."


def _where(word: str, file: str | None) -> str:
    return f" {word} {file}" if file else ""


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


RULES: tuple[tuple[Callable[[Situation], object], Callable[[Situation], NextStep]], ...] = (
    (lambda case: case.unfinished, _finish_run),
    (
        lambda case: case.card.trust == "use",
        lambda case: NextStep("use", "Use the judge as it is.", case.commands.write(AS_ASKED)),
    ),
    (lambda case: case.better_remedy, _use_changed),
    (lambda case: case.wrong_wordings, _correct_wording),
    (
        lambda case: case.assessment.where_wrong and case.assessment.where_wrong.policies,
        lambda case: NextStep(
            "decide_policy",
            f"{POLICY}. Read the items that people label by different policies, and label them "
            "again by one.",
            case.commands.read(),
        ),
    ),
    # A judge that fails: a way of asking that may pass yet, or another judge.
    (lambda case: case.avoid and case.promising, _settle),
    (
        lambda case: case.unreadable and case.cut_off >= MANY_CUT_OFF,
        lambda case: NextStep(
            "raise_cap",
            f"Raise the token cap, because {percent(case.cut_off)} of the answers reached it.",
            case.commands.changed(set=[f"max_tokens={MORE_TOKENS}"]),
        ),
    ),
    (
        lambda case: case.avoid and case.n_labels >= _LABELS and case.commands.improve(),
        lambda case: NextStep(
            "improve",
            f"Look for a better way to ask this judge. It fails {quoted(case.card.because)}.",
            case.commands.improve(),
        ),
    ),
    (
        lambda case: case.unreadable and case.commands.writable and case.reads_text,
        lambda case: NextStep(
            "read_options",
            "Score option probabilities instead of text. Then every answer has a verdict.",
            case.commands.changed(scoring=["options"]),
        ),
    ),
    (lambda case: case.avoid and "right" in case.card.because and case.often_wrong, _read),
    (lambda case: case.avoid, _another_judge),
    # A judge that is not known well enough: what is missing, the check that decides first.
    (
        lambda case: (
            case.states["steady"] == "pass"
            and case.states.get("resistant") == "fail"
            and not case.defended
        ),
        lambda case: NextStep(
            "add_defences",
            "The judged text can manipulate the judge. Measure which defence prevents this.",
            case.commands.changed(variants=["defence"]),
        ),
    ),
    (
        lambda case: "kappa_between_people" in case.checks["right"].details,
        lambda case: NextStep(
            "label_more",
            "Agree with the people on what the labels mean, then label again"
            f"{_where('in', case.commands.data)}. They agree too little with each other to show "
            "whether the judge is right.",
            case.commands.with_data(),
        ),
    ),
    # What is right is known from a few labels; other wordings have to be judged elsewhere.
    (
        lambda case: case.own_file and case.states["right"] == "unmeasured" and not case.n_labels,
        lambda case: NextStep(
            "label_more",
            f"Label {case.first_labels} items in {case.commands.data} to see whether the judge is "
            "right. If the file has people's labels already, name their columns with --human.",
            case.commands.label(),
        ),
    ),
    # Nothing has to be bought to read what is wrong.
    (
        lambda case: (
            case.commands.format
            and case.often_wrong
            and (case.states["right"] != "open" or case.undecidable)
        ),
        _read,
    ),
    # Verdicts under one wording: what can be settled is whether they are right.
    (
        lambda case: case.one_wording and case.plan and not case.commands.sends,
        _settle,
    ),
    (
        lambda case: case.one_wording and case.commands.sends and case.commands.wordings is None,
        lambda case: NextStep(
            "add_wordings",
            "Judge the items under other formats, too.",
            case.commands.changed(variants=["format"]),
        ),
    ),
    (lambda case: case.one_wording, _add_wording),
    (lambda case: case.states["steady"] == "open" and case.plan and not case.few, _settle),
    # There are labels, but of another vocabulary, or one label alone.
    (
        lambda case: case.states["right"] == "unmeasured" and case.n_labels,
        lambda case: NextStep(
            "label_more",
            f"{_capital(case.checks['right'].text)}{_where('in', case.commands.data)}.",
            case.commands.with_data(),
        ),
    ),
    (
        lambda case: case.states.get("fair") == "unmeasured",
        lambda case: NextStep(
            "add_orders",
            "Judge the items in both orders of the options.",
            case.commands.changed(orders=["AB,BA"]) if case.by_run else None,
        ),
    ),
    (lambda case: case.too_few, _add_items),
    (lambda case: case.plan, _settle),
    (
        lambda case: case.states["right"] == "unmeasured",
        lambda case: NextStep(
            "label_more",
            f"Label {case.first_labels} items{_where('in', case.commands.data)} to see whether "
            "the judge is right.",
            case.commands.with_data(),
        ),
    ),
    (
        lambda case: case.states["responsive"] == "unmeasured",
        lambda case: NextStep(
            "add_contrast",
            "Also ask the opposite question to see whether the judge follows it.",
            case.commands.changed(variants=["contrast"]) if case.by_run else None,
        ),
    ),
    (
        lambda _: True,
        lambda _: NextStep(
            "nothing_settles", "Use the judge with care. Nothing more can be measured here.", None
        ),
    ),
)
"""Conditions and their advice, in order: the first condition that holds decides."""
