"""Wrong input for every reader: no traceback, no hang, no crash, no figure that changes silently.

Each good file is changed in one place (every field, about 25 wrong values), cut, or replaced by a
hostile one, and every bit of it can flip. A reader may refuse it or read it. Counted are
tracebacks, hangs of more than 10 seconds, crashes of the interpreter, and, for a run's folder,
whose run.json holds digests, figures that change although nothing is said.

    python benchmarks/hostile_input.py --workers 2            # 6,000 cases, two at once
    python benchmarks/hostile_input.py --readers inspect --cases 500
    python benchmarks/hostile_input.py --seconds 60 --seed 7  # as many as fit
"""

from __future__ import annotations

import argparse
import contextlib
import faulthandler
import io
import json
import multiprocessing
import os
import random
import resource
import shutil
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import takewhile
from multiprocessing.connection import Connection
from pathlib import Path
from queue import Queue
from threading import Thread
from typing import Any

import psutil
from common import finish, machine
from hostile.good_files import build
from hostile.mutations import mutations
from hostile.readers import READERS, Reader

LIMIT_S = 10.0
MEMORY = 8 << 30
"""Bytes of address space of a worker: input that expands ends in a MemoryError, not the machine."""

ONCE_FAILED = Path(__file__).parent / "hostile" / "once_failed.txt"
"""Cases that ended badly in an earlier version, one a line as they are printed; always tried."""

BAD = ("traceback", "hang", "crash", "silent")


@dataclass(frozen=True)
class Case:
    """One wrong file for one reader."""

    reader: int
    file: str
    what: str
    content: bytes


@dataclass(frozen=True)
class Outcome:
    """``read``, ``refused``, or one of `BAD`, and what was printed or raised."""

    kind: str
    detail: str


Judged = tuple[Case, Outcome, float]
"""A case, what came of it, and its seconds."""


