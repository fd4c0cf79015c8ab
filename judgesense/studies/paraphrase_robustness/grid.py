"""The grid of paraphrase robustness: what is judged, and each judge's scores as arrays.

A grid is judged once (``DIR/grid``, a run like any other) with every wording of every attribute;
``DIR/human_scores.json`` keeps the raters' means, so that a finished study measures anew from the
folder alone.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from judgesense.benchmark import Benchmark
from judgesense.decisions import read_log
from judgesense.errors import JudgeSenseError
from judgesense.pipeline import Settings
from judgesense.run_folder import require_writable, writing
from judgesense.studies.common.result import judged
from judgesense.studies.paraphrase_robustness.attributes import (
    attributes,
    identity_of,
    level,
    sample,
    sources,
)
from judgesense.text import short_names
from judgesense_dataset.embedded import Attribute
from judgesense_dataset.sources.loader import Reader

Floats = npt.NDArray[np.float64]

HUMAN_FILE = "human_scores.json"
PARAPHRASES = 10
ITEMS = 100
"""Texts a task, as in the paper (section 3, "Tasks & Datasets")."""

QUICK = {"items": 3, "paraphrases": 3}


@dataclass(frozen=True)
class Plan:
    """What fixes a grid: the attributes, where their texts come from, and how many of each."""

    attributes: Mapping[str, Attribute]
    data: Mapping[str, str]
    items: int = ITEMS
    paraphrases: int = PARAPHRASES
    seed: int = 0
    max_words: int | None = None
    scoring: str = "options"
    revisions: Mapping[str, str] = field(default_factory=dict)
    """Hub commits by set."""

    def identity(self) -> dict[str, Any]:
        """The plan as JSON values."""
        return {
            "study": "paraphrase-robustness",
            "attributes": list(self.attributes),
            "data": identity_of(self.data),
            "revisions": dict(self.revisions),
            "items": self.items,
            "paraphrases": self.paraphrases,
            "max_words": self.max_words,
            "seed": self.seed,
        }

    def settings(self, repeats: int = 1) -> Settings:
        """How the grid is judged."""
        return Settings.of(self.scoring, repeats=repeats, seed=self.seed)


def make_plan(
    *,
    tasks: Sequence[str] | None = None,
    names: Sequence[str] | None = None,
    data: Mapping[str, str] | None = None,
    items: int | None = None,
    paraphrases: int | None = None,
    seed: int = 0,
    max_words: int | None = None,
    scoring: str = "options",
    quick: bool = False,
    revisions: Mapping[str, str] | None = None,
) -> Plan:
    """A plan as people give it; raises JudgeSenseError for what cannot be."""
    standard = QUICK if quick else {"items": ITEMS, "paraphrases": PARAPHRASES}
    n, k = items or standard["items"], paraphrases or standard["paraphrases"]
    if n < 2 or not 2 <= k <= PARAPHRASES:
        raise JudgeSenseError(
            f"{n} items and {k} paraphrases: give 2 items or more, and 2 to {PARAPHRASES} "
            "paraphrases"
        )
    wanted = attributes(names, tasks)
    chosen = sources(data or {}, [attribute.group for attribute in wanted.values()])
    return Plan(wanted, chosen, n, k, seed, max_words, scoring, dict(revisions or {}))


@dataclass(frozen=True)
class Scores:
    """One judge's scores on one attribute: a configuration, as the paper calls it.

    ``scores`` has shape (n, k): the items on which every paraphrase was decided. ``human`` are the
    raters' means, ``gold`` the same as levels, shape (n,). ``base`` (n,) is the score under the
    base wording. ``shares`` (n, k + 1, levels) are the options' probabilities under the base and
    each paraphrase, None unless options were scored. Both are NaN where undecided. ``left_out``
    counts items with an undecided paraphrase. ``mass`` is the mean probability of all levels
    together.
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
    tokens: float
    dollars: float | None
    mass: float | None = None

    @property
    def levels(self) -> Floats:
        """The scale."""
        return np.array([float(label) for label in self.attribute.templates.task.labels])


@dataclass
class Grid:
    """A judged grid: a configuration each for judge × attribute, in the judges' order."""

    plan: Plan
    judges: list[str]
    cells: list[Scores]
    notes: list[str] = field(default_factory=list)
    report: Mapping[str, Any] = field(default_factory=dict)

    def of(self, attribute: str) -> list[Scores]:
        """The configurations of an attribute."""
        return [cell for cell in self.cells if cell.attribute.name == attribute]


def judge_grid(
    judges: Sequence[Any], plan: Plan, reader: Reader, out: Path, note: Callable[[str], None]
) -> Grid:
    """Have the grid judged where it is not yet, and read it."""

    def load() -> Benchmark:
        drawn = sample(
            plan.attributes, plan.data, reader, plan.items, plan.seed, plan.paraphrases,
            plan.max_words,
        )  # fmt: skip
        text = json.dumps({"human": drawn.human, "notes": list(drawn.notes)}, indent=1)
        with writing(out):
            (out / HUMAN_FILE).write_text(text + "\n", "utf-8")
        return drawn.benchmark

    require_writable(out)
    report = judged(judges, load, plan.identity(), plan.settings(), out / "grid", note)
    if not (out / HUMAN_FILE).is_file():
        load()
    return read_grid(out, plan, report)


