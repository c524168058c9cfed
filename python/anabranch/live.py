"""Live runs: a scenario in real time, with the kernel's TCP at the ends."""

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
"""Share of a processor from which the engine's thread is saturated."""

MAX_TAINTED = 0.1
"""Largest permitted share of tainted runs among the live runs of a validation or a study."""


@dataclass(frozen=True)
class Limits:
    """Required accuracy of a live run; a less accurate run is *tainted* and has no result.

    Attributes:
        p99_lateness_ms: 99th percentile of packets' lateness on leaving the engine, in milliseconds.
        max_lateness_ms: Largest lateness of one packet, in milliseconds.
        io_drops: Packets that may have been lost between kernel and engine.
    """

    p99_lateness_ms: float = 2.0
    max_lateness_ms: float = 20.0
    io_drops: int = 0


TRACES = ("acks", "events", "off")
"""Contents of a trace of the kernel's TCP: every acknowledgment; changes of the congestion state and
retransmissions; nothing."""


def _tracing(trace: str | None, wish: str) -> tuple[str, bool]:
    """The engine's arguments: the trace, and whether a run without it is an error; ``wish`` is the default.

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

    Without permission to make network namespaces the process moves into a user namespace, which
    works only while it has one thread. Call this before starting a thread.

    Args:
        otherwise: An alternative to live runs, for the message.

    Raises:
        UserError: The machine does not permit it.
    """
    from anabranch import _engine

    try:
        _engine.prepare_live()
    except _engine.LiveUnavailableError as error:
        raise unavailable(error, otherwise) from None


def unavailable(error: Exception, otherwise: str = "") -> UserError:
    """The error for a machine that cannot run live, with advice.

    Args:
        error: The engine's error: the missing permission, and advice for this machine.
        otherwise: An alternative in any case.
    """
    from anabranch.errors import UserError

    what, hint = (*map(str, error.args), "", "")[:2]
    hints = [one for one in (hint, otherwise) if one]
    return UserError(f"this machine does not let us run live: {what}", hint="; or ".join(hints) or None)


def check(
    text: str, file: str, sets: list[str], seed: int | None = None, *, machine: bool = False, guest: bool = False
) -> float:
    """Duration of a live run, in seconds.

    Args:
        text: The scenario.
        file: The name of its file.
        sets: Changes over it, as ``PATH=VALUE``.
        seed: Instead of the scenario's.
        machine: Check also whether this machine can make it.
        guest: Check also whether a kernel in virtual time can make it.

    Raises:
        ScenarioError: The scenario is wrong or cannot run live; with ``machine`` it names a congestion control that
            this kernel neither has nor can load; with ``guest`` it has an eBPF control or an interface of this
            machine.
        UserError: This machine or this build cannot run live.
    """
    from anabranch import _engine

    try:
        return _engine.check_live(text, file, sets, seed, machine=machine, guest=guest)
    except _engine.LiveUnavailableError as error:
        raise unavailable(error) from None


def first_send_buffer(scenario: Scenario) -> int | None:
    """Initial size of an application's send buffer live, in bytes; ``None`` if this build cannot run live.

    Raises:
        ScenarioError: The scenario is wrong.
    """
    from anabranch import _engine

    try:
        return _engine.live_send_buffer(scenario.text, scenario._file, scenario.sets)
    except _engine.LiveUnavailableError:
        return None


