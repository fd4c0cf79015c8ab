"""Inspect's logs as decisions.

If a model graded the samples (``model_graded_qa``, ``model_graded_fact``, or a scorer that keeps a
``grading`` conversation), the judge is the grader, and its grades are the decisions. If not, each
sample is itself a judgement by the evaluated model: its completion, what a scorer read in it
(``answer``) and the target. ``metadata`` and ``task_args`` stay in the record, so that a column map
can reach into them (``template_id=task_args.template``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from judgesense.errors import JudgeSenseError
from judgesense.files.tables import Record, in_rows
from judgesense.importers import Importer, Items
from judgesense.importers.column_names import RATERS, header_key
from judgesense.importers.inspect_files import Evaluation, Sample, Score, open_log
from judgesense.importers.values import has_failed
from judgesense.importers.who import PERSON, who

GRADES, PARTIAL_GRADES = ("C", "I"), ("C", "P", "I")
"""What Inspect's own instructions offer to a grader."""


def read(path: Path, items: Items, pick: str | None) -> Iterator[Record]:
    """The grades of a log, or else its samples.

    An epoch is a repeat of the same prompt. For a grader, that holds if the evaluated model gave
    the same answer; another answer is another item (``q1/2``) in the same cluster. Without
    ``pick``, all graders are read, and of a log without graders the completions themselves. A
    failed sample is an ERROR with its message.
    """
    evaluation, samples = open_log(path)
    found = list(samples)
    if not found:
        raise JudgeSenseError(
            f"{path}: the log has no samples; was it written with log_samples off, or read with "
            "header_only?"
        )
    graders = _graders(evaluation, [sample for _, sample in found])
    if pick is not None:
        for place, sample in found:
            if sample.scores and pick not in sample.scores:
                raise JudgeSenseError(
                    f"{place}: unknown scorer {pick!r}; choose one of {', '.join(sample.scores)}"
                )
        graders = [name for name in graders if name == pick]
    if not graders:
        for place, sample in found:
            yield Record(_judgement(evaluation, sample, pick), place)
        return
    for scorer in graders:
        template = evaluation.task if len(graders) == 1 else f"{evaluation.task}/{scorer}"
        yield from _grades(evaluation, found, scorer, template, items)


def _common(evaluation: Evaluation, sample: Sample) -> dict[str, Any]:
    return {
        "task": evaluation.task,
        "template_id": evaluation.task,
        "item_id": str(sample.id),
        "cluster_id": (sample.metadata or {}).get("cluster_id"),
        "system_id": (sample.metadata or {}).get("system_id"),
        "order": (sample.metadata or {}).get("order"),
        "metadata": sample.metadata or {},
        "task_args": evaluation.task_args or {},
        "input": sample.input,
    }


def _judgement(evaluation: Evaluation, sample: Sample, pick: str | None) -> dict[str, Any]:
    """A sample that is a judgement by the evaluated model."""
    output = sample.output
    usage = output.usage or {}
    stop = output.choices[0].get("stop_reason") if output.choices else None
    status = "error" if sample.error else "refused" if stop == "content_filter" else None
    target, scores = sample.target, sample.scores or {}
    # What the picked or only scorer read in the completion, if it is clear which.
    picked = [pick] if pick is not None else list(scores) if len(scores) == 1 else []
    score = scores.get(picked[0]) if picked else None
    return {
        **_common(evaluation, sample),
        "judge": evaluation.model,
        "repeat": sample.epoch - 1,
        "raw_text": output.completion or None,
        "raw_decision": (score.answer if score else None) or None,
        "gold": (target[0] if target else None) if isinstance(target, list) else target,
        "status": status,
        "error": sample.message or output.error,
        "input_tokens": usage.get("input_tokens"),
        "output_tokens": usage.get("output_tokens"),
        "latency_s": output.time,
        "truncated": stop in ("max_tokens", "model_length"),
    }


def _graders(evaluation: Evaluation, samples: Sequence[Sample]) -> list[str]:
    names = [
        name
        for sample in samples
        for name, score in (sample.scores or {}).items()
        if score is not None and (score.grading or _is_grader(name))
    ]
    if not any(sample.scores for sample in samples):
        names = [scorer.name for scorer in evaluation.scorers or () if _is_grader(scorer.name)]
    return list(dict.fromkeys(names))


