"""What a repository on the Hub should hold, and how that differs from what it holds."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

Content = Path | bytes


@dataclass(frozen=True)
class Publication:
    """The files of one repository, by their path in it.

    ``owned`` says which other files of the repository an earlier publication left there; they are
    removed, and all others stay. ``only_if_absent`` are files that are written once and then belong
    to the people who edit them. ``offered`` is for a repository of other people: the commit becomes
    a pull request with ``message`` as its title, and there is no tag.
    """

    repo_id: str
    repo_type: str
    files: Mapping[str, Content]
    message: str
    tag: str | None
    owned: Callable[[str], bool] = lambda path: False
    only_if_absent: frozenset[str] = frozenset()
    notes: tuple[str, ...] = ()
    offered: bool = False


@dataclass(frozen=True)
class Changes:
    """Paths that a commit would add, change and remove, and the number of unchanged files."""

    added: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    unchanged: int = 0

    def __bool__(self) -> bool:
        return bool(self.added or self.changed or self.removed)

    def lines(self) -> list[str]:
        """One line per file, ordered by path: ``+`` new, ``~`` changed, ``-`` removed."""
        marked = [(path, "+") for path in self.added]
        marked += [(path, "~") for path in self.changed]
        marked += [(path, "-") for path in self.removed]
        return [f"  {mark} {path}" for path, mark in sorted(marked)]


def diff(publication: Publication, remote: Mapping[str, str]) -> Changes:
    """Compare with a remote tree: path -> SHA-256 of a large file, git's blob hash of another."""
    added, changed, unchanged = [], [], 0
    for path, content in sorted(publication.files.items()):
        if path not in remote:
            added.append(path)
        elif path in publication.only_if_absent or remote[path] in _hashes(content):
            unchanged += 1
        else:
            changed.append(path)
    removed = sorted(p for p in remote if p not in publication.files and publication.owned(p))
    return Changes(added, changed, removed, unchanged)


def _hashes(content: Content) -> tuple[str, str]:
    """The two hashes by which the Hub knows a content: SHA-256, and git's blob hash."""
    size = len(content) if isinstance(content, bytes) else content.stat().st_size
    large = hashlib.sha256()
    blob = hashlib.sha1(b"blob %d\0" % size, usedforsecurity=False)
    for chunk in [content] if isinstance(content, bytes) else _chunks(content):
        large.update(chunk)
        blob.update(chunk)
    return large.hexdigest(), blob.hexdigest()


def _chunks(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while chunk := file.read(1 << 20):
            yield chunk
