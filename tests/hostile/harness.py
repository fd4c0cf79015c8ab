"""Wrong input for every reader: no traceback, no hang, no crash, no figure that changes silently.

Each good file is changed in one place (every field, about 25 wrong values), cut, or replaced by a
hostile one, and every bit of it can flip. A reader may refuse it or read it. Counted are
tracebacks, hangs of more than 10 seconds, crashes of the interpreter, and, for a run's folder,
whose run.json holds digests, figures that change although nothing is said.

    PYTHONPATH=tests python tests/hostile/harness.py --cases 6000 --seed 7
    PYTHONPATH=tests python tests/hostile/harness.py --readers inspect --cases 500 --keep bad
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
from multiprocessing.connection import Connection
from pathlib import Path

import psutil
from hostile.good_files import build
from hostile.mutations import mutations
from hostile.readers import READERS, Reader

LIMIT_S = 10.0
MEMORY = 8 << 30
"""Bytes of address space of a worker: input that expands ends in a MemoryError, not the machine."""

ONCE_FAILED = Path(__file__).parent / "once_failed.txt"
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


def cases(base: Path, readers: list[int], n: int, seed: int) -> Iterator[Case]:
    """Those that failed once, and about n more, drawn from all mutations of the readers' files."""
    total = sum(READERS[at].weight for at in readers)
    failed_once = set(ONCE_FAILED.read_text().splitlines())
    again, drawn = [], []
    for at in readers:
        reader = READERS[at]
        share = max(3, round(n * reader.weight / total / len(reader.changed)))
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


def outcomes(base: Path, cases: Iterator[Case]) -> Iterator[tuple[Case, Outcome]]:
    """Each case with what came of it."""
    worker = Worker(base)
    try:
        for case in cases:
            yield case, worker.judge(case)
    finally:
        worker.close()


def last_line(outcome: Outcome) -> str:
    """The place in the project and the exception of a traceback, for grouping."""
    lines = outcome.detail.strip().splitlines()
    ours = [line.strip() for line in lines if "judgesense" in line or "local_judges" in line]
    files = [line for line in ours if line.startswith("File ") and "/tests/" not in line]
    return f"{files[-1] if files else ''}: {lines[-1][:150] if lines else ''}"


def good_files(base: Path) -> None:
    """Write the good files, without what their commands print."""
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        build(base)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, default=6_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--readers", nargs="+", help="only those whose name contains one of these")
    parser.add_argument("--keep", type=Path, help="write bad cases to this folder")
    options = parser.parse_args()
    parts = options.readers or [""]
    readers = [at for at, r in enumerate(READERS) if any(part in r.name for part in parts)]
    counts: Counter[str] = Counter()
    with tempfile.TemporaryDirectory(prefix="hostile-base") as temporary:
        base = Path(temporary)
        good_files(base)
        for case, outcome in outcomes(base, cases(base, readers, options.cases, options.seed)):
            counts[outcome.kind] += 1
            if outcome.kind in BAD:
                place = f"{READERS[case.reader].name}, {case.file}, {case.what}"
                print(f"{outcome.kind}: {place}; {last_line(outcome)}", flush=True)
                if options.keep:
                    options.keep.mkdir(parents=True, exist_ok=True)
                    file = options.keep / f"{sum(counts.values()):05}"
                    text = f"{place}\n{outcome.detail}\n"
                    file.with_suffix(".txt").write_text(text, errors="backslashreplace")
                    file.with_suffix(".bin").write_bytes(case.content)
    print(json.dumps({"seed": options.seed, "cases": sum(counts.values()), **counts}))
    raise SystemExit(1 if any(counts[kind] for kind in BAD) else 0)


if __name__ == "__main__":
    main()
