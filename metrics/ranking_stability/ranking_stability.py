"""Stability of a ranking of prompts over evaluation conditions, and of the prompt chosen by it."""

import datasets
import evaluate

import judgesense
import judgesense.hub_metric

_DESCRIPTION = """\
Whether prompts rank alike under other seeds or subsets: Spearman and Kendall correlations, top-1
and top-k consistency, and how well the prompt chosen by mean or by lower confidence bound does in
a condition it was not chosen on.
"""

_KWARGS_DESCRIPTION = """
Args:
    predictions: list of lists of float, one row a condition: the score of each of M prompts.
    k: size of the top-k sets (default 3).
    z: weight of the standard error in LCB = mean - z * sd / sqrt(K) (default 1.0).
Returns:
    spearman_mean, spearman_std, kendall_mean, kendall_std, top1_pairwise_mean, top1_pairwise_std,
    topk_pairwise_mean, topk_pairwise_std, top1_global, topk_global, unique_top1, selected_mean,
    selected_lcb, lcb, loso_mean_mean, loso_mean_std, loso_lcb_mean, loso_lcb_std, k, z,
    n_conditions, n_prompts, degenerate. What is undefined is None, and degenerate then says why.
Examples:
    >>> metric = evaluate.load(judgesense.metric_path("ranking_stability"))
    >>> rows = [[0.2, 0.5, 0.4], [0.3, 0.4, 0.5], [0.1, 0.6, 0.5]]
    >>> metric.compute(predictions=rows, k=2)["selected_mean"]
    1
"""

_CITATION = """\
@misc{prompt_ranking_stability2026,
  title = {On the Stability of Prompt Ranking in Large Language Model Evaluation},
  year = {2026},
  eprint = {2606.24381},
  archivePrefix = {arXiv}
}
"""


class RankingStability(judgesense.hub_metric.CheckedRows, evaluate.Metric):
    """Stability of prompt rankings over conditions."""

    row_checks = (("predictions", judgesense.hub_metric.score_rows),)

    def _info(self):
        return evaluate.MetricInfo(
            description=_DESCRIPTION,
            citation=_CITATION,
            inputs_description=_KWARGS_DESCRIPTION,
            features=datasets.Features(
                {"predictions": datasets.Sequence(datasets.Value("float64"))}
            ),
            reference_urls=["https://arxiv.org/abs/2606.24381"],
        )

    def _compute(self, predictions, k=3, z=1.0):
        return judgesense.ranking_stability(predictions, k=k, z=z).to_dict()
