"""Answers from judges, each prompt asked once: the run folder behind a search."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any, NamedTuple

import pyarrow as pa

from judgesense.ask.answers import AnswersSoFar, Column
from judgesense.benchmark import Benchmark, table_of_prompts
from judgesense.log.array import label_logprobs
from judgesense.log.folder import PAIR_SCHEMA, save_run
from judgesense.log.run_folder import RunFolder
from judgesense.log.schema import part_files, read_log
from judgesense.pipeline.first_prompts import FEW, first_answers
from judgesense.pipeline.settings import Note
from judgesense.statistics.arrays import Codes
from judgesense.tasks import Item, Prompt, Template, render
from judgesense_dataset.reply_labels import field_to_read, reply_schema
from local_judges.protocol import Answer
from local_judges.runner import run_judge

Key = tuple[str, str, str]
"""Judge, scoring and prompt."""


class _Wanted(NamedTuple):
    """A prompt to ask for a column on an item."""

    prompt: Prompt
    column: Column
    item: int


class PromptStore:
    """Fill in answers from a run folder, and ask judges for those that it lacks.

    Every prompt is asked once per judge and scoring, whatever the budget or the seed: a search that
    was interrupted, or that gets more budget, goes on from the answers in the folder.

    Args:
        run: the folder; its ``asked`` names the data.
        judges: the loaded judges, by their numbers.
        answers: the answers to fill in; ``shown`` gives its items as a wording shows them in an
            order.
    """

    def __init__(
        self,
        run: RunFolder,
        judges: Sequence[Any],
        answers: AnswersSoFar,
        shown: Sequence[Callable[[Template, str], Item]],
        note: Note,
    ) -> None:
        self.run, self.judges, self.answers = run, judges, answers
        self.shown, self.note = shown, note
        self.prompts: dict[str, Prompt] = {}
        self.rows: dict[Key, Mapping[str, Any]] = {}
        self.failed = 0
        texts = [(w.template.text, w.template.layout) for w in answers.wordings]
        self.samples = [texts[:n].count(text) for n, text in enumerate(texts)]
        self._read()
        numbers = [int(path.name.split("-")[1]) for path in part_files(run.folder)]
        self._turn = max(numbers, default=-1) + 1

    def _read(self) -> None:
        if part_files(self.run.folder):
            for row in read_log(self.run.folder).to_pylist():
                if row["status"] != "error":
                    self.rows[row["judge"], row["scoring"], row["prompt_id"]] = row

    def ask(self, grid: Mapping[Column, Codes]) -> None:
        """The answers to columns, each on some items; those in the folder are not asked again."""
        wanted = [each for column, items in grid.items() for each in self._wanted(column, items)]
        wanted.sort(key=lambda each: each.column[0])
        for judge, prompts in groupby(wanted, key=lambda each: each.column[0]):
            self._ask_judge(judge, list(prompts))

    def _wanted(self, column: Column, items: Codes) -> Iterable[_Wanted]:
        _, wording, order = column
        task, template = self.answers.task, self.answers.wordings[wording].template
        for item in items[self.answers.unanswered(column, items)].tolist():
            shown = self.shown[item](template, task.orders[order])
            prompt = render(task, template, shown, task.orders[order])
            if sample := self.samples[wording]:
                prompt = replace(prompt, prompt_id=f"{prompt.prompt_id}-{sample}")
            yield _Wanted(prompt, column, item)

    def _ask_judge(self, number: int, wanted: Sequence[_Wanted]) -> None:
        """Ask a judge for what the folder lacks, and fill in its answers."""
        asked = self.answers.judges[number]
        judge, scoring = self.judges[asked.judge], asked.scoring
        self.prompts |= {each.prompt.prompt_id: each.prompt for each in wanted}
        if fresh := [
            each.prompt
            for each in wanted
            if (judge.name, scoring, each.prompt.prompt_id) not in self.rows
        ]:
            known: Mapping[str, Answer] = {}
            if not any(key[:2] == (judge.name, scoring) for key in self.rows):
                plain = [each.prompt for each in wanted if each.column[1] == 0]
                first = self._benchmark((plain or fresh)[: 4 * FEW])
                known = first_answers(judge, first, [scoring], self.run.folder)
            run_judge(
                judge,
                self._benchmark(fresh),
                self.run.folder,
                [scoring],
                judge_index=self._turn,
                begin=lambda: save_run(self.run.folder, self.run.record),
                note=self.note,
                known=known,
            )
            self._turn += 1
            self._read()
        for prompt, column, item in wanted:
            row = self.rows.get((judge.name, scoring, prompt.prompt_id), {})
            self.failed += not row
            options = {each["option"]: each["logprob"] for each in row.get("option_logprobs") or ()}
            label_map = self.answers.wordings[column[1]].template.label_map
            labels, verdict = self.answers.task.labels, row.get("raw_decision")
            self.answers.record(column, item, label_logprobs(label_map, labels, options, verdict))

    def _benchmark(self, prompts: Sequence[Prompt]) -> Benchmark:
        task, templates = self.answers.task, [each.template for each in self.answers.wordings]
        aliases = {each.template_id: each.aliases for each in templates if each.aliases}
        table = table_of_prompts(prompts)
        if any(self.samples):
            asked = {t.template_id: n for t, n in zip(templates, self.samples, strict=True)}
            samples = [asked[prompt.template_id] for prompt in prompts]
            table = table.append_column("sample", pa.array(samples))
        return Benchmark(
            {task.name: task},
            table,
            PAIR_SCHEMA.empty_table(),
            {"name": "improve"},
            aliases,
            fields={
                each.template_id: field for each in templates if (field := field_to_read(each))
            },
            schemas={each.template_id: text for each in templates if (text := reply_schema(each))},
        )

    @property
    def spent_usd(self) -> float | None:
        """US dollars of all answers in the folder; None if none has a cost."""
        costs = [row["cost_usd"] for row in self.rows.values() if row["cost_usd"] is not None]
        return float(sum(costs)) if costs else None
