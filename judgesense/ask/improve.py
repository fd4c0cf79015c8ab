"""``judgesense improve``: the best judge that a budget buys, with a promise that holds."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from judgesense.ask.answers import AnswersSoFar
from judgesense.ask.improved import Improved, as_table, conclusion, footnotes
from judgesense.ask.plan import ImproveOptions, Plan
from judgesense.ask.promise import FAIR
from judgesense.ask.prompt_store import PromptStore
from judgesense.ask.proposals import name_of, proposals
from judgesense.ask.search import SearchResult, search
from judgesense.benchmark import table_of_prompts
from judgesense.files.data import Data
from judgesense.files.disk import sha256_of, write_text, writing
from judgesense.files.documents import read_json
from judgesense.log.folder import PROMPTS_FILE, folder_lock
from judgesense.log.run_folder import RunFolder
from judgesense.pipeline.judges import identity_of, require_known
from judgesense.pipeline.settings import Note, to_stderr
from judgesense.recipes.recipe import OTHER_WORDINGS, Recipe
from judgesense.reporting.report import IMPROVE_FILE
from judgesense.statistics.intervals import wilson_cluster
from judgesense.text import brackets, percent
from judgesense.version import __version__
from judgesense_dataset.templates import TaskTemplates
from local_judges.callable_judge import CallableJudge
from local_judges.consent import hosts_of, remember
from local_judges.improved_judge import ImprovedJudge, judge_entry
from local_judges.registry import JudgeSpec

FEWEST_UNSEEN = 5
"""The fewest damaged copies of unseen kinds whose share is stated."""


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
    columns: Mapping[str, str] | None = None,
    answers: Sequence[str] | None = None,
    map: Mapping[str, str] | None = None,
    positive: str | None = None,
    options: Mapping[str, str] | None = None,
    task: str | None = None,
    scoring: str | None = None,
    limit: int | None = None,
    attacks: str | None = None,
    note: Note | None = None,
    **judge_options: Any,
) -> Improved:
    """Find the best way to ask judges within a budget, and write it as a judge.

    Ways to ask race on half of the labelled items. The other half only measures the winner, so that
    choosing it does not inflate its accuracy. Interrupt the search at any time; call it again to
    resume, also with a larger budget: answered prompts are not asked again.

    Args:
        source: a rubric, as a file or text with names of columns in braces; wordings in
            ``RUBRIC.wordings.yaml`` or ``.txt`` beside it are tried as well. Or a template file.
        data: the labelled items, as for `judgesense.check`. Without any label, ways to ask compete
            at telling outputs from copies made wrong on purpose, and at being steady.
        judge: a judge, or a list of judges, which are also tried as a jury and as a cascade.
        budget: prompts per labelled item (``20``), or US dollars in all (``"$2"``).
        out: the judge's file to write. The answers are kept in the folder ``OUT.run``.
        paraphraser: a model that proposes wordings, or a file with wordings.
        seed: fixes which items the search uses.
        max_error: the largest share of wrong verdicts that ``ask_person`` may let pass, (0, 1).
        human, columns, answers, map, positive, options: the label columns, other columns, the
            decisions, their names in replies and, for a choice between two, the column under each
            answer, as for `judgesense.check`.
        task: the task of a template file with several.
        scoring: ``generate`` (the default: text, as the judge is asked in production) or
            ``options`` (log-probabilities).
        limit: use at most this many labelled items.
        attacks: ``quick``, ``all`` or a YAML file: adds an attacked copy of each item that an
            attack could win, and tries ways to ask that guard the judged text.
        note: called with the best way so far; by default it is printed to stderr.
        judge_options: options of the judges.

    Returns:
        The table, the row that was written, and what is promised.

    Raises:
        JudgeSenseError: bad input, too few labels, one label only, a budget below one pass.

    >>> import tempfile
    >>> def judge(messages):
    ...     return [{"EVEN": -1.0 - 2 * (int(m[-1]) % 2), "ODD": -1.2} for m in messages]
    >>> rows = [{"digit": f"{n} {n % 10}", "gold": "ODD" if n % 2 else "EVEN"} for n in range(40)]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     best = improve("Is it EVEN or ODD?\\n{digit}", rows, judge, scoring="options",
    ...                     budget=6, out=f"{folder}/judge.yaml", note=str)
    >>> best.better, best.way, best.written["right"]
    (False, 'as asked', 1.0)
    """
    require_known(improve, judge_options)
    asked = ImproveOptions(
        budget=budget,
        out=out,
        paraphraser=paraphraser,
        seed=seed,
        max_error=max_error,
        human=human,
        columns=columns,
        answers=answers,
        map=map,
        positive=positive,
        options=options,
        task=task,
        scoring=scoring,
        limit=limit,
        attacks=attacks,
        note=note or to_stderr,
    )
    return improved_by(Plan.of(source, data, judge, asked, judge_options))


def improved_by(plan: Plan) -> Improved:
    """The judge that a plan leads to, written to its file."""
    folder, note = plan.folder, plan.options.note
    done, request = folder / IMPROVE_FILE, _request(plan)
    if plan.out.exists() and done.exists() and all(isinstance(s, JudgeSpec) for s in plan.specs):
        record = read_json(done)
        if record.pop("request") == [request, sha256_of(plan.out)]:
            paths = {name: Path(record[name]) for name in ("out", "run_folder")}
            stated = {field.name: record[field.name] for field in fields(Improved)}
            return Improved(**{**stated, **paths})
    with ExitStack() as stack:
        stack.enter_context(folder_lock(folder))
        run = RunFolder(folder, {"data": plan.identity})
        run.repair(note)
        for key in ("parts", "digests", "finished"):
            run.record.pop(key, None)  # More may be asked than before.
        proposed, already = proposals(plan, run)
        judges = []
        for spec in plan.specs:
            loaded = spec.load() if isinstance(spec, JudgeSpec) else spec
            judges.append(loaded.lenient() if isinstance(loaded, CallableJudge) else loaded)
            stack.callback(judges[-1].close)
        answers = plan.answers(judges, proposed)
        store = PromptStore(run, judges, answers, plan.shown, note)
        found = search(
            answers,
            plan.total - already,
            store.ask,
            seed=plan.options.seed,
            max_error=plan.options.max_error,
            left_out=np.concatenate([plan.examples[1], plan.unseen[1]]),
            note=note,
        )
        for row in found.rows:
            price = row.pop("price")
            row["usd_per_item"] = price if plan.budget.usd else None
        result = _result(plan, found, store, answers)
        _as_file(plan, found, answers, judges).write(plan.out)
        # The user named this endpoint just now, so the file may ask it.
        identities = (spec.options for spec in plan.specs if isinstance(spec, JudgeSpec))
        remember(plan.out, hosts_of(identities))
        _describe(run, plan, answers, judges)
        if store.prompts:
            with writing(folder):
                pq.write_table(table_of_prompts(store.prompts.values()), folder / PROMPTS_FILE)
        run.finish()
        with writing(folder):
            record = {
                **result.to_dict(),
                "table": as_table(result.rows, result.labelled),
                "footnotes": footnotes(result),
                "request": [request, sha256_of(plan.out)],
            }
            write_text(done, json.dumps(record, indent=1, ensure_ascii=False) + "\n")
    return result


def _request(plan: Plan) -> str:
    """What makes two calls one: the second returns what the first wrote."""
    stated = [
        plan.identity,
        str(plan.budget),
        plan.options.seed,
        plan.options.max_error,
        str(plan.out),
        [identity_of(spec) for spec in plan.specs],
        plan.options.scoring,
        name_of(plan.options.paraphraser),
        [template.text for template in plan.paraphrases],
        __version__,
    ]
    return hashlib.sha256(json.dumps(stated, sort_keys=True, default=str).encode()).hexdigest()[:16]


def _as_file(
    plan: Plan, found: SearchResult, answers: AnswersSoFar, judges: Sequence[Any]
) -> ImprovedJudge:
    """The judge's file of what was chosen."""
    recipe = answers.fitted(found.chosen, found.fit)
    numbers = [answers.judges[part.judge].judge for part in recipe.leaves]
    parts = [
        replace(_with_other_wordings(part), judge=place) for place, part in enumerate(recipe.leaves)
    ]
    if recipe.combine:
        margins = (*found.margins, None) if found.margins else recipe.margins
        recipe = Recipe.together(recipe.name, recipe.combine, parts, margins)
    else:
        (recipe,) = parts
    used = {answers.arrays[0].place(name) for part in parts for name in part.wordings}
    templates = [answers.wordings[place].template for place in sorted({0, *used})]
    row = next(each for each in found.rows if each["written"])
    expected = {
        "accuracy" if answers.labelled else "damage_told_apart": row["right"],
        "ci_low": row["right_ci_low"],
        "ci_high": row["right_ci_high"],
        "items": row["n_items"],
        "prompts_per_item": row["prompts_per_item"],
        "usd_per_item": row["usd_per_item"],
    }
    if row["resistant"] is not None:
        expected["resistant"] = row["resistant"]
    improved = ImprovedJudge(
        tuple(_entry_of(plan.specs[number], judges[number]) for number in numbers),
        TaskTemplates(plan.entry.task, tuple(templates)),
        recipe,
        ask_person=_plain(found.ask_person),
        expected=expected,
        search={
            "way": found.chosen.name,
            "budget": str(plan.budget),
            "seed": plan.options.seed,
            "candidates": found.entered,
            "searched_items": found.raced,
            "rows": [_plain(each, digits=6) for each in found.rows],
        },
        where=str(plan.out),
    )
    data = {
        "hash": plan.identity["items"],
        "task": plan.entry.task.name,
        "scoring": improved.scoring,
        "judgesense": __version__,
        **({} if answers.labelled else {"labels": "none"}),
        "rule": improved.digest,
    }
    return replace(improved, data=data)


