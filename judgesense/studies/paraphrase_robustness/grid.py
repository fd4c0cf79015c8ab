"""The grid of paraphrase robustness: what is judged, and each judge's scores as arrays.

``DIR/grid`` is a run like any other, with every wording of every attribute; ``DIR/same-prompt``
asks the base wording again, as often as there are paraphrases (only with ``same_prompt``).
``DIR/human_scores.json`` keeps the raters' means, so that a finished study can be measured again
from its folder alone.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc

from judgesense.benchmark import Benchmark
from judgesense.errors import JudgeSenseError
from judgesense.files.disk import require_folder, sha256_of, writing
from judgesense.files.documents import OwnShape, read_json, validate
from judgesense.log.folder import read_run
from judgesense.log.rows import AnswerRows, option_shares
from judgesense.log.view import view
from judgesense.measure.assessment import ReportContents
from judgesense.pipeline import Settings
from judgesense.statistics.arrays import Floats
from judgesense.studies.common.study import judged
from judgesense.studies.paraphrase_robustness.scored_sets import SOURCES
from judgesense.studies.paraphrase_robustness.strategies import Ballot
from judgesense.studies.paraphrase_robustness.texts import (
    PAPER_FILE,
    attributes_of,
    level,
    sample,
    sources,
)
from judgesense_dataset.embedded import Attribute
from judgesense_dataset.sources.loader import Reader

HUMAN_FILE = "human_scores.json"
PARAPHRASES = 10
ITEMS = 100
"""Texts per task, as in the paper (section 3, "Tasks & Datasets")."""

Note = Callable[[str], None]


@dataclass(frozen=True)
class RobustnessPlan:
    """What fixes a grid: the attributes, the sources of their texts, and the numbers of each.

    ``limit`` is the number of texts per task, ``revisions`` are Hub commits by set. With the
    paper's wordings (``paper``) every wording counts as a paraphrase, the first also as the base.
    ``same_prompt`` asks the base wording again, as the control for rewording.
    """

    attributes: Mapping[str, Attribute]
    data: Mapping[str, str]
    limit: int = ITEMS
    paraphrases: int = PARAPHRASES
    seed: int = 0
    scoring: str = "options"
    revisions: Mapping[str, str] = field(default_factory=dict)
    paper: bool = False
    same_prompt: bool = False

    def paraphrases_of(self, attribute: Attribute) -> range:
        """The places of an attribute's paraphrases among its wordings; the base is at 0."""
        if self.paper:
            return range(min(self.paraphrases, len(attribute.templates.templates)))
        return range(1, self.paraphrases + 1)

    def identity(self) -> dict[str, Any]:
        """The plan as JSON values; the same as in version 0.2, whose folders can be resumed."""
        return {
            "study": "paraphrase-robustness",
            "attributes": list(self.attributes),
            "data": {
                group: source if source in SOURCES[group] else f"sha256:{sha256_of(Path(source))}"
                for group, source in self.data.items()
            },
            "revisions": dict(self.revisions),
            "items": self.limit,
            "paraphrases": self.paraphrases,
            "max_words": None,
            "seed": self.seed,
            **({"templates": f"sha256:{sha256_of(PAPER_FILE)}"} if self.paper else {}),
        }

    def settings(self, repeats: int = 1) -> Settings:
        """How the grid is judged."""
        return Settings.of(self.scoring, repeats=repeats, seed=self.seed)


def make_plan(
    *,
    tasks: Sequence[str] | None = None,
    attributes: Sequence[str] | None = None,
    data: Mapping[str, str] | None = None,
    limit: int | None = None,
    paraphrases: int | None = None,
    paper: bool = False,
    **options: Any,
) -> RobustnessPlan:
    """The plan for the arguments of the study, with its defaults; ``options`` are further fields.

    Raises JudgeSenseError for an unknown task, attribute or source, and for numbers out of range.
    """
    by_name = attributes_of(attributes, tasks, paper)
    most = PARAPHRASES
    if paper:
        most = max(len(a.templates.templates) for a in by_name.values())
    n, k = limit or ITEMS, paraphrases or most
    if n < 2 or not 2 <= k <= most:
        raise JudgeSenseError(
            f"limit is {n} and paraphrases {k}: use 2 items or more, and 2 to {most} paraphrases"
        )
    source_of = sources(data or {}, [attribute.group for attribute in by_name.values()])
    return RobustnessPlan(by_name, source_of, n, k, paper=paper, **options)


