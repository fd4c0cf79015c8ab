"""Inspect's logs, ``.eval`` (a zip archive of JSON) and ``.json``, read without Inspect.

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
from judgesense.files.tables import Record
from judgesense.importers.importer import Importer, Items, ReadOptions
from judgesense.importers.inspect_files import Evaluation, Sample, Score, open_log

_GRADES, _PARTIAL = ("C", "I"), ("C", "P", "I")
"""What Inspect's own instructions offer to a grader."""


def read(path: Path, options: ReadOptions) -> Iterator[Record]:
    """The grades of a log, or else its samples.

    An epoch is a repeat of the same prompt. For a grader, that holds if the evaluated model gave
    the same answer; another answer is another item (``q1/2``) in the same cluster. ``pick`` names
    the scorer to read if there are several; without it, all graders are read, and of a log without
    graders the completions themselves. A failed sample is an ERROR with its message.

    Raises JudgeSenseError for a file that is not an Inspect log or has no samples, and for a sample
    that does not have the shape of one.
    """
    evaluation, samples = open_log(path)
    found = list(samples)
    if not found:
        raise JudgeSenseError(
            f"{path}: the log has no samples (status: {evaluation.status}); was it written with "
            "log_samples off, or read with header_only?"
        )
    graders = _graders(evaluation, [sample for _, sample in found])
    if options.pick is not None:
        for place, sample in found:
            if sample.scores and options.pick not in sample.scores:
                raise JudgeSenseError(
                    f"{place}: unknown scorer {options.pick!r}; choose one of "
                    f"{', '.join(sample.scores)}"
                )
        graders = [name for name in graders if name == options.pick]
    if not graders:
        for place, sample in found:
            yield Record(_judgement(evaluation, sample, options.pick), place)
        return
    for scorer in graders:
        template = evaluation.task if len(graders) == 1 else f"{evaluation.task}/{scorer}"
        yield from _grades(evaluation, found, scorer, template, options.items)


def _common(evaluation: Evaluation, sample: Sample) -> dict[str, Any]:
    return {
        "task": evaluation.task,
        "template_id": evaluation.task,
        "item_id": str(sample.id),
        "cluster_id": (sample.metadata or {}).get("cluster_id"),
        "system_id": (sample.metadata or {}).get("system_id"),
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
    target = sample.target
    return {
        **_common(evaluation, sample),
        "judge": evaluation.model,
        "repeat": sample.epoch - 1,
        "raw_text": output.completion or None,
        "raw_decision": _answer(sample, pick),
        "gold": (target[0] if target else None) if isinstance(target, list) else target,
        "status": status,
        "error": sample.message or output.error,
        "input_tokens": usage.get("input_tokens"),
        "output_tokens": usage.get("output_tokens"),
        "latency_s": output.time,
        "truncated": stop in ("max_tokens", "model_length"),
    }


def _answer(sample: Sample, pick: str | None) -> str | None:
    """What the picked or only scorer read in the completion; None if it is not clear which."""
    scores = sample.scores or {}
    if pick is None and len(scores) != 1:
        return None
    score = scores.get(pick) if pick is not None else next(iter(scores.values()))
    return (score.answer if score else None) or None


def _graders(evaluation: Evaluation, samples: Sequence[Sample]) -> list[str]:
    """The scorers in which a model graded, in the order of the log."""
    names: dict[str, None] = {}
    for sample in samples:
        for name, score in (sample.scores or {}).items():
            if score is not None and (score.grading or _is_grader(name)):
                names[name] = None
    if not names and not any(sample.scores for sample in samples):
        names.update({s.name: None for s in evaluation.scorers or () if _is_grader(s.name)})
    return list(names)


def _is_grader(name: str) -> bool:
    return name.rpartition("/")[2].startswith("model_graded_")


def _grades(
    evaluation: Evaluation,
    samples: Sequence[tuple[str, Sample]],
    scorer: str,
    template: str,
    items: Items,
) -> Iterator[Record]:
    models, space = of_scorer(evaluation, scorer)
    for place, sample in samples:
        score = (sample.scores or {}).get(scorer)
        if score is not None and isinstance(score.original, (dict, list)):
            raise JudgeSenseError(
                f"{place}, scores.{scorer}.value: a grader's verdict is one value, not "
                f"{score.original!r}; choose another scorer with --pick"
            )
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
        )
        for judge, verdict in _verdicts(evaluation, models, sample, score):
            repeat = items.repeat(judge, evaluation.task, template, item)
            yield Record({**common, "judge": judge, "repeat": repeat, **verdict}, place)


def of_scorer(evaluation: Evaluation, scorer: str) -> tuple[list[str], tuple[str, ...] | None]:
    """The models that grade, as far as the log's header names them, and their decision space."""
    for found in evaluation.scorers or ():
        if found.name.rpartition("/")[2] == scorer.rpartition("/")[2]:
            given = found.options or {}
            break
    else:
        given = {}
    named = given.get("model") or _role(evaluation, given.get("model_role") or "grader")
    listed = named if isinstance(named, list) else [named]
    models = [text for one in listed if (text := _model_name(one))]
    if not _is_grader(scorer) or given.get("instructions") or given.get("grade_pattern"):
        return models, None
    return models, _PARTIAL if given.get("partial_credit") else _GRADES


def _role(evaluation: Evaluation, role: Any) -> Any:
    name = role.get("name", "grader") if isinstance(role, Mapping) else role
    return (evaluation.model_roles or {}).get(name)


def _model_name(value: Any) -> str | None:
    name = value.get("model") if isinstance(value, Mapping) else value
    return str(name) if name else None


def _verdicts(
    evaluation: Evaluation, models: Sequence[str], sample: Sample, score: Score | None
) -> Iterator[tuple[str, dict[str, Any]]]:
    """The judges of a sample and what they said: one grader, or a panel and each of its members."""
    judge = " + ".join(models) or (score.grader if score else None) or evaluation.model
    if score is None:
        said = sample.message or "the sample failed before the scorer ran"
        yield judge, {"status": "error", "error": said}
        return
    votes = score.votes
    verdict = _verdict(score.original)
    if score.original != score.value:
        verdict["gold"] = score.value
    text = None if votes else score.raw_text
    yield judge, {**verdict, "raw_text": text, "error": sample.message}
    for number, vote in enumerate(votes):
        member = models[number] if number < len(models) == len(votes) else f"{judge}#{number + 1}"
        yield member, _verdict(vote)


def _verdict(value: Any) -> dict[str, Any]:
    """A score's value as a decision; Inspect writes NaN where it found no grade."""
    if value is None or value != value:
        return {"status": "unclear"}
    return {"raw_decision": value}


IMPORTER = Importer(
    name="inspect",
    summary="Inspect .eval or .json logs, or their folder",
    patterns=("*.eval", "*.json"),
    read=read,
    options=("pick",),
    columns={"order": "metadata.order"},
)
