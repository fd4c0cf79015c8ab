"""Checks of the judged texts: cut texts, near-duplicates, and rules that guess the gold label."""

from __future__ import annotations

import re
import zlib
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain, pairwise
from math import ceil
from typing import NamedTuple

from judgesense.text import p_value
from judgesense_dataset.audit.checks import ERROR, WARNING, Finding, count, finding, some
from judgesense_dataset.audit.rows import TaskRows
from judgesense_dataset.audit.shortcuts import (
    BAND,
    FAIL,
    OPEN,
    POSITION,
    GradedText,
    Shortcut,
    position,
    rules,
    shortcuts,
    words,
)

_ENDED = re.compile(r"[.!?…:;\"'”’)\]}`*|>]\s*\Z")
_MARKER = re.compile(r"[\[(<](?:truncated|cut|snip|continued)[\])>]\s*\Z", re.IGNORECASE)
_OPEN_END = re.compile(r"[,\-–(]\s*\Z")
_FUNCTION_WORD = re.compile(
    r"(?:the|a|an|of|and|or|to|in|on|at|for|with|by|from|as|is|are|was|were|be|been|that|which"
    r"|who|whose|this|these|those|its|his|her|their|our|your|my|but|if|than|because|while|into"
    r"|about|around|between|through|under|very|can|could|should|may|might|must|has|have|had|do"
    r"|does|did)"
)
_MIN_SHOWN = 8
"""With fewer characters in common, a prompt shows another text and not a cut one."""

_MIN_SAME_LENGTH = 3
_MIN_TEXTS = 10
_USUAL = 0.95
_SIMILAR = 0.8
"""From this Jaccard index of their three-word runs on, two texts are near-duplicates."""


def check_texts(task: TaskRows) -> tuple[list[Finding], dict[str, Shortcut]]:
    """The findings about a task's texts, and what the shallow rules achieve, by name."""
    contexts = _contexts(task)
    places = 2 if task.comparative else 1
    cases = [
        GradedText(
            row.cluster_id,
            row.gold,
            row.texts,
            contexts[row.item_id],
            row.systems if len(row.systems) == places else (),
        )
        for row in task.one_row_an_item
        if row.gold in task.labels and len(row.texts) == places
    ]
    measured = shortcuts(cases, task.labels)
    graded = [row for row in task.rows if row.gold in task.labels]
    if task.comparative and graded:
        clusters = [row.cluster_id for row in graded]
        first = position([row.gold == task.labels[0] for row in graded], clusters)
        measured = {POSITION: first, **measured}
    findings = [
        *_truncation(task),
        *_near_duplicates(task, contexts),
        *_shortcuts(task, cases, measured),
    ]
    return findings, measured


