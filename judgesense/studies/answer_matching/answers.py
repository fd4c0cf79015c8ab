"""The answers to one benchmark, and their scores by each matcher.

Matchers are the paper's heuristics (log-likelihood over the options' labels, word F1, mathematical
comparison), the extraction of a stated choice, and a judge that sees the reference.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from judgesense.answers.matching import match_likelihood
from judgesense.answers.matching.choice import read_choice
from judgesense.answers.matching.maths import match_math
from judgesense.answers.matching.words import match_f1
from judgesense.answers.text import without_thinking
from judgesense.errors import JudgeSenseError
from judgesense.files.documents import read_yaml
from judgesense.statistics.arrays import Floats
from judgesense.studies.common.question_sets import (
    BenchmarkItem,
    ask_all,
    folder_name,
    option_logprobs,
)
from judgesense.text import fill
from local_judges.llm_matcher import matching_prompt, read_verdict
from local_judges.responder import Question, respond

CHOICE, STORY, MATH, FACTS = "multiple-choice", "narrativeqa", "math", "simpleqa"
SET_OF: Mapping[str, str] = {
    "arc-challenge": CHOICE,
    "openbookqa": CHOICE,
    "gpqa-diamond": CHOICE,
    "narrativeqa": STORY,
    "narrativeqa-summaries": STORY,
    "math": MATH,
    "simpleqa": FACTS,
}
"""The benchmarks of the study and their template sets."""

OPTION_FIELDS = ("first_option", "second_option", "third_option", "fourth_option")

_LABEL = re.compile(r"(?<!\w)[A-D1-4](?!\w)")


@dataclass(frozen=True)
class AnswerTemplate:
    """One wording; ``labels`` are the option labels of a multiple-choice template."""

    name: str
    text: str
    labels: tuple[str, ...] = ()

    @property
    def style(self) -> str:
        """The kind of labels, as the matcher names it: "letters" or "numbers"."""
        return "numbers" if self.labels and self.labels[0].isdigit() else "letters"

    def render(self, item: BenchmarkItem) -> str:
        """The message; braces in the item stay text."""
        values = {"question": item.question, "context": item.context}
        values.update(zip(OPTION_FIELDS, item.options, strict=False))
        return fill(self.text, values)


@cache
def _content() -> Mapping[str, Any]:
    content: Mapping[str, Any] = read_yaml(Path(__file__).parent / "templates.yaml")
    return content


@cache
def paper_templates(kind: str) -> tuple[AnswerTemplate, ...]:
    """The paper's 12 templates of a set."""
    templates = []
    for number, entry in enumerate(_content()["sets"][kind], 1):
        text = entry
        if kind == MATH:
            examples = "\n\n".join(
                f"{entry['before']}{problem}{entry['after']}{solution}"
                for problem, solution in entry["examples"]
            )
            text = f"{examples}\n\n{entry['before']}{{question}}{entry['after']}"
        elif kind == FACTS:
            text = entry + "{question}"
        labels = []
        for option in OPTION_FIELDS if kind == CHOICE else ():
            # The last label before the option on its line: "Option A: " gives A.
            line = text[: text.index(f"{{{option}}}")].rpartition("\n")[2]
            labels.append(_LABEL.findall(line)[-1])
        templates.append(AnswerTemplate(f"{kind}-{number:02d}", text, tuple(labels)))
    return tuple(templates)


Note = Callable[[str], None]

LIKELIHOOD, EXTRACTION = "likelihood", "choice"
JUDGE, JUDGE_OPTIONS = "judge", "judge, options"
VERDICTS = ("{'match': true", "{'match': false")
"""The judge's options: the beginnings of the two replies that its prompt asks for."""

GRADES = ("A", "B", "C")

RIGHT = 0.5
"""An answer counts as right from this score on (F1 gives fractions)."""

HEURISTIC: Mapping[str, str] = {CHOICE: LIKELIHOOD, STORY: "f1", MATH: "math"}
"""The paper's heuristic by template set; SimpleQA has none (section 3.1)."""


@dataclass(frozen=True)
class BenchmarkResponse:
    """An answer of a model, or a probe: an answer that is known to be right or wrong.

    ``cut`` says that the token cap cut it off; ``logprobs`` are those of the options' labels.
    """

    model: str
    template: AnswerTemplate
    item: BenchmarkItem
    text: str
    cut: bool = False
    logprobs: tuple[float, ...] | None = None
    right: bool | None = None


