"""Parts of the declared shapes of item, template and variant files."""

from __future__ import annotations

from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, BeforeValidator, ValidationError
from pydantic_core import PydanticCustomError

from judgesense.files.documents import Shape, YamlNode


def invalid(reason: str) -> PydanticCustomError:
    """The error to raise in a validator of a shape."""
    return PydanticCustomError("invalid", "{reason}", {"reason": reason})


def _not_blank(text: str) -> str:
    if not text.strip():
        raise invalid("must not be empty")
    return text


def _as_label(value: Any) -> Any:
    """Whole numbers are allowed, so that the gold level 4 is the label "4"."""
    if value is None:
        return ""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


Text = Annotated[str, AfterValidator(_not_blank)]
"""Text with more than white space in it."""

Label = Annotated[str, BeforeValidator(_as_label)]
"""An id or a label: text or a whole number, "" for none."""

S = TypeVar("S", bound=Shape)


def fit_node(shape: type[S], node: YamlNode, what: str, **more: Any) -> S:
    """A YAML mapping, and ``more`` values, as an object of a shape.

    Scalars are text, so that a label YES is no boolean; a shape's numbers are read from it. Raises
    JudgeSenseError with file, line and key of what does not fit.
    """
    try:
        return shape.model_validate({**_plain(node.mapping(what)), **more})
    except ValidationError as error:
        faults = error.errors(include_url=False)
        # An unknown key explains a missing one.
        fault = next((one for one in faults if one["type"] == "extra_forbidden"), faults[0])
        place = node
        for at in fault["loc"]:
            parts = place.value
            if isinstance(parts, list):
                parts = dict(enumerate(parts))
            if isinstance(parts, dict) and at in parts:
                place = parts[at]
        key = next((at for at in reversed(fault["loc"]) if isinstance(at, str)), what)
        if fault["type"] == "extra_forbidden":
            known = ", ".join(shape.model_fields)
            hint = f"; the keys are {known}" if len(fault["loc"]) == 1 else ""
            raise place.fail(f"unknown key {key!r} in {what}{hint}") from error
        if fault["type"] == "missing":
            raise place.fail(f"missing key {key!r} in {what}") from error
        reason = fault["msg"][:1].lower() + fault["msg"][1:]
        raise place.fail(f"{key} of {what}: {reason}; got {fault['input']!r:.80}") from error


def _plain(value: Any) -> Any:
    if isinstance(value, YamlNode):
        return _plain(value.value)
    if isinstance(value, dict):
        return {key: _plain(part) for key, part in value.items()}
    return [_plain(part) for part in value] if isinstance(value, list) else value
