"""The work that the studio's page leaves to the command: runs on all cores, live runs, saving, and following.

The page comes from this machine, but its scenario may come with a link. It is untrusted here, too.
"""

from __future__ import annotations

import contextlib
import json
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from anabranch.errors import UserError

MOST_RUNS = 2_000
"""Runs of one request."""
TABLES = ("samples", "link_samples")
"""Tables of a live run, for the page's charts."""
SAMPLES_MS = 20.0
_FILE = "scenario.toml"

Say = Callable[[Mapping[str, Any]], None]
"""Sends a part of an answer to the page."""


class BusyError(Exception):
    """Another request is being served."""


@dataclass
class Jobs:
    """The work of one studio.

    Attributes:
        scenario: The file that the page may save its scenario into.
        follower: The interface that the page follows.
    """

    scenario: Path | None = None
    follower: Following | None = None
    _busy: threading.Lock = field(default_factory=threading.Lock)

    def offered(self) -> dict[str, Any]:
        """What the page may ask for."""
        return {
            "save": self.scenario.name if self.scenario else None,
            "follow": self.follower.name if self.follower else None,
            "cores": os.cpu_count() or 1,
        }

    def serve(self, name: str, order: Any, say: Say) -> bool:
        """Serve a request in parts. Returns whether there is such a request.

        Raises:
            BusyError: Another request is being served.
        """
        acts = {"runs": self._runs, "live": self._live}
        if self.scenario is not None:
            acts["save"] = self._save
        act = acts.get(name)
        if act is None:
            return False
        if not self._busy.acquire(blocking=False):
            raise BusyError
        try:
            act(order, say)
        except (BrokenPipeError, ConnectionError):
            raise
        except (ValueError, TypeError, LookupError, OSError, RuntimeError) as error:
            say({"problem": str(error) or type(error).__name__})
        finally:
            self._busy.release()
        return True

    def _save(self, order: Any, say: Say) -> None:
        from anabranch.files.output_file import write_whole

        assert self.scenario is not None  # noqa: S101 - offered only with a file
        write_whole(self.scenario, _text(order["text"]).encode())
        say({"saved": self.scenario.name})

    def _runs(self, order: Any, say: Say) -> None:
        """Make runs on all cores, in parts, so that the page shows progress."""
        from anabranch import _engine

        runs = order["runs"]
        if not isinstance(runs, list) or len(runs) > MOST_RUNS:
            raise UserError(f"at most {MOST_RUNS} runs were expected")
        asked = [
            (_text(one["scenario"]), _FILE, [_text(part) for part in one.get("set", [])], one.get("seed"))
            for one in runs
        ]
        size = 4 * (os.cpu_count() or 1)
        for begin in range(0, len(asked), size):
            made = _engine.run_many(asked[begin : begin + size], digest=False, untrusted=True)
            say({"summaries": [json.loads(run.summary_json) for run in made]})

    def _live(self, order: Any, say: Say) -> None:
        """Make a run with this machine's kernel. The answer has the tables of the page's charts."""
        from anabranch import Scenario

        scenario = Scenario.from_text(_text(order["scenario"]), file=_FILE, untrusted=True)
        run = scenario.run_live(
            seed=order.get("seed"),
            samples_ms=SAMPLES_MS,
            allow_tainted=True,
            progress=lambda share: say({"share": share}),
        )
        say({"summary": json.loads(run.summary_json), "tables": {name: _columns(run.table(name)) for name in TABLES}})


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise UserError("a text was expected")
    return value


def _columns(frame: Any) -> dict[str, list[Any]]:
    """The columns of a table."""
    return {name: frame.get_column(name).to_list() for name in frame.columns}


class Following:
    """The last packets of an interface, which a thread captures.

    Args:
        name: The interface.
        seconds: How long packets are kept.

    Raises:
        UserError: There is no such interface.
        RunFailedError: Capturing is not permitted.
    """

    def __init__(self, name: str, seconds: float) -> None:
        from anabranch.diagnosis.follow import Ring
        from anabranch.diagnosis.interface import Interface

        self.name = name
        self._interface = Interface(name)
        self._ring = Ring(seconds, self._interface.link_type)
        self._wake = os.pipe()
        self._error = ""
        self._port: bytes | None = None
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._is_ending = False
        self._thread.start()

    def without_port(self, port: int) -> None:
        """Leave out the packets of the studio's own server, or each look at the capture would be in the next."""
        self._port = port.to_bytes(2, "big")

    def add(self, nanoseconds: int, length: int, captured: bytes | memoryview) -> None:
        """Add a packet to the ring."""
        if self._port is None or self._port not in _tcp_ports(captured):
            self._ring.add(nanoseconds, length, captured)

    def _read(self) -> None:
        from anabranch.errors import RunFailedError

        while not self._is_ending:
            try:
                self._interface.read(self, 0.5, self._wake[0])
            except RunFailedError as error:
                self._error = str(error)
                return

    def capture(self) -> Iterator[bytes]:
        """The packets so far, as a capture.

        Raises:
            UserError: The interface is gone.
        """
        if self._error:
            raise UserError(self._error)
        return self._ring.capture()

    def close(self) -> None:
        """End capturing."""
        self._is_ending = True
        os.write(self._wake[1], b"s")
        self._thread.join()
        self._interface.close()
        for end in self._wake:
            with contextlib.suppress(OSError):
                os.close(end)


def _tcp_ports(frame: bytes | memoryview) -> tuple[bytes, ...]:
    """Both ports of an Ethernet frame with TCP over IPv4, as the loopback interface has them; none of others."""
    if len(frame) < 34 or bytes(frame[12:14]) != b"\x08\x00" or frame[23] != 6:
        return ()
    start = 14 + 4 * (frame[14] & 15)
    return bytes(frame[start : start + 2]), bytes(frame[start + 2 : start + 4])
