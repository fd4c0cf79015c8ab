"""The study of "All Prompts Are Created Equal?" (Bhat and Varma): scores under paraphrases.

Judges rate texts on 12 attributes under ten paraphrases of each instruction, people have rated
the same texts; measured are accuracy, robustness, what explains them, and what mitigation gives.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from judgesense.decisions import part_files, read_log, read_part
from judgesense.errors import JudgeSenseError
from judgesense.pipeline import identity_of, resolve_all, to_stderr
from judgesense.responses import PARTS as RESPONSES
from judgesense.responses import conform_responses
from judgesense.run_folder import read_record
from judgesense.statistics.labels import check_seed
from judgesense.statistics.tables import positive_number
from judgesense.studies.common.measures import cost_table
from judgesense.studies.common.result import Result, Table, Value, need_judges
from judgesense.studies.paraphrase_robustness import mitigation_tables
from judgesense.studies.paraphrase_robustness import tables as robustness_tables
from judgesense.studies.paraphrase_robustness.fuser import fuse, undecided
from judgesense.studies.paraphrase_robustness.grid import (
    Grid,
    Plan,
    judge_grid,
    make_plan,
    same_prompt_gaps,
)
from judgesense.studies.paraphrase_robustness.measures import (
    Configuration,
    Control,
    control,
    correlations,
    effects,
    kinds_of,
    measure,
)
from judgesense.studies.paraphrase_robustness.mitigations import (
    CONSTANT,
    SINGLE,
    Outcome,
    lost,
    outcomes,
)
from judgesense.studies.paraphrase_robustness.recommendation import recommend
from judgesense.studies.paraphrase_robustness.tables import mean
from judgesense.text import join, number, short_names
from judgesense_dataset.sources.loader import Reader

STUDY = "paraphrase-robustness"
PANEL = 3
"""Judges that a panel needs: of two, the majority is one of them and the median their mean."""

DRAWN = (
    "Both gaps are drawn from the probabilities of the levels, as a judge that samples at "
    "temperature 1 among the levels would answer: one score for each paraphrase, and as many for "
    "the base wording; means of 200 draws. Accuracy is exact. The paper asked three models the "
    "same prompt ten times."
)
ASKED = (
    "The base wording was asked as often as there are paraphrases, under the judge's own decoding. "
    "At temperature 0 its gap is what other batches make of the same prompt."
)


def paraphrase_robustness(
    judges: Sequence[Any],
    out: str | Path,
    *,
    tasks: Sequence[str] | None = None,
    attributes: Sequence[str] | None = None,
    data: Mapping[str, str] | None = None,
    items: int | None = None,
    paraphrases: int | None = None,
    max_words: int | None = None,
    scoring: str = "options",
    panel: bool = True,
    fuser: Any = None,
    tolerance: float = 0.5,
    mirror: str | Path | None = None,
    revisions: Mapping[str, str] | None = None,
    seed: int = 0,
    quick: bool = False,
    note: Callable[[str], None] = to_stderr,
) -> Result:
    """Judge what is not judged yet in ``out``, and measure.

    Args:
        judges: names, Hub ids, paths, functions or loaded judges; a panel needs three.
        out: the study's folder; given again, it goes on, and a finished one is only measured.
        tasks: of dialogue, question-generation, summarisation, essays; all by default.
        attributes: some of the 12 attributes instead, with or without their task's name.
        data: task -> the set or file of its texts with human scores (see docs).
        items: texts a task (100), drawn equally from five bands of the human score.
        paraphrases: how many of the ten.
        max_words: leaves out texts with more words.
        scoring: ``options`` reads the levels' probabilities, ``generate`` parses what is written.
        panel: whether to measure panels of the judges.
        fuser: the judge that fuses the panel's ratings and reasons; None for no fuser.
        tolerance: τ, the distance from the human mean that still counts as right.
        mirror: a folder with ``<org>/<name>`` copies of the Hub's sets.
        revisions: Hub commits by set.
        seed: fixes which texts are drawn.
        quick: three texts a task and three paraphrases.
        note: hears what a person should know on the way.

    Returns:
        The result; it is not written yet.

    Raises:
        JudgeSenseError: for bad input, before a judge is loaded.
    """
    if scoring not in ("options", "generate"):
        raise JudgeSenseError(f"unknown scoring {scoring!r}; known: options, generate")
    try:
        check_seed(seed)
        tau = positive_number(tolerance, "tolerance", "0.5")
    except ValueError as error:
        raise JudgeSenseError(str(error)) from error
    if panel or fuser is not None:
        need_judges(judges, PANEL, "a panel (without: --no-panel)")
    _require_distinct(judges)
    plan = make_plan(
        tasks=tasks, names=attributes, data=data, items=items, paraphrases=paraphrases, seed=seed,
        max_words=max_words, scoring=scoring, quick=quick, revisions=revisions,
    )  # fmt: skip
    out, reader = Path(out), Reader(Path(mirror) if mirror else None, revisions or {})
    grid = judge_grid(judges, plan, reader, out, note)
    gaps = None
    if scoring == "generate":
        gaps = same_prompt_gaps(judges, grid, reader, out, note)
    tried = [one for one in outcomes(grid, tau) if panel or not one.strategy.startswith("panel")]
    if fuser is not None:
        tried = _in_order(tried + fuse(fuser, judges, grid, out, tau, note))
    found = measure(grid, tau)
    if not found:
        raise JudgeSenseError(
            f"no item was decided under every paraphrase by any judge in {out}: with --scoring "
            "generate a small model often answers nothing readable; --scoring options always "
            "decides"
        )
    controls = control(found, gaps, seed)
    result = _tabulate(grid, found, tried, controls, ASKED if gaps is not None else DRAWN, tau)
    result.limits += lost(grid)
    if fuser is not None:
        result.limits += undecided(tried)
    result.settings |= {"fuser": "none"} if fuser is None else {"fuser": _name(fuser)}
    result.tables.append(_cost(out))
    return result


RUNS = {"grid": "scores", "control": "base wording, again", "fuser/final": "fuser"}
"""The runs in a study's folder, and what they are for; the reasons are response logs."""


