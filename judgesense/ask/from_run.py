"""From a finished run to an improved judge, without asking anything: ``improve --log DIR``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from judgesense.comparison.verdicts import select_answers
from judgesense.errors import JudgeSenseError
from judgesense.log.array import NOT_ASKED, AnswerArray, array_of
from judgesense.log.folder import read_run
from judgesense.log.schema import EQUIVALENT
from judgesense.log.view import view
from judgesense.measure.assessment import RemedyFigures
from judgesense.measure.checks import trust_card
from judgesense.measure.remedies import cheapest_that_passes, remedies
from judgesense.measure.thresholds import FEWEST_FOR_REMEDIES, Thresholds
from judgesense.measure.wordings import Wordings, wordings
from judgesense.pipeline.run_templates import in_reply_form, wordings_of
from judgesense.recipes.fitting import (
    best_of,
    crossfitted,
    offsets_of,
    pool_of,
    recipe_named,
    verdicts_by_wording,
)
from judgesense.recipes.recipe import AS_ASKED, OTHER_WORDINGS, TIE, Recipe, RecipeVerdicts
from judgesense.statistics.calibration import ask_threshold
from judgesense.statistics.intervals import share_fields
from judgesense.statistics.selection import folds_of
from local_judges.improved_judge import ImprovedJudge, judge_entry

CONFIDENCE = 0.95
"""The confidence of the bound of wrong verdicts."""

_CHECK_KEYS = ("state", "estimate", "ci_low", "ci_high", "threshold", "n_items")


def stabilise(
    run_dir: str | Path,
    *,
    judge: str | None = None,
    task: str | None = None,
    out: str | Path,
    remedy: str | None = None,
    scoring: str | None = None,
    max_error: float = 0.05,
    templates: str | Path | None = None,
) -> ImprovedJudge:
    """Write the judge with the cheapest remedy that passes to a file.

    The remedy is fitted to all items of the run. Its trust card, its accuracy and the margin below
    which a person is asked come from verdicts that were cross-fitted over clusters.

    Args:
        run_dir: the ``--out`` folder of a run.
        judge: the judge, as named in the run; may be left out if there is one.
        task: the task; may be left out if there is one.
        out: the YAML file to write.
        remedy: the name of a remedy of the report; by default the cheapest whose card passes.
        scoring: ``options`` or ``generate``; by default options if the run has it.
        max_error: the highest share of wrong verdicts above the ``ask_person`` threshold.
        templates: the file with the wordings' texts, for an import, and for a dataset with
            wordings that are not JudgeSense's own.

    Raises:
        JudgeSenseError: no such judge, task or remedy; no remedy passes; or wordings whose texts
            cannot be found.

    >>> import tempfile
    >>> from judgesense.pipeline import run
    >>> from local_judges.callable_judge import CallableJudge
    >>> def prefers_a(messages):
    ...     return [{"A": -0.1, "B": -2.4} for _ in messages]
    >>> judge = CallableJudge(prefers_a, scoring="options")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     settings = {"tasks": ["relevance"], "limit": 4, "scoring": "options", "note": str}
    ...     _ = run(judge, out=f"{folder}/run", **settings)
    ...     improved = stabilise(f"{folder}/run", out=f"{folder}/j.yaml", remedy="both orders")
    >>> improved.recipe.wordings, improved.recipe.prompts_per_item
    (('relevance-1',), 2)
    """
    if Path(out).suffix not in (".yaml", ".yml"):
        raise JudgeSenseError(f"--out {out}: name a .yaml file")
    if not 0 < max_error < 1:
        raise JudgeSenseError(f"max_error must lie between 0 and 1, got {max_error}")
    run = read_run(Path(run_dir))
    record = run.record
    logged = view(run.log, run.pairs, record).judged
    answers = select_answers(logged, judge, task, scoring, str(run_dir))
    table = Wordings.of(answers)
    flags = {row.template: row.flag for row in wordings(table)}
    flags |= dict.fromkeys(in_reply_form(run, answers), "reply form")
    thresholds = Thresholds().updated(record.get("thresholds"))
    card = trust_card(answers, thresholds=thresholds, mislabelled=table.mislabelled)
    rows = remedies(answers, card, thresholds, table.mislabelled)
    if not rows:
        raise JudgeSenseError(
            f"too few items: a remedy needs {FEWEST_FOR_REMEDIES} independent items"
        )
    array = array_of(answers, table.mislabelled)
    name = _chosen(rows) if remedy is None else remedy
    recipe, held_out = fitted_for_file(array, recipe_named(name, array), flags)
    entry = wordings_of(run, answers, recipe, templates)
    names = {template.template_id for template in entry.templates} | {OTHER_WORDINGS}
    offsets = {name: _short(row) for name, row in recipe.offsets.items() if name in names}
    recipe = replace(recipe, offsets=offsets)
    after = next((row for row in rows if row.remedy == recipe.name), None)
    identity = _identity_in(record, answers.judge)
    if "stabilised" in identity:
        raise JudgeSenseError(
            f"{answers.judge} is already an improved judge; improve the judge that it asks"
        )
    improved = ImprovedJudge(
        (judge_entry(answers.judge, identity),),
        entry,
        recipe,
        ask_person=_ask_person(array, held_out, max_error, recipe),
        expected=_expected(array, held_out, recipe),
        card={
            when: _card(row)
            for when, row in ((AS_ASKED, rows[0]), ("with the remedy", after))
            if row and row.trust
        },
        where=str(out),
    )
    data = {
        "run_id": str(record.get("run_id")),
        "hash": record.get("data_hash"),
        "dataset": dict(record.get("dataset") or {}),
        "task": answers.task.name,
        "scoring": answers.scoring,
        "judgesense": (record.get("versions") or {}).get("judgesense"),
        "rule": improved.digest,
    }
    improved = replace(improved, data=data)
    improved.write(Path(out))
    return improved


def _identity_in(record: Mapping[str, Any], judge: str) -> Mapping[str, Any]:
    """The identity of a judge in a run's record; {} where it has none, as in an import."""
    names = [entry.get("name") for entry in record.get("judges") or []]
    identities = (record.get("asked") or {}).get("judges") or []
    if judge not in names or len(names) != len(identities):
        return {}
    identity: Mapping[str, Any] = identities[names.index(judge)]
    return identity


