"""The local page of ``judgesense label``: one HTML page and one address that it asks.

It listens on 127.0.0.1 only. A request names this host and, to change something, carries the page's
secret, so that no other page in the browser can label. Requests are short and end after some
seconds.
"""

from __future__ import annotations

import asyncio
import secrets
import socket
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from hmac import compare_digest
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, StringConstraints, ValidationError

from judgesense.checking.labelling import LONGEST_COMMENT, LONGEST_NAME, Labelling
from judgesense.errors import JudgeSenseError, MissingExtraError
from judgesense.reporting.documents import environment, script_of
from judgesense.reporting.palette import DARK, LIGHT

try:
    import uvicorn
    from fastapi import FastAPI, Request
    from fastapi.concurrency import run_in_threadpool
    from fastapi.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
except ImportError as error:
    raise MissingExtraError(error.name or "fastapi", "serve", "judgesense label") from error

MOST_BYTES, SECONDS = 1 << 16, 10.0
"""Of a request."""

GRACE = 20.0
"""Seconds in which the last label can be undone before the server stops."""

_THIS_HOST = ("127.0.0.1", "localhost")
"""A page of another name may lead here."""

_HEADERS = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Content-Security-Policy": "frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
}


class PageRequest(BaseModel):
    """What the page asks: to show an item, to save a label or a comment, to undo, or to stop."""

    do: Literal["show", "label", "comment", "undo", "stop"]
    name: Annotated[str, StringConstraints(strip_whitespace=True, max_length=LONGEST_NAME)] = ""
    at: Annotated[int, Field(strict=True, ge=0)] | None = None
    label: str | None = None
    comment: Annotated[str, StringConstraints(max_length=LONGEST_COMMENT)] = ""


class LabelServer:
    """Serves a labelling until it is finished, and ``grace`` seconds longer, or interrupted.

    Raises JudgeSenseError if the port is taken; 0 takes a free one.
    """

    def __init__(self, labelling: Labelling, port: int = 0, grace: float = GRACE) -> None:
        self.labelling, self.secret = labelling, secrets.token_urlsafe(16)
        self._grace, self._last_request = grace, time.monotonic()
        try:
            self._socket = socket.create_server(("127.0.0.1", port))
        except OSError as error:
            raise JudgeSenseError(
                f"cannot listen on port {port} ({error.strerror}); choose another with --port"
            ) from error
        self.port = self._socket.getsockname()[1]
        # Others on this machine can reach the port; only who has the address gets the page.
        self.address = f"http://127.0.0.1:{self.port}/?key={self.secret}"
        # The terminal belongs to the user: nothing is logged.
        self._server = uvicorn.Server(uvicorn.Config(self._app(), log_level="critical"))

    def serve(self) -> None:
        """Serve until everyone has labelled everything, or until KeyboardInterrupt."""
        with self._socket, suppress(KeyboardInterrupt):
            self._server.run([self._socket])

    def stop(self) -> None:
        """Stop soon; requests in progress are answered."""
        self._server.should_exit = True

    def _app(self) -> FastAPI:
        @asynccontextmanager
        async def running(_: FastAPI) -> AsyncIterator[None]:
            watch = asyncio.create_task(self._stop_when_finished())
            yield
            watch.cancel()

        # FastAPI's own pages load their programs from other machines.
        app = FastAPI(lifespan=running, docs_url=None, redoc_url=None, openapi_url=None)
        text = page(self.labelling, self.secret)

        @app.get("/")
        async def show(request: Request) -> Response:
            known = compare_digest(request.query_params.get("key", ""), self.secret)
            if request.url.hostname not in _THIS_HOST or not known:
                said = "Open the whole address that the terminal shows."
                return PlainTextResponse(said, 404, _HEADERS)
            return HTMLResponse(text, headers=_HEADERS)

        @app.post("/")
        async def ask(request: Request) -> Response:
            is_own = compare_digest(request.headers.get("x-secret", ""), self.secret)
            body = None
            if is_own and request.url.hostname in _THIS_HOST:
                body = await _body(request)
            if body is None:
                return JSONResponse({"error": "not a request of this page"}, 400, _HEADERS)
            status, answer = await run_in_threadpool(self._answer, body)
            return JSONResponse(answer, status, _HEADERS)

        return app

    def _answer(self, body: bytes) -> tuple[int, dict[str, Any]]:
        """Do what the page asks: the status, and what the page shows next."""
        self._last_request = time.monotonic()
        try:
            return 200, self._do(PageRequest.model_validate_json(body))
        except ValidationError as error:
            first = error.errors()[0]
            return 400, {"error": f"{'.'.join(map(str, first['loc']))}: {first['msg']}"}
        except ValueError as error:
            return 400, {"error": f"expected {error}"}
        except OSError as error:
            return 500, {"error": f"not saved: {error.strerror or error}"}

    def _do(self, ask: PageRequest) -> dict[str, Any]:
        """What the page shows next. Raises ValueError for what the labelling does not have."""
        labelling, name, at = self.labelling, " ".join(ask.name.split()), ask.at
        if ask.do == "stop":
            self.stop()
            return {}
        if not name:
            raise ValueError(f"a name of 1 to {LONGEST_NAME} characters")
        if ask.do == "undo":
            return labelling.state(name, labelling.undo(name))
        if at is not None and at >= labelling.total:
            raise ValueError(f"an item from 0 to {labelling.total - 1}")
        if ask.do == "show":
            return labelling.state(name, at)
        if at is None or (ask.do == "label" and ask.label not in labelling.labels):
            raise ValueError(f"an item and one of the labels {', '.join(labelling.labels)}")
        labelling.put(name, at, ask.label if ask.do == "label" else None, ask.comment)
        return labelling.state(name, at if ask.do == "comment" else None)

    async def _stop_when_finished(self) -> None:
        while time.monotonic() - self._last_request < self._grace or (
            not self.labelling.is_finished()
        ):
            await asyncio.sleep(min(1.0, self._grace))
        self.stop()


async def _body(request: Request) -> bytes | None:
    """The body of a request; None if it is too long or does not arrive in time."""
    body = b""
    with suppress(TimeoutError):
        async with asyncio.timeout(SECONDS):
            async for chunk in request.stream():
                body += chunk
                if len(body) > MOST_BYTES:
                    return None
            return body
    return None


def page(labelling: Labelling, secret: str) -> str:
    """The page, which requests nothing but its own server's answers."""
    from markupsafe import Markup

    from judgesense.reporting.listing import page_data

    data = {
        "secret": secret,
        "labels": labelling.labels,
        "file": str(labelling.out),
        "source": labelling.source,
        "rubric": labelling.rubric,
    }
    return (
        environment()
        .get_template("label.html")
        .render(
            light=Markup(LIGHT),
            dark=Markup(DARK),
            **script_of("element.js", "label.js"),
            data=page_data(data),
        )
    )
