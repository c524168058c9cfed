"""Runs of scenarios with the TCP of a Linux kernel in virtual time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from anabranch.errors import UserError
from anabranch.kernel import calls
from anabranch.kernel.images import Image, chosen
from anabranch.kernel.machine import Job
from anabranch.kernel.output import passed_on

if TYPE_CHECKING:
    from anabranch.result.result import KeptRun, LiveRunResult
    from anabranch.scenario import Scenario

_DRAIN_S = 600.0
"""Virtual time that a run may take beyond its duration."""
ENGINE = "kernel"
"""The engine's name in documents."""


def run(
    scenario: Scenario,
    *,
    kernel: str | None = None,
    seed: int | None = None,
    job: Job | None = None,
    progress: Callable[[float], None] | None = None,
    **options: Any,
) -> LiveRunResult:
    """Run a scenario once in a separate guest.

    Args:
        scenario: The scenario.
        kernel: The kernel, as in :func:`anabranch.kernel.images.chosen`; default: the scenario's.
        seed: The seed; default: the scenario's.
        job: The guest's job, for a caller that ends it from another thread.
        progress: Called with the finished share (0‥1) of the virtual time.
        options: As in :meth:`Scenario.run_live <anabranch.scenario.Scenario.run_live>`.

    Raises:
        ScenarioError: The scenario is wrong, or needs a feature that no kernel in virtual time has.
        UserError: There is no such kernel.
        RunFailedError: The kernel or the run failed.
    """
    from anabranch.limits import check_samples, check_seed

    check_seed(seed)
    check_samples(options.get("samples_ms"))
    check(scenario, seed)
    image = image_of(scenario, kernel)
    if job is not None:
        return _run(job, image, scenario, {**options, "seed": seed}, progress)
    with Job() as own:
        return _run(own, image, scenario, {**options, "seed": seed}, progress)


def image_of(scenario: Scenario, kernel: str | None = None) -> Image:
    """The kernel for a scenario: ``kernel`` if given, else the scenario's, else the default of ``chosen``.

    Raises:
        ScenarioError: The scenario is wrong.
        UserError: There is no such kernel.
    """
    return chosen(kernel or scenario.resolve(live=True)["resolved_scenario"].get("kernel"))


def check(scenario: Scenario, seed: int | None = None) -> float:
    """The duration of a run, in seconds of virtual time.

    Raises:
        ScenarioError: The scenario is wrong, or needs a feature that no kernel in virtual time has.
        UserError: This build has no live engine.
    """
    from anabranch.live import check as check_live

    if scenario.controls:
        raise UserError(
            "a kernel runs no congestion control in Python", hint="use run(), or a congestion control of the kernel"
        )
    # `check_live` assumes a valid scenario.
    scenario.resolve(seed=seed, live=True)
    return check_live(scenario.text, scenario._file, scenario.sets, seed, guest=True)


def _run(
    job: Job,
    image: Image,
    scenario: Scenario,
    options: Mapping[str, Any],
    progress: Callable[[float], None] | None,
) -> LiveRunResult:
    from anabranch.live import hosts_of, run_audited

    resolved = scenario.resolve(seed=options["seed"], live=True)
    has_programs = any(program for *_, program in hosts_of(scenario))

    def in_guest(*arguments: Any, progress: Callable[[float], None] | None, **keywords: Any) -> KeptRun:
        call, piped = (arguments, keywords), [2] if has_programs else []
        command = calls.ask(job, call=call, for_programs=has_programs, piped=piped)
        with passed_on(job.folder, err=2):
            ended = job.run(
                image, command, seed=resolved["seed"], limit_s=resolved["duration_s"] + _DRAIN_S, progress=progress
            )
        return calls.answer(job, ended, f"the run in the kernel {image.release}")

    return run_audited(scenario, **options, trace="off", virtual_time=True, progress=progress, make=in_guest)
