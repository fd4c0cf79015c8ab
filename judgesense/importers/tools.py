"""What each tool calls the parts of a score, and where it keeps them.

MLflow traces (``info.assessments``), Phoenix annotations, Opik traces (``feedback_scores``),
OpenTelemetry's ``gen_ai.evaluation.result`` events, Langfuse scores and traces, feedback of
LangSmith and Weave, tasks of Label Studio and Prodigy, records of Argilla, the log of OpenAI's
evals, and the ``scores`` of Braintrust and Weave evaluations.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from judgesense.importers.column_names import NOT_LABELS, plain
from judgesense.importers.values import SAME, fold, place_of
from judgesense.importers.who import JUDGE, PERSON, tokens, who

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
    r"|score|rating|grade|verdict|judge?ment|eval(uation)?))?",
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
    r"|json_(is_)?valid|latency|token_?count|length_?(check|scorer)|regex)(\W|_|\d|ratio|score|l)*",
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


def inside(values: Mapping[str, Any], path: str) -> Any:
    """What a path reaches, also where a name has dots: ``attributes.gen_ai.evaluation.name``."""
    if path in values:
        return values[path]
    first, _, rest = path.partition(".")
    inner = values.get(first)
    return inside(inner, rest) if rest and isinstance(inner, Mapping) else None


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
    return "HUMAN" if unsaid and _BY_PERSON.fullmatch(str(name)) else kind


def scores_in(row: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The scores in a row of an export, each as an object with the names of `FIELDS`."""
    if isinstance(row.get("data"), Mapping) and "annotations" in row:
        yield from _label_studio(row)
        return
    if {"responses", "suggestions"} <= row.keys():
        yield from _argilla(row)
        return
    if isinstance(held := row.get("automatedEvaluationResult"), Mapping):
        yield from _bedrock(held)
        return
    if isinstance(row.get("data_row"), Mapping) and "projects" in row:
        yield from _labelbox(row)
        return
    if questions := [n[: -len(_RESPONSES)] for n in row if n.endswith(_RESPONSES)]:
        yield from _argilla_columns(row, questions)
        return
    if "spec" in row or "final_report" in row or "sample_id" in row:
        yield from _openai_evals(row)
        return
    if "op_name" in row and isinstance(held := inside(row, "output.scores"), Mapping):
        yield from _by_name(held)
    if {"answer", "_task_hash"} <= row.keys():
        yield from _prodigy(row)
        return
    for path in NESTED:
        held = inside(row, path)
        if isinstance(held, Mapping) and path == "scores":
            yield from _by_name(held)
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
    for one in filter(lambda each: isinstance(each, Mapping), _listed(held.get("scores"))):
        details = [each for each in _listed(one.get("evaluatorDetails")) if each]
        said = details[0] if details and isinstance(details[0], Mapping) else {}
        yield {
            "name": str(one.get("metricName")).removeprefix("Builtin."),
            "value": one.get("result"),
            "explanation": said.get("explanation"),
            "model_version": said.get("modelIdentifier"),
        }


