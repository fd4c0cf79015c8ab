"""The local page of ``judgesense label``: one HTML page and one address that it asks.

It listens on 127.0.0.1 only. A request names this host and, to change something, carries the page's
secret, so that no other page in the browser can label. Requests are short and end after some
seconds.
"""

from __future__ import annotations

import json
import secrets
import time
from base64 import b64encode
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

from judgesense.checking.labelling import LONGEST_COMMENT, LONGEST_NAME, Labelling
from judgesense.errors import JudgeSenseError
from judgesense.reporting.documents import environment
from judgesense.reporting.palette import DARK, LIGHT, TEMPLATES

MOST_BYTES, SECONDS = 1 << 16, 10.0
"""Of a request."""

GRACE = 20.0
"""Seconds in which the last label can be undone before the server stops."""


class LabelServer(ThreadingHTTPServer):
    """Serves a labelling until it is finished, and ``grace`` seconds longer, or interrupted.

    Raises JudgeSenseError if the port is taken; 0 takes a free one.
    """

    daemon_threads = True

    def __init__(self, labelling: Labelling, port: int = 0, grace: float = GRACE) -> None:
        self.labelling, self.secret = labelling, secrets.token_urlsafe(16)
        self._grace, self._last = grace, time.monotonic()
        try:
            super().__init__(("127.0.0.1", port), _Handler)
        except OSError as error:
            raise JudgeSenseError(
                f"cannot listen on port {port} ({error.strerror}); choose another with --port"
            ) from error
        self.address = f"http://127.0.0.1:{self.server_port}/"
        self.page = page(labelling, self.secret).encode()

    def serve(self) -> None:
        """Serve until everyone has labelled everything, or until KeyboardInterrupt."""
        Thread(target=self._watch, daemon=True).start()
        try:
            self.serve_forever(poll_interval=0.2)
        except KeyboardInterrupt:
            pass
        finally:
            self.server_close()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore a broken connection: a browser that closed is not an error."""

    def answer(self, asked: dict[str, Any]) -> dict[str, Any]:
        """Do what the page asks and return what it shows next. Raises ValueError for nonsense."""
        self._last = time.monotonic()
        what, name = asked.get("do"), " ".join(str(asked.get("name") or "").split())
        at, label, comment = asked.get("at"), asked.get("label"), str(asked.get("comment") or "")
        if what == "stop":
            Thread(target=self.shutdown, daemon=True).start()
            return {}
        if not name or len(name) > LONGEST_NAME:
            raise ValueError(f"a name of 1 to {LONGEST_NAME} characters")
        labelling = self.labelling
        if what == "undo":
            return labelling.state(name, labelling.undo(name))
        if at is not None and (type(at) is not int or not 0 <= at < labelling.total):
            raise ValueError(f"an item from 0 to {labelling.total - 1}")
        if what == "show":
            return labelling.state(name, at)
        if what not in ("label", "comment") or at is None or len(comment) > LONGEST_COMMENT:
            raise ValueError("a label of an item, and a comment of at most 4,000 characters")
        if what == "comment":
            labelling.put(name, at, None, comment)
            return labelling.state(name, at)
        if label not in labelling.labels:
            raise ValueError(f"one of the labels {', '.join(labelling.labels)}")
        labelling.put(name, at, label, comment)
        return labelling.state(name)

    def _watch(self) -> None:
        while True:
            time.sleep(min(1.0, self._grace))
            if time.monotonic() - self._last >= self._grace and self.labelling.is_finished():
                self.shutdown()
                return


def page(labelling: Labelling, secret: str) -> str:
    """The page, which requests nothing but its own server's answers."""
    from markupsafe import Markup

    script = (TEMPLATES / "label.js").read_text("utf-8")
    known = {
        "secret": secret,
        "labels": labelling.labels,
        "file": str(labelling.out),
        "source": labelling.source,
    }
    return (
        environment()
        .get_template("label.html")
        .render(
            light=Markup(LIGHT),
            dark=Markup(DARK),
            script=Markup(script),
            script_hash=f"sha256-{b64encode(sha256(script.encode()).digest()).decode()}",
            data=Markup(json.dumps(known).replace("<", "\\u003c")),
        )
    )


class _Handler(BaseHTTPRequestHandler):
    server: LabelServer
    timeout = SECONDS

    def do_GET(self) -> None:
        """The page."""
        if self.path == "/" and self._is_own():
            self._send(200, self.server.page, "text/html; charset=utf-8")
        else:
            self._send(404, b"{}")

    def do_POST(self) -> None:
        """What the page asks, as JSON."""
        length = self.headers.get("Content-Length", "")
        own = self._is_own() and self.headers.get("X-Secret") == self.server.secret
        if self.path != "/" or not own or not length.isdigit() or int(length) > MOST_BYTES:
            self._send(400, b'{"error": "not a request of this page"}')
            return
        try:
            asked = json.loads(self.rfile.read(int(length)))
            if not isinstance(asked, dict):
                raise ValueError("a JSON object")
            code, found = 200, self.server.answer(asked)
        except ValueError as error:
            code, found = 400, {"error": f"expected {error}"}
        except OSError as error:
            code, found = 500, {"error": f"not saved: {error.strerror or error}"}
        self._send(code, json.dumps(found).encode())

    def _is_own(self) -> bool:
        host = self.headers.get("Host", "").rpartition(":")[0]
        return host in ("127.0.0.1", "localhost")

    def _send(self, code: int, body: bytes, kind: str = "application/json") -> None:
        self.send_response(code)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing: the terminal belongs to the user."""
