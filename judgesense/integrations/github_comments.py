"""The comment of the GitHub Action, through GitHub's REST API ("Issue comments")."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from judgesense.errors import JudgeSenseError

_TIMEOUT_S = 30
_PER_PAGE = 100


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Follows no redirect: the token is for one host."""

    def redirect_request(self, *_: Any) -> None:
        return None


@dataclass(frozen=True)
class Comments:
    """The comments of one pull request, through GitHub's REST API.

    Args:
        api: the API's URL, such as ``https://api.github.com``.
        repository: ``owner/name``.
        number: the pull request.
        token: sent to ``api`` alone; redirects are not followed.
    """

    api: str
    repository: str
    number: int
    token: str

    def post(self, body: str) -> tuple[str, str]:
        """Update the comment that starts with this body's first line, or add one.

        Only comments of a bot count, so that nobody can steer the update to a comment of another
        person. Returns ``added``, ``updated`` or ``unchanged``, and the comment's URL.

        Raises:
            JudgeSenseError: the API refuses, with its status and reason.
        """
        mark = body.partition("\n")[0]
        for comment in self._all():
            told = str(comment.get("body") or "").replace("\r\n", "\n")
            if not told.startswith(mark) or not _by_bot(comment):
                continue
            if told.rstrip() == body.rstrip():
                return "unchanged", str(comment.get("html_url"))
            path = f"issues/comments/{comment['id']}"
            return "updated", str(self._call("PATCH", path, {"body": body}).get("html_url"))
        made = self._call("POST", f"issues/{self.number}/comments", {"body": body})
        return "added", str(made.get("html_url"))

    def _all(self) -> Iterator[Mapping[str, Any]]:
        page = 1
        while True:
            path = f"issues/{self.number}/comments?per_page={_PER_PAGE}&page={page}"
            found = self._call("GET", path)
            if not isinstance(found, list):
                raise JudgeSenseError(f"GitHub's answer to {path} is no list of comments")
            yield from (each for each in found if isinstance(each, dict))
            if len(found) < _PER_PAGE:
                return
            page += 1

    def _call(self, method: str, path: str, body: Mapping[str, str] | None = None) -> Any:
        request = urllib.request.Request(
            f"{self.api}/repos/{self.repository}/{path}",
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={
                "Accept": "application/vnd.github+json", "Content-Type": "application/json",
                "Authorization": f"Bearer {self.token}", "User-Agent": "judgesense",
                "X-GitHub-Api-Version": "2022-11-28",
            },
        )  # fmt: skip
        try:
            with urllib.request.build_opener(_NoRedirect).open(request, timeout=_TIMEOUT_S) as told:
                return json.load(told)
        except urllib.error.HTTPError as error:
            hint = "; give the job `permissions: pull-requests: write`" if error.code == 403 else ""
            raise JudgeSenseError(
                f"GitHub refused {method} {path}: {error.code} {error.reason}{hint}"
            ) from None
        except (OSError, ValueError) as error:
            raise JudgeSenseError(f"no answer from GitHub to {method} {path}: {error}") from None


def _by_bot(comment: Mapping[str, Any]) -> bool:
    user = comment.get("user")
    return isinstance(user, dict) and user.get("type") == "Bot"
