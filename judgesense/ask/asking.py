"""Get answers from judges, each prompt once: the run folder behind a search."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from judgesense.ask.candidates import Answers, Column
from judgesense.benchmark import Benchmark, table_of_prompts
from judgesense.log.array import label_logprobs
from judgesense.log.folder import PAIR_SCHEMA, RunFolder, save_run
from judgesense.log.schema import part_files, read_log
from judgesense.pipeline.settings import Note
from judgesense.statistics.arrays import Codes
from judgesense.tasks import Item, Prompt, Template, render
from local_judges.runner import run_judge

Key = tuple[str, str, str]
"""Judge, scoring and prompt."""


class Asking:
    """Fill a table of answers from a run folder, and ask judges for the answers that it lacks.

    Every prompt is asked once per judge and scoring, whatever the budget or the seed: a search that
    was interrupted, or that gets more budget, goes on from the answers in the folder.

    Args:
        run: the folder; its ``asked`` names the data.
        judges: the loaded judges, by the voices' numbers.
        answers: the table to fill; ``shown`` gives its items as a wording shows them in an order.
    """

    def __init__(
        self,
        run: RunFolder,
        judges: Sequence[Any],
        answers: Answers,
        shown: Sequence[Callable[[Template, str], Item]],
        note: Note,
    ) -> None:
        self.run, self.judges, self.answers = run, judges, answers
        self.shown, self.note = shown, note
        self.prompts: dict[str, Prompt] = {}
        self.known: dict[Key, Mapping[str, Any]] = {}
        self.failed = 0
        self._read()
        numbers = [int(path.name.split("-")[1]) for path in part_files(run.folder)]
        self._turn = max(numbers, default=-1) + 1

    def _read(self) -> None:
        if part_files(self.run.folder):
            for row in read_log(self.run.folder).to_pylist():
                if row["status"] != "error":
                    self.known[row["judge"], row["scoring"], row["prompt_id"]] = row

    def ask(self, columns: Iterable[Column], items: Codes) -> None:
        """The answers to some columns on some items; those in the folder are not asked again."""
        places: dict[int, list[tuple[Prompt, int, int, int]]] = {}
        for voice, wording, order in columns:
            template = self.answers.wordings[wording].template
            name = self.answers.task.orders[order]
            for item in items.tolist():
                if not self.answers.asked[voice, item, wording, order]:
                    own = self.shown[item](template, name)
                    prompt = render(self.answers.task, template, own, name)
                    places.setdefault(voice, []).append((prompt, item, wording, order))
        task, wordings = self.answers.task, self.answers.wordings
        aliases = {
            each.template.template_id: each.template.aliases
            for each in wordings
            if each.template.aliases
        }
        for voice, wanted in places.items():
            own = self.answers.voices[voice]
            judge, scoring = self.judges[own.judge], own.scoring
            prompts = [prompt for prompt, *_ in wanted]
            self.prompts |= {prompt.prompt_id: prompt for prompt in prompts}
            if fresh := [
                p for p in prompts if (judge.name, scoring, p.prompt_id) not in self.known
            ]:
                pairs, about = PAIR_SCHEMA.empty_table(), {"name": "improve"}
                run_judge(
                    judge,
                    Benchmark({task.name: task}, table_of_prompts(fresh), pairs, about, aliases),
                    self.run.folder,
                    [scoring],
                    judge_index=self._turn,
                    begin=lambda: save_run(self.run.folder, self.run.record),
                    note=self.note,
                )
                self._turn += 1
                self._read()
            for prompt, item, wording, order in wanted:
                row = self.known.get((judge.name, scoring, prompt.prompt_id))
                self.answers.asked[voice, item, wording, order] = True
                self.failed += row is None
                if row is not None:
                    told = {e["option"]: e["logprob"] for e in row["option_logprobs"] or ()}
                    label_map = wordings[wording].template.label_map
                    self.answers.logprobs[voice, item, wording, order] = label_logprobs(
                        label_map, self.answers.labels, told, row["raw_decision"]
                    )

    @property
    def spent_usd(self) -> float | None:
        """US dollars of all answers in the folder; None if none has a cost."""
        costs = [row["cost_usd"] for row in self.known.values() if row["cost_usd"] is not None]
        return float(sum(costs)) if costs else None
