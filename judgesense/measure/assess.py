"""From a decision log and its pairs to the contents of ``report.json``."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from judgesense.errors import JudgeSenseError
from judgesense.log.answers import Answers, distinct
from judgesense.log.schema import conform
from judgesense.log.view import view
from judgesense.measure.advice import advise, as_sentence
from judgesense.measure.cells import parts, stream_cells
from judgesense.measure.checks import trust_card
from judgesense.measure.details import (
    LONGEST_TEXT,
    ROW,
    diagnostics,
    examples,
    repeated_figures,
    template_figures,
    template_pairs,
)
from judgesense.measure.disagreements import (
    add_texts,
    disagreements,
)
from judgesense.measure.next import next_step
from judgesense.measure.people import gold_of, people
from judgesense.measure.planning import gate_outlook, plan
from judgesense.measure.report_file import (
    CELL_KEYS,
    LISTS,
    VERSION,
)
from judgesense.measure.resistant import Facts, attacks, resistant
from judgesense.measure.thresholds import FEW_CLUSTERS, Thresholds
from judgesense.measure.variants import variants
from judgesense.measure.wordings import Wordings, recommendation, wordings
from judgesense.statistics.alternative_annotator import EPSILON
from judgesense.text import join, same_start

Rows = list[dict[str, Any]]


def conclusions(
    stream: Answers,
    table: Wordings,
    thresholds: Thresholds,
    texts: Mapping[str, str] | None = None,
    labels: pa.Table | None = None,
    epsilon: float = EPSILON,
    facts: Facts | None = None,
) -> dict[str, Rows]:
    """The rows of ``trust``, ``wordings``, ``recommendation``, ``remedies``, ``variants``,
    ``attacks`` and ``people``.

    ``table`` has the stream's wordings: the card leaves out those whose label map is wrong, and the
    recommendation and the remedies start from the card. Where a remedy makes a judge usable, the
    card's ``remedy`` names the cheapest that passes.
    """
    mislabelled = table.mislabelled
    tried = attacks(stream, mislabelled, facts)
    card = trust_card(
        stream,
        thresholds=thresholds,
        mislabelled=mislabelled,
        gold=gold_of(stream, labels),
        attacked=resistant(tried, thresholds.resistant),
    )
    shown = {**card.to_dict(), "remedy": None}
    found: dict[str, Rows] = {
        "trust": [shown],
        "wordings": wordings(table, texts),
        "recommendation": [recommendation(table, card)],
        "people": people(stream, labels, mislabelled, epsilon),
        "attacks": tried,
    }
    # Of fewer items no remedied verdicts can pass the `steady` check.
    if distinct(stream.log.cluster[stream.rows]) >= FEW_CLUSTERS:
        from judgesense.measure.remedies import cheapest_that_passes, remedies

        rows = remedies(stream, card, thresholds, mislabelled)
        best = cheapest_that_passes(rows)
        shown["remedy"] = best.remedy if best else None
        found["remedies"] = [row.to_dict() for row in rows]
    if stream.variants:
        found["variants"] = variants(stream, mislabelled)
    return found


Texts = Mapping[str, Mapping[str, str]]
"""Task -> template -> text."""


_KEY = ["task", "template_id"]


_ENOUGH = 200
"""Prompts of a template that are compared with each other."""


def wording_texts(record: Mapping[str, Any], prompts: pa.Table | None = None) -> Texts:
    """The texts of a run's wordings by task and template; those that are not known are left out.

    ``run.json`` has the instructions of runs on template files. For other runs (a dataset), the
    text is what a template's prompts have in common: their beginning up to the last empty line;
    without one, their beginning and end around an ellipsis.

    Args:
        record: the run's record (``run.json``).
        prompts: the run's prompts, with ``task``, ``template_id`` and ``text``.

    >>> rows = [{"task": "t", "template_id": "1", "text": f"Is it polite?\\n\\nText: {text}"}
    ...         for text in ("Thanks.", "Go away.")]
    >>> wording_texts({}, pa.Table.from_pylist(rows))
    {'t': {'1': 'Is it polite?'}}
    """
    found: dict[str, dict[str, str]] = defaultdict(dict)
    if prompts is not None and {"task", "template_id", "text"} <= set(prompts.column_names):
        for key in prompts.select(_KEY).group_by(_KEY).aggregate([]).to_pylist():
            of_key = [pc.equal(prompts[name], key[name]) for name in _KEY]
            texts = prompts["text"].filter(pc.and_(*of_key))[:_ENOUGH].drop_null().to_pylist()
            if text := _in_common(texts):
                found[key["task"]][key["template_id"]] = text
    for task, facts in (record.get("tasks") or {}).items():
        found[task].update(facts.get("wordings") or {})
    return dict(found)


def _in_common(texts: list[str]) -> str:
    """What the prompts of a template share; "" for a single prompt, which shows no difference."""
    if len(set(texts)) < 2:
        return ""
    start = same_start(min(texts), max(texts))
    if "\n\n" in start:
        return start.rpartition("\n\n")[0].strip()
    left = [text[len(start) :][::-1] for text in texts]
    end = same_start(min(left), max(left))[::-1]
    if not start and "\n\n" in end:
        return end.partition("\n\n")[2].strip()
    return f"{start}…{end}".strip() if start or end else ""


_PAIR_COLUMNS = (
    "task",
    "item_id",
    "cluster_id",
    "order",
    "template_a",
    "template_b",
    "prompt_id_a",
    "prompt_id_b",
    "label_map_a",
    "label_map_b",
)


UNFINISHED = (
    "This run is not finished. The figures cover the prompts judged so far. Rerun the "
    "same command to finish it."
)


def measure(
    log: pa.Table,
    pairs: pa.Table | None,
    *,
    run: Mapping[str, Any],
    prompts: pa.Table | None = None,
    thresholds: Mapping[str, object] | None = None,
    texts: Callable[[list[int]], list[str | None]] | None = None,
    folder: str | Path | None = None,
    people: pa.Table | None = None,
    items: pa.Table | None = None,
    listed: Rows | None = None,
) -> dict[str, Any]:
    """Every figure of a run, and what follows from it.

    Args:
        log: a decision log (`judgesense.log.schema.SCHEMA`), n rows.
        pairs: the run's pairs; None takes all pairs of templates within item and order.
        run: the run's record (``run.json``): ``run_id`` and ``tasks`` (name -> labels,
            comparative) and ``thresholds`` are used if present.
        prompts: ``prompt_id`` and ``text`` of the user messages, shown in the flipped examples;
            with ``task`` and ``template_id``, they also show the texts of wordings.
        thresholds: of the trust card's checks, by name
            (`judgesense.measure.thresholds.Thresholds`); those left out are the
            run's, or the defaults.
        texts: reads the judge's text at some rows of the log, for the flipped examples; by default
            they are the log's ``raw_text``.
        folder: the run's folder, for the commands of next steps.
        people: people's labels (`judgesense.log.folder.PEOPLE_SCHEMA`), where gold is the
            majority of several; ``epsilon`` of the run is that of the alternative annotator test.
        items: other columns of an imported file (`judgesense.log.folder.ITEM_SCHEMA`).
        listed: a list to which the rows of ``disagreements.csv`` are added.

    Returns:
        The contents of ``report.json``: the lists of `judgesense.measure.report_file.LISTS`,
        ``cells`` with the keys of `CELL_KEYS`. ``accuracy`` is that of mapped decisions among the
        decided single prompts; ``coverage`` is the share of planned pairs that are decided on both
        sides. For a comparative task, order ``both`` pools AB and BA.

    Raises:
        JudgeSenseError: an empty log, a missing column, an impossible label map, or an unknown
            threshold.
    """
    log = conform(log, "the decision log")
    numbered = log.append_column(ROW, pa.array(np.arange(log.num_rows)))
    columns = _PAIR_COLUMNS if pairs is None else pairs.column_names
    if missing := [name for name in _PAIR_COLUMNS if name not in columns]:
        raise JudgeSenseError(f"the pairs lack the columns {join(missing)}")
    run_id = str(run.get("run_id") or "-")
    report: dict[str, Any] = {"schema": VERSION, **{name: [] for name in LISTS}}
    limits = Thresholds().but(run.get("thresholds")).but(thresholds)
    wording = wording_texts(run, prompts)
    epsilon = float(run.get("epsilon", EPSILON))
    lengths = _lengths(prompts)
    streams = view(numbered, pairs, run).streams
    family = 0
    for stream in streams:
        several = stream.row_a is not None and distinct(stream.log.template[stream.rows]) > 1
        family += bool(several and (stream.log.gold[stream.rows] >= 0).any())
    for stream in streams:
        every = parts(stream, run_id)
        report["cells"] += stream_cells(every)
        if stream.row_a is not None:
            whole = every[-1]
            agreements = template_pairs(whole)
            report["template_pairs"] += agreements
            report["templates"] += template_figures(whole, agreements)
            report["diagnostics"].append(diagnostics(whole, report["cells"][-1]))
            report["examples"] += examples(whole)
            if stream.reruns is not None:
                report["repeated"] += repeated_figures(stream, run)
            case = {key: whole.names[key] for key in CELL_KEYS[:4]}
            texts_of_task = wording.get(stream.task.name)
            table = Wordings.of(stream, max(1, family))
            concluded = conclusions(
                stream, table, limits, texts_of_task, people, epsilon, run.get("attacks")
            )
            wrong = disagreements(stream, table.mislabelled, items, lengths, listed, **case)
            concluded["where_wrong"] = [wrong]
            for name, rows in concluded.items():
                report[name] += [{**case, **row} for row in rows]
            (card,) = concluded["trust"]
            planned = plan(card["checks"], limits.confidence) if card["trust"] != "avoid" else None
            outlook = gate_outlook(card["checks"]["steady"], limits.confidence)
            report["plan"].append({**case, "settles": planned, "gate": outlook})
            step = next_step(
                {**case, **card},
                remedies=concluded.get("remedies", ()),
                wordings=concluded["wordings"],
                diagnostics=report["diagnostics"][-1],
                planned=planned,
                record=run,
                folder=folder,
            )
            report["next"].append({**case, **step})
    shown = texts or (lambda rows: log["raw_text"].take(pa.array(rows, pa.int64())).to_pylist())
    if listed:
        add_texts(listed, shown, prompts, people)
    sides = [example[side] for example in report["examples"] for side in "ab"]
    for side, text in zip(sides, shown([side.pop(ROW) for side in sides]), strict=True):
        side["answer"] = None if text is None else text[:LONGEST_TEXT]
    if prompts is not None:
        sides += [item for row in report["attacks"] for item in row["turned_items"]]
        wanted = pa.array([side["prompt_id"] for side in sides], pa.string())
        few = prompts.filter(pc.is_in(prompts["prompt_id"], value_set=wanted))
        known = dict(zip(few["prompt_id"].to_pylist(), few["text"].to_pylist(), strict=True))
        for side in sides:
            text = known.get(side["prompt_id"])
            side["text"] = None if text is None else text[:LONGEST_TEXT]
    report["runs"] = [dict(run)]
    report["notes"] = list(map(str, run.get("notes") or []))
    if "asked" in run and not run.get("finished"):
        report["notes"].insert(0, UNFINISHED)
    report["findings"] = advise(report)
    report["advice"] = list(map(as_sentence, report["findings"]))
    return report


def _lengths(prompts: pa.Table | None) -> dict[str, int]:
    """The characters of each item's shortest prompt."""
    if prompts is None or not {"item_id", "text"} <= set(prompts.column_names):
        return {}
    sizes = pa.table({"item": prompts["item_id"], "n": pc.utf8_length(prompts["text"])})
    shortest = sizes.group_by("item").aggregate([("n", "min")])
    return dict(zip(shortest["item"].to_pylist(), shortest["n_min"].to_pylist(), strict=True))
