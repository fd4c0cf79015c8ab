"""Variant classes of the decision log: what forms pairs, and what stands beside them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from judgesense.errors import JudgeSenseError
from judgesense.log.answers import Answers
from judgesense.log.schema import OPTIONAL, PARTS, SCHEMA, read_log
from judgesense.log.view import view
from judgesense.measure.assess import measure

ROW = {"judge": "j", "task": "t", "scoring": "generate", "order": "-", "status": "ok", "repeat": 0}


def row(item: str, template: str, decision: str, **more: Any) -> dict[str, Any]:
    found = {**ROW, "item_id": item, "template_id": template, "decision": decision, "gold": "YES"}
    found["prompt_id"] = f"{item}/{template}/{more.get('variant')}"
    return {**found, "raw_decision": decision, **more}


def table(*rows: dict[str, Any]) -> pa.Table:
    return pa.Table.from_pylist(list(rows), schema=SCHEMA)


NEGATED = {"variant": "negated", "variant_class": "contrast"}
REASONING = {"variant": "reasoning", "variant_class": "intervention"}
LOG = table(
    *(row(item, template, "YES") for item in ("1", "2") for template in ("a", "b")),
    row("1", "a", "NO", **NEGATED),
    row("2", "a", "YES", **NEGATED),
    row("1", "other", "NO", variant="swapped", variant_class="contrast"),
    row("2", "b", "NO", **REASONING),
    row("2", "b", "NO", repeat=1, **REASONING),
)


def beside(stream: Answers, found: Any) -> list[tuple[str, str, str, str]]:
    log = stream.log
    assert found is not None
    return [
        (
            log.items[log.item[b]],
            *(log.templates[log.template[r]] for r in (a, b)),
            f"{log.labels[log.raw[a]]}>{log.labels[log.raw[b]]}",
        )
        for a, b in zip(*found, strict=True)
    ]


def test_only_equivalent_variants_form_pairs_and_single_answers() -> None:
    (stream,) = view(LOG).judged
    assert stream.agreement("mapped").flip_rate == 0.0
    assert len(stream.pairs) == 2
    assert sorted(stream.as_rows(repeats=True).template) == ["a", "a", "b", "b"]
    assert stream.reruns is None
    assert all(len(baseline.rows) == 4 for baseline in view(LOG).answers)


def test_a_contrast_is_beside_its_own_template_or_else_every_wording_of_the_item() -> None:
    (stream,) = view(LOG).judged
    assert sorted(beside(stream, stream.contrast)) == [
        ("1", "a", "a+negated", "YES>NO"),
        ("1", "a", "other", "YES>NO"),
        ("1", "b", "other", "YES>NO"),
        ("2", "a", "a+negated", "YES>YES"),
    ]
    assert beside(stream, stream.variants["reasoning"][1:]) == [("2", "b", "b+reasoning", "YES>NO")]


def test_the_base_of_a_contrast_is_the_template_without_its_equivalent_variants() -> None:
    bullets = {"variant": "bullets", "variant_class": "equivalent"}
    log = table(
        row("1", "a", "YES"),
        row("1", "a", "NO", **bullets),
        row("1", "a", "NO", **NEGATED),
        row("2", "a", "YES", **bullets),
        row("2", "b", "NO"),
        row("2", "a", "NO", **NEGATED),
    )
    (stream,) = view(log).judged
    assert beside(stream, stream.contrast) == [
        ("1", "a", "a+negated", "YES>NO"),
        ("2", "a+bullets", "a+negated", "YES>NO"),
    ]


def test_equivalent_variants_of_one_template_are_wordings_of_their_own() -> None:
    bulleted = [row(i, "a", "NO", variant="bullets", variant_class="equivalent") for i in "12"]
    log = pa.concat_tables([table(row("1", "a", "YES"), row("2", "a", "NO")), table(*bulleted)])
    (stream,) = view(log).judged
    assert stream.places == [("1", "a", "a+bullets", "-"), ("2", "a", "a+bullets", "-")]
    assert stream.agreement("mapped").jss == 0.5
    assert stream.contrast is None


def test_planned_pairs_leave_contrast_prompts_beside_them() -> None:
    plan = {
        "pair_id": "p",
        "task": "t",
        "item_id": "1",
        "cluster_id": "1",
        "order": "-",
        "template_a": "a",
        "template_b": "b",
        "prompt_id_a": "1/a/None",
        "prompt_id_b": "1/b/None",
        "label_map_a": '{"YES": "YES", "NO": "NO"}',
        "label_map_b": '{"YES": "YES", "NO": "NO"}',
    }
    (stream,) = view(LOG, pa.Table.from_pylist([plan])).judged
    assert stream.agreement("mapped").n_pairs == 1
    assert [place[:3] for place in beside(stream, stream.contrast)] == [
        ("1", "a", "a+negated"),
        ("2", "a", "a+negated"),
        ("1", "a", "other"),
        ("1", "b", "other"),
    ]


def test_a_judge_that_saw_contrasts_alone_has_no_agreement() -> None:
    only = table(row("1", "a", "NO", **NEGATED), row("2", "a", "YES", **NEGATED))
    (stream,) = view(only).judged
    assert (len(stream.rows), len(stream.pairs), stream.contrast) == (0, 0, None)
    cell = measure(only, None, run={}).measured[0].cells[0]
    assert (cell.jss, cell.n_pairs, cell.accuracy) == (None, 0, None)


def test_a_log_without_the_variant_columns_is_read_as_rewordings(tmp_path: Path) -> None:
    old = table(row("1", "a", "YES"), row("1", "b", "NO")).drop_columns(list(OPTIONAL))
    (tmp_path / PARTS).mkdir()
    pq.write_table(old, tmp_path / PARTS / "part-00000.parquet")
    read = read_log(tmp_path)
    assert read.schema == SCHEMA
    for log in (old, read):
        found = view(log)
        assert found.log.variants == ["rewording"]
        assert found.judged[0].agreement("mapped").flip_rate == 1.0


def test_an_unknown_variant_class_is_named_with_its_row() -> None:
    log = table(row("1", "a", "YES"), row("1", "b", "NO", variant_class="opposite"))
    with pytest.raises(JudgeSenseError, match="row 2, variant_class: 'opposite' is not one of"):
        view(log)
