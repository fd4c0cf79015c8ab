"""Answer matching: does a model's free-text response give the reference answer?"""

import evaluate

import judgesense.metric_modules.module

_DESCRIPTION = """\
Whether free-text responses give the reference answers, by the heuristic matchers that prompt
sensitivity is usually measured with: multiple choice, word-level F1, mathematics, exact match.
"""

_CITATION = """\
@misc{artifact_or_flaw,
  title = {Artifact or Flaw? Rethinking Prompt Sensitivity in Evaluating LLMs},
  note = {Section 3.1 and Appendix C}
}
"""


class AnswerMatch(judgesense.metric_modules.module.CheckedRows, evaluate.Metric):
    """Score of responses against reference answers."""

    metric = "answer_match"
    description = _DESCRIPTION
    citation_text = _CITATION
