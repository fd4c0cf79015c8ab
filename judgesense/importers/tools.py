"""What each tool calls the parts of a score, and where it keeps them.

MLflow traces (``info.assessments``), Phoenix annotations, Opik traces (``feedback_scores``),
OpenTelemetry's ``gen_ai.evaluation.result`` events, Langfuse scores and traces, feedback of
LangSmith and Weave, tasks of Label Studio and Prodigy, records of Argilla, the log of OpenAI's
evals, and the ``scores`` of Braintrust and Weave evaluations.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from judgesense.importers.annotation_tools import (
    argilla,
    argilla_columns,
    below,
    inside,
    label_studio,
    labelbox,
    listed,
    prodigy,
)
from judgesense.importers.values import SAME, fold, place_of
from judgesense.importers.who import (
    PERSON,
    is_criterion,
    person_at_edge,
    subject,
    who,
)

NESTED = (
    "info.assessments",
    "assessments",
    "feedback_scores",
    "summary.weave.feedback",
    "feedback",
    "scores",
    "annotations",
)
"""Where a row holds its scores; a row without any of them is a score itself."""

FIELDS: Mapping[str, str] = {
    "name": "assessment_name annotation_name attributes.gen_ai.evaluation.name "
    "gen_ai.evaluation.name feedback_type name key from_name",
    "label": "stringValue string_value result.label attributes.gen_ai.evaluation.score.label "
    "gen_ai.evaluation.score.label category_name label",
    "value": "feedback.value expectation.value payload.value payload.detoned payload.emoji "
    "payload.output.passed payload.output.score payload.output.label payload.output "
    "result.score attributes.gen_ai.evaluation.score.value gen_ai.evaluation.score.value "
    "value score",
    "kind": "source.source_type annotator_kind feedback_source.type source.type source eventName",
    "who": "source.source_id authorUserId author_user_id authorUserName "
    "feedback_source.user_name feedback_source.user_id completed_by user_id wb_user_id "
    "last_updated_by created_by creator identifier attributes.reviewer.name "
    "attributes.enduser.id",
    "why": "rationale comment reason result.explanation "
    "attributes.gen_ai.evaluation.explanation gen_ai.evaluation.explanation explanation",
    "when": "last_update_time create_time last_updated_at updatedAt updated_at modified_at "
    "createdAt created_at timeUnixNano timestamp",
    "error": "feedback.error.error_message feedback.error error.error_message "
    "attributes.error.type error",
    "model": "metadata.model judge_model model_version",
    "item": "_task_hash sample_id attributes.gen_ai.response.id gen_ai.response.id trace_id "
    "traceId run_id span_id spanId call_id info.trace_id id",
    "part": "observationId observation_id spanId span_id",
}
"""The names of a score's parts, the best first; dots reach into objects."""

PEOPLE = re.compile(
    r"app|ui|annotation|(.*[^a-z])?(human|people|expert|annotator|review(er)?|sme)([^a-z].*)?",
    re.IGNORECASE,
)
"""Kinds and sources of a score that a person gave, and names of such events."""
_BY_PERSON = re.compile(
    r"(.*[^a-z])?(human|expert|annotator|reviewer|sme)([ _.-]*(review|label|feedback|annotation"
    r"|score|rating|grade|verdict|judge?ment|eval(uation)?))?(\s*[:/|]\s*.*)?"
    r"|(annotator|reviewer|rater)[ _.:-]+.*",
    re.IGNORECASE,
)
"""Names of a score that a person gave, unlike ``human_likeness``."""
_KIND = re.compile(r"(?:evaluator|annotator|rater|reviewer|grader|scorer|source)[._]?(?:type|kind)")
"""In the name of an attribute that says whether a person gave a score."""
END_USER = re.compile(r"(?:^|_)(?:users?|customers?|thumbs?)(?=_|$)")
"""In the name of a score that an application sends: its users gave it, not annotators."""
CODE = frozenset({"CODE", "SPAN_ATTRIBUTE"})
"""Those of a score that neither a person nor a model gave."""

