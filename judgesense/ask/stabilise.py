"""From a finished run to an improved judge: ``judgesense stabilise``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from judgesense.comparison.verdicts import one_stream
from judgesense.errors import JudgeSenseError
from judgesense.log.array import NOT_ASKED, AnswerArray, array_of
from judgesense.log.folder import read_run
from judgesense.log.view import view
from judgesense.measure.checks import trust_card
from judgesense.measure.remedies import cheapest_that_passes, remedies
from judgesense.measure.thresholds import FEWEST_FOR_REMEDIES, Thresholds
from judgesense.measure.wordings import Wordings, wordings
from judgesense.pipeline.run_templates import in_reply_form, wordings_of
from judgesense.recipes.fitting import AS_ASKED, Remedy, remedy_named, to_write
from judgesense.recipes.rules import OTHER_WORDINGS, TIE, Decided, Rule
from judgesense.statistics.calibration import ask_threshold
from judgesense.statistics.intervals import share_fields
from local_judges.stabilised_file import Stabilised, digest_of, judge_entry

CONFIDENCE = 0.95
"""The confidence of the bound of wrong verdicts."""

_CHECK_KEYS = ("state", "estimate", "ci_low", "ci_high", "threshold", "n_items")


def stabilise(
    run_dir: str | Path,
    *,
    judge: str | None = None,
    task: str | None = None,
    out: str | Path,
    remedy: str | None = None,
    scoring: str | None = None,
    max_error: float = 0.05,
    templates: str | Path | None = None,
) -> Stabilised:
    """Write the judge with the cheapest remedy that passes to a file.

    The remedy is fitted to all items of the run. Its trust card, its accuracy and the margin below
    which a person is asked come from verdicts that were cross-fitted over clusters.

    Args:
        run_dir: the ``--out`` folder of a run.
        judge: the judge, as named in the run; may be left out if there is one.
        task: the task; may be left out if there is one.
        out: the YAML file to write.
        remedy: the name of a remedy of the report; by default the cheapest whose card passes.
        scoring: ``options`` or ``generate``; by default options if the run has it.
        max_error: the highest share of wrong verdicts above the ``ask_person`` threshold.
        templates: the file with the wordings' texts, for an import, and for a dataset with
            wordings that are not JudgeSense's own.

    Raises:
        JudgeSenseError: no such judge, task or remedy; no remedy passes; or wordings whose texts
            cannot be found.

    >>> import tempfile
    >>> from judgesense.pipeline import run
    >>> from local_judges.callable_judge import CallableJudge
    >>> def prefers_a(messages):
    ...     return [{"A": -0.1, "B": -2.4} for _ in messages]
    >>> own = CallableJudge(prefers_a, scoring="options")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     told = {"tasks": ["relevance"], "limit": 4, "scoring": "options", "note": str}
    ...     _ = run(own, out=f"{folder}/run", **told)
    ...     made = stabilise(f"{folder}/run", out=f"{folder}/stable.yaml", remedy="both orders")
    >>> made.rule.wordings, made.rule.prompts_per_item
    (('relevance-1',), 2)
    """
    if Path(out).suffix not in (".yaml", ".yml"):
        raise JudgeSenseError(f"--out {out}: name a .yaml file")
    if not 0 < max_error < 1:
        raise JudgeSenseError(f"max_error must lie between 0 and 1, got {max_error}")
    run = read_run(Path(run_dir))
    record = run.record
    streams = view(run.log, run.pairs, record).judged
    stream = one_stream(streams, judge, task, scoring, str(run_dir))
    table = Wordings.of(stream)
    flags = {row["template"]: row["flag"] for row in wordings(table)}
    flags |= dict.fromkeys(in_reply_form(run, stream), "reply form")
    thresholds = Thresholds().but(record.get("thresholds"))
    asked = trust_card(stream, thresholds=thresholds, mislabelled=table.mislabelled)
    rows = remedies(stream, asked, thresholds, table.mislabelled)
    array = array_of(stream, frozenset(table.mislabelled))
    chosen = _remedy(array, rows, remedy)
    rule, held_out = to_write(array, chosen, flags)
    entry = wordings_of(run, stream, array, rule, templates)
    shown = {template.template_id for template in entry.templates} | {OTHER_WORDINGS}
    offsets = {name: _short(own) for name, own in rule.offsets.items() if name in shown}
    rule = replace(rule, offsets=offsets)
    after = next((row for row in rows if row["remedy"] == chosen.name), None)
    cards: dict[str, Any] = {}
    for name, row in ((AS_ASKED, rows[0]), ("with the remedy", after)):
        if row and row["trust"]:
            cards[name] = {
                "trust": row["trust"],
                "because": row["because"],
                "checks": {
                    check: _short({key: figures[key] for key in _CHECK_KEYS})
                    for check, figures in row["checks"].items()
                },
            }
    names = [entry.get("name") for entry in record.get("judges") or []]
    identities = (record.get("asked") or {}).get("judges") or []
    known = stream.judge in names and len(names) == len(identities)
    identity = identities[names.index(stream.judge)] if known else {}
    if "stabilised" in identity:
        raise JudgeSenseError(
            f"{stream.judge} is already an improved judge; improve the judge that it asks"
        )
    made = Stabilised(
        judge=judge_entry(stream.judge, identity),
        entry=entry,
        rule=rule,
        ask_person=_ask(array, held_out, max_error, rule),
        expected=_expected(array, held_out, rule),
        data={
            "run_id": str(record.get("run_id")),
            "hash": record.get("data_hash"),
            "dataset": dict(record.get("dataset") or {}),
            "task": stream.task.name,
            "scoring": stream.scoring,
            "judgesense": (record.get("versions") or {}).get("judgesense"),
            "rule": digest_of(entry, rule),
        },
        card=cards,
        where=str(out),
    )
    made.write(Path(out))
    return made


def _remedy(array: AnswerArray, rows: Sequence[Mapping[str, Any]], name: str | None) -> Remedy:
    if not rows:
        raise JudgeSenseError(
            f"too few items: a remedy needs {FEWEST_FOR_REMEDIES} independent items"
        )
    if name is not None:
        return remedy_named(name, array)
    best = cheapest_that_passes(rows)
    if best is None:
        told = "; ".join(
            f"{row['remedy']}: {row['trust']} ({', '.join(row['because'])})"
            for row in rows
            if row["trust"] is not None
        )
        raise JudgeSenseError(
            f"no remedy passes the trust card ({told}). Judge more items, or choose one anyway "
            "with --remedy NAME"
        )
    return remedy_named(str(best["remedy"]), array)


def _ask(array: AnswerArray, decided: Decided, max_error: float, rule: Rule) -> dict[str, Any]:
    """The threshold of ask_person, from the verdicts on items with gold.

    A person is asked about every tie, so ties are not among the verdicts that are answered.
    """
    known = (array.gold >= 0) & (decided.codes >= 0)
    chosen = known & (decided.margin > TIE)
    if not chosen.any():
        return {"max_error": max_error, "threshold": None, "verdicts": 0}
    found = ask_threshold(
        decided.margin[chosen],
        decided.codes[chosen] != array.gold[chosen],
        array.clusters[chosen],
        max_error=max_error,
        confidence=CONFIDENCE,
    )
    figures = asdict(found)
    figures["verdicts"] = figures.pop("n")
    figures["answered"] *= float(chosen.sum() / known.sum())
    # A file that people read. A threshold rounded up answers no more than was tested; margins of
    # votes are a few shares far apart, and the one that was tested is to be answered.
    if found.threshold is not None:
        rounded = np.floor if rule.read == "vote" else np.ceil
        figures["threshold"] = float(rounded(found.threshold * 1e6) / 1e6)
    return {"max_error": max_error, "confidence": CONFIDENCE, **_short(figures)}


def _expected(array: AnswerArray, decided: Decided, rule: Rule) -> dict[str, Any]:
    """The accuracy on items that the rule was not fitted to, and the cost of a verdict."""
    known = (array.gold >= 0) & (decided.codes != NOT_ASKED)
    hits = decided.codes[known] == array.gold[known]
    accuracy, low, high = share_fields("accuracy", hits, array.clusters[known]).values()
    cost = array.mean_cost
    return {
        **_short({"accuracy": accuracy, "ci_low": low, "ci_high": high}),
        "items": int(known.sum()),
        "prompts_per_item": rule.prompts_per_item,
        "usd_per_item": None if cost is None else cost * rule.prompts_per_item,
    }


def _short(figures: Mapping[str, Any]) -> dict[str, Any]:
    """Plain values, with six digits."""
    return {k: round(float(v), 6) if isinstance(v, float) else v for k, v in figures.items()}