def _is_grader(name: str) -> bool:
    return name.rpartition("/")[2].startswith("model_graded_")


def _grades(
    evaluation: Evaluation,
    samples: Sequence[tuple[str, Sample]],
    scorer: str,
    template: str,
    items: Items,
) -> Iterator[Record]:
    models, space = _graded_by(evaluation, scorer)
    for place, sample in samples:
        score = (sample.scores or {}).get(scorer)
        common, metadata = _common(evaluation, sample), sample.metadata or {}
        judged = (score.answer if score else None) or sample.output.completion
        item = items.name(str(sample.id), (evaluation.model, judged))
        common.update(
            template_id=template,
            item_id=item,
            cluster_id=metadata.get("cluster_id") or str(sample.id),
            system_id=metadata.get("system_id") or evaluation.model,
            prompt=score.prompt if score else None,
            labels=space,
            people=_people(sample),
            gold=sample.target if space and sample.target in space else None,
        )
        for judge, verdict in _verdicts(evaluation, models, sample, score, place):
            repeat = items.repeat(judge, evaluation.task, template, item)
            yield Record({**common, "judge": judge, "repeat": repeat, **verdict}, place)


def _graded_by(evaluation: Evaluation, scorer: str) -> tuple[list[str], tuple[str, ...] | None]:
    """The models that grade, as far as the log's header names them, and the grades that Inspect's
    own instructions offer; None for other instructions."""
    name = scorer.rpartition("/")[2]
    scorers = (each for each in evaluation.scorers or () if each.name.rpartition("/")[2] == name)
    options: Mapping[str, Any] = next((each.options or {} for each in scorers), {})
    role = options.get("model_role") or "grader"
    role = role.get("name", "grader") if isinstance(role, Mapping) else role
    named = options.get("model") or (evaluation.model_roles or {}).get(role)
    models = named if isinstance(named, list) else [named]
    names = (each.get("model") if isinstance(each, Mapping) else each for each in models)
    own = _is_grader(scorer) and not (options.get("instructions") or options.get("grade_pattern"))
    grades = PARTIAL_GRADES if options.get("partial_credit") else GRADES
    return [str(each) for each in names if each], grades if own else None


def _verdicts(
    evaluation: Evaluation, models: Sequence[str], sample: Sample, score: Score | None, place: str
) -> Iterator[tuple[str, dict[str, Any]]]:
    judge = " + ".join(models) or (score.grader if score else None) or evaluation.model
    if score is None:
        said = sample.message or "the sample failed before the scorer ran"
        yield judge, {"status": "error", "error": said}
        return
    votes = score.votes
    gold = {} if score.original == score.value else {"gold": score.value}
    text = None if votes else score.raw_text
    if has_failed(score.explanation):  # Inspect writes I where it finds no grade.
        yield judge, {"status": "error", "error": score.explanation, "raw_text": text}
        return
    yield (
        judge,
        {**_verdict(score.original, place), **gold, "raw_text": text, "error": sample.message},
    )
    for number, vote in enumerate(votes):
        member = models[number] if number < len(models) == len(votes) else f"{judge}#{number + 1}"
        yield member, _verdict(vote, place)


def _people(sample: Sample) -> dict[str, Any]:
    """The labels by people among a sample's scores: of a scorer that is called a person, or whose
    metadata name one."""
    scores = {name: score for name, score in (sample.scores or {}).items() if score is not None}
    return {
        name: score.value
        for name, score in scores.items()
        if not (score.grading or _is_grader(name))
        and (who(name) == PERSON or {*map(header_key, score.metadata or {})} & {*RATERS})
    }


def _verdict(value: Any, place: str) -> dict[str, Any]:
    """A score's value as a decision; Inspect writes NaN where it found no grade."""
    if isinstance(value, (dict, list)):
        raise JudgeSenseError(
            f"{place}: a grader's verdict is one value, not {value!r:.80}; choose another scorer "
            "with --pick"
        )
    if value is None or value != value:
        return {"status": "unclear"}
    return {"raw_decision": value}


IMPORTER = Importer(
    summary="Inspect .eval or .json logs, or a folder of them",
    patterns=("*.eval", "*.json"),
    read=lambda *asked: in_rows(read(*asked)),
    has_pick=True,
    keys=("eval",),
)
