"""Names of arguments in messages: the name in Python, or the option of the ``anabranch`` command."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_OPTIONS = {"samples_ms": "samples", "snap_length": "snaplen", "captures": "pcap",
            "directory": "out", "save_to": "save-to", "source": "from", "target": "to"}  # fmt: skip
"""Options whose names differ from the arguments'; the others have the arguments' names."""

_IN_COMMAND: ContextVar[bool] = ContextVar("in_command", default=False)


@contextmanager
def by_option() -> Iterator[None]:
    """Name arguments by their options inside this block."""
    token = _IN_COMMAND.set(True)
    try:
        yield
    finally:
        _IN_COMMAND.reset(token)


def in_command() -> bool:
    """Whether arguments are named by their options."""
    return _IN_COMMAND.get()


def argument(name: str, value: object = None) -> str:
    """An argument, with its value if given: ``seed=3``, or ``--seed 3`` in the command."""
    if in_command():
        option = f"--{_OPTIONS.get(name, name)}"
        return option if value is None else f"{option} {value}"
    return name if value is None else f"{name}={value}"


def grid(path: str, values: str) -> str:
    """Values of one path of a grid, as an argument or option."""
    return f"--grid {path}={values}" if in_command() else f'grid={{"{path}": [{values}]}}'