def _chosen(rows: Sequence[RemedyFigures]) -> str:
    """The name of the cheapest remedy that passes."""
    if best := cheapest_that_passes(rows):
        return best.remedy
    cards = "; ".join(
        f"{row.remedy}: {row.trust} ({', '.join(row.because)})"
        for row in rows
        if row.trust is not None
    )
    raise JudgeSenseError(
        f"no remedy passes the trust card ({cards}). Judge more items, or choose one anyway "
        "with --remedy NAME"
    )


def fitted_for_file(
    array: AnswerArray, recipe: Recipe, flags: Mapping[str, str]
) -> tuple[Recipe, RecipeVerdicts]:
    """A recipe fitted to all items, and its verdicts on items that it was not fitted to.

    ``flags`` are those of the wordings. It asks the first wordings that no check of the wordings
    objects to, or the best one where that is the recipe: others are not chosen by their accuracy,
    so the accuracy that the file states is not selected.
    """
    pool = pool_of(array)
    if recipe.best_wording:
        panel = [pool[best_of(array, verdicts_by_wording(array, recipe))]]
    else:
        size = len(recipe.wordings)
        # Variants of a wording come last: they change less than another wording does.
        pool.sort(key=lambda name: array.wordings[array.place(name)].variant is not None)
        good = [name for name in pool if flags.get(name, "fine") == "fine"]
        panel = (good if len(good) >= size else pool)[:size]
    recipe = replace(recipe, wordings=tuple(panel), best_wording=False)
    if not recipe.calibrated:
        return recipe, recipe.decide(array)
    rows = offsets_of(array)
    learned = {name: rows[array.place(name)] for name in panel}
    if len(panel) == 1:
        # In a run each wording is asked as it is: a single one needs the offsets of all.
        learned |= {wording.name: rows[n] for n, wording in enumerate(array.wordings)}
        learned[OTHER_WORDINGS] = rows[array.of(EQUIVALENT)].mean(axis=0)
    offsets = {
        name: dict(zip(array.labels, row.tolist(), strict=True)) for name, row in learned.items()
    }
    corrected = crossfitted(array, folds_of(array.clusters))
    return replace(recipe, offsets=offsets), recipe.decide(corrected)


def _ask_person(
    array: AnswerArray, verdicts: RecipeVerdicts, max_error: float, recipe: Recipe
) -> dict[str, Any]:
    """The threshold of ask_person, from the verdicts on items with gold.

    A person is asked about every tie, so ties are not among the verdicts that are answered.
    """
    decided = (array.gold >= 0) & (verdicts.codes >= 0)
    chosen = decided & (verdicts.margin > TIE)
    if not chosen.any():
        return {"max_error": max_error, "threshold": None, "verdicts": 0}
    safe = ask_threshold(
        verdicts.margin[chosen],
        verdicts.codes[chosen] != array.gold[chosen],
        array.clusters[chosen],
        max_error=max_error,
        confidence=CONFIDENCE,
    )
    figures = asdict(safe)
    figures["verdicts"] = figures.pop("n")
    figures["answered"] *= float(chosen.sum() / decided.sum())
    # A file that people read. A threshold rounded up answers no more than was tested; margins of
    # votes are a few shares far apart, and the one that was tested is to be answered.
    if safe.threshold is not None:
        rounded = np.floor if recipe.read == "vote" else np.ceil
        figures["threshold"] = float(rounded(safe.threshold * 1e6) / 1e6)
    return {"max_error": max_error, "confidence": CONFIDENCE, **_short(figures)}


def _expected(array: AnswerArray, verdicts: RecipeVerdicts, recipe: Recipe) -> dict[str, Any]:
    """The accuracy on items that the recipe was not fitted to, and the cost of a verdict."""
    asked = (array.gold >= 0) & (verdicts.codes != NOT_ASKED)
    hits = verdicts.codes[asked] == array.gold[asked]
    accuracy, low, high = share_fields("accuracy", hits, array.clusters[asked]).values()
    cost = array.mean_cost
    return {
        **_short({"accuracy": accuracy, "ci_low": low, "ci_high": high}),
        "items": int(asked.sum()),
        "prompts_per_item": recipe.prompts_per_item,
        "usd_per_item": None if cost is None else cost * recipe.prompts_per_item,
    }


def _card(row: RemedyFigures) -> dict[str, Any]:
    """The card of a remedy's verdicts, for the file."""
    return {
        "trust": row.trust,
        "because": list(row.because),
        "checks": {
            name: _short({key: getattr(check, key) for key in _CHECK_KEYS})
            for name, check in (row.checks or {}).items()
        },
    }


def _short(figures: Mapping[str, Any]) -> dict[str, Any]:
    """Plain values, with six digits."""
    return {k: round(float(v), 6) if isinstance(v, float) else v for k, v in figures.items()}
