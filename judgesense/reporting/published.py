"""Figures that the four papers published, each with its place (``data/published.yaml``).

The first paper's authors withdrew its first version (v1) and its data: print ``WITHDRAWN`` beside
v1's figures and show those of the second version (`v2_figures`) first. Neither compares directly
with figures of a run. v1's pairs have other wordings than the paper's templates, its rows count
each pair once per run, and its intervals treat these rows as independent. Print ``WORDINGS`` beside
them, unless the run judged these pairs themselves (`is_published_wording`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from judgesense.files.documents import read_yaml

WORDINGS = "measured with other wordings"
"""The phrase to print beside every published JSS."""

ROWS = (
    "n counts each pair once in each of up to three runs; the interval is a bootstrap over these "
    "rows as if they were independent"
)
UNDEFINED_KAPPA = (
    "the source prints kappa 1.0, as its program does for an undefined kappa (JudgeSense, section "
    "3.1)"
)
WITHDRAWN = "v1: its authors withdrew it in August 2026 and advise against using it; v2 replaces it"
"""The note of every figure of the first version (their ERRATA.md)."""

V1, V2 = "v1", "v2"
V2_SUMMARY = "published/v2_metrics_summary.json"
SUMMARY, CORRECTED = "published/metrics_summary.json", "published/factuality_jss_fixed.csv"

_FILE = Path(__file__).parents[1] / "data" / "published.yaml"


@dataclass(frozen=True, slots=True)
class PublishedFigure:
    """The published JSS of a judge on a task.

    ``judge`` is the registered name, ``published_as`` the name in the source. ``labels`` is
    ``raw`` or ``mapped`` (decisions of the inverted factuality template 4 inverted). ``kappa`` is
    None if the source has none or prints 1.0 for an undefined one; ``ci_low`` and ``ci_high`` (95%)
    are None if the source has no interval. ``n_pairs`` counts rows, not distinct pairs.

    ``version`` is ``v1`` (withdrawn) or ``v2``. Only v2 has the last fields: ``jss_repeat`` of the
    same prompt asked again, ``delta_jss`` (JSS less ``jss_repeat``, unreadable answers counting as
    disagreement) with its 95% interval, ``accuracy`` against gold, the share of verdicts for the
    option shown first, the shares refused and unreadable, ``n_items``, and ``n_rows``, of which
    ``n_pairs`` have two verdicts.
    """

    judge: str
    published_as: str
    task: str
    labels: str
    jss: float
    kappa: float | None
    ci_low: float | None
    ci_high: float | None
    n_pairs: int
    source: str
    notes: tuple[str, ...]
    version: str = V1
    jss_repeat: float | None = None
    delta_jss: float | None = None
    delta_ci_low: float | None = None
    delta_ci_high: float | None = None
    accuracy: float | None = None
    first_position: float | None = None
    refused: float | None = None
    unclear: float | None = None
    n_items: int | None = None
    n_rows: int | None = None

    @property
    def flip_rate(self) -> float:
        """1 - JSS."""
        return 1.0 - self.jss


@cache
def figures() -> tuple[PublishedFigure, ...]:
    """Every JSS of v1: thirteen judges, the raw figures of four tasks and mapped factuality.

    Its authors withdrew it; every figure's notes say so.
    """
    data = _data()
    found = []
    for judge, published_as in data["judges"].items():
        for task, (jss, kappa, low, high, n) in data["raw"][judge].items():
            undefined = jss == kappa == 1.0
            notes = [*_notes(judge, task), ROWS, *([UNDEFINED_KAPPA] if undefined else [])]
            found.append(
                PublishedFigure(
                    judge, published_as, task, "raw", jss, None if undefined else kappa,
                    low, high, n, SUMMARY, tuple(notes),
                )
            )  # fmt: skip
        jss, n = data["mapped_factuality"][judge]
        found.append(
            PublishedFigure(
                judge, published_as, "factuality", "mapped", jss, None, None, None, n, CORRECTED,
                (*_notes(judge, "factuality"), ROWS.partition(";")[0]),
            )
        )  # fmt: skip
    return tuple(found)


@cache
def v2_figures() -> tuple[PublishedFigure, ...]:
    """Every JSS of v2, mapped: three judges so far, about 245 items per task.

    Source: published/v2_metrics_summary.json.

    >>> [figure.jss for figure in v2_figures() if figure.task == "coherence"]
    [0.8, 0.751, 0.8122]
    """
    data = _data()
    found = []
    for judge, tasks in data["v2"].items():
        for task, cell in tasks.items():
            jss, low, high = cell["jss"]
            delta, delta_low, delta_high = cell.get("delta", (None, None, None))
            n_items, n_pairs, n_rows = cell["n"]
            known = data["v2_notes"].get(judge, {})
            notes = (data["v2_notes"]["all"], *([known[task]] if task in known else []))
            found.append(
                PublishedFigure(
                    judge, data["judges"][judge], task, "mapped", jss, None, low, high, n_pairs,
                    V2_SUMMARY, notes, V2, cell.get("jss_repeat"), delta, delta_low, delta_high,
                    cell.get("accuracy"), cell.get("first"), cell["refused"], cell["unclear"],
                    n_items, n_rows,
                )
            )  # fmt: skip
    return tuple(found)


def paper_judges() -> tuple[str, ...]:
    """The nine judges of the JudgeSense paper; the published files hold four more.

    >>> len(paper_judges())
    9
    """
    data = _data()
    return tuple(judge for judge in data["judges"] if judge not in data["in_no_paper"])


def for_judge(name: str) -> tuple[PublishedFigure, ...]:
    """The figures of a judge in v1; empty if there are none. `to_show` has v2's before them.

    ``name`` is a registered name (``claude-haiku-4-5``), with or without the ``@fingerprint``
    that a decision log adds. The published judge may be another checkpoint of that name:
    the notes say what is known.
    """
    wanted = name.partition("@")[0]
    return tuple(figure for figure in figures() if figure.judge == wanted)


def to_show(name: str) -> tuple[PublishedFigure, ...]:
    """The figures of a judge as a person should see them: those of v2, then those of v1.

    ``name`` is as for `for_judge`.

    >>> [figure.version for figure in to_show("claude-haiku-4-5") if figure.task == "coherence"]
    ['v2', 'v1']
    """
    wanted = name.partition("@")[0]
    second = tuple(figure for figure in v2_figures() if figure.judge == wanted)
    return second + for_judge(name)


def template_4() -> Mapping[str, tuple[float, int, float, int]]:
    """By judge: JSS and n of the factuality pairs without template 4, then mapped JSS and n of
    those with it.

    Source: published/factuality_T4_vs_noT4.csv.
    """
    return {judge: tuple(values) for judge, values in _data()["template_4"].items()}


def pair_flips() -> Mapping[str, int]:
    """How many of the thirteen judges flip, raw, on each validated factuality pair.

    Source: published/factuality_pair_flip_overlap.csv.
    """
    flips: dict[str, int] = _data()["pair_flips"]
    return flips


def excluded_pairs() -> tuple[str, ...]:
    """The ids of v1's six factuality pairs that the paper leaves out as not equivalent (3.3)."""
    return tuple(_data()["excluded_pairs"])


def is_published_wording(template_id: str) -> bool:
    """Whether a template is one of the wordings in v1's pairs, as datasets of them name it.

    >>> is_published_wording("published-factuality-4"), is_published_wording("factuality-4")
    (True, False)
    """
    return template_id.startswith("published-")


@cache
def _data() -> Mapping[str, Any]:
    content: Mapping[str, Any] = read_yaml(_FILE)
    return content


def _notes(judge: str, task: str) -> list[str]:
    known = _data()["notes"].get(judge, {})
    return [WITHDRAWN, *(known[key] for key in ("all", task) if key in known)]
