"""Live runs: the same scenario in real time, with the kernel's TCP at both ends."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass
from typing import TYPE_CHECKING, TypedDict

from anabranch.files.capture import SNAP_LENGTH

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from anabranch.errors import UserError
    from anabranch.result.result import LiveRunResult, Run, RunResult
    from anabranch.result.summary import LiveProgram, LiveSummary
    from anabranch.scenario import Scenario


BUSY = 0.9
"""From this share of a processor on, the engine's thread has no time left."""

MAX_TAINTED = 0.1
"""Largest share of tainted runs among all live runs of a validation or a study."""


@dataclass(frozen=True)
class Limits:
    """Required precision of a live run. A run beyond a limit is *tainted* and has no result.

    Attributes:
        p99_lateness_ms: 99th percentile of packets' lateness on leaving the engine, in milliseconds.
        max_lateness_ms: Largest lateness of one packet, in milliseconds.
        io_drops: Packets that may have been lost between kernel and engine.
    """

    p99_lateness_ms: float = 2.0
    max_lateness_ms: float = 20.0
    io_drops: int = 0


class Machine(TypedDict, total=False):
    """The kernel and the processors of live runs."""

    kernel: str
    machine: str
    processors: int


TRACES = ("acks", "events", "off")
"""Levels of a trace of the kernel's TCP: every acknowledgment; only retransmissions and changes of the congestion
state; nothing."""


def _tracing(trace: str | None, wish: str) -> tuple[str, bool]:
    """The engine's arguments: the level (default: ``wish``), and whether a run without a trace is an error.

    Raises:
        UserError: There is no such trace.
    """
    from anabranch.errors import UserError, nearest

    if trace is None:
        return wish, False
    if trace not in TRACES:
        raise UserError(f'there is no trace "{trace}"', hint=nearest(trace, TRACES))
    return trace, True


def prepare(otherwise: str = "") -> None:
    """Make sure that this process may run live.

    Without the right to make network namespaces, the process moves into a new user namespace. That requires a single
    thread, so call this before anything that starts one.

    Args:
        otherwise: An alternative to suggest if the machine does not permit live runs.

    Raises:
        UserError: The machine does not permit it.
    """
    from anabranch import _engine

    try:
        _engine.prepare_live()
    except _engine.LiveUnavailableError as error:
        raise unavailable(error, otherwise) from None


def unavailable(error: Exception, otherwise: str = "") -> UserError:
    """The error for a machine that does not permit live runs, with a remedy.

    Args:
        error: The engine's error, with the missing right and its remedy.
        otherwise: An alternative that always works.
    """
    from anabranch.errors import UserError

    what, hint = (*map(str, error.args), "", "")[:2]
    hints = [one for one in (hint, otherwise) if one]
    return UserError(f"this machine does not permit live runs: {what}", hint="; or ".join(hints) or None)


def check(
    text: str, file: str, sets: list[str], seed: int | None = None, *, machine: bool = False, guest: bool = False
) -> float:
    """The duration of a live run, in seconds.

    Args:
        text: The scenario.
        file: The name of its file.
        sets: Changes over it, as ``PATH=VALUE``.
        seed: The seed; default: the scenario's.
        machine: Check also whether this machine can run it.
        guest: Check also whether a kernel in virtual time can run it.

    Raises:
        ScenarioError: The scenario is wrong or needs a feature that no live run has. With ``machine``: it needs a
            congestion control that this kernel neither has nor loads. With ``guest``: it needs an eBPF control or an
            interface of this machine.
        UserError: This machine or this build cannot run live.
    """
    from anabranch import _engine

    try:
        return _engine.check_live(text, file, sets, seed, machine=machine, guest=guest)
    except _engine.LiveUnavailableError as error:
        raise unavailable(error) from None


def first_send_buffer(scenario: Scenario) -> int | None:
    """Initial send buffer of an application of ours live, in bytes; ``None`` if this build cannot run live.

    Raises:
        ScenarioError: The scenario is wrong.
    """
    from anabranch import _engine

    try:
        return _engine.live_send_buffer(scenario.text, scenario._file, scenario.sets)
    except _engine.LiveUnavailableError:
        return None


class Options(TypedDict, total=False):
    """Options of :meth:`Scenario.run_live <anabranch.scenario.Scenario.run_live>`, which documents them."""

    seed: int | None
    packets: bool
    samples_ms: float | None
    captures: Sequence[str]
    snap_length: int
    limits: Limits | None
    trace: str | None
    progress: Callable[[float], None] | None


def run_live(scenario: Scenario, *, allow_tainted: bool = False, **options: Unpack[Options]) -> LiveRunResult:
    """See :meth:`Scenario.run_live <anabranch.scenario.Scenario.run_live>`."""
    from anabranch.errors import RunFailedError

    result = run_audited(scenario, **options)
    if taint(result) and not allow_tainted:
        raise RunFailedError(tainted_message(result, "allow_tainted=True gives its figures, marked"))
    return result