def read_grid(out: Path, plan: Plan, report: Mapping[str, Any]) -> Grid:
    """The grid that lies in a study's folder."""
    kept = json.loads((out / HUMAN_FILE).read_text("utf-8"))
    log = read_log(out / "grid")
    names = short_names(set(log["judge"].unique().to_pylist()))
    judges = [names[judge] for judge in log["judge"].unique().to_pylist()]
    rows = _by_cell(log)
    cells = [
        _scores(judge_name, plan, task, rows[judge, task], kept["human"][task])
        for judge, judge_name in zip(log["judge"].unique().to_pylist(), judges, strict=True)
        for task in plan.attributes
    ]
    return Grid(plan, judges, cells, kept["notes"], report)


Row = dict[str, Any]


def _by_cell(log: pa.Table) -> dict[tuple[str, str], dict[tuple[str, str], Row]]:
    """Each judge's rows on each task by (item, template)."""
    columns = ["judge", "task", "item_id", "cluster_id", "template_id", "status", "decision",
               "option_logprobs", "option_mass", "input_tokens", "output_tokens",
               "cost_usd"]  # fmt: skip
    found: dict[tuple[str, str], dict[tuple[str, str], Row]] = {}
    for row in log.select(columns).to_pylist():
        place = row["item_id"], row["template_id"]
        found.setdefault((row["judge"], row["task"]), {})[place] = row
    return found


def _scores(
    judge: str,
    plan: Plan,
    task: str,
    rows: Mapping[tuple[str, str], Row],
    human: Mapping[str, float],
) -> Scores:
    attribute = plan.attributes[task]
    base, *others = [t.template_id for t in attribute.templates.templates[: plan.paraphrases + 1]]
    labels = attribute.templates.task.labels
    items = [item for item in human if all(rows[item, other]["status"] == "ok" for other in others)]
    table = np.array(
        [[float(rows[item, other]["decision"]) for other in others] for item in items]
    ).reshape(len(items), len(others))
    spent = [row["cost_usd"] for row in rows.values()]
    tokens = [(row["input_tokens"] or 0) + (row["output_tokens"] or 0) for row in rows.values()]
    masses = [row["option_mass"] for row in rows.values() if row["option_mass"] is not None]
    scored = any(row["option_logprobs"] for row in rows.values())
    return Scores(
        judge=judge,
        attribute=attribute,
        items=tuple(items),
        clusters=tuple(rows[item, base]["cluster_id"] for item in items),
        scores=table,
        human=np.array([human[item] for item in items]),
        gold=np.array([float(level(human[item], labels)) for item in items]),
        base=np.array([_number(rows[item, base]) for item in items]),
        shares=_shares(rows, items, [base, *others], labels) if scored and items else None,
        left_out=len(human) - len(items),
        tokens=float(np.mean(tokens)),
        dollars=None if None in spent else float(np.mean(spent)),
        mass=float(np.mean(masses)) if masses else None,
    )


def _number(row: Row) -> float:
    return float(row["decision"]) if row["status"] == "ok" else float("nan")


def _shares(
    rows: Mapping[tuple[str, str], Row],
    items: Sequence[str],
    templates: Sequence[str],
    labels: Sequence[str],
) -> Floats:
    """The probability of each level among the levels, shape (items, templates, levels)."""
    found = np.array([[_logprobs(rows[i, t], labels) for t in templates] for i in items])
    found = np.exp(found - found.max(axis=2, keepdims=True))
    shares: Floats = found / found.sum(axis=2, keepdims=True)
    return shares


def _logprobs(row: Row, labels: Sequence[str]) -> list[float]:
    if row["status"] != "ok":
        return [float("nan")] * len(labels)
    found = {option["option"]: option["logprob"] for option in row["option_logprobs"]}
    return [found[label] for label in labels]


@dataclass(frozen=True)
class Gaps:
    """Win-rate gaps of a configuration when the wording changes and when it does not.

    Both are over the same ``items``: those decided under every paraphrase and every time that the
    base wording was asked.
    """

    reworded: float
    same: float
    items: int


def same_prompt_gaps(
    judges: Sequence[Any], grid: Grid, reader: Reader, out: Path, note: Callable[[str], None]
) -> dict[str, dict[str, Gaps]]:
    """Paraphrases against the base wording asked k times: judge -> attribute -> gaps.

    The base wording is asked again in ``DIR/control``. A configuration without an item that both
    decided is not there.
    """
    plan = grid.plan

    def load() -> Benchmark:
        return sample(
            plan.attributes, plan.data, reader, plan.items, plan.seed, 0, plan.max_words
        ).benchmark

    identity = {**plan.identity(), "control": "the base wording, asked again"}
    judged(judges, load, identity, plan.settings(plan.paraphrases), out / "control", note)
    log = read_log(out / "control")
    names = short_names(set(log["judge"].unique().to_pylist()))
    given: dict[tuple[str, str], dict[str, list[float]]] = {}
    columns = ["judge", "task", "item_id", "status", "decision"]
    for row in log.select(columns).to_pylist():
        own = given.setdefault((names[row["judge"]], row["task"]), {})
        own.setdefault(row["item_id"], []).append(_number(row))
    gaps: dict[str, dict[str, Gaps]] = {}
    for cell in grid.cells:
        again = given.get((cell.judge, cell.attribute.name), {})
        both = [
            at for at, item in enumerate(cell.items) if np.isfinite(again.get(item, [np.nan])).all()
        ]
        if both:
            same = np.array([again[cell.items[at]] for at in both])
            gaps.setdefault(cell.judge, {})[cell.attribute.name] = Gaps(
                _gap(cell.scores[both], cell.gold[both]), _gap(same, cell.gold[both]), len(both)
            )
    return gaps


def _gap(scores: Floats, gold: Floats) -> float:
    """The difference between the best and the worst column's share of right scores."""
    return float(np.ptp((scores == gold[:, None]).mean(axis=0)))
