"""A monitored task in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from judgesense.statistics.monitoring import POWER
from judgesense.systems.monitor_history import Look
from judgesense.text import brackets, percent, signed

if TYPE_CHECKING:
    from judgesense.statistics.monitoring import MonitorPlan
    from judgesense.systems.monitor import TaskMonitoring


def state_text(state: TaskMonitoring, rules: Look, one_label: bool) -> str:
    """The status of a task in one or two sentences, with its figures."""
    other = "allowed" if rules.allow is not None else "rewording"
    figures = (
        f"this look moved {percent(state.moved)} of {state.n_prompts} verdicts on "
        f"{state.n_items} items, {other} {percent(state.reworded)}; difference "
        f"{signed(state.excess)} {brackets(state.ci_low, state.ci_high, signed)}"
    )
    beyond = "is allowed" if rules.allow is not None else "rewording moves them"
    if state.status == "alarm":
        lower = ""
        if state.excess_low > 0:
            lower = f", by at least {signed(state.excess_low)}"
        return (
            f"{state.task}: alarm since look {state.alarm_look} ({state.alarm_run}): verdicts have "
            f"moved more than {beyond} from look {state.since_look} on{lower} ({figures})."
        )
    planned = "" if state.plan is None else f" {plan_text(state.plan, rules.allow is not None)}"
    if state.status == "fine":
        return f"{state.task}: fine, below {signed(state.tolerance, 2)} ({figures}).{planned}"
    text = (
        f"{state.task}: cannot tell whether verdicts have moved by {signed(state.tolerance, 2)} "
        f"({figures}); no alarm so far."
    )
    if one_label:
        return (
            f"{text} All verdicts are one label, and a judge that does not read would move as "
            "little: add items with another label."
        )
    text += " Add items to the next look."
    if rules.same_items == "once" and len(state.looks) > 1 and not state.n_new:
        text += (
            " All its items were in earlier looks: draw each look's items from a larger baseline, "
            "so that evidence adds up."
        )
    return text + planned


def plan_text(plan: MonitorPlan, allowed: bool = False) -> str:
    """How likely looks like this one find an update, and what would make it likely enough."""
    than = "is allowed" if allowed else "rewording does"
    text = (
        f"An update that moves {percent(plan.beyond)} of verdicts more than {than} would raise the "
        f"alarm within {plan.looks} such looks, each at other items, with a probability of "
        f"{percent(plan.chance)}"
    )
    needed = [] if plan.items_needed is None else [f"{plan.items_needed} items a look"]
    if plan.wordings_needed is not None:
        needed.append(f"{plan.wordings_needed} wordings in the baseline")
    return text + (f"; {' or '.join(needed)} would make it {percent(POWER)}." if needed else ".")
