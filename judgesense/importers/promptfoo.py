"""promptfoo's ``results.json``: each model-graded assertion on an output is a verdict.

promptfoo keeps what the grader concluded (pass or fail, a reason and a score), not what it wrote.
A metric is a criterion; assertions that share a metric are wordings of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import Field

from judgesense.errors import JudgeSenseError
from judgesense.files.documents import Shape, fit, read_json
from judgesense.files.tables import Record
from judgesense.importers.importer import Importer, Items, ReadOptions

LABELS = ("PASS", "FAIL")
GRADED = (
    "agent-rubric", "answer-relevance", "context-faithfulness", "context-recall",
    "context-relevance", "conversation-relevance", "factuality", "g-eval", "llm-rubric",
    "model-graded-closedqa", "model-graded-factuality", "search-rubric", "trajectory:goal-success",
)  # fmt: skip
"""The types of assertion that ask a model; ``not-`` before one turns it round."""

DEFAULT_GRADER = "promptfoo-default-grader"
_UNREAD = ("could not extract json", "did not match expected format", "could not parse")
_NOTHING = "No output"


class Assertion(Shape):
    """An assertion of a test."""

    type: str
    value: Any = None
    metric: str | None = None
    provider: Any = None


class Component(Shape):
    """What became of an assertion."""

    passed: bool = Field(alias="pass")
    score: float | None = None
    reason: str | None = None
    assertion: Assertion | None = None
    metadata: dict[str, Any] | None = None
    tokensUsed: dict[str, Any] | None = None


class Grading(Shape):
    """The assertions of a result."""

    componentResults: list[Component | None] | None = None


class TestCase(Shape):
    """The test of a result."""

    __test__ = False

    description: str | None = None
    options: dict[str, Any] | None = None
    metadata: dict[str, Any] | None = None
    asserts: list[Assertion] | None = Field(None, alias="assert")


class Result(Shape):
    """An output of a provider on a test."""

    testIdx: int
    promptIdx: int = 0
    provider: Any = None
    response: Any = None
    testCase: TestCase = TestCase.model_construct()
    gradingResult: Grading | None = None
    vars: dict[str, Any] | None = None
    error: str | None = None


class Defaults(Shape):
    """What all tests share."""

    options: dict[str, Any] | None = None


class Config(Shape):
    """The configuration that the results came from."""

    defaultTest: Defaults | str | None = None


class File(Shape):
    """The whole file, but for its results."""

    config: Config | None = None


def read(path: Path, options: ReadOptions) -> Iterator[Record]:
    """One record per model-graded assertion of a result.

    The task is the assertion's metric, or its type and place in the test; the template is the same,
    with ``#2`` for the second assertion of that metric. So wordings are the assertions of a metric,
    or of all metrics that ``--columns task=:NAME`` joins. An output that differs (another provider,
    another prompt) is another item of the test's cluster.

    Raises JudgeSenseError for a file that is not promptfoo's, a result that does not have the shape
    of one, and a file without model-graded assertions.
    """
    return records(path, read_json(path), options)


def records(path: Path, file: Any, options: ReadOptions) -> Iterator[Record]:
    """As :func:`read`, for the content of a file."""
    results = file.get("results") if isinstance(file, dict) else None
    results = results.get("results") if isinstance(results, dict) else results
    if not isinstance(results, list):
        raise JudgeSenseError(
            f"{path}: not promptfoo's results (no list at results.results); write them with: "
            "promptfoo eval --output results.json"
        )
    config = fit(File, file, str(path), "promptfoo's results").config
    # A text is the path of another file.
    test = config.defaultTest if config else None
    default = _provider(
        (test.options or {}).get("provider") if isinstance(test, Defaults) else None
    )
    found = False
    for number, values in enumerate(results, 1):
        place = f"{path}, results.results[{number - 1}]"
        result = fit(Result, values, place, "a result of promptfoo")
        for record in _graded(result, default, place, options.items):
            found = True
            yield record
    if not found:
        raise JudgeSenseError(
            f"{path}: no result has a model-graded assertion ({', '.join(GRADED[:3])}, ...)"
        )


def _graded(result: Result, default: str | None, place: str, items: Items) -> Iterator[Record]:
    test = result.testCase
    response = result.response if isinstance(result.response, Mapping) else {}
    evaluated = _provider(result.provider) or "unknown"
    question = test.description or f"test-{result.testIdx + 1}"
    item = items.name(question, (result.testIdx, evaluated, str(response.get("output"))))
    grader = _provider((test.options or {}).get("provider")) or default
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
                "prompt": _rendered(component) if component else None,
                "input_tokens": usage.get("prompt"),
                "output_tokens": usage.get("completion"),
                "kind": kind,
                "output": response.get("output"),
                "metric": criterion,
                "rubric": asked.value,
                "score": component.score if component else None,
                "metadata": test.metadata or {},
                "vars": result.vars or {},
                **(
                    _verdict(component, asked.type != kind)
                    if component
                    else {"status": "error", "error": result.error or "promptfoo has no result"}
                ),
            },
            place,
        )


def _asked(result: Result) -> Iterator[tuple[Assertion, Component | None]]:
    """A result's assertions and what became of them: nothing, if the result failed."""
    graded = result.gradingResult
    if graded is None or graded.componentResults is None:
        for asserted in result.testCase.asserts or ():
            yield asserted, None
        return
    for component in graded.componentResults:
        if component is not None and component.assertion is not None:
            yield component.assertion, component


def _verdict(component: Component, turned: bool) -> dict[str, Any]:
    """The decision. A grader that failed or could not be read fails the assertion in promptfoo."""
    reason = component.reason or ""
    unread = any(text in reason.casefold() for text in _UNREAD)
    if not component.passed and unread:
        return {"raw_text": reason, "status": "unclear"}
    if (component.metadata or {}).get("graderError") or reason == _NOTHING:
        return {"status": "error", "error": reason}
    # A "not-" assertion passes if the grader says fail.
    passed = component.passed != turned
    return {"raw_text": reason, "raw_decision": LABELS[not passed]}


def _rendered(component: Component) -> str | None:
    prompt = (component.metadata or {}).get("renderedGradingPrompt")
    return prompt if isinstance(prompt, str) else None


def _provider(value: Any) -> str | None:
    """A provider's name, from its id or an object that has one."""
    if isinstance(value, Mapping):
        value = value.get("label") or value.get("id") or _provider(value.get("text"))
    return value if isinstance(value, str) and value else None


IMPORTER = Importer(
    name="promptfoo",
    summary="promptfoo's results.json (model-graded assertions)",
    patterns=("*.json",),
    read=read,
    labels=LABELS,
)
