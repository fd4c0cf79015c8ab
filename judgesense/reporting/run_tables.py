"""Tables of a result that a run's report and its decision log fill: for checks and studies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from judgesense.log.view import BASELINES, view
from judgesense.measure.report_file import identity, main_cells, task_rank
from judgesense.measure.thresholds import SIGNIFICANT
from judgesense.reporting.study_result import Record, Table
from judgesense.reporting.tables import undecided_share
from judgesense.statistics.consequence import Consequence, consequence
from judgesense.tasks import NO_ORDER, is_scale
from judgesense.text import join, p_value, percent, short_names

LONGEST_EXCERPT = 160

Ids = tuple[str, str, str]
"""A judge's short name, its task and its scoring."""


def cases(report: Mapping[str, Any]) -> list[tuple[str, dict[str, Any], dict[str, Any]]]:
    """Each judge (by short name) on each task and scoring, with its raw and its mapped cell."""
    found = main_cells(report)
    keys = sorted(
        (key for key in found if key[1] not in BASELINES),
        key=lambda key: (task_rank(key[2]), key[1], key[3]),
    )
    names = short_names({key[1] for key in keys})
    return [(names[key[1]], found[key]["raw"], found[key]["mapped"]) for key in keys]


def jss_table(report: Mapping[str, Any]) -> Table:
    """JSS, noise floor, accuracy and undecided share, with a row per judge, task and scoring.

    The flip rate is that of rewording; the noise floor is that of the same prompt asked again,
    None without repeats.
    """
    cards = {identity(entry): entry for entry in report["trust"]}
    rows = []
    for judge, raw, cell in cases(report):
        card = cards[identity(cell)]
        steady = card["checks"]["steady"]
        jss = steady["estimate"]
        rows.append(
            {
                "judge": judge,
                "task": cell["task"],
                "scoring": cell["scoring"],
                "jss_raw": raw["jss"],
                "jss": jss,
                "ci_low": steady["ci_low"],
                "ci_high": steady["ci_high"],
                "flip_rate": None if jss is None else 1 - jss,
                "noise_floor": cell["noise_floor"],
                "accuracy": cell["accuracy"],
                "first_position": cell["first_position_rate"],
                "undecided": undecided_share(cell),
                **{key: cell[key] for key in ("n_items", "n_pairs")},
                "trust": card["trust"],
            }
        )
    return Table.from_records(
        "jss",
        "Sensitivity to wording",
        rows,
        "JSS and its 95% interval are those of the trust card. They use the verdicts after the "
        "label maps. Flip rate: the share of pairs of wordings with different verdicts. Noise "
        "floor: the share of pairs of repeats of one prompt with different verdicts.",
        jss_raw="raw JSS",
    )


def wordings_table(report: Mapping[str, Any]) -> Table:
    """Every wording beside the others, and the one to use, if the report recommends one."""
    use = {identity(row): row["template"] for row in report["recommendation"]}
    short = short_names({row["judge"] for row in report["wordings"]})
    rows = [
        {
            "judge": short[row["judge"]],
            "task": row["task"],
            "scoring": row["scoring"],
            "template": row["template"],
            "score_type": "agreement" if row["accuracy"] is None else "accuracy",
            "score": row["agreement"] if row["accuracy"] is None else row["accuracy"],
            **{
                key: row[key]
                for key in ("agreement", "kappa", "flag", "jss_without", "n_prompts", "in_best_set")
            },
            "use": row["template"] == use[identity(row)],
        }
        for row in report["wordings"]
    ]
    return Table.from_records(
        "wordings",
        "Which wording to use",
        rows,
        "Score: accuracy, or agreement with the consensus of the other wordings if there are no "
        "gold labels. An answer without a verdict counts as wrong. Best set: the wordings that "
        "cannot be told apart from the best one. Use: marks a wording only if it is clearly "
        "better. A judge to avoid also needs a wording that passes the checks it fails.",
        template="wording",
        score_type="score is",
        jss_without="JSS without it",
        in_best_set="in best set",
    )


