"""Why packets were retransmitted: each retransmission's trigger, whether it was needed, and the window's events."""

from anabranch.why.episodes import Episode, FlowWhy, Why, inspect
from anabranch.why.retransmissions import Retransmission
from anabranch.why.window import WindowEvent

__all__ = ["Episode", "FlowWhy", "Retransmission", "Why", "WindowEvent", "inspect"]