@dataclass(frozen=True)
class Scores:
    """One judge's scores on one attribute: a configuration, as the paper calls it.

    ``scores`` (n, k) covers the n items on which all k paraphrases were decided. ``human`` (n,)
    are the raters' means, ``gold`` (n,) the same as levels. ``base`` (n,) is the score under the
    base wording. ``shares`` (n, k + 1, levels) are the option probabilities under the base and
    each paraphrase, None without options. ``again`` (n, k) are the scores when the base wording is
    asked k times, None if it was not. All are NaN where undecided. ``left_out`` counts items with
    an undecided paraphrase; ``cost`` is the mean number of tokens and US dollars of an answer
    (NaN without a price), ``mass`` the mean probability of all levels together.
    """

    judge: str
    attribute: Attribute
    items: tuple[str, ...]
    clusters: tuple[str, ...]
    scores: Floats
    human: Floats
    gold: Floats
    base: Floats
    shares: Floats | None
    left_out: int
    cost: Floats
    mass: float | None = None
    again: Floats | None = None

    def rows(self, items: Sequence[str]) -> list[int]:
        """The rows of some of its items."""
        return [self.items.index(item) for item in items]


@dataclass(frozen=True)
class Grid:
    """A judged grid: a configuration per judge and attribute, in the judges' order."""

    plan: RobustnessPlan
    cells: list[Scores]
    notes: list[str]
    report: ReportContents

    def of(self, attribute: str) -> list[Scores]:
        """The configurations of an attribute."""
        return [cell for cell in self.cells if cell.attribute.name == attribute]

    def ballot(self, attribute: str, tolerance: float) -> Ballot | None:
        """The judges' scores of the items on which all decided every paraphrase; None without."""
        cells = self.of(attribute)
        items = [item for item in cells[0].items if all(item in cell.items for cell in cells)]
        if not items:
            return None
        first, votes = cells[0], [cell.scores[cell.rows(items)] for cell in cells]
        rows = first.rows(items)
        return Ballot(
            attribute,
            first.attribute.verifiability,
            tuple(cell.judge for cell in cells),
            tuple(items),
            tuple(first.clusters[row] for row in rows),
            np.stack(votes, axis=2),
            first.gold[rows],
            first.human[rows],
            np.array([cell.cost for cell in cells]),
            tolerance,
        )


class _Kept(OwnShape):
    """What `HUMAN_FILE` holds: human scores by task and item, and notes on the texts."""

    human: dict[str, dict[str, float]]
    notes: list[str]


def judge_grid(
    judges: Sequence[Any], plan: RobustnessPlan, reader: Reader, out: Path, note: Note
) -> Grid:
    """Judge what is missing of the grid, and read it."""

    def sampled(wordings: int) -> tuple[Benchmark, dict[str, dict[str, float]], list[str]]:
        return sample(plan.attributes, plan.data, reader, plan.limit, plan.seed, wordings)

    def load() -> Benchmark:
        benchmark, human, notes = sampled(plan.paraphrases + (0 if plan.paper else 1))
        text = json.dumps({"human": human, "notes": notes}, indent=1)
        with writing(out):
            (out / HUMAN_FILE).write_text(text + "\n", "utf-8")
        return benchmark

    require_folder(out)
    report = judged(judges, load, plan.identity(), plan.settings(), out / "grid", note)
    path = out / HUMAN_FILE
    human_scores = validate(_Kept, read_json(path), str(path), "the human scores of a study")
    run = view(read_run(out / "grid").log)
    cells = {}
    for answers in run.judged:
        task = answers.task.name
        cells[answers.judge, task] = _scores(
            run.names[answers.judge],
            plan,
            plan.attributes[task],
            answers.as_rows(),
            human_scores.human[task],
        )
    if plan.same_prompt:
        identity = plan.identity() | {"wordings": 1}
        folder = out / "same-prompt"
        settings = plan.settings(plan.paraphrases)
        judged(judges, lambda: sampled(1)[0], identity, settings, folder, note)
        for answers in view(read_run(folder).log).judged:
            at = answers.judge, answers.task.name
            rows = answers.as_rows(repeats=True)
            cells[at] = replace(cells[at], again=_repeat_scores(cells[at], rows, plan.paraphrases))
    grid_cells = [cells[judge, task] for judge in run.log.judges for task in plan.attributes]
    return Grid(plan, grid_cells, human_scores.notes, report)


