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
    own = _own_templates(run, answers.task.name, templates)
    if run.prompts is None and own is None:
        raise JudgeSenseError(
            f"{run.folder} is an import without the texts of the wordings; give the template "
            "file with --templates FILE"
        )
    form_wordings = in_reply_form(run, answers)
    if unusable := [wording for wording in recipe.wordings if wording in form_wordings]:
        raise JudgeSenseError(
            f"an improved judge cannot ask {unusable[0]!r}, whose verdict is read in a reply form. "
            "Choose a --remedy with another wording, or use a run with more wordings"
        )
    wordings = [_template(run, answers.task.name, name, own) for name in recipe.wordings]
    for wording in recipe.offsets:
        if wording not in (*recipe.wordings, *form_wordings, OTHER_WORDINGS):
            # Not asked by the file itself, so it may be absent.
            with suppress(JudgeSenseError):
                wordings.append(_template(run, answers.task.name, wording, own))
    if own is not None:
        task = own.task
    else:
        name = answers.task.name
        task_record = (run.record.get("tasks") or {}).get(name) or {}
        options = dict(task_record.get("options") or {})
        if not options and answers.task.comparative and name in known_tasks():
            options = dict(known_tasks()[name].task.options)
        task = Task(name, answers.task.labels, bool(task_record.get("ordinal")), options)
    if task.labels != recipe.labels:
        raise JudgeSenseError(
            f"the template file's task {task.name} has the labels {join(task.labels)}, but the "
            f"run has {join(recipe.labels)}"
        )
    return TaskTemplates(task, tuple(wordings))


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
    source = ((run.record.get("asked") or {}).get("data") or {}).get("templates")
    if source is not None and sha256_of(Path(path)) != source["sha256"]:
        raise JudgeSenseError(
            f"{path} is not the template file of the run: its contents differ. Restore it, or "
            "leave out --templates"
        )
    tasks = load_templates(path)
    if task not in tasks:
        raise JudgeSenseError(f"{path} has no task {task!r}; it has {', '.join(tasks)}")
    return tasks[task]


def _template(run: Run, task: str, wording: str, own: TaskTemplates | None) -> Template:
    """A wording from the user's template file, the run's record, or JudgeSense's own wordings."""
    if own is not None:
        for template in own.templates:
            if template.template_id == wording:
                return template
        raise JudgeSenseError(f"the template file has no template {wording!r}")
    prompts = run.prompts
    assert prompts is not None
    names = prompts["template_id"]
    if "variant" in prompts.column_names:
        with_variant = pc.binary_join_element_wise(names, prompts["variant"], "+")
        names = pc.coalesce(with_variant, names)
    is_wording = pc.and_(pc.equal(prompts["task"], task), pc.equal(names, wording))
    rows = prompts.filter(is_wording).slice(0, 1).to_pylist()
    label_map = dict(load_label_map(rows[0]["label_map"])) if rows else {}
    task_record = (run.record.get("tasks") or {}).get(task) or {}
    text, layout = (task_record.get(key, {}).get(wording) for key in ("wordings", "layouts"))
    if rows and text and layout:
        aliases = (run.record.get("aliases") or {}).get(rows[0]["template_id"]) or {}
        aliases = {answer: tuple(texts) for answer, texts in aliases.items()}
        return Template(wording, task, text, layout, label_map, aliases)
    recognised = recognise(task, rows[0]["text"]) if rows else None
    if recognised is None and "+" in wording:
        raise JudgeSenseError(
            f"{wording!r} has no fixed text: it depends on the item, or the run is of an earlier "
            "version. Choose a --remedy of one wording, or use a run with more wordings"
        )
    if recognised is None or dict(recognised[0].label_map) != label_map:
        raise JudgeSenseError(
            f"the wording {wording!r} is not one of JudgeSense's own; give the template file that "
            "the dataset was built with: --templates FILE"
        )
    return Template(wording, task, recognised[0].text, recognised[0].layout, label_map)
