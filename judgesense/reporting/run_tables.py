"""Tables of a run for checks and studies: its figures, wordings, systems, flips and cost."""

from __future__ import annotations

from collections.abc import Mapping

from judgesense.log.view import BASELINES
from judgesense.measure.assessment import Assessment, ReportContents, task_rank
from judgesense.measure.cost import JudgeCost
from judgesense.measure.figures import ExampleSide
from judgesense.measure.rankings import JudgeTask
from judgesense.measure.report_file import plain
from judgesense.measure.thresholds import SIGNIFICANT
from judgesense.reporting.study_result import Table
from judgesense.statistics.consequence import Consequence
from judgesense.text import join, p_value, percent, short_names

LONGEST_EXCERPT = 160


def cases(report: ReportContents) -> list[tuple[str, Assessment]]:
    """Each judge (by short name) on each task and scoring, in the order of the tables."""
    entries = [entry for entry in report.assessments if entry.judge not in BASELINES]
    entries.sort(key=lambda entry: (task_rank(entry.task), entry.judge, entry.scoring))
    names = short_names({entry.judge for entry in entries})
    return [(names[entry.judge], entry) for entry in entries]


def jss_table(report: ReportContents) -> Table:
    """JSS, noise floor, accuracy and undecided share, with a row per judge, task and scoring.

    The flip rate is that of rewording; the noise floor is that of the same prompt asked again,
    None without repeats.
    """
    rows = []
    for judge, entry in cases(report):
        steady, cell = entry.card.checks["steady"], entry.mapped
        rows.append(
            {
                "judge": judge,
                "task": entry.task,
                "scoring": entry.scoring,
                "jss_raw": entry.raw.jss,
                "jss": steady.estimate,
                "ci_low": steady.ci_low,
                "ci_high": steady.ci_high,
                "flip_rate": None if steady.estimate is None else 1 - steady.estimate,
                "noise_floor": cell.noise_floor,
                "accuracy": cell.accuracy,
                "first_position": cell.first_position_rate,
                "undecided": cell.undecided_share,
                "n_items": cell.n_items,
                "n_pairs": cell.n_pairs,
                "trust": entry.card.trust,
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


def wordings_table(report: ReportContents) -> Table:
    """Every wording beside the others, and the one to use, if the report recommends one."""
    short = short_names({entry.judge for entry in report.assessments if entry.wordings})
    rows = [
        {
            "judge": short[entry.judge],
            "task": entry.task,
            "scoring": entry.scoring,
            "template": row.template,
            "score_type": "agreement" if row.accuracy is None else "accuracy",
            "score": row.agreement if row.accuracy is None else row.accuracy,
            "agreement": row.agreement,
            "kappa": row.kappa,
            "flag": row.flag,
            "jss_without": row.jss_without,
            "n_prompts": row.n_prompts,
            "in_best_set": row.in_best_set,
            "use": row.template == entry.recommendation.template,
        }
        for entry in report.assessments
        for row in entry.wordings
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


def systems_table(rankings: Mapping[JudgeTask, Consequence]) -> Table:
    """The ranking of the systems under every wording; empty without two systems."""
    rows = []
    for (judge, task, scoring), ranking in rankings.items():
        for template, best, scores in zip(
            ranking.templates, ranking.winners, ranking.scores, strict=False
        ):
            ranked = sorted(
                (-score, name) for score, name in zip(scores, ranking.systems, strict=True)
            )
            rows.append(
                {
                    "judge": judge,
                    "task": task,
                    "scoring": scoring,
                    "template": template,
                    "winner": join(best),
                    "ranking": ", ".join(f"{name} {-score:.2f}" for score, name in ranked),
                }
            )
    return Table.from_records(
        "systems",
        "Does the ranking of the systems survive?",
        rows,
        template="wording",
        ranking="ranking (mean score)",
    )


def ranking_finding(ranking: Consequence, p_corrected: float | None = None) -> str:
    """Whether the ranking of the systems survives rewording, as a sentence.

    A change counts only if it is more than chance differences between the items explain.
    ``p_corrected`` replaces the p-value where several cases are tested.
    """
    if ranking.ranking_change_rate is None or ranking.winner_change_rate is None:
        return f"cannot tell whether the ranking of systems survives: {ranking.degenerate}"
    p = ranking.p_value if p_corrected is None else p_corrected
    changed = p is not None and p < SIGNIFICANT
    depends = "depends on the wording" if changed else "is not shown to depend on the wording"
    text = (
        f"the ranking of the systems {depends} ({p_value(p)}). Two wordings rank the systems "
        f"differently in {percent(ranking.ranking_change_rate)} of pairs, and name different "
        f"winners in {percent(ranking.winner_change_rate)}"
    )
    if ranking.repeat_change_rate is not None:
        again = percent(ranking.repeat_change_rate)
        text += f". Two repeats of one wording rank them differently in {again}"
    return text


def flips_table(report: ReportContents, most: int = 12) -> Table:
    """Items whose verdict flipped, with both wordings; empty if none did."""
    examples = [(entry, row) for entry in report.assessments for row in entry.examples][:most]
    names = short_names({entry.judge for entry, _ in examples})

    def side(example: ExampleSide) -> str:
        answer = " ".join((example.answer or "").split())[:LONGEST_EXCERPT]
        return f"{example.template}: {example.decision}" + (f" ({answer!r})" if answer else "")

    rows = [
        {
            "judge": names[entry.judge],
            "task": entry.task,
            "scoring": entry.scoring,
            "item_id": row.item_id,
            "gold": row.gold or "–",
            "answer_a": side(row.a),
            "answer_b": side(row.b),
        }
        for entry, row in examples
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


def cost_table(costs: list[JudgeCost]) -> Table:
    """Prompts, tokens, US dollars and seconds per judge."""
    return Table.from_records(
        "cost",
        "Cost",
        plain(costs),
        "Without a known price, US dollars are undefined. Seconds leave out starts that were "
        "interrupted.",
        2,
        cost_usd="US dollars",
    )