@dataclass
class BenchmarkAnswers:
    """The answers of all models to one benchmark, in the order model, template, item.

    ``scores[matcher]`` has shape (models, templates, items): 1 right, 0 wrong, fractions for F1,
    NaN without a verdict. ``readings`` hold what the text heuristic read. ``probes`` are answers
    that are known to be right or wrong, and ``probe_scores[matcher]`` their scores. ``left_out``
    counts the items without an answer by some model under some template.
    """

    benchmark: str
    models: tuple[str, ...]
    templates: tuple[AnswerTemplate, ...]
    items: tuple[BenchmarkItem, ...]
    responses: list[BenchmarkResponse]
    scores: dict[str, Floats] = field(default_factory=dict)
    readings: list[str | None] = field(default_factory=list)
    grader: str | None = None
    probes: list[BenchmarkResponse] = field(default_factory=list)
    probe_scores: dict[str, Floats] = field(default_factory=dict)
    left_out: int = 0

    @property
    def kind(self) -> str:
        """The template set."""
        return SET_OF[self.benchmark]

    def enter(self, matcher: str, scores: Sequence[float | None]) -> None:
        """Store a matcher's scores of the answers, followed by those of the probes."""
        n = len(self.responses)
        flat = np.array([np.nan if score is None else score for score in scores])
        shape = len(self.models), len(self.templates), len(self.items)
        self.scores[matcher] = flat[:n].reshape(shape)
        self.probe_scores[matcher] = flat[n:]


def ask(
    benchmark: str,
    items: Sequence[BenchmarkItem],
    templates: Sequence[AnswerTemplate],
    responders: Sequence[Any],
    max_tokens: int,
    out: Path,
    note: Note,
    seed: int = 0,
) -> BenchmarkAnswers:
    """Ask every responder every item under every template, and score by the heuristics.

    Options are scored in the forward pass that starts the text. An item without an answer by one
    model under one template is left out for all models, so that all are compared on the same
    items; the first such failure is noted. ``seed`` fixes what is drawn above temperature 0.

    Raises JudgeSenseError if no item is left, or if two responders are one model.
    """
    questions = [
        Question(item.item_id, template.name, template.render(item), template.labels)
        for template in templates
        for item in items
    ]
    logs = ask_all(
        responders, questions, out, benchmark, max_tokens=max_tokens, seed=seed, note=note
    )
    failures = [
        (f"{model}, {benchmark}, {template}, {item}: no answer ({row['error']})", item)
        for model, rows in logs.items()
        for (template, item), row in rows.items()
        if row["error"] is not None
    ]
    failed = {item for _, item in failures}
    common = [item for item in items if item.item_id not in failed]
    if failures and not common:
        raise JudgeSenseError(
            f"{failures[0][0]}; no item is left: try another model or fewer tokens"
        )
    if failures:
        note(f"{failures[0][0]}; {len(failed)} of {len(items)} items are left out for every model")
    responses = [
        BenchmarkResponse(
            model,
            template,
            item,
            without_thinking(row["text"]),
            row["finish_reason"] == "length",
            option_logprobs(row),
        )
        for model, rows in logs.items()
        for template in templates
        for item in common
        for row in [rows[template.name, item.item_id]]
    ]
    answers = BenchmarkAnswers(
        benchmark, tuple(logs), tuple(templates), tuple(common), responses, left_out=len(failed)
    )
    answers.probes = probes_of(answers)
    if answers.kind != FACTS:
        _match(answers)
    return answers


def _match(answers: BenchmarkAnswers) -> None:
    """Score the answers and the probes by the heuristics, and keep what was read."""
    responses = [*answers.responses, *answers.probes]
    if answers.kind == CHOICE:
        name, correct = EXTRACTION, [response.item.correct or 0 for response in responses]
        readings = [
            read_choice(each.text, 4, each.item.options, each.template.style).value
            for each in responses
        ]
        scores = [float(read == "ABCD"[at]) for read, at in zip(readings, correct, strict=True)]
        logprobs = [each.logprobs for each in answers.responses if each.logprobs is not None]
        if len(logprobs) == len(answers.responses):
            result = match_likelihood(logprobs, correct[: len(logprobs)])
            answers.enter(LIKELIHOOD, result.per_example)
    else:
        name, matcher = HEURISTIC[answers.kind], match_f1 if answers.kind == STORY else match_math
        result = matcher([r.text for r in responses], [r.item.answers for r in responses])
        scores, readings = list(result.per_example), list(result.readings)
    answers.readings = readings[: len(answers.responses)]
    answers.enter(name, scores)


