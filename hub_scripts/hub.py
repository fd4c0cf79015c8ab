"""The Hub: names of the project, and how a repository gets its files in one commit.

`Publication` says what a repository should hold, `diff` how that differs from what it holds, and
`publish` creates it or commits the difference, or opens a pull request with it. The token comes
from where huggingface_hub looks for it, and no message contains it.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from judgesense.errors import JudgeSenseError, MissingExtraError

ORG = "judgesense"
DATASET = f"{ORG}/judgesense"
RESULTS = f"{ORG}/results"

REPOSITORY = "https://github.com/judgesense/judgesense"
PAPER = "https://arxiv.org/abs/2604.23478"
HUB_SITE = "https://huggingface.co"

Content = Path | bytes


def hub_client(purpose: str = "publishing") -> Any:
    """The package huggingface_hub, 1 or 2. Raises MissingExtraError if it is not installed."""
    try:
        import huggingface_hub
        import huggingface_hub.constants
        import huggingface_hub.errors
        import huggingface_hub.hf_api
    except ImportError:
        raise MissingExtraError("huggingface_hub", "hub", purpose) from None
    return huggingface_hub


def transport_errors() -> tuple[type[Exception], ...]:
    """Errors of the client's HTTP library: httpx up to huggingface_hub 1, httpx2 from 2 on."""
    modules = (sys.modules.get(name) for name in ("httpx", "httpx2"))
    return (ConnectionError, *(module.TransportError for module in modules if module is not None))


@dataclass(frozen=True)
class Publication:
    """The files of one repository, by their path in it.

    ``owned`` says which other files of the repository an earlier publication left there; they are
    removed, and all others stay. ``only_if_absent`` are files that are written once and then belong
    to the people who edit them. ``sdk`` is that of a Space. ``shared`` repositories take pull
    requests from people who may not write to them.
    """

    repo_id: str
    repo_type: str
    files: Mapping[str, Content]
    message: str
    tag: str | None = None
    owned: Callable[[str], bool] = lambda path: False
    only_if_absent: frozenset[str] = frozenset()
    notes: tuple[str, ...] = ()
    sdk: str | None = None
    shared: bool = False


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
        marks = [(path, "+") for path in self.added]
        marks += [(path, "~") for path in self.changed]
        marks += [(path, "-") for path in self.removed]
        return [f"  {mark} {path}" for path, mark in sorted(marks)]


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
    data = content if isinstance(content, bytes) else content.read_bytes()
    blob = hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False)
    return hashlib.sha256(data).hexdigest(), blob.hexdigest()


@dataclass(frozen=True)
class PublishOutcome:
    """The changes to a repository, made or, in a dry run, to be made.

    ``remote`` is "there", "new" if the repository does not exist or is not visible, or "unknown" if
    the Hub did not answer, which only a dry run allows. ``commit`` and ``tagged`` are None if
    nothing was committed or tagged; ``tag_elsewhere`` is the other commit that has the tag.
    ``pull_request`` is the address of the pull request that holds the commit.
    """

    publication: Publication
    changes: Changes
    remote: str
    commit: str | None = None
    tagged: str | None = None
    tag_elsewhere: str | None = None
    pull_request: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """The outcome as JSON values, without the contents of files."""
        publication, fields = self.publication, dict(vars(self))
        del fields["publication"], fields["changes"]
        return {
            "repo_id": publication.repo_id,
            "repo_type": publication.repo_type,
            "tag": publication.tag,
            "notes": list(publication.notes),
            **vars(self.changes),
            **fields,
        }


def publish(
    publication: Publication,
    *,
    private: bool = False,
    dry_run: bool = False,
    pull_request: bool = False,
) -> PublishOutcome:
    """Bring a repository to the state of the publication; without changes there is no commit.

    After an interruption the same call finishes: large files that arrived are not sent again, and a
    missing tag is set even if there is nothing to commit. ``private`` matters only if the
    repository is created. An existing tag stays at its commit. With ``pull_request``, and for a
    shared repository to which the token may not write, the commit becomes a pull request without a
    tag; a later call updates the one that is open.

    Raises JudgeSenseError for a missing token or permission, a name that is taken, a Hub that does
    not answer or is busy, and a repository that changed in the meantime.
    """
    hub = hub_client()
    if not sys.stderr.isatty():
        hub.utils.disable_progress_bars()
    if not dry_run and hub.get_token() is None:
        raise JudgeSenseError(
            "no Hub token; log in with `hf auth login`, or set HF_TOKEN to a token that may write "
            f"to {publication.repo_id.split('/')[0]}"
        )
    repository = _Repository(hub, publication)
    try:
        with repository.errors():
            head, changes = repository.compare()
    except UnreachableError:
        if not dry_run:
            raise
        return PublishOutcome(publication, diff(publication, {}), "unknown")
    if pull_request and head is None:
        raise JudgeSenseError(
            f"the Hub has no {repository}, or this token cannot see it, so there is nothing to "
            "open a pull request in"
        )
    if dry_run:
        return PublishOutcome(publication, changes, "new" if head is None else "there")
    with repository.errors():
        if head is None:
            sdk = {} if publication.sdk is None else {"space_sdk": publication.sdk}
            repository.api.create_repo(**repository.where, private=private or None, **sdk)
            head, changes = repository.compare()
            return _commit(repository, changes, head, "new")
        if pull_request:
            return _propose(repository, changes, head)
        try:
            return _commit(repository, changes, head)
        except hub.errors.HfHubHTTPError as error:
            if error.response.status_code != 403 or not publication.shared:
                raise
            return _propose(repository, changes, head)


