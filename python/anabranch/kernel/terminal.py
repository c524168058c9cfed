"""The user's terminal, joined to one of a guest."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import select
import signal
import termios
import threading
import tty
from collections.abc import Iterator

_POLL_S = 0.1


@contextlib.contextmanager
def relayed() -> Iterator[int]:
    """Join the user's terminal and a new one within the block, which gets the new one's descriptor.

    Every key, Ctrl-C too, goes to the new one. It has the window's size, also after a change.
    """
    ours, theirs = pty.openpty()
    before = termios.tcgetattr(0)
    is_over = threading.Event()

    def resize(*_: object) -> None:
        with contextlib.suppress(OSError):
            fcntl.ioctl(ours, termios.TIOCSWINSZ, fcntl.ioctl(0, termios.TIOCGWINSZ, bytes(8)))

    thread = threading.Thread(target=_relay, args=(ours, is_over), daemon=True)
    resize()
    handler = signal.signal(signal.SIGWINCH, resize)
    try:
        # The guest's terminal echoes, edits and sends signals.
        tty.setraw(theirs)
        tty.setraw(0)
        thread.start()
        yield theirs
    finally:
        is_over.set()
        os.close(theirs)
        thread.join()
        os.close(ours)
        signal.signal(signal.SIGWINCH, handler)
        termios.tcsetattr(0, termios.TCSAFLUSH, before)


def _relay(ours: int, is_over: threading.Event) -> None:
    to = {0: ours, ours: 1}
    while to:
        ready, _, _ = select.select(list(to), [], [], _POLL_S)
        if not ready and is_over.is_set():
            return
        for source in ready:
            try:
                part = os.read(source, 1 << 14)
            except OSError:
                # The guest's end is closed.
                return
            if not part:
                del to[source]
            while part:
                part = part[os.write(to[source], part) :]
