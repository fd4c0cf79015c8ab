"""Verdicts as OpenTelemetry events, through the SDK's exporter in memory."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from served import judge_of, running, served_of

import judgesense
from judgesense.pipeline import events

sdk = pytest.importorskip("opentelemetry.sdk._logs")

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
PARENT = f"00-{TRACE}-{SPAN}-01"
ROWS = [
    {
        "question": f"Is {n} a number?",
        "response": "Yes.",
        "item_id": f"q{n}",
        "response_id": f"r{n}",
    }
    for n in range(6)
]


@pytest.fixture
def exported(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor

    exporter, provider = InMemoryLogRecordExporter(), sdk.LoggerProvider()
    provider.add_log_record_processor(SimpleLogRecordProcessor(exporter))
    monkeypatch.setattr("opentelemetry._logs.get_logger_provider", lambda: provider)
    yield lambda: [each.log_record for each in exporter.get_finished_logs()]
    provider.shutdown()


def test_a_server_tells_of_each_verdict_in_the_trace_of_its_request(exported: Any) -> None:
    served = served_of()
    with running(served) as url:
        headers = {"traceparent": PARENT}
        items = [{"question": "q", "response": r, "item_id": r} for r in "ab"]
        rows = httpx.post(f"{url}/v1/judge", json={"items": items}, headers=headers).json()
    records = exported()
    assert [record.event_name for record in records] == [events.EVENT] * 2
    assert {(record.trace_id, record.span_id) for record in records} == {
        (int(TRACE, 16), int(SPAN, 16))
    }
    for record, row in zip(records, rows["results"], strict=True):
        found = dict(record.attributes)
        assert found["gen_ai.evaluation.name"] == "factuality"
        assert found["gen_ai.evaluation.score.label"] == row["verdict"]
        assert found["gen_ai.evaluation.explanation"] == (row["reason"] or row["note"])
        assert found["judgesense.signature"] == row["signature"]
        assert found["judgesense.probability"] == row["probability"]
        # YES and NO do not say which way is up.
        assert "gen_ai.evaluation.score.value" not in found


def test_judging_items_tells_of_each_verdict_once(exported: Any, tmp_path: Path) -> None:
    items, out = tmp_path / "items.jsonl", tmp_path / "verdicts.csv"
    items.write_text("".join(f"{json.dumps(row)}\n" for row in ROWS))
    asked = {"task": "factuality", "scoring": "options", "note": str}
    for _ in range(2):
        judgesense.judge_items(items, judge_of(), out, **asked)
    found = {each.attributes["judgesense.item_id"]: each.attributes for each in exported()}
    assert len(exported()) == len(found) == 6
    assert {key: each["gen_ai.response.id"] for key, each in found.items()} == {
        f"q{n}": f"r{n}" for n in range(6)
    }


def test_a_score_on_a_scale_is_the_value(exported: Any) -> None:
    with running(served_of(task="coherence")) as url:
        row = httpx.post(f"{url}/v1/judge", json={"summary": "s", "source": "d"}).json()
    (record,) = exported()
    assert record.attributes["gen_ai.evaluation.score.value"] == row["score"]
    assert 1 <= row["score"] <= 5


def test_nothing_is_sent_without_a_provider_or_an_endpoint(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in events.ENDPOINTS:
        monkeypatch.delenv(name, raising=False)
    assert events._provider() is None
    monkeypatch.setenv(events.ENDPOINTS[0], "http://127.0.0.1:9/v1/logs")
    provider = events._provider()
    assert isinstance(provider, sdk.LoggerProvider)
    assert events._provider() is provider
    provider.shutdown()
    events._endpoint_provider.cache_clear()
