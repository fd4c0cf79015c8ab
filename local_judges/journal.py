"""Keep answers as they come, in a journal beside each open part of a log.

A part is written when all its prompts are answered. Until then its journal holds the answers, one
JSON line each, so that a crash costs no more than the requests in flight. A line reaches the system
at once and the disk within a second. The cost of a request that was sent, but whose answer nobody
kept, is remembered: a budget holds over crashes.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from judgesense.errors import JudgeSenseError
from judgesense.files.disk import cannot_write, file_bytes, replacing
from judgesense.files.documents import fit_record
from local_judges.protocol import Answer, Request

_SYNC_S = 0.5
_DEFAULTS = {each.name: each.default for each in fields(Answer)}
PATTERN = ".part-*.journal"


def journal_of(folder: Path, part: str) -> Path:
    """The journal of a part of a log.

    >>> journal_of(Path("decisions"), "part-00-000-000000.parquet").name
    '.part-00-000-000000.journal'
    """
    return folder / f".{part.removesuffix('.parquet')}.journal"


@dataclass
class JournalContents:
    """The answers in a journal by prompt id, and the US dollars of requests whose answers were
    lost."""

    answers: dict[str, Answer] = field(default_factory=dict)
    lost_usd: float = 0.0


class Journal:
    """The journals of the parts that one judge has open; see `open`.

    ``judge`` and ``scorings`` are written into each: answers of others are not taken for its own.
    """

    def __init__(self, folder: Path, judge: str, scorings: Iterable[str]) -> None:
        self._folder, self._head = folder, [judge, *sorted(scorings)]
        self._files: dict[str, int] = {}
        self._lost: dict[str, float] = {}
        self._unsynced: set[int] = set()
        self._lock = threading.Lock()

    def read(self, part: str) -> JournalContents:
        """The answers that earlier starts kept of a part, without torn lines and failed answers."""
        contents = JournalContents()
        try:
            lines = file_bytes(journal_of(self._folder, part)).splitlines()
        except OSError:
            return contents
        sent: dict[str, float] = {}
        is_ours = False
        for line in lines:
            try:
                kind, *values = json.loads(line)
                if kind == "judge":
                    is_ours = values == self._head
                elif kind == "lost":
                    contents.lost_usd += float(values[0])
                elif kind == "sent":
                    contents.lost_usd += sent.pop(values[0], 0.0)
                    sent[values[0]] = float(values[1])
                elif is_ours:
                    sent.pop(values[0], None)
                    answer = fit_record(Answer, values[1], part, "an answer")
                    if answer.error is None:
                        contents.answers[values[0]] = answer
            except (ValueError, TypeError, IndexError, JudgeSenseError):
                continue
        contents.lost_usd += sum(sent.values())
        self._lost[part] = contents.lost_usd
        return contents

    def unplanned_answers(self, planned: Iterable[str], repeat: int = 0) -> dict[str, Answer]:
        """The answers in the journals of parts that are not planned, by prompt id.

        Another batch size or another set of prompts leads to other parts.
        """
        planned_names, answers = set(planned), dict[str, Answer]()
        for path in sorted(self._folder.glob(PATTERN)):
            name = f"{path.stem[1:]}.parquet"
            if name not in planned_names and name.split("-")[2:3] == [f"{repeat:03d}"]:
                answers |= self.read(name).answers
        return answers

    def sent(self, part: str, costs: Mapping[str, float]) -> None:
        """Note the highest possible cost of requests, by prompt id, before they are sent."""
        self._append(part, (["sent", *each] for each in costs.items()))

    def keep(self, part: str, answers: Iterable[tuple[str, Answer]]) -> None:
        """Keep the answers to some prompts of a part. Raises JudgeSenseError for a full disk."""
        lines = []
        for prompt, answer in answers:
            values = {name: getattr(answer, name) for name in _DEFAULTS}
            changed = {n: value for n, value in values.items() if value != _DEFAULTS[n]}
            lines.append(["answer", prompt, changed])
        self._append(part, lines)

    def _append(self, part: str, lines: Iterable[Sequence[Any]]) -> None:
        text = "".join(f"{json.dumps(line, separators=(',', ':'))}\n" for line in lines)
        path = journal_of(self._folder, part)
        try:
            with self._lock:
                if part not in self._files:
                    path.parent.mkdir(parents=True, exist_ok=True)
                    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0)
                    self._files[part] = os.open(path, flags, 0o644)
                    # The line feed ends a line that a crash tore.
                    text = f"\n{json.dumps(['judge', *self._head])}\n{text}"
                file, data = self._files[part], text.encode()
                while data:
                    data = data[os.write(file, data) :]
                self._unsynced.add(file)
        except OSError as error:
            raise cannot_write(path, error) from error

    def drop(self, part: str) -> None:
        """Drop the journal of a part that is written; only the cost of lost answers stays."""
        path, lost = journal_of(self._folder, part), self._lost.get(part, 0.0)
        with self._lock:
            if (file := self._files.pop(part, None)) is not None:
                self._unsynced.discard(file)
                os.close(file)
        try:
            if lost:
                with replacing(path) as temporary:
                    temporary.write_text(f"{json.dumps(['lost', lost])}\n", "utf-8")
            else:
                path.unlink(missing_ok=True)
        except OSError as error:
            raise cannot_write(path, error) from error

    @contextmanager
    def open(self) -> Iterator[Journal]:
        """Bring what is written to the disk within a second, until the end of the block."""
        has_ended = threading.Event()

        def sync_regularly() -> None:
            while not has_ended.wait(_SYNC_S):
                self._sync()

        # A thread, because an endpoint's event loop must not wait for a disk.
        thread = threading.Thread(target=sync_regularly, daemon=True)
        thread.start()
        try:
            yield self
        finally:
            has_ended.set()
            thread.join()
            self._sync()
            for file in self._files.values():
                os.close(file)
            self._files.clear()

    def _sync(self) -> None:
        with self._lock:
            # A copy of the descriptor: the part may be folded while the disk is busy.
            files = [os.dup(file) for file in self._unsynced]
            self._unsynced.clear()
        for file in files:
            try:
                os.fsync(file)
            except OSError:
                continue  # A file system without fsync; a full disk has failed at write already.
            finally:
                os.close(file)


@dataclass(frozen=True)
class JournalWatch:
    """Writes a judge's requests and answers to a journal; ``part_of`` gives a batch's part."""

    journal: Journal
    part_of: Callable[[int], str]

    def sent(self, index: int, costs: Mapping[str, float]) -> None:
        """Note what the requests of a batch can cost."""
        self.journal.sent(self.part_of(index), costs)

    def answered(self, index: int, answers: Sequence[tuple[Request, Answer]]) -> None:
        """Keep the answers of a batch."""
        pairs = ((request.prompt_id, answer) for request, answer in answers)
        self.journal.keep(self.part_of(index), pairs)
