"""Judge Sensitivity Score: how often two wordings of a question lead a judge to one decision."""

import datasets
import evaluate

import judgesense
import judgesense.hub_metric

_DESCRIPTION = """\
The Judge Sensitivity Score (JSS) is the share of paraphrase pairs on which an LLM judge returns
the same decision, with Cohen's kappa and intervals that take the item as the sample.
"""

_KWARGS_DESCRIPTION = """
Args:
    predictions: list of str, the decision under each pair's second prompt.
    references: list of str, the decision under its first prompt.
    item_ids: list of str or int, what each pair is about; pairs of one item are one cluster.
    undecided: labels that are no decision (default UNCLEAR, REFUSED, ERROR): such pairs are left
        out, counted and bounded.
    confidence_level: of the intervals (default 0.95).
    interval: "wilson" (default) or "bootstrap".
    n_resamples: of the bootstraps (default 10000).
    seed: of the bootstraps (default 0).
Returns:
    jss, flip_rate, kappa, ci_low, ci_high, kappa_ci_low, kappa_ci_high, jss_low, jss_high,
    n_pairs, n_items, n_unclear, n_refused, n_error, degenerate, signature.
    What is undefined is None, and degenerate then says why.
Examples:
    >>> jss = evaluate.load(judgesense.metric_path("jss"))
    >>> jss.compute(predictions=["4", "2", "3"], references=["4", "3", "3"])["jss"]
    0.6666666666666666
"""

_CITATION = """\
@misc{judgesense2026,
  title = {JudgeSense: A Benchmark for Prompt Sensitivity in LLM-as-a-Judge Systems},
  year = {2026},
  eprint = {2604.23478},
  archivePrefix = {arXiv}
}
"""


class JSS(judgesense.hub_metric.CheckedRows, evaluate.Metric):
    """Agreement of a judge's decisions under two wordings."""

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
            reference_urls=["https://arxiv.org/abs/2604.23478"],
        )

    def _compute(
        self,
        predictions,
        references,
        item_ids=None,
        undecided=("UNCLEAR", "REFUSED", "ERROR"),
        confidence_level=0.95,
        interval="wilson",
        n_resamples=10_000,
        seed=0,
    ):
        return judgesense.jss(
            predictions,
            references,
            item_ids,
            undecided=undecided,
            confidence_level=confidence_level,
            interval=interval,
            n_resamples=n_resamples,
            seed=seed,
        ).to_dict()
