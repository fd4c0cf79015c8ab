"""Where runs come from: a folder, a results dataset on the Hub, or the package itself."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

from hub_scripts.client import hub_client, transport_errors
from hub_scripts.leaderboard.board import (
    Board,
)
from hub_scripts.leaderboard.reports import MOST_RUNS, board_of
from hub_scripts.report_shape import LARGEST_REPORT
from judgesense.decisions.log import PARTS, part_files
from judgesense.errors import JudgeSenseError
from judgesense.run_folder.folder import PAIRS_FILE, RUN_FILE
from judgesense.run_folder.report import REPORT_FILE
from judgesense.text import sentence

EMBEDDED = Path(__file__).parent / "data" / "embedded"
"""The embedded runs with their decisions; ``docs/make_demo_report.py`` writes them."""
DEMO = EMBEDDED / "smollm2-135m" / REPORT_FILE
"""The report of the smaller of them."""
LARGEST_LOG = 256 << 20
"""Bytes of a run's decisions and pairs that may be downloaded from the Hub."""

FOLDER_SECONDS, HUB_SECONDS = 2.0, 300.0
"""How long a board is shown before its source is read again."""

_PURPOSE = "a results dataset on the Hub"
_SAFE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,119}")


class RunSource(Protocol):
    """A place with runs. ``publish_to`` is the dataset to publish them to."""

    accepts: bool
    publish_to: str

    def board(self) -> Board:
        """The current board."""

    def known(self) -> Board | None:
        """The current board if that takes no reading; None if it does."""

    def run_dir(self, key: str) -> Path:
        """A local folder with the run's decision log. Raises JudgeSenseError if it has none."""


