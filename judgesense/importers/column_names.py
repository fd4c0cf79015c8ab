"""The columns of a file of verdicts: what they hold, and how people name them.

Names are compared without case and punctuation.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from judgesense.files.tables import ABSENT, Rows
from judgesense.importers.rows import texts_of
from judgesense.importers.values import (
    LONGEST,
    NUMBER,
    SAME,
    fold,
    has_failed,
    is_usual,
    misspelt,
    number_in,
    place_of,
    without_none,
    word_of,
)
from judgesense.importers.who import JUDGE, PERSON, tokens, who
from judgesense.tasks import UNDECIDED, is_scale
from judgesense.text import caseless, shorten

ROLES: Mapping[str, str] = {
    "item_id": "item_id id item idx index example_id question_id row_id sample_id uid case_id "
    "test_id conversation_id trace_id pair_id qid span_id test_case testcase ticket case nr 编号 "
    "doc_id input_sha input_hash prompt_hash task_id summary_id pair",
    "judge": "judge judge_name judge_model grader evaluator evaluator_model grader_model "
    "model_judge",
    "system_id": "system_id system model model_name assistant generator candidate",
    "template_id": "template_id template wording prompt_version prompt_name prompt_template",
    "order": "order ab_order option_order shown_first first_shown first_position swapped "
    "is_swapped flipped reihenfolge ordre orden ordine ordem volgorde 顺序 順序 順番 순서 порядок",
    "repeat": "repeat trial epoch attempt run rerun run_id iteration replicate seed",
    "task": "task task_type criterion criteria metric dimension aspect rubric_item rubric_name "
    "criterion_name metric_name rubric critère criterio critério kriterium 维度 指标 観点",
    "cluster_id": "cluster_id cluster group_id",
    "raw_text": "reason reasoning rationale explanation justification critique judge_reason "
    "comment feedback raw_text raw_output judge_output judge_response judge_raw grader_output "
    "llm_output begründung",
}
"""Column of the decision log -> names that a file may use, the best first."""

_JUDGED = (
    "raw_decision decision verdict judge_verdict llm_verdict ai_verdict model_verdict judge_label "
    "llm_label ai_label model_label predicted_label predicted prediction pred y_pred judgement "
    "judgment grade judge_grade choice winner judge_choice preference rating judge_rating "
    "llm_rating judge_score llm_score urteil 裁判 评分 autoeval_label score passed judge"
)
_LABELLED = (
    "human_label human human_verdict human_grade human_judgement human_judgment human_rating "
    "human_score expert_label expert annotation gold gold_label golden ground_truth "
    "ground_truth_label true_label truth y_true label labels target expected_label expected "
    "reference_label human_winner mensch mensch_label 人工标注 人工"
)
VERDICTS, PEOPLE = _JUDGED.split(), _LABELLED.split()
"""Names of a column of verdicts, and of one of people's labels, the best first."""

_RATERS = (
    "rater annotator annotator_id rater_id annotator_name rater_name labeler labeller reviewer "
    "person worker worker_id coder completed_by labeled_by labelled_by annotated_by reviewed_by "
    "rated_by graded_by"
)
RATERS = _RATERS.split()
"""Names of the column that says who labelled, the best first."""

VERDICT_OF = re.compile(
    r"(.+)_(verdict|decision|judge?ment|rating|grade|score|choice|label|pred|prediction)"
    r"|feedback_(?!stats)(.+)"  # an evaluator's column in LangSmith's to_pandas()
)
NOT_LABELS = re.compile(
    r"(sicherheit|confiance|confianza|temps|tiempo|tempo|dauer|zeit)(_.*)?|.*(耗时|所要時間)\w*|.*_(ms|secs?)"
    r"|.*_(ids?|names?|comments?|reasons?|notes?|time|date|email|conf|confidence|avg|generated|type|kind"
    r"|role|by"
    r"|(tokens|latency|cost|price|length|chars|words|seconds|minutes|duration|count|temperature"
    r"|prob|logprob|age|years)(_\w+)?)"
)
SCORED = re.compile(r"human.*|.*(scores?|ratings?|mos|grades?|points|stars)")
"""In the name of a column of people's that its numbers are scores."""


FRIENDLY = {
    "id": "item_id",
    "item": "item_id",
    "wording": "template_id",
    "template": "template_id",
    "system": "system_id",
    "cluster": "cluster_id",
    "reason": "raw_text",
}
"""Other names for targets in ``--columns``."""

MOST_LABELS = 20
_DEEPEST = 3
"""Levels of objects in a column that are looked into."""
_KEPT = 200
"""Distinct values of a column that are kept; with more it holds no labels."""