def run_audited(
    scenario: Scenario,
    *,
    seed: int | None = None,
    packets: bool = False,
    samples_ms: float | None = None,
    captures: Sequence[str] = (),
    snap_length: int = SNAP_LENGTH,
    limits: Limits | None = None,
    trace: str | None = None,
    virtual_time: bool = False,
    progress: Callable[[float], None] | None = None,
    otherwise: str = "",
    untraced: str = "trace=None traces where it is possible",
    make: Callable[..., Run] | None = None,
) -> LiveRunResult:
    """Like :func:`run_live`, but returns tainted runs too: call :func:`taint` before using a result.

    Args:
        scenario: The scenario.
        seed: As in :class:`Options`, like the next six.
        packets: See there.
        samples_ms: See there.
        captures: See there.
        snap_length: See there.
        limits: See there.
        trace: See there.
        virtual_time: Whether this machine's time is virtual (:mod:`anabranch.kernel`).
        progress: See there.
        otherwise: An alternative to suggest if this machine does not permit live runs.
        untraced: An alternative to suggest if it does not permit traces.
        make: Makes the run, with the engine's arguments and errors; default: the engine of this process.

    Raises:
        ScenarioError: The scenario is wrong, or needs a feature that no live run has.
        UserError: This machine or this build cannot run live.
        RunFailedError: The run failed.
    """
    from anabranch import _engine
    from anabranch.errors import RunFailedError
    from anabranch.keys.schema import in_words_of_python
    from anabranch.limits import check_samples, check_seed
    from anabranch.result.result import LiveRunResult

    check_seed(seed)
    check_samples(samples_ms)
    try:
        run = (make or _engine.run_live)(
            scenario.text,
            scenario._file,
            scenario.sets,
            seed=seed,
            packets=packets,
            samples_ms=samples_ms,
            captures=scenario._places(captures, snap_length, seed, live=True),
            limits=None if limits is None else astuple(limits),
            trace=_tracing(trace, wish="events" if samples_ms is None else "acks"),
            untrusted=scenario.untrusted,
            virtual_time=virtual_time,
            progress=progress,
        )
    except _engine.LiveUnavailableError as error:
        is_trace = isinstance(error, _engine.UntraceableError)
        raise unavailable(error, untraced if is_trace else otherwise) from None
    except _engine.ScenarioError as error:
        raise in_words_of_python(error, scenario) from None
    except RunFailedError:
        raise
    except RuntimeError as error:
        raise RunFailedError(f"the live run failed: {error}") from None
    return LiveRunResult(run, _recorded(LiveRunResult(run), samples_ms=samples_ms, packets=packets))


def _recorded(result: RunResult, *, samples_ms: float | None, packets: bool) -> tuple[str, ...]:
    """The tables that a live run recorded: windows and their changes always, the others on request."""
    from anabranch.result.result import PACKETS, SAMPLES

    live = result.live
    acks = live is not None and live.get("trace", {}).get("detail") == "acks"
    return (
        "samples",
        "window_events",
        *(SAMPLES if samples_ms is not None else ()),
        *(PACKETS if packets else ()),
        *(("ack_samples",) if acks else ()),
    )


def check_host(scenario: Scenario, host: str) -> None:
    """Reject a host in which no shell can be opened.

    Raises:
        ScenarioError: The scenario is wrong.
        UserError: No flow begins or ends there.
    """
    from anabranch import _engine
    from anabranch.errors import UserError, nearest

    resolved = json.loads(_engine.resolve(scenario.text, scenario.file, scenario.sets, None, True))["resolved_scenario"]
    hosts = dict.fromkeys(flow[end] for flow in resolved["flow"].values() for end in ("from", "to"))
    if host in hosts:
        return
    links = [*resolved.get("link", {}).values(), *resolved.get("group", {}).values()]
    nodes = {node for link in links for node in link["between"]}
    nodes.update(node for gateway in resolved.get("gateway", {}).values() for node in gateway["between"])
    if host in nodes:
        raise UserError(
            f'no flow begins or ends at "{host}", so there is no host, only a place that packets pass',
            hint=f"valid: {', '.join(hosts)}",
        )
    raise UserError(f'{scenario.file} has no host "{host}"', hint=nearest(host, hosts))


def check_program(command: Sequence[str]) -> None:
    """Reject a program that is known not to start.

    Raises:
        UserError: The program cannot be started.
    """
    from anabranch import _engine
    from anabranch.errors import UserError

    hindrance = _engine.live_program_hindrance(list(command))
    if hindrance is not None:
        message, hint = hindrance
        raise UserError(message, hint=hint)


def shell(scenario: Scenario, host: str, command: list[str], remark: Callable[[str], None]) -> int:
    """Run a program with the terminal inside a host of the scenario. The network exists until the program ends.

    The other hosts' programs run meanwhile. SIGINT goes to the program. Any other interruption of this call, such as a
    SIGTERM that ends a command, ends the program too: with SIGTERM, and with SIGKILL half a second later.

    Args:
        scenario: The network. Its flows define the routes of packets and send nothing themselves.
        host: The host of the program.
        command: The program and its arguments; :func:`check_program` has checked it.
        remark: Called with remarks on the run.

    Returns:
        Its exit status; 1 if a signal ended it.

    Raises:
        ScenarioError: The scenario is wrong, or has no such host.
        UserError: This machine or this build cannot run live.
        RunFailedError: The program could not be started after all, or something failed in mid-run.
    """
    import signal

    from anabranch import _engine

    # Ctrl-C is the program's. A handler is needed: a started program would inherit an ignored signal.
    before = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        return status_of(scenario, host, command, remark, _engine.run_live)
    finally:
        signal.signal(signal.SIGINT, before)


