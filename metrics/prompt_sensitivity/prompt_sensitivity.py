"""Spread of models' accuracies over prompts, and agreement of the rankings they lead to."""

import evaluate

import judgesense.metric_modules.module

_DESCRIPTION = """\
How much each model's accuracy varies over prompt templates (population standard deviation, range),
and whether the templates rank the models alike (mean Spearman correlation over pairs of prompts).
"""

_CITATION = """\
@misc{artifact_or_flaw,
  title = {Artifact or Flaw? Rethinking Prompt Sensitivity in Evaluating LLMs},
  note = {Section 2.3}
}
"""


class PromptSensitivity(judgesense.metric_modules.module.CheckedRows, evaluate.Metric):
    """Spread of accuracies over prompts."""

    metric = "prompt_sensitivity"
    description = _DESCRIPTION
    citation_text = _CITATION
