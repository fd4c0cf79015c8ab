"""Checks of the judged texts: cut texts, near-duplicates, and rules that guess the gold label."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from judgesense_dataset.audit.findings import ERROR, WARNING, Finding, count, some
from judgesense_dataset.audit.rows import AuditRow, TaskRows
from judgesense_dataset.audit.shortcuts import GradedText, Rule, near_duplicates, rules, words
from judgesense_dataset.audit.truncation import Shown, cuts


def _truncation(task: TaskRows) -> Iterator[Finding]:
    shown = [
        Shown(row.pair_id, place, text, (row.a.prompt, row.b.prompt), row.by_system)
        for row in task.rows
        for place, text in enumerate(_judged(row))
    ]
    found, absent = cuts(shown)
    certain = [cut for cut in found if cut.certain]
    if certain:
        yield Finding(
            "truncated_text",
            ERROR,
            f"the text of {count(len(certain), 'pair')} is cut ({certain[0].pair_id}: "
            f"{certain[0].how}). The gold label describes the whole text, which judges do not see: "
            "take the whole text from its source.",
        )
    if maybe := [cut for cut in found if not cut.certain]:
        yield Finding(
            "truncated_text",
            WARNING,
            f"the text of {count(len(maybe), 'pair')} seems cut ({maybe[0].pair_id}: "
            f"{maybe[0].how}). A system wrote it, so its output may end like this, and then the "
            "end is part of what is judged.",
        )
    if absent:
        yield Finding(
            "text_not_shown",
            ERROR,
            f"the prompts of {count(len(absent), 'pair')} do not show response_being_judged "
            f"({some(absent)}). Their verdicts are about something else.",
        )


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
        yield Finding(
            "near_duplicates",
            WARNING,
            f"{count(len(close), 'pair')} of items share most of their text, such as {first} and "
            f"{second} (Jaccard index {index:.2f} of three-word runs). They are hardly "
            "independent, so intervals come out too narrow: keep one of them, or give them the "
            "same cluster_id.",
        )


def _shortcuts(task: TaskRows) -> Iterator[Finding]:
    context = _contexts(task)
    cases = []
    for row in _one_row_an_item(task):
        texts = _judged(row)
        if row.gold in task.labels and len(texts) == (2 if task.comparative else 1):
            cases.append(GradedText(row.cluster_id, row.gold, texts, context[row.item_id]))
    if not task.comparative and len({case.gold for case in cases}) < 2:
        return
    for rule in rules(cases, task.labels):
        if rule.notable:
            yield Finding(f"{rule.name}_shortcut", WARNING, _shortcut(rule, task.comparative))


def _shortcut(rule: Rule, comparative: bool) -> str:
    what = {
        "length": "the longer option" if comparative else "the length of the text",
        "overlap": (
            "the option that shares more words with the query"
            if comparative
            else "the share of the question's words in the text"
        ),
        "words": "single words (naive Bayes, 5-fold cross-validation over clusters)",
    }[rule.name]
    verb = "is the gold one" if comparative and rule.name != "words" else "predicts the gold label"
    return (
        f"{what} {verb} for {rule.accuracy:.0%} of {count(rule.n, 'item')} (guessing: "
        f"{rule.baseline:.0%}, p = {rule.p:.1g}). A judge that follows this rule under every "
        "wording gets a high JSS and a good accuracy without judging."
    )


def _judged(row: AuditRow) -> tuple[str, ...]:
    """The judged texts of a row: two options, one text, or none."""
    texts = row.options or ((row.judged,) if row.judged else ())
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
    wording = {w for row in task.rows for side in row.sides for w in _wording_words(side.wording)}
    return {item: frozenset(found - common - wording) for item, found in beside.items()}


def _wording_words(wording: str) -> list[str]:
    return words(wording) if " " in wording else []


CHECKS = (_truncation, _near_duplicates, _shortcuts)
