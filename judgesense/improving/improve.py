"""``judgesense improve``: the best judge that a budget buys, with a promise that holds."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from judgesense.benchmark import table_of_prompts
from judgesense.checking.verdicts import labelled_rows
from judgesense.errors import JudgeSenseError
from judgesense.files.data import RUNS, Data, kept, kept_text
from judgesense.files.disk import sha256_of, write_text, writing
from judgesense.files.documents import read_json
from judgesense.improving.asking import Asking
from judgesense.improving.candidates import Answers, Voice, first_candidates
from judgesense.improving.forms import (
    paraphrases_in,
    rule_paraphrases,
    validated,
    wordings_to_try,
)
from judgesense.improving.result import Improved, as_table, conclusion, footnotes
from judgesense.improving.search import Found, least_budget, search
from judgesense.pipeline.execution import identity_of, resolve_all
from judgesense.pipeline.settings import Note, to_stderr
from judgesense.reporting.report import IMPROVE_FILE
from judgesense.run_folder.folder import PROMPTS_FILE, RunFolder, claimed
from judgesense.statistics.arrays import Codes
from judgesense.tasks import Item, Template, render
from judgesense.text import duration
from judgesense.trust.rules import OTHER_WORDINGS
from judgesense.version import __version__
from judgesense_dataset.attacks import attacked_copies, chosen_attacks
from judgesense_dataset.items import items_of, load_items
from judgesense_dataset.paraphrase import paraphrase, write_candidates
from judgesense_dataset.rubric import read_rubric, read_wordings, shown_in
from judgesense_dataset.templates import TaskTemplates, load_templates
from local_judges.options import REMOTE
from local_judges.protocol import Budgeted, Request
from local_judges.registry import JudgeSpec
from local_judges.stabilised_file import Stabilised

PROPOSALS = 4
"""Paraphrases to ask of a model."""

_REASONING_TOKENS = 128
"""A judge that may write so many tokens is also asked for its reasons first."""


@dataclass(frozen=True)
class Budget:
    """What may be spent: prompts per labelled item, or US dollars in all.

    >>> Budget.of("$2"), Budget.of(8)
    (Budget(amount=2.0, usd=True), Budget(amount=8.0, usd=False))
    """

    amount: float
    usd: bool

    @classmethod
    def of(cls, text: str | float) -> Budget:
        """Read ``200`` (prompts per item), ``$2`` or ``2usd``. Raises JudgeSenseError."""
        match = re.fullmatch(r"(\$?)\s*([0-9]*\.?[0-9]+)\s*(usd)?", str(text).strip().lower())
        if match is None or float(match.group(2)) <= 0:
            raise JudgeSenseError(
                f"budget {text!r}: give prompts per item, such as 20, or US dollars, such as $2"
            )
        return cls(float(match.group(2)), bool(match.group(1) or match.group(3)))

    def __str__(self) -> str:
        return f"${self.amount:g}" if self.usd else f"{self.amount:g} prompts per item"


def improve(
    source: str | Path,
    data: Data,
    judge: Any,
    *,
    budget: str | float = 20,
    out: str | Path = "judge.yaml",
    paraphraser: Any = None,
    seed: int = 0,
    max_error: float = 0.05,
    human: Sequence[str] = (),
    answers: Sequence[str] | None = None,
    options: Mapping[str, str] | None = None,
    task: str | None = None,
    scoring: str | None = None,
    limit: int | None = None,
    attacks: str | None = None,
    note: Note | None = None,
    **judge_options: Any,
) -> Improved:
    """Find the best way to ask judges within a budget, and write it as a judge.

    Half of the labelled items choose: ways to ask race on them. The other half chooses nothing and
    measures the winner, so that its accuracy is not selected. Interrupt it at any time; call it
    again to resume, also with a larger budget: prompts that were asked are not asked again.

    Args:
        source: a rubric, as a file or text with names of columns in braces; wordings in
            ``RUBRIC.wordings.yaml`` or ``.txt`` beside it are tried as well. Or a template file.
        data: the labelled items, as for `judgesense.check`.
        judge: a judge, or a list of judges, which are also tried as a jury and as a cascade.
        budget: prompts per labelled item (``20``), or US dollars in all (``"$2"``).
        out: the judge's file to write. The answers are kept in the folder ``OUT.run``.
        paraphraser: a model that proposes wordings, or a file with wordings.
        seed: fixes which items choose.
        max_error: the share of wrong verdicts below which ``ask_person`` keeps the others, (0, 1).
        human, answers, options: the label columns, the decisions and, for a choice between two, the
            column under each answer, as for `judgesense.check`.
        task: the task of a template file with several.
        scoring: ``options`` or ``generate``; by default options where the judge offers them.
        limit: use at most this many labelled items.
        attacks: ``quick``, ``all`` or a YAML file: each item that an attack could win is judged
            with one as well, and ways to ask that guard the judged text are tried.
        note: told the best so far; by default on stderr.
        judge_options: options of the judges.

    Returns:
        The table, the row that was written, and what is promised.

    Raises:
        JudgeSenseError: bad input, too few labels, labels all alike, a budget below one pass.

    >>> import tempfile
    >>> def judge(messages):
    ...     return [{"EVEN": -1.0 - 2 * (int(m[-1]) % 2), "ODD": -1.2} for m in messages]
    >>> rows = [{"digit": f"{n} {n % 10}", "gold": "ODD" if n % 2 else "EVEN"} for n in range(40)]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     found = improve("Is it EVEN or ODD?\\n{digit}", rows, judge, scoring="options",
    ...                     budget=6, out=f"{folder}/judge.yaml", note=str)
    >>> found.better, found.way, found.written["right"]
    (False, 'as asked', 1.0)
    """
    tell, asked, target = note or to_stderr, Budget.of(budget), Path(out)
    plan = _Plan.of(source, data, judge, asked, target, paraphraser, human, answers, options, task,
                    scoring, limit, judge_options, tell, attacks)  # fmt: skip
    if not 0 < max_error < 1:
        raise JudgeSenseError(f"max_error must lie between 0 and 1, got {max_error}")
    folder = plan.folder
    request = hashlib.sha256(json.dumps(
        [plan.identity, str(asked), seed, max_error, str(target),
         [identity_of(spec) for spec in plan.specs], plan.scoring, _writer(paraphraser),
         [each.text for each in plan.paraphrases], __version__], sort_keys=True, default=str,
    ).encode()).hexdigest()[:16]  # fmt: skip
    done = folder / IMPROVE_FILE
    if target.exists() and done.exists() and all(isinstance(s, JudgeSpec) for s in plan.specs):
        record = read_json(done)
        if record.pop("request") == [request, sha256_of(target)]:
            paths = {name: Path(record[name]) for name in ("out", "run_folder")}
            known = {field.name: record[field.name] for field in fields(Improved)}
            return Improved(**{**known, **paths})
    with ExitStack() as stack:
        stack.enter_context(claimed(folder))
        run = RunFolder(folder, {"data": plan.identity})
        run.repair(tell)
        for key in ("parts", "digests", "finished"):
            run.record.pop(key, None)  # More may be asked than before.
        proposed, already = _paraphrases(plan, run, paraphraser, judge_options, seed, tell)
        judges = []
        for spec in plan.specs:
            judges.append(spec.load() if isinstance(spec, JudgeSpec) else spec)
            stack.callback(judges[-1].close)
        table = plan.answers(judges, proposed)
        asking = Asking(run, judges, table, plan.items, tell)
        total = asked.amount if asked.usd else asked.amount * len(plan.items)
        found = search(
            table, total - already, asking.ask, seed=seed, max_error=max_error, note=tell
        )
        for row in found.rows:
            price = row.pop("usd_or_prompts")
            row["usd_per_item"] = price if asked.usd else None
        made = plan.written(found, table, judges, seed, asked)
        result = _result(plan, found, asking, asked, seed, already)
        made.write(target)
        _finish(run, plan, table, asking, judges)
        result.write()
        with writing(folder):
            shown = {"table": as_table(result.rows), "footnotes": footnotes(result)}
            stated = {**result.to_dict(), **shown, "request": [request, sha256_of(target)]}
            write_text(done, json.dumps(stated, indent=1, ensure_ascii=False) + "\n")
    return result


@dataclass(frozen=True)
class _Plan:
    """What is asked for, read and checked; nothing is loaded."""

    entry: TaskTemplates
    items: list[Item]
    specs: list[Any]
    budget: Budget
    out: Path
    identity: dict[str, Any]
    scoring: str | None
    notes: list[str]
    paraphrases: list[Template]
    n_plain: int
    """Items without an attack; those with one follow them."""

    @classmethod
    def of(
        cls, source: Any, data: Data, judge: Any, budget: Budget, out: Path, paraphraser: Any,
        human: Sequence[str], answers: Sequence[str] | None, options: Mapping[str, str] | None,
        task: str | None, scoring: str | None, limit: int | None, judge_options: Mapping[str, Any],
        note: Note, attacks: str | None = None,
    ) -> _Plan:  # fmt: skip
        if out.suffix not in (".yaml", ".yml"):
            raise JudgeSenseError(f"--out {out}: a judge is written to a .yaml file")
        given = judge if isinstance(judge, (list, tuple)) else [judge]
        specs = resolve_all(given, scoring, judge_options)
        if any(getattr(spec, "stabilised", None) is not None for spec in specs):
            raise JudgeSenseError("improve asks judges, not judges' files: name the judge itself")
        if judge_options and all(any(s is one for one in given) for s in specs):
            name = next(iter(judge_options))
            raise JudgeSenseError(f"{name} is no argument of improve, and the judge is loaded")
        known = [json.dumps(identity_of(spec), sort_keys=True) for spec in specs]
        if len(set(known)) < len(known):
            name = next(s.name for s, own in zip(specs, known, strict=True) if known.count(own) > 1)
            raise JudgeSenseError(f"two judges are named {name}: name each once, or rename one")
        if limit is not None and limit < 1:
            raise JudgeSenseError(f"limit must be at least 1, got {limit}")
        rows_file = kept(data, out.parent if str(out.parent) != "." else RUNS, "data")
        entry, items = _task(source, rows_file, human, answers, options, task, out, note)
        labelled = [item for item in items if item.gold is not None][:limit]
        notes = []
        if len(labelled) < len(items) and limit is None:
            notes.append(f"{len(items) - len(labelled)} items without a label are not used")
        n_plain = len(labelled)
        if attacks:
            chosen = chosen_attacks(attacks)
            labelled += attacked_copies(entry, labelled, chosen)
            notes.append(f"{len(labelled) - n_plain} of the {len(labelled)} items are copies with "
                         "an attack, which count in every figure and in the budget")  # fmt: skip
        golds = {item.gold for item in labelled}
        if absent := [label for label in entry.task.labels if labelled and label not in golds]:
            notes.append(f"no label is {', '.join(absent)}: nothing is known about such items")
        fixed = [[i.item_id, i.gold, i.cluster_id, sorted(i.fields.items())] for i in labelled]
        identity = {
            "items": hashlib.sha256(json.dumps(fixed).encode()).hexdigest()[:16],
            "task": entry.task.name,
            "labels": list(entry.task.labels),
            "wordings": [[t.template_id, t.text, t.layout, dict(t.label_map)]
                         for t in entry.templates],
        }  # fmt: skip
        own = rule_paraphrases(entry)
        if paraphraser is not None and _is_file(paraphraser):
            own = [*validated(paraphrases_in(Path(paraphraser), entry), entry, note), *own]
        return cls(entry, labelled, specs, budget, out, identity, scoring, notes, own, n_plain)

    @property
    def folder(self) -> Path:
        """The folder with the answers."""
        return self.out.with_name(f"{self.out.name}.run")

    def answers(self, judges: Sequence[Any], proposed: Sequence[Template]) -> Answers:
        """The empty table of answers: the judges' voices and the wordings to try."""
        reasons = [_max_tokens(spec) >= _REASONING_TOKENS for spec in self.specs]
        offered = [{self.scoring} if self.scoring else set(each.scorings) for each in judges]
        wordings = wordings_to_try(
            self.entry, [*self.paraphrases, *proposed], reasons=any(reasons),
            probabilities=any("options" in each for each in offered),
            defences=self.n_plain < len(self.items),
        )  # fmt: skip
        voices = []
        for n, (spec, kinds) in enumerate(zip(self.specs, offered, strict=True)):
            own = ["options"] if "options" in kinds else ["generate"]
            own += ["generate"] if own == ["options"] and reasons[n] and "generate" in kinds else []
            name = str(getattr(spec, "name", judges[n].name)).split("@")[0]
            price = self.price(spec, [each.template for each in wordings])
            voices += [Voice(n, name, scoring, price) for scoring in own]
        labels = self.entry.task.labels
        return Answers(
            self.entry.task, voices, wordings,
            np.array([labels.index(str(item.gold)) for item in self.items], dtype=np.int64),
            _clusters(self.items),
            np.arange(len(self.items)) >= self.n_plain,
        )  # fmt: skip

    def price(self, spec: Any, templates: Sequence[Template]) -> float:
        """The most that a prompt costs in the budget's unit."""
        if not self.budget.usd:
            return 1.0
        from local_judges.api.judge import most_cost

        remote = isinstance(spec, JudgeSpec) and spec.engine in REMOTE
        if not (remote or isinstance(spec, Budgeted)):
            return 0.0
        task = self.entry.task
        longest = max(templates, key=lambda each: len(each.text) + len(each.layout))
        texts = [render(task, longest, item, task.orders[0]).text for item in self.items]
        asked = [[Request("", text, task.labels)] for text in texts]
        costs = [most_cost(each, spec.options) if remote else spec.estimate(each) for each in asked]
        if None in costs:
            raise JudgeSenseError(
                f"a budget in US dollars needs a price: --set price=INPUT,OUTPUT per million "
                f"tokens for {spec.name}, or give the budget in prompts per item"
            )
        return max(float(cost or 0.0) for cost in costs)

    def written(
        self, found: Found, table: Answers, judges: Sequence[Any], seed: int, budget: Budget
    ) -> Stabilised:
        """The judge's file of what was chosen."""
        leaves = found.chosen.leaves
        used = {w for leaf in leaves for w in leaf.wordings}
        templates = [table.wordings[w].template for w in sorted({0, *used})]
        entry = TaskTemplates(self.entry.task, tuple(templates))
        margins: list[float | None] = list(found.margins or found.chosen.margins)
        stages = []
        for n, leaf in enumerate(leaves):
            rule = table.rule(leaf, found.fit)
            if rule.offsets and len(rule.wordings) == 1:
                mean = {OTHER_WORDINGS: rule.offsets[rule.wordings[0]]}
                rule = replace(rule, offsets={**rule.offsets, **mean})
            number = table.voices[leaf.voice].judge
            margin = margins[n] if n < len(margins) else None
            stages.append(Stabilised(_judge_of(self.specs[number], judges[number]), entry, rule,
                                     margin=margin))  # fmt: skip
        row = next(each for each in found.rows if each["written"])
        first = replace(
            stages[0], others=tuple(stages[1:]), combine=found.chosen.combine,
            ask_person={key: value for key, value in found.ask_person.items() if value is not None},
            expected={
                "accuracy": row["right"], "ci_low": row["right_ci_low"],
                "ci_high": row["right_ci_high"], "items": row["n_items"],
                "prompts_per_item": row["prompts_per_item"],
                "usd_per_item": row["usd_per_item"],
            },
            search={"way": found.chosen.name, "budget": str(budget), "seed": seed,
                    "candidates": found.entered, "searched_items": found.raced,
                    "rows": [_plain(each) for each in found.rows]},
            where=str(self.out),
        )  # fmt: skip
        return replace(first, data={
            "hash": self.identity["items"], "task": self.entry.task.name,
            "scoring": first.scoring, "judgesense": __version__, "rule": first.digest,
        })  # fmt: skip