CODE_NAMES = re.compile(
    r"(.*[ _.])?(levenshtein|bleu|rouge|meteor|edit_?distance|exact_?match|(is|valid)_json"
    r"|json_(is_)?valid|latency|token_?count|length_?(check|scorer)|regex|f1|gleu|chrf)(\W|_|\d|ratio|score|l)*",
    re.IGNORECASE,
)
"""Names of scores that code computes."""

KEYS = (
    ("traceId", "name", "source"),
    ("trace_id", "name", "source"),
    ("run_id", "key", "feedback_source"),
    ("feedback_stats", "feedback"),
    ("run_type", "feedback"),
    ("annotator_kind",),
    ("eventName", "attributes"),
    ("resourceLogs",),
    ("resourceSpans",),
    ("feedback_scores",),
    ("trace_id", "assessments"),
    ("info", "data"),
    ("data", "annotations"),
    ("id", "scores"),
    ("call_id", "feedback_type"),
    ("op_name", "summary"),
    ("spec",),
    ("sample_id", "type", "data"),
    ("responses", "suggestions"),
    ("answer", "_task_hash"),
    ("automatedEvaluationResult", "inputRecord"),
    ("data_row", "projects"),
    ("*.responses", "*.responses.status", "*.suggestion"),
)
"""Columns of which a file of scores has one set; a star stands for any name."""


def field_of(values: Mapping[str, Any], field: str) -> Any:
    """A part of a score, by the first of its names that has a value."""
    found = (inside(values, name) for name in FIELDS[field].split())
    return next((each for each in found if each not in (None, "", {}, [])), None)


def kind_of(values: Mapping[str, Any], name: object) -> str:
    """Who gave a score: its kind or source, else what its own ``name`` says."""
    attributes = values.get("attributes")
    for key, value in attributes.items() if isinstance(attributes, Mapping) else ():
        if _KIND.search(key):
            return str(value)
    kind = str(field_of(values, "kind") or "")
    by_name = re.fullmatch(r"wandb\.(annotation|runnable)\..*", str(name))
    if by_name:
        return "HUMAN" if by_name[1] == "annotation" else "LLM"
    if str(name).startswith("wandb.note") or CODE_NAMES.fullmatch(str(name)):
        return "CODE"
    if str(name).startswith("wandb.reaction"):
        emoji = fold(str(field_of(values, "value")))
        return "CODE" if place_of(emoji, SAME[0]) is None else "HUMAN"
    unsaid = kind in ("", "gen_ai.evaluation.result")
    by_person = _BY_PERSON.fullmatch(str(name)) or (
        person_at_edge(str(name)) in ("human", "expert", "sme") and is_criterion(subject(str(name)))
    )
    return "HUMAN" if unsaid and by_person else kind


