"""The progress of a run: a bar on a terminal, otherwise a plain line every 15 seconds."""

from __future__ import annotations

import sys
import time

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.progress import Progress as RichProgress

from judgesense.text import duration

_LINE_EVERY_S = 15.0


class Progress:
    """Prompts done, prompts per second and time left, on stderr; stdout is for results."""

    def __init__(self, name: str, total: int, done: int = 0) -> None:
        self.name, self.total, self.done = name, total, done
        self._fresh, self._last = 0, done
        self._started = self._said = time.monotonic()
        self._bar: RichProgress | None = None
        console = Console(stderr=True)
        if console.is_terminal and done < total:
            self._bar = RichProgress(
                TextColumn("{task.description}", markup=False),
                BarColumn(),
                MofNCompleteColumn(),
                TextColumn("{task.fields[rate]}"),
                TimeElapsedColumn(),
                TextColumn("left"),
                TimeRemainingColumn(),
                console=console,
            )
            self._task = self._bar.add_task(name, total=total, completed=done, rate="")

    def __enter__(self) -> Progress:
        if self._bar:
            self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar:
            self._bar.stop()
        elif self._last != self.done:
            self._say()

    def advance(self, count: int) -> None:
        """Count ``count`` more prompts as judged."""
        self.done += count
        self._fresh += count
        if self._bar:
            self._bar.update(self._task, completed=self.done, rate=f"{self.rate:.1f} prompts/s")
        elif time.monotonic() - self._said > _LINE_EVERY_S:
            self._say()

    @property
    def rate(self) -> float:
        """Prompts per second since this start, without those judged earlier."""
        return self._fresh / max(time.monotonic() - self._started, 1e-9)

    def _say(self) -> None:
        self._said, self._last = time.monotonic(), self.done
        left = (self.total - self.done) / self.rate
        print(
            f"{self.name}: {self.done}/{self.total} prompts, {self.rate:.1f} prompts/s, "
            + (f"about {duration(left)} left" if self.done < self.total else "done"),
            file=sys.stderr,
            flush=True,
        )
