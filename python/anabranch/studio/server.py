"""A server of the studio for this machine's browser.

It listens on the loopback interface. Another program of this machine cannot guess the addresses, which contain a
random token. A page from elsewhere cannot use a name that it resolves to 127.0.0.1, because the Host header must have
the server's address (DNS rebinding). Requests for work must also come from the page itself (Origin).
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Callable, Iterable, Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from anabranch.errors import UserError
from anabranch.studio.jobs import BusyError, Jobs

LOOPBACK = "127.0.0.1"
MOST_ORDER = 16 << 20
"""Octets of a request for work."""
PART = 1 << 20
"""Octets read at once."""


class Server(ThreadingHTTPServer):
    """Serves one page, one capture if there is one, and the page's requests for work.

    Args:
        page: The page.
        capture: The capture.
        port: The port; 0 chooses a free one.
        jobs: Does the work that the page asks for.
    """

    daemon_threads = True

    def __init__(self, page: str, capture: Path | None = None, port: int = 0, jobs: Jobs | None = None) -> None:
        super().__init__((LOOPBACK, port), _Handler)
        self.token = secrets.token_urlsafe(24)
        self.page = page.encode()
        self.capture = capture
        self.jobs = jobs or Jobs()

    @property
    def port(self) -> int:
        """The port."""
        return int(self.server_address[1])

    @property
    def address(self) -> str:
        """The page's address."""
        return f"http://{LOOPBACK}:{self.port}/{self.token}/"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A browser that closes a connection is no error."""


class _Handler(BaseHTTPRequestHandler):
    server: Server
    protocol_version = "HTTP/1.1"
    timeout = 30

    def do_GET(self) -> None:
        self._answer(is_head=False)

    def do_HEAD(self) -> None:
        self._answer(is_head=True)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name of the base class
        """Write no log: the addresses are secret."""

    def do_POST(self) -> None:
        """Serve a request for work: JSON in, a line of JSON for each part of the answer out."""
        name = self._name()
        if name is None:
            return
        if self.headers.get("Origin") not in self._origins():
            self._refuse(HTTPStatus.FORBIDDEN)
            return
        try:
            length = int(self.headers.get("Content-Length", ""))
        except ValueError:
            self._refuse(HTTPStatus.LENGTH_REQUIRED)
            return
        if not 0 <= length <= MOST_ORDER:
            self._refuse(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
            return
        try:
            order = json.loads(self.rfile.read(length))
        except ValueError:
            self._refuse(HTTPStatus.BAD_REQUEST)
            return
        self._is_begun = False
        try:
            if not isinstance(order, dict) or not self.server.jobs.serve(name, order, self._say):
                self._refuse(HTTPStatus.NOT_FOUND)
        except BusyError:
            self._refuse(HTTPStatus.CONFLICT)
        except ConnectionError:
            # The page stopped the work.
            pass
        self.close_connection = True

    def _say(self, part: Mapping[str, Any]) -> None:
        if not self._is_begun:
            self._is_begun = True
            self._head("application/x-ndjson", None)
        self.wfile.write(json.dumps(part).encode() + b"\n")

    def _origins(self) -> set[str]:
        return {f"http://{host}:{self.server.port}" for host in (LOOPBACK, "localhost")}

    def _name(self) -> str | None:
        """The requested name below the token; ``None`` if the request was refused."""
        if f"http://{self.headers.get('Host')}" not in self._origins():
            self._refuse(HTTPStatus.MISDIRECTED_REQUEST)
            return None
        # The token is secret: the time of a comparison must not depend on it.
        _, token, name = (*self.path.split("/", 2), "", "")[:3]
        if not secrets.compare_digest(token.encode(), self.server.token.encode()):
            self._refuse(HTTPStatus.NOT_FOUND)
            return None
        return name

    def _answer(self, *, is_head: bool) -> None:
        server = self.server
        name = self._name()
        if name is None:
            return
        if name == "":
            self._head("text/html; charset=utf-8", len(server.page))
            if not is_head:
                self.wfile.write(server.page)
        elif name == "capture" and server.capture is not None:
            self._send_capture(server.capture, is_head=is_head)
        elif name == "follow" and server.jobs.follower is not None:
            self._send_parts(server.jobs.follower.capture, is_head=is_head)
        else:
            self._refuse(HTTPStatus.NOT_FOUND)

    def _send_capture(self, capture: Path, *, is_head: bool) -> None:
        try:
            file = capture.open("rb")
        except OSError:
            self._refuse(HTTPStatus.NOT_FOUND)
            return
        with file:
            # The file may grow or shrink meanwhile.
            left = os.fstat(file.fileno()).st_size
            self._head("application/octet-stream", left)
            while not is_head and left:
                part = file.read(min(left, PART))
                if not part:
                    self.close_connection = True
                    return
                self.wfile.write(part)
                left -= len(part)

    def _send_parts(self, made: Callable[[], Iterable[bytes]], *, is_head: bool) -> None:
        try:
            parts = list(made())
        except UserError:
            self._refuse(HTTPStatus.GONE)
            return
        self._head("application/octet-stream", sum(map(len, parts)))
        for part in parts if not is_head else ():
            self.wfile.write(part)

    def _head(self, kind: str, length: int | None) -> None:
        """The head of an answer; without a length, its end is that of the connection."""
        self.send_response(HTTPStatus.OK)
        for name, value in {
            "Content-Type": kind,
            **({"Connection": "close"} if length is None else {"Content-Length": str(length)}),
            "Cache-Control": "no-store",
            "X-Content-Type-Options": "nosniff",
            "X-Frame-Options": "DENY",
            "Cross-Origin-Resource-Policy": "same-origin",
            "Referrer-Policy": "no-referrer",
        }.items():
            self.send_header(name, value)
        self.end_headers()

    def _refuse(self, status: HTTPStatus) -> None:
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.send_header("Connection", "close")
        self.end_headers()
