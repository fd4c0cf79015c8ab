"""Judge Sensitivity Score: how often two wordings of a question lead a judge to one decision."""

import evaluate

import judgesense.metric_modules.module

_DESCRIPTION = """\
The Judge Sensitivity Score (JSS) is the share of paraphrase pairs on which an LLM judge returns
the same decision, with Cohen's kappa. Intervals treat each item as the sampling unit.
"""

_CITATION = """\
@misc{judgesense2026,
  title = {JudgeSense: A Benchmark for Prompt Sensitivity in LLM-as-a-Judge Systems},
  year = {2026},
  eprint = {2604.23478},
  archivePrefix = {arXiv}
}
"""


class JSS(judgesense.metric_modules.module.CheckedRows, evaluate.Metric):
    """Agreement of a judge's decisions under two wordings."""

    metric = "jss"
    description = _DESCRIPTION
    citation_text = _CITATION