def header_key(name: str) -> str:
    """A column's name as names are compared: ``Human Label`` is ``human_label``."""
    return re.sub(r"[\W_]+", "_", caseless(name)).strip("_")


@dataclass
class Column:
    """What a column holds: its distinct texts with their numbers, up to `_KEPT`, and its blanks."""

    texts: Counter[str] = field(default_factory=Counter)
    filled: int = 0
    blank: int = 0
    low: float = math.inf
    """Its least number, and its greatest."""
    high: float = -math.inf
    _seen: set[str] | None = field(default_factory=set)
    _words: dict[str, str] | None = None

    def add(self, values: Sequence[Any]) -> None:
        """Count some more cells."""
        cells = [None if value is ABSENT else value for value in values]
        texts = Counter(filter(None, map(word_of, texts_of(cells) or ())))
        self.filled += texts.total()
        self.blank += len(values) - texts.total()
        if self._seen is not None:
            new = self._seen.isdisjoint(texts) and texts.total() == len(texts) == len(values)
            self._seen = self._seen | texts.keys() if new else None
        numbers = [n for n in map(number_in, texts) if n is not None]
        self.low, self.high = min([self.low, *numbers]), max([self.high, *numbers])
        if len(self.texts) <= _KEPT:
            self.texts += texts
            self._words = None

    @property
    def unique(self) -> bool:
        """Whether every row has a value, and no two the same."""
        return self._seen is not None and self.filled > 0

    def counts(self, size: int) -> bool:
        """Whether it only counts ``size`` rows, from 0 or 1."""
        numbers = sorted(int(text) for text in self.texts if text.isdecimal())
        whole = len(numbers) == len(self.texts) and self.filled == size
        return whole and numbers in ([*range(len(numbers))], [*range(1, len(numbers) + 1)])

    @property
    def is_complete(self) -> bool:
        """Whether `texts` has every distinct value."""
        return len(self.texts) <= _KEPT

    @property
    def words(self) -> dict[str, str]:
        """The values by `fold`, common first, without undecided ones and failed calls."""
        if self._words is None:  # Asked for again and again, and a column of texts has many.
            self._words = {}
            for text, _ in self.texts.most_common():
                if text not in UNDECIDED and not has_failed(text):
                    self._words.setdefault(fold(text), text)
            without_none(self._words)
        return self._words

    @property
    def decimals(self) -> bool:
        """Whether it holds numbers of which some are not whole."""
        numbers = [text for text in self.texts if NUMBER.fullmatch(text)]
        return 2 * len(numbers) > len(self.texts) and not is_scale(numbers)

    @property
    def is_share(self) -> bool:
        """Whether it holds scores from 0 to 1, on both sides of the half."""
        low, half, high = self.low, 0.5, self.high
        return self.decimals and 0 <= low < half < high <= 1

    @property
    def sides(self) -> dict[int, str] | None:
        """Its word for yes and the one for no, by `SAME`; None for another column."""
        places = self._places(SAME[0])
        return {0: places[0], 1: places[1]} if places.keys() == {0, 1} else None

    def _places(self, family: tuple[str, ...]) -> dict[int, str]:
        """Place in a family of `SAME` -> its commonest word; none if a tenth is of no place."""
        places: dict[int, str] = {}
        size = strays = 0
        for text, count in self.texts.most_common():
            if fold(text) in self.words:
                place = place_of(fold(text), family)
                size += count
                if place is not None:
                    places.setdefault(place, text)
                elif misspelt(fold(text), self.words) is None:
                    strays += count
        return places if 10 * strays <= size else {}

    def meets(self, other: Column) -> bool:
        """Whether its labels and another's may be one vocabulary: they share most words, are of one
        family of `SAME`, or are numbers both, or yes and no beside scores from 0 to 1."""
        if self.numeric and other.numeric:
            return True
        for one, two in ((self, other), (other, self)):
            if one.is_share and two.sides is not None:
                return True
        if not (self.labels and other.labels):
            return False
        shared = self.words.keys() & other.words.keys()
        if len(shared) > 1 and 2 * len(shared) >= min(len(self.words), len(other.words)):
            return True
        pairs = ((self._places(family), other._places(family)) for family in SAME)
        return any(len(one.keys() & two.keys()) > 1 for one, two in pairs)

    @property
    def numeric(self) -> bool:
        """Whether nearly all of its values are numbers, of at least three levels."""
        numbers = [text for text in self.texts if number_in(text) is not None]
        most = 0.9 * self.texts.total()
        return len(numbers) > 2 and sum(self.texts[text] for text in numbers) > most

    @property
    def labels(self) -> bool:
        """Whether its values look like labels: few, short but for a rare text, and repeated unless
        there are few."""
        texts = sum(n for text, n in self.texts.items() if len(fold(text)) > LONGEST)
        few = 0 < len(self.words) <= MOST_LABELS and 20 * texts <= self.filled
        return few and (self.filled > len(self.texts) or self.filled < 5) and not self.decimals

    @property
    def shown(self) -> str:
        """The values in a few words."""
        some = [shorten(text, 16) for text, _ in self.texts.most_common(4)]
        return ", ".join(some + ["..."] * (len(self.texts) > len(some)))


