"""lm-eval's ``--log_samples`` files (0.4.x): ``samples_<task>_<date>.jsonl``.

Multiple-choice samples hold the log-likelihood of each option. Generated samples hold the text and
what a filter read in it. An lm-eval task is one wording, so it is the template; several wordings
are several files in one folder.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import AliasPath, Field

from judgesense.errors import JudgeSenseError
from judgesense.files.documents import Shape, fit, read_json
from judgesense.files.tables import Record, read_json_lines
from judgesense.importers.importer import Importer, ReadOptions

_NAME = re.compile(r"^samples_(?P<task>.+)_(?P<date>\d{4}-\d\d-\d\dT[\d.:-]+)$")
_INVALID = "[invalid]"


class Sample(Shape):
    """A line of a samples file."""

    doc_id: int | str
    arguments: list[list[Any] | dict[str, Any]] | dict[str, list[Any] | dict[str, Any]]
    resps: list[Any]
    filtered_resps: list[Any] | None = None
    filter: str = "none"
    acc: float | None = None
    target: Any = None


class Results(Shape):
    """The results file of a run."""

    model_args: dict[str, Any] | str | None = Field(
        None, validation_alias=AliasPath("config", "model_args")
    )
    model_name: str | None = None


def read(path: Path, options: ReadOptions) -> Iterator[Record]:
    """The samples of a file.

    ``pick`` names the filter to read if there are several. ``doc`` stays in the record, so that a
    column map can reach into it (``item_id=doc.id``). The judge is the model's name in
    ``results_*.json``, or else the folder's name. Raises JudgeSenseError for lines that are not
    samples, naming the field, and for several filters without ``pick``.
    """
    found = _NAME.match(path.stem)
    task = found["task"] if found else path.stem
    judge = _model(path, found["date"] if found else None)
    pick, filters = options.pick, set()
    by_index = _targets_are_indices(path)
    for sample, record in _samples(path):
        filters.add(sample.filter)
        if pick is not None and sample.filter not in (pick, "none"):
            continue
        if pick is None and len(filters) > 1:
            raise JudgeSenseError(
                f"{record.place}: the samples come from several filters "
                f"({', '.join(sorted(filters))}); choose one with --pick FILTER"
            )
        requests = _requests(sample.arguments)
        choice = _is_choice(requests)
        values = record.values
        yield Record(
            {
                "judge": judge,
                "task": task,
                "template_id": task,
                "item_id": str(sample.doc_id),
                "prompt": str(requests[0][0]) if requests and requests[0] else None,
                **(_chosen(sample, requests, by_index, record.place) if choice else _said(sample)),
                **{key: values[key] for key in ("doc", "target", "metadata") if key in values},
            },
            record.place,
        )
    if pick is not None and not filters & {pick, "none"}:
        raise JudgeSenseError(
            f"{path}: unknown filter {pick!r}; choose one of {', '.join(sorted(filters))}"
        )


def _requests(arguments: Any) -> list[list[Any]]:
    """The requests' arguments, from ``{"gen_args_0": {"arg_0": ...}}`` or plain lists."""
    requests = arguments.values() if isinstance(arguments, dict) else arguments
    return [list(r.values() if isinstance(r, dict) else r) for r in requests]


def _is_choice(requests: Sequence[Sequence[Any]]) -> bool:
    return all(len(r) > 1 and isinstance(r[1], str) for r in requests)


def _samples(path: Path) -> Iterator[tuple[Sample, Record]]:
    """The samples and their lines. Raises as `read`."""
    for record in read_json_lines(path):
        yield fit(Sample, record.values, record.place, "a sample of lm-eval 0.4"), record


def _targets_are_indices(path: Path) -> bool | None:
    """Whether a target such as "3" is an index from 0 or the text of an option; None if unknown.

    The file writes both alike. Where options are numbers, ``acc`` decides: it is 1 only if the most
    likely option is the target. Raises JudgeSenseError for a line that is not a sample.
    """
    fits = {True: True, False: True}
    for sample, record in _samples(path):
        requests = _requests(sample.arguments)
        if "target" not in sample.model_fields_set or not _is_choice(requests):
            continue
        options, target = _options(requests), str(sample.target).strip()
        readings = {
            True: int(target) if target.isdecimal() else -1,
            False: options.index(target) if target in options else -1,
        }
        values = _values(sample.resps, options, record.place)
        best = values.index(max(values)) if values else -1
        for by_index, gold in readings.items():
            right = "acc" not in sample.model_fields_set or sample.acc == float(gold == best)
            if not 0 <= gold < len(options) or not right:
                fits[by_index] = False
    return fits[True] if fits[True] != fits[False] else None


def _options(requests: Sequence[Sequence[Any]]) -> list[str]:
    return [str(request[1]).strip() for request in requests]


def _chosen(
    sample: Sample, requests: Sequence[Sequence[Any]], by_index: bool | None, place: str
) -> dict[str, Any]:
    """A multiple-choice sample: options and their log-likelihoods in nats."""
    options = _options(requests)
    if len(set(options)) != len(options):
        raise JudgeSenseError(
            f"{place}: two options have the same text ({', '.join(options)}); is the choice in the "
            "context rather than in the continuation?"
        )
    logprobs = dict(zip(options, _values(sample.resps, options, place), strict=True))
    target = "" if sample.target is None else str(sample.target).strip()
    gold = None if by_index is None or not target else options[int(target)] if by_index else target
    return {"scoring": "options", "option_logprobs": logprobs, "gold": gold}


def _values(responses: Sequence[Any], options: Sequence[str], place: str) -> list[float]:
    """The log-likelihood of each option."""
    try:
        values = [float(_first(_first(response))) for response in responses]
    except (TypeError, ValueError, OverflowError) as error:
        raise JudgeSenseError(
            f"{place}, resps: expected one [log-likelihood, is_greedy] per option ({error})"
        ) from error
    if len(values) != len(options):
        raise JudgeSenseError(
            f"{place}, resps: {len(values)} log-likelihoods for {len(options)} options"
        )
    return values


def _said(sample: Sample) -> dict[str, Any]:
    """A generated sample: its text and what the filter read in it."""
    filtered = _first(sample.filtered_resps)
    text = _first(_first(sample.resps))
    unread = filtered is None or str(filtered).strip() == _INVALID
    return {
        "scoring": "generate",
        "raw_text": None if text is None else str(text),
        "raw_decision": None if unread else str(filtered),
        "status": "unclear" if unread else None,
        "gold": str(sample.target).strip() if sample.target else None,
    }


def _first(value: Any) -> Any:
    return value[0] if isinstance(value, list) and value else value


def _model(path: Path, date: str | None) -> str:
    """The model's name in the results file of the same run, or else the folder's name."""
    results = path.with_name(f"results_{date}.json")
    if date and results.is_file():
        record = fit(Results, read_json(results), str(results), "lm-eval's results")
        arguments = record.model_args
        named = arguments.get("pretrained") if isinstance(arguments, Mapping) else None
        return str(named or record.model_name or path.parent.name)
    return path.resolve().parent.name


IMPORTER = Importer(
    name="lm-eval",
    summary="files of lm-eval --log_samples, or their folder",
    patterns=("samples_*.jsonl",),
    read=read,
    options=("pick",),
)
