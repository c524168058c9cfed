"""Congestion control as an environment of Gymnasium (extra ``gym``), at the speed of the engine.

    >>> from anabranch.learn import CongestionEnv  # doctest: +SKIP
    >>> env = CongestionEnv()  # doctest: +SKIP
    >>> observation, info = env.reset(seed=1)  # doctest: +SKIP
    >>> observation, reward, terminated, truncated, info = env.step(env.action_space.sample())  # doctest: +SKIP

:mod:`anabranch.learn.env` has the environment, :mod:`anabranch.learn.session` the run that waits for its actions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from anabranch.learn.env import CongestionEnv as CongestionEnv
    from anabranch.learn.env import make_vec as make_vec
    from anabranch.learn.session import Path as Path
    from anabranch.learn.session import Session as Session
    from anabranch.learn.session import Step as Step

_PLACES = {"CongestionEnv": "env", "make_vec": "env", "Path": "session", "Session": "session", "Step": "session"}


def __getattr__(name: str) -> Any:
    """A public name; only those of ``env`` import Gymnasium."""
    import importlib

    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_PLACES[name]}"), name)