def cases(base: Path, readers: list[int], n: int, seed: int) -> Iterator[Case]:
    """Those that failed once, and about n more, drawn from all mutations of the readers' files."""
    total = sum(READERS[at].weight for at in readers)
    failed_once = set(ONCE_FAILED.read_text().splitlines())
    again, drawn = [], []
    for at in readers:
        reader = READERS[at]
        share = max(10, round(n * reader.weight / total / len(reader.changed)))
        for pattern in reader.changed:
            (path,) = (base / reader.folder).glob(pattern)
            file = str(path.relative_to(base / reader.folder))
            rng = random.Random(f"{seed} {reader.name} {file}")
            content = path.read_bytes()
            found = list(mutations(content, file, rng, flips=max(20, share // 5)))
            known = [f"{reader.name}, {file}, {what}" in failed_once for what, _ in found]
            again += [
                (at, file, *one) for one, is_known in zip(found, known, strict=True) if is_known
            ]
            others = [one for one, is_known in zip(found, known, strict=True) if not is_known]
            chosen = others if len(others) <= share else rng.sample(others, share)
            drawn += [(at, file, what, change) for what, change in chosen]
    random.Random(seed).shuffle(drawn)
    for at, file, what, change in [*again, *drawn]:
        yield Case(at, file, what, change())


def called(reader: Reader, file: str, folder: Path, out: Path) -> tuple[int, str]:
    """The exit code and everything printed. An exception that is no refusal is raised."""
    from judgesense.cli import app
    from judgesense.errors import JudgeSenseError

    said = io.StringIO()
    os.environ["JUDGESENSE_JUDGES"] = str(folder / "judges.yaml")
    if not (folder / "judges.yaml").exists():
        del os.environ["JUDGESENSE_JUDGES"]
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        try:
            if reader.call is not None:
                print(json.dumps(reader.call(folder)))
                return 0, said.getvalue()
            arguments = [part.format(dir=folder, out=out, file=file) for part in reader.arguments]
            app(arguments, prog_name="judgesense")
        except JudgeSenseError as error:
            return 2, f"{said.getvalue()}{error}"
        except SystemExit as end:
            return int(end.code or 0), said.getvalue()
    return 0, said.getvalue()


def judged(case: Case, base: Path, before: dict[int, str]) -> Outcome:
    """What a reader makes of a case."""
    reader = READERS[case.reader]
    with tempfile.TemporaryDirectory(prefix="hostile") as temporary:
        folder, out = Path(temporary, reader.folder), Path(temporary, "out")
        shutil.copytree(base / reader.folder, folder)
        if reader.sealed and case.reader not in before:
            before[case.reader] = figures(reader, case.file, folder, out)
        (folder / case.file).write_bytes(case.content)
        try:
            code, said = called(reader, case.file, folder, out)
        except BaseException:  # noqa: BLE001 - a case may end in anything; that is counted
            return Outcome("traceback", traceback.format_exc())
        if code == 2:
            return Outcome("refused", said[-2000:])
        if reader.sealed and case.content != (base / reader.folder / case.file).read_bytes():
            noted = "warning" in said.lower() or case.file in said
            if not noted and figures(reader, case.file, folder, out) != before[case.reader]:
                return Outcome("silent", said[-2000:])
    return Outcome("read", said[-2000:])


def figures(reader: Reader, file: str, folder: Path, out: Path) -> str:
    """The cells of the folder's report."""
    with contextlib.suppress(FileNotFoundError):
        called(reader, file, folder, out)
    report = json.loads((folder / "report.json").read_text())
    return json.dumps([report["cells"], report["trust"]])


def work(pipe: Connection, base: Path) -> None:
    """Take cases until None comes."""
    faulthandler.enable()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 2)
    before: dict[int, str] = {}
    pipe.send(None)
    while (case := pipe.recv()) is not None:
        pipe.send(judged(case, base, before))


class Worker:
    """A process that is replaced when a case hangs or kills it."""

    def __init__(self, base: Path) -> None:
        self._base = base
        self._start()

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=work, args=(theirs, self._base), daemon=True)
        self._process.start()
        theirs.close()
        self._pipe.recv()

    def judge(self, case: Case) -> Outcome:
        """The outcome of one case."""
        self._pipe.send(case)
        if not self._ends():
            outcome = Outcome("hang", f"no end after {LIMIT_S:g} s of computing")
        else:
            try:
                return self._pipe.recv()  # type: ignore[no-any-return]
            except EOFError:
                self._process.join()
                outcome = Outcome("crash", f"exit code {self._process.exitcode}")
        self.close()
        self._start()
        return outcome

    def _ends(self) -> bool:
        """Whether the case ends. Time is the process's own: a busy machine is no hang."""
        begun, started = self._seconds(), time.perf_counter()
        while not self._pipe.poll(0.5):
            if self._seconds() - begun > LIMIT_S or time.perf_counter() - started > 20 * LIMIT_S:
                return False
        return True

    def _seconds(self) -> float:
        try:
            return sum(psutil.Process(self._process.pid).cpu_times()[:2])
        except psutil.NoSuchProcess:
            return 0.0

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.join()


def outcomes(base: Path, found: Iterator[Case], workers: int) -> Iterator[Judged]:
    """Each case with what came of it and its seconds, in the order in which they end."""
    todo: Queue[Case | None] = Queue(maxsize=workers)
    done: Queue[Judged | None] = Queue()

    def feed() -> None:
        for case in found:
            todo.put(case)
        for _ in range(workers):
            todo.put(None)

    def serve() -> None:
        worker = Worker(base)
        while (case := todo.get()) is not None:
            start = time.perf_counter()
            done.put((case, worker.judge(case), time.perf_counter() - start))
        worker.close()
        done.put(None)

    for job in (feed, *[serve] * workers):
        Thread(target=job, daemon=True).start()
    ended = 0
    while ended < workers:
        if (judged_case := done.get()) is None:
            ended += 1
        else:
            yield judged_case


def last_line(outcome: Outcome) -> str:
    """The place in the project and the exception of a traceback, for grouping."""
    lines = outcome.detail.strip().splitlines()
    ours = [line.strip() for line in lines if "judgesense" in line or "local_judges" in line]
    files = [line for line in ours if line.startswith("File ") and "/benchmarks/" not in line]
    return f"{files[-1] if files else ''}: {lines[-1][:150] if lines else ''}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, default=6_000)
    parser.add_argument("--workers", type=int, default=1, help="cases at once")
    parser.add_argument("--seconds", type=float, help="stop after this time")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--readers", nargs="+", help="only those whose name contains one of these")
    parser.add_argument("--keep", type=Path, help="write bad cases to this folder")
    options = parser.parse_args()
    wanted = [
        at
        for at, reader in enumerate(READERS)
        if not options.readers or any(part in reader.name for part in options.readers)
    ]
    start = time.perf_counter()
    counts: Counter[str] = Counter()
    by_reader: dict[str, Counter[str]] = {}
    places: Counter[str] = Counter()
    spent: Counter[str] = Counter()
    with tempfile.TemporaryDirectory(prefix="hostile-base") as temporary:
        base = Path(temporary)
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            build(base)
        begun = time.perf_counter()
        drawn = takewhile(
            lambda _: not options.seconds or time.perf_counter() - begun <= options.seconds,
            cases(base, wanted, options.cases, options.seed),
        )
        for case, outcome, seconds in outcomes(base, drawn, options.workers):
            name = READERS[case.reader].name
            spent[name] += seconds
            counts[outcome.kind] += 1
            by_reader.setdefault(name, Counter())[outcome.kind] += 1
            if sum(counts.values()) % 250 == 0:
                print(f"{sum(counts.values())} cases so far: {dict(counts)}", flush=True)
            if outcome.kind in BAD:
                places[f"{outcome.kind}: {last_line(outcome)}"] += 1
                print(f"{outcome.kind}: {name}, {case.file}, {case.what}")
                if options.keep:
                    options.keep.mkdir(parents=True, exist_ok=True)
                    kept = options.keep / f"{sum(counts.values()):05}"
                    kept.with_suffix(".txt").write_text(
                        f"{name}\n{case.file}\n{case.what}\n{outcome.detail}\n",
                        errors="backslashreplace",
                    )
                    kept.with_suffix(".bin").write_bytes(case.content)
    for name, found in sorted(by_reader.items()):
        each = spent[name] / sum(found.values())
        kinds = "  ".join(f"{kind} {n}" for kind, n in sorted(found.items()))
        print(f"{name:50} {each:6.2f} s  {kinds}")
    for place, n in places.most_common(60):
        print(f"{n:5}  {place}")
    total = sum(counts.values())
    bad = sum(counts[kind] for kind in BAD)
    seconds = time.perf_counter() - start
    print(f"{total} cases with seed {options.seed}: {dict(counts)}, {seconds:.0f} s")
    result: dict[str, Any] = {
        "name": "hostile input",
        "peer": None,
        "ratio": None,
        "ours": bad,
        "theirs": None,
        "unit": "tracebacks, hangs, crashes and silent changes",
        "n": total,
        "seed": options.seed,
        **{kind: counts[kind] for kind in ("read", "refused", *BAD)},
        "machine": machine("pyarrow", "pydantic"),
    }
    finish([result])
    raise SystemExit(1 if bad else 0)


if __name__ == "__main__":
    main()