def _scores(
    judge: str,
    plan: RobustnessPlan,
    attribute: Attribute,
    answers: AnswerRows,
    human: Mapping[str, float],
) -> Scores:
    labels = attribute.templates.task.labels
    wordings = attribute.templates.templates
    templates = [wordings[at].template_id for at in (0, *plan.paraphrases_of(attribute))]
    row_of = {key: at for at, key in enumerate(zip(answers.item, answers.template, strict=True))}
    rows = np.array([[row_of[item, template] for template in templates] for item in human])
    numbers = as_scores(answers, labels)
    is_decided = np.isfinite(numbers[rows][:, 1:]).all(axis=1)
    rows = rows[is_decided]
    items = [item for item, keep in zip(human, is_decided, strict=True) if keep]
    clusters = pc.coalesce(answers.column("cluster_id"), answers.column("item_id")).to_pylist()
    mass = pc.mean(answers.column("option_mass")).as_py()
    return Scores(
        judge,
        attribute,
        items=tuple(items),
        clusters=tuple(clusters[at] for at in rows[:, 0]),
        scores=numbers[rows][:, 1:],
        human=np.array([human[item] for item in items]),
        gold=np.array([float(level(human[item], labels)) for item in items]),
        base=numbers[rows][:, 0],
        shares=None if mass is None or not items else _shares(answers, numbers, labels)[rows],
        left_out=len(human) - len(items),
        cost=mean_cost(answers),
        mass=mass,
    )


def _repeat_scores(cell: Scores, rows: AnswerRows, times: int) -> Floats:
    """The scores of a configuration's items each time that the base wording was asked."""
    scores = np.full((len(cell.items), times), np.nan)
    place = {item: at for at, item in enumerate(cell.items)}
    numbers = as_scores(rows, cell.attribute.templates.task.labels)
    for item, repeat, number in zip(rows.item, rows.repeat.tolist(), numbers, strict=True):
        if item in place:
            scores[place[item], repeat] = number
    return scores


def mean_cost(rows: AnswerRows) -> Floats:
    """The mean number of tokens and US dollars of an answer; NaN without a price."""
    n_in, n_out = (pc.fill_null(rows.column(f"{side}_tokens"), 0) for side in ("input", "output"))
    dollars = rows.column("cost_usd")
    price = np.nan if dollars.null_count else pc.mean(dollars).as_py()
    return np.array([pc.mean(pc.add(n_in, n_out)).as_py(), price])


def as_scores(rows: AnswerRows, labels: Sequence[str]) -> Floats:
    """The answers as numbers, shape (n,); NaN where undecided."""
    is_decided = np.isin(rows.label, labels)
    scores: Floats = np.where(is_decided, rows.label, "nan").astype(np.float64)
    return scores


def _shares(rows: AnswerRows, numbers: Floats, labels: Sequence[str]) -> Floats:
    """The probability of each level among the levels, shape (n, levels); NaN where undecided."""
    shares, columns = option_shares(rows.log, rows.log_rows)
    names = rows.log.labels[columns].tolist()
    level_shares: Floats = shares[:, [names.index(label) for label in labels]]
    return np.where(np.isnan(numbers)[:, None], np.nan, level_shares)
