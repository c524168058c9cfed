"""Runs of scenarios with the TCP of a Linux kernel in virtual time."""

from __future__ import annotations

import json
import pickle
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anabranch.errors import RunFailedError
from anabranch.kernel.folders import Surroundings, settle
from anabranch.kernel.images import chosen
from anabranch.kernel.machine import Job
from anabranch.kernel.output import passed_on, piped

if TYPE_CHECKING:
    from anabranch.result import RunResult
    from anabranch.scenario import Scenario

REQUEST, ANSWER, PROGRESS = "request", "answer", "progress"
"""Files of the job: what the guest is to run, what came of it, and the share that is done."""
_DRAIN_S = 600.0
"""Virtual time that a run may take beyond its duration."""
_STEP = 0.005
"""Progress is written in steps of this share."""


def run(
    scenario: Scenario,
    *,
    kernel: str | None = None,
    progress: Callable[[float], None] | None = None,
    **options: Any,
) -> RunResult:
    """Run a scenario once in a kernel of its own.

    Args:
        scenario: The scenario.
        kernel: The kernel, as of :func:`anabranch.kernel.images.chosen`.
        progress: Called with the finished share (0‥1).
        options: As of :meth:`Scenario.run_live <anabranch.scenario.Scenario.run_live>`.

    Raises:
        ScenarioError: The scenario is wrong, or asks for what no live run can do.
        UserError: There is no such kernel.
        RunFailedError: The kernel or the run failed.
    """
    from anabranch.live import hosts_of

    image = chosen(kernel)
    with Job() as job:
        (job.folder / REQUEST).write_bytes(pickle.dumps((scenario, options)))
        command = [sys.executable, "-m", "anabranch.kernel.engine", str(Job.INSIDE)]
        resolved = resolved_live(scenario, options.get("seed"))
        Surroundings.here(for_programs=any(program for *_, program in hosts_of(scenario))).leave(job.folder)
        with passed_on(job.folder, err=2):
            ended = job.run(
                image, command, seed=resolved["seed"], limit_s=resolved["duration_s"] + _DRAIN_S, progress=progress
            )
        try:
            kind, answer = pickle.loads((job.folder / ANSWER).read_bytes())  # noqa: S301 - our own process wrote it
        except (OSError, EOFError, pickle.UnpicklingError):
            last = ended.err.strip().splitlines()[-1:] or ["it printed nothing"]
            raise RunFailedError(
                f"the run in the kernel {image.release} ended with {ended.status}: {last[0]}"
            ) from None
    if kind == "error":
        raise answer
    result: RunResult = answer
    return result


def resolved_live(scenario: Scenario, seed: int | None = None) -> Any:
    """The scenario with all defaults, as for a live run: the simulator refuses programs."""
    from anabranch import _engine

    return json.loads(_engine.resolve(scenario.text, scenario.file, scenario.sets, seed, True))


def _inside(folder: Path) -> None:
    """In the guest: make the run and leave the result or the error."""
    from anabranch.errors import UserError
    from anabranch.live import run_audited

    settle(folder)
    scenario, options = pickle.loads((folder / REQUEST).read_bytes())  # noqa: S301 - our own process wrote it
    told = -_STEP

    def progress(share: float) -> None:
        nonlocal told
        if share - told >= _STEP or share >= 1:
            told = share
            (folder / PROGRESS).write_text(f"{share:.3f}", "ascii")

    try:
        with piped(2):
            result = run_audited(scenario, **options, trace="off", virtual_time=True, progress=progress)
        answer: tuple[str, Any] = ("result", result)
    except (UserError, RunFailedError, ValueError) as error:
        answer = ("error", error)
    new = folder / f"{ANSWER}.new"
    new.write_bytes(pickle.dumps(answer))
    new.rename(folder / ANSWER)


if __name__ == "__main__":
    _inside(Path(sys.argv[1]))
