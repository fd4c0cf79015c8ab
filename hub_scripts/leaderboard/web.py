"""What the site answers itself: the first screen, the table, CSV, the picture, pages' metadata."""

from __future__ import annotations

import re
from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

from hub_scripts.leaderboard.answers import Answers
from hub_scripts.leaderboard.board import Board
from hub_scripts.leaderboard.pages.table import csv_of, first_screen, key_of, table_of
from hub_scripts.leaderboard.render import short
from hub_scripts.leaderboard.sources import RunSource
from hub_scripts.leaderboard.style import HEAD

DATA = Path(__file__).parent / "data"
FAVICON, PICTURE = DATA / "favicon.png", DATA / "picture.png"

TITLE = "JudgeSense leaderboard"
DESCRIPTION = (
    "Which LLM judges give the same verdict when the question is worded otherwise, and a right "
    "one? Ranks with intervals, accuracy against a constant answer, and position bias."
)
PAGES = (
    ("Judge", "judge"),
    ("Compare", "compare"),
    ("Published", "published"),
    ("Submit", "submit"),
)
"""The name and the path of every page beside the first."""

_NAMES = {
    "/": "",
    "/judge": "Judge",
    "/compare": "Compare two judges",
    "/published": "Published figures",
    "/submit": "Submit a run",
}
# Gradio's own, which call every page "Gradio".
_METADATA = re.compile(rb'\s*<meta\s+(?:property="og:|name="(?:twitter:|description"))[^>]*>')
_TITLE = re.compile(rb"<title>[^<]*</title>")
_SHEET = re.compile(rb'<link rel="stylesheet"')
_UNHURRIED = b"""<link rel="stylesheet" media="print" onload="this.media='all'\""""
_START = re.compile(rb'<script type="module"[^>]*\ssrc="([^"]+)"[^>]*></script>')
_LATER = (
    b"<script>{const start = () => document.head.append(Object.assign("
    b"document.createElement('script'), {type: 'module', crossOrigin: '', src: '%s'}));"
    b"if (document.hidden) start(); else requestAnimationFrame(() => setTimeout(start));}</script>"
)

# What Gradio puts the address of the server together from.
_ADDRESS = ("host", "x-forwarded-host", "x-forwarded-proto", "x-gradio-server")
_MOST_BARE = 32
_MOST_READY = 8


def app_options(source: RunSource) -> dict[str, Any]:
    """Routes and middleware of the app that serves a source, as FastAPI takes them."""
    from starlette.middleware import Middleware
    from starlette.requests import Request
    from starlette.responses import FileResponse, Response
    from starlette.routing import Route

    answers = Answers()
    board = source.board()
    for task in board.tasks[:_MOST_READY]:
        # What a reader of each task sees first, so that no reader waits for it.
        start = {"task": task}
        answers.made(key_of(board, start), lambda start=start: table_of(board, start))

    async def table_html(request: Request) -> Response:
        board, query = await _board(source), request.query_params
        answer = await answers.get(key_of(board, query), lambda: table_of(board, query))
        # A part of a page, which is of no use by itself.
        answered: Response = answer.response(request.headers, "text/plain; charset=utf-8")
        return answered

    def table_csv(request: Request) -> Response:
        text = csv_of(source.board(), request.query_params)
        headers = {"Content-Disposition": 'attachment; filename="judgesense-leaderboard.csv"'}
        return Response(text, media_type="text/csv; charset=utf-8", headers=headers)

    def picture(request: Request) -> Response:
        return FileResponse(PICTURE, headers={"Cache-Control": "public, max-age=86400"})

    return {
        "routes": [
            Route("/table.html", table_html),
            Route("/table.csv", table_csv),
            Route("/picture.png", picture),
        ],
        "middleware": [Middleware(Pages, source=source, answers=answers)],
    }


async def _board(source: RunSource) -> Board:
    from starlette.concurrency import run_in_threadpool

    return source.known() or await run_in_threadpool(source.board)


