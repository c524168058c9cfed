"""Queues at the egress of a device: attached, confirmed, read, detached, and installed as a service."""

from __future__ import annotations

from anabranch.aqm.attach import Attached, attach, confirm, detach
from anabranch.aqm.status import metrics, status

__all__ = ["Attached", "attach", "confirm", "detach", "metrics", "status"]
