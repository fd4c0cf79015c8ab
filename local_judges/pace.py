"""How long judging takes on this machine, from the judge's last run or from a few requests.

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

MARGIN = 1.25
"""The stated duration is an upper bound that mostly holds: other prompts may share less text, or
get longer answers."""

_SAMPLE = 4
"""Requests that are judged to time a judge; their answers are not kept."""

_ENOUGH_S = 10.0
"""Seconds of judging from which a pace is kept."""


class Pace:
    """The pace of one judge in one run: notes the duration before it starts, and measures it.

    Args:
        identity: the judge as JSON values.
        scorings: what the judge is asked for.
        note: receives the message.
        sample: time the judge on a few requests if its pace is unknown. Their answers are not
            kept, so only a judge that costs nothing and writes little is worth it.
    """

    def __init__(
        self,
        identity: Mapping[str, Any],
        scorings: Collection[str],
        note: Callable[[str], None],
        *,
        sample: bool = False,
    ) -> None:
        self._identity, self._scorings, self._note = identity, frozenset(scorings), note
        self._sample, self._warm, self._characters = sample, False, 0
        self._first = self._last = 0.0

    def start(self, judge: Judge, todo: Sequence[Part], requests: Requests) -> None:
        """Note how long these parts take, if the pace is known or can be sampled."""
        planned = np.fromiter((at for part in todo for at in part.requests), dtype=np.int64)
        seconds = None
        if len(planned) and (pace := stored(self._identity, self._scorings)):
            seconds = MARGIN * int(requests.characters[planned].sum()) / pace
        elif self._sample and len(planned) > 4 * _SAMPLE:
            step = max(len(requests) // _SAMPLE, 1)
            sample = requests.take(range(0, len(requests), step)[:_SAMPLE])
            # The first call also pays for what is set up only once.
            self._timed(judge, sample[:1])
            # A few requests alone are slower than many, so this needs no margin.
            seconds = self._timed(judge, sample) / len(sample) * len(planned)
            self._warm = True
        if seconds is not None:
            self._note(f"{len(planned)} prompts take at most about {duration(seconds)}")
        self._first = self._last = time.perf_counter()

    def saw(self, requests: Requests, batch: Sequence[int]) -> None:
        """Count a batch that was answered."""
        self._last = time.perf_counter()
        if self._warm:
            self._characters += int(requests.characters[batch].sum())
        else:
            # The first batch also loads the weights.
            self._first, self._warm = self._last, True

    def keep(self) -> None:
        """Keep the pace for the next run, if enough was judged to know it."""
        seconds = self._last - self._first
        if seconds < _ENOUGH_S or not self._characters:
            return
        path = _path(self._identity, self._scorings)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_text(path, f"{self._characters / seconds:.6g}\n")
        except OSError as error:
            log.warning("cannot keep the judge's pace in %s: %s", path, error)

    def _timed(self, judge: Judge, requests: list[Request]) -> float:
        started = time.perf_counter()
        for _ in judge.judge(iter([(0, requests)]), self._scorings):
            pass
        return time.perf_counter() - started


def stored(identity: Mapping[str, Any], scorings: Collection[str]) -> float | None:
    """The kept pace of a judge on this machine, in characters per second; None if unknown."""
    try:
        pace = float(_path(identity, scorings).read_text("ascii"))
    except (OSError, ValueError):
        return None
    return pace if math.isfinite(pace) and pace > 0 else None


def _path(identity: Mapping[str, Any], scorings: Collection[str]) -> Path:
    machine = [platform.node(), os.cpu_count()]
    key = json.dumps([identity, sorted(scorings), machine], sort_keys=True, default=str)
    return cache_dir() / "pace" / hashlib.sha256(key.encode()).hexdigest()[:32]