def _cost(out: Path) -> Table:
    """What every run in the study's folder asked, a row a run and judge, and all together."""
    logs = [(what, out / name, read_log(out / name)) for name, what in RUNS.items()
            if part_files(out / name)]  # fmt: skip
    for folder in sorted((out / "fuser").glob("reasons-*"), key=lambda path: path.name):
        if parts := part_files(folder, RESPONSES):
            said = pa.concat_tables([conform_responses(read_part(p), str(p)) for p in parts])
            names = {"model": "judge", "tokens": "output_tokens"}
            said = said.rename_columns([names.get(name, name) for name in said.column_names])
            logs.append(("reasons", folder, said))
    rows: list[dict[str, Value]] = []
    for what, folder, log in logs:
        record = read_record(folder) or {}
        record = {"judges": [record["responder"]], **record} if "responder" in record else record
        one = cost_table({"runs": [record]}, log)
        rows += [{"for": what, **row} for row in one.rows]
    figures = [name for name in rows[0] if name not in ("for", "judge")]
    rows.append({"for": "all", "judge": "", **{n: _sum([row[n] for row in rows]) for n in figures}})
    return Table("cost", one.title, ("for", *one.columns), rows, one.note, one.digits)


def _sum(values: Sequence[Value]) -> float | None:
    known = [value for value in values if isinstance(value, (int, float))]
    return sum(known) if len(known) == len(values) else None


def _require_distinct(judges: Sequence[Any]) -> None:
    seen: list[Mapping[str, Any]] = []
    for spec in resolve_all(judges, None, {}):
        identity = identity_of(spec)
        if identity in seen:
            raise JudgeSenseError(
                f"the judge {identity['judge']} is given twice: a panel of one is no panel"
            )
        seen.append(identity)