def systems_table(
    log: pa.Table, labels: Mapping[str, Sequence[str]]
) -> tuple[Table, dict[Ids, Consequence]]:
    """Whether the judged systems rank alike under every wording; empty without two systems.

    ``labels`` are each task's decisions. A numeric level scores its number. Other labels are
    ordered best first: of two, the first scores 1 and the second 0. Comparative tasks are left
    out, because their items hold two systems.
    """
    rows: list[Record] = []
    results = {}
    seen = view(log)
    for stream in seen.judged:
        ids = (seen.names[stream.judge], stream.task.name, stream.scoring)
        answers, levels = stream.as_rows(repeats=True), labels[stream.task.name]
        score = {
            label: float(label) if is_scale(levels) else float(len(levels) - 1 - at)
            for at, label in enumerate(levels)
        }
        systems = answers.column("system_id").to_pylist()
        known = [at for at, name in enumerate(systems) if name and answers.order[at] == NO_ORDER]
        if len({systems[at] for at in known}) < 2:
            continue
        found = results[ids] = consequence(
            [score.get(label) for label in answers.label[known]],
            [systems[at] for at in known],
            answers.template[known].tolist(),
            answers.cluster[known].tolist(),
            repeat_ids=answers.repeat[known],
        )
        rows += [
            {
                "judge": ids[0],
                "task": ids[1],
                "scoring": ids[2],
                "template": template,
                "winner": join(best),
                "ranking": ", ".join(
                    f"{name} {-value:.2f}"
                    for value, name in sorted(
                        zip([-value for value in values], found.systems, strict=True)
                    )
                ),
            }
            for template, best, values in zip(
                found.templates, found.winners, found.scores, strict=False
            )
        ]
    return Table.from_records(
        "systems",
        "Does the ranking of the systems survive?",
        rows,
        template="wording",
        ranking="ranking (mean score)",
    ), results


def ranking_finding(found: Consequence, p_corrected: float | None = None) -> str:
    """Whether the ranking of the systems survives rewording, as a sentence.

    A change counts only if it is more than chance differences between the items explain.
    ``p_corrected`` replaces the p-value where several cases are tested.
    """
    if found.ranking_change_rate is None or found.winner_change_rate is None:
        return f"cannot tell whether the ranking of systems survives: {found.degenerate}"
    p = found.p_value if p_corrected is None else p_corrected
    changed = p is not None and p < SIGNIFICANT
    said = "depends on the wording" if changed else "is not shown to depend on the wording"
    text = (
        f"the ranking of the systems {said} ({p_value(p)}). Two wordings rank the systems "
        f"differently in {percent(found.ranking_change_rate)} of pairs, and name different winners "
        f"in {percent(found.winner_change_rate)}"
    )
    if found.repeat_change_rate is not None:
        again = percent(found.repeat_change_rate)
        text += f". Two repeats of one wording rank them differently in {again}"
    return text


def flips_table(report: Mapping[str, Any], most: int = 12) -> Table:
    """Items whose verdict flipped, with both wordings; empty if none did."""
    shown = report["examples"][:most]
    names = short_names({each["judge"] for each in shown})

    def side(said: Mapping[str, Any]) -> str:
        answer = " ".join(str(said["answer"] or "").split())[:LONGEST_EXCERPT]
        return f"{said['template']}: {said['decision']}" + (f" ({answer!r})" if answer else "")

    rows = [
        {
            "judge": names[each["judge"]],
            "task": each["task"],
            "scoring": each["scoring"],
            "item_id": each["item_id"],
            "gold": each["gold"] or "–",
            "answer_a": side(each["a"]),
            "answer_b": side(each["b"]),
        }
        for each in shown
    ]
    return Table.from_records(
        "flips",
        "Flipped examples",
        rows,
        "The judge's answer is in brackets.",
        item_id="item",
        answer_a="one wording",
        answer_b="other wording",
    )


def cost_table(report: Mapping[str, Any], log: pa.Table) -> Table:
    """Prompts, tokens, US dollars and seconds per judge.

    Dollars are None without a known price. A prompt counts once, even if several rows share it.
    """
    once = log.group_by(["judge", "prompt_id", "repeat"]).aggregate(
        [("cost_usd", "max"), ("input_tokens", "max"), ("output_tokens", "max")]
    )
    seconds = {
        entry["name"]: entry.get("seconds")
        for run in report["runs"]
        for entry in (run or {}).get("judges", [])
    }
    rows: list[Record] = []
    for judge in pc.unique(log["judge"]).to_pylist():
        own = once.filter(pc.equal(once["judge"], judge))
        sums = {
            name: pc.sum(own[f"{name}_max"]).as_py()
            for name in ("input_tokens", "output_tokens", "cost_usd")
        }
        rows.append(
            {"judge": judge, "n_prompts": own.num_rows, **sums, "seconds": seconds.get(judge)}
        )
    return Table.from_records(
        "cost",
        "Cost",
        rows,
        "Without a known price, US dollars are undefined. Seconds leave out starts that were "
        "interrupted.",
        2,
        cost_usd="US dollars",
    )
