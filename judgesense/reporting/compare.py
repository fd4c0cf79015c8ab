"""A comparison of two runs' judges as a result object and as text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from judgesense.statistics.result import ResultMapping, data_frame, html_table
from judgesense.trust import compare as conclusions


@dataclass(frozen=True, eq=False)
class Comparison(ResultMapping):
    """Two runs' judges on the pairs that both judged.

    ``advice`` says which judge to prefer on each task; a judge whose trust card says ``avoid`` is
    never preferred. ``comparisons`` has one entry per pair of judges, task, scoring and measure,
    with the keys ``task``, ``judge_a``, ``judge_b``, ``scoring_a``, ``scoring_b``, ``trust_a``,
    ``trust_b`` (from the trust cards), ``measure`` (``jss`` or ``accuracy``), ``a``, ``b``,
    ``difference`` (B minus A), ``ci_low``, ``ci_high`` (95%, not corrected), ``p_value``,
    ``p_holm`` (corrected by Holm's method over all comparisons, which are one family),
    ``smallest_difference`` (that the sample shows with 80% probability at an uncorrected 5%),
    ``n``, ``n_items``, ``n_clusters`` (what is independent: items, or what they share),
    ``n_undecided`` (left out because one of the judges gave no decision) and ``text``.
    ``n_tests`` is the size of the family, ``correction`` its method. ``runs`` are the two folders.
    """

    advice: list[str]
    comparisons: list[dict[str, Any]]
    n_tests: int
    runs: list[str]
    correction: str = "holm"

    def to_pandas(self) -> Any:
        """The comparisons as a `pandas.DataFrame`, one row each."""
        return data_frame(self.comparisons)

    def __str__(self) -> str:
        return render_comparison(self)

    def _repr_html_(self) -> str:
        texts = [*self.advice, *(entry["text"] for entry in self.comparisons)]
        return html_table((), [(text,) for text in texts])


def compare(a: str | Path, b: str | Path) -> Comparison:
    """Compare every judge of run A with every judge of run B on the pairs that both judged.

    Mapped decisions are compared. Only equal scorings are compared; if two runs share none, each
    scoring of A is compared with each of B. Pass the same folder twice to compare its judges with
    each other.

    Args:
        a: folder of the first run.
        b: folder of the second run, or the first again.

    Returns:
        The comparison; ``comparisons`` is never empty.

    Raises:
        JudgeSenseError: a folder without decisions, no pair in common, or one judge alone.

    >>> import tempfile
    >>> from judgesense.pipeline import run
    >>> def yes(messages):
    ...     return ["YES" for _ in messages]
    >>> def no(messages):
    ...     return ["NO" for _ in messages]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = run([yes, no], tasks=["factuality"], limit=4, out=f"{folder}/run", note=str)
    ...     result = compare(f"{folder}/run", f"{folder}/run")
    >>> result.n_tests, result.comparisons[0]["difference"]
    (2, 0.0)
    """
    return Comparison(**conclusions.compare(a, b))


def render_comparison(result: Mapping[str, Any]) -> str:
    """The comparison as plain text: one line each, neither wrapped nor cut."""
    lines = ["What to do", *(f"  - {text}" for text in result["advice"]), ""]
    titles = {"jss": "Same verdict after rewording (JSS)", "accuracy": "Right (accuracy)"}
    for measure, title in titles.items():
        own = [entry for entry in result["comparisons"] if entry["measure"] == measure]
        if own:
            lines += [title, *(f"  - {entry['text']}" for entry in own), ""]
    lines.append(
        "Differences are B minus A on what both judged, with uncorrected 95% intervals. Intervals "
        "and tests treat items, or the clusters that items share, as the sample. p-values come "
        "from permutation tests with a cluster-robust t, Holm-corrected over the "
        f"{result['n_tests']} comparisons as one family."
    )
    lost = sum(entry["n_undecided"] for entry in result["comparisons"])
    if lost:
        lines.append(f"Left out: {lost} pairs and prompts that one of the judges left undecided.")
    return "\n".join(lines)
