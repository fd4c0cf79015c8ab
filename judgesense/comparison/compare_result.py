"""The result of ``judgesense compare``, and how it reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NotRequired, TypedDict

from judgesense.comparison.score_change_result import ScoreChange, Split
from judgesense.measure.card import USABLE, TrustCard
from judgesense.measure.thresholds import SIGNIFICANT
from judgesense.statistics.result import TextResult, data_frame
from judgesense.text import brackets, join, p_value, percent, quoted, signed

WORDS = {
    "jss": ("pairs", "gives the same verdict on", "is steadier under rewording"),
    "accuracy": ("prompts", "matches the gold label on", "is right more often"),
}
"""Unit, figure and advantage of each measure."""


Side = Literal["a", "b"]


class JudgeComparison(TypedDict):
    """Two judges on what both decided: ``difference`` is B minus A.

    ``measure`` is ``jss`` or ``accuracy``. The interval (95%) and ``p_value`` are not corrected,
    ``p_holm`` is, by Holm's method over all comparisons. ``smallest_difference`` is what the sample
    shows with 80% probability. ``n_clusters`` counts what is independent: items, or what they
    share. ``n_undecided`` are left out because one of the judges gave no decision. ``trust_a`` and
    ``trust_b`` are from the trust cards.
    """

    task: str
    judge_a: str
    judge_b: str
    scoring_a: str
    scoring_b: str
    measure: Literal["jss", "accuracy"]
    a: float | None
    b: float | None
    difference: float | None
    ci_low: float | None
    ci_high: float | None
    p_value: float | None
    smallest_difference: float | None
    n: int
    n_items: int
    n_clusters: int
    n_undecided: int
    p_holm: NotRequired[float | None]
    trust_a: NotRequired[str]
    trust_b: NotRequired[str]
    text: NotRequired[str]


class BestJudge(TypedDict):
    """The judge of the highest kappa with gold, as measured and ``corrected`` for being the highest
    of several (`judgesense.statistics.selection.largest`)."""

    judge: str
    n_judges: int
    n_items: int
    kappa: float
    corrected: float
    ci_low: float | None
    ci_high: float | None
    task: str
    scoring: str
    text: str


@dataclass(frozen=True, eq=False)
class Comparison(TextResult):
    """Two runs' judges on the pairs that both judged.

    ``advice`` says which judge to prefer on each task; a judge whose trust card says ``avoid`` is
    never preferred. ``comparisons`` has a `JudgeComparison` for each pair of judges, task, scoring
    and measure; they are one family of ``n_tests`` tests, corrected by the method ``correction``.
    ``best`` has a `BestJudge` for each task and scoring. ``runs`` are the two folders.

    ``changes`` has a `ScoreChange` for each task: its mean before and after, whose change it is,
    and the verdicts that changed. ``judge_changes`` says what the results show to have changed
    about the judge. ``split`` is that of the only task, or None with the ``split_reason``.
    """

    advice: list[str]
    comparisons: list[JudgeComparison]
    best: list[BestJudge]
    n_tests: int
    runs: list[str]
    correction: str = "holm"
    judge_changes: tuple[str, ...] = ()
    changes: tuple[ScoreChange, ...] = ()
    split: Split | None = None
    split_reason: str | None = None
    page: str | None = None
    """The file of the page with every changed verdict, if it was written."""

    @property
    def sentences(self) -> list[str]:
        """What changed from the first result to the second, and whose change it was."""
        first = [f"The judge changed: {join(self.judge_changes)}."] if self.judge_changes else []
        return first + [line for change in self.changes for line in change.sentences]

    def to_pandas(self) -> Any:
        """The comparisons as a `pandas.DataFrame`, one row each; without any, what changed."""
        flips = [dict(row) for change in self.changes for row in change.flips]
        return data_frame(self.comparisons or flips)

    def __str__(self) -> str:
        """The comparison as plain text: one line each, neither wrapped nor cut."""
        if not self.comparisons:
            return "\n".join(self.sentences)
        # Two judges of the same outputs are compared; otherwise the question is whose change it is.
        is_same = all(change.n_same == change.n_items for change in self.changes)
        after = ["", *self.sentences] if is_same and self.changes else []
        lines = [] if is_same or not self.changes else [*self.sentences, ""]
        lines += ["What to do", *(f"  - {text}" for text in self.advice), "", "Figures"]
        lines += [f"  - {entry['text']}" for entry in [*self.comparisons, *self.best]]
        lines += [
            "",
            "Differences are B minus A on what both judged. Their 95% intervals are not corrected. "
            "The sample is the items, or the clusters that items share. p-values come from "
            "permutation tests with a cluster-robust t. They are corrected for "
            f"{self.n_tests} comparison{'s' * (self.n_tests != 1)} (Holm).",
        ]
        if lost := sum(entry["n_undecided"] for entry in self.comparisons):
            lines.append(
                f"{lost} pairs and prompts are left out, because a judge gave no verdict on them."
            )
        return "\n".join([*lines, *after])


def winner(entry: JudgeComparison) -> Side | None:
    """The side that is clearly ahead; None if neither is.

    Interval and test are different methods: a difference is clear only if both say so.
    """
    p, low, high = entry["p_holm"], entry["ci_low"], entry["ci_high"]
    if p is None or p >= SIGNIFICANT or low is None or high is None or low <= 0 <= high:
        return None
    return "b" if (entry["difference"] or 0.0) > 0 else "a"


def comparison_text(entry: JudgeComparison, names: Mapping[str, str]) -> str:
    """One comparison in words, with its figures."""
    one, two = _name(entry, "a", names), _name(entry, "b", names)
    unit, what, ahead = WORDS[entry["measure"]]
    if entry["difference"] is None:
        return f"{entry['task']}: {one} and {two} have no {unit[:-1]} on which both gave a verdict."
    side = winner(entry)
    conclusion = (
        "there is no clear difference" if side is None else f"{_name(entry, side, names)} {ahead}"
    )
    return (
        f"{entry['task']}: {conclusion}. {one} {what} {percent(entry['a'])} of {entry['n']} {unit},"
        f" and {two} on {percent(entry['b'])}. The difference is {signed(entry['difference'])} "
        f"{brackets(entry['ci_low'], entry['ci_high'], signed)} "
        f"({p_value(entry['p_holm'], 'corrected p')}, {entry['n_items']} items)."
    )


def recommendation(
    entries: Sequence[JudgeComparison], names: Mapping[str, str], cards: Mapping[Side, TrustCard]
) -> str:
    """Which of two judges to prefer on a task; never one whose card says ``avoid``."""
    name = {side: _name(entries[0], side, names) for side in cards}
    winners = {entry["measure"]: winner(entry) for entry in entries}
    steady, right = winners.get("jss"), winners.get("accuracy")
    ahead = [f"{name[right]} {WORDS['accuracy'][2]}"] if right else []
    ahead += [f"{name[steady]} {WORDS['jss'][2]}"] if steady else []
    best, candidates = right or steady, [s for s, card in cards.items() if card.trust != "avoid"]
    if not candidates:
        choice = "avoid both"
    elif best is None and len(candidates) == 2:
        usable = all(card.trust in USABLE for card in cards.values())
        choice = f"add items{' or take either judge' if usable else ''}"
    elif best in candidates:
        choice = f"prefer {name[best]}"
    elif cards[candidates[0]].trust == "unknown":
        other = name["b" if candidates[0] == "a" else "a"]
        choice = f"avoid {other}, and do not rely on {name[candidates[0]]} yet"
    else:
        choice = f"prefer {name[candidates[0]]}"
    trust = [
        f"{card.trust!r} for {name[side]}"
        + (f" (because of {quoted(card.because)})" if card.because else "")
        for side, card in cards.items()
    ]
    reasons = join(ahead) if ahead else "The figures do not tell them apart"
    return f"{entries[0]['task']}: {choice}. {reasons}. The trust value is {join(trust)}."


def _name(entry: JudgeComparison, side: Side, names: Mapping[str, str]) -> str:
    sides = {
        "a": (names[entry["judge_a"]], entry["scoring_a"]),
        "b": (names[entry["judge_b"]], entry["scoring_b"]),
    }
    name, scoring = sides[side]
    return f"{name} ({side.upper() if sides['a'] == sides['b'] else scoring})"
