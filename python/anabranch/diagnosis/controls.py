"""The congestion control of a connection in words."""

from __future__ import annotations

from anabranch.diagnosis.document import Connection, Control

TITLES = {
    "cubic": "CUBIC",
    "reno": "Reno",
    "bbr": "BBR",
    "bbr3": "BBR version 3",
    "vegas": "Vegas",
    "westwood-plus": "Westwood+",
    "dctcp": "DCTCP",
    "htcp": "H-TCP",
    "illinois": "Illinois",
    "yeah": "YeAH",
    "bic": "BIC",
}
"""The names in sentences."""


def control_of(connection: Connection) -> Control | None:
    """The verdict about the sender of the direction with more data; ``None`` without a model of the path."""
    path = connection["path"]
    return path["flow"]["control"] if path else None


def control_text(connection: Connection) -> str | None:
    """The verdict, if there is one."""
    control = control_of(connection)
    if control is None or control["verdict"] == "undecided":
        return None
    if control["name"] is None:
        return f"none of {len(TITLES)} known ones"
    return TITLES[control["name"]]


def evidence_text(control: Control) -> str:
    """The evidence for a verdict, or the controls that remain."""
    named = " or ".join(TITLES[name] for name in control["candidates"])
    return " ".join([*([f"{named}."] if named else []), *control["evidence"]])