Columns = Mapping[str, Column]


def columns_of(blocks: Iterable[Rows]) -> tuple[dict[str, Column], int]:
    """The columns of a file's rows by name, and the number of rows.

    What a column of objects holds is a column too, ``metadata.grade`` or ``eval.judge.verdict``.
    """
    found: dict[str, Column] = {}
    size = 0
    for rows in blocks:
        flat = dict(rows.columns)
        for _ in range(_DEEPEST):
            for name, values in [*flat.items()]:
                inner = [value if isinstance(value, Mapping) else {} for value in values]
                for key in dict.fromkeys(key for each in inner for key in each):
                    flat.pop(name, None)
                    flat.setdefault(f"{name}.{key}", [each.get(key) for each in inner])
        for name, values in flat.items():
            found.setdefault(name, Column(blank=size)).add(values)
        for name in found.keys() - flat.keys():
            found[name].blank += len(rows)
        size += len(rows)
    return found, size


def is_beside_label(found: Columns, name: str) -> bool:
    """Whether a column is the score of a label: ``eval.tone.score`` beside ``eval.tone.label``."""
    return name.endswith(".score") and f"{name[: -len('score')]}label" in found


_ITEMS = (
    "item sample case ticket question query example trace conversation codice codigo código 번호 "
    "番号 编号 idx uid qid pid id"
)
_ITEM = frozenset(_ITEMS.split())
KIND = re.compile(r"(rater|annotator|reviewer|labell?er|evaluator|author|source)_(type|kind|role)")
"""The name of a column that says whether a person or a model labelled."""
_IS_MAIL = re.compile(r"[^@\s]+@[^@\s]+\.\w+")


def item_of(found: Columns) -> str | None:
    """The column that says which item a row is of: by an exact name, else by a word in it."""
    by_name = {header_key(name): name for name in reversed([*found])}
    exact = (by_name[key] for key in ROLES["item_id"].split() if key in by_name)
    short = (
        name
        for name, column in found.items()
        if ({*tokens(name)} & _ITEM or {*tokens(name)[-1:]} & {"no", "nr", "number", "key", "ref"})
        and len(column.texts) > 1
        and 2 * sum(len(text.split()) < 4 and len(text) <= LONGEST for text in column.texts)
        > len(column.texts)
        and not column.decimals
    )
    return next(exact, None) or next(short, None)


def rater_of(found: Columns) -> str | None:
    """The column that says who labelled: with names of judges and of people, by its own name, or
    with addresses."""
    some = {
        name: column
        for name, column in found.items()
        if 1 < len(column.texts) < column.filled
        and column.is_complete
        and max(map(len, column.texts)) <= LONGEST
        and header_key(name) not in ROLES["system_id"].split()
        and not KIND.fullmatch(header_key(name))
    }
    judges = [name for name in some if header_key(name) in ROLES["judge"].split()]
    both = (
        name
        for name, column in some.items()
        if {*map(who, column.texts)} >= {JUDGE, PERSON} and judges in ([], [name])
    )
    by_name = {header_key(name): name for name in reversed([*some])}
    exact = (by_name[key] for key in RATERS if key in by_name)
    alike = (
        name
        for name, column in some.items()
        if all(map(_IS_MAIL.fullmatch, column.texts))
        or (len(tokens(name)) == 1 and who(name) == PERSON and not is_usual({*column.words}))
    )
    return next(both, None) or next(exact, None) or next(alike, None)


def label_columns(found: Columns) -> dict[str, str]:
    """Column of a file of labels -> its name in the file, where the names differ and one fits."""
    by_name = {header_key(name): name for name in reversed([*found])}
    names = {
        "label": PEOPLE,
        "rater": RATERS,
        "system_id": ROLES["system_id"].split(),
    }
    best = {
        field: next((by_name[key] for key in keys if key in by_name), field)
        for field, keys in names.items()
    }
    best |= {"item_id": item_of(found) or "item_id"}
    return {field: name for field, name in best.items() if name != field and field not in found}
