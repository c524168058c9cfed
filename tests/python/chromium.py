"""One headless Chromium for all tests of a process, because each start takes a second of a processor.

Messages of the DevTools protocol pass through the browser's file descriptors 3 and 4.
"""

from __future__ import annotations

import fcntl
import json
import os
import select
import shutil
import signal
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_PATIENCE = 300.0
"""Seconds until an answer counts as missing."""
_OPTIONS = ("--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe", "--no-first-run")


@dataclass(frozen=True)
class View:
    """Size of a window in pixels, and its colour scheme."""

    width: int = 1280
    height: int = 900
    dark: bool = False


class Browser:
    """A running Chromium with one page."""

    def __init__(self) -> None:
        self._profile = tempfile.mkdtemp(prefix="chromium-")
        read, self._write = _pipe()
        self._read, write = _pipe()
        self._pid = os.posix_spawnp(
            "chromium",
            ["chromium", *_OPTIONS, f"--user-data-dir={self._profile}", "about:blank"],
            os.environ,
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
                (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
                (os.POSIX_SPAWN_DUP2, read, 3),
                (os.POSIX_SPAWN_DUP2, write, 4),
            ],
        )
        os.close(read)
        os.close(write)
        self._received = bytearray()
        self._number = 0
        self.has_failed = False
        target = self._call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self._call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self.call("Page.enable")
        self.call("Runtime.enable")
        self.call("Runtime.addBinding", name="answer")
        # The page's virtual clock is ahead of the browser's, which dates the start of a navigation.
        self.call("Page.addScriptToEvaluateOnNewDocument", source="globalThis.began = performance.now();")
        self.call("Emulation.setFocusEmulationEnabled", enabled=True)

    def end(self) -> None:
        """End the browser and delete its profile."""
        # Without its pipe the browser ends by itself.
        os.close(self._write)
        os.close(self._read)
        deadline = time.monotonic() + 10
        while os.waitpid(self._pid, os.WNOHANG) == (0, 0):
            if time.monotonic() > deadline:
                os.kill(self._pid, signal.SIGKILL)
            time.sleep(0.02)
        shutil.rmtree(self._profile, ignore_errors=True)

    def answer(self, page: Path, view: View, *, milliseconds: int) -> str | None:
        """Open a page, and return what it passes to ``answer()``; ``None`` if it does not in this virtual time."""
        size = {"width": view.width, "height": view.height, "deviceScaleFactor": 1, "mobile": False}
        scheme = {"name": "prefers-color-scheme", "value": "dark" if view.dark else "light"}
        # With time at rest the old page does nothing while the next one is requested.
        self.call("Emulation.setVirtualTimePolicy", policy="pause")
        self.call("Storage.clearDataForOrigin", origin="file://", storageTypes="all")
        self.call("Emulation.setDeviceMetricsOverride", **size)
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        self.call("Page.navigate", url=page.resolve().as_uri())
        self.call(
            "Emulation.setVirtualTimePolicy",
            policy="pauseIfNetworkFetchesPending",
            budget=milliseconds,
            maxVirtualTimeTaskStarvationCount=9999,
        )
        while True:
            event = self._next()
            if event["method"] == "Runtime.bindingCalled":
                payload: str = event["params"]["payload"]
                return payload
            if event["method"] == "Emulation.virtualTimeBudgetExpired":
                return None

    def call(self, method: str, **arguments: object) -> dict[str, Any]:
        """Call a method of the protocol for the page; events that arrive before its result are discarded."""
        return self._call(method, self._session, **arguments)

    def _call(self, method: str, session: str | None = None, /, **arguments: object) -> dict[str, Any]:
        self._number += 1
        message = {"id": self._number, "method": method, "params": arguments}
        if session is not None:
            message["sessionId"] = session
        text = json.dumps(message).encode() + b"\0"
        try:
            while text:
                text = text[os.write(self._write, text) :]
        except BrokenPipeError:
            self.has_failed = True
            raise
        while (got := self._next()).get("id") != self._number:
            pass
        assert "error" not in got, f"{method}: {got['error']}"
        result: dict[str, Any] = got["result"]
        return result

    def _next(self) -> dict[str, Any]:
        """The next message of the browser."""
        while b"\0" not in self._received:
            ready, _, _ = select.select([self._read], [], [], _PATIENCE)
            part = os.read(self._read, 1 << 20) if ready else b""
            self.has_failed = not part
            assert ready, f"Chromium gave no answer in {_PATIENCE:.0f} s"
            assert part, "Chromium has ended"
            self._received += part
        text, _, self._received = self._received.partition(b"\0")
        message: dict[str, Any] = json.loads(text)
        return message


_running: list[Browser] = []


def shared() -> Browser:
    """The browser of this process, started when it is first needed, and again if it has failed."""
    if _running and _running[0].has_failed:
        end_shared()
    if not _running:
        _running.append(Browser())
    return _running[0]


def end_shared() -> None:
    """End the browser of this process if there is one."""
    while _running:
        _running.pop().end()


def _pipe() -> tuple[int, int]:
    """A pipe whose descriptors are neither 3 nor 4."""
    ends = os.pipe()
    far = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in ends]
    for end in ends:
        os.close(end)
    return far[0], far[1]
