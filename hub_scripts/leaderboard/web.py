"""What the site answers beside Gradio's pages: the table, CSV, the picture, pages' metadata."""

from __future__ import annotations

import re
from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

from hub_scripts.leaderboard.pages.table import csv_of, table_of
from hub_scripts.leaderboard.render import short
from hub_scripts.leaderboard.sources import RunSource

DATA = Path(__file__).parent / "data"
FAVICON, PICTURE = DATA / "favicon.png", DATA / "picture.png"

TITLE = "JudgeSense leaderboard"
DESCRIPTION = (
    "Which LLM judges give the same verdict when the question is worded otherwise, and a right "
    "one? Ranks with intervals, accuracy against a constant answer, and position bias."
)
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


def app_options(source: RunSource) -> dict[str, Any]:
    """Routes and middleware of the app that serves a source, as FastAPI takes them."""
    from starlette.middleware import Middleware
    from starlette.requests import Request
    from starlette.responses import FileResponse, Response
    from starlette.routing import Route

    def table_html(request: Request) -> Response:
        text = table_of(source.board(), request.query_params)
        # A part of a page, which is of no use by itself.
        return Response(text, media_type="text/plain; charset=utf-8")

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
        "middleware": [Middleware(PageMetadata)],
    }


class PageMetadata:
    """ASGI middleware that gives every page a title, a description and a picture of its own."""

    def __init__(self, app: Any) -> None:
        self.app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Pass everything on; change the body of the pages."""
        path = "/" + scope.get("path", "").strip("/")
        if scope["type"] != "http" or scope["method"] != "GET" or path not in _NAMES:
            await self.app(scope, receive, send)
            return
        start: dict[str, Any] = {}
        parts: list[bytes] = []

        async def held(message: Any) -> None:
            if message["type"] == "http.response.start":
                start.update(message)
                return
            parts.append(message.get("body", b""))
            if message.get("more_body"):
                return
            body = b"".join(parts)
            if dict(start["headers"]).get(b"content-type", b"").startswith(b"text/html"):
                body = _described(body, metadata(path, scope))
            start["headers"] = [
                *((key, value) for key, value in start["headers"] if key != b"content-length"),
                (b"content-length", str(len(body)).encode()),
            ]
            await send(start)
            await send({"type": "http.response.body", "body": body})

        await self.app(scope, receive, held)


def _described(page: bytes, head: str) -> bytes:
    plain = _TITLE.sub(b"", _METADATA.sub(b"", page))
    return plain.replace(b"</head>", head.encode("utf-8", "replace") + b"</head>", 1)


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
