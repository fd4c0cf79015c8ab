"""Accuracy of a judge and its stability over paraphrases of the instruction."""

import evaluate

import judgesense.metric_modules.module

_DESCRIPTION = """\
Accuracy of an LLM judge's scores against human scores under k paraphrases of one instruction, and
how far it moves with the wording: win-rate gap, sensitivity (coefficient of variation),
consistency, and the stability flag.
"""

_CITATION = """\
@misc{bhat_varma_paraphrases,
  title = {All Prompts Are Created Equal? Evaluating Robustness of LLM Judges Against
           Non-Adversarial Prompt Variations},
  author = {Bhat, Savita and Varma, Vasudeva}
}
"""


class ParaphraseRobustness(judgesense.metric_modules.module.CheckedRows, evaluate.Metric):
    """Stability of a judge's scores over paraphrases."""

    metric = "paraphrase_robustness"
    description = _DESCRIPTION
    citation_text = _CITATION
