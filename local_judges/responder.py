"""Models that answer questions in free text, on the engines of the judges.

Answers go to a response log (:mod:`judgesense.log.responses`) in
``DIR/responses/part-*.parquet``, next to ``DIR/run.json``. Interrupt a run at any time; the same
call resumes it.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from judgesense.errors import JudgeSenseError
from judgesense.log.folder import RETRIES, folder_lock
from judgesense.log.responses import PARTS, SCHEMA, conform_responses, read_responses
from judgesense.log.run_folder import RunFolder
from judgesense.tasks import dump_label_map
from judgesense.tasks import prompt_id as id_of
from local_judges.callable_judge import CallableJudge
from local_judges.judge_files import entries
from local_judges.outcome import JudgeOutcome, merge_outcomes
from local_judges.parts import ask_parts, set_aside_unplanned
from local_judges.plan import Part, Requests, plan_parts, take_rows
from local_judges.protocol import Answer, Judge
from local_judges.registry import JudgeSpec, resolve
from local_judges.rows import PartLog, logprob_column
from local_judges.runner import require_scorings

MAX_TOKENS = 512

_QUESTIONS = pa.schema(
    [(name, pa.string()) for name in ("prompt_id", "item_id", "template_id", "text", "label_map")]
)


@dataclass(frozen=True, slots=True)
class Question:
    """One user message to a responder, with the item and the template that it comes from.

    With ``options``, the answers of a multiple-choice question, the log also holds the
    log-probability of each option if the engine provides it.

    >>> Question("capital-fr", "t1", "What is the capital of France?").prompt_id
    '115049a298532be2'
    """

    item_id: str
    template_id: str
    message: str
    options: tuple[str, ...] = ()

    @property
    def prompt_id(self) -> str:
        """The hash of the message, as for a judge's prompt."""
        return id_of(self.message)


def respond(
    responder: Any,
    questions: Iterable[Question],
    out: str | Path,
    *,
    max_tokens: int = MAX_TOKENS,
    temperature: float | None = None,
    seed: int = 0,
    repeats: int = 1,
    note: Callable[[str], None] | None = None,
    **options: Any,
) -> pa.Table:
    """Let a model answer questions in free text: ``judgesense match --responder`` in Python.

    Args:
        responder: a registered name, Hub id, model folder or GGUF file; the same resolved with
            options (`registry.resolve`); a function that takes a
            list of messages and returns a text for each; or a loaded judge, which keeps its own
            decoding.
        questions: the questions; a message that several of them share is asked once and logged
            for each.
        out: the folder of the run. Call again with the same folder to resume.
        max_tokens: the maximum number of tokens in an answer.
        temperature: 0 is greedy; above it each repeat is sampled separately. The default is the
            value in the judge file of a named responder, else 0.
        seed: the seed of the samples and of the batches of later repeats.
        repeats: how often each question is asked.
        note: receives messages for the user; by default they go to stderr.
        options: options of the engine (``engine``, ``base_url``, ``dtype``, ``system_prompt``,
            ...). No system prompt is sent unless you set one here or in a judge file.

    Returns:
        The response log. A question without an answer is a row with ``error``.

    Raises:
        JudgeSenseError: for bad input, before a model is loaded where possible.

    >>> import tempfile
    >>> questions = [Question("sum-1", "t1", "1 + 1 = ?"), Question("sum-2", "t1", "1 + 2 = ?")]
    >>> adds = lambda messages: [str(int(m[0]) + int(m[4])) for m in messages]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     respond(adds, questions, folder)["text"].to_pylist()
    ['2', '3']
    """
    out, note = Path(out), note or partial(print, file=sys.stderr)
    if repeats < 1:
        raise JudgeSenseError(f"repeats must be at least 1, got {repeats}")
    table = _table_of(questions)
    decoding = {"max_tokens": max_tokens, "temperature": temperature, "seed": seed}
    spec = _resolve_responder(responder, decoding, options)
    terms = {
        "responder": spec.identity() if isinstance(spec, JudgeSpec) else {"judge": spec.name},
        "questions": {"n": table.num_rows, "sha256": _digest(table)},
        "settings": {"repeats": repeats, "seed": seed},
    }
    with folder_lock(out):
        run = RunFolder(out, terms, key="responder", parts=PARTS)
        if run.is_finished() and not run.may_retry(RETRIES):
            return read_responses(out)
        run.repair(note)
        run.reopen()
        loaded = spec.load() if isinstance(spec, JudgeSpec) else spec
        try:
            run.describe()
            run.enter(loaded.name, describe=dict(loaded.describe()))
            retries = run.retries_of(loaded.name) < RETRIES
            outcome = _ask(loaded, table, run, repeats, seed, note, retries)
        finally:
            loaded.close()
        run.leave(
            outcome.seconds,
            outcome.counts,
            outcome.failed,
            rows=outcome.rows,
            retried=outcome.retried > 0,
        )
        run.finish()
    if outcome.failed:
        note(f"{len(outcome.failed)} questions have no answer, e.g. {outcome.failed[0]}")
    return read_responses(out)


