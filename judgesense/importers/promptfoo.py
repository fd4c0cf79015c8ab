"""promptfoo's ``results.json``: each model-graded assertion on an output is a verdict.

promptfoo keeps what the grader concluded (pass or fail, a reason and a score), not what it wrote.
A metric is a criterion; assertions that share a metric are wordings of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import AliasPath, Field

from judgesense.errors import JudgeSenseError
from judgesense.files.documents import Shape, read_json, validate
from judgesense.files.tables import Record, in_rows
from judgesense.importers import Importer, Items
from judgesense.importers.values import has_failed

LABELS = ("PASS", "FAIL")
GRADED = (
    "agent-rubric",
    "answer-relevance",
    "context-faithfulness",
    "context-recall",
    "context-relevance",
    "conversation-relevance",
    "factuality",
    "g-eval",
    "llm-rubric",
    "model-graded-closedqa",
    "model-graded-factuality",
    "search-rubric",
    "trajectory:goal-success",
)
"""The types of assertion that ask a model; ``not-`` before one turns it round."""

DEFAULT_GRADER = "promptfoo-default-grader"
_UNREAD = ("could not extract json", "did not match expected format", "could not parse")
_NOTHING = "No output"
_WHOLE = "a person's rating is of the whole output, and stands beside each assertion on it"


class Assertion(Shape):
    """An assertion of a test."""

    type: str
    value: Any = None
    metric: str | None = None
    provider: Any = None
    threshold: float | None = None


class Component(Shape):
    """What became of an assertion."""

    passed: bool = Field(alias="pass")
    score: float | None = None
    reason: str | None = None
    assertion: Assertion | None = None
    failed: Any = Field(None, validation_alias=AliasPath("metadata", "graderError"))
    prompt: Any = Field(None, validation_alias=AliasPath("metadata", "renderedGradingPrompt"))
    tokensUsed: dict[str, Any] | None = None


class TestCase(Shape):
    """The test of a result."""

    __test__ = False

    description: str | None = None
    provider: Any = Field(None, validation_alias=AliasPath("options", "provider"))
    metadata: dict[str, Any] | None = None
    asserts: list[Assertion] | None = Field(None, alias="assert")


class Result(Shape):
    """An output of a provider on a test."""

    testIdx: int
    provider: Any = None
    output: Any = Field(None, validation_alias=AliasPath("response", "output"))
    testCase: TestCase = TestCase.model_construct()
    components: list[Component | None] | None = Field(
        None, validation_alias=AliasPath("gradingResult", "componentResults")
    )
    vars: dict[str, Any] | None = None
    error: str | None = None


def read(path: Path, items: Items, pick: str | None) -> Iterator[Record]:
    """One record per model-graded assertion of a result.

    The task is the assertion's metric, or its type and place in the test; the template is the same,
    with ``#2`` for the second assertion of that metric. So wordings are the assertions of a metric,
    or of all metrics that ``--columns task=:NAME`` joins. An output that differs (another provider,
    another prompt) is another item of the test's cluster.
    """
    file = read_json(path)
    if pick not in (None, "pass", "score"):
        raise JudgeSenseError(f"{path}: no score {pick!r}; choose one with --pick: pass, score")
    results = file.get("results") if isinstance(file, dict) else None
    results = results.get("results") if isinstance(results, dict) else results
    if not isinstance(results, list):
        raise JudgeSenseError(
            f"{path}: not promptfoo's results (no list at results.results); write them with: "
            "promptfoo eval --output results.json"
        )
    empty = True
    for number, values in enumerate(results):
        place = f"{path}, results.results[{number}]"
        result = validate(Result, values, place, "a result of promptfoo")
        for record in _graded(result, place, items, pick):
            empty = False
            yield record
    if empty:
        raise JudgeSenseError(
            f"{path}: no result has a model-graded assertion ({', '.join(GRADED[:3])}, ...)"
        )


def _graded(result: Result, place: str, items: Items, pick: str | None) -> Iterator[Record]:
    test = result.testCase
    evaluated = _provider(result.provider) or "unknown"
    question = test.description or f"test-{result.testIdx + 1}"
    item = items.name(question, (result.testIdx, evaluated, str(result.output)))
    grader = _provider(test.provider)
    # A person's rating of the output overrides its pass, not what the grader said.
    ratings = [component for asked, component in _asked(result) if asked.type == "human"]
    rated = next((each for each in ratings if each is not None), None)
    people = {"human": LABELS[not rated.passed]} if rated else {}
    graded = [asked for asked, _ in _asked(result) if asked.type.removeprefix("not-") in GRADED]
    if people and graded[1:] and _WHOLE not in items.notes:
        items.notes.append(_WHOLE)
    seen: Counter[str] = Counter()
    of_type: Counter[str] = Counter()
    for asked, component in _asked(result):
        kind = asked.type.removeprefix("not-")
        if kind not in GRADED:
            continue
        of_type[kind] += 1
        criterion = asked.metric or (
            asked.type if of_type[kind] == 1 else f"{asked.type}-{of_type[kind]}"
        )
        seen[criterion] += 1
        template = criterion if seen[criterion] == 1 else f"{criterion}#{seen[criterion]}"
        judge = _provider(asked.provider) or grader or DEFAULT_GRADER
        usage = (component.tokensUsed if component else None) or {}
        yield Record(
            {
                "judge": judge,
                "task": criterion,
                "template_id": template,
                "item_id": item,
                "cluster_id": question,
                "system_id": evaluated,
                "repeat": items.repeat(judge, item, criterion, template),
                "prompt": component.prompt if component else None,
                "input_tokens": usage.get("prompt"),
                "output_tokens": usage.get("completion"),
                "kind": kind,
                "output": result.output,
                "metric": criterion,
                "rubric": asked.value,
                "score": component.score if component else None,
                "metadata": test.metadata or {},
                "vars": result.vars or {},
                **({"people": people} if people else {}),
                **(
                    _verdict(component, asked, pick)
                    if component
                    else {"status": "error", "error": result.error or "promptfoo has no result"}
                ),
            },
            place,
        )


def _asked(result: Result) -> Iterator[tuple[Assertion, Component | None]]:
    if result.components is None:
        for assertion in result.testCase.asserts or ():
            yield assertion, None
    for component in result.components or ():
        if component is not None and component.assertion is not None:
            yield component.assertion, component


def _verdict(component: Component, asked: Assertion, pick: str | None) -> dict[str, Any]:
    """The decision. A grader that failed or could not be read fails the assertion in promptfoo.

    A pass without points, or a fail with most of them, is no verdict until ``pick`` says which
    holds, unless a threshold explains it.
    """
    reason, score = component.reason or "", component.score
    unread = any(text in reason.casefold() for text in _UNREAD)
    failed = not component.passed and (unread or has_failed(reason))
    if component.failed or reason == _NOTHING or failed:
        return {"status": "error", "error": reason}
    turned = asked.type.startswith("not-")
    holds = component.passed
    if score is not None and asked.threshold is None and not turned:
        by_score = score > 0.5 if pick is None else score >= 0.5
        if pick == "score":
            holds = by_score
        elif pick is None and (score == 0 if holds else by_score):
            error = (
                f"pass is {str(holds).lower()}, score {score:g}: add --pick pass or --pick score"
            )
            return {"status": "error", "error": error}
    # A "not-" assertion passes if the grader says fail.
    passed = holds != turned
    return {"raw_text": reason, "raw_decision": LABELS[not passed]}


def _provider(value: Any) -> str | None:
    if isinstance(value, Mapping):
        value = value.get("label") or value.get("id") or _provider(value.get("text"))
    return value if isinstance(value, str) and value else None


IMPORTER = Importer(
    summary="promptfoo's results.json (model-graded assertions)",
    patterns=("*.json",),
    read=lambda *asked: in_rows(read(*asked)),
    has_pick=True,
    labels=LABELS,
    keys=("results",),
)
