"""The check on damage: does the judge mark down an output that was made wrong on purpose?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np

from judgesense.log.answers import Answers, distinct, join_rows_by_key
from judgesense.log.schema import DAMAGE, HARMLESS, REWORDING, VARIANT_CLASSES
from judgesense.measure.card import Check, Details, State
from judgesense.measure.figures import DamageFigures, MissedItem
from judgesense.measure.texts import PromptTexts
from judgesense.measure.thresholds import SIGNIFICANT, Thresholds
from judgesense.statistics.arrays import Bools, Codes
from judgesense.statistics.intervals import Interval, share_fields
from judgesense.statistics.rates import rate_ratio
from judgesense.tasks import ERROR
from judgesense.text import brackets, join, percent, plural_s

UNTRIED = "damage was not tried: judgesense check RUBRIC takes --damage 60"
FEWEST_KINDS = 3
"""The fewest kinds of damage that fit the task with which the check can pass."""
_SHOWN = 2
"""Missed items of a kind that a report shows."""
_LONGEST = 80
"""Characters of a change that a report shows."""

Facts = Mapping[str, Any]
"""What ``run.json`` knows of damage: what the ``kinds`` do, or ``why`` it was not tried."""


@dataclass(frozen=True)
class _Copies:
    """Verdicts on changed outputs, shape (n,) each: copies that can show whether it notices.

    ``row`` is the log's row of the copy, ``base`` that of the output, or the other order of a
    choice. ``lowered`` says whether the copy scores lower, fails or loses in both orders,
    ``changed`` whether the verdict is another one.
    """

    row: Codes
    base: Codes
    cluster: Codes
    kind: Codes
    is_damage: Bools
    counts: Bools
    lowered: Bools
    changed: Bools

    def noticed(self, of_damage: Bools, level: float = 0.95) -> tuple[float, Interval]:
        """The share of some damaged copies that is noticed (`noticed_share`)."""
        other = self.counts & ~self.is_damage
        return noticed_share(
            self.lowered[of_damage],
            self.cluster[of_damage],
            self.lowered[other],
            self.cluster[other],
            level,
        )


def damage(
    answers: Answers,
    facts: Facts = MappingProxyType({}),
    limits: Thresholds | None = None,
    prompts: PromptTexts | None = None,
) -> tuple[Check, tuple[DamageFigures, ...]]:
    """The check `notices`, and what the judge makes of each kind of damage and harmless edit.

    Of single outputs, those count that the judge passed, or scored above the lowest level: only
    they can be marked down. A copy is caught if it fails, scores lower, or loses in both orders.
    The share caught is corrected for what harmless edits, and noise, lower by themselves: with a
    share p of damaged and f of harmless copies lowered, (p - f) / (1 - f) are noticed (Abbott
    1925). So a judge that ignores damage has about 0, however noisy it is.

    The check passes if the interval of the share lies above the threshold and that of changed
    verdicts on harmless edits below theirs; it fails if one lies on the other side. Where two
    outputs are compared, one of two equal ones has to be chosen, so harmless edits only correct.
    Kinds have intervals at a level divided by their number (Bonferroni).
    """
    limits = limits or Thresholds()
    copies = _copies(answers)
    if copies is None or not copies.is_damage.any():
        why = facts.get("why")
        text = f"damage was not tried: {why}" if why else UNTRIED
        return Check.unmeasured(limits.notices, text), ()
    rows = _figures(answers, copies, facts, limits.notices, prompts)
    of_damage, of_harmless = copies.counts & copies.is_damage, copies.counts & ~copies.is_damage
    n = int(of_damage.sum())
    if not n or not of_harmless.any():
        lacking = "no damaged output" if not n else "no harmless edit of an output"
        text = f"{lacking} had a verdict that could be lowered: see the 'readable' check"
        if not answers.task.comparative and n == 0:
            text = "the judge passed no output that was damaged, so none could be marked down"
        return Check.unmeasured(limits.notices, text), rows
    share, ends = copies.noticed(of_damage)
    figures = share_fields("caught", copies.lowered[of_damage], copies.cluster[of_damage])
    check = Check.of(
        share,
        ends.low,
        ends.high,
        threshold=limits.notices,
        n_items=distinct(answers.log.item[copies.row[of_damage]]),
        text="",
        caught=figures["caught"],
        n_damaged=n,
        blind=[row.kind for row in rows if row.blind],
        kinds=[row.about for row in rows if row.n_counted and not row.harmless],
    )
    harmless = _harmless(answers, copies)
    state = _state(check, harmless, limits.harmless)
    check = replace(check, state=state, details={**check.details, **harmless})
    check = replace(check, text=_text(check, rows, answers.task.comparative))
    kinds = check.details["kinds"]
    if state != "fail" and len(kinds) < FEWEST_KINDS:
        text = f"only {len(kinds)} kind{plural_s(len(kinds))} of damage ({join(kinds)})"
        text += f" fit what is judged, and {FEWEST_KINDS} are needed to pass. Of these {check.text}"
        few: Check = Check.unmeasured(limits.notices, text, n_items=check.n_items)
        check = replace(few, details={"kinds": kinds})
    return check, rows


def _state(check: Check, harmless: Details, highest: float) -> State:
    low, high = harmless.get("harmless_ci_low"), harmless.get("harmless_ci_high")
    if check.state == "fail" or (low is not None and low > highest):
        return "fail"
    if check.state == "pass" and "harmless" in harmless and (high is None or high >= highest):
        return "open"
    return check.state


def _harmless(answers: Answers, copies: _Copies) -> Details:
    """How often harmless edits change the verdict; nothing where two outputs are compared."""
    if answers.task.comparative:
        return {}
    other = ~copies.is_damage
    changed = copies.changed[other]
    figures = share_fields("harmless", changed, copies.cluster[other])
    return {**figures, "n_harmless": len(changed)}  # type: ignore[typeddict-item]


def _text(check: Check, rows: Sequence[DamageFigures], comparative: bool) -> str:
    details = check.details
    kinds = [row for row in rows if not row.harmless and row.noticed is not None]
    named = ", ".join(f"{row.about} {percent(row.noticed)}" for row in reversed(kinds))
    verb, what = "catches", "outputs"
    if comparative:
        verb, what = "prefers an output in both orders to", "copies"
    text = (
        f"it {verb} {percent(check.estimate)} {brackets(check.ci_low, check.ci_high, percent)} of "
        f"{details['n_damaged']} {what} made wrong on purpose ({named})"
    )
    if (changed := details.get("harmless")) is not None:
        text += f" and changes its mind on {percent(changed)} of {details['n_harmless']} harmless"
        text += " edits"
    raw = details["caught"]
    if check.estimate is not None and raw is not None and raw - check.estimate >= 0.02:
        text += f". It marks down {percent(raw)}; the rest is what harmless edits lower, too"
    blind = [
        f"{row.about} (items {join([item.item_id for item in row.missed_items])})"
        for row in rows
        if row.blind
    ]
    if blind:
        text += f". Blind spots: {join(blind)}"
    text += ". This says nothing about kinds of error that were not tried"
    if check.state == "open" and check.ci_low is not None and check.ci_low > check.threshold:
        high = percent(details.get("harmless_ci_high"))
        return f"{text}. Harmless edits may change up to {high} of its verdicts, which is too many"
    return replace(check, text=text).with_reason().text


def _copies(answers: Answers) -> _Copies | None:
    """The verdicts on copies and their outputs; failed requests and undecided outputs are left
    out."""
    if answers.others is None:
        return None
    log = answers.log
    classes = [VARIANT_CLASSES.index(name) for name in (DAMAGE, HARMLESS)]
    rows = answers.others[np.isin(log.variant_class[answers.others], classes)]
    if not len(rows):
        return None
    error = log.labels[log.decision] == ERROR
    place = (log.item * len(log.variants) + log.variant) * len(log.bases) + log.base
    if answers.task.comparative:
        first = rows[log.order[rows] == log.order[rows[0]]]
        base, copy = join_rows_by_key(place, first, rows[log.order[rows] != log.order[rows[0]]])
        plain = ~error[base] & ~error[copy]
    else:
        plain_rows = answers.rows[
            np.array([name == REWORDING for name in log.variants])[log.variant[answers.rows]]
        ]
        cell = (log.item * len(log.orders) + log.order) * len(log.bases) + log.base
        base, copy = join_rows_by_key(cell, plain_rows, rows)
        plain = ~error[base] & ~error[copy] & ~log.undecided[log.decision[base]]
    base, copy = base[plain], copy[plain]
    counts, lowered = _lowered(answers, base, copy)
    changed = (log.decision[copy] != log.decision[base]) & ~log.undecided[log.decision[copy]]
    return _Copies(
        copy,
        base,
        log.cluster[copy],
        log.variant[copy],
        log.variant_class[copy] == classes[0],
        counts,
        lowered,
        changed,
    )


def _lowered(answers: Answers, base: Codes, copy: Codes) -> tuple[Bools, Bools]:
    """Which copies could be marked down, and which of them are."""
    log, task = answers.log, answers.task
    before, after = log.decision[base], log.decision[copy]
    if task.comparative:
        # The gold label names the output, in either order.
        kept: Bools = (before == log.gold[base]) & (after == log.gold[copy])
        return np.ones(len(copy), bool), kept
    if not task.ordinal:
        passed = log.labels[before] == task.wins
        return passed, passed & (log.labels[after] != task.wins) & ~log.undecided[after]
    sign = 1 if task.wins == max(task.labels, key=int) else -1
    level = np.array([sign * int(x) if x in task.labels else np.nan for x in log.labels])
    above = level[before] > np.nanmin(sign * np.array(task.labels, dtype=int))
    return above, above & (level[after] < level[before])


def noticed_share(
    caught: Bools, clusters: Codes, lowered: Bools, other_clusters: Codes, level: float = 0.95
) -> tuple[float, Interval]:
    """The share of damaged copies that is noticed, from those ``caught``, shape (n,), and from the
    harmless copies that were ``lowered``, shape (m,), with the cluster of each.

    With shares p and f, it is (p - f) / (1 - f) = 1 - (1 - p) / (1 - f), a ratio of two rates.

    >>> caught, lowered = np.arange(40) < 30, np.arange(20) < 2
    >>> share, ends = noticed_share(caught, np.arange(40), lowered, np.arange(20))
    >>> round(share, 2), round(ends.low, 2), round(ends.high, 2)
    (0.72, 0.51, 0.85)
    """
    if len(np.unique(clusters)) < 2 or len(np.unique(other_clusters)) < 2:
        return max(0.0, 1 - float((~caught).mean())), Interval(None, None)
    ratio = rate_ratio(~caught, clusters, ~lowered, other_clusters, level)
    if lowered.all():  # Every edit is marked down: nothing shows that damage is.
        return 0.0, Interval(0.0, 1.0)
    low = 0.0 if ratio.high is None else 1 - ratio.high
    high = 1.0 if ratio.low is None else 1 - ratio.low
    return max(0.0, 1 - ratio.ratio), Interval(low, high).within(0.0, 1.0)


def _figures(
    answers: Answers,
    copies: _Copies,
    facts: Facts,
    threshold: float,
    prompts: PromptTexts | None,
) -> tuple[DamageFigures, ...]:
    """Each kind: damage first, the least noticed first, then harmless edits."""
    log, about = answers.log, facts.get("kinds") or {}
    kinds = np.unique(copies.kind[copies.is_damage & copies.counts])
    level = 1 - SIGNIFICANT / max(1, len(kinds))
    figures = []
    for kind in dict.fromkeys(copies.kind.tolist()):
        of_kind = copies.kind == kind
        is_damage = bool(copies.is_damage[of_kind][0])
        counted = of_kind & copies.counts
        noticed, ends, changed = None, Interval(None, None), None
        if is_damage and counted.any():
            noticed, ends = copies.noticed(counted, level)
        elif not is_damage and not answers.task.comparative:
            changed = float(copies.changed[of_kind].mean())
        missed = np.flatnonzero(counted & ~copies.lowered) if is_damage else np.array([], int)
        missed = missed[np.unique(log.item[copies.row[missed]], return_index=True)[1]][:_SHOWN]
        name = log.variants[kind]
        figures.append(
            DamageFigures(
                kind=name,
                about=about.get(name) or name,
                harmless=not is_damage,
                n_copies=int(of_kind.sum()),
                n_counted=int(counted.sum()),
                n_items=distinct(log.item[copies.row[of_kind]]),
                lowered=float(copies.lowered[counted].mean()) if counted.any() else None,
                changed=changed,
                noticed=noticed,
                ci_low_corrected=ends.low,
                ci_high_corrected=ends.high,
                blind=ends.high is not None and ends.high < threshold,
                missed_items=_missed(answers, copies, missed, prompts),
            )
        )
    figures.sort(key=lambda row: (row.harmless, row.noticed is None, row.noticed or 0, row.kind))
    return tuple(figures)


def _missed(
    answers: Answers, copies: _Copies, at: Codes, prompts: PromptTexts | None
) -> tuple[MissedItem, ...]:
    log, ids = answers.log, answers.log.table["prompt_id"]
    items = []
    for n in at.tolist():
        row, base = int(copies.row[n]), int(copies.base[n])
        change = None
        if prompts is not None and not answers.task.comparative:
            before, after = prompts.of([ids[base].as_py(), ids[row].as_py()], whole=True)
            change = change_of(before, after) if before and after else None
        items.append(
            MissedItem(
                item_id=log.items[log.item[row]],
                before=str(log.labels[log.decision[base]]),
                after=str(log.labels[log.decision[row]]),
                prompt_id=ids[row].as_py(),
                change=change,
            )
        )
    return tuple(items)


def change_of(before: str, after: str) -> str:
    """What was changed in a text, in whole words.

    >>> change_of("It opened in 1912, they say.", "It opened in 1947, they say.")
    "'1912,' became '1947,'"
    >>> change_of("It is open.", "It is not open.")
    "'is open.' became 'is not open.'"
    """
    one, two = before.split(" "), after.split(" ")
    start = _shared(one, two)
    end = min(_shared(one[::-1], two[::-1]), len(one) - start, len(two) - start)
    if start + end in (len(one), len(two)):  # Words were added or left out: show those beside.
        start, end = max(0, start - 1), max(0, end - 1)

    def shown(words: list[str]) -> str:
        text = " ".join(words[start : len(words) - end])
        return repr(text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…")

    return f"{shown(one)} became {shown(two)}"


def _shared(one: Sequence[str], two: Sequence[str]) -> int:
    """How many words two texts have in common before they differ."""
    pairs = enumerate(zip(one, two, strict=False))
    return next((n for n, (a, b) in pairs if a != b), min(len(one), len(two)))
