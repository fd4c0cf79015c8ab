"""Tables that several studies share: made from a run's report and its decision log."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from judgesense.decisions.streams import BASELINES
from judgesense.report_file import main_cells, task_rank
from judgesense.reporting.table import undecided_share
from judgesense.statistics.consequence import Consequence, consequence
from judgesense.statistics.ranking import ranking_stability
from judgesense.studies.common.result import Table
from judgesense.tasks import UNDECIDED, is_scale
from judgesense.text import join, percent, short_names
from judgesense.trust.thresholds import LEAST_COVERAGE

FOLDS = 5
"""Into so many parts the clusters are split to see how much a wording's score varies."""

LONGEST_EXCERPT = 160


@dataclass(frozen=True)
class Stream:
    """The decisions of one judge on one task under one scoring, as rows of the log."""

    judge: str
    task: str
    scoring: str
    rows: tuple[dict[str, Any], ...]

    @property
    def templates(self) -> list[str]:
        """The wordings asked, in order of their first row."""
        return list(dict.fromkeys(row["template_id"] for row in self.rows))

    @property
    def has_gold(self) -> bool:
        """Whether every row has a gold label."""
        return all(row["gold"] is not None for row in self.rows)


def streams(log: pa.Table) -> Iterator[Stream]:
    """The log by judge, task and scoring; judges under short names."""
    columns = (
        "item_id", "cluster_id", "template_id", "order", "repeat", "decision", "gold", "system_id",
    )  # fmt: skip
    names = short_names(set(pc.unique(log["judge"]).to_pylist()))
    groups: dict[tuple[str, str, str], list[dict[str, Any]]] = defaultdict(list)
    key_columns = log.select(["judge", "task", "scoring"]).to_pylist()
    for key, row in zip(key_columns, log.select(columns).to_pylist(), strict=True):
        groups[key["judge"], key["task"], key["scoring"]].append(row)
    for (judge, task, scoring), rows in groups.items():
        yield Stream(names[judge], task, scoring, tuple(rows))


def cases(report: Mapping[str, Any]) -> list[tuple[str, dict[str, Any], dict[str, Any]]]:
    """Each judge (its short name) on each task and scoring, with its raw and its mapped cell."""
    found = main_cells(report)
    keys = sorted(
        (key for key in found if key[1] not in BASELINES),
        key=lambda key: (task_rank(key[2]), key[1], key[3]),
    )
    names = short_names({key[1] for key in keys})
    return [(names[key[1]], found[key]["raw"], found[key]["mapped"]) for key in keys]


def jss_table(report: Mapping[str, Any]) -> Table:
    """JSS beside the noise floor, accuracy and what could not be decided, a row a judge and task.

    ``flips by wording`` is the flip rate of rewording; the noise floor that of the same prompt
    asked again, None without repeats.
    """
    rows = [
        (
            judge, cell["task"], cell["scoring"], raw["jss"], cell["jss"], cell["ci_low"],
            cell["ci_high"], cell["flip_rate"], cell["noise_floor"], cell["accuracy"],
            cell["first_position_rate"], undecided_share(cell), cell["n_items"],
            cell["n_pairs"], cell["verdict"],
        )
        for judge, raw, cell in cases(report)
    ]  # fmt: skip
    return Table(
        "jss",
        "Sensitivity to wording",
        (
            "judge", "task", "scoring", "raw JSS", "JSS", "low", "high", "flips by wording",
            "noise floor", "accuracy", "first position", "undecided", "items", "pairs", "verdict",
        ),
        rows,
        "JSS is mapped through the label maps; its 95% interval is Wilson's, clustered by item and "
        "conditional on these wordings.",
    )  # fmt: skip


def sensitivity(cell: Mapping[str, Any]) -> str:
    """What rewording changes, against what asking again changes, as a sentence."""
    said = f"rewording changes {percent(cell['flip_rate'])} of the verdicts"
    if cell["noise_floor"] is None:
        return f"{said}; the noise floor is unknown (it needs repeats)"
    return f"{said}, asking the same prompt again {percent(cell['noise_floor'])}"


