"""Position bias: does a judge choose the item or the place it is shown in?"""

import datasets
import evaluate

import judgesense
import judgesense.hub_metric

_DESCRIPTION = """\
Decisions on the same two options shown in both orders: how often the judge chooses the same item,
how often the option shown first, and which way it leans.
"""

_KWARGS_DESCRIPTION = """
Args:
    predictions: list of str, decisions with the options swapped (order BA).
    references: list of str, decisions in the first order (AB).
    labels: "position" (default): "A" means the option shown first; "item": "A" means the same item
        in both lists.
    item_ids: list of str or int, where pairs share an item.
    options: the two labels (default "A", "B").
    ties: labels that prefer neither (default TIE, tie, Tie, C).
    undecided: labels that are no decision (default UNCLEAR, REFUSED, ERROR).
    confidence_level: of the intervals (default 0.95).
Returns:
    position_consistency, first_position_rate, consistent_first, consistent_second,
    preference_fairness, *_ci_low and *_ci_high, n, n_items, n_excluded, degenerate.
    What is undefined is None, and degenerate then says why.
Examples:
    >>> metric = evaluate.load(judgesense.metric_path("position_bias"))
    >>> metric.compute(predictions=["A", "A"], references=["A", "B"])["position_consistency"]
    0.5
"""

_CITATION = """\
@misc{shi2024judging,
  title = {Judging the Judges: A Systematic Study of Position Bias in LLM-as-a-Judge},
  author = {Shi, Lin and Ma, Chiyu and Liang, Wenhua and Diao, Xingjian and Ma, Weicheng and
            Vosoughi, Soroush},
  year = {2024},
  eprint = {2406.07791},
  archivePrefix = {arXiv}
}
"""


class PositionBias(judgesense.hub_metric.CheckedRows, evaluate.Metric):
    """Choices of a judge in both option orders."""

    row_checks = (
        ("predictions", judgesense.hub_metric.text_rows),
        ("references", judgesense.hub_metric.text_rows),
    )

    def _info(self):
        return evaluate.MetricInfo(
            description=_DESCRIPTION,
            citation=_CITATION,
            inputs_description=_KWARGS_DESCRIPTION,
            features=datasets.Features(
                {"predictions": datasets.Value("string"), "references": datasets.Value("string")}
            ),
            reference_urls=["https://arxiv.org/abs/2406.07791"],
        )

    def _compute(
        self,
        predictions,
        references,
        labels="position",
        item_ids=None,
        options=("A", "B"),
        ties=("TIE", "tie", "Tie", "C"),
        undecided=("UNCLEAR", "REFUSED", "ERROR"),
        confidence_level=0.95,
    ):
        return judgesense.position_bias(
            predictions,
            references,
            item_ids,
            labels=labels,
            options=options,
            ties=ties,
            undecided=undecided,
            confidence_level=confidence_level,
        ).to_dict()
