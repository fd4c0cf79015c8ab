"""Create or update one repository on the Hub in one commit and tag it, or offer the commit.

The token comes from where huggingface_hub looks for it, and no message contains it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from hub_scripts.client import hub_client, transport_errors
from hub_scripts.publication import Changes, Publication, diff
from judgesense.errors import JudgeSenseError


@dataclass(frozen=True)
class PublishOutcome:
    """What happened to a repository, or would happen in a dry run.

    ``remote`` is "there", "new" if the repository does not exist or is not visible, or "unknown" if
    the Hub did not answer, which only a dry run allows. ``commit`` and ``tagged`` are None if
    nothing was committed or tagged; ``tag_elsewhere`` is the other commit that has the tag.
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
        publication, changes = self.publication, self.changes
        return {
            "repo_id": publication.repo_id,
            "repo_type": publication.repo_type,
            "remote": self.remote,
            "added": changes.added,
            "changed": changes.changed,
            "removed": changes.removed,
            "unchanged": changes.unchanged,
            "commit": self.commit,
            "tag": publication.tag,
            "tagged": self.tagged,
            "tag_elsewhere": self.tag_elsewhere,
            "pull_request": self.pull_request,
            "notes": list(publication.notes),
        }


def publish(
    publication: Publication, *, private: bool = False, dry_run: bool = False
) -> PublishOutcome:
    """Bring a repository to the state of the publication; without changes there is no commit.

    After an interruption the same call finishes: large files that arrived are not sent again, and a
    missing tag is set even if there is nothing to commit. ``private`` matters only if the
    repository is created. An existing tag stays at its commit.

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
        with repository.errors(unreachable=_UnreachableError):
            head, changes = repository.compare()
    except _UnreachableError as error:
        if not dry_run:
            raise JudgeSenseError(str(error)) from error
        return PublishOutcome(publication, diff(publication, {}), "unknown")
    remote = "new" if head is None else "there"
    if publication.offered and head is None:
        raise JudgeSenseError(
            f"the Hub has no {repository}, or this token cannot see it, so nothing can be offered "
            "to it"
        )
    if dry_run:
        return PublishOutcome(publication, changes, remote)
    with repository.errors():
        if publication.offered:
            return _offer(repository, changes, head)
        if head is None:
            sdk = {"space_sdk": "gradio"} if publication.repo_type == "space" else {}
            repository.api.create_repo(**repository.where, private=private or None, **sdk)
            head, changes = repository.compare()
        commit = repository.commit(changes, head).oid if changes else None
        tags = {
            tag.name: tag.target_commit
            for tag in repository.api.list_repo_refs(**repository.where).tags
        }
        tag, elsewhere = publication.tag, None
        if tag in tags:
            elsewhere = tags[tag] if tags[tag] != (commit or head) else None
            tag = None
        else:
            where = {**repository.where, "revision": commit or head}
            repository.api.create_tag(**where, tag=tag, exist_ok=True)
    return PublishOutcome(publication, changes, remote, commit, tag, elsewhere)


def _offer(repository: _Repository, changes: Changes, head: str | None) -> PublishOutcome:
    """Open a pull request, or update our open one with the same title."""
    publication, commit, url = repository.publication, None, None
    if changes:
        ours = [
            found
            for found in repository.api.get_repo_discussions(
                **repository.where,
                author=repository.api.whoami()["name"],
                discussion_type="pull_request",
                discussion_status="open",
            )
            if found.title == publication.message
        ]
        if ours:
            url, revision = ours[0].url, ours[0].git_reference
            head, changes = repository.compare(revision)
            commit = repository.commit(changes, head, revision=revision).oid if changes else None
        else:
            info = repository.commit(changes, head, create_pr=True)
            commit, url = info.oid, info.pr_url
    return PublishOutcome(publication, changes, "there", commit, pull_request=url)


class _UnreachableError(Exception):
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
    def errors(self, unreachable: type[Exception] = JudgeSenseError) -> Iterator[None]:
        """Turn the client's errors into one line that says what to do."""
        raised = self._hub.errors
        try:
            yield
        except raised.OfflineModeIsEnabled:
            raise unreachable(
                "HF_HUB_OFFLINE switches the Hub off; unset it, or see what would be published "
                "with --dry-run"
            ) from None
        except raised.RepositoryNotFoundError:
            raise JudgeSenseError(
                f"the Hub shows no {self} to this token; use a token that may write there"
            ) from None
        except raised.HfHubHTTPError as error:
            reason = str(error.server_message or "")
            raise JudgeSenseError(_refusal(error.response.status_code, self, reason)) from error
        except RuntimeError as error:
            # The client wraps errors of the upload of a large file.
            cause = error.__cause__
            if isinstance(cause, raised.HfHubHTTPError):
                raise JudgeSenseError(_refusal(cause.response.status_code, self, "")) from error
            if not isinstance(cause, transport_errors()):
                raise
            raise unreachable(self._out_of_reach(cause)) from error
        except transport_errors() as error:
            raise unreachable(self._out_of_reach(error)) from error

    def _out_of_reach(self, error: BaseException) -> str:
        return (
            f"the Hub at {self._hub.constants.ENDPOINT} cannot be reached ({type(error).__name__});"
            " check the network, then rerun the same command to resume"
        )


def _refusal(status: int, repository: _Repository, reason: str) -> str:
    if status == 401:
        return "the Hub rejects the token; create a new one and log in with `hf auth login`"
    if status == 403:
        organisation = repository.publication.repo_id.split("/")[0]
        return (
            f"this token may not write to the {repository}; use one with write permission in "
            f"{organisation}, or another --repo"
        )
    if status == 409:
        return (
            f"the name of the {repository} is taken by a repository of another type, or by one "
            "that this token cannot see; use another --repo"
        )
    if status == 412:
        return (
            f"the {repository} changed during the upload; rerun the command to compare with its "
            "new state"
        )
    if status == 429 or status >= 500:
        return f"the Hub is busy ({status}); wait a little, then rerun the command to resume"
    first = reason.strip().splitlines()[:1]
    return f"the Hub refused the {repository} ({status}{': ' + first[0] if first else ''})"
