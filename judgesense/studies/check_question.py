"""What a check asks: a question, its wordings, and the terms on which it is decided."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from judgesense.decisions import SCORINGS
from judgesense.errors import JudgeSenseError
from judgesense.tasks import Item, Template
from judgesense.trust.thresholds import STEADY_JSS

if TYPE_CHECKING:
    from judgesense_dataset.templates import TaskTemplates

RUNS = Path("runs/check")
Inconclusive = Literal["pass", "fail"]

PARAPHRASES = 4
"""The default number of proposed wordings."""


@dataclass(frozen=True, kw_only=True)
class Question:
    """What a check asks: a rubric as a task with one template, and the items to judge.

    ``identity`` holds the hashes of what it was read from, and ``told`` names them for the result.
    ``wordings`` is the file of the other wordings, unless another is asked for, and ``known`` are
    wordings that come with JudgeSense.
    """

    own: TaskTemplates
    items: Sequence[Item]
    identity: Mapping[str, Any]
    name: str
    wordings: Path
    ranked: bool
    told: Mapping[str, Any]
    known: tuple[Template, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Terms:
    """How a check is judged and decided; see :func:`check` for each."""

    wordings: str | Path | None = None
    paraphraser: Any = None
    n_paraphrases: int | None = None
    threshold: float = STEADY_JSS
    confidence: float = 0.95
    inconclusive: Inconclusive | None = None
    scoring: str = "generate"
    variants: Sequence[str] | None = None
    repeats: int = 2
    seed: int = 0
    limit: int | None = None
    out: str | Path | None = None
    runs: str | Path = RUNS

    def __post_init__(self) -> None:
        if self.scoring not in SCORINGS:
            raise JudgeSenseError(
                f"unknown scoring {self.scoring!r}; choose one of {', '.join(SCORINGS)}"
            )
        if not 0 <= self.threshold <= 1:
            raise JudgeSenseError(f"the threshold must be between 0 and 1, got {self.threshold}")
        if not 0 < self.confidence < 1:
            raise JudgeSenseError(f"the confidence must lie between 0 and 1, got {self.confidence}")
        if self.inconclusive not in (None, "pass", "fail"):
            raise JudgeSenseError(f"inconclusive is {self.inconclusive!r}: choose pass or fail")


def with_wordings(
    question: Question,
    terms: Terms,
    judge: Any,
    judge_options: Mapping[str, Any],
    note: Callable[[str], None],
) -> tuple[TaskTemplates, Path, float]:
    """The question with its other wordings, their file, and the US dollars spent on proposals."""
    from judgesense_dataset.rubric import propose_wordings, read_wordings
    from judgesense_dataset.templates import TaskTemplates

    own = question.own
    place = question.wordings if terms.wordings is None else Path(terms.wordings)
    if terms.wordings is not None or place.exists():
        if terms.paraphraser is not None or terms.n_paraphrases is not None:
            note(
                f"using the wordings in {place}; no new ones are proposed. To propose new ones, "
                "remove the file or leave out --wordings"
            )
        return read_wordings(place, own), place, 0.0
    if question.known and terms.paraphraser is None and terms.n_paraphrases is None:
        return TaskTemplates(own.task, (*own.templates, *question.known)), place, 0.0
    # The judge's settings (endpoint, key) do not apply to another paraphraser.
    asked_of, options = (
        (judge, judge_options) if terms.paraphraser is None else (terms.paraphraser, {})
    )
    with _writer(asked_of, options, terms.seed) as writer:
        before = getattr(writer, "spent", 0.0)
        count = PARAPHRASES if terms.n_paraphrases is None else terms.n_paraphrases
        entry = propose_wordings(own, writer, count, place, note)
        spent = getattr(writer, "spent", 0.0) - before
    return entry, place, spent


def digest_of(templates: Sequence[Template]) -> str:
    """The SHA-256 of wordings: their ids, texts, layouts and answers."""
    told = [
        [
            t.template_id,
            t.text,
            t.layout,
            dict(t.label_map),
            {k: list(v) for k, v in t.aliases.items()},
        ]
        for t in templates
    ]
    return hashlib.sha256(json.dumps(told, ensure_ascii=False).encode()).hexdigest()


@contextmanager
def _writer(judge: Any, options: Mapping[str, Any], seed: int) -> Iterator[Any]:
    """The model that proposes wordings: a name for paraphrase() to load, or the judge with the
    user's options."""
    from local_judges.registry import load_judge

    if not (isinstance(judge, (str, Path)) and options):
        yield judge
        return
    own = {**options, "temperature": 0.7, "seed": seed, "max_tokens": 512, "system_prompt": ""}
    writer = load_judge(judge, **own)
    try:
        yield writer
    finally:
        writer.close()
