"""Errors that a congestion control in Python raised, with the place in the user's file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import NamedTuple

from anabranch.control import CongestionControl


class Place(NamedTuple):
    """The innermost method of a control in a traceback."""

    control: str
    method: str
    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.control}.{self.method}, {Path(self.file).name}:{self.line}"


def place_of(error: BaseException) -> Place | None:
    """The method of a control that raised an error; ``None`` if no method of a control is in its traceback."""
    found, trace = None, error.__traceback__
    while trace is not None:
        control = _control_of(trace.tb_frame)
        if control is not None:
            code = trace.tb_frame.f_code
            found = Place(control.__name__, code.co_name, code.co_filename, trace.tb_lineno)
        trace = trace.tb_next
    return found


def described(error: BaseException, controls: Sequence[type] = ()) -> str:
    """An error of a control in one line: its type, message, class, method, file and line.

    Args:
        error: The error.
        controls: The controls that may have raised it, if its traceback does not show which.
    """
    text = " ".join(str(error).split())
    told = f"{type(error).__name__}: {text}" if text else type(error).__name__
    place = place_of(error)
    if place is None:
        # The engine raises these errors after a call, when it reads the attributes.
        names = " or ".join(control.__name__ for control in controls)
        is_named = any(control.__name__ in text for control in controls)
        return told if is_named or not names else f"{told} ({names})"
    if isinstance(error, NotImplementedError) and place.file == CongestionControl.on_ack.__code__.co_filename:
        return f"{type(error).__name__}: {place.control} has no method {place.method}"
    return f"{told} ({place})"


def _control_of(frame: FrameType) -> type | None:
    """The class of the control whose method a frame runs."""
    code = frame.f_code
    first = frame.f_locals.get(code.co_varnames[0]) if code.co_argcount else None
    return type(first) if isinstance(first, CongestionControl) else None
