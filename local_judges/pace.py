"""How long judging takes on this machine: told before it starts, measured while it runs.

The pace of a judge is kept in the cache, in characters of prompts per second, so that the next run
and ``--dry-run`` know it before anything is loaded.
"""

from __future__ import annotations

import hashlib
import json
import logging
import math
import os
import platform
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from judgesense.files.disk import write_text
from judgesense.text import duration
from local_judges.local.packaged_models import cache_dir
from local_judges.plan import Part, Requests
from local_judges.protocol import Judge, Request

log = logging.getLogger(__name__)

BFLOAT16, OPTIONS, ONCE = "--set dtype=bfloat16", "--scoring options", "--repeats 1"
WAYS = (BFLOAT16, OPTIONS, ONCE, "--limit N")
"""Flags that shorten a run, most effective first."""

_HOW_FAST = {BFLOAT16: f"{BFLOAT16} (about 1.7 to 2 times as fast on this CPU)"}

LONG = 60.0
"""Seconds from which quicker ways are named."""

MARGIN = 1.25
"""What is told is at most about right: other prompts may share less text, or get longer answers."""

_TIMED = 4
"""Requests that are judged to time a judge; their answers are not kept."""

_ENOUGH_S = 10.0
"""Seconds of judging from which a pace is kept."""

_FIRST_S = 5.0
"""Seconds after which a judge that was not timed before is known well enough to tell."""


class Pace:
    """The pace of one judge in one run: tells the duration once, and keeps what it measured.

    Args:
        identity: the judge as JSON values; None for one that has no lasting name (a function).
        scorings: what is asked of it.
        note: receives the message.
        sample: time the judge on a few requests if its pace is unknown. Their answers are not
            kept, so only a judge that costs nothing and writes little is worth it.
        repeats: how often each prompt is asked.
        ways: the command's flags that shorten a run; those that apply are named if it is long.
    """

    def __init__(
        self,
        identity: Mapping[str, Any] | None,
        scorings: Collection[str],
        note: Callable[[str], None],
        *,
        sample: bool = False,
        repeats: int = 1,
        ways: Sequence[str] = (),
    ) -> None:
        self._identity, self._scorings, self._note = identity, frozenset(scorings), note
        self._sample, self._repeats, self._ways = sample, repeats, tuple(ways)
        self._told = self._warm = False
        self._prompts = self._done = self._characters = self._seen = 0
        self._quicker = ""
        self._started = self._first = self._last = 0.0

    def start(self, judge: Judge, todo: Sequence[Part], requests: Requests) -> None:
        """Tell how long these parts take, if the pace is known or can be sampled."""
        asked = np.fromiter((at for part in todo for at in part.requests), dtype=np.int64)
        self._prompts, self._characters = len(asked), int(requests.characters[asked].sum())
        if not self._prompts:
            self._told = True
            return
        scorings, repeats = self._scorings, self._repeats
        chosen = (self._identity or {}).get("dtype")
        self._quicker = ", ".join(
            _HOW_FAST.get(way, way)
            for way in self._ways
            if _applies(way, judge, scorings, repeats) and not (way == BFLOAT16 and chosen)
        )
        known = stored(self._identity, self._scorings) if self._identity else None
        if known is not None:
            self._tell(MARGIN * self._characters / known)
        elif self._sample and self._prompts > 4 * _TIMED:
            step = max(len(requests) // _TIMED, 1)
            sample = requests.take(range(0, len(requests), step)[:_TIMED])
            # The first call also pays for what is set up only once.
            self._seconds(judge, sample[:1])
            per_prompt = self._seconds(judge, sample) / len(sample)
            # A few requests alone are slower than many, so this needs no margin.
            self._tell(per_prompt * self._prompts)
            self._warm = True
        self._started = self._first = self._last = time.perf_counter()

    def saw(self, requests: Requests, batch: Sequence[int]) -> None:
        """Count a batch that was answered."""
        self._last = time.perf_counter()
        self._done += len(batch)
        if not self._warm:
            # The first batch also loads the weights.
            self._first, self._warm = self._last, True
        else:
            self._seen += int(requests.characters[batch].sum())
        late = self._last - self._started > _FIRST_S
        if late and not self._told and self._done < self._prompts:
            if self._seen:
                seconds = (self._last - self._first) * self._characters / self._seen
                self._tell(MARGIN * seconds)
            else:
                seen = max(int(requests.characters[batch].sum()), 1)
                self._tell((self._last - self._started) * self._characters / seen)

    def keep(self) -> None:
        """Keep the pace for the next run, if enough was judged to know it."""
        seconds = self._last - self._first
        if self._identity is None or seconds < _ENOUGH_S or not self._seen:
            return
        place = _place(self._identity, self._scorings)
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            write_text(place, f"{self._seen / seconds:.6g}\n")
        except OSError as error:
            log.warning("cannot keep the judge's pace in %s: %s", place, error)

    def _tell(self, seconds: float) -> None:
        self._told = True
        text = f"{self._prompts} prompts take at most about {duration(seconds)}"
        more = f"; faster in a new run with {self._quicker}"
        self._note(text + (more if self._quicker and seconds >= LONG else ""))

    def _seconds(self, judge: Judge, requests: list[Request]) -> float:
        started = time.perf_counter()
        for _ in judge.judge(iter([(0, requests)]), self._scorings):
            pass
        return time.perf_counter() - started


def stored(identity: Mapping[str, Any], scorings: Collection[str]) -> float | None:
    """The kept pace of a judge on this machine, in characters per second; None if unknown."""
    try:
        pace = float(_place(identity, scorings).read_text("ascii"))
    except (OSError, ValueError):
        return None
    return pace if math.isfinite(pace) and pace > 0 else None


def _place(identity: Mapping[str, Any], scorings: Collection[str]) -> Path:
    machine = [platform.node(), os.cpu_count()]
    key = json.dumps([identity, sorted(scorings), machine], sort_keys=True, default=str)
    return cache_dir() / "pace" / hashlib.sha256(key.encode()).hexdigest()[:32]


def _applies(way: str, judge: Judge, scorings: Collection[str], repeats: int) -> bool:
    """Whether these flags would make this run shorter."""
    if way == BFLOAT16:
        described = judge.describe()
        from_cpu = described.get("hardware", {}).get("device") == "cpu"
        if described.get("dtype") != "float32" or not from_cpu:
            return False
        from local_judges.local.devices import cpu_has_bfloat16

        return cpu_has_bfloat16()
    if way == OPTIONS:
        return "generate" in scorings and "options" in judge.scorings
    return way != ONCE or repeats > 1