def _plain(row: Mapping[str, Any]) -> dict[str, Any]:
    return {key: round(value, 6) if isinstance(value, float) else value
            for key, value in row.items() if value is not None}  # fmt: skip


def _clusters(items: Sequence[Item]) -> Codes:
    """The clusters, shape (n,), those that share an item's text in one: a text that is judged in
    the race tells the verdict on its copy, so none may be in both halves."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    names: dict[Any, int] = {}
    ends = [[names.setdefault(("cluster", item.cluster_id), len(names)),
             names.setdefault(tuple(sorted(item.fields.items())), len(names))]
            for item in items]  # fmt: skip
    links = np.array(ends, dtype=np.int64).reshape(-1, 2).T
    graph = coo_array((np.ones(len(items)), links), shape=(len(names), len(names)))
    parts: Codes = connected_components(graph, directed=False)[1][links[0]].astype(np.int64)
    return parts


def _judge_of(spec: Any, judge: Any) -> dict[str, Any]:
    """The judge as its file names it: with an engine if it can be loaded by name."""
    found: dict[str, Any] = {"name": judge.name}
    if isinstance(spec, JudgeSpec):
        own = spec.identity()
        found |= {key: own.pop(key) for key in ("judge", "engine", "model")}
        found["options"] = own
    return found


def _max_tokens(spec: Any) -> int:
    options = spec.options if isinstance(spec, JudgeSpec) else {}
    return int(options.get("max_tokens") or 0)


def _writer(paraphraser: Any) -> str:
    """The paraphraser as a record has it: what it is called."""
    if isinstance(paraphraser, (str, Path)):
        return str(paraphraser)
    return str(getattr(paraphraser, "name", getattr(paraphraser, "__name__", type(paraphraser))))


def _is_file(name: Any) -> bool:
    return isinstance(name, (str, Path)) and Path(name).suffix in (".txt", ".yaml", ".yml")


def _task(
    source: Any, data: Path, human: Sequence[str], answers: Sequence[str] | None,
    options: Mapping[str, str] | None, task: str | None, out: Path, note: Note,
) -> tuple[TaskTemplates, list[Item]]:  # fmt: skip
    """The task with its wordings, and the items, of a rubric or a template file."""
    text = str(source)
    if isinstance(source, str) and ("\n" in text or "{" in text):
        source = kept_text(text.strip() + "\n", out.parent, "rubric", ".txt")
    path = Path(source)
    if not path.is_file():
        raise JudgeSenseError(f"no file {path}; give a rubric or a template file")
    if path.suffix in (".yaml", ".yml"):
        entries = load_templates(path)
        if task is None and len(entries) > 1:
            raise JudgeSenseError(f"{path} has several tasks: --set task={' or '.join(entries)}")
        if task is not None and task not in entries:
            raise JudgeSenseError(f"{path} has no task {task!r}; it has {', '.join(entries)}")
        entry = entries[task] if task else next(iter(entries.values()))
        return entry, load_items(data, entry.task, entry.fields)
    rows = labelled_rows(data, human, shown_in(path), note)
    own = read_rubric(path, data, answers, options, rows)
    for suffix in (".wordings.yaml", ".wordings.txt"):
        if (beside := path.with_suffix(suffix)).exists():
            own = read_wordings(beside, own)
            break
    return own, items_of(rows, str(data), own.task, own.fields)


def _paraphrases(
    plan: _Plan, run: RunFolder, paraphraser: Any, options: Mapping[str, Any], seed: int, note: Note
) -> tuple[list[Template], float]:
    """The wordings that a model proposes, kept in the folder, and what they cost of the budget."""
    if paraphraser is None or _is_file(paraphraser):
        return [], 0.0
    place, cost_file = run.folder / "paraphrases.yaml", run.folder / "paraphrases.json"
    own = TaskTemplates(plan.entry.task, plan.entry.templates[:1])
    if not cost_file.exists():
        from local_judges.registry import load_judge

        total = plan.budget.amount * (1 if plan.budget.usd else len(plan.items))
        # Each proposal can be asked for five times, and is checked.
        n = PROPOSALS if plan.budget.usd else min(PROPOSALS, int(0.2 * total / 10))
        if n < 1:
            note("the budget is too small for proposals of the paraphraser")
            return [], 0.0
        writer = paraphraser
        if isinstance(paraphraser, (str, Path)):
            more = {"max_cost": 0.2 * total} if plan.budget.usd else {}
            writer = load_judge(paraphraser, temperature=0.7, seed=seed, max_tokens=512,
                                system_prompt="", **more)  # fmt: skip
        try:
            made = paraphrase(own, writer, n, note=note)
            answered = made.asked - made.dropped["empty"]
            if not answered:
                raise JudgeSenseError(
                    f"the paraphraser {made.judge} gave no answer to {made.asked} requests; is it "
                    "reachable? Nothing else was asked. Leave out --paraphraser, or give another"
                )
            votes = len(made.candidates) + made.dropped["called different by the judge"]
            spent = getattr(writer, "spent", 0.0) if plan.budget.usd else made.asked + votes
        finally:
            if writer is not paraphraser:
                writer.close()
        if made.candidates:
            place.unlink(missing_ok=True)
            write_candidates(place, own, made, unread=True)
        write_text(cost_file, json.dumps({"by": _writer(paraphraser), "spent": spent}))
        note(f"{len(made.candidates)} of {made.asked} paraphrases by {made.judge} can be used")
    record = read_json(cost_file)
    if (by := record.get("by")) != _writer(paraphraser):
        raise JudgeSenseError(
            f"{run.folder} has the proposals of the paraphraser {by}: name it, or use another --out"
        )
    proposed = paraphrases_in(place, plan.entry) if place.exists() else []
    return proposed, float(record["spent"])


def _result(
    plan: _Plan, found: Found, asking: Asking, budget: Budget, seed: int, already: float
) -> Improved:
    rows = found.rows
    better, text = conclusion(rows, len(found.held_out))
    notes = list(plan.notes)
    if asking.failed:
        notes.append(
            f"{asking.failed} prompts have no answer and count as wrong; rerun to ask again"
        )
    decided = next(row for row in rows if row["written"])["decided"]
    if decided < 0.9:
        notes.append(f"the judge gives a verdict on {decided:.0%} of the items only")
    return Improved(
        out=plan.out, run_folder=plan.folder, way=found.chosen.name, better=better, text=text,
        rows=rows, n_candidates=found.entered, n_search=found.raced,
        n_held_out=len(found.held_out), prompts=len(asking.known), usd=asking.spent_usd,
        budget=str(budget), seed=seed, ask_person=found.ask_person, notes=notes,
    )  # fmt: skip


def _finish(
    run: RunFolder, plan: _Plan, table: Answers, asking: Asking, judges: Sequence[Any]
) -> None:
    """Record what ``judgesense report`` needs of the folder."""
    task = plan.entry.task
    run.describe(
        run_id=f"{run.folder.resolve().name}-{plan.identity['items'][:8]}",
        data_hash=plan.identity["items"],
        tasks={task.name: {
            "labels": list(task.labels), "ordinal": task.ordinal, "comparative": task.comparative,
            "options": dict(task.options),
            "wordings": {w.template.template_id: w.template.text for w in table.wordings},
            "layouts": {w.template.template_id: w.template.layout for w in table.wordings},
        }},
    )  # fmt: skip
    run.record["judges"] = [
        {"name": each.name, "describe": dict(each.describe())} for each in judges
    ]
    if asking.prompts:
        with writing(run.folder):
            pq.write_table(table_of_prompts(asking.prompts.values()), run.folder / PROMPTS_FILE)
    run.finish()


def dry_run(
    source: str | Path, data: Data, judge: Any, *, budget: str | float = 20,
    out: str | Path = "judge.yaml", note: Note | None = None, **more: Any,
) -> list[str]:  # fmt: skip
    """What `improve` would try and spend, in lines; nothing is loaded or asked.

    Raises JudgeSenseError for bad input, as `improve`.
    """
    given = {name: more.pop(name, default) for name, default in _DEFAULTS.items()}
    for name in ("seed", "max_error"):
        more.pop(name, None)
    asked = Budget.of(budget)
    plan = _Plan.of(source, data, judge, asked, Path(out), given["paraphraser"], given["human"],
                    given["answers"], given["options"], given["task"], given["scoring"],
                    given["limit"], more, note or to_stderr, given["attacks"])  # fmt: skip
    table = plan.answers([_Offers(spec) for spec in plan.specs], [])
    n = len(plan.items)
    total = asked.amount if asked.usd else asked.amount * n
    singles = first_candidates(table)
    columns = frozenset().union(*(table.columns(each) for each in singles))
    lines = [
        f"{n} labelled items, {len(singles)} ways to ask ({len(table.wordings)} wordings), and "
        "panels, juries and cascades of them",
        f"all of them on all items: {len(columns) * n} prompts; the budget: "
        + (f"at most ${asked.amount:g}" if asked.usd else f"at most {total:.0f} prompts"),
    ]
    if total < least_budget(table, n):
        lines.append(f"the budget is below one pass, which needs {least_budget(table, n):g}")
    if not asked.usd:
        seconds = sum(_seconds(spec) for spec in plan.specs) / len(plan.specs) * total
        lines.append(f"about {duration(seconds)} on a 2-core CPU, if every prompt is short"
                     if seconds else "time: as the endpoint answers")  # fmt: skip
    return lines


_DEFAULTS: dict[str, Any] = {"paraphraser": None, "human": (), "answers": None, "options": None,
                             "task": None, "scoring": None, "limit": None,
                             "attacks": None}  # fmt: skip


class _Offers:
    """A judge that is not loaded: what it probably offers."""

    def __init__(self, spec: Any) -> None:
        self.name = str(getattr(spec, "name", spec))
        texts = isinstance(spec, JudgeSpec) and not spec.options.get("logprobs", True)
        self.scorings = getattr(
            spec, "scorings", {"generate"} if texts else {"options", "generate"}
        )


def _seconds(spec: Any) -> float:
    """Roughly, seconds per prompt of a local model on 2 cores: 0.7 per GB of quantised weights."""
    if not isinstance(spec, JudgeSpec) or spec.engine != "transformers":
        return 0.0
    path = Path(spec.model)
    files = [path] if path.is_file() else list(path.glob("*.safetensors")) if path.is_dir() else []
    return 0.1 + 0.7 * sum(file.stat().st_size for file in files) / 1e9
