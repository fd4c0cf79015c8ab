"""Texts that are made and compressed once, and sent to everybody who asks for the same."""

from __future__ import annotations

import gzip
import hashlib
import threading
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Any

MOST_KEPT = 128


@dataclass(frozen=True)
class Answer:
    """A text as it is sent, plain and compressed, and the tag by which a browser knows it."""

    body: bytes
    zipped: bytes
    tag: str

    @classmethod
    def of(cls, text: str | bytes) -> Answer:
        """The answer with this text."""
        body = text if isinstance(text, bytes) else text.encode("utf-8", "replace")
        tag = f'W/"{hashlib.sha256(body).hexdigest()[:16]}"'
        return cls(body, gzip.compress(body, 6, mtime=0), tag)

    def response(self, asked: Mapping[str, str], media_type: str) -> Any:
        """The response to a request with these headers: 304 if the browser has this text."""
        from starlette.responses import Response

        headers = {"ETag": self.tag, "Cache-Control": "no-cache", "Vary": "Accept-Encoding"}
        if self.tag in asked.get("if-none-match", ""):
            return Response(status_code=304, headers=headers)
        body = self.body
        if "gzip" in asked.get("accept-encoding", ""):
            body, headers["Content-Encoding"] = self.zipped, "gzip"
        return Response(body, media_type=media_type, headers=headers)


class Answers:
    """The last answers by their keys."""

    def __init__(self) -> None:
        self._kept: dict[Hashable, Answer] = {}
        self._making = threading.Lock()

    async def get(self, key: Hashable, make: Callable[[], str | bytes]) -> Answer:
        """The answer of that key; one that is missing is made in a thread."""
        from starlette.concurrency import run_in_threadpool

        return self._kept.get(key) or await run_in_threadpool(self.made, key, make)

    def made(self, key: Hashable, make: Callable[[], str | bytes]) -> Answer:
        """The answer of that key, made here if it is missing."""
        # Users who ask for the same at once wait for the first of them.
        with self._making:
            if key not in self._kept:
                self._kept[key] = Answer.of(make())
                while len(self._kept) > MOST_KEPT:
                    del self._kept[next(iter(self._kept))]
            return self._kept[key]
