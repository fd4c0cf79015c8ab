"""Answer matching: does a model's free-text response give the reference answer?"""

import datasets
import evaluate

import judgesense
import judgesense.hub_metric

_DESCRIPTION = """\
Whether free-text responses give the reference answers, by the heuristic matchers that prompt
sensitivity is usually measured with: multiple choice, word-level F1, mathematics, exact match.
"""

_KWARGS_DESCRIPTION = """
Args:
    predictions: list of str, the model's responses.
    references: list of str, the answers; or list of lists of str, accepted answers of which the
        best counts.
    method: "choice" (default), "f1", "math" (needs the extra judgesense[match]) or "exact".
    n_options, options, labels: of "choice": how many options there were, their texts row by row,
        and how they were labelled ("auto", or as in judgesense.matching.read_choice).
    time_limit_s: of "math": seconds for one response (default 5).
    normalized: of "exact": compare without case, articles and punctuation (default True).
Returns:
    score, per_example, method, n_unread, readings, problems.
Examples:
    >>> metric = evaluate.load(judgesense.metric_path("answer_match"))
    >>> metric.compute(predictions=["The answer is (B)."], references=["B"])["score"]
    1.0
"""

_CITATION = """\
@misc{artifact_or_flaw,
  title = {Artifact or Flaw? Rethinking Prompt Sensitivity in Evaluating LLMs},
  note = {Section 3.1 and Appendix C}
}
"""


class AnswerMatch(judgesense.hub_metric.CheckedRows, evaluate.Metric):
    """Score of responses against reference answers."""

    row_checks = (
        ("predictions", judgesense.hub_metric.text_rows),
        ("references", judgesense.hub_metric.answer_rows),
    )

    def _info(self):
        text = datasets.Value("string")
        return evaluate.MetricInfo(
            description=_DESCRIPTION,
            citation=_CITATION,
            inputs_description=_KWARGS_DESCRIPTION,
            features=[
                datasets.Features({"predictions": text, "references": text}),
                datasets.Features({"predictions": text, "references": datasets.Sequence(text)}),
            ],
        )

    def _compute(
        self,
        predictions,
        references,
        method="choice",
        n_options=None,
        options=None,
        labels=None,
        time_limit_s=None,
        normalized=None,
    ):
        given = {
            "n_options": n_options,
            "options": options,
            "labels": labels,
            "time_limit_s": time_limit_s,
            "normalized": normalized,
        }
        chosen = {name: value for name, value in given.items() if value is not None}
        return judgesense.answer_match(predictions, references, method, **chosen).to_dict()
