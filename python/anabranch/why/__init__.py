"""Why packets were retransmitted: each retransmission's trigger, whether it was needed, its effect on the window."""

from anabranch.why.episodes import Episode, FlowWhy, Why, inspect
from anabranch.why.retransmissions import Retransmission
from anabranch.why.window import WindowEvent

__all__ = ["Episode", "FlowWhy", "Retransmission", "Why", "WindowEvent", "inspect"]
