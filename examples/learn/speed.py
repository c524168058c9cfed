"""Steps of the environment per second of processor time, with a policy that keeps the path full."""

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anabranch.learn import CongestionEnv, Path

EPISODES, STEPS = 5, 200
PATHS = {
    "drawn paths": None,
    "10 Mbit/s, 40 ms": Path(10, 20),
    "1 Gbit/s, 40 ms": Path(1000, 20),
}


def policy(observation: NDArray[Any]) -> NDArray[Any]:
    """Halve after a loss, shrink above a fifth of a round trip in the queue, else grow."""
    return np.array([-1 if observation[2] > 0 else -0.15 if observation[0] > 0.2 else 0.3], dtype=np.float32)


for name, path in PATHS.items():
    env = CongestionEnv() if path is None else CongestionEnv(path)
    began = time.process_time()
    for seed in range(EPISODES):
        observation = env.reset(seed=seed)[0]
        for _ in range(STEPS):
            observation = env.step(policy(observation))[0]
    env.close()
    print(f"{name}: {EPISODES * STEPS / (time.process_time() - began):,.0f} steps/s")  # noqa: T201