def probes_of(answers: BenchmarkAnswers) -> list[BenchmarkResponse]:
    """Answers that are known to be right or wrong, two to four per item.

    A multiple-choice item gives the right and a wrong option, each as a statement of its label and
    as its text; other items give the reference and another item's. Templates alternate, so that
    every style of labels occurs.
    """
    probes: list[BenchmarkResponse] = []
    for number, item in enumerate(answers.items):
        template = answers.templates[number % len(answers.templates)]
        texts: list[tuple[bool, str, str]] = []
        if item.options:
            correct = item.correct or 0
            for right, at in ((True, correct), (False, (correct + 1) % len(item.options))):
                texts.append((right, "-label", f"The answer is {template.labels[at]}."))
                texts.append((right, "-text", item.options[at]))
        else:
            accepted = {answer.lower() for answer in item.answers}
            others = (other.answers[0] for other in answers.items if other is not item)
            wrong = next((answer for answer in others if answer.lower() not in accepted), None)
            for right, answer in ((True, item.answers[0]), (False, wrong)):
                text = f"\\boxed{{{answer}}}" if answers.kind == MATH else answer
                if answer is not None:
                    texts.append((right, "", f"The answer is {text}."))
        probes += [
            BenchmarkResponse(
                f"probe-{'right' if right else 'wrong'}{form}", template, item, text, right=right
            )
            for right, form, text in texts
        ]
    return probes


def grade(
    answers: BenchmarkAnswers,
    grader: Any,
    max_tokens: int,
    out: Path,
    note: Note,
    seed: int = 0,
) -> None:
    """Have a judge score the answers and the probes; equal messages are judged once.

    A reply without a verdict scores NaN. Where the engine gives option probabilities, the more
    probable verdict is a matcher of its own ("judge, options"): small models often know the answer
    but not the format.
    """
    options = GRADES if answers.kind == FACTS else VERDICTS
    cells = [
        (each.item.item_id, f"{each.model}|{each.template.name}", _message(answers, each))
        for each in (*answers.responses, *answers.probes)
    ]
    questions = [Question(*cell, options) for cell in cells]
    folder = out / "verdicts" / f"{answers.benchmark}-{folder_name(grader)}"
    log = respond(grader, questions, folder, max_tokens=max_tokens, seed=seed, note=note)
    by_cell = {(row["item_id"], row["template_id"]): row for row in log.to_pylist()}
    rows = [by_cell[item, template] for item, template, _ in cells]
    answers.grader = str(log["model"][0])
    answers.enter(JUDGE, [_verdict(row["text"], answers.kind) for row in rows])
    logprobs = [values for row in rows if (values := option_logprobs(row)) is not None]
    if len(logprobs) == len(rows):
        answers.enter(JUDGE_OPTIONS, [float(np.argmax(values) == 0) for values in logprobs])


def _message(answers: BenchmarkAnswers, response: BenchmarkResponse) -> str:
    item, text = response.item, response.text
    if answers.kind == FACTS:
        values = {"question": item.question, "target": item.answers[0], "predicted_answer": text}
        return fill(str(_content()["grader"]), values)
    question, reference = item.question, list(item.answers)
    if item.options:
        options = [f"{a}: {b}" for a, b in zip(response.template.labels, item.options, strict=True)]
        question, reference = "\n".join([question, *options]), [options[item.correct or 0]]
    wording = "gpqa" if answers.benchmark == "gpqa-diamond" else "figure-3"
    return matching_prompt(question, reference, text, wording)


def _verdict(reply: str | None, kind: str) -> float | None:
    if reply is None:
        return None
    if kind == FACTS:
        grade = read_choice(without_thinking(reply), 3, labels="letters").value
        return None if grade is None else float(grade == "A")
    match, _ = read_verdict(reply)
    return None if match is None else float(match)
