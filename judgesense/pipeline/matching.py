"""Score a response log: by a heuristic matcher and, if asked, by a judge that grades."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BeforeValidator

from judgesense.answers.matching import AnswerMatch, match_answers
from judgesense.answers.matching.scores import ModelScores, disagreement, score_models
from judgesense.errors import JudgeSenseError
from judgesense.files.disk import require_folder, writing
from judgesense.files.documents import Shape, Text, invalid, parse_json, validate
from judgesense.files.tables import read_table_rows
from judgesense.files.typed_rows import Id, SomeId, as_id
from judgesense.log.responses import PARTS, require_finished
from local_judges.llm_matcher import MAX_TOKENS, JudgedMatches, check_prompt, judge_matches
from local_judges.registry import JudgeSpec, resolve

if TYPE_CHECKING:
    from local_judges.responder import Question


def _parse_list(value: Any) -> Any:
    """Option texts may be a JSON list in a cell; an empty cell means none."""
    if isinstance(value, str) and value:
        try:
            value = parse_json(value, "options")
        except JudgeSenseError as error:
            raise invalid("input should be a JSON list of texts") from error
    return value if value not in ("", []) else None


SomeText = Annotated[str | None, BeforeValidator(as_id)]
Texts = Annotated[list[Annotated[str, BeforeValidator(as_id)]] | None, BeforeValidator(_parse_list)]
Answers = Annotated[
    Annotated[str, BeforeValidator(as_id)] | list[Annotated[str, BeforeValidator(as_id)]] | None,
    BeforeValidator(lambda value: None if value in ("", []) else value),
]


class _QuestionRow(Shape):
    item_id: Id
    template_id: Id
    message: Text
    options: Texts = None


class ResponseRow(Shape):
    """A row of a response log with its reference: an answer, or a list of accepted answers."""

    model: SomeId = None
    template_id: SomeId = None
    item_id: SomeId = None
    text: SomeText = None
    finish_reason: SomeId = None
    error: SomeText = None
    reference: Answers = None
    question: SomeText = None
    options: Texts = None
    place: str = ""

    @property
    def truncated(self) -> bool:
        """Whether the response was cut off at the token cap."""
        return self.finish_reason in ("length", "max_tokens")


TARGETS = (*(name for name in ResponseRow.model_fields if name != "place"), "prompt_id", "tokens")
"""Columns of a response log and what matching adds: the reference, and for some methods the
question and the options' texts."""


def read_questions(path: Path) -> Iterator[Question]:
    """The questions in a table of ``item_id, template_id, message`` and, for choices, ``options``.

    Raises JudgeSenseError naming file, row and column.
    """
    from local_judges.responder import Question

    for row, place in _read_rows(path, _QuestionRow, {}):
        values = validate(_QuestionRow, row, place, "a question")
        yield Question(
            values.item_id, values.template_id, values.message, tuple(values.options or ())
        )


def read_responses(
    source: Path, references: Path | None, columns: Mapping[str, str]
) -> tuple[list[ResponseRow], list[str]]:
    """The rows of a response log to match, and one line for each row without a response.

    ``references`` is a table of ``item_id, reference`` (with ``question`` and ``options`` where a
    method needs them, and ``template_id`` where they differ by template); ``columns`` then name its
    columns, else the log's.

    Raises JudgeSenseError, with file, row and column, for what is missing; for a run that is not
    finished, and for a log in which every row failed.
    """
    require_finished(source.parent if source.name == PARTS else source)
    log = source / PARTS if (source / PARTS).is_dir() else source
    files = sorted(log.rglob("*.parquet")) if log.is_dir() else [log]
    if not files:
        raise JudgeSenseError(f"{source} holds no Parquet files")
    known = None if references is None else _read_references(references, columns)
    rows, failed = list[ResponseRow](), list[str]()
    for path in files:
        for values, place in _read_rows(path, ResponseRow, {} if known else columns):
            row = validate(ResponseRow, {**values, "place": place}, place, "a response")
            if row.text is None and row.error is not None:
                failed.append(f"{row.model} {row.template_id} {row.item_id}: {row.error}")
                continue
            if known is not None:
                keys = ((row.item_id, row.template_id), (row.item_id, None))
                reference = next((known[key] for key in keys if key in known), None)
                if reference is None:
                    raise JudgeSenseError(
                        f"{place}: {references} has no reference for item {row.item_id!r}, "
                        f"template {row.template_id!r}"
                    )
                row = row.model_copy(update=reference)
            _require(row, place, ("model", "template_id", "text", "reference"), values)
            rows.append(row.model_copy(update={"item_id": row.item_id or place.split(" ")[-1]}))
    if not rows:
        raise JudgeSenseError(f"{source}: no row has a response; the first error: {failed[0]}")
    if any(row.options is not None for row in rows):
        for row in rows:
            _require(row, row.place, ("options",), {})
    return rows, failed


