"""Accuracy of a judge and its stability over paraphrases of the instruction."""

import datasets
import evaluate

import judgesense
import judgesense.hub_metric

_DESCRIPTION = """\
Accuracy of an LLM judge's scores against human scores under k paraphrases of one instruction, and
how far it moves with the wording: win-rate gap, sensitivity (coefficient of variation),
consistency, and the stability flag.
"""

_KWARGS_DESCRIPTION = """
Args:
    predictions: list of lists of float, k scores an item, one under each paraphrase.
    references: list of float, the human score of each item.
    tolerance: largest distance that accuracy_tolerance counts as right (default 0.5).
    round_references: round human scores to whole ones first, halves up (default False).
    item_ids: list of str or int, where rows share an item.
    confidence_level: of the intervals (default 0.95).
    n_resamples: bootstrap resamples for the gap's interval (default 10000).
    seed: of the bootstrap (default 0).
Returns:
    accuracy, accuracy_tolerance, accuracy_per_paraphrase, win_rate_gap, win_rate_gap_chance,
    sensitivity, n_sensitivity_undefined, consistency, stable, *_ci_low and *_ci_high, n_rows,
    n_items, n_paraphrases, degenerate. What is undefined is None, and degenerate then says why.
Examples:
    >>> metric = evaluate.load(judgesense.metric_path("paraphrase_robustness"))
    >>> metric.compute(predictions=[[4, 4, 5], [2, 2, 2]], references=[4, 2])["win_rate_gap"]
    0.5
"""

_CITATION = """\
@misc{bhat_varma_paraphrases,
  title = {All Prompts Are Created Equal? Evaluating Robustness of LLM Judges Against
           Non-Adversarial Prompt Variations},
  author = {Bhat, Savita and Varma, Vasudeva}
}
"""


class ParaphraseRobustness(judgesense.hub_metric.CheckedRows, evaluate.Metric):
    """Stability of a judge's scores over paraphrases."""

    row_checks = (
        ("predictions", judgesense.hub_metric.score_rows),
        ("references", judgesense.hub_metric.number_rows),
    )

    def _info(self):
        return evaluate.MetricInfo(
            description=_DESCRIPTION,
            citation=_CITATION,
            inputs_description=_KWARGS_DESCRIPTION,
            features=datasets.Features(
                {
                    "predictions": datasets.Sequence(datasets.Value("float64")),
                    "references": datasets.Value("float64"),
                }
            ),
        )

    def _compute(
        self,
        predictions,
        references,
        tolerance=0.5,
        round_references=False,
        item_ids=None,
        confidence_level=0.95,
        n_resamples=10_000,
        seed=0,
    ):
        return judgesense.paraphrase_robustness(
            predictions,
            references,
            item_ids,
            tolerance=tolerance,
            round_references=round_references,
            confidence_level=confidence_level,
            n_resamples=n_resamples,
            seed=seed,
        ).to_dict()
