"""How long judging takes: told before it starts, kept for the next run and for --dry-run."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from judgesense.pipeline import Settings, prepare
from judgesense.pipeline.data import data_reference
from judgesense.pipeline.dry_run import describe
from judgesense_dataset.embedded import load_embedded
from local_judges import pace as pace_module
from local_judges.pace import BFLOAT16, ONCE, OPTIONS, WAYS, Pace, stored
from local_judges.plan import Part, Requests
from local_judges.protocol import Answer
from local_judges.registry import resolve


class Clock:
    """Time that passes only when a judge works."""

    now = 100.0

    def perf_counter(self) -> float:
        return self.now


class Slow:
    """A judge that takes 0.01 seconds per character, and 30 more for its first batch."""

    name, scorings = "slow@1", frozenset({"generate", "options"})

    def __init__(self, clock: Clock) -> None:
        self.clock, self.loading = clock, 30.0
        self.asked = 0

    def describe(self) -> dict:
        return {"dtype": "float32", "hardware": {"device": "cpu"}}

    def judge(self, batches, scorings):
        for number, batch in batches:
            self.clock.now += self.loading + 0.01 * sum(len(each.text) for each in batch)
            self.loading = 0.0
            self.asked += len(batch)
            yield number, [Answer(each.options[0]) for each in batch]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Clock:
    clock = Clock()
    monkeypatch.setattr(pace_module, "time", clock)
    monkeypatch.setenv("JUDGESENSE_CACHE", str(tmp_path / "cache"))
    return clock


def _judged(judge: Slow, requests: Requests, notes: list[str], identity=None, **given) -> None:
    """Judge all requests in four batches, as the runner does."""
    quarters = np.array_split(np.arange(len(requests)), 4)
    parts = [Part(f"part-{at}", 0, (batch.tolist(),)) for at, batch in enumerate(quarters)]
    pace = Pace(identity, judge.scorings, notes.append, **given)
    pace.start(judge, parts, requests)
    for part in parts:
        for _ in judge.judge([(0, requests.take(part.batches[0]))], judge.scorings):
            pace.saw(requests, part.batches[0])
    pace.keep()


def test_a_sampled_judge_tells_before_it_starts_and_knows_its_pace_next_time(clock: Clock) -> None:
    requests = Requests(load_embedded().select(["coherence"], limit=8).prompts)
    whole = 0.01 * int(requests.characters.sum())
    identity, notes = {"judge": "slow"}, []
    judge = Slow(clock)
    _judged(judge, requests, notes, identity, sample=True, ways=WAYS, repeats=2)
    assert judge.asked == len(requests) + 5
    kept = stored(identity, judge.scorings)
    assert kept == pytest.approx(100, rel=1e-4)
    assert stored(identity, ["options"]) is None
    (told,) = notes
    assert told.startswith(f"{len(requests)} prompts take at most about")
    assert OPTIONS in told
    assert ONCE in told
    again: list[str] = []
    _judged(Slow(clock), requests, again, identity, sample=True)
    expected = pace_module.duration(1.25 * whole)
    assert again == [f"{len(requests)} prompts take at most about {expected}"]


def test_a_judge_that_is_not_sampled_tells_after_its_first_batch(clock: Clock) -> None:
    requests = Requests(load_embedded().select(["factuality"], limit=8).prompts)
    notes: list[str] = []
    judge = Slow(clock)
    _judged(judge, requests, notes)
    assert judge.asked == len(requests)
    whole, first = (int(requests.characters[:end].sum()) for end in (len(requests), 10))
    seconds = (30 + 0.01 * first) * whole / first
    expected = pace_module.duration(seconds)
    assert notes == [f"{len(requests)} prompts take at most about {expected}"]


def test_a_damaged_pace_is_unknown(clock: Clock, tmp_path: Path) -> None:
    requests = Requests(load_embedded().select(["coherence"], limit=8).prompts)
    judge = Slow(clock)
    _judged(judge, requests, [], {"judge": "slow"})
    (file,) = (tmp_path / "cache" / "pace").iterdir()
    for text in ("", "fast", "-3", "nan", "inf"):
        file.write_text(text, "utf-8")
        assert stored({"judge": "slow"}, judge.scorings) is None


def test_quicker_ways_name_only_what_applies(clock: Clock, monkeypatch) -> None:
    judge = Slow(clock)
    applies = pace_module._applies
    monkeypatch.setattr("local_judges.local.devices.cpu_has_bfloat16", lambda: True)
    assert applies(BFLOAT16, judge, ["options"], 1)
    assert not applies(OPTIONS, judge, ["options"], 1)
    assert not applies(ONCE, judge, ["options"], 1)
    monkeypatch.setattr(judge, "describe", lambda: {"dtype": "bfloat16", "hardware": {}})
    assert not applies(BFLOAT16, judge, ["options"], 1)


@pytest.mark.parametrize(
    ("native", "identity", "hinted"),
    [(True, {}, True), (True, {"dtype": "float32"}, False), (False, {}, False)],
)
def test_bfloat16_is_hinted_once_where_the_cpu_has_it_and_no_dtype_was_chosen(
    clock: Clock, monkeypatch, native: bool, identity: dict, hinted: bool
) -> None:
    monkeypatch.setattr("local_judges.local.devices.cpu_has_bfloat16", lambda: native)
    requests, notes = Requests(load_embedded().select(["factuality"], limit=8).prompts), []
    _judged(Slow(clock), requests, notes, {"judge": "slow", **identity}, sample=True, ways=WAYS)
    assert [BFLOAT16 in note for note in notes] == [hinted]


def test_a_dry_run_tells_the_duration_where_the_pace_is_known(clock: Clock) -> None:
    spec = resolve("smollm2-135m")
    settings = Settings.of("options", ["coherence"], None, 1, 0, 4)
    asked = prepare(["smollm2-135m"], data_reference(None, None, None), settings, {})
    assert not any("pace" in line for line in describe(asked))
    place = pace_module._place(spec.identity(), ["options"])
    place.parent.mkdir(parents=True)
    requests = Requests(asked.benchmark().prompts)
    place.write_text(str(int(requests.characters.sum()) / 600), "ascii")
    told = list(describe(asked))
    assert "  at most about 12 minutes, at its pace on this machine" in told
