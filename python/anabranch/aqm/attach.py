"""Attach a queue to a device, for good or until it is confirmed."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from anabranch import _engine
from anabranch.convert import tc_units
from anabranch.convert.content import Text
from anabranch.convert.shell_words import Word
from anabranch.errors import UserError, nearest, require_linux
from anabranch.text import quantity

DEFAULT_WAIT_S = 60
"""The usual time for a confirmation."""
LONGEST_WAIT_S = 86_400
"""The longest time for a confirmation."""

_HOLDER = """\
import os, sys, time
link, end, path = int(sys.argv[1]), float(sys.argv[2]), sys.argv[3]
while time.monotonic() < end and not os.path.exists(path):
    with open(f"/proc/self/fdinfo/{link}") as told:
        if "\\nifindex:\\t0\\n" in told.read() + "\\n":
            break
    time.sleep(0.25)
"""
"""A process that holds the link until the time is over, the link is pinned, or the link is detached."""


@dataclass(frozen=True)
class Attached:
    """What :func:`attach` did.

    Attributes:
        mounted: Where a BPF file system was mounted, if it was.
        seconds: The time that is left to confirm it, if it has to be.
    """

    mounted: str | None
    seconds: float | None = None


def refusal(error: ValueError) -> UserError:
    """The engine's message; the part after its first semicolon is advice."""
    message, _, hint = str(error).partition("; ")
    return UserError(message, hint=hint or None)


def options_of(sets: Iterable[str]) -> dict[str, Any]:
    """Options as ``KEY=VALUE``: a number, ``true`` or ``false`` is one, and any other value is text.

    Raises:
        UserError: A text has no ``=``, or a number is not finite.
    """
    options: dict[str, Any] = {}
    for text in sets:
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise UserError(f"--set {text}: KEY=VALUE was expected, e.g. --set min_threshold='20 packets'")
        try:
            read = json.loads(value)
        except ValueError:
            read = value
        if isinstance(read, float) and not math.isfinite(read):
            raise UserError(f"--set {text}: {key} is no finite number")
        options[key] = read if isinstance(read, (bool, int, float, str)) else value
    return options


def scenario_rate(text: str) -> str:
    """A rate as scenario files spell it; one with a unit of ``tc`` is converted, any other text is returned."""
    if quantity.read(text) is not None:
        return text
    try:
        return f"{int(tc_units.rate(Text('--rate', text), Word(text, 0)))} bit/s"
    except UserError:
        return text


def attach(
    device: str, kind: str, rate: str, sets: Iterable[str] = (), *, confirm_within: int | None = DEFAULT_WAIT_S
) -> Attached:
    """Attach a queue to the egress of a device.

    Args:
        device: Its name.
        kind: The queue, as in a scenario.
        rate: Rate of the virtual link, e.g. ``"100 Mbit/s"``, or ``tc``'s ``"100mbit"``.
        sets: Parameters of the queue, as ``KEY=VALUE``.
        confirm_within: Seconds after which the queue is removed unless it is confirmed; ``None`` keeps it.

    Raises:
        UserError: The device, the kind, a value or the privilege is missing or wrong.
    """
    require_linux("a queue at a device")
    kinds = json.loads(_engine.aqm_kinds())["kinds"]
    if kind not in kinds:
        raise UserError(f'no queue "{kind}" has a program for the kernel', hint=nearest(kind, kinds))
    if confirm_within is not None and not 1 <= confirm_within <= LONGEST_WAIT_S:
        raise UserError(
            f"--confirm-within {confirm_within} is out of range; expected from 1 to {LONGEST_WAIT_S} seconds"
        )
    try:
        link, told = _engine.aqm_attach(device, kind, scenario_rate(rate), json.dumps(options_of(sets)), confirm_within)
    except _engine.AqmError as error:
        raise refusal(error) from None
    result = json.loads(told)
    if link is None or confirm_within is None:
        return Attached(result["mounted"])
    end = result["deadline_ns"] / 1e9
    try:
        _hold(link, end, result["path"], device)
    finally:
        os.close(link)
    return Attached(result["mounted"], max(0.0, end - time.monotonic()))


def _hold(link: int, end: float, path: str, device: str) -> None:
    """Start the process that holds the link until a time of the monotonic clock.

    Its session is its own, so that the end of a login does not end it.
    """
    words = [sys.executable, "-I", "-S", "-c", _HOLDER, str(link), str(end), path, f"anabranch aqm: {device}"]
    null = subprocess.DEVNULL
    process = subprocess.Popen(  # noqa: S603
        words, pass_fds=(link,), start_new_session=True, stdin=null, stdout=null, stderr=null, cwd="/"
    )
    # It outlives this process on purpose.
    process.returncode = 0


def confirm(device: str) -> bool:
    """Keep a device's queue; returns whether it had yet to be confirmed.

    Raises:
        UserError: No queue is attached, or the privilege is missing.
    """
    require_linux("a queue at a device")
    try:
        return _engine.aqm_confirm(device)
    except _engine.AqmError as error:
        raise refusal(error) from None


def detach(device: str) -> None:
    """Remove a device's queue, and all that belongs to it.

    Raises:
        UserError: No queue is attached, or the privilege is missing.
    """
    require_linux("a queue at a device")
    try:
        _engine.aqm_detach(device)
    except _engine.AqmError as error:
        raise refusal(error) from None
