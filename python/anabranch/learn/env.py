"""The environment of Gymnasium; ``gymnasium.make("anabranch.learn.env:anabranch/Congestion-v0")`` makes one, too."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from anabranch.errors import UserError
from anabranch.extras import need
from anabranch.learn.session import MAX_PACKETS, MIN_PACKETS, Path, Session, Step

need("gymnasium", "the environment for learners")

import gymnasium  # noqa: E402 - the message for a missing package comes first

ID = "anabranch/Congestion-v0"
STEPS = 200
"""Steps of an episode."""
DELAY_WEIGHT, LOSS_WEIGHT = 0.5, 5.0
"""Weights of the queueing delay, in round trips without a queue, and of the share lost, in the reward."""
_MOST_DELAY = 10.0
"""Largest queueing delay of an observation, in round trips without a queue."""

Observation = NDArray[np.float32]
Draw = Callable[[np.random.Generator], Path]


def drawn_path(random: np.random.Generator) -> Path:
    """A path of 5 to 50 Mbit/s, 5 to 50 ms one way, and a queue of 0.5 to 2 BDP; rate and delay log-uniform."""
    rate, delay = (float(np.exp(random.uniform(math.log(5), math.log(50)))) for _ in range(2))
    return Path(rate, delay, buffer_bdp=float(random.uniform(0.5, 2)))


class CongestionEnv(gymnasium.Env[Observation, NDArray[np.float32]]):
    """The congestion window of one flow, set once for each round trip.

    **Action**: a number from −1 to 1; the window is multiplied by two to its power. Nothing else changes the window,
    except a timeout, which sets it to one segment.

    **Observation**: eight numbers of the step that has ended:

    0. queueing delay: mean round-trip time ÷ smallest − 1, at most 10;
    1. delivery rate ÷ the largest of the episode;
    2. share of octets lost;
    3. share of octets marked Congestion Experienced;
    4. data in flight ÷ window;
    5. log₂ of the window in packets ÷ 16;
    6. log₁₀ of the smallest round-trip time in ms ÷ 4;
    7. the last action.

    **Reward**: delivery rate ÷ the path's rate, − 0.5 × queueing delay (at most 1), − 5 × share lost. A full path
    with an empty queue is worth about 0.96 per step: the delivery rate counts payload, the path's rate whole packets.

    An episode is truncated after ``steps`` steps and never terminates.

    Args:
        path: The path, or a function that draws one for each episode.
        steps: Steps of an episode.
        every: The end of a step: ``"rtt"``, or a number of acknowledgments.

    Raises:
        UserError: ``steps`` or ``every`` is out of range, or gymnasium is not installed.
    """

    metadata = {"render_modes": []}  # noqa: RUF012 - Gymnasium declares it for instances

    def __init__(
        self, path: Path | Draw = drawn_path, *, steps: int = STEPS, every: Literal["rtt"] | int = "rtt"
    ) -> None:
        if steps < 1:
            raise UserError(f"steps is {steps}; expected 1 or more")
        if every != "rtt" and (not isinstance(every, int) or every < 1):
            raise UserError(f'every is {every!r}; expected "rtt", or a number of acknowledgments')
        low = np.array([0, 0, 0, 0, 0, 0, 0, -1], dtype=np.float32)
        high = np.array([_MOST_DELAY, 1, 1, 1, 1, 1, 1, 1], dtype=np.float32)
        self.observation_space = gymnasium.spaces.Box(low, high, dtype=np.float32)
        self.action_space = gymnasium.spaces.Box(-1, 1, (1,), dtype=np.float32)
        self.render_mode = None
        self._draw: Draw = (lambda _: path) if isinstance(path, Path) else path
        self._most = steps
        self._every: Literal["rtt"] | int = every
        self._session: Session | None = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Begin an episode, and run its first step with the initial window.

        Args:
            seed: Seed of the paths and of the runs of this and the next episodes.
            options: ``{"path": Path(…)}`` replaces the drawn path.
        """
        super().reset(seed=seed)
        self.close()
        drawn = self._draw(self.np_random)
        self.path: Path = (options or {}).get("path", drawn)
        seed_of_run = int(self.np_random.integers(1, 1 << 32))
        self._session = Session(self.path.scenario(), seed_of_run, self._every)
        self._steps, self._action, self._best = 0, 0.0, 0.0
        step = self._session.first()
        if step is None:
            raise RuntimeError("the run ended in its first step")
        self._last = step
        return self._observe(step), self._info(step)

    def step(self, action: NDArray[np.float32]) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Set the window and run one step."""
        if self._session is None:
            raise gymnasium.error.ResetNeeded("call reset() first")
        given = np.asarray(action, dtype=np.float64).reshape(-1)
        if given.size != 1:
            raise UserError(
                f"the action has {given.size} numbers; expected 1", hint="an action is a number from -1 to 1"
            )
        self._action = float(np.clip(given[0], -1, 1))
        if math.isnan(self._action):
            raise UserError("the action is not a number", hint="an action is a number from -1 to 1")
        packets = self._last.cwnd / self._last.smss * 2.0**self._action
        step = self._session.advance(min(max(packets, MIN_PACKETS), MAX_PACKETS))
        self._steps += 1
        if step is None:
            return self._observe(self._last), 0.0, False, True, self._info(self._last)
        self._last = step
        return self._observe(step), self._reward(step), False, self._steps >= self._most, self._info(step)

    def close(self) -> None:
        """End the run."""
        if self._session is not None:
            self._session.close()
            self._session = None

    def _observe(self, step: Step) -> Observation:
        rate = _rate(step)
        self._best = max(self._best, rate)
        sent = step.delivered + step.lost
        values = (
            min(_delay(step), _MOST_DELAY),
            rate / self._best if self._best else 0.0,
            step.lost / sent if sent else 0.0,
            min(step.ce_marked / step.delivered, 1.0) if step.delivered else 0.0,
            min(step.in_flight / step.cwnd, 1.0),
            min(max(math.log2(step.cwnd / step.smss), 0.0) / 16, 1.0),
            min(max(math.log10(max(step.min_rtt_s, 1e-6) * 1000), 0.0) / 4, 1.0),
            self._action,
        )
        return np.array(values, dtype=np.float32)

    def _reward(self, step: Step) -> float:
        sent = step.delivered + step.lost
        used = _rate(step) * 8 / (self.path.rate_mbit_s * 1e6)
        lost = step.lost / sent if sent else 0.0
        return used - DELAY_WEIGHT * min(_delay(step), 1.0) - LOSS_WEIGHT * lost

    def _info(self, step: Step) -> dict[str, Any]:
        return {
            "time_s": step.time_s,
            "cwnd_packets": step.cwnd / step.smss,
            "delivery_rate_mbit_s": _rate(step) * 8 / 1e6,
            "rtt_ms": step.rtt_s * 1000,
            "lost_bytes": step.lost,
            "timeouts": step.timeouts,
            "rate_mbit_s": self.path.rate_mbit_s,
        }


def _rate(step: Step) -> float:
    """Delivered octets per second."""
    return step.delivered / step.duration_s if step.duration_s > 0 else 0.0


def _delay(step: Step) -> float:
    """Queueing delay in round trips without a queue."""
    return max(step.rtt_s / step.min_rtt_s - 1, 0.0) if step.min_rtt_s > 0 and step.rtt_s > 0 else 0.0


def make_vec(count: int, *, processes: bool = False, **options: Any) -> gymnasium.vector.VectorEnv[Any, Any, Any]:
    """Several environments as one.

    Args:
        count: Their number.
        processes: Whether each has a separate process; else they take turns in this one.
        options: Arguments of :class:`CongestionEnv`.
    """
    mode = "async" if processes else "sync"
    return gymnasium.make_vec(ID, num_envs=count, vectorization_mode=mode, **options)


if ID not in gymnasium.registry:
    gymnasium.register(ID, entry_point="anabranch.learn.env:CongestionEnv")