class Pages:
    """ASGI middleware that completes Gradio's pages.

    Every page gets the style sheet and a title, a description and a picture of its own. The first
    page gets its table, so that readers see it before Gradio's scripts have been loaded.
    """

    def __init__(self, app: Any, source: RunSource, answers: Answers) -> None:
        self.app = app
        self.source = source
        self.answers = answers
        self._bare: dict[tuple[str, ...], bytes] = {}

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Pass everything on except the pages."""
        from starlette.requests import Request

        path = "/" + scope.get("path", "").strip("/")
        if scope["type"] != "http" or scope["method"] != "GET" or path not in _NAMES:
            await self.app(scope, receive, send)
            return
        request = Request(scope)
        page = await self._page(path, request, receive, send)
        if page is None:
            return
        query = request.query_params
        about = metadata(path, scope)
        if path == "/":
            board = await _board(self.source)
            key: tuple[Any, ...] = (page, about, key_of(board, query))
        else:
            key = (page, about)

        def make() -> bytes:
            first = first_screen(board, query, PAGES) if path == "/" else ""
            return _completed(page, HEAD + about, first)

        answer = await self.answers.get(key, make)
        response = answer.response(request.headers, "text/html; charset=utf-8")
        await response(scope, receive, send)

    async def _page(self, path: str, request: Any, receive: Any, send: Any) -> bytes | None:
        """Gradio's page, which depends on its address; None if another answer has been sent."""
        scope = request.scope
        said = (request.headers.get(name, "") for name in _ADDRESS)
        key = (path, scope["path"], scope["scheme"], scope.get("root_path", ""), *said)
        linked = "deep_link" in request.query_params
        if not linked and key in self._bare:
            return self._bare[key]
        start: dict[str, Any] = {}
        parts: list[bytes] = []

        async def held(message: Any) -> None:
            if message["type"] == "http.response.start":
                start.update(message)
            elif message["type"] == "http.response.body":
                parts.append(message.get("body", b""))

        await self.app(scope, receive, held)
        page, kind = b"".join(parts), dict(start["headers"]).get(b"content-type", b"")
        if start["status"] != 200 or not kind.startswith(b"text/html"):
            await send(start)
            await send({"type": "http.response.body", "body": page})
            return None
        if not linked:
            self._bare[key] = page
            while len(self._bare) > _MOST_BARE:
                del self._bare[next(iter(self._bare))]
        return page


def _completed(page: bytes, head: str, first: str) -> bytes:
    plain = _TITLE.sub(b"", _METADATA.sub(b"", page))
    plain = plain.replace(b"</head>", head.encode("utf-8", "replace") + b"</head>", 1)
    if not first:
        return plain
    # Gradio's style sheets and scripts wait until the first screen has been drawn. The sheets keep
    # their place, before the site's own.
    later = b"".join(_LATER % source for source in _START.findall(plain))
    plain = _START.sub(b"", _SHEET.sub(_UNHURRIED, plain))
    whole = first.encode("utf-8", "replace") + later
    return plain.replace(b"<gradio-app", whole + b"<gradio-app", 1)


def metadata(path: str, scope: Mapping[str, Any]) -> str:
    """The metadata of a page as HTML; ``scope`` is the ASGI request's."""
    asked = parse_qs(scope.get("query_string", b"").decode("latin-1"))
    name = _NAMES[path]
    if path == "/judge" and asked.get("judge"):
        name = short(asked["judge"][0].partition("@")[0])
    elif path == "/" and asked.get("task"):
        name = f"Judges on {short(asked['task'][0], 40)}"
    title = f"{name} · {TITLE}" if name else TITLE
    headers = {key.decode("latin-1"): value.decode("latin-1") for key, value in scope["headers"]}
    host = headers.get("x-forwarded-host") or headers.get("host", "")
    scheme = headers.get("x-forwarded-proto") or scope.get("scheme", "https")
    picture = f"{scheme}://{host}{scope.get('root_path', '')}/picture.png"
    return "".join(
        (
            f"<title>{escape(title)}</title>",
            *(
                f'<meta {kind}="{key}" content="{escape(value)}">'
                for kind, key, value in (
                    ("name", "description", DESCRIPTION),
                    ("property", "og:type", "website"),
                    ("property", "og:site_name", TITLE),
                    ("property", "og:title", title),
                    ("property", "og:description", DESCRIPTION),
                    ("property", "og:image", picture),
                    ("name", "twitter:card", "summary_large_image"),
                    ("name", "twitter:title", title),
                    ("name", "twitter:description", DESCRIPTION),
                    ("name", "twitter:image", picture),
                )
            ),
        )
    )
