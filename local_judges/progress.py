"""How far a judge is, on stderr: prompts, how long it takes, and what it has cost."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from judgesense.text import duration, printable
from local_judges.protocol import Budgeted

_LINE_EVERY_S, _MOST_PAUSE_S = 5.0, 900.0


@contextmanager
def progress(
    name: str, total: int, done: int = 0, judge: Budgeted | None = None
) -> Iterator[Callable[[int], None]]:
    """A function that counts prompts as judged and shows them on stderr.

    A bar on a terminal, otherwise a line every 5 seconds (less often while nothing changes) and at
    the end, with what ``judge`` has spent; stdout is for results.
    """
    # The name may come from somebody else's file.
    name = printable(name)
    if sys.stderr.isatty() and done < total:
        from rich.console import Console
        from rich.markup import escape
        from rich.progress import MofNCompleteColumn, Progress, TextColumn

        columns = (*Progress.get_default_columns(), MofNCompleteColumn(), TextColumn("prompts"))
        with Progress(*columns, console=Console(stderr=True)) as bar:
            task = bar.add_task(escape(name), total=total, completed=done)
            yield lambda count: bar.advance(task, count)
        return
    start = shown_done = done
    started, has_ended = time.monotonic(), threading.Event()

    def show() -> None:
        nonlocal shown_done
        shown_done = done
        rate = (done - start) / max(time.monotonic() - started, 1e-9)
        time_left = f"about {duration((total - done) / rate)} left" if done > start else "waiting"
        cost = f", ${judge.spent:.2f} so far" if judge is not None and judge.spent else ""
        print(
            f"{name}: {done}/{total} prompts, {rate:.1f} prompts/s{cost}, "
            f"{time_left if done < total else 'done'}",
            file=sys.stderr,
            flush=True,
        )

    def show_regularly() -> None:
        pause_s = _LINE_EVERY_S
        while not has_ended.wait(pause_s):
            # A batch may take a day, which is no reason for 17,000 lines.
            pause_s = _LINE_EVERY_S if shown_done != done else min(2 * pause_s, _MOST_PAUSE_S)
            show()

    def advance(count: int) -> None:
        nonlocal done
        done += count

    # A thread, because one prompt may take longer than the time between two lines.
    ticker = threading.Thread(target=show_regularly, daemon=True)
    ticker.start()
    try:
        yield advance
    finally:
        has_ended.set()
        ticker.join()
        if shown_done != done:
            show()
