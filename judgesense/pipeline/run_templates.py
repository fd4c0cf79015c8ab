"""A run's wordings as templates with their texts, for a judge that asks them outside the run."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pyarrow.compute as pc

from judgesense.errors import JudgeSenseError
from judgesense.files.disk import sha256_of
from judgesense.log.answers import Answers
from judgesense.log.folder import Run
from judgesense.recipes.recipe import OTHER_WORDINGS, Recipe
from judgesense.tasks import Task, Template, load_label_map
from judgesense.text import join
from judgesense_dataset.recognition import known_tasks, recognise
from judgesense_dataset.templates import TaskTemplates, load_templates


def wordings_of(
    run: Run, answers: Answers, recipe: Recipe, templates: str | Path | None
) -> TaskTemplates:
    """The task and a recipe's wordings with their texts; others with offsets where known."""
    known = _own_templates(run, answers.task.name, templates)
    if run.prompts is None and known is None:
        raise JudgeSenseError(
            f"{run.folder} is an import without the texts of the wordings; give the template "
            "file with --templates FILE"
        )
    formed = in_reply_form(run, answers)
    if refused := [wording for wording in recipe.wordings if wording in formed]:
        raise JudgeSenseError(
            f"an improved judge cannot ask {refused[0]!r}, whose verdict is read in a reply form. "
            "Choose a --remedy with another wording, or use a run with more wordings"
        )
    found = [_template(run, answers.task.name, wording, known) for wording in recipe.wordings]
    for wording in recipe.offsets:
        if wording not in (*recipe.wordings, *formed, OTHER_WORDINGS):
            # Not asked by the file itself, so it may be absent.
            with suppress(JudgeSenseError):
                found.append(_template(run, answers.task.name, wording, known))
    if known is not None:
        task = known.task
    else:
        name = answers.task.name
        recorded = (run.record.get("tasks") or {}).get(name) or {}
        options = dict(recorded.get("options") or {})
        if not options and answers.task.comparative and name in known_tasks():
            options = dict(known_tasks()[name].task.options)
        task = Task(name, answers.task.labels, bool(recorded.get("ordinal")), options)
    if task.labels != recipe.labels:
        raise JudgeSenseError(
            f"the template file's task {task.name} has the labels {join(task.labels)}, but the "
            f"run has {join(recipe.labels)}"
        )
    return TaskTemplates(task, tuple(found))


def in_reply_form(run: Run, answers: Answers) -> list[str]:
    """The wordings whose options were scored inside the form of a reply."""
    if answers.scoring != "options":
        return []
    forms = run.record.get("reply_forms") or ()
    return [name for name in answers.log.templates if name.rpartition("+")[2] in forms]


def _own_templates(run: Run, task: str, path: str | Path | None) -> TaskTemplates | None:
    """The task in a template file that the user names."""
    if path is None:
        return None
    recorded = ((run.record.get("asked") or {}).get("data") or {}).get("templates")
    if recorded is not None and sha256_of(Path(path)) != recorded["sha256"]:
        raise JudgeSenseError(
            f"{path} is not the template file of the run: its contents differ. Restore it, or "
            "leave out --templates"
        )
    tasks = load_templates(path)
    if task not in tasks:
        raise JudgeSenseError(f"{path} has no task {task!r}; it has {', '.join(tasks)}")
    return tasks[task]


def _template(run: Run, task: str, wording: str, known: TaskTemplates | None) -> Template:
    """A wording from the user's template file, the run's record, or JudgeSense's own wordings."""
    if known is not None:
        for template in known.templates:
            if template.template_id == wording:
                return template
        raise JudgeSenseError(f"the template file has no template {wording!r}")
    prompts = run.prompts
    assert prompts is not None
    names = prompts["template_id"]
    if "variant" in prompts.column_names:
        varied = pc.binary_join_element_wise(names, prompts["variant"], "+")
        names = pc.coalesce(varied, names)
    same = pc.and_(pc.equal(prompts["task"], task), pc.equal(names, wording))
    rows = prompts.filter(same).slice(0, 1).to_pylist()
    label_map = dict(load_label_map(rows[0]["label_map"])) if rows else {}
    recorded = (run.record.get("tasks") or {}).get(task) or {}
    text, layout = (recorded.get(key, {}).get(wording) for key in ("wordings", "layouts"))
    if rows and text and layout:
        aliases = (run.record.get("aliases") or {}).get(rows[0]["template_id"]) or {}
        aliases = {answer: tuple(texts) for answer, texts in aliases.items()}
        return Template(wording, task, text, layout, label_map, aliases)
    found = recognise(task, rows[0]["text"]) if rows else None
    if found is None and "+" in wording:
        raise JudgeSenseError(
            f"{wording!r} has no fixed text: it depends on the item, or the run is of an earlier "
            "version. Choose a --remedy of one wording, or use a run with more wordings"
        )
    if found is None or dict(found[0].label_map) != label_map:
        raise JudgeSenseError(
            f"the wording {wording!r} is not one of JudgeSense's own; give the template file that "
            "the dataset was built with: --templates FILE"
        )
    return Template(wording, task, found[0].text, found[0].layout, label_map)