class Options(TypedDict, total=False):
    """Arguments of :meth:`Scenario.run_live <anabranch.scenario.Scenario.run_live>`, which describes them."""

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
    """Run live and return the result, tainted or not: call :func:`taint` before using it.

    Args:
        scenario: The scenario.
        seed: This and the following are described at :class:`Options`.
        packets: See there.
        samples_ms: See there.
        captures: See there.
        snap_length: See there.
        limits: See there.
        trace: See there.
        virtual_time: Whether this machine's time is virtual (:mod:`anabranch.kernel`).
        progress: See there.
        otherwise: An alternative if this machine cannot run live.
        untraced: An alternative if it cannot trace.
        make: Makes the run, with the engine's arguments and errors; by default the engine of this process.

    Raises:
        ScenarioError: The scenario is wrong or cannot run live.
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
    """Refuse a host in which no shell can be opened.

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
    """Refuse a program that evidently cannot be started.

    Raises:
        UserError: It cannot be started.
    """
    from anabranch import _engine
    from anabranch.errors import UserError

    hindrance = _engine.live_program_hindrance(list(command))
    if hindrance is not None:
        message, hint = hindrance
        raise UserError(message, hint=hint)


def shell(scenario: Scenario, host: str, command: list[str], remark: Callable[[str], None]) -> int:
    """Run a program with the terminal inside a host of the scenario; the network exists until it ends.

    The other hosts' programs run meanwhile. SIGINT goes to the program. If this call ends
    otherwise, for example by SIGTERM, the program receives SIGTERM, and SIGKILL half a second
    later.

    Args:
        scenario: The network. Its flows determine the routes of packets, and send nothing themselves.
        host: The host of the program.
        command: The program and its arguments; :func:`check_program` has checked it.
        remark: Called with remarks on the run of the program.

    Returns:
        Its exit status; 1 if a signal ended it.

    Raises:
        ScenarioError: The scenario is wrong, or has no such host.
        UserError: This machine or this build cannot run live.
        RunFailedError: The program could not be started, or the run failed.
    """
    import signal

    from anabranch import _engine

    # Ctrl-C goes to the program. This is a handler, because a child process would inherit an
    # ignored signal.
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
        scenario: This and the following are described at :func:`shell`.
        host: See there.
        command: See there.
        remark: See there.
        make: Makes the run, with the engine's arguments and errors.

    Returns:
        See there.

    Raises:
        ScenarioError: See there; this and the others.
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
    """The reasons why a live run must not be used; empty if it may be used."""
    return [] if result.live is None else list(result.live["audit"]["reasons"])


def taint_advice(result: RunResult) -> str:
    """Advice on a tainted run, by the cause of the taint; empty if it is not tainted."""
    if result.live is None or not taint(result):
        return ""
    audit = result.live["audit"]
    limits, advice = audit["limits"], []
    late = {"p99_lateness_ms": "p99_write_lateness_ms", "max_lateness_ms": "max_write_lateness_ms"}
    if any(max(audit.get(kind) or 0.0, audit.get(write) or 0.0) > limits[kind] for kind, write in late.items()):  # type: ignore[call-overload]
        busy = "other programs held up the engine: run it again when the machine is less busy"
        if audit["cpu_share"] > BUSY:
            busy = "the engine needed its processor nearly all the time: give the links lower rates"
        advice.append(busy)
    if audit["io_drops"] > limits["io_drops"]:
        advice.append("more packets came at once than the machine took: give the links lower rates, or run it again")
    if audit.get("merged_packets"):
        advice.append("switch offloading off at the interfaces and at their peers, as the reason says")
    return "; ".join(advice)


def tainted_message(result: RunResult, otherwise: str) -> str:
    """The message on a tainted run: it has no result, the reasons, and advice.

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
    """Remarks on the programs of a run."""
    nameless = [f"`{program['host']}`" for program in live["programs"] if not program["names"]]
    told = [uncontained(live)]
    if nameless:
        told.append(
            f"this machine gives no mount namespace to the programs of {', '.join(nameless)}: hosts have no names "
            "there, only addresses"
        )
    return [one for one in told if one]


def uncontained(live: LiveSummary) -> str:
    """Remark on programs that ran without a separate PID namespace; empty if all had one."""
    hosts = [f"`{program['host']}`" for program in live["programs"] if not program["contained"]]
    return (
        f"this machine gives no PID namespace to the programs of {', '.join(hosts)}: what they started in a session of "
        "its own may still run"
        if hosts
        else ""
    )
