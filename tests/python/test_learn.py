"""Congestion control as an environment: Gymnasium's check, determinism, and a simple policy that beats a random one."""

from __future__ import annotations

import gc
import pathlib
import re
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from anabranch.errors import UserError
from anabranch.learn.session import Path, Session

PATH = Path(rate_mbit_s=10, delay_ms=20)


def test_a_session_hands_over_each_round_trip() -> None:
    session = Session(PATH.scenario(), seed=1)
    first = session.first()
    assert first is not None
    # The first round trip carries the initial window (RFC 6928).
    assert first.cwnd / first.smss == 10
    steps = [session.advance(20) for _ in range(10)]
    session.close()
    taken = [step for step in steps if step is not None]
    assert len(taken) == 10
    assert all(step.cwnd / step.smss == 20 for step in taken[1:])
    assert all(step.duration_s == pytest.approx(0.04, rel=0.2) for step in taken[2:])
    assert taken[-1].delivered / taken[-1].duration_s * 8 / 1e6 == pytest.approx(20 * 1460 * 8 / 0.041 / 1e6, rel=0.1)


def test_a_step_may_be_a_number_of_acknowledgments() -> None:
    session = Session(PATH.scenario(), seed=1, every=3)
    first = session.first()
    step = session.advance(20)
    session.close()
    assert first is not None
    assert step is not None
    assert step.delivered <= 3 * 2 * step.smss


def test_the_end_of_the_run_is_none() -> None:
    session = Session(PATH.scenario(duration_s=0.3), seed=1)
    assert session.first() is not None
    count = 0
    while session.advance(10) is not None:
        count += 1
    assert 2 <= count <= 10
    assert session.advance(10) is None


def test_a_closed_session_leaves_no_thread() -> None:
    before = threading.active_count()
    for _ in range(5):
        session = Session(PATH.scenario(), seed=1)
        session.first()
        session.close()
        session.close()
    assert threading.active_count() <= before


def test_a_forgotten_session_leaves_no_thread() -> None:
    before = threading.active_count()
    session = Session(PATH.scenario(), seed=1)
    session.first()
    del session
    gc.collect()
    assert threading.active_count() <= before


def test_a_program_that_forgets_its_sessions_ends_well() -> None:
    """The interpreter ends while a run waits for an action."""
    text = "from anabranch.learn import Path, Session\n"
    text += "kept = [Session(Path(10, 20).scenario(), seed=n) for n in range(3)]\n"
    text += "print([one.first().cwnd > 0 for one in kept])"
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=False)  # noqa: S603 - our own
    assert (done.returncode, done.stdout, done.stderr) == (0, "[True, True, True]\n", "")


def test_an_error_of_the_run_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object, **__: object) -> None:
        raise UserError("it failed")

    monkeypatch.setattr("anabranch.scenario.Scenario.run", fails)
    session = Session(PATH.scenario(), seed=1)
    with pytest.raises(UserError, match="it failed"):
        session.first()


def env(**options: Any) -> Any:
    pytest.importorskip("gymnasium")
    from anabranch.learn import CongestionEnv

    return CongestionEnv(**options)


def test_gymnasium_accepts_the_environment() -> None:
    made = env(steps=20)
    from gymnasium.utils.env_checker import check_env

    check_env(made, skip_render_check=True)
    made.close()


def test_an_episode_is_a_function_of_its_seed() -> None:
    def episode(seed: int) -> list[float]:
        made = env(steps=30)
        found = [*made.reset(seed=seed)[0]]
        for number in range(30):
            observation, reward, *_ = made.step(np.array([0.5 if number % 3 else -0.5], dtype=np.float32))
            found += [*observation, reward]
        made.close()
        return found

    assert episode(7) == episode(7)
    assert episode(7) != episode(8)


Policy = Callable[[Any, Any], Any]


def reward(policy: Policy, seeds: range, **options: Any) -> float:
    """The mean reward of a step."""
    made = env(**options)
    total = count = 0.0
    for seed in seeds:
        observation, _ = made.reset(seed=seed)
        made.action_space.seed(seed)
        is_over = False
        while not is_over:
            observation, one, _, is_over, _ = made.step(policy(made, observation))
            total, count = total + one, count + 1
    made.close()
    return total / count


def careful(_: Any, observation: Any) -> Any:
    """Halve after a loss, shrink above a fifth of a round trip in the queue, else grow."""
    delay, lost = observation[0], observation[2]
    return np.array([-1.0 if lost > 0 else -0.15 if delay > 0.2 else 0.3], dtype=np.float32)


def test_a_simple_policy_beats_a_random_one() -> None:
    random = reward(lambda made, _: made.action_space.sample(), range(5), steps=60)
    simple = reward(careful, range(5), steps=60)
    assert simple > random + 0.3
    assert simple > 0.6


def test_environments_run_side_by_side() -> None:
    pytest.importorskip("gymnasium")
    from anabranch.learn import make_vec

    vector: Any = make_vec(3, steps=5)
    observations, _ = vector.reset(seed=1)
    assert observations.shape == (3, 8)
    # The environments have different paths.
    assert (
        len({one["rate_mbit_s"] for one in (environment.unwrapped.path.__dict__ for environment in vector.envs)}) == 3
    )
    for _ in range(7):
        observations, rewards, terminated, _, _ = vector.step(vector.action_space.sample())
        assert rewards.shape == (3,)
        assert not terminated.any()
    vector.close()


def test_the_path_may_be_given() -> None:
    made = env(path=PATH)
    _, info = made.reset(seed=1)
    assert info["rate_mbit_s"] == 10
    _, info = made.reset(options={"path": Path(rate_mbit_s=3, delay_ms=5)})
    assert info["rate_mbit_s"] == 3
    made.close()


@pytest.mark.parametrize("options", [{"steps": 0}, {"every": 0}, {"every": "ack"}, {"every": 1.5}])
def test_wrong_options_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(UserError, match="expected"):
        env(**options)


def test_an_action_that_is_no_number_is_refused() -> None:
    made = env(path=PATH)
    made.reset(seed=1)
    with pytest.raises(UserError, match="not a number"):
        made.step(np.array([np.nan], dtype=np.float32))
    made.close()


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({"loss": 1.0}, "loss is 1.0; expected a share"),
        ({"rate_mbit_s": 0}, "rate_mbit_s is 0; expected a number above 0"),
        ({"delay_ms": -1}, "delay_ms is -1; expected a number from 0"),
        ({"buffer_bdp": float("nan")}, "buffer_bdp is nan; expected a number above 0"),
    ],
)
def test_a_path_out_of_range_is_refused(values: dict[str, float], told: str) -> None:
    with pytest.raises(UserError, match=told):
        Path(**{"rate_mbit_s": 10, "delay_ms": 20, **values})


def test_an_action_of_two_numbers_is_refused() -> None:
    made = env(path=PATH)
    made.reset(seed=1)
    with pytest.raises(UserError, match="the action has 2 numbers; expected 1"):
        made.step(np.array([0.1, 0.2], dtype=np.float32))
    made.close()


def test_the_example_learns() -> None:
    """Three generations are better than chance."""
    pytest.importorskip("gymnasium")
    example = pathlib.Path(__file__).resolve().parents[2] / "examples/learn/learn.py"
    words = [sys.executable, str(example), "--generations", "3", "--episodes", "2"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)  # noqa: S603 - our own
    assert done.returncode == 0, done.stderr
    found = re.search(r"learned (-?[\d.]+), random (-?[\d.]+)", done.stdout)
    assert found is not None, done.stdout
    assert float(found[1]) > float(found[2])
