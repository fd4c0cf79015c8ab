"""The study of "All Prompts Are Created Equal?" (Bhat and Varma): scores under paraphrases.

Judges rate texts on 12 attributes under ten paraphrases of each instruction; people have rated the
same texts. The study measures accuracy, robustness, what explains them, and strategies that ask
more than once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from judgesense.errors import JudgeSenseError
from judgesense.log.folder import read_run
from judgesense.measure.cost import costs
from judgesense.pipeline import to_stderr
from judgesense.reporting.run_tables import cost_table
from judgesense.reporting.study_result import Record, Result
from judgesense.statistics.inputs import check_number
from judgesense.studies.common.figures import Heatmap, Lines
from judgesense.studies.common.question_sets import check_models
from judgesense.studies.common.study import PROTOCOL, Figure, Study, Tables, need_judges
from judgesense.studies.paraphrase_robustness import effects, strategy_tables, tables
from judgesense.studies.paraphrase_robustness.fuser import fuse
from judgesense.studies.paraphrase_robustness.grid import judge_grid, make_plan
from judgesense.studies.paraphrase_robustness.measures import configuration
from judgesense.studies.paraphrase_robustness.strategies import CONSTANT, SINGLE, Outcome
from judgesense.studies.paraphrase_robustness.tables import NAME, StudyMeasurements
from judgesense.text import join
from judgesense_dataset.sources.loader import Reader


def findings(s: StudyMeasurements, results: Tables) -> Iterator[str]:
    """What the tables show."""
    n_above = sum((row["ci_low"] or 0.0) > row["constant_accuracy"] for row in s.rows)
    yield (
        f"in {n_above} of {len(s.rows)} configurations, the whole interval of the judge's accuracy "
        "lies above the accuracy of always giving the most frequent score"
    )
    if insensitive := [row["judge"] for row in results["judges"].rows if row["finding"]]:
        yield (
            f"insensitive rather than robust: {join(insensitive)}. Most scores stay the same under "
            "every paraphrase, but are right no more often than a constant score"
        )


def limits(s: StudyMeasurements, results: Tables) -> Iterator[str]:
    """What the figures do not show."""
    plan = s.grid.plan
    yield (
        f"with {plan.limit} texts per task, the gap (the largest difference between "
        f"{plan.paraphrases} accuracies) is biased upwards; compare it with the gap by chance"
    )
    yield (
        "texts are drawn equally from bands of the human score, so low scores are more frequent "
        "here than in the source sets"
    )
    if "control" not in results:
        yield (
            "the same-prompt control for rewording is missing: with --scoring generate it needs "
            "--same-prompt"
        )
    for name in plan.attributes:
        cells = s.grid.of(name)
        if left_out := {cell.judge: cell.left_out for cell in cells if cell.left_out}:
            n_texts = max((outcome.n for outcome in s.outcomes if outcome.name == name), default=0)
            by_judge = ", ".join(f"{judge} {n}" for judge, n in left_out.items())
            yield (
                f"{name}: strategies are compared on {n_texts} of "
                f"{len(cells[0].items) + cells[0].left_out} texts, those that every judge decided "
                f"under every paraphrase (undecided: {by_judge})"
            )


def _gains(s: StudyMeasurements, results: Tables) -> Iterator[Record]:
    """The gain of each strategy on each attribute, exact and then within the tolerance."""
    rows = results["mitigations"].rows if "mitigations" in results else ()
    single = {row["attribute"]: row["accuracy"] for row in rows if row["strategy"] == SINGLE}
    yield from (row for row in rows if row["strategy"] != SINGLE)
    for row in rows:
        if row["strategy"] != CONSTANT:
            gain = row["near"] - single[row["attribute"]]
            yield {**row, "strategy": f"{row['strategy']}, within τ", "gain": gain}


STUDY = Study(
    NAME,
    "Paraphrase robustness of scores",
    tables=[
        tables.kinds,
        tables.tasks,
        tables.attributes,
        tables.judges,
        effects.anova,
        effects.contrasts,
        effects.correlations,
        effects.weights,
        tables.tolerance,
        effects.control,
        strategy_tables.strategies,
        strategy_tables.best_strategies,
        strategy_tables.tiers,
        strategy_tables.mitigations,
        tables.configurations,
        tables.stated,
        lambda s: cost_table(costs(s.run.log, s.grid.report.runs)),
    ],
    figures=[
        Figure(
            "accuracy_gap",
            "Accuracy against the gap between paraphrases and against the scores' coefficient of "
            "variation, sensitivity; each point is a judge on an attribute (the paper's Figure 2).",
            lambda s, results: (
                {**row, "figure": figure, "spread": row[figure]}
                for figure in ("gap", "sensitivity")
                for row in results["configurations"].rows
            ),
            Lines(
                x="accuracy",
                y="spread",
                series="kind",
                panel="figure",
                xlabel="accuracy",
                ylabel="spread over paraphrases",
                joined=False,
            ),
        ),
        Figure(
            "accuracy_heatmap",
            "Accuracy of each judge, over all paraphrases (the paper's Figure 1).",
            "configurations",
            Heatmap(row="attribute", column="judge", value="accuracy", label="accuracy"),
        ),
        Figure(
            "strategies",
            "Gain over the exact accuracy of the mean single judge (the paper's Figure 3). Within "
            "τ, the tolerance itself adds to the gain: as much as it adds to the single judge.",
            _gains,
            Heatmap(
                row="attribute",
                column="strategy",
                value="gain",
                label="gain in accuracy",
                limits=None,
            ),
        ),
    ],
    findings=[findings],
    limits=[limits],
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
    scoring: str = "options",
    fuser: Any = None,
    tolerance: float = 0.5,
    paper_wordings: bool = False,
    same_prompt: bool = False,
    mirror: str | Path | None = None,
    revisions: Mapping[str, str] | None = None,
    seed: int = 0,
    note: Callable[[str], None] = to_stderr,
) -> Result:
    """Judge what is missing in ``out``, and measure.

    Args:
        judges: what resolves to judges; panels are measured of three.
        out: the study's folder; rerun with the same folder to resume or to measure again.
        tasks: of dialogue, question-generation, summarisation, essays; all by default.
        attributes: some of the 12 attributes instead, with or without their task's name.
        data: task -> the set or file of its texts with human scores (see docs).
        limit: texts per task (100), drawn equally from five bands of the human score.
        paraphrases: how many of the ten to use.
        scoring: ``options`` reads the levels' probabilities, ``generate`` parses the text.
        fuser: the judge that fuses the ratings and reasons of three judges; None for no fuser.
        tolerance: τ, the distance from the human mean that still counts as right.
        paper_wordings: use the seven wordings that the paper prints, all as paraphrases.
        same_prompt: also ask the base wording as often as there are paraphrases, as the control;
            by default, the control is computed from option probabilities.
        mirror: a folder with ``<org>/<name>`` copies of the Hub's sets.
        revisions: Hub commits by set.

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
    check_models(judges)
    if fuser is not None:
        need_judges(judges, 3, "a fuser")
        check_models([fuser])
    plan = make_plan(
        tasks=tasks,
        attributes=attributes,
        data=data,
        limit=limit,
        paraphrases=paraphrases,
        paper=paper_wordings,
        seed=seed,
        scoring=scoring,
        revisions=dict(revisions or {}),
        same_prompt=same_prompt,
    )
    out, reader = Path(out), Reader(Path(mirror) if mirror else None, revisions or {})
    grid = judge_grid(judges, plan, reader, out, note)
    ballots = {n: votes for n in plan.attributes if (votes := grid.ballot(n, tau)) is not None}
    of_fuser = {} if fuser is None else fuse(fuser, judges, grid, ballots, out, note)
    outcomes: list[Outcome] = []
    for name, ballot in ballots.items():
        outcomes += ballot.outcomes()
        outcomes += [of_fuser[name]] if name in of_fuser else []
    rows = [configuration(cell, tau, seed) for cell in grid.cells if cell.items]
    if not rows:
        raise JudgeSenseError(
            f"no item was decided under every paraphrase by any judge in {out}: with --scoring "
            "generate a small model often writes nothing readable; --scoring options always decides"
        )
    settings = {
        **PROTOCOL,
        "judges": list(dict.fromkeys(cell.judge for cell in grid.cells)),
        "attributes": f"{len(plan.attributes)} of 12: {', '.join(plan.attributes)}",
        "items": f"{plan.limit} per task, from five bands of the human score; seed {plan.seed}",
        "texts": grid.notes,
        "wordings": "the paper's printed wordings"
        if plan.paper
        else f"{plan.paraphrases} paraphrases of each instruction, written for this project",
        "scoring": plan.scoring,
        "human scores": "raters' means; exact accuracy rounds them to a level, halves up",
        "tolerance": f"{tau:g}, from the unrounded mean",
        "scores": sum(row["cell"].scores.size for row in rows),
        "fuser": "none" if fuser is None else str(getattr(fuser, "name", fuser)),
    }
    return STUDY.result(
        StudyMeasurements(grid, read_run(out / "grid"), rows, outcomes, tau), settings
    )
