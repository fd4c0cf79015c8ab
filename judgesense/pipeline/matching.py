"""Score a response log: by a heuristic matcher and, if asked, by a judge that grades."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from judgesense.errors import JudgeSenseError
from judgesense.files.disk import require_writable
from judgesense.matching import AnswerMatch, match_answers
from judgesense.matching.scores import Disagreement, ModelScores, disagreement, score_models
from judgesense.pipeline.response_tables import (
    TARGETS,
    LoggedResponse,
    option_texts,
    read_rows,
)
from local_judges.llm_matcher import MAX_TOKENS, JudgedMatches, check_prompt, judge_matches
from local_judges.registry import JudgeSpec, resolve


@dataclass(frozen=True)
class Matched:
    """A scored response log: ``tables`` has the scores by matcher, the heuristic first.

    ``failed`` has one line per question without a response. ``judged`` and ``differ`` are None
    without a grader.
    """

    rows: list[LoggedResponse]
    failed: list[str]
    result: AnswerMatch
    tables: dict[str, list[ModelScores]]
    judged: JudgedMatches | None = None
    differ: Disagreement | None = None

    @property
    def incomplete(self) -> bool:
        """Whether a question has no response, or the grader gave no verdict on one."""
        return bool(self.failed or (self.judged is not None and self.judged.n_unread))

    def to_dict(self) -> dict[str, Any]:
        """The contents of ``match.json``, less the source: scores by model and template."""
        result, judged, differ = self.result, self.judged, self.differ
        return {
            "method": result.method,
            "n": result.n,
            "n_unread": result.n_unread,
            "problems": result.problem_counts,
            "scores": {
                name: [asdict(each) for each in table] for name, table in self.tables.items()
            },
            "judge": None if judged is None else {"name": judged.judge, "prompt": judged.prompt},
            "disagreement": None if differ is None else differ.as_dict(),
        }


def match_log(
    source: Path,
    references: Path | None = None,
    *,
    method: str = "choice",
    columns: Sequence[str] = (),
    grader: str | None = None,
    prompt: str = "figure-3",
    encoding: str = "utf-8",
    out: Path | None = None,
    matcher_options: Mapping[str, Any] | None = None,
    **grader_options: Any,
) -> Matched:
    """Score a response log against its references: ``judgesense match`` in Python.

    Args:
        source: a folder of ``judgesense respond``, a table, or a folder of Parquet parts.
        references: a table of references, for a log that has none.
        method: choice, f1, math or exact.
        columns: ``TARGET=COLUMN`` texts, about ``references`` if given, else about ``source``.
        grader: a judge that grades every response too.
        prompt: the grader's prompt: figure-3, gpqa or a text file.
        encoding: of CSV and JSONL files.
        out: a folder for ``match.json`` and ``matches.parquet``.
        matcher_options: the method's own, see :func:`judgesense.matching.match_answers`.
        grader_options: the engine's, see :mod:`local_judges.options`.

    Raises:
        JudgeSenseError: for bad input, before a model is loaded.
    """
    from judgesense.importers.columns import parse_columns

    named = parse_columns(columns, TARGETS)
    read = read_rows(source, references, named, encoding)
    rows = read.rows
    options = dict(matcher_options or {})
    if method == "choice" and (shown := option_texts(rows)) is not None:
        options["options"] = shown
    spec = None if grader is None else grader_of(grader, rows, prompt, grader_options)
    if out is not None:
        require_writable(out)
    texts, accepted = [row.text for row in rows], [row.reference for row in rows]
    result = match_answers(texts, accepted, method, **options)
    models, templates = [row.model for row in rows], [row.template_id for row in rows]
    tables = {method: score_models(models, templates, result.per_example)}
    found = Matched(rows, read.failed, result, tables)
    if spec is not None:
        judge = spec.load()
        try:
            questions = [row.question or "" for row in rows]
            judged = judge_matches(judge, questions, accepted, texts, prompt)
        finally:
            judge.close()
        tables[judged.judge] = score_models(models, templates, judged.per_example)
        differ = disagreement(result.per_example, judged.per_example)
        found = replace(found, judged=judged, differ=differ)
    if out is not None:
        _write(out, source, found)
    return found


def grader_of(
    grader: str, rows: Sequence[LoggedResponse], prompt: str, options: Mapping[str, Any]
) -> JudgeSpec:
    """The grader, resolved but not loaded, with room for a verdict and its reason.

    Raises JudgeSenseError for an unknown grader or prompt and for a row without a question.
    """
    check_prompt(prompt)
    if missing := [row.place for row in rows if row.question is None]:
        raise JudgeSenseError(
            f"{missing[0]}: no question, which a grader needs (--columns question=COLUMN)"
        )
    spec = resolve(grader, **{"system_prompt": "", **options})
    if options.get("max_tokens") is not None:
        return spec
    # A reasoning model needs what its entry allows.
    cap = max(MAX_TOKENS, spec.options.get("max_tokens", 0))
    return replace(spec, options={**spec.options, "max_tokens": cap})


def _write(out: Path, source: Path, found: Matched) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    result, judged = found.result, found.judged
    summary = {"source": source.name, **found.to_dict()}
    table = {
        "model": [row.model for row in found.rows],
        "template_id": [row.template_id for row in found.rows],
        "item_id": [row.item_id for row in found.rows],
        "score": result.per_example,
        "reading": pa.array(result.readings, pa.string()),
        "problem": result.problems,
    }
    if judged is not None:
        table["judged"] = pa.array(judged.per_example, pa.float64())
        table["judged_outcome"] = judged.outcomes
        table["judge_reason"] = judged.reasons
    try:
        (out / "match.json").write_text(json.dumps(summary, indent=2, ensure_ascii=False), "utf-8")
        # Absolute: Arrow takes a relative path that begins like a URL for one.
        path = (out / "matches.parquet").absolute()
        pq.write_table(pa.table(table), path, compression="zstd")
    except OSError as error:
        raise JudgeSenseError(f"cannot write to {out}: {error.strerror or error}") from error
