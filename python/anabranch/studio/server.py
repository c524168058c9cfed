"""A server of the studio for this machine's browser.

It listens on the loopback interface. Another program of this machine cannot guess the addresses, which contain a
random token. A page from elsewhere cannot use a name that it resolves to 127.0.0.1, because the Host header must have
the server's address (DNS rebinding).
"""

from __future__ import annotations

import os
import secrets
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

LOOPBACK = "127.0.0.1"
PART = 1 << 20
"""Octets read at once."""


class Server(ThreadingHTTPServer):
    """Serves one page, and one capture if there is one.

    Args:
        page: The page.
        capture: The capture.
        port: The port; 0 chooses a free one.
    """

    daemon_threads = True

    def __init__(self, page: str, capture: Path | None = None, port: int = 0) -> None:
        super().__init__((LOOPBACK, port), _Handler)
        self.token = secrets.token_urlsafe(24)
        self.page = page.encode()
        self.capture = capture

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

    def _answer(self, *, is_head: bool) -> None:
        server = self.server
        if self.headers.get("Host") not in {f"{LOOPBACK}:{server.port}", f"localhost:{server.port}"}:
            self._refuse(HTTPStatus.MISDIRECTED_REQUEST)
            return
        # The token is secret: the time of a comparison must not depend on it.
        _, token, name = (*self.path.split("/", 2), "", "")[:3]
        if not secrets.compare_digest(token.encode(), server.token.encode()):
            self._refuse(HTTPStatus.NOT_FOUND)
        elif name == "":
            self._head("text/html; charset=utf-8", len(server.page))
            if not is_head:
                self.wfile.write(server.page)
        elif name == "capture" and server.capture is not None:
            self._send_capture(server.capture, is_head=is_head)
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

    def _head(self, kind: str, length: int) -> None:
        self.send_response(HTTPStatus.OK)
        for name, value in {
            "Content-Type": kind,
            "Content-Length": str(length),
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
