"""Spread of models' accuracies over prompts, and agreement of the rankings they lead to."""

import datasets
import evaluate

import judgesense
import judgesense.hub_metric

_DESCRIPTION = """\
How much each model's accuracy varies over prompt templates (population standard deviation, range),
and whether the templates rank the models alike (mean Spearman correlation over pairs of prompts).
"""

_KWARGS_DESCRIPTION = """
Args:
    predictions: list of lists of float, one row a model: its accuracy under each prompt.
    models: list of str, the models' names; std and range are then dicts by name.
Returns:
    std (per model, population), range, mean_std, mean_spearman (None under 3 models),
    spearman_pairs (one a pair of prompts), n_models, n_prompts, degenerate.
    What is undefined is None, and degenerate then says why.
Examples:
    >>> metric = evaluate.load(judgesense.metric_path("prompt_sensitivity"))
    >>> rows = [[0.50, 0.52], [0.61, 0.58], [0.70, 0.73]]
    >>> metric.compute(predictions=rows)["mean_spearman"]
    1.0
"""

_CITATION = """\
@misc{artifact_or_flaw,
  title = {Artifact or Flaw? Rethinking Prompt Sensitivity in Evaluating LLMs},
  note = {Section 2.3}
}
"""


class PromptSensitivity(judgesense.hub_metric.CheckedRows, evaluate.Metric):
    """Spread of accuracies over prompts."""

    row_checks = (("predictions", judgesense.hub_metric.score_rows),)

    def _info(self):
        return evaluate.MetricInfo(
            description=_DESCRIPTION,
            citation=_CITATION,
            inputs_description=_KWARGS_DESCRIPTION,
            features=datasets.Features(
                {"predictions": datasets.Sequence(datasets.Value("float64"))}
            ),
        )

    def _compute(self, predictions, models=None):
        return judgesense.prompt_sensitivity(predictions, models).to_dict()
