"""Ctrl-C and SIGTERM end a command at once, with status 130 or 143.

Python's handler raises an exception in the main thread, which unwinds the command: finished results
stay, unfinished ones are removed. Work in the engine runs in separate threads
(``crates/py/src/interruptible.rs``), so that the main thread is free for this. If a library keeps
the main thread busy (a figure, a large table), a second thread ends the process after
:data:`PATIENCE_S`. Results are written as a whole or not at all, so nothing is left half-written.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

PATIENCE_S = 0.1
"""Seconds that a command has to unwind."""

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Terminated(KeyboardInterrupt):
    """SIGTERM. Handlers of Ctrl-C also handle it."""


class _State:
    received: int | None = None
    """The signal that ends this command."""
    is_watched = False
    swaps = 0
    """Indivisible steps in progress."""
    held: int | None = None
    """A signal that arrived during such a step."""
    is_said = False
    """Whether the message for the signal was printed."""
    remark: str | None = None
    """The remark of :func:`explained`, until it is printed."""


_state = _State()


def listen() -> None:
    """Raise :class:`KeyboardInterrupt` and :class:`Terminated` in the main thread; for commands, not for libraries.

    A signal that the caller ignores stays ignored (``nohup``, a shell's background job).
    """
    for number in _SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _raise)


def word(signal_: KeyboardInterrupt) -> str:
    """A command's message after a signal; it is printed once."""
    _state.is_said = True
    return "terminated" if isinstance(signal_, Terminated) else "interrupted"


def leave() -> None:
    """End the process now if a signal ended the command: the interpreter's shutdown may take too long."""
    if _state.received is not None:
        _end(_state.received)


def watch() -> None:
    """Start the second thread. Live runs start it later: only a process with one thread can enter a user namespace."""
    if _state.is_watched or signal.getsignal(signal.SIGTERM) is not _raise:
        return
    _state.is_watched = True
    told, tell = os.pipe()
    os.set_blocking(tell, False)
    signal.set_wakeup_fd(tell, warn_on_full_buffer=False)
    threading.Thread(target=_wait, args=(told,), name="signals", daemon=True).start()


@contextmanager
def whole_step() -> Iterator[None]:
    """Do not end the process inside this block; the exception of a signal is raised after it."""
    _state.swaps += 1
    try:
        yield
    finally:
        _state.swaps -= 1
        if _state.held is not None and not _state.swaps:
            number, _state.held = _state.held, None
            _raise(number, None)


@contextmanager
def explained(remark: str | None) -> Iterator[None]:
    """Print a remark (no control characters) if a signal ends this block, even if it has no time to unwind."""
    _state.remark = remark
    try:
        yield
    except KeyboardInterrupt:
        told, _state.remark = _state.remark, None
        if told is not None:
            os.write(2, f"{told}\n".encode())
        raise
    finally:
        _state.remark = None


def end(number: int) -> None:
    """End the process now, without unwinding; has no effect inside of :func:`whole_step`."""
    if not _state.swaps:
        _end(number)


def _raise(number: int, _frame: FrameType | None) -> None:
    """The handler of signals.

    Raises:
        KeyboardInterrupt: Always, except inside of :func:`whole_step`.
    """
    _state.received = number
    if _state.swaps:
        _state.held = number
        return
    raise Terminated if number == signal.SIGTERM else KeyboardInterrupt


def _wait(told: int) -> None:
    """Wait for a signal, give the command time to unwind, then end the process."""
    while True:
        number = os.read(told, 1)[0]
        if number in _SIGNALS:
            break
    time.sleep(PATIENCE_S)
    while _state.swaps:
        time.sleep(0.005)
    _end(number)


def _end(number: int) -> NoReturn:
    import contextlib

    from anabranch.files import owner

    owner.abandon()
    if _state.remark is not None:
        with contextlib.suppress(OSError):
            os.write(2, f"{_state.remark}\n".encode())
    if not _state.is_said:
        # The command had no time to print the message.
        with contextlib.suppress(OSError):
            os.write(2, b"error: terminated\n" if number == signal.SIGTERM else b"error: interrupted\n")
    os._exit(128 + number)