def _read_rows(
    path: Path, shape: type[Shape], columns: Mapping[str, str]
) -> Iterator[tuple[dict[str, Any], str]]:
    """The values of a shape's fields in each row of a table, and the row's place."""
    from judgesense.importers.columns import ColumnMap

    mapping = ColumnMap(columns)
    for rows in read_table_rows(path):
        columns_of = {
            name: values
            for name in shape.model_fields
            if (values := mapping.column(rows, name)) is not None
        }
        for index, place in enumerate(rows.places):
            yield {name: values[index] for name, values in columns_of.items()}, place


def _require(row: Shape, place: str, names: Sequence[str], values: Mapping[str, Any]) -> None:
    for name in names:
        if getattr(row, name) is None:
            hint = " or add a table with --references" if name == "reference" else ""
            has = f"; the row has the columns {', '.join(values)}" if values else ""
            raise JudgeSenseError(
                f"{place}: no {name}; name its column with --columns {name}=COLUMN{hint}{has}"
            )


def _read_references(
    path: Path, columns: Mapping[str, str]
) -> dict[tuple[str | None, str | None], dict[str, Any]]:
    """The references in a table by item, or by item and template where it names templates."""
    references: dict[tuple[str | None, str | None], dict[str, Any]] = {}
    for values, place in _read_rows(path, ResponseRow, columns):
        row = validate(ResponseRow, values, place, "a reference")
        _require(row, place, ("item_id", "reference"), values)
        reference = row.model_dump(include={"reference", "question", "options"}, exclude_none=True)
        if references.setdefault((row.item_id, row.template_id), reference) != reference:
            raise JudgeSenseError(
                f"{place}: item {row.item_id!r} has a different reference, question or options in "
                "an earlier row; keep one row per item, or add a column template_id"
            )
    return references


@dataclass(frozen=True)
class Matched:
    """A scored response log: ``tables`` has the scores by matcher, the heuristic first.

    ``failed`` has one line per question without a response. ``judged`` and ``differ``
    (:func:`judgesense.answers.matching.scores.disagreement`) are None without a grader.
    """

    rows: list[ResponseRow]
    failed: list[str]
    result: AnswerMatch
    tables: dict[str, list[ModelScores]]
    judged: JudgedMatches | None = None
    differ: dict[str, list[int]] | None = None

    @property
    def incomplete(self) -> bool:
        """Whether a question has no response, or the grader gave no verdict on one."""
        return bool(self.failed or (self.judged is not None and self.judged.n_unread))

    def to_dict(self) -> dict[str, Any]:
        """The contents of ``match.json``, less the source: scores by model and template."""
        result, judged, differ = self.result, self.judged, None
        if self.differ is not None:
            counts = {kind: len(rows) for kind, rows in self.differ.items()}
            n_judged = result.n - counts["no_verdict"]
            n_different = counts["missed_by_heuristic"] + counts["only_heuristic"]
            rate = n_different / n_judged if n_judged else None
            differ = {"n": result.n, **counts, "rate": rate}
        return {
            "method": result.method,
            "n": result.n,
            "n_unread": result.n_unread,
            "problems": result.problem_counts,
            "scores": self.tables,
            "judge": None if judged is None else {"name": judged.judge, "prompt": judged.prompt},
            "disagreement": differ,
        }