def _contexts(task: TaskRows) -> dict[str, frozenset[str]]:
    """By item, the words of its query: those in its prompt beside the judged text.

    Words that occur beside many items' texts belong to the wordings and the layout.
    """
    around: dict[str, set[str]] = {}
    for row in task.one_row_an_item:
        rest = row.a.text
        for text in row.texts:
            rest = rest.replace(text, " ")
        around[row.item_id] = set(words(rest))
    frequency = Counter(chain.from_iterable(around.values()))
    # With five wordings in turn, a wording's own words occur in a fifth of the items.
    common = {word for word, times in frequency.items() if times > max(1, len(around) // 10)}
    wordings = {prompt.wording for row in task.rows for prompt in row.prompts}
    common |= {word for text in wordings if " " in text for word in words(text)}
    return {item: frozenset(of_item - common) for item, of_item in around.items()}


def _shortcuts(
    task: TaskRows, cases: Sequence[GradedText], measured: Mapping[str, Shortcut]
) -> Iterator[Finding]:
    """Rules that guess the gold label, and those for which there are too few items."""
    flagged = set()
    if task.comparative or len({case.gold for case in cases}) > 1:
        for rule in rules(cases, task.labels):
            if rule.notable:
                flagged.add(rule.name)
                yield finding(
                    f"{rule.name}_shortcut",
                    what=_RULES[rule.name, task.comparative],
                    items=count(rule.n, "item"),
                    accuracy=rule.accuracy,
                    baseline=rule.baseline,
                    p=p_value(rule.p),
                )
    for state, code in ((FAIL, "shortcut_outside_band"), (OPEN, "shortcut_unsettled")):
        named = [
            _measured_rule(one)
            for one in measured.values()
            if one.state == state and one.name not in flagged
        ]
        if named:
            yield finding(code, rules="; ".join(named), low=BAND[0], high=BAND[1])


_BY_WORDS = (
    "single words (naive Bayes, 5-fold cross-validation over clusters) predicts the gold label"
)
_RULES = {
    ("words", True): _BY_WORDS,
    ("words", False): _BY_WORDS,
    ("length", True): "the longer option is the gold one",
    ("overlap", True): "the option that shares more words with the query is the gold one",
    ("length", False): "the length of the text predicts the gold label",
    ("overlap", False): "the share of the question's words in the text predicts the gold label",
}
"""The beginning of a sentence, by rule and whether two options are compared."""


def _measured_rule(shortcut: Shortcut) -> str:
    """A rule's name, accuracy and interval."""
    interval = ""
    if shortcut.ci_low is not None and shortcut.ci_high is not None:
        interval = f" [{shortcut.ci_low:.2f}, {shortcut.ci_high:.2f}]"
    number = count(shortcut.items, "row" if shortcut.name == POSITION else "item")
    return f"{shortcut.name} {shortcut.accuracy:.2f}{interval} of {number}"


def _near_duplicates(task: TaskRows, contexts: Mapping[str, Collection[str]]) -> Iterator[Finding]:
    texts: dict[str, str] = {}
    for row in task.one_row_an_item:
        texts.setdefault(
            " ".join((*sorted(row.texts), *sorted(contexts[row.item_id]))), row.item_id
        )
    texts.pop("", None)
    cluster = {row.item_id: row.cluster_id for row in task.rows}
    close = [
        pair
        for pair in near_duplicates({item: text for text, item in texts.items()})
        if cluster[pair[0]] != cluster[pair[1]]
    ]
    if close:
        first, second, index = max(close, key=lambda pair: pair[2])
        number = count(len(close), "pair")
        yield finding("near_duplicates", pairs=number, first=first, second=second, index=index)


def near_duplicates(texts: Mapping[str, str]) -> list[tuple[str, str, float]]:
    """Pairs of ids whose texts share most of their three-word runs, with the Jaccard index.

    Two such sets share one of their rarest runs (prefix filtering: Chaudhuri et al. 2006), so only
    texts that do are compared.
    """
    runs = {name: _runs(text) for name, text in texts.items()}
    frequency = Counter(chain.from_iterable(runs.values()))
    holders: dict[int, list[str]] = defaultdict(list)
    close = []
    for name, of_text in runs.items():
        rarest_first = sorted(of_text, key=lambda run: (frequency[run], run))
        prefix = rarest_first[: len(of_text) - ceil(_SIMILAR * len(of_text) - 1e-9) + 1]
        for other in dict.fromkeys(chain.from_iterable(holders[run] for run in prefix)):
            index = len(of_text & runs[other]) / len(of_text | runs[other])
            if index >= _SIMILAR:
                close.append((other, name, index))
        for run in prefix:
            holders[run].append(name)
    at = {name: place for place, name in enumerate(texts)}
    return sorted(close, key=lambda pair: (at[pair[0]], at[pair[1]]))


def _runs(text: str) -> frozenset[int]:
    """Hashes of all runs of three words; a shorter text is one run."""
    in_order = words(text) or [text]
    runs = (" ".join(in_order[at : at + 3]) for at in range(max(1, len(in_order) - 2)))
    return frozenset(zlib.crc32(run.encode()) for run in runs)


class Shown(NamedTuple):
    """One judged text (or option) of a row, with the prompts that should show it."""

    pair_id: str
    place: int
    text: str
    prompts: tuple[str, str]
    by_system: bool


class Cut(NamedTuple):
    """A cut text in a pair, and the evidence; ``certain`` if the evidence is proof."""

    pair_id: str
    how: str
    certain: bool


def _truncation(task: TaskRows) -> Iterator[Finding]:
    shown = [
        Shown(row.pair_id, place, text, (row.a.text, row.b.text), bool(row.systems))
        for row in task.rows
        for place, text in enumerate(row.texts)
    ]
    cut_texts, absent = cuts(shown)
    for severity, certain in ((ERROR, True), (WARNING, False)):
        if alike := [cut for cut in cut_texts if cut.certain is certain]:
            number, first = count(len(alike), "pair"), alike[0]
            yield finding(
                "truncated_text", severity, pairs=number, name=first.pair_id, how=first.how
            )
    if absent:
        yield finding("text_not_shown", pairs=count(len(absent), "pair"), names=some(absent))


def cuts(shown: Sequence[Shown]) -> tuple[list[Cut], list[str]]:
    """Find the cut texts, and the ids of pairs whose prompts do not show the judged text.

    Proof of a cut is a prompt that shows only the beginning of the judged text, a prompt that
    continues after it where others of that layout do not, or texts that end at one common length.
    A text that ends in the middle of a sentence, where nearly all others do not, is proof unless a
    system wrote it: its output may end like that, and is then what is judged.
    """
    cut_texts: dict[str, Cut] = {}
    absent: list[str] = []
    tails = _usual_tails(shown)
    for piece in shown:
        how, is_shown = "", True
        for prompt in piece.prompts:
            tail = _tail(prompt, piece.text)
            if tail:
                if tail not in tails[piece.place]:
                    how = f"the prompt continues after the judged text ({_end(piece.text)!r})"
            elif tail is None:
                length = _prefix_length(piece.text, prompt)
                if length >= max(_MIN_SHOWN, len(piece.text) // 10):
                    how = (
                        f"a prompt shows only {length} of the {len(piece.text)} characters "
                        "of the judged text"
                    )
                else:
                    is_shown = False
            if how:
                cut_texts.setdefault(piece.pair_id, Cut(piece.pair_id, how, True))
        if not is_shown:
            absent.append(piece.pair_id)
    # Where most prompts do not show the text, the column holds something else.
    if len(absent) > len(shown) / 2:
        absent = []
    for cut in _cut_ends(shown, cut_texts):
        cut_texts.setdefault(cut.pair_id, cut)
    return list(cut_texts.values()), list(dict.fromkeys(absent))


@lru_cache(maxsize=4096)
def _tail(prompt: str, text: str) -> str | None:
    """The rest of the line after the text, if it reads like running text; None without the text."""
    if (at := prompt.rfind(text)) < 0:
        return None
    rest = prompt[at + len(text) :].split("\n", 1)[0]
    return rest if re.match(r"[ ,;'’-]*\w", rest) else ""


def _usual_tails(shown: Sequence[Shown]) -> Mapping[int, Collection[str]]:
    """By place, the text that the layout itself puts after: the tails of two texts or more."""
    texts: dict[int, dict[str, set[str]]] = {piece.place: defaultdict(set) for piece in shown}
    for piece in shown:
        for prompt in piece.prompts:
            if (tail := _tail(prompt, piece.text)) is not None:
                texts[piece.place][tail].add(piece.text)
    usual: dict[int, Collection[str]] = {}
    for place, by_tail in texts.items():
        others = {tail for tail in by_tail if tail}
        shared = {tail for tail in others if len(by_tail[tail]) > 1}
        # A layout that puts other fields behind the text has a new tail for every item.
        usual[place] = others if len(by_tail.get("", ())) < len(others) else shared
    return usual


def _prefix_length(text: str, prompt: str) -> int:
    """The length of the longest beginning of the text that occurs in the prompt."""
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if text[:middle] in prompt else (low, middle - 1)
    return low


def _cut_ends(shown: Sequence[Shown], cut_pairs: Collection[str]) -> list[Cut]:
    """Texts whose end shows that they were cut; those in ``cut_pairs`` are left out."""
    first: dict[str, Shown] = {}
    for piece in shown:
        if piece.pair_id not in cut_pairs:
            first.setdefault(piece.text, piece)
    cut = [
        Cut(piece.pair_id, f"ends with a mark of truncation ({_end(text)!r})", True)
        for text, piece in first.items()
        if _MARKER.search(text)
    ]
    if len(first) < 5:
        return cut
    open_ended = {text for text in first if not _ENDED.search(text)}
    longest = max(map(len, first))
    same_length = sum(len(text) == longest for text in open_ended)
    if same_length >= _MIN_SAME_LENGTH and len(first) >= _MIN_TEXTS:
        how = f"{same_length} texts end at exactly {longest} characters"
        cut += [Cut(first[text].pair_id, how, True) for text in first if len(text) == longest]
    if 1 - len(open_ended) / len(first) >= min(_USUAL, 1 - 1 / len(first)):
        vocabulary = _vocabulary(text for text in first if text not in open_ended)
        begins_another = {text for text, after in pairwise(sorted(first)) if after.startswith(text)}
        for text, piece in first.items():
            if text in open_ended and (text in begins_another or _broken(text, vocabulary)):
                how = f"ends in the middle of a sentence ({_end(text)!r})"
                cut.append(Cut(piece.pair_id, how, not piece.by_system))
    return cut


def _broken(text: str, vocabulary: Collection[str]) -> bool:
    """Whether a text without final punctuation stops inside a phrase or a word."""
    in_order = re.findall(r"[^\W\d_]+", text.lower())
    if _OPEN_END.search(text) or not in_order:
        return bool(in_order)
    last = in_order[-1]
    fragment = last not in vocabulary and any(word.startswith(last) for word in vocabulary)
    return bool(_FUNCTION_WORD.fullmatch(last)) or fragment


def _vocabulary(texts: Iterable[str]) -> set[str]:
    return {word for text in texts for word in re.findall(r"[^\W\d_]+", text.lower())}


def _end(text: str) -> str:
    return "…" + text[-25:] if len(text) > 25 else text
