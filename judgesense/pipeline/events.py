"""Verdicts as OpenTelemetry events, ``gen_ai.evaluation.result`` of its conventions for GenAI:
https://opentelemetry.io/docs/specs/semconv/gen-ai/gen-ai-events/.

Nothing is sent unless the program that uses JudgeSense has set a logger provider, or the extra
``otel`` is installed and the environment names an OTLP endpoint. No judged text is sent.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Any

from judgesense.tasks import UNDECIDED
from judgesense.version import __version__

if TYPE_CHECKING:
    from judgesense.pipeline.verdict_files import ItemVerdict

EVENT = "gen_ai.evaluation.result"
ENDPOINTS = ("OTEL_EXPORTER_OTLP_LOGS_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
_TRACE = ("traceparent", "tracestate")


def emit_verdicts(verdicts: Iterable[tuple[ItemVerdict, str, Mapping[str, Any]]]) -> None:
    """Emit an event for each verdict, with the signature of its judge and where it came from.

    The origin is the item's row or the headers of a request. Its ``traceparent`` is the operation
    that is judged, and its ``response_id`` the reply.
    """
    if (provider := _provider()) is None:
        return
    from opentelemetry._logs import LogRecord, SeverityNumber
    from opentelemetry.propagate import extract

    logger = provider.get_logger("judgesense", __version__)
    for verdict, signature, origin in verdicts:
        logger.emit(
            LogRecord(
                event_name=EVENT,
                severity_number=SeverityNumber.INFO,
                context=extract({key: str(origin[key]) for key in _TRACE if origin.get(key)}),
                attributes=attributes_of(verdict, signature, origin.get("response_id")),
            )
        )


def attributes_of(
    verdict: ItemVerdict, signature: str, response_id: object = None
) -> dict[str, str | float | bool]:
    """The attributes of a verdict's event; the score is that of a scale alone, because no other
    label says which way is up.

    >>> from judgesense.pipeline.verdict_files import ItemVerdict
    >>> found = attributes_of(ItemVerdict("1", "4", 0.7, 0.5, 3.8, None, None, task="tone"), "s")
    >>> found["gen_ai.evaluation.score.label"], found["gen_ai.evaluation.score.value"]
    ('4', 3.8)
    """
    is_decided = verdict.verdict not in UNDECIDED
    score = verdict.score
    if score is None and is_decided:
        with suppress(ValueError):
            score = float(verdict.verdict)
    attributes = {
        "gen_ai.evaluation.name": verdict.task or "verdict",
        "gen_ai.evaluation.score.label": verdict.verdict,
        "gen_ai.evaluation.score.value": score,
        "gen_ai.evaluation.explanation": verdict.reasoning or verdict.note,
        "gen_ai.response.id": str(response_id) if response_id else None,
        "error.type": "_OTHER" if verdict.error else None,
        "judgesense.item_id": verdict.item_id,
        "judgesense.signature": signature or None,
        "judgesense.probability": verdict.probability,
        "judgesense.margin": verdict.margin,
        "judgesense.ask_person": verdict.ask_person,
    }
    return {name: value for name, value in attributes.items() if value is not None}


def _provider() -> Any:
    """The program's own provider, or one for the endpoint of the environment; None without."""
    try:
        from opentelemetry import _logs
    except ImportError:
        return None
    provider = _logs.get_logger_provider()
    # The API stands in for a provider that was not set.
    if type(provider).__name__ != "ProxyLoggerProvider":
        return provider
    return _endpoint_provider() if any(os.environ.get(name) for name in ENDPOINTS) else None


@cache
def _endpoint_provider() -> Any:
    try:
        from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
        from opentelemetry.sdk._logs import LoggerProvider
        from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
    except ImportError:
        return None
    provider = LoggerProvider()
    provider.add_log_record_processor(BatchLogRecordProcessor(OTLPLogExporter()))
    return provider
