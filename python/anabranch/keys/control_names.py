"""Valid names of congestion controls written in Python."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from anabranch.errors import UserError
from anabranch.text import shown

if TYPE_CHECKING:
    from anabranch.control import CongestionControl

_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")


def check_names(controls: Sequence[type[CongestionControl]]) -> None:
    """Refuse a control without a name, or with one that is invalid or taken.

    Raises:
        UserError: It has none, one in another spelling, or one that is taken.
    """
    from anabranch import _engine
    from anabranch.control import CongestionControl

    taken = {entry["name"] for entry in json.loads(_engine.registry()) if entry["kind"] == "cc"}
    for control in controls:
        if not (isinstance(control, type) and issubclass(control, CongestionControl)):
            raise UserError(f"{shown.python(control)} is no class that derives from CongestionControl")
        name = getattr(control, "name", None)
        if not (isinstance(name, str) and _NAME.fullmatch(name)):
            raise UserError(
                f"{control.__name__}.name is {shown.python(name)}",
                hint='expected small letters, digits and single hyphens: name = "my-reno"',
            )
        if name in taken:
            raise UserError(f"{control.__name__}.name is {name!r}, which is taken", hint="give it another name")
        taken.add(name)