def wording_table(log: pa.Table, z: float = 1.0) -> tuple[Table, dict[tuple[str, str, str], str]]:
    """Each wording's score, and the wording to use by its lower confidence bound.

    A wording's score is its accuracy where every item has a gold label, else its agreement with
    the majority of the other wordings. An undecided answer counts as wrong, or as disagreement: a
    wording that gets no verdict out of a judge is no better for it. The clusters are split into
    five parts; the wording with the highest mean - z * sd / sqrt(5) over them is chosen (Prompt
    ranking stability, the LCB rule). With fewer than ten clusters there is no bound and no choice,
    and none where that wording leaves most of its answers undecided.
    """
    rows: list[Sequence[Any]] = []
    chosen = {}
    for stream in streams(log):
        scores = _scores(stream)
        clusters = list(dict.fromkeys(cluster for _, cluster, _ in scores))
        fold = {cluster: at % FOLDS for at, cluster in enumerate(clusters)}
        parts: dict[tuple[int, str], list[float]] = defaultdict(list)
        whole: dict[str, list[float]] = defaultdict(list)
        for (template, cluster, _), value in scores.items():
            parts[fold[cluster], template].append(value)
            whole[template].append(value)
        undecided = _undecided(stream)
        bounds: dict[str, float | None] = dict.fromkeys(stream.templates)
        complete = all((n, t) in parts for n in range(FOLDS) for t in stream.templates)
        if len(clusters) >= 2 * FOLDS and complete:
            table = [
                [_mean(parts[n, template]) for template in stream.templates] for n in range(FOLDS)
            ]
            found = ranking_stability(table, k=1, z=z)
            if found.lcb is not None and found.selected_lcb is not None:
                bounds.update(zip(stream.templates, found.lcb, strict=True))
                best = stream.templates[found.selected_lcb]
                if undecided[best] <= 1 - LEAST_COVERAGE:
                    chosen[stream.judge, stream.task, stream.scoring] = best
        for template in stream.templates:
            own = whole[template]
            rows.append(
                (
                    stream.judge, stream.task, stream.scoring, template,
                    "accuracy" if stream.has_gold else "agreement",
                    _mean(own) if own else None, bounds[template], undecided[template], len(own),
                    chosen.get((stream.judge, stream.task, stream.scoring)) == template,
                )
            )  # fmt: skip
    note = (
        f"lower bound: mean − {z:g}·sd/√{FOLDS} over {FOLDS} parts of the items; undefined below "
        f"{2 * FOLDS} items. undecided: the share of answers without a verdict, which count as "
        "wrong or as disagreement; a wording that leaves most answers undecided is never the one "
        "to use. n: item × order (for agreement, those where the other wordings have a majority)."
    )
    columns = (
        "judge", "task", "scoring", "wording", "score is", "score", "lower bound",
        "undecided", "n", "use",
    )  # fmt: skip
    return Table("wordings", "Which wording to use", columns, rows, note), chosen


