"""Position bias: does a judge choose the item or the place it is shown in?"""

import evaluate

import judgesense.metric_modules.module

_DESCRIPTION = """\
Decisions on the same two options shown in both orders: how often the judge chooses the same item,
how often the option shown first, and which way it leans.
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


class PositionBias(judgesense.metric_modules.module.CheckedRows, evaluate.Metric):
    """Choices of a judge in both option orders."""

    metric = "position_bias"
    description = _DESCRIPTION
    citation_text = _CITATION
