"""Where runs come from: a folder, a results dataset on the Hub, or what the package carries."""

from __future__ import annotations

import re
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol

from hub_scripts.leaderboard.board import Board, Entry, Run, entries_of, published_entries
from hub_scripts.leaderboard.shape import LARGEST_REPORT, read_report
from hub_scripts.plan import Content
from judgesense.decisions import PARTS, part_files
from judgesense.errors import JudgeSenseError, MissingExtraError
from judgesense.report_file import REPORT_FILE

EMBEDDED = Path(__file__).parent / "data"
MOST_RUNS = 2000
LARGEST_LOG = 256 << 20
"""Bytes of one run's decisions and pairs that are fetched from the Hub."""

FOLDER_SECONDS, HUB_SECONDS = 2.0, 300.0
"""How long a board is shown before its source is looked at again."""

_SAFE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,119}")


class Source(Protocol):
    """Something that has a board at every moment."""

    accepts: bool
    publish_to: str

    def board(self) -> Board:
        """The board as it is now."""

    def run_dir(self, key: str) -> Path:
        """A local folder with the run's decision log. Raises JudgeSenseError if there is none."""


def open_results(results: str | None, *, accept: bool = False, or_embedded: bool = False) -> Source:
    """The source that ``--results`` names: a folder, ORG/NAME, or None for what is embedded.

    ``accept`` lets the submit page write accepted runs into a folder; ``or_embedded`` shows the
    embedded runs while a dataset cannot be read. Raises JudgeSenseError for anything else.
    """
    if not results:
        return EmbeddedSource()
    path = Path(results).expanduser()
    if path.is_dir():
        source = FolderSource(path, accept=accept)
        board = source.board()
        if not board.runs and not board.refused and not accept:
            raise JudgeSenseError(
                f"{path} holds no run with a {REPORT_FILE}; give the --out folder of a run, or a "
                "folder of such folders"
            )
        return source
    if accept:
        raise JudgeSenseError(
            f"--accept writes into a folder, and {results} is none; make it first"
        )
    if re.fullmatch(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*", results):
        hub = HubSource(results, or_embedded=or_embedded)
        hub.board()
        return hub
    raise JudgeSenseError(f"no folder {results}, and it is no name on the Hub (ORG/NAME) either")


@lru_cache(maxsize=4096)
def _read(
    path: Path, key: str, decisions: bool, stamp: tuple[int, int]
) -> tuple[Run, tuple[Entry, ...]] | str:
    """A run and its entries, or why it is refused; ``stamp`` (time, size) tells a changed file."""
    try:
        report = read_report(path)
    except JudgeSenseError as error:
        return str(error)
    return Run(key, path, decisions), tuple(entries_of(report, key))


def _stamp(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_mtime_ns, found.st_size


@lru_cache(maxsize=32)
def _whole(path: Path, stamp: tuple[int, int]) -> dict[str, Any]:
    return read_report(path)


def report_of(run: Run) -> dict[str, Any]:
    """The whole report of a run, from its file. Raises JudgeSenseError if it is gone or changed."""
    try:
        return _whole(run.path, _stamp(run.path))
    except OSError as error:
        raise JudgeSenseError(f"the report of {run.key} is gone ({error.strerror})") from error


def _gather(
    where: str, paths: Iterable[tuple[str, Path, bool]], notes: tuple[str, ...] = ()
) -> Board:
    """The board of some reports (key, path, whether decisions are at hand), and the published."""
    entries: list[Entry] = []
    runs: dict[str, Run] = {}
    refused = []
    stamps = []
    for key, path, decisions in paths:
        try:
            stamp = _stamp(path)
            found = _read(path, key, decisions, stamp)
        except OSError as error:
            found = f"{path.name} cannot be read ({error.strerror})"
        if len(runs) == MOST_RUNS:
            found = f"{MOST_RUNS:,} runs are shown, and no more"
        if isinstance(found, str):
            refused.append((key, found))
            continue
        runs[key], own = found
        entries += own
        stamps.append((key, *stamp))
    return Board(
        where=where,
        stamp=f"{hash((where, tuple(stamps), tuple(refused), notes)):x}",
        entries=(*entries, *published_entries()),
        runs=runs,
        refused=tuple(refused),
        notes=notes,
    )


class EmbeddedSource:
    """What the package carries: the published figures, and the report of a demo run."""

    accepts = False

    def __init__(self, publish_to: str = "ORG/NAME", notes: tuple[str, ...] = ()) -> None:
        self.publish_to = publish_to
        reports = sorted(EMBEDDED.glob("*.json"))
        self._board = _gather(
            "published figures and the project’s demo run",
            [(path.stem, path, False) for path in reports],
            notes,
        )

    def board(self) -> Board:
        """The same at every moment."""
        return self._board

    def run_dir(self, key: str) -> Path:
        """Raises JudgeSenseError: decisions are not carried."""
        raise JudgeSenseError(
            "the embedded demo run comes without its decisions; make your own with: make demo"
        )


class FolderSource:
    """A run's folder, or a folder of such; looked at again while it is shown."""

    def __init__(self, path: Path, *, accept: bool = False) -> None:
        self.path = path
        self.accepts = accept
        self.publish_to = "ORG/NAME"
        self._lock = threading.Lock()
        self._seen = 0.0
        self._board: Board | None = None

    def board(self) -> Board:
        """The runs that lie there now (at most `FOLDER_SECONDS` old)."""
        with self._lock:
            if self._board is None or time.monotonic() - self._seen > FOLDER_SECONDS:
                board = _gather(str(self.path), self._reports())
                # The same board where nothing has changed: what was made of it stays.
                if self._board is None or board.stamp != self._board.stamp:
                    self._board = board
                self._seen = time.monotonic()
            return self._board

    def _reports(self) -> Iterator[tuple[str, Path, bool]]:
        own = self.path / REPORT_FILE
        paths = [own] if own.is_file() else sorted(self.path.glob(f"*/{REPORT_FILE}"))
        for path in paths:
            folder = path.parent
            yield folder.resolve().name, path, bool(part_files(folder))

    def run_dir(self, key: str) -> Path:
        """The run's folder. Raises JudgeSenseError if it holds no decisions."""
        run = self.board().runs.get(key)
        if run is None or not part_files(run.path.parent):
            raise JudgeSenseError(f"the decisions of {key} are not at hand: its report alone is")
        return run.path.parent

    def add(self, files: Mapping[str, Content], name: str) -> None:
        """Write a checked run's files into a new folder, whole or not at all.

        ``files`` are paths below the folder's name. Raises JudgeSenseError if a folder of that
        name is there, or the disk refuses.
        """
        target = self.path / name
        if not _SAFE.fullmatch(name) or target.exists():
            raise JudgeSenseError(f"a run {name} is there already: nothing was written")
        try:
            with tempfile.TemporaryDirectory(dir=self.path, prefix=".adding-") as scratch:
                made = Path(scratch) / name
                for path, content in files.items():
                    place = made / path
                    place.parent.mkdir(parents=True, exist_ok=True)
                    if isinstance(content, bytes):
                        place.write_bytes(content)
                    else:
                        shutil.copyfile(content, place)
                made.rename(target)
        except OSError as error:
            raise JudgeSenseError(f"cannot write into {self.path}: {error.strerror}") from error
        self._seen = 0.0


class HubSource:
    """A results dataset on the Hub: reports at once, decisions when two judges are compared."""

    accepts = False

    def __init__(self, repo_id: str, *, or_embedded: bool = False) -> None:
        self.publish_to = repo_id
        self.repo_id = repo_id
        self._or_embedded = or_embedded
        self._lock = threading.Lock()
        self._seen = float("-inf")
        self._revision = ""
        self._sizes: dict[str, int] = {}
        self._board: Board | None = None

    def board(self) -> Board:
        """The dataset's runs (at most `HUB_SECONDS` old, older while the Hub is out of reach)."""
        with self._lock:
            if self._board is None or time.monotonic() - self._seen > HUB_SECONDS:
                self._seen = time.monotonic()
                self._look()
            assert self._board is not None
            return self._board

    def _look(self) -> None:
        try:
            revision, sizes = self._tree()
            if self._board is None or revision != self._revision:
                self._board = self._fetch(revision, sizes)
                self._revision, self._sizes = revision, sizes
        except _failures() as error:
            said = f"the results dataset {self.repo_id} cannot be read ({_first_line(error)})"
            if self._board is None:
                if not self._or_embedded:
                    raise JudgeSenseError(
                        f"{said}; check the name, the network and the token"
                    ) from error
                self._board = EmbeddedSource(
                    notes=(f"{said}: these are the embedded runs.",)
                ).board()
        if not self._board.runs and self._or_embedded:
            note = (
                f"The results dataset {self.repo_id} holds no run yet: these are the embedded ones."
            )
            self._board = EmbeddedSource(notes=(note,)).board()

    def _tree(self) -> tuple[str, dict[str, int]]:
        hub = _hub()
        api = hub.HfApi(library_name="judgesense")
        where = {"repo_id": self.repo_id, "repo_type": "dataset"}
        revision = api.repo_info(**where).sha
        tree = api.list_repo_tree(**where, recursive=True, revision=revision)
        return revision, {
            entry.path: entry.size for entry in tree if isinstance(entry, hub.hf_api.RepoFile)
        }

    def _fetch(self, revision: str, sizes: Mapping[str, int]) -> Board:
        reports, refused = [], []
        for path, size in sorted(sizes.items()):
            key, _, name = path.partition("/")
            if name != REPORT_FILE:
                continue
            if not _SAFE.fullmatch(key):
                refused.append((key, "its folder's name is none that a publication gives"))
            elif size > LARGEST_REPORT:
                refused.append((key, f"its {REPORT_FILE} has {size:,} bytes"))
            else:
                reports.append(key)
        kept, more = reports[:MOST_RUNS], reports[MOST_RUNS:]
        refused += [(key, f"{MOST_RUNS:,} runs are shown, and no more") for key in more]
        folder = Path()
        if kept:
            folder = self._snapshot(revision, [f"{key}/{REPORT_FILE}" for key in kept])
        with_log = {path.split("/")[0] for path in sizes if path.split("/")[1:2] == [PARTS]}
        board = _gather(
            f"{self.repo_id} at {revision[:8]}",
            [(key, folder / key / REPORT_FILE, key in with_log) for key in kept],
        )
        return Board(
            board.where, board.stamp, board.entries, board.runs, (*board.refused, *refused)
        )

    def _snapshot(self, revision: str, paths: list[str]) -> Path:
        return Path(
            _hub().snapshot_download(
                self.repo_id, repo_type="dataset", revision=revision, allow_patterns=paths
            )
        )

    def run_dir(self, key: str) -> Path:
        """The run's folder, its decisions fetched. Raises JudgeSenseError if that fails."""
        run = self.board().runs.get(key)
        if run is None or not run.decisions:
            raise JudgeSenseError(f"the decisions of {key} are not at hand: its report alone is")
        wanted = [
            path
            for path in self._sizes
            if path.startswith((f"{key}/{PARTS}/part-", f"{key}/pairs.parquet", f"{key}/run.json"))
        ]
        if sum(self._sizes[path] for path in wanted) > LARGEST_LOG:
            raise JudgeSenseError(f"the decisions of {key} are too large to be compared here")
        try:
            return self._snapshot(self._revision, wanted) / key
        except _failures() as error:
            raise JudgeSenseError(
                f"the decisions of {key} cannot be fetched now ({_first_line(error)})"
            ) from error


def _hub() -> Any:
    try:
        import huggingface_hub
        import huggingface_hub.hf_api
    except ImportError:
        raise MissingExtraError("huggingface_hub", "hub", "a results dataset on the Hub") from None
    return huggingface_hub


def _failures() -> tuple[type[BaseException], ...]:
    """What the client raises: its own errors, and those of its HTTP library."""
    loaded = (sys.modules.get(name) for name in ("httpx", "httpx2"))
    return (OSError, *(module.HTTPError for module in loaded if module is not None))


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines() or [""]
    return f"{type(error).__name__}: {lines[0][:200]}" if lines[0] else type(error).__name__
