"""The study of "All Prompts Are Created Equal?" (Bhat and Varma): scores under paraphrases.

Judges rate texts on 12 attributes under ten paraphrases of each instruction; people have rated the
same texts. The study measures accuracy, robustness, what explains them, and strategies that ask
more than once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from judgesense.errors import JudgeSenseError
from judgesense.pipeline import identity_of, resolve_all, to_stderr
from judgesense.reporting.result import Result
from judgesense.run_folder.folder import read_run
from judgesense.statistics.inputs import check_number
from judgesense.studies.common.study import need_judges
from judgesense.studies.paraphrase_robustness.declared import STUDY
from judgesense.studies.paraphrase_robustness.findings import Measured
from judgesense.studies.paraphrase_robustness.fuser import fuse
from judgesense.studies.paraphrase_robustness.grid import (
    Grid,
    judge_grid,
    make_plan,
    same_prompt_gaps,
)
from judgesense.studies.paraphrase_robustness.measures import configuration, control, drawn_gaps
from judgesense_dataset.sources.loader import Reader

PANEL = 3
"""Least judges of a panel: of two, the majority is one of them and the median their mean."""

DRAWN = (
    "Both gaps are drawn from the probabilities of the levels, as a judge that samples at "
    "temperature 1 among the levels would answer: one score per paraphrase, and as many for the "
    "base wording; means of 200 draws. Accuracy is exact. The paper asked three models the same "
    "prompt ten times."
)
ASKED = (
    "The base wording was asked as often as there are paraphrases, with the judge's own decoding; "
    "only of judges that draw their text, since greedy text repeats itself."
)


def paraphrase_robustness(
    judges: Sequence[Any],
    out: str | Path,
    *,
    tasks: Sequence[str] | None = None,
    attributes: Sequence[str] | None = None,
    data: Mapping[str, str] | None = None,
    limit: int | None = None,
    paraphrases: int | None = None,
    max_words: int | None = None,
    scoring: str = "options",
    panel: bool = True,
    fuser: Any = None,
    tolerance: float = 0.5,
    templates: str | Path | None = None,
    mirror: str | Path | None = None,
    revisions: Mapping[str, str] | None = None,
    seed: int = 0,
    quick: bool = False,
    note: Callable[[str], None] = to_stderr,
) -> Result:
    """Judge what is missing in ``out``, and measure.

    Args:
        judges: names, Hub ids, paths, functions or loaded judges; a panel needs three.
        out: the study's folder; rerun with the same folder to resume or to measure again.
        tasks: of dialogue, question-generation, summarisation, essays; all by default.
        attributes: some of the 12 attributes instead, with or without their task's name.
        data: task -> the set or file of its texts with human scores (see docs).
        limit: texts per task (100), drawn equally from five bands of the human score.
        paraphrases: how many of the ten to use.
        max_words: leaves out texts with more words.
        scoring: ``options`` reads the levels' probabilities, ``generate`` parses the text.
        panel: whether to measure panels of the judges.
        fuser: the judge that fuses the panel's ratings and reasons; None for no fuser.
        templates: a template file (YAML) whose tasks are attributes and whose wordings replace
            this project's, all counting as paraphrases; "paper" for the seven that the paper
            prints.
        tolerance: τ, the distance from the human mean that still counts as right.
        mirror: a folder with ``<org>/<name>`` copies of the Hub's sets.
        revisions: Hub commits by set.
        seed: fixes which texts are drawn.
        quick: three texts per task and three paraphrases.
        note: receives progress messages.

    Returns:
        The result; call its ``write`` to store it.

    Raises:
        JudgeSenseError: for bad input, before a judge is loaded.
    """
    if scoring not in ("options", "generate"):
        raise JudgeSenseError(f"unknown scoring {scoring!r}; choose options or generate")
    try:
        check_number(seed, "seed", 0, whole=True)
        tau = check_number(tolerance, "tolerance", 0)
    except ValueError as error:
        raise JudgeSenseError(str(error)) from error
    if panel or fuser is not None:
        need_judges(judges, PANEL, "a panel (without: --no-panel)")
    _require_distinct(judges)
    plan = make_plan(
        tasks=tasks, attributes=attributes, data=data, limit=limit, paraphrases=paraphrases,
        quick=quick, seed=seed, max_words=max_words, scoring=scoring, templates=templates,
        revisions=dict(revisions or {}),
    )  # fmt: skip
    out, reader = Path(out), Reader(Path(mirror) if mirror else None, revisions or {})
    grid = judge_grid(judges, plan, reader, out, note)
    if scoring == "generate":
        gaps, how = same_prompt_gaps(judges, grid, reader, out, note), ASKED
    else:
        drawn = {cell.key: drawn_gaps(cell, seed) for cell in grid.cells}
        gaps, how = {key: each for key, each in drawn.items() if each is not None}, DRAWN
    ballots = {name: grid.ballot(name, tau) for name in plan.attributes}
    known = {name: ballot for name, ballot in ballots.items() if ballot is not None}
    fused = {} if fuser is None else fuse(fuser, judges, grid, known, out, note)
    tried = [
        one
        for name, ballot in known.items()
        for one in (*ballot.outcomes(), *([fused[name]] if name in fused else ()))
        if panel or not one.strategy.startswith("panel")
    ]
    rows = [configuration(cell, tau) for cell in grid.cells if cell.items]
    if not rows:
        raise JudgeSenseError(
            f"no item was decided under every paraphrase by any judge in {out}: with --scoring "
            "generate a small model often writes nothing readable; --scoring options always decides"
        )
    found = Measured(grid, read_run(out / "grid"), rows, tried, list(control(rows, gaps)), how, tau)
    return STUDY.result(found, _settings(grid, found) | {"fuser": _name(fuser)})


def _settings(grid: Grid, found: Measured) -> dict[str, Any]:
    plan = grid.plan
    return {
        "judges": list(dict.fromkeys(cell.judge for cell in grid.cells)),
        "attributes": f"{len(plan.attributes)} of 12: {', '.join(plan.attributes)}",
        "items": f"{plan.limit} per task, from five bands of the human score; seed {plan.seed}",
        "texts": grid.notes,
        "wordings": (
            f"{plan.paraphrases} paraphrases of each instruction, written for this project"
            if plan.templates is None
            else ", ".join(
                f"{len(plan.paraphrases_of(each))} of {name}"
                for name, each in plan.attributes.items()
            )
            + f", from {plan.templates.name}"
        ),
        "scoring": plan.scoring,
        "human scores": "raters' means; exact accuracy rounds them to a level, halves up",
        "tolerance": f"{found.tolerance:g}, from the unrounded mean",
        "scores": sum(row["cell"].scores.size for row in found.rows),
    }


def _require_distinct(judges: Sequence[Any]) -> None:
    seen: list[Mapping[str, Any]] = []
    for spec in resolve_all(judges, None, {}):
        identity = identity_of(spec)
        if identity in seen:
            raise JudgeSenseError(
                f"the judge {identity['judge']} is given twice; a panel needs different judges"
            )
        seen.append(identity)


def _name(judge: Any) -> str:
    if judge is None:
        return "none"
    return str(identity_of(resolve_all([judge], None, {})[0])["judge"])