def match_log(
    source: Path,
    references: Path | None = None,
    *,
    method: str = "choice",
    columns: Sequence[str] = (),
    grader: str | None = None,
    prompt: str = "figure-3",
    out: Path | None = None,
    matcher_options: Mapping[str, Any] | None = None,
    **grader_options: Any,
) -> Matched:
    """Score a response log (a folder of :func:`judgesense.respond`, a table, or a folder of Parquet
    parts) against its references: ``judgesense match``.

    ``columns`` are ``TARGET=COLUMN`` texts for ``references`` if given, else for ``source``.
    ``matcher_options`` are those of :func:`judgesense.answers.matching.match_answers`,
    ``grader_options`` the engine's. Raises JudgeSenseError for bad input, before a model is loaded.
    """
    from judgesense.importers.columns import parse_columns

    rows, failed = read_responses(source, references, parse_columns(columns, TARGETS))
    options = dict(matcher_options or {})
    if method == "choice" and rows[0].options is not None:
        options["options"] = [row.options for row in rows]
    spec = None if grader is None else grader_of(grader, rows, prompt, grader_options)
    if out is not None:
        require_folder(out)
    responses = [row.text or "" for row in rows]
    accepted = [row.reference or "" for row in rows]
    result = match_answers(responses, accepted, method, **options)
    models, templates = [row.model or "" for row in rows], [row.template_id or "" for row in rows]
    tables = {method: score_models(models, templates, result.per_example)}
    matched = Matched(rows, failed, result, tables)
    if spec is not None:
        judge = spec.load()
        try:
            questions = [row.question or "" for row in rows]
            judged = judge_matches(judge, questions, accepted, responses, prompt)
        finally:
            judge.close()
        tables[judged.judge] = score_models(models, templates, judged.per_example)
        disagreements = disagreement(result.per_example, judged.per_example)
        matched = replace(matched, judged=judged, differ=disagreements)
    if out is not None:
        _write(out, source, matched)
    return matched


def grader_of(
    grader: str, rows: Sequence[ResponseRow], prompt: str, options: Mapping[str, Any]
) -> JudgeSpec:
    """The grader, resolved but not loaded, with room for a verdict and its reason.

    Raises JudgeSenseError for an unknown grader or prompt and for a row without a question.
    """
    check_prompt(prompt)
    for row in rows:
        if row.question is None:
            raise JudgeSenseError(
                f"{row.place}: a grader needs the question: --columns question=COLUMN"
            )
    spec = resolve(grader, **{"system_prompt": "", **options})
    if options.get("max_tokens") is not None:
        return spec
    # A reasoning model needs what its entry allows.
    cap = max(MAX_TOKENS, spec.options.get("max_tokens", 0))
    return replace(spec, options={**spec.options, "max_tokens": cap})


def _write(out: Path, source: Path, matched: Matched) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows, result, judged = matched.rows, matched.result, matched.judged
    summary = {"source": source.name, **matched.to_dict()}
    table = {
        name: [getattr(row, name) for row in rows] for name in ("model", "template_id", "item_id")
    }
    table |= {
        "score": result.per_example,
        "reading": pa.array(result.readings, pa.string()),
        "problem": result.problems,
    }
    if judged is not None:
        table["judged"] = pa.array(judged.per_example, pa.float64())
        table["judged_outcome"] = judged.outcomes
        table["judge_reason"] = judged.reasons
    with writing(out):
        (out / "match.json").write_text(json.dumps(summary, indent=2, ensure_ascii=False), "utf-8")
        # Absolute: Arrow takes a relative path that begins like a URL for one.
        path = (out / "matches.parquet").absolute()
        pq.write_table(pa.table(table), path, compression="zstd")