def _name(judge: Any) -> str:
    return str(identity_of(resolve_all([judge], None, {})[0])["judge"])


def _in_order(tried: Sequence[Outcome]) -> list[Outcome]:
    """Attribute by attribute, the fuser behind what it is compared with."""
    attributes = list(dict.fromkeys(one.attribute for one in tried))
    return sorted(tried, key=lambda one: attributes.index(one.attribute))


def _tabulate(
    grid: Grid,
    found: Sequence[Configuration],
    tried: Sequence[Outcome],
    controls: Sequence[Control],
    how: str,
    tau: float,
) -> Result:
    judge_table, numb = robustness_tables.judges(found)
    tiers = recommend(tried)
    tables = [
        robustness_tables.by_kind(found),
        robustness_tables.by_task(found),
        robustness_tables.by_attribute(found, tried),
        judge_table,
        robustness_tables.anovas(found),
        robustness_tables.kind_contrasts(found),
        robustness_tables.correlation_table(found),
        robustness_tables.tau_sweep(found),
        *([robustness_tables.control_table(controls, how)] if controls else []),
        *([mitigation_tables.over_all(tried, tau)] if tried else []),
        *([mitigation_tables.by_attribute(tried, tau)] if tried else []),
        mitigation_tables.recommendation_table(tiers),
        robustness_tables.configurations(found, tau),
    ]
    return Result(
        STUDY,
        "Paraphrase robustness of scores",
        _settings(grid, found, tau),
        [table for table in tables if table.rows],
        list(_findings(found, tried, controls, numb)),
        _limits(grid),
        mitigation_tables.figures(found, tried),
    )


def _settings(grid: Grid, found: Sequence[Configuration], tau: float) -> dict[str, Any]:
    plan: Plan = grid.plan
    return {
        "judges": grid.judges,
        "attributes": f"{len(plan.attributes)} of 12: {', '.join(plan.attributes)}",
        "items": f"{plan.items} a task, from five bands of the human score; seed {plan.seed}",
        "texts": grid.notes,
        "wordings": f"{plan.paraphrases} paraphrases of each instruction, written for this project",
        "scoring": plan.scoring,
        "human scores": "raters' means; exact accuracy rounds them to a level, halves up",
        "tolerance": f"{tau:g}, from the mean as it is",
        "scores": sum(one.scores.scores.size for one in found),
    }


def _findings(
    found: Sequence[Configuration],
    tried: Sequence[Outcome],
    controls: Sequence[Control],
    numb: Sequence[str],
) -> Iterator[str]:
    n = len(found)
    means = {
        kind: float(np.mean([one.found.accuracy for one in found if one.kind == kind]))
        for kind in kinds_of(found)
    }
    yield "accuracy: " + ", ".join(f"{number(v, 2)} on {k} attributes" for k, v in means.items())
    above = sum((one.found.accuracy_ci_low or 0.0) > one.constant for one in found)
    at_all = sum(one.found.accuracy > one.constant for one in found)
    yield (
        f"in {at_all} of {n} configurations the judge is right more often than one who always "
        f"gives the commonest score, in {above} with its whole interval"
    )
    gaps = [one.found for one in found if one.found.win_rate_gap is not None]
    wide = sum((one.win_rate_gap or 0) > (one.win_rate_gap_chance or 0) for one in gaps)
    yield (
        f"the mean win-rate gap is {number(mean([g.win_rate_gap for g in gaps]))}; if each item's "
        "scores were dealt to the paraphrases at random it would be "
        f"{number(mean([g.win_rate_gap_chance for g in gaps]))}; it is wider than that in "
        f"{wide} of {n} configurations"
    )
    strongest = [
        (one.test.effect, one.factor)
        for one in effects(found)
        if one.over == "configurations" and one.test and one.test.effect is not None
    ]
    if strongest:
        ranked = ", ".join(f"{name} {number(eta, 2)}" for eta, name in sorted(strongest)[::-1])
        yield f"share of the variance of accuracy between configurations (η²): {ranked}"
    for one in correlations(found):
        if one.among == "all" and one.pearson is not None and one.pearson_p is not None:
            yield (
                f"accuracy against {one.figure}: r = {number(one.pearson, 2)} "
                f"({_p(one.pearson_p)}, n = {one.n})"
            )
    if numb:
        yield (
            f"{join(list(numb))}: insensitive, not robust: most scores stay the same under every "
            "paraphrase and are right no more often than a constant score"
        )
    if controls and controls[-1].test.p_value is not None:
        last = controls[-1]
        yield (
            f"rewording moves accuracy by {number(last.reworded)} and asking the same again by "
            f"{number(last.same)} (Wilcoxon {_p(last.test.p_value)}, {last.n} "
            "configurations)"
        )
    yield from _strategy_findings(tried)


