"""Figures that the four papers published, each with its place (``data/published.yaml``).

The first paper's authors withdrew its first version (v1) and its data: show the figures of the
second version (`v2_figures`) first. Neither compares directly with figures of a run: print
``WORDINGS`` beside them, unless the run judged v1's pairs themselves (`is_published_wording`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from judgesense.files.documents import read_yaml
from judgesense.files.tables import read_table
from judgesense.statistics.intervals import wilson

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
V2_FOLDER = Path(__file__).parent / "data" / "published_v2"
V2_CELLS = V2_FOLDER / "cells.csv"
SUMMARY, CORRECTED = "published/metrics_summary.json", "published/factuality_jss_fixed.csv"

_FILE = Path(__file__).parent / "data" / "published.yaml"


@dataclass(frozen=True, slots=True)
class PublishedFigure:
    """The published JSS of a judge on a task.

    ``judge`` is the registered name, ``published_as`` the name in the source. ``labels`` is
    ``raw`` or ``mapped`` (decisions of the inverted factuality template 4 inverted). ``kappa`` is
    None if the source has none or prints 1.0 for an undefined one; ``ci_low`` and ``ci_high`` (95%)
    are None if the source has no interval. ``n_pairs`` counts rows, not distinct pairs.

    ``version`` is ``v1`` (withdrawn) or ``v2``. Only v2 has the last fields: ``jss_repeat`` of the
    same prompt asked again, ``delta_jss`` (JSS less ``jss_repeat``, canonical order only, an
    unreadable answer counting as disagreement) with its 95% interval, ``accuracy`` against gold,
    the share of verdicts for the option shown first, the shares refused and unreadable,
    ``n_items``, and ``n_rows``, of which ``n_pairs`` have two answers, and ``vendor``.
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
    vendor: str | None = None

    @property
    def flip_rate(self) -> float:
        """1 - JSS."""
        return 1.0 - self.jss


@cache
def figures() -> tuple[PublishedFigure, ...]:
    """Every JSS of v1: thirteen judges, the raw figures of four tasks and mapped factuality.

    Its authors withdrew it; every figure's notes say so.
    """
    data = published_data()
    found = []
    for judge, published_as in data["judges"].items():
        known = data["notes"].get(judge, {})
        everywhere = (WITHDRAWN, *([known["all"]] if "all" in known else []))
        cells = [(task, "raw", *cell) for task, cell in data["raw"][judge].items()]
        mapped, n_mapped = data["mapped_factuality"][judge]
        cells.append(("factuality", "mapped", mapped, None, None, None, n_mapped))
        for task, labels, jss, kappa, low, high, n in cells:
            notes = [*everywhere, *([known[task]] if task in known else [])]
            notes.append(ROWS if labels == "raw" else ROWS.partition(";")[0])
            if jss == kappa == 1.0:
                notes.append(UNDEFINED_KAPPA)
                kappa = None
            source = SUMMARY if labels == "raw" else CORRECTED
            found.append(
                PublishedFigure(
                    judge,
                    published_as,
                    task,
                    labels,
                    jss,
                    kappa,
                    low,
                    high,
                    n,
                    source,
                    tuple(notes),
                )
            )
    return tuple(found)


_Z = 1.959964
"""The normal quantile of a 95% interval."""


def _same_precision(
    jss: float, strict: float, low: float, high: float, share: float
) -> tuple[float, float]:
    """Wilson's interval for ``jss``, which v2 has for ``strict`` only.

    The effective sample is that which v2's interval implies, times the share of pairs that count.
    """
    variance = ((high - low) / (2 * _Z)) ** 2
    return wilson(jss, share * strict * (1 - strict) / variance, _Z)


@cache
def v2_figures() -> tuple[PublishedFigure, ...]:
    """Every JSS of v2, mapped: 25 judges, up to 250 items per task.

    Source: data/published_v2/cells.csv. ``jss`` covers both option orders and, as everywhere here,
    the pairs with two readable answers; v2's own main figure (``jss_strict``) counts an unreadable
    answer as disagreement. ``jss_repeat`` and ``delta_jss`` are of the canonical order.

    >>> len({figure.judge for figure in v2_figures()}), len(v2_figures())
    (25, 100)
    """
    found = []
    names = published_data()["v2_judges"]
    for record in read_table(V2_CELLS):
        row = record.values

        def share(key: str, row: Mapping[str, Any] = row) -> float | None:
            return float(row[key]) if row[key] else None

        jss, strict = share("jss_parseable"), share("jss_strict")
        assert jss is not None
        assert strict is not None
        low, high = share("jss_strict_ci_low"), share("jss_strict_ci_high")
        n_pairs, n_read = int(row["n_pairs_both_answered"]), int(row["kappa_n"])
        if jss != strict and low is not None and high is not None:
            low, high = _same_precision(jss, strict, low, high, n_read / n_pairs)
        why = row["delta_missing_reason"]
        if row["ceiling_below_bar"] == "true":
            why = "left out of pooled figures, because asking again changes over 10% of verdicts"
        notes = (published_data()["v2_note"], *([f"v2: {why}"] if why else []))
        found.append(
            PublishedFigure(
                names.get(row["judge"], row["judge"]),
                row["judge"],
                row["task"],
                "mapped",
                jss,
                share("kappa"),
                low,
                high,
                n_read,
                "published_v2/cells.csv",
                notes,
                V2,
                share("jss_repeat"),
                share("delta_jss"),
                share("delta_ci_low"),
                share("delta_ci_high"),
                share("accuracy"),
                share("answer_A_rate"),
                share("refusal_rate"),
                share("malformed_rate"),
                int(row["n_items"]),
                int(row["n_rows"]),
                row["vendor"],
            )
        )
    return tuple(found)


def to_show(name: str) -> tuple[PublishedFigure, ...]:
    """The figures of a judge as a person should see them: those of v2, then those of v1.

    ``name`` is a registered name (``claude-haiku-4-5``), with or without a ``@fingerprint``. The
    published judge may be another checkpoint of that name: the notes say what is known.

    >>> [figure.version for figure in to_show("claude-haiku-4-5") if figure.task == "coherence"]
    ['v2', 'v1']
    """
    wanted = name.partition("@")[0]
    return tuple(figure for figure in (*v2_figures(), *figures()) if figure.judge == wanted)


@cache
def published_data() -> Mapping[str, Any]:
    """``data/published.yaml``, which says what each of its keys holds and where it is from."""
    content: Mapping[str, Any] = read_yaml(_FILE)
    return content


def paper_judges() -> tuple[str, ...]:
    """The nine judges of the JudgeSense paper; the published files hold four more.

    >>> len(paper_judges())
    9
    """
    data = published_data()
    return tuple(judge for judge in data["judges"] if judge not in data["in_no_paper"])


def is_published_wording(template_id: str) -> bool:
    """Whether a template is one of the wordings in v1's pairs, as datasets of them name it."""
    return template_id.startswith("published-")