def _labelbox(row: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The choices of people in an export of Labelbox, and a judge's in the metadata of the row."""
    for each in _listed(row.get("metadata_fields")):
        name = str(each.get("schema_name")) if isinstance(each, Mapping) else ""
        if who(name) == JUDGE and not NOT_LABELS.fullmatch(plain(name)) and not _of_model(name):
            yield {"name": name, "value": each.get("value"), "annotator_kind": "LLM"}
    projects = [*row["projects"].values()] if isinstance(row["projects"], Mapping) else []
    for label in _below({"projects": projects}, ("projects", "labels")):
        for chosen in _below(label.get("annotations"), ("classifications",)):
            answer = chosen.get("radio_answer")
            if isinstance(answer, Mapping):
                yield {
                    "name": chosen.get("name"),
                    "value": answer.get("value") or answer.get("name"),
                    "annotator_kind": "HUMAN",
                    "created_by": inside(label, "label_details.created_by"),
                    "updated_at": inside(label, "label_details.updated_at"),
                }


def _of_model(name: str) -> bool:
    """Whether a name is of a judge's model or prompt, not of its verdict."""
    return tokens(name)[-1] in ("model", "version", "prompt")


def rows_in(row: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The rows of a line of an export: the events of OpenTelemetry's OTLP/JSON, or the line."""
    for record in _below(row, ("resourceLogs", "scopeLogs", "logRecords")):
        yield {**record, "attributes": _attributes(record)}
    for span in _below(row, ("resourceSpans", "scopeSpans", "spans")):
        for event in _below(span, ("events",)):
            attributes = _attributes(span) | _attributes(event)
            yield {**span, **event, "eventName": event.get("name"), "attributes": attributes}
    if not row.keys() & {"resourceLogs", "resourceSpans"}:
        yield {**row, "attributes": _attributes(row)} if "attributes" in row else row


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _below(held: Any, path: Sequence[str]) -> Iterator[Mapping[str, Any]]:
    """The objects in the lists along a path."""
    if isinstance(held, Mapping) and not path:
        yield held
    elif isinstance(held, Mapping):
        for each in _listed(held.get(path[0])):
            yield from _below(each, path[1:])


def _attributes(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row's attributes, which OTLP writes as a list of keys and values."""
    held = row.get("attributes")
    if isinstance(held, Mapping):
        return dict(held)
    return {
        str(each["key"]): next(iter(each["value"].values()), None)
        for each in _listed(held)
        if isinstance(each, Mapping) and isinstance(each.get("value"), Mapping) and "key" in each
    }


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


def _argilla(row: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """People's responses to each question of a record of Argilla, and models' suggestions; older
    exports list them."""
    given: list[tuple[str, str, Any]] = []
    for kind, key in (("HUMAN", "responses"), ("LLM", "suggestions")):
        held = row[key]
        for question, each in held.items() if isinstance(held, Mapping) else ():
            given += [(kind, question, one) for one in (each if isinstance(each, list) else [each])]
        for one in _listed(held):
            values = one.get("values") if isinstance(one, Mapping) else None
            if isinstance(values, Mapping):
                given += [(kind, question, {**one, **each}) for question, each in values.items()]
            elif isinstance(one, Mapping):
                given.append((kind, str(one.get("question_name") or one.get("question")), one))
    for kind, question, one in given:
        if isinstance(one, Mapping) and one.get("status") not in ("discarded", "draft"):
            value, who_said = one.get("value"), one.get("user_id") or one.get("agent")
            yield {
                "name": question,
                "value": value,
                "annotator_kind": kind,
                "user_id": who_said,
                "model_version": one.get("agent"),
            }


def _argilla_columns(
    row: Mapping[str, Any], questions: Sequence[str]
) -> Iterator[Mapping[str, Any]]:
    """The same of a record that is flattened into columns."""
    people, models = dict[str, Any](), dict[str, Any]()
    for name in questions:
        parts = (_listed(row.get(f"{name}.responses{end}")) for end in ("", ".users", ".status"))
        people[name] = [
            {"value": value, "user_id": user, "status": status}
            for value, user, status in zip(*parts, strict=False)
        ]
        models[name] = {
            "value": row.get(f"{name}.suggestion"),
            "agent": row.get(f"{name}.suggestion.agent"),
        }
    models = {name: each for name, each in models.items() if each["value"] is not None}
    yield from _argilla({"responses": people, "suggestions": models})


def _prodigy(row: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """A person's answer to a task of Prodigy, and what the task says of a judge's verdict."""
    chosen = row.get("accept", [row["answer"]])
    if row["answer"] != "ignore" and isinstance(chosen, list) and len(chosen) == 1:
        person = row.get("_annotator_id") or row.get("_session_id")
        given = {"name": "choice", "value": chosen[0], "annotator_kind": "HUMAN"}
        yield {**given, "user_id": person, "updated_at": row.get("_timestamp")}
    told = {**row, **(row["meta"] if isinstance(row.get("meta"), Mapping) else {})}
    verdicts = {
        name: value
        for name, value in told.items()
        if who(name) == JUDGE
        and not NOT_LABELS.fullmatch(plain(name))
        and not _of_model(name)
        and isinstance(value, (str, bool, int, float))
    }
    model = next((value for name, value in told.items() if tokens(name)[-1:] == ["model"]), None)
    for name, value in verdicts.items():
        said = {"name": "choice", "value": value, "annotator_kind": "LLM"}
        yield {
            **said,
            "model_version": name if model is None or verdicts.keys() - {name} else model,
        }


def _label_studio(row: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """People's annotations and models' predictions of a task of Label Studio."""
    for kind, key in (("HUMAN", "annotations"), ("LLM", "predictions")):
        for given in _listed(row.get(key)):
            if not isinstance(given, Mapping) or given.get("was_cancelled"):
                continue
            who = given.get("completed_by")
            who = who.get("email") or who.get("id") if isinstance(who, Mapping) else who
            for result in _listed(given.get("result")):
                value = result.get("value") if isinstance(result, Mapping) else None
                if isinstance(value, Mapping):
                    held = next(
                        (
                            value[n]
                            for n in ("choices", "rating", "number", "text", "selected")
                            if n in value
                        ),
                        None,
                    )
                    yield {
                        "name": result.get("from_name"),
                        "value": held[0] if isinstance(held, list) and len(held) == 1 else held,
                        "annotator_kind": kind,
                        "completed_by": who,
                        "model_version": given.get("model_version"),
                        "updated_at": given.get("updated_at"),
                    }
