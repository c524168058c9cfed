"""Learn a congestion control with the cross-entropy method: a policy of four numbers, in about a minute.

    pip install 'anabranch[gym]'
    python examples/learn/learn.py

Each generation plays 16 policies on the same drawn paths, keeps the best four, and draws the next around their mean.
"""

import argparse
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anabranch.learn import CongestionEnv

POLICIES, BEST = 16, 4
STEPS = 60


def action(policy: NDArray[Any], observation: NDArray[Any]) -> NDArray[Any]:
    """A linear policy: growth, less for the queue, less for losses, and for the last action."""
    delay, lost, last = observation[0], observation[2], observation[7]
    growth, by_delay, by_loss, by_last = policy
    return np.array([np.tanh(growth - by_delay * delay - by_loss * lost + by_last * last)], dtype=np.float32)


def play(env: CongestionEnv, choose: Callable[[NDArray[Any]], NDArray[Any]], seed: int) -> float:
    """The mean reward of an episode."""
    observation, _ = env.reset(seed=seed)
    rewards = []
    while True:
        observation, reward, _, is_over, _ = env.step(choose(observation))
        rewards.append(reward)
        if is_over:
            return float(np.mean(rewards))


def main() -> None:
    """Print the reward of each generation, and of a random policy on paths that were not used for learning."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--generations", type=int, default=8)
    parser.add_argument("--episodes", type=int, default=4, help="paths of a generation")
    options = parser.parse_args()
    env = CongestionEnv(steps=STEPS)
    env.action_space.seed(1)
    random = np.random.default_rng(1)
    mean, spread = np.zeros(4), np.ones(4) * 2
    for generation in range(1, options.generations + 1):
        policies = mean + spread * random.standard_normal((POLICIES, 4))
        seeds = range(1000 * generation, 1000 * generation + options.episodes)
        rewards = [np.mean([play(env, partial(action, p), seed) for seed in seeds]) for p in policies]
        best = policies[np.argsort(rewards)[-BEST:]]
        mean, spread = best.mean(axis=0), best.std(axis=0) + 0.05
        print(f"generation {generation}: best {max(rewards):.2f}, mean {np.mean(rewards):.2f}")  # noqa: T201
    unseen = range(10)
    learned = np.mean([play(env, partial(action, mean), seed) for seed in unseen])
    by_chance = np.mean([play(env, lambda _: env.action_space.sample(), seed) for seed in unseen])
    print(f"on ten unseen paths: learned {learned:.2f}, random {by_chance:.2f}")  # noqa: T201
    print("policy (growth, by delay, by loss, by last action):", mean.round(2))  # noqa: T201
    env.close()


if __name__ == "__main__":
    main()