def _resolve_responder(
    responder: Any, decoding: Mapping[str, Any], options: Mapping[str, Any]
) -> JudgeSpec | Judge:
    defaults = {"system_prompt": "", "temperature": 0.0}
    settings = {k: value for k, value in {**options, **decoding}.items() if value is not None}
    if isinstance(responder, (str, Path)):
        entry = entries().get(str(responder))
        entry_options = entry.options if entry else {}
        defaults |= {key: entry_options[key] for key in defaults if key in entry_options}
        return resolve(str(responder), **{**defaults, **settings})
    if isinstance(responder, JudgeSpec):
        return replace(responder, options={**defaults, **responder.options, **settings})
    if isinstance(responder, Judge) and options:
        raise JudgeSenseError(
            f"{responder.name} is already loaded; set {', '.join(sorted(options))} when you load it"
        )
    if not isinstance(responder, Judge) and not callable(responder):
        raise JudgeSenseError(
            "responder must be a name, a Hub id, a path, a function or a loaded judge, got "
            f"{type(responder).__name__}"
        )
    judge = responder if isinstance(responder, Judge) else CallableJudge(responder, **options)
    require_scorings(judge.name, judge.scorings, ["generate"])
    return judge


def _table_of(questions: Iterable[Question]) -> pa.Table:
    """The questions as a table. Raises JudgeSenseError naming the question that is invalid."""
    columns: dict[str, list[str]] = {name: [] for name in _QUESTIONS.names}
    cells: set[tuple[str, str]] = set()
    label_maps: dict[str, str] = {}
    for number, question in enumerate(questions, 1):
        place = f"question {number} (item {question.item_id!r}, {question.template_id!r})"
        for name in ("item_id", "template_id", "message"):
            value = getattr(question, name)
            if not isinstance(value, str) or not value:
                raise JudgeSenseError(f"{place}: {name} must be text, got {value!r}")
        cell = (question.item_id, question.template_id)
        if cell in cells:
            raise JudgeSenseError(f"{place}: this item and template appear twice")
        cells.add(cell)
        if question.options and len(set(question.options)) < len(question.options):
            raise JudgeSenseError(f"{place}: an option appears twice")
        label_map = dump_label_map({o: o for o in question.options}) if question.options else ""
        identity = question.prompt_id
        if label_maps.setdefault(identity, label_map) != label_map:
            raise JudgeSenseError(
                f"{place}: an earlier question has this message with other options"
            )
        row = (identity, question.item_id, question.template_id, question.message, label_map)
        for column, value in zip(columns.values(), row, strict=True):
            column.append(value)
    if not cells:
        raise JudgeSenseError("no questions to ask")
    return pa.table(columns, schema=_QUESTIONS)


def _digest(table: pa.Table) -> str:
    """The SHA-256 of all questions, in their order."""
    digest = hashlib.sha256()
    for batch in table.drop_columns(["prompt_id"]).to_batches(max_chunksize=4096):
        for row in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            digest.update(json.dumps(row).encode())
    return digest.hexdigest()


def _ask(
    responder: Judge,
    table: pa.Table,
    run: RunFolder,
    repeats: int,
    seed: int,
    note: Callable[[str], None],
    retries: bool,
) -> JudgeOutcome:
    """Ask the questions without an answer; first those with options, which are also scored."""
    outcomes = []
    has_options = np.array([bool(text) for text in table["label_map"].to_pylist()])
    for index, is_chosen in enumerate((has_options, ~has_options)):
        if not is_chosen.any():
            continue
        rows = table.filter(pa.array(is_chosen))
        wanted_scorings = {"generate", "options"} if index == 0 else {"generate"}
        if missing := wanted_scorings - responder.scorings:
            note(f"{responder.name} does not support {missing.pop()} scoring; it only writes text")
        scorings = frozenset(wanted_scorings) & responder.scorings
        requests = Requests(rows)
        parts = plan_parts(
            responder, requests, scorings, judge_index=index, repeats=repeats, seed=seed
        )
        table_of = partial(_part_table, model=responder.name, questions=rows, requests=requests)
        log = PartLog(run.folder / PARTS, 1, conform_responses, table_of)
        run.begin()
        set_aside_unplanned(log.folder, parts, index, note)
        outcomes.append(ask_parts(responder, requests, parts, scorings, log, note, retries=retries))
    return merge_outcomes(outcomes)


def _part_table(
    part: Part, answers: Mapping[int, Answer], model: str, questions: pa.Table, requests: Requests
) -> pa.Table:
    """The rows of a part: by request in the planned order, then by question."""
    row_indices, answer_of = requests.rows_of(part)
    question_columns = take_rows(questions, row_indices)
    part_answers = [answers[index] for index in part.requests]
    row_answers: Sequence[Answer] = [part_answers[answer] for answer in answer_of.tolist()]
    columns = {
        "model": pa.repeat(model, len(row_answers)),
        **{name: question_columns[name] for name in ("prompt_id", "item_id", "template_id")},
        "text": [None if a.error is not None else a.text or "" for a in row_answers],
        "finish_reason": [finish_reason(a) for a in row_answers],
        "tokens": [a.output_tokens for a in row_answers],
        "repeat": pa.repeat(pa.scalar(part.repeat, pa.int32()), len(row_answers)),
        "input_tokens": [a.input_tokens for a in row_answers],
        "option_logprobs": logprob_column(
            part_answers, answer_of, question_columns["label_map"].to_pylist()
        ),
        "latency_s": [a.latency_s for a in row_answers],
        "cost_usd": [a.cost_usd for a in row_answers],
        "error": [a.error for a in row_answers],
    }
    return pa.table(columns, schema=SCHEMA)


def finish_reason(answer: Answer) -> str:
    """Why the text of an answer ends, as in :data:`judgesense.log.responses.SCHEMA`."""
    if answer.error is not None:
        return "error"
    if answer.refused:
        return "refusal"
    return "length" if answer.truncated else "stop"