def _commit(
    repository: _Repository, changes: Changes, head: str | None, remote: str = "there"
) -> PublishOutcome:
    """Commit to main, and tag."""
    publication = repository.publication
    commit = repository.commit(changes, head).oid if changes else None
    tag, elsewhere = publication.tag, None
    if tag is not None:
        refs = repository.api.list_repo_refs(**repository.where)
        tags = {ref.name: ref.target_commit for ref in refs.tags}
        if tag in tags:
            elsewhere = tags[tag] if tags[tag] != (commit or head) else None
            tag = None
        else:
            place = {**repository.where, "revision": commit or head}
            repository.api.create_tag(**place, tag=tag, exist_ok=True)
    return PublishOutcome(publication, changes, remote, commit, tag, elsewhere)


def _propose(repository: _Repository, changes: Changes, head: str | None) -> PublishOutcome:
    """Open a pull request, or update our open one with the same title."""
    publication, commit, url = repository.publication, None, None
    if changes:
        pull_requests = repository.api.get_repo_discussions(
            **repository.where,
            author=repository.api.whoami()["name"],
            discussion_type="pull_request",
            discussion_status="open",
        )
        own_requests = [pr for pr in pull_requests if pr.title == publication.message]
        if own_requests:
            url, revision = own_requests[0].url, own_requests[0].git_reference
            head, changes = repository.compare(revision)
            commit = repository.commit(changes, head, revision=revision).oid if changes else None
        else:
            info = repository.commit(changes, head, create_pr=True)
            commit, url = info.oid, info.pr_url
    return PublishOutcome(publication, changes, "there", commit, pull_request=url)


class UnreachableError(JudgeSenseError):
    """The Hub cannot be reached."""


class _Repository:
    """The repository of a publication, as the Hub's client sees it."""

    def __init__(self, hub: Any, publication: Publication) -> None:
        self.api = hub.HfApi(library_name="judgesense")
        self.publication = publication
        self.where = {"repo_id": publication.repo_id, "repo_type": publication.repo_type}
        self._hub = hub

    def __str__(self) -> str:
        return f"{self.publication.repo_type} {self.publication.repo_id}"

    def compare(self, revision: str | None = None) -> tuple[str | None, Changes]:
        """The commit at the head of main (or of a revision), and what differs from it.

        The commit is None if there is no such repository.
        """
        try:
            head = self.api.repo_info(**self.where, revision=revision).sha
        except self._hub.errors.RepositoryNotFoundError:
            return None, diff(self.publication, {})
        entries = self.api.list_repo_tree(**self.where, recursive=True, revision=head)
        tree = {
            entry.path: entry.lfs.sha256 if entry.lfs else entry.blob_id
            for entry in entries
            if isinstance(entry, self._hub.hf_api.RepoFile)
        }
        return head, diff(self.publication, tree)

    def commit(self, changes: Changes, parent: str | None, **options: Any) -> Any:
        """Commit the changes on top of the commit that they were compared with."""
        files = self.publication.files
        operations = [
            self._hub.CommitOperationAdd(path_in_repo=path, path_or_fileobj=files[path])
            for path in (*changes.added, *changes.changed)
        ]
        operations += [
            self._hub.CommitOperationDelete(path_in_repo=path) for path in changes.removed
        ]
        return self.api.create_commit(
            **self.where,
            operations=operations,
            commit_message=self.publication.message,
            parent_commit=parent,
            **options,
        )

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Turn the client's errors into one line that says what to do."""
        hub_errors = self._hub.errors
        try:
            yield
        except hub_errors.OfflineModeIsEnabled:
            raise UnreachableError(
                "HF_HUB_OFFLINE switches the Hub off; unset it, or see what would be published "
                "with --dry-run"
            ) from None
        except hub_errors.RepositoryNotFoundError:
            raise JudgeSenseError(
                f"the Hub shows no {self} to this token; use a token that may write there"
            ) from None
        except hub_errors.HfHubHTTPError as error:
            raise JudgeSenseError(self._refusal_text(error)) from error
        except RuntimeError as error:
            # The client wraps errors of the upload of a large file.
            cause = error.__cause__
            if isinstance(cause, hub_errors.HfHubHTTPError):
                raise JudgeSenseError(self._refusal_text(cause)) from error
            if not isinstance(cause, transport_errors()):
                raise
            raise UnreachableError(self._unreachable_text(cause)) from error
        except transport_errors() as error:
            raise UnreachableError(self._unreachable_text(error)) from error

    def _unreachable_text(self, error: BaseException) -> str:
        return (
            f"the Hub at {self._hub.constants.ENDPOINT} cannot be reached ({type(error).__name__});"
            " check the network, then rerun the same command to resume"
        )

    def _refusal_text(self, error: Any) -> str:
        status = error.response.status_code
        reasons = {
            401: "the Hub rejects the token; create a new one and log in with `hf auth login`",
            403: f"this token may not write to the {self}; use one with write permission in "
            f"{self.publication.repo_id.split('/')[0]}, or another --repo",
            409: f"the name of the {self} is taken by a repository of another type, or by one that "
            "this token cannot see; use another --repo",
            412: f"the {self} changed during the upload; rerun the command to compare with its new "
            "state",
        }
        if status == 429 or status >= 500:
            return f"the Hub is busy ({status}); wait a little, then rerun the command to resume"
        reason = str(error.server_message or "").strip().split("\n")[0]
        other = f"the Hub refused the {self} ({status}{': ' + reason if reason else ''})"
        return reasons.get(status, other)