def scores_in(row: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The scores in a row of an export, each as an object with the names of `FIELDS`."""
    if isinstance(row.get("data"), Mapping) and "annotations" in row:
        yield from label_studio(row)
        return
    if {"responses", "suggestions"} <= row.keys():
        yield from argilla(row)
        return
    if isinstance(held := row.get("automatedEvaluationResult"), Mapping):
        yield from _bedrock(held)
        return
    if isinstance(row.get("data_row"), Mapping) and "projects" in row:
        yield from labelbox(row)
        return
    if questions := [n[: -len(_RESPONSES)] for n in row if n.endswith(_RESPONSES)]:
        yield from argilla_columns(row, questions)
        return
    if "spec" in row or "final_report" in row or "sample_id" in row:
        yield from _openai_evals(row)
        return
    if "op_name" in row and isinstance(held := inside(row, "output.scores"), Mapping):
        yield from _by_name(held)
    if {"answer", "_task_hash"} <= row.keys():
        yield from prodigy(row)
        return
    for path in NESTED:
        held = inside(row, path)
        if isinstance(held, Mapping) and path == "scores":
            by_person = _reviewed(row)
            for score in _by_name(held):
                kind = {"annotator_kind": "HUMAN"} if score["name"] in by_person else {}
                yield {**score, **kind}
            return
        if isinstance(held, list):
            yield from (one for each in held if isinstance(each, Mapping) for one in _of_each(each))
            return
    yield row


_RESPONSES = ".responses"


def _of_each(score: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Opik's score of each of several authors, of which the score itself is the mean."""
    authors = score.get("value_by_author")
    for author, own in authors.items() if isinstance(authors, Mapping) and authors else ():
        if isinstance(own, Mapping):
            given = {name: value for name, value in own.items() if value not in (None, "")}
            yield {**score, **given, "created_by": author, "last_updated_by": author}
    if not authors:
        yield score


def _bedrock(held: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The metrics of an evaluation job of Amazon Bedrock."""
    for one in filter(lambda each: isinstance(each, Mapping), listed(held.get("scores"))):
        details = [each for each in listed(one.get("evaluatorDetails")) if each]
        said = details[0] if details and isinstance(details[0], Mapping) else {}
        yield {
            "name": str(one.get("metricName")).removeprefix("Builtin."),
            "value": one.get("result"),
            "explanation": said.get("explanation"),
            "model_version": said.get("modelIdentifier"),
        }


def rows_in(row: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The rows of a line of an export: the events of OpenTelemetry's OTLP/JSON, or the line."""
    for record in below(row, ("resourceLogs", "scopeLogs", "logRecords")):
        yield {**record, "attributes": _attributes(record)}
    for span in below(row, ("resourceSpans", "scopeSpans", "spans")):
        for event in below(span, ("events",)):
            attributes = _attributes(span) | _attributes(event)
            yield {**span, **event, "eventName": event.get("name"), "attributes": attributes}
    if not row.keys() & {"resourceLogs", "resourceSpans"}:
        yield {**row, "attributes": _attributes(row)} if "attributes" in row else row


def _attributes(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row's attributes, which OTLP writes as a list of keys and values."""
    held = row.get("attributes")
    if isinstance(held, Mapping):
        return dict(held)
    return {
        str(each["key"]): next(iter(each["value"].values()), None)
        for each in listed(held)
        if isinstance(each, Mapping) and isinstance(each.get("value"), Mapping) and "key" in each
    }


def _reviewed(row: Mapping[str, Any]) -> set[object]:
    """The scores that somebody gave in the application of Braintrust, by what its audit says."""
    edits = (each for each in listed(row.get("audit_data")) if isinstance(each, Mapping))
    paths = [inside(each, "audit_data.path") for each in edits if each.get("source") == "app"]
    return {path[1] for path in map(listed, paths) if path[:1] == ["scores"] and len(path) > 1}


def _by_name(scores: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The scores of an object that names each: a value, or an object with one and a reason."""
    for name, held in scores.items():
        said = {k: v for k, v in held.items() if who(k)} if isinstance(held, Mapping) else {}
        if said and len(said) == len(held):
            for key, value in said.items():
                kind = "HUMAN" if who(key) == PERSON else "LLM"
                yield {"name": name, "value": value, "annotator_kind": kind, "user_id": key}
        elif isinstance(held, Mapping):
            keys = [key for key in held if key in ("passed", "pass", "score", "value", "label")]
            value = next((held[key] for key in keys), None)
            yield {**held, "name": name, "value": value}
        else:
            yield {"name": name, "value": held}


def _openai_evals(row: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """A choice in the log of OpenAI's evals, or a match with what people chose: of its events,
    these are the verdicts."""
    data = row.get("data")
    if not isinstance(data, Mapping) or row.get("type") not in ("metrics", "match"):
        return
    name = str(row.get("sample_id")).rpartition(".")[0] or "choice"
    picked = next((data[key] for key in ("choice", "picked", "sampled") if key in data), None)
    if row["type"] == "match" or "choice" in data:
        yield {"name": name, "value": picked, "annotator_kind": "LLM"}
    if row["type"] == "match":
        yield {"name": name, "value": data.get("expected"), "annotator_kind": "HUMAN"}
