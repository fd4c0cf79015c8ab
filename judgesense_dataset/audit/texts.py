"""Checks of the judged texts: cut texts, near-duplicates, and rules that guess the gold label."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from functools import lru_cache

from judgesense.text import p_value
from judgesense_dataset.audit.chance import (
    BAND,
    FAIL,
    OPEN,
    POSITION,
    Shortcut,
    position,
    shortcuts,
)
from judgesense_dataset.audit.findings import ERROR, WARNING, Finding, count, finding, some
from judgesense_dataset.audit.rows import AuditRow, TaskRows
from judgesense_dataset.audit.shortcuts import GradedText, near_duplicates, rules, words
from judgesense_dataset.audit.truncation import Shown, cuts


def _truncation(task: TaskRows) -> Iterator[Finding]:
    shown = [
        Shown(row.pair_id, place, text, (row.a.prompt, row.b.prompt), row.by_system)
        for row in task.rows
        for place, text in enumerate(_judged(row))
    ]
    found, absent = cuts(shown)
    for severity, certain in ((ERROR, True), (WARNING, False)):
        if some_cut := [cut for cut in found if cut.certain is certain]:
            number, first = count(len(some_cut), "pair"), some_cut[0]
            yield finding(
                "truncated_text", severity, pairs=number, name=first.pair_id, how=first.how
            )
    if absent:
        yield finding("text_not_shown", pairs=count(len(absent), "pair"), names=some(absent))


def _near_duplicates(task: TaskRows) -> Iterator[Finding]:
    context = _contexts(task)
    texts: dict[str, str] = {}
    seen: set[str] = set()
    for row in _one_row_an_item(task):
        text = " ".join((*sorted(_judged(row)), *sorted(context[row.item_id])))
        if text and text not in seen:
            texts[row.item_id] = text
            seen.add(text)
    cluster = {row.item_id: row.cluster_id for row in task.rows}
    close = [pair for pair in near_duplicates(texts) if cluster[pair[0]] != cluster[pair[1]]]
    if close:
        first, second, index = max(close, key=lambda pair: pair[2])
        number = count(len(close), "pair")
        yield finding("near_duplicates", pairs=number, first=first, second=second, index=index)


def graded_texts(task: TaskRows) -> list[GradedText]:
    """One case an item: its judged texts and gold label as its first row shows them."""
    context = _contexts(task)
    places = 2 if task.comparative else 1
    return [
        GradedText(
            row.cluster_id, row.gold, texts, context[row.item_id],
            row.systems if len(row.systems) == places else (),
        )
        for row in _one_row_an_item(task)
        if row.gold in task.labels and len(texts := _judged(row)) == places
    ]  # fmt: skip


def measure_shortcuts(task: TaskRows) -> dict[str, Shortcut]:
    """The rules of :mod:`~judgesense_dataset.audit.chance`, and the position of the gold option."""
    found = shortcuts(graded_texts(task), task.labels)
    graded = [row for row in task.rows if row.gold in task.labels]
    if task.comparative and graded:
        clusters = [row.cluster_id for row in graded]
        first = position([row.gold == task.labels[0] for row in graded], clusters)
        found = {POSITION: first, **found}
    return found


def shortcut_findings(task: TaskRows, measured: Mapping[str, Shortcut]) -> Iterator[Finding]:
    """Rules that guess the gold label, and those whose band the items cannot settle."""
    flagged = set()
    cases = graded_texts(task)
    if task.comparative or len({case.gold for case in cases}) > 1:
        for rule in rules(cases, task.labels):
            if rule.notable:
                flagged.add(rule.name)
                yield finding(
                    f"{rule.name}_shortcut",
                    what=_rule(rule.name, task.comparative), items=count(rule.n, "item"),
                    accuracy=rule.accuracy, baseline=rule.baseline, p=p_value(rule.p),
                )  # fmt: skip
    for state, code in ((FAIL, "shortcut_outside_band"), (OPEN, "shortcut_unsettled")):
        found = [m for m in measured.values() if m.state == state and m.name not in flagged]
        if found:
            low, high = BAND
            yield finding(code, rules="; ".join(map(_said, found)), low=low, high=high)


def _said(shortcut: Shortcut) -> str:
    """A rule's name, accuracy and interval."""
    interval = ""
    if shortcut.ci_low is not None and shortcut.ci_high is not None:
        interval = f" [{shortcut.ci_low:.2f}, {shortcut.ci_high:.2f}]"
    number = count(shortcut.items, "row" if shortcut.name == POSITION else "item")
    return f"{shortcut.name} {shortcut.accuracy:.2f}{interval} of {number}"


def _rule(name: str, comparative: bool) -> str:
    """The beginning of a sentence: the rule and its effect."""
    if name == "words":
        rule = "single words (naive Bayes, 5-fold cross-validation over clusters)"
    elif comparative:
        more = (
            "longer option" if name == "length" else "option that shares more words with the query"
        )
        return f"the {more} is the gold one"
    else:
        share = "the share of the question's words in the text"
        rule = "the length of the text" if name == "length" else share
    return f"{rule} predicts the gold label"


def _judged(row: AuditRow) -> tuple[str, ...]:
    """The judged texts of a row: two options, one text, or none."""
    return _stripped(row.options or ((row.judged,) if row.judged else ()))


@lru_cache(maxsize=4096)
def _stripped(texts: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(text.strip() for text in texts if text.strip())


def _one_row_an_item(task: TaskRows) -> list[AuditRow]:
    first: dict[str, AuditRow] = {}
    for row in task.rows:
        first.setdefault(row.item_id, row)
    return list(first.values())


def _contexts(task: TaskRows) -> dict[str, frozenset[str]]:
    """By item, the words of its query: those in its prompt beside the judged text.

    Words that occur beside many items' texts belong to the wordings and the layout.
    """
    beside: dict[str, set[str]] = {}
    for row in _one_row_an_item(task):
        rest = row.a.prompt
        for text in _judged(row):
            rest = rest.replace(text, " ")
        beside[row.item_id] = set(words(rest))
    frequency = Counter(word for found in beside.values() for word in found)
    # With five wordings in turn, a wording's own words occur in a fifth of the items.
    common = {word for word, times in frequency.items() if times > max(1, len(beside) // 10)}
    wording = {word for text in task.wordings for word in _wording_words(text)}
    return {item: frozenset(found - common - wording) for item, found in beside.items()}


def _wording_words(wording: str) -> list[str]:
    return words(wording) if " " in wording else []


CHECKS = (_truncation, _near_duplicates)