def _strategy_findings(tried: Sequence[Outcome]) -> Iterator[str]:
    single = {one.attribute: one for one in tried if one.strategy == SINGLE}
    gains: dict[str, list[float]] = {}
    for one in tried:
        if one.strategy not in (SINGLE, CONSTANT):
            gains.setdefault(one.strategy, []).append(one.gain(single[one.attribute])[0])
    for name, own in gains.items():
        yield (
            f"{name}: {_signed(float(np.mean(own)))} exact accuracy against the mean single judge "
            f"(from {_signed(min(own))} to {_signed(max(own))} over {len(own)} attributes)"
        )
    if single:
        constant = np.mean([o.exact.mean() for o in tried if o.strategy == CONSTANT])
        alone = np.mean([o.exact.mean() for o in single.values()])
        yield (
            f"always the commonest human score is right {number(float(constant))} of the time, the "
            f"mean single judge {number(float(alone))}"
        )


def _signed(value: float) -> str:
    return f"{value:+z.3f}".replace("-", "−")


def _p(value: float | None) -> str:
    return "p < 0.001" if value is not None and value < 0.0005 else f"p = {number(value)}"


def _limits(grid: Grid) -> list[str]:
    plan = grid.plan
    said = [
        f"{plan.items} texts a task: an accuracy of a configuration has an interval of about "
        f"±{1 / np.sqrt(plan.items):.2f}, and a largest difference of {plan.paraphrases} "
        "accuracies is biased upwards; read the gap beside the gap by chance",
        "the wordings are this project's, not the paper's, which prints only a few of its own",
        "texts are drawn equally from bands of the human score, so that low scores are commoner "
        "here than in the sets; accuracies say nothing about the sets' own mix",
    ]
    if plan.scoring == "options":
        said.append(
            "the most probable level is the score: a judge that would rather write something else "
            "is scored all the same"
        )
    absent = 12 - len(plan.attributes)
    if absent:
        said.append(f"{absent} of the paper's 12 attributes were not judged")
    if "summarisation" in plan.data and plan.data["summarisation"] == "summeval":
        said.append("the summaries are SummEval's, not TL;DR's; quality is a mean of four ratings")
    said += [
        f"{join(names)} are one model under several settings: they share their errors, and a panel "
        "of them is no panel of independent votes"
        for names in one_model(grid.report)
    ]
    return said


def one_model(report: Mapping[str, Any]) -> list[list[str]]:
    """The judges of a report that are one model: of the same weights, or of one endpoint's model.

    Of functions nothing is known.
    """
    described = {
        judge["name"]: judge.get("describe", {})
        for run in report.get("runs", ())
        for judge in (run or {}).get("judges", ())
    }
    names = short_names(set(described))
    models: dict[str, list[str]] = {}
    for name, fixed in described.items():
        if model := fixed.get("weights") or fixed.get("model"):
            models.setdefault(model, []).append(names[name])
    return [own for own in models.values() if len(own) > 1]
