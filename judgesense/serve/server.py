"""``judgesense serve``: a judge at one address, for every tool that speaks HTTP."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from judgesense.errors import JudgeSenseError, MissingExtraError
from judgesense.files.limits import CONNECTIONS, HEADER_S
from judgesense.serve.gate import Gate, error_reply, is_loopback
from judgesense.serve.routes import PLACES, Service, router
from judgesense.serve.served_judge import ServedJudge, load_served
from judgesense.version import __version__

try:
    import uvicorn
    from fastapi import FastAPI, Request
    from fastapi.exceptions import RequestValidationError
    from fastapi.responses import JSONResponse
    from starlette.exceptions import HTTPException as AnyHTTPException
    from uvicorn.protocols.http.auto import AutoHTTPProtocol
except ImportError as error:
    raise MissingExtraError(error.name or "fastapi", "serve", "judgesense serve") from error


def app_of(
    served: ServedJudge, *, key: str | None = None, local: bool = False, places: int = PLACES
) -> FastAPI:
    """The server as an ASGI application.

    Args:
        served: the judge, loaded.
        key: the key that requests must have, as a bearer token; None for no key.
        local: answer only requests that name this machine.
        places: the most messages that may wait.
    """
    service = Service(served, places)

    @asynccontextmanager
    async def running(_: FastAPI) -> AsyncIterator[None]:
        work = asyncio.create_task(service.batcher.run())
        yield
        work.cancel()
        service.batcher.close()

    # FastAPI's own pages load their programs from other machines.
    app = FastAPI(
        title="JudgeSense", version=__version__, lifespan=running, docs_url=None, redoc_url=None
    )
    app.state.service = service
    app.add_middleware(Gate, key=key, local=local, counts=service.counts)
    app.include_router(router)
    for kind in _REFUSALS:
        app.add_exception_handler(kind, _refuse)
    return app


class Hurried(AutoHTTPProtocol):  # type: ignore[misc,valid-type]
    """A connection that is closed if a request's headers take too long."""

    _late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Begin to wait for headers."""
        super().connection_made(transport)
        self._wait()

    def data_received(self, data: bytes) -> None:
        """Wait on, unless these bytes complete the headers."""
        super().data_received(data)
        self._wait()

    def connection_lost(self, error: Exception | None) -> None:
        """Wait no more."""
        super().connection_lost(error)
        self._stop()

    def _wait(self) -> None:
        if self.cycle is not None and not self.cycle.response_complete:
            self._stop()
        elif self._late is None:
            self._late = self.loop.call_later(HEADER_S, self.transport.close)

    def _stop(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None


_REFUSALS = (
    AnyHTTPException,
    RecursionError,
    UnicodeError,
    JudgeSenseError,
    RequestValidationError,
)
"""What a request can raise that its sender can correct."""


async def _refuse(request: Request, error: Any) -> JSONResponse:
    """One clear error for each kind of `_REFUSALS`."""
    if isinstance(error, AnyHTTPException):
        return error_reply(error.status_code, str(error.detail), error.headers)
    if isinstance(error, RecursionError):
        return error_reply(400, "the JSON is nested too deeply")
    if isinstance(error, UnicodeError):
        return error_reply(400, "the text holds half a character (a lone surrogate)")
    if isinstance(error, JudgeSenseError):
        return error_reply(422, str(error))
    # Any page in a browser may send a body that does not call itself JSON.
    if "json" not in request.headers.get("content-type", ""):
        return error_reply(415, 'send JSON, with the header "Content-Type: application/json"')
    first = error.errors()[0]
    place = ".".join(str(part) for part in first["loc"][1:])
    return error_reply(422, f"{place}: {first['msg']}".removeprefix(": "))


def serve(
    judge: str | Path,
    *,
    host: str = "127.0.0.1",
    port: int = 8080,
    key: str | None = None,
    insecure: bool = False,
    ready: Callable[[str], None] = print,
    places: int = PLACES,
    **options: Any,
) -> None:
    """Serve a judge until the process is told to stop; requests in progress are answered.

    Args:
        judge: a judge's file; or a name, Hub id or path.
        host, port: where to listen; port 0 takes a free one.
        key: the key that clients must send.
        insecure: listen on a public address without a key.
        ready: called with the URL, once the judge is loaded.
        places: the most messages that may wait; further requests get 429.
        options: ``task``, ``wording`` and ``scoring``, and the options of the engine.

    Raises:
        JudgeSenseError: a public address without a key, a port in use, a judge that cannot be
            loaded.
    """
    if not (key or insecure or is_loopback(host)):
        raise JudgeSenseError(
            f"other machines can reach {host}; name the variable of a key with --api-key-env, "
            "or pass --insecure to serve without one"
        )
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((host, port))
        except OSError as error:
            why = error.strerror or error
            raise JudgeSenseError(
                f"cannot listen on {host}:{port}: {why}; choose another --port"
            ) from error
        served = load_served(judge, **options)
        try:
            app = app_of(served, key=key, local=not key and is_loopback(host), places=places)
            listening.listen(1024)
            ready(f"http://{f'[{host}]' if ':' in host else host}:{listening.getsockname()[1]}")
            with suppress(KeyboardInterrupt):
                config = uvicorn.Config(
                    app, log_level="warning", http=Hurried, limit_concurrency=CONNECTIONS
                )
                uvicorn.Server(config).run([listening])
        finally:
            served.close()