def _with_other_wordings(recipe: Recipe) -> Recipe:
    """A recipe of one judge whose offsets also serve wordings that it was not fitted to."""
    if not recipe.offsets or len(recipe.wordings) > 1:
        return recipe
    mean = {OTHER_WORDINGS: recipe.offsets[recipe.wordings[0]]}
    return replace(recipe, offsets={**recipe.offsets, **mean})


def _entry_of(spec: Any, judge: Any) -> Mapping[str, Any]:
    return judge_entry(judge.name, spec.identity() if isinstance(spec, JudgeSpec) else {})


def _plain(row: Mapping[str, Any], digits: int | None = None) -> dict[str, Any]:
    """What is known of a row, with its numbers to some digits."""
    return {
        key: round(value, digits) if digits and isinstance(value, float) else value
        for key, value in row.items()
        if value is not None
    }


def _unseen(plan: Plan, found: SearchResult, answers: AnswersSoFar) -> str | None:
    """How the chosen way does on the kinds of damage that the search did not see; None of few."""
    hidden, _ = plan.unseen
    damaged = found.held_out[np.array(plan.damage)[found.held_out] != ""]
    is_new = np.isin(np.array(plan.damage)[damaged], hidden)
    if is_new.sum() < FEWEST_UNSEEN or is_new.all():
        return None
    right = answers.right(found.chosen, damaged, found.fit)
    clusters = answers.clusters[damaged]
    new, old = (wilson_cluster(right[part], clusters[part]) for part in (is_new, ~is_new))
    text = (
        f"of kinds of damage that the search did not see ({', '.join(hidden)}), it marks down "
        f"{percent(float(right[is_new].mean()))} {brackets(new.low, new.high, percent)} of "
        f"{is_new.sum()} copies, and {percent(float(right[~is_new].mean()))} "
        f"{brackets(old.low, old.high, percent)} of the others"
    )
    if (new.high or 1.0) < (old.low or 0.0):
        text += ". It may have learned these kinds of damage, not your question"
    return text


