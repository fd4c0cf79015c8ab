"""The tables under the main one."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from reports import report_of

from judgesense.reporting.documents import render_markdown
from judgesense.reporting.html import render_html
from judgesense.reporting.terminal import render_terminal


def coin(text: str, repeat: int) -> str:
    return "YES" if hashlib.sha256(f"{text}{repeat}".encode()).digest()[0] % 3 else "NO"


@pytest.fixture
def measured(
    make: Any,
) -> Callable[..., dict[str, Any]]:
    """A report of a judge that answers by a coin of the message and the repeat."""

    def of(judge: str = "rule@0001", repeats: int = 1) -> dict[str, Any]:
        data = make.benchmark(
            make.YESNO, [make.PLAIN, make.PLAIN, make.INVERTED], ["YES", "NO"] * 10
        )
        log = pa.concat_tables(
            make.log(data, lambda prompt, r=r: coin(prompt["text"], r), judge=judge, repeat=r)
            for r in range(repeats)
        )
        describe = {"decoding": {"temperature": 0.7}}
        run = {**make.run(data), "judges": [{"name": judge, "describe": describe}]}
        return report_of(log, data.pairs, run=run)

    return of


def test_repeats_are_shown_as_draws_with_their_noise_floor(
    measured: Callable[..., dict[str, Any]],
) -> None:
    report = measured(repeats=4)
    raw, mapped = report["repeated"]
    assert (raw["n_draws"], raw["temperature"], raw["n_pairs"]) == (4, 0.7, 60)
    assert raw["jss"] != mapped["jss"]
    assert raw["noise_floor"] == pytest.approx(mapped["noise_floor"])
    assert 0.3 < raw["noise_floor"] < 0.6
    for text in (
        render_terminal(report.contents),
        render_markdown(report.contents),
        render_html(report.contents),
    ):
        assert "Each prompt repeated" in text
        assert "4×" in text
        assert f"{mapped['jss']:.3f}" in text


def test_draws_without_a_decision_are_counted_beside_those_compared(make: Any) -> None:
    data = make.benchmark(make.YESNO, [make.PLAIN, make.PLAIN], ["YES", "NO"] * 10)
    log = pa.concat_tables(
        make.log(data, lambda prompt, r=r: "UNCLEAR" if r == 1 else "YES", repeat=r)
        for r in range(3)
    )
    report = report_of(log, data.pairs, run=make.run(data))
    entry = report["repeated"][0]
    assert (entry["n_draws"], entry["n_undecided"]) == (3, 40)
    table = render_markdown(report.contents).split("Each prompt repeated")[1]
    assert "| 3× | 40 |" in " ".join(table.split())


def test_names_in_the_tables_are_made_harmless(measured: Callable[..., dict[str, Any]]) -> None:
    report = measured("<b>|evil@1", repeats=2)
    assert "<b>" not in render_html(report.contents)
    row = next(line for line in render_markdown(report.contents).splitlines() if "2×" in line)
    assert row.count(" | ") == 10
