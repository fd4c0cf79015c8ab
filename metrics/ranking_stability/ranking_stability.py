"""Stability of a ranking of prompts over evaluation conditions, and of the prompt chosen by it."""

import evaluate

import judgesense.metric_modules.module

_DESCRIPTION = """\
Whether prompts rank alike under other seeds or subsets: Spearman and Kendall correlations, top-1
and top-k consistency, and how well the prompt chosen by mean or by lower confidence bound does in
a condition it was not chosen on.
"""

_CITATION = """\
@misc{prompt_ranking_stability2026,
  title = {On the Stability of Prompt Ranking in Large Language Model Evaluation},
  year = {2026},
  eprint = {2606.24381},
  archivePrefix = {arXiv}
}
"""


class RankingStability(judgesense.metric_modules.module.CheckedRows, evaluate.Metric):
    """Stability of prompt rankings over conditions."""

    metric = "ranking_stability"
    description = _DESCRIPTION
    citation_text = _CITATION