def open_results(
    results: str | None, *, accept: bool = False, or_embedded: bool = False
) -> RunSource:
    """The source that ``--results`` names: a folder, ORG/NAME, or None for the embedded runs.

    ``accept`` lets the submit page add runs to a folder; ``or_embedded`` shows the embedded runs
    while a dataset cannot be read. Raises JudgeSenseError for anything else.
    """
    if not results:
        return EmbeddedSource()
    path = Path(results).expanduser()
    # Unlike pathlib, false for a name that is too long for the file system.
    if os.path.isdir(path):
        source = FolderSource(path, accept=accept)
        board = source.board()
        if not board.runs and not board.refused and not accept:
            raise JudgeSenseError(
                f"{path} holds no run with a {REPORT_FILE}; name the --out folder of a run, or a "
                "folder of such folders"
            )
        return source
    if accept:
        raise JudgeSenseError(
            f"--accept writes into a folder, and {results} is not one; create it first"
        )
    if re.fullmatch(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*", results):
        hub = HubSource(results, or_embedded=or_embedded)
        hub.board()
        return hub
    raise JudgeSenseError(f"no folder {results}, and not a name on the Hub (ORG/NAME) either")


class EmbeddedSource:
    """The embedded runs, two measured judges with their decisions, and the published figures."""

    accepts = False

    def __init__(self, publish_to: str = "ORG/NAME", notes: tuple[str, ...] = ()) -> None:
        self.publish_to = publish_to
        paths = [
            (path.parent.name, path, True) for path in sorted(EMBEDDED.glob(f"*/{REPORT_FILE}"))
        ]
        self._board = board_of("the package", paths, notes)

    def board(self) -> Board:
        """Always the same board."""
        return self._board

    known = board

    def run_dir(self, key: str) -> Path:
        """The run's folder. Raises JudgeSenseError for a run that is not embedded."""
        if key not in self._board.runs:
            raise _no_decisions(key)
        return EMBEDDED / key


class FolderSource:
    """A run's folder, or a folder of such folders; new runs appear while it is shown."""

    def __init__(self, path: Path, *, accept: bool = False) -> None:
        self.path = path
        self.accepts = accept
        self.publish_to = "ORG/NAME"
        self._lock = threading.Lock()
        self._seen = 0.0
        self._board: Board | None = None

    def board(self) -> Board:
        """The runs in the folder, at most `FOLDER_SECONDS` old."""
        with self._lock:
            if self._board is None or time.monotonic() - self._seen > FOLDER_SECONDS:
                board = board_of(self.path.resolve().name, self._reports())
                # Without a change the board stays the same object, and so do cached pages.
                if self._board is None or board.stamp != self._board.stamp:
                    self._board = board
                self._seen = time.monotonic()
            return self._board

    def known(self) -> Board | None:
        """The board if it is at most `FOLDER_SECONDS` old."""
        return self._board if time.monotonic() - self._seen <= FOLDER_SECONDS else None

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
            raise _no_decisions(key)
        return run.path.parent

    def add(self, files: Mapping[str, Path], name: str) -> None:
        """Add a checked run as a new folder, whole or not at all.

        ``files`` are the contents by their path in the folder. Raises JudgeSenseError if a folder
        of that name exists, or if it cannot be written.
        """
        target = self.path / name
        if not _SAFE.fullmatch(name) or target.exists():
            raise JudgeSenseError(f"a run {name} exists already; nothing was written")
        try:
            with tempfile.TemporaryDirectory(dir=self.path, prefix=".adding-") as scratch:
                made = Path(scratch) / name
                for path, content in files.items():
                    (made / path).parent.mkdir(parents=True, exist_ok=True)
                    shutil.copyfile(content, made / path)
                made.rename(target)
        except OSError as error:
            raise JudgeSenseError(f"cannot write to {self.path}: {error.strerror}") from error
        self._seen = 0.0


class HubSource:
    """A results dataset on the Hub; decisions are downloaded only to compare judges."""

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
        """The dataset's runs, at most `HUB_SECONDS` old unless the Hub cannot be reached."""
        with self._lock:
            if self._board is None or time.monotonic() - self._seen > HUB_SECONDS:
                self._seen = time.monotonic()
                self._look()
            assert self._board is not None
            return self._board

    def known(self) -> Board | None:
        """The board if it is at most `HUB_SECONDS` old, or the last one while it is read again."""
        return self._board if time.monotonic() - self._seen <= HUB_SECONDS else None

    def _look(self) -> None:
        try:
            revision, sizes = self._tree()
            if self._board is None or revision != self._revision:
                self._board = self._fetch(revision, sizes)
                self._revision, self._sizes = revision, sizes
        except _failures() as error:
            said = f"cannot read the results dataset {self.repo_id} ({_first_line(error)})"
            if self._board is None:
                if not self._or_embedded:
                    raise JudgeSenseError(
                        f"{said}; check the name, the network and the token"
                    ) from error
                self._board = EmbeddedSource(
                    notes=(f"{sentence(said)}. These are the embedded runs.",)
                ).board()
        if not self._board.runs and self._or_embedded:
            note = f"The results dataset {self.repo_id} has no runs yet. These are embedded runs."
            self._board = EmbeddedSource(notes=(note,)).board()

    def _tree(self) -> tuple[str, dict[str, int]]:
        hub = hub_client(_PURPOSE)
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
                refused.append((key, "the name of its folder is not that of a published run"))
            elif size > LARGEST_REPORT:
                refused.append((key, f"its {REPORT_FILE} is too large ({size:,} bytes)"))
            else:
                reports.append(key)
        kept, more = reports[:MOST_RUNS], reports[MOST_RUNS:]
        refused += [(key, f"only {MOST_RUNS:,} runs are shown") for key in more]
        folder = Path()
        if kept:
            folder = self._snapshot(revision, [f"{key}/{REPORT_FILE}" for key in kept])
        with_log = {path.split("/")[0] for path in sizes if path.split("/")[1:2] == [PARTS]}
        board = board_of(
            f"{self.repo_id} at {revision[:8]}",
            [(key, folder / key / REPORT_FILE, key in with_log) for key in kept],
        )
        return Board(
            board.where, board.stamp, board.entries, board.runs, (*board.refused, *refused)
        )

    def _snapshot(self, revision: str, paths: list[str]) -> Path:
        return Path(
            hub_client(_PURPOSE).snapshot_download(
                self.repo_id, repo_type="dataset", revision=revision, allow_patterns=paths
            )
        )

    def run_dir(self, key: str) -> Path:
        """The run's folder with its decisions, downloaded. Raises JudgeSenseError."""
        run = self.board().runs.get(key)
        if run is None or not run.decisions:
            raise _no_decisions(key)
        if run.path.is_relative_to(EMBEDDED):
            return run.path.parent
        wanted = [
            path
            for path in self._sizes
            if path.startswith((f"{key}/{PARTS}/part-", f"{key}/{PAIRS_FILE}", f"{key}/{RUN_FILE}"))
        ]
        if sum(self._sizes[path] for path in wanted) > LARGEST_LOG:
            raise JudgeSenseError(f"the decisions of {key} are too large to compare here")
        try:
            return self._snapshot(self._revision, wanted) / key
        except _failures() as error:
            raise JudgeSenseError(
                f"the decisions of {key} cannot be downloaded now ({_first_line(error)})"
            ) from error


_LINK = re.compile(
    r"(?:https?://(?P<host>[^/\s]+)/)?(?:datasets/)?(?P<repo>[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*)"
    r"(?:/(?:tree|blob)/[^/\s]+/(?P<run>[A-Za-z0-9][A-Za-z0-9._-]{0,119})(?:/.*)?)?/?"
)


def linked_run(link: str) -> tuple[Path, str]:
    """Download a run that is named by ORG/NAME or by the address of a results dataset on the Hub.

    ``ORG/NAME/tree/main/RUN`` names one of several runs. Returns its folder and what was found.
    Raises JudgeSenseError for another address, a dataset that cannot be read, and a missing run.
    """
    found = _LINK.fullmatch(link.strip())
    own_host = urlsplit(hub_client(_PURPOSE).constants.ENDPOINT).netloc
    if found is None or found["host"] not in (None, own_host):
        raise JudgeSenseError(
            f"{link.strip()[:100]!r} is not a dataset on the Hub; write ORG/NAME, or "
            f"https://{own_host}/datasets/ORG/NAME/tree/main/RUN"
        )
    hub = HubSource(found["repo"])
    board = hub.board()
    refused = dict(board.refused)
    key = found["run"] or (next(iter(board.runs)) if len(board.runs) == 1 else None)
    if key is None:
        known = ", ".join([*board.runs][:5]) or "none"
        raise JudgeSenseError(
            f"{found['repo']} has {len(board.runs)} runs ({known}); name one: "
            f"{found['repo']}/tree/main/RUN"
        )
    if key in refused:
        raise JudgeSenseError(f"{key}: {refused[key]}")
    return hub.run_dir(key), f"the run {key} of {found['repo']}"


def _failures() -> tuple[type[BaseException], ...]:
    return OSError, *transport_errors()


def _no_decisions(key: str) -> JudgeSenseError:
    return JudgeSenseError(f"the decisions of {key} are not available, only its report")


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines() or [""]
    return f"{type(error).__name__}: {lines[0][:200]}" if lines[0] else type(error).__name__
