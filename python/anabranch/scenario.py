"""A scenario: read from a file or a text, or built from code; changed by ``set``; run once or over a grid."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from anabranch.builders.tables import Tables
from anabranch.errors import UserError
from anabranch.files.capture import SNAP_LENGTH
from anabranch.files.file_kind import SCENARIO
from anabranch.files.files import MAX_TEXT_BYTES, read_bytes
from anabranch.files.files import read_standard_input as read_standard_bytes
from anabranch.keys.component import Value, call, named, plain_entries, present
from anabranch.text import shown, toml_text

if TYPE_CHECKING:
    from anabranch.control import CongestionControl
    from anabranch.live import Limits
    from anabranch.result.result import LiveRunResult, RunResult
    from anabranch.result.summary import Resolved
    from anabranch.sweep.sweep import SweepResult

__all__ = ["MAX_FILE_BYTES", "Scenario", "Value", "read_text"]

STANDARD_INPUT = "standard input"
"""Name of a scenario from standard input in messages."""

MAX_FILE_BYTES = MAX_TEXT_BYTES
"""Largest scenario file that is read. A hand-written one has a few kilobytes."""


class Scenario(Tables):
    """A path, the flows on it, and the duration. Immutable: every change returns a new scenario.

        >>> base = (
        ...     Scenario("Two hosts", duration="2 s")
        ...     .link("bottleneck", between=("S", "R"), rate="10 Mbit/s", delay="20 ms")
        ...     .flow("main", source="S", target="R", cc="cubic")
        ... )
        >>> base.set("flow.main.cc", "reno") == base
        False
        >>> base.resolve()["flows"]
        ['main']

    Args:
        title: The scenario's subject.
        duration: Simulated time, with its unit (``"10 s"``).
        seed: Seed of every random draw.
        warmup: Metrics start here, with its unit.
        untrusted: As in :meth:`from_file`.

    Raises:
        BadValueError: No scenario can have one of the values.
    """

    __slots__ = ("_controls", "_document", "_file", "_sets", "_text", "_untrusted")

    _controls: tuple[type[CongestionControl], ...]
    _document: Mapping[str, Any] | None
    _file: str
    _sets: tuple[str, ...]
    _text: str
    _untrusted: bool

    @named
    def __init__(
        self,
        title: str | None = None,
        *,
        duration: str | None = None,
        seed: int | None = None,
        warmup: str | None = None,
        untrusted: bool = False,
    ) -> None:
        from anabranch.keys import schema

        top = present({"title": title, "duration": duration, "seed": seed, "warmup": warmup})
        for key, value in top.items():
            schema.check_component(key, value, f"Scenario({key}={shown.python(value)})")
        self._assign(
            _document=top,
            _text=toml_text.write_document(top),
            _file="<code>",
            _sets=(),
            _untrusted=untrusted,
            _controls=(),
        )

    @classmethod
    def from_file(cls, path: str | Path, *, untrusted: bool = False) -> Scenario:
        """A scenario file (TOML).

        Args:
            path: The file.
            untrusted: Reject everything that an untrusted scenario may not do: files outside its folder, ``exec``,
                ``attach``, ``bpf``.

        Raises:
            UserError: The file cannot be read, or is not text.
        """
        return cls.from_text(read_text(Path(path)), file=str(path), untrusted=untrusted)

    @classmethod
    def from_text(cls, text: str, *, file: str = "<text>", untrusted: bool = False) -> Scenario:
        """A scenario given as TOML text; ``file`` is its name in error messages."""
        return cls()._with(_document=None, _text=text, _file=file, _untrusted=untrusted)

    @classmethod
    def from_dict(cls, document: Mapping[str, Value], *, untrusted: bool = False) -> Scenario:
        """A scenario given as the dictionary into which its TOML text would be parsed.

            >>> link = {"between": ["S", "R"], "rate": "10 Mbit/s", "delay": "20 ms"}
            >>> flow = {"from": "S", "to": "R"}
            >>> Scenario.from_dict({"duration": "2 s", "link": {"a": link}, "flow": {"main": flow}}).resolve()["links"]
            ['a']

        Raises:
            BadValueError: No scenario can have one of the values.
            UserError: A value has no TOML form.
        """
        scenario = cls(untrusted=untrusted)
        for parts, value in toml_text.entries(toml_text.plain(document)):
            scenario._check(parts, value, "from_dict")
        return scenario._with_document(document)

    @property
    def text(self) -> str:
        """The scenario's TOML text, without the changes of ``sets``."""
        return self._text

    @property
    def file(self) -> str:
        """The scenario's name in error messages."""
        return self._file

    @property
    def sets(self) -> list[str]:
        """The changes of ``text``, as ``PATH=VALUE``, in order."""
        return list(self._sets)

    @property
    def untrusted(self) -> bool:
        """Whether the scenario is restricted as an untrusted one; see :meth:`from_file`."""
        return self._untrusted

    @property
    def controls(self) -> dict[str, type[CongestionControl]]:
        """Congestion controls in Python, by name; see :meth:`with_controls`."""
        return {control.name: control for control in self._controls}

    def with_controls(self, *controls: type[CongestionControl]) -> Scenario:
        """The scenario with congestion controls written in Python, which ``cc`` may name; see :mod:`anabranch.control`.

        Raises:
            UserError: A control has no name, or a name that is taken.
        """
        from anabranch.keys.control_names import check_names

        known = (*self._controls, *controls)
        check_names(known)
        return self._with(_controls=known)

    def copy(self) -> Scenario:
        """The scenario itself, because it is immutable."""
        return self

    def set(self, path: str, value: Value) -> Scenario:
        """The scenario with one value changed.

            >>> Scenario(duration="2 s").set("warmup", "1 s").sets
            ['warmup="1 s"']

        Args:
            path: Dotted TOML key, integers index lists from 0: ``"link.a.forward.impair.0.rate"``.
            value: The new value; missing tables are created.

        Raises:
            BadValueError: No scenario can have this value there. It is a :class:`UserError` and a
                :class:`ScenarioError`.
            UserError: ``path`` is no dotted TOML key, or ``value`` has no TOML form.
        """
        from anabranch.keys import grid, schema

        kept = toml_text.plain(value)
        schema.check(self, grid.keys_of(path), kept, f'set("{path}", {shown.python(value)})')
        return self.with_sets(f"{path}={toml_text.write_value(kept)}")

    def with_sets(self, *changes: str) -> Scenario:
        """The scenario with further changes, written as ``PATH=VALUE``, applied after its own. The run checks them."""
        return self._with(_sets=(*self._sets, *changes))

    def at(self, time: str, changes: Mapping[str, Value]) -> Scenario:
        """Change values during the run: ``at("5 s", {"link.isp1.up": False})``.

        Only in scenarios built from code.

        Raises:
            BadValueError: No scenario can have one of the values.
            UserError: The scenario is a file or a text.
        """
        from anabranch.keys import grid, schema

        if self._document is None:
            raise UserError("changes in mid-run belong into the scenario's file", hint='write [[at]] time = "…"')
        schema.check_component("at", [{"time": toml_text.plain(time), "set": {}}], f"at({shown.python(time)}, …)")
        if not isinstance(changes, Mapping):
            raise UserError(
                f"at({shown.python(time)}, {shown.python(changes)}): a mapping of paths to values was expected",
                hint='for example {"link.isp1.up": False}',
            )
        for path, value in changes.items():
            entry = plain_entries("at", {path: value})
            given = f"at({shown.python(time)}, {shown.python(entry)})"
            schema.check(self, grid.keys_of(path), entry[path], given)
        earlier = self._document.get("at", [])
        return self._with_document({**self._document, "at": [*earlier, {"time": time, "set": dict(changes)}]})

    def resolve(self, *, seed: int | None = None, live: bool = False) -> Resolved:
        """Parse and check without running.

        Args:
            seed: The seed; default: the scenario's.
            live: Resolve for the live engine, which has keys that the simulator lacks.

        Raises:
            ScenarioError: The scenario is wrong; the message has file, line and column.
        """
        from anabranch import _engine
        from anabranch.keys import schema
        from anabranch.limits import check_seed

        check_seed(seed)
        try:
            return self._resolved(seed, live=live)
        except _engine.ScenarioError as error:
            raise schema.in_words_of_python(error, self) from None

    def _resolved(self, seed: int | None, *, live: bool) -> Resolved:
        from anabranch import _engine

        own, controls = (self.text, self._file, self.sets), list(self.controls.items())
        text = _engine.resolve(*own, seed, live, untrusted=self.untrusted, controls=controls)
        return cast("Resolved", json.loads(text))

    @named
    def run(
        self,
        *,
        seed: int | None = None,
        digest: bool = True,
        samples_ms: float | None = None,
        packets: bool = False,
        fast_path: bool = True,
        captures: Sequence[str] = (),
        snap_length: int = SNAP_LENGTH,
        progress: Callable[[float], None] | None = None,
    ) -> RunResult:
        """Run once.

        Args:
            seed: The seed; default: the scenario's.
            digest: Hash every packet observation, so that equal runs can be recognised.
            samples_ms: Interval of samples of cwnd, queues and more, in milliseconds.
            packets: Record one row per data packet sent.
            fast_path: Let the engine combine plain links; the results are the same.
            captures: Links whose packets are captured, ``"LINK"``, ``"LINK.forward"`` or ``"LINK.reverse"``; see
                :meth:`RunResult.pcapng`.
            snap_length: Largest number of bytes stored of each captured packet.
            progress: Called with the finished share (0‥1).

        Raises:
            ScenarioError: The scenario is wrong; the message has file, line and column.
            UserError: ``seed``, ``samples_ms`` or ``snap_length`` is out of range, or there is no such link.
        """
        from anabranch import _engine
        from anabranch.keys import schema
        from anabranch.limits import check_samples, check_seed
        from anabranch.result.result import PACKETS, SAMPLES, RunResult

        check_seed(seed)
        check_samples(samples_ms)
        try:
            run = _engine.run(
                self.text,
                self._file,
                self.sets,
                seed=seed,
                digest=digest,
                samples_ms=samples_ms,
                packets=packets,
                fast_path=fast_path,
                captures=self._places(captures, snap_length, seed),
                untrusted=self.untrusted,
                controls=list(self.controls.items()),
                progress=progress,
            )
        except _engine.ScenarioError as error:
            raise schema.in_words_of_python(error, self) from None
        except UserError:
            raise
        except (ValueError, TypeError) as error:
            raise self._shown(error) from None
        return RunResult(run, (*(SAMPLES if samples_ms is not None else ()), *(PACKETS if packets else ())))

    def _shown(self, error: ValueError | TypeError) -> Exception:
        """An error of a run: that of a control in Python keeps its type and its traceback."""
        if self._controls:
            from anabranch.control_errors import described, place_of

            if place_of(error) is not None:
                return error
            if isinstance(error, TypeError):
                return TypeError(described(error, self._controls).partition(": ")[2])
        if isinstance(error, TypeError):
            return error
        # The result does not fit in memory, or an attribute of a control is no number above 0.
        return UserError(str(error))

    def _places(
        self, captures: Sequence[str], snap_length: int, seed: int | None, *, live: bool = False
    ) -> tuple[list[tuple[str, str | None]], int] | None:
        """Captures in the engine's form; ``None`` for none.

        Raises:
            UserError: ``snap_length`` is out of range, or there is no such link.
        """
        from anabranch.files.capture import check_snap_length, place

        check_snap_length(snap_length)
        if isinstance(captures, str):
            raise UserError(f"captures={captures!r}: a list of links was expected", hint=f"captures=[{captures!r}]")
        if not captures:
            return None
        links = self._resolved(seed, live=live)["links"]
        places = [place(name, links) for name in captures]
        return [(p.link, p.direction) for p in places], snap_length

    @named
    def run_live(
        self,
        *,
        seed: int | None = None,
        packets: bool = False,
        samples_ms: float | None = None,
        captures: Sequence[str] = (),
        snap_length: int = SNAP_LENGTH,
        limits: Limits | None = None,
        trace: str | None = None,
        allow_tainted: bool = False,
        progress: Callable[[float], None] | None = None,
    ) -> LiveRunResult:
        """Run once in real time, with this machine's kernel at the ends of every flow.

        Args:
            seed: The seed; default: the scenario's.
            packets: Record one row per packet sent.
            samples_ms: Interval of samples of link queues and group members, in milliseconds. Windows and round-trip
                times are always sampled, every 10 ms.
            captures: Links whose packets are captured, as in :meth:`run`, but with their real addresses.
            snap_length: Largest number of bytes stored of each captured packet.
            limits: A run beyond them is tainted; default: :class:`Limits <anabranch.live.Limits>` itself.
            trace: The trace of the kernel's TCP: ``"acks"`` (every segment that a sender receives: the table
                ``ack_samples``), ``"events"`` (changes of its congestion state, and retransmissions) or ``"off"``.
                Default, if this machine permits it: ``"acks"`` with ``samples_ms`` and ``"events"`` without.
            allow_tainted: Return a tainted run as well; its ``summary["tainted"]`` is true.
            progress: Called with the finished share (0‥1).

        Raises:
            ScenarioError: The scenario is wrong, or needs a feature that no live run has.
            UserError: This machine or this build cannot run live, or cannot make the requested trace.
            RunFailedError: The run is tainted and has no result, or something failed in mid-run.
        """
        from anabranch.live import run_live

        if self._controls:
            raise UserError(
                "the live engine runs no congestion control in Python", hint="write it as an eBPF program, or use run()"
            )
        return run_live(
            self,
            seed=seed,
            packets=packets,
            samples_ms=samples_ms,
            captures=captures,
            snap_length=snap_length,
            limits=limits,
            trace=trace,
            allow_tainted=allow_tainted,
            progress=progress,
        )

    @named
    def run_kernel(
        self,
        *,
        seed: int | None = None,
        kernel: str | None = None,
        packets: bool = False,
        samples_ms: float | None = None,
        captures: Sequence[str] = (),
        snap_length: int = SNAP_LENGTH,
        progress: Callable[[float], None] | None = None,
    ) -> LiveRunResult:
        """Run once in virtual time, with the TCP of a Linux kernel at the ends of every flow.

        The live engine runs in User-Mode Linux: without privileges, and with the same figures on a busy machine.

        Args:
            seed: The seed; default: the scenario's.
            kernel: The kernel, by the beginning of its release (``"6.12"``); default: the kernel that the scenario
                names, or the newest that ``anabranch kernel build`` has built.
            packets: Record one row per packet sent.
            samples_ms: As in :meth:`run_live`.
            captures: Links whose packets are captured, as in :meth:`run_live`.
            snap_length: Largest number of bytes stored of each captured packet.
            progress: Called with the finished share (0‥1) of the virtual time.

        Raises:
            ScenarioError: The scenario is wrong, or needs a feature that no kernel in virtual time has.
            UserError: No such kernel is built.
            RunFailedError: The kernel stopped, or the run failed in it.
        """
        from anabranch.kernel.engine import run

        return run(
            self,
            seed=seed,
            kernel=kernel,
            packets=packets,
            samples_ms=samples_ms,
            captures=captures,
            snap_length=snap_length,
            progress=progress,
        )

    @named
    def sweep(
        self,
        grid: Mapping[str, Sequence[Value]] | None = None,
        *,
        repeat: int | None = None,
        jobs: int | None = None,
        digest: bool = True,
        out: str | Path | None = None,
        shard: tuple[int, int] | None = None,
        store: str | Path | None = None,
        ranges: Mapping[str, str] | None = None,
        design: str | None = None,
        points: int | None = None,
        until: str | None = None,
        refine: str | None = None,
        ray: str | None = None,
        engine: str = "sim",
        kernel: str | None = None,
        progress: Callable[[int, int], None] | None = None,
        remark: Callable[[str], None] | None = None,
    ) -> SweepResult:
        """Run over a grid.

            >>> base = (
            ...     Scenario("Two hosts", duration="1 s")
            ...     .link("a", between=("S", "R"), rate="10 Mbit/s", delay="20 ms")
            ...     .flow("main", source="S", target="R")
            ... )
            >>> swept = base.sweep({"link.a.delay": ["10 ms", "20 ms"], "flow.main.cc": ["reno", "cubic"]})
            >>> swept.table(["flow.main.goodput_mbit_s"]).shape
            (4, 7)

        Args:
            grid: Dotted path → values; replaces or adds to the axes of the scenario's own ``[sweep]``.
            repeat: Seeds per point, from the scenario's seed on.
            jobs: Number of parallel threads or kernels; default: the number of cores.
            digest: As in :meth:`run`; without it, equal repeats are not recognised.
            out: Directory for finished points and the table; the sweep resumes if it exists.
            shard: ``(I, N)``: part I of N, from 1, into ``out``; :meth:`SweepResult.merge` joins the parts.
            store: Directory of finished points that sweeps, studies and comparisons share, instead of ``out``.
            ranges: Dotted path → ``"LOW..HIGH"``, followed by ``:log`` for a logarithmic scale.
            design: The choice of points in these ranges: ``"sobol"`` (the default), ``"lhs"`` or ``"grid"``.
            points: Number of points; for a grid, of each range.
            until: ``"FIGURE:WIDTH"``: add seeds to each point until its 95 % interval is no wider than this, in the
                figure's unit or in per cent of the mean; ``repeat`` is the limit.
            refine: ``"FIGURE:N"``: add N points where the curve over the single range bends.
            ray: Address of a Ray cluster that makes the runs; ``"local"`` starts one here.
            engine: ``"sim"``, or ``"kernel"``: each run in a Linux kernel in virtual time, as in :meth:`run_kernel`.
            kernel: With ``engine="kernel"``: the kernel, as in :meth:`run_kernel`.
            progress: Called with (finished, total) points.
            remark: Called with a sentence for each finished point that is unusable and is run again.

        Raises:
            ScenarioError: The scenario or a point of the grid is wrong.
            UserError: ``out`` holds something else.
        """
        from anabranch.sweep.sweep import Choice, Place, sweep

        return sweep(
            self,
            grid or {},
            repeat=repeat,
            digest=digest,
            choice=Choice(ranges or {}, design, points, until, refine),
            place=Place(out=out, store=store, shard=shard, ray=ray, jobs=jobs, engine=engine, kernel=kernel),
            progress=progress,
            remark=remark,
        )

    def _add(self, kind: str, name: str, entry: Mapping[str, Any]) -> Scenario:
        from anabranch.keys import schema

        if not isinstance(name, str) or not name:
            raise UserError(f"{kind}({shown.python(name)}): a name was expected, a text in quotation marks")
        table = plain_entries(kind, entry)

        def told(keys: Sequence[str]) -> str:
            return call(kind, [name], {key: table[key] for key in keys})

        schema.check(self, [kind, name], table, told)
        if self._document is None:
            return self.with_sets(f"{kind}.{toml_text.write_key(name)}={toml_text.write_value(table)}")
        entries = {**self._document.get(kind, {}), name: table}
        return self._with_document({**self._document, kind: entries})

    def _check(self, parts: Sequence[str], value: Any, method: str) -> None:
        """Reject a value that no scenario can have; ``method`` is the method called, for the message."""
        from anabranch.keys import schema

        schema.check(self, parts, value, method)

    def _with_document(self, document: Mapping[str, Any]) -> Scenario:
        # Copy: the caller may change its list later.
        kept = {key: toml_text.plain(value) for key, value in document.items()}
        return self._with(_document=kept, _text=toml_text.write_document(kept))

    def _with(self, **changes: Any) -> Scenario:
        """Another scenario with some attributes changed."""
        other = object.__new__(type(self))
        other._assign(**{name: getattr(self, name) for name in self.__slots__} | changes)
        return other

    def _assign(self, **values: Any) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def _identity(self) -> tuple[object, ...]:
        return self._text, self._file, self._sets, self._untrusted, self._controls

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(
            f"a Scenario does not change: {name!r} cannot be assigned; set() and builders return a new one"
        )

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"a Scenario does not change: {name!r} cannot be deleted")

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (type(self), {name: getattr(self, name) for name in self.__slots__})

    def __eq__(self, other: object) -> bool:
        return self._identity() == other._identity() if isinstance(other, Scenario) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._identity())

    def __repr__(self) -> str:
        changes = f", {len(self._sets)} set" if self._sets else ""
        return f"<Scenario {self._file}{changes}>"


def _restored(cls: type[Scenario], values: dict[str, Any]) -> Scenario:
    return cls()._with(**values)


def read_text(path: Path, noun: str = SCENARIO) -> str:
    """The text of a scenario or study file, with errors a user can act on.

    Raises:
        UserError: There is no such file, it is a directory, a capture, far too large, or not UTF-8.
    """
    from anabranch.files.file_kind import check_directory, check_text

    check_directory(path, noun)
    raw = read_bytes(path, most=MAX_FILE_BYTES, check=lambda head: check_text(path, head, noun))
    return _decoded(raw, str(path))


def read_standard_input() -> str:
    """The text of a scenario on standard input. It raises the errors of :func:`read_text`."""
    from anabranch.files.file_kind import check_text

    raw = read_standard_bytes(most=MAX_FILE_BYTES)
    check_text(Path(STANDARD_INPUT), raw, SCENARIO)
    return _decoded(raw, STANDARD_INPUT)


def _decoded(raw: bytes, file: str) -> str:
    try:
        # A byte-order mark is no part of the text, and TOML does not permit one.
        return raw.decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        column = error.start - (raw.rfind(b"\n", 0, error.start) + 1) + 1
        raise UserError("not UTF-8 text", file=file, line=line, column=column) from None