def status_of(
    scenario: Scenario, host: str, command: list[str], remark: Callable[[str], None], make: Callable[..., Run]
) -> int:
    """Run a program inside a host, like :func:`shell`.

    Args:
        scenario: As in :func:`shell`, like the next three.
        host: See there.
        command: See there.
        remark: See there.
        make: Makes the run, with the engine's arguments and errors.

    Returns:
        See there.

    Raises:
        ScenarioError: As in :func:`shell`, like the next two.
        UserError: See there.
        RunFailedError: See there.
    """
    from anabranch import _engine
    from anabranch.errors import RunFailedError

    try:
        run = make(scenario.text, scenario._file, scenario.sets, shell=(host, command))  # noqa: S604 - it is no shell of a command line
    except _engine.LiveUnavailableError as error:
        raise unavailable(error) from None
    except RunFailedError:
        raise
    except RuntimeError as error:
        raise RunFailedError(str(error)) from None
    live = json.loads(run.summary_json)["live"]
    for told in remarks(live):
        remark(told)
    for program in live["programs"]:
        if program["host"] != host and not program["stopped"] and program["status"] != 0:
            remark(f"the program of `{program['host']}` {_how_it_ended(program)} while the shell was open")
    statuses = [program["status"] for program in live["programs"] if program["host"] == host]
    return 1 if not statuses or statuses[0] is None else int(statuses[0])


def taint(result: RunResult) -> list[str]:
    """The reasons why a live run must not be used; empty if it may be."""
    return [] if result.live is None else list(result.live["audit"]["reasons"])


def taint_advice(result: RunResult) -> str:
    """Remedies for a tainted run, by the reasons of the taint; empty for an untainted run."""
    if result.live is None or not taint(result):
        return ""
    audit = result.live["audit"]
    limits, advice = audit["limits"], []
    if any(
        late is not None and late > limit
        for late, limit in (
            (audit["p99_lateness_ms"], limits["p99_lateness_ms"]),
            (audit["p99_write_lateness_ms"], limits["p99_lateness_ms"]),
            (audit["max_lateness_ms"], limits["max_lateness_ms"]),
            (audit["max_write_lateness_ms"], limits["max_lateness_ms"]),
        )
    ):
        busy = "other programs held up the engine: run it again when the machine is less busy"
        if audit["cpu_share"] > BUSY:
            busy = "the engine needed its processor nearly all the time: give the links lower rates"
        advice.append(busy)
    if audit["io_drops"] > limits["io_drops"]:
        advice.append("more packets came at once than the machine took: give the links lower rates, or run it again")
    if audit["merged_packets"]:
        advice.append("switch offloading off at the interfaces and at their peers, as the reason says")
    return "; ".join(advice)


def tainted_message(result: RunResult, otherwise: str) -> str:
    """The message that a run is tainted and has no result, with the reasons and remedies.

    Args:
        result: The run.
        otherwise: How to see its figures nevertheless.
    """
    told = "the live run is tainted and has no result: " + "; ".join(taint(result))
    return "\n  ".join([told, *filter(None, [taint_advice(result)]), otherwise])


def hosts_of(scenario: Scenario) -> list[tuple[str, str, str, list[str] | None]]:
    """The hosts of a live scenario: name, IPv4 address, IPv6 address, and the host's program.

    Raises:
        ScenarioError: The scenario is wrong.
        UserError: This build cannot run live.
    """
    from anabranch import _engine

    try:
        return _engine.live_hosts(scenario.text, scenario._file, scenario.sets)
    except _engine.LiveUnavailableError as error:
        raise unavailable(error) from None


def _how_it_ended(program: LiveProgram) -> str:
    return "was ended by a signal" if program["status"] is None else f"ended with status {program['status']}"


def remarks(live: LiveSummary) -> list[str]:
    """Remarks on the environment of a run's programs."""
    nameless = [f"`{program['host']}`" for program in live["programs"] if not program["names"]]
    told = [uncontained(live)]
    if nameless:
        told.append(
            f"this machine gives no mount namespace to the programs of {', '.join(nameless)}: hosts have no names "
            "there, only addresses"
        )
    return [one for one in told if one]


def uncontained(live: LiveSummary) -> str:
    """A remark on programs that ran without a separate PID namespace; empty if all had one."""
    hosts = [f"`{program['host']}`" for program in live["programs"] if not program["contained"]]
    return (
        f"this machine gives no PID namespace to the programs of {', '.join(hosts)}: processes that they started in a "
        "separate session may still run"
        if hosts
        else ""
    )