def _result(plan: Plan, found: SearchResult, store: PromptStore, answers: AnswersSoFar) -> Improved:
    rows = found.rows
    better, text = conclusion(rows, len(found.held_out), labelled=answers.labelled)
    label, share = found.constant
    notes = [f"always answering {label!r} would be right on {percent(share)} of these items"]
    notes += plan.notes
    if plan.damage and (unseen := _unseen(plan, found, answers)):
        notes.append(unseen)
    if store.failed:
        notes.append(
            f"{store.failed} prompts have no answer and count as wrong. Rerun the command to send "
            "them again"
        )
    if found.fair is not None and found.fair < FAIR:
        both = [row for row in rows if "both orders" in row["way"]]
        notes.append(
            "with the options in the other order, the judge changes its choice on "
            f"{1 - found.fair:.0%} of the items, and no way of asking it in both orders is as "
            "often"
            + "".join(
                f": {row['way']!r} gives a verdict on {row['decided']:.0%}, and "
                f"{row['right'] / row['decided']:.0%} of these are right"
                for row in both[:1]
                if row["decided"]
            )
            + ". Try a larger --budget, or another judge"
        )
    decided = next(row for row in rows if row["written"])["decided"]
    if decided < 0.9:
        notes.append(
            f"the judge gives a verdict on only {decided:.0%} of the items; ask a person about the "
            "others"
        )
    return Improved(
        out=plan.out,
        run_folder=plan.folder,
        way=found.chosen.name,
        better=better,
        text=text,
        rows=rows,
        n_candidates=found.entered,
        n_search=found.raced,
        n_held_out=len(found.held_out),
        prompts=len(store.rows),
        usd=store.spent_usd,
        budget=str(plan.budget),
        seed=plan.options.seed,
        ask_person=found.ask_person,
        notes=notes,
        labelled=answers.labelled,
    )


def _describe(run: RunFolder, plan: Plan, answers: AnswersSoFar, judges: Sequence[Any]) -> None:
    """Record what ``judgesense report`` needs of the folder."""
    task, templates = plan.entry.task, [each.template for each in answers.wordings]
    run.describe(
        run_id=f"{run.folder.resolve().name}-{plan.identity['items'][:8]}",
        data_hash=plan.identity["items"],
        tasks={
            task.name: {
                "labels": list(task.labels),
                "ordinal": task.ordinal,
                "comparative": task.comparative,
                "options": dict(task.options),
                "wordings": {template.template_id: template.text for template in templates},
                "layouts": {template.template_id: template.layout for template in templates},
            }
        },
    )
    run.record["judges"] = [
        {"name": each.name, "describe": dict(each.describe())} for each in judges
    ]