def _scores(stream: Stream) -> dict[tuple[str, str, str], float]:
    """A score for each (template, cluster, item and order), repeats averaged.

    Without gold, none where the other wordings have no majority.
    """
    asked: dict[tuple[str, str], dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    gold: dict[tuple[str, str], str | None] = {}
    for row in stream.rows:
        thing = row["cluster_id"], f"{row['item_id']}\x00{row['order']}"
        gold[thing] = row["gold"]
        asked[thing][row["template_id"]].append(row["decision"])
    scores = {}
    for (cluster, item), by_template in asked.items():
        for template, own in by_template.items():
            truth = gold[cluster, item] if stream.has_gold else _majority(by_template, template)
            if truth is not None:
                scores[template, cluster, item] = _mean([float(said == truth) for said in own])
    return scores


def _undecided(stream: Stream) -> dict[str, float]:
    """Each wording's share of answers without a verdict."""
    answers: dict[str, list[float]] = defaultdict(list)
    for row in stream.rows:
        answers[row["template_id"]].append(float(row["decision"] in UNDECIDED))
    return {template: _mean(own) for template, own in answers.items()}


def _majority(by_template: Mapping[str, Sequence[str]], left_out: str) -> str | None:
    """What most of the other wordings say; None on a tie or if they say nothing."""
    votes = Counter(
        said
        for name, own in by_template.items()
        if name != left_out
        for said in own
        if said not in UNDECIDED
    )
    ranked = votes.most_common(2)
    if not ranked or (len(ranked) == 2 and ranked[0][1] == ranked[1][1]):
        return None
    return ranked[0][0]


def systems_table(
    log: pa.Table, labels: Mapping[str, Sequence[str]]
) -> tuple[Table | None, dict[tuple[str, str, str], Consequence]]:
    """Whether the judged systems rank alike under every wording; None without two systems.

    ``labels`` are each task's decisions. A level's score is its number; labels that are no numbers
    stand best first: of two, the first scores 1 and the second 0. Comparative tasks are left out:
    their items hold two systems.
    """
    rows: list[Sequence[Any]] = []
    results = {}
    for stream in streams(log):
        known = [row for row in stream.rows if row["system_id"] and row["order"] == "-"]
        if len({row["system_id"] for row in known}) < 2:
            continue
        score = _score_of(labels[stream.task])
        found = consequence(
            [score.get(row["decision"]) for row in known],
            [row["system_id"] for row in known],
            [row["template_id"] for row in known],
            [row["cluster_id"] for row in known],
        )
        results[stream.judge, stream.task, stream.scoring] = found
        for template, best, values in zip(
            found.templates, found.winners, found.scores, strict=False
        ):
            rows.append(
                (
                    stream.judge, stream.task, stream.scoring, template, join(best),
                    _ranking(found.systems, values),
                )
            )  # fmt: skip
    if not rows:
        return None, results
    columns = ("judge", "task", "scoring", "wording", "winner", "ranking (mean score)")
    return Table("systems", "Does the ranking of the systems survive?", columns, rows), results


def _ranking(systems: Sequence[str], values: Sequence[float]) -> str:
    ranked = sorted(zip(values, systems, strict=True), key=lambda each: -each[0])
    text = f"{ranked[0][1]} {ranked[0][0]:.2f}"
    for (before, _), (value, name) in pairwise(ranked):
        text += f" {'=' if value == before else '>'} {name} {value:.2f}"
    return text


def _score_of(labels: Sequence[str]) -> dict[str, float]:
    if is_scale(labels):
        return {label: float(label) for label in labels}
    return {label: float(len(labels) - 1 - at) for at, label in enumerate(labels)}


def flips_table(report: Mapping[str, Any], most: int = 12) -> Table | None:
    """Items whose verdict flipped, the two wordings side by side; None if none did."""
    shown = report["examples"][:most]
    if not shown:
        return None
    names = short_names({each["judge"] for each in shown})

    def side(each: Mapping[str, Any]) -> str:
        answer = " ".join(str(each["answer"] or "").split())[:LONGEST_EXCERPT]
        said = f"{each['decision']}" + (f" ({answer!r})" if answer else "")
        return f"{each['template']}: {said}"

    rows = [
        (
            names[each["judge"]], each["task"], each["scoring"], each["item_id"],
            each["gold"] or "–", side(each["a"]), side(each["b"]),
        )
        for each in shown
    ]  # fmt: skip
    columns = ("judge", "task", "scoring", "item", "gold", "one wording", "the other")
    return Table(
        "flips", "Flipped examples", columns, rows, "What was answered stands in brackets."
    )


def cost_table(report: Mapping[str, Any], log: pa.Table) -> Table:
    """What was asked: prompts, tokens, US dollars and seconds, a row a judge.

    Dollars are None where no price is known. A prompt counts once, however many rows share it.
    """
    rows = []
    keys = ["judge", "prompt_id", "repeat"]
    once = log.group_by(keys).aggregate(
        [("cost_usd", "max"), ("input_tokens", "max"), ("output_tokens", "max")]
    )
    seconds = {
        entry["name"]: entry.get("seconds")
        for run in report["runs"]
        for entry in (run or {}).get("judges", [])
    }
    for judge in pc.unique(log["judge"]).to_pylist():
        own = once.filter(pc.equal(once["judge"], judge))
        rows.append(
            (
                judge, own.num_rows, pc.sum(own["input_tokens_max"]).as_py(),
                pc.sum(own["output_tokens_max"]).as_py(), pc.sum(own["cost_usd_max"]).as_py(),
                seconds.get(judge),
            )
        )  # fmt: skip
    columns = ("judge", "prompts", "input tokens", "output tokens", "US dollars", "seconds")
    return Table(
        "cost", "Cost", columns, rows,
        "US dollars are undefined without a price; seconds are those of starts that came to "
        "their end, not of one that was stopped.", 2,
    )  # fmt: skip


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
