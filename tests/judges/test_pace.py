"""How long judging takes: told before it starts, kept for the next run and for --dry-run."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from judgesense.pipeline import Settings, prepare
from judgesense.pipeline.data import data_reference
from judgesense.pipeline.dry_run import describe, dry_run
from judgesense.text import duration
from judgesense_dataset.embedded import load_embedded
from local_judges import pace as pace_module
from local_judges.pace import MARGIN, Pace, stored
from local_judges.plan import Part, Requests
from local_judges.protocol import Answer
from local_judges.registry import resolve

IDENTITY = {"judge": "slow"}


class Slow:
    """A judge that takes 0.01 seconds per character of a clock that only it moves, and 30 more for
    its first batch."""

    name, scorings = "slow@1", frozenset({"generate", "options"})

    def __init__(self) -> None:
        self.now, self.loading, self.asked = 100.0, 30.0, 0

    def perf_counter(self) -> float:
        return self.now

    def judge(self, batches, scorings):
        for number, batch in batches:
            self.now += self.loading + 0.01 * sum(len(each.text) for each in batch)
            self.loading = 0.0
            self.asked += len(batch)
            yield number, [Answer(each.options[0]) for each in batch]


@pytest.fixture
def judge(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Slow:
    slow = Slow()
    monkeypatch.setattr(pace_module, "time", slow)
    monkeypatch.setenv("JUDGESENSE_CACHE", str(tmp_path / "cache"))
    return slow


def judged(judge: Slow, requests: Requests, **given) -> list[str]:
    """The notes of judging all requests in four batches, as the runner does."""
    quarters = np.array_split(np.arange(len(requests)), 4)
    parts = [Part(f"part-{at}", 0, (batch.tolist(),)) for at, batch in enumerate(quarters)]
    notes: list[str] = []
    pace = Pace(IDENTITY, judge.scorings, notes.append, **given)
    pace.start(judge, parts, requests)
    for part in parts:
        for _ in judge.judge([(0, requests.take(part.batches[0]))], judge.scorings):
            pace.saw(requests, part.batches[0])
    pace.keep()
    return notes


def test_a_sampled_judge_tells_before_it_starts_and_knows_its_pace_next_time(judge: Slow) -> None:
    requests = Requests(load_embedded().select(["coherence"], limit=8).prompts)
    (first,) = judged(judge, requests, sample=True)
    assert first.startswith(f"{len(requests)} prompts take at most about ")
    assert judge.asked == len(requests) + 5
    characters = int(requests.characters.sum())
    assert stored(IDENTITY, judge.scorings) == pytest.approx(100, rel=0.01)
    assert judged(judge, requests) == [
        f"{len(requests)} prompts take at most about {duration(MARGIN * characters / 100)}"
    ]
    assert judge.asked == 2 * len(requests) + 5


def test_a_damaged_pace_is_unknown_and_nothing_is_told(judge: Slow, tmp_path: Path) -> None:
    requests = Requests(load_embedded().select(["coherence"], limit=8).prompts)
    assert judged(judge, requests) == []
    (file,) = (tmp_path / "cache" / "pace").iterdir()
    for text in ("", "fast", "-3", "nan", "inf"):
        file.write_text(text, "utf-8")
        assert stored(IDENTITY, judge.scorings) is None
    assert judged(judge, requests) == []


def test_a_dry_run_tells_the_duration_where_the_pace_is_known(judge: Slow) -> None:
    spec = resolve("smollm2-135m")
    settings = Settings.of("options", ["coherence"], None, 1, 0, 4)
    data = data_reference(None, None, None)
    judges, _ = prepare(["smollm2-135m"], settings, {})
    assert not any("pace" in line for line in describe(dry_run(judges, data, settings)))
    path = pace_module._path(spec.identity(), ["options"])
    path.parent.mkdir(parents=True)
    requests = Requests(data.selected(settings).prompts)
    path.write_text(str(int(requests.characters.sum()) / 600), "ascii")
    lines = list(describe(dry_run(judges, data, settings)))
    assert "  at most about 12 minutes, at its pace on this machine" in lines
