"""The judges of two results, task by task, and what the results say of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from judgesense.comparison.verdicts import Verdicts, verdicts_of
from judgesense.importers.outputs import is_hash
from judgesense.log.answers import Answers
from judgesense.log.folder import Run, read_run
from judgesense.text import join


@dataclass(frozen=True)
class Side:
    """One judge on one task in one result."""

    run: Run
    answers: Answers

    @cached_property
    def verdicts(self) -> Verdicts:
        """All its answers."""
        return replace(verdicts_of(self.answers, self.run.folder), source=source_of(self.run))

    @property
    def task(self) -> str:
        """The task's name; "" where it is only the name of the file."""
        columns = self.run.record.get("imported", {}).get("columns", {})
        return "" if str(columns.get("task", "")).startswith(":") else self.answers.task.name

    @property
    def data(self) -> str | None:
        """The hash of the data that were judged; None where the run does not have it."""
        asked = (self.run.record.get("asked") or {}).get("data") or {}
        digest = asked.get("data") or (asked.get("items") or {}).get("sha256")
        return digest if isinstance(digest, str) else None

    @property
    def outputs(self) -> str | None:
        """What a prompt's id stands for: ``prompt``, ``text`` or ``hash``; None if nothing."""
        if "imported" not in self.run.record:
            return "prompt"
        names = self.run.record.get("outputs")
        return None if not names else "hash" if all(map(is_hash, names)) else "text"


def source_of(run: Run) -> str:
    """The file of an import, the folder of a run."""
    return str(run.record.get("imported", {}).get("source", run.folder))


def judge_changes(old: Path, new: Path, *, names: bool = True) -> list[str]:
    """What two results show to have changed about the judge: its model, prompt, rubric, scale.

    The ``names`` of runs' judges are left out where each is compared with one of its own name.
    """
    sides = [_identity(read_run(folder), names) for folder in (old, new)]
    return [
        f"{name} was {sides[0].get(name, 'not stated')} and is {sides[1].get(name, 'not stated')}"
        for name in dict.fromkeys([*sides[0], *sides[1]])
        if sides[0].get(name) != sides[1].get(name)
    ]


def _identity(run: Run, names: bool) -> dict[str, str]:
    """What a result says of its judge, by name."""
    record = run.record
    if "imported" in record:
        facts = {name: str(value) for name, value in record.get("identity", {}).items()}
        verdicts = record["imported"].get("columns", {}).get("raw_decision")
        return facts | ({"the column of verdicts": verdicts} if verdicts else {})
    judges = sorted({answers.judge for answers in run.judged})
    facts = {"the judge": join(judges)} if names else {}
    data = (record.get("asked") or {}).get("data") or {}
    for name in ("rubric", "wordings", "templates"):
        if digest := data.get(name):
            digest = digest.get("sha256") if isinstance(digest, Mapping) else digest
            facts[f"the hash of the {name}"] = str(digest)[:8]
    return facts


def couples_of(old: Sequence[Side], new: Sequence[Side]) -> Iterator[tuple[Side, Side]]:
    """Each task's judge before and after: the one of the same name, or the only one."""
    tasks = [{side.task for side in sides} for sides in (old, new)]
    # A file without a column of tasks has one, whatever its name.
    is_one = len(tasks[0]) == len(tasks[1]) == 1 and "" in tasks[0] | tasks[1]
    for task in dict.fromkeys(side.task for side in new):
        before = [side for side in old if is_one or side.task == task]
        after = [side for side in new if side.task == task]
        scorings = {s.answers.scoring for s in before} & {s.answers.scoring for s in after}
        if scorings:
            before, after = (
                [side for side in sides if side.answers.scoring == max(scorings)]
                for sides in (before, after)
            )
        if len(before) == len(after) == 1:
            yield before[0], after[0]
            continue
        names = [
            {side.answers.judge.partition("@")[0]: side for side in sides}
            for sides in (before, after)
        ]
        for name in names[0]:
            if name in names[1]:
                yield names[0][name], names[1][name]
