"""Why packets were retransmitted: what triggered each retransmission, whether it was needed, what the window did."""

from anabranch.why.episodes import Episode, FlowWhy, Why, inspect
from anabranch.why.retransmissions import Retransmission
from anabranch.why.window import WindowEvent

__all__ = ["Episode", "FlowWhy", "Retransmission", "Why", "WindowEvent", "inspect"]
