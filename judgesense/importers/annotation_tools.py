"""Where annotation tools keep people's labels, and beside them a judge's: Label Studio, Argilla,
Labelbox and Prodigy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from judgesense.importers.column_names import NOT_LABELS, header_key
from judgesense.importers.who import JUDGE, tokens, who


def inside(values: Mapping[str, Any], path: str) -> Any:
    """What a path reaches, also where a name has dots: ``attributes.gen_ai.evaluation.name``."""
    if path in values:
        return values[path]
    first, _, rest = path.partition(".")
    inner = values.get(first)
    return inside(inner, rest) if rest and isinstance(inner, Mapping) else None


def listed(value: Any) -> list[Any]:
    """A list as it is, none for anything else."""
    return value if isinstance(value, list) else []


def below(held: Any, path: Sequence[str]) -> Iterator[Mapping[str, Any]]:
    """The objects in the lists along a path."""
    if isinstance(held, Mapping) and not path:
        yield held
    elif isinstance(held, Mapping):
        for each in listed(held.get(path[0])):
            yield from below(each, path[1:])


def labelbox(row: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The choices of people in an export of Labelbox, and a judge's in the metadata of the row."""
    for each in listed(row.get("metadata_fields")):
        name = str(each.get("schema_name")) if isinstance(each, Mapping) else ""
        if (
            who(name) == JUDGE
            and not NOT_LABELS.fullmatch(header_key(name))
            and not _of_model(name)
        ):
            yield {"name": name, "value": each.get("value"), "annotator_kind": "LLM"}
    projects = [*row["projects"].values()] if isinstance(row["projects"], Mapping) else []
    for label in below({"projects": projects}, ("projects", "labels")):
        for chosen in below(label.get("annotations"), ("classifications",)):
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


def argilla(row: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """People's responses to each question of a record of Argilla, and models' suggestions; older
    exports list them."""
    given: list[tuple[str, str, Any]] = []
    for kind, key in (("HUMAN", "responses"), ("LLM", "suggestions")):
        held = row[key]
        for question, each in held.items() if isinstance(held, Mapping) else ():
            given += [(kind, question, one) for one in (each if isinstance(each, list) else [each])]
        for one in listed(held):
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


def argilla_columns(
    row: Mapping[str, Any], questions: Sequence[str]
) -> Iterator[Mapping[str, Any]]:
    """The same of a record that is flattened into columns."""
    people, models = dict[str, Any](), dict[str, Any]()
    for name in questions:
        parts = (listed(row.get(f"{name}.responses{end}")) for end in ("", ".users", ".status"))
        people[name] = [
            {"value": value, "user_id": user, "status": status}
            for value, user, status in zip(*parts, strict=False)
        ]
        models[name] = {
            "value": row.get(f"{name}.suggestion"),
            "agent": row.get(f"{name}.suggestion.agent"),
        }
    models = {name: each for name, each in models.items() if each["value"] is not None}
    yield from argilla({"responses": people, "suggestions": models})


def prodigy(row: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
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
        and not NOT_LABELS.fullmatch(header_key(name))
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


def label_studio(row: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """People's annotations and models' predictions of a task of Label Studio."""
    for kind, key in (("HUMAN", "annotations"), ("LLM", "predictions")):
        for given in listed(row.get(key)):
            if not isinstance(given, Mapping) or given.get("was_cancelled"):
                continue
            who = given.get("completed_by")
            who = who.get("email") or who.get("id") if isinstance(who, Mapping) else who
            for result in listed(given.get("result")):
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
