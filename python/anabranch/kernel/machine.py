"""Runs a program in a separate kernel, in virtual time."""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from anabranch.errors import RunFailedError, UserError
from anabranch.files import owner
from anabranch.kernel import failures, processor
from anabranch.kernel.guardian import Guardian
from anabranch.kernel.images import Image

MEMORY_MIB = 1024
"""Memory of a guest. The host allocates it on use."""
LEAST_MIB = 128
"""With less, the guest reads the pages of its programs repeatedly."""
POLL_S = 0.02
"""Seconds of real time between two polls of the guest."""
SILENCE_S = 120.0
"""Seconds of real time in which virtual time must advance."""
START_NS = 1_767_225_600_000_000_000
"""The guest's wall clock when it starts, in ns: the beginning of 2026."""
_PROGRESS, _CLOCK = "progress", "clock"
_HERE = Path("/proc/self/cwd")
"""The job's folder, as the kernel's own process sees it."""


@dataclass(frozen=True)
class Ended:
    """The outcome of a guest.

    Attributes:
        status: The program's exit status.
        out: The program's standard output.
        err: The program's standard error.
    """

    status: int
    out: str
    err: str


class _Patience(NamedTuple):
    """How long a guest may take."""

    silence_s: float
    limit_s: float | None
    real_s: float | None

    def exceeded(self, virtual_s: float, silent_s: float, real_s: float) -> str:
        """The reason to end the guest now; empty if it may continue."""
        if silent_s > self.silence_s:
            return (
                f"virtual time has stood still at {virtual_s:g} s for {self.silence_s:.0f} s: a program in the guest "
                "computes or polls without sleeping, or has too little memory"
            )
        if self.limit_s is not None and virtual_s > self.limit_s:
            return (
                f"the program has not ended after {virtual_s:.0f} s of virtual time: it waits for something that "
                "never comes"
            )
        if self.real_s is not None and real_s > self.real_s:
            return f"the program has not ended after {self.real_s:.0f} s, at {virtual_s:g} s of virtual time"
        return ""


class Job:
    """A folder of the host that the guest may write; the ``with`` block removes it at its end.

    Inside it is ``/run/job``.
    """

    INSIDE = Path("/run/job")

    def __enter__(self) -> Job:
        self.folder = owner.beside(Path(tempfile.gettempdir()) / "job")
        self.folder.mkdir(mode=0o700)
        self._guardian = Guardian(self.folder)
        self._guest: subprocess.Popen[bytes] | None = None
        self._is_ended = False
        return self

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
        owner.forget(self.folder)
        self._guardian.dismiss()

    def end(self) -> None:
        """End the guest, from any thread; :meth:`run` fails."""
        self._is_ended = True
        if self._guest is not None:
            _kill(self._guest)

    def run(
        self,
        image: Image,
        command: Sequence[str],
        *,
        seed: int = 1,
        memory_mib: int | None = None,
        silence_s: float = SILENCE_S,
        limit_s: float | None = None,
        real_s: float | None = None,
        progress: Callable[[float], None] | None = None,
        terminal: int | None = None,
    ) -> Ended:
        """Start a guest, run a program in it as root, and wait for both.

        Args:
            image: The kernel.
            command: The program and its arguments.
            seed: Seed of every random draw in the guest: sequence numbers, ports, hashes, ``/dev/urandom``.
            memory_mib: The guest's memory in MiB; default: ``ANABRANCH_KERNEL_MEMORY``, or 1,024.
            silence_s: Longest real time without progress of virtual time, in seconds.
            limit_s: How long the program may take, in seconds of virtual time.
            real_s: The same in seconds of real time.
            progress: Called with the completed share, which the program writes into the job's file ``progress``.
            terminal: A descriptor that is ``/dev/tty1`` in the guest; the guest then runs in real time.

        Raises:
            UserError: ``ANABRANCH_KERNEL_MEMORY`` is no number, or no folder has space for the memory.
            RunFailedError: The kernel did not start, stopped, made no progress, or ran out of memory.
        """
        memory_mib = memory_mib or _memory_mib()
        memory_folder = _memory_folder(memory_mib)
        self._write("command", f"exec {shlex.join(command)}\n")
        console = self.folder / "console"
        for name in ("status", _PROGRESS, _CLOCK, image.init.name, image.preload.name):
            (self.folder / name).unlink(missing_ok=True)
        for path in (image.init, image.preload):
            (self.folder / path.name).symlink_to(path.resolve())
        # The kernel mixes its command line into its random numbers, so no folder of this run is in it.
        arguments = [
            str(image.linux.resolve()), f"mem={memory_mib}M", "root=none", "rootfstype=hostfs", "rootflags=/", "ro",
            *_time(terminal), f"init={_HERE}/{image.init.name}", "con=null", "con0=null,fd:1", "quiet", "panic=-1",
            "seccomp=auto", f"uml_dir={_HERE}/", "umid=guest", f"job={_HERE}",
        ]  # fmt: skip
        environment = {
            "PATH": os.defpath,
            "TMPDIR": memory_folder,
            "LD_PRELOAD": f"./{image.preload.name}",
            "ANABRANCH_KERNEL_SEED": str(seed),
        }
        with console.open("wb") as written, processor.held() as number:
            # A separate process group: the guest is several processes, and we pass Ctrl-C on ourselves.
            try:
                with processor.pinned(number):
                    guest = subprocess.Popen(  # noqa: S603 - the image is the user's own
                        arguments,
                        stdin=subprocess.DEVNULL if terminal is None else terminal,
                        stdout=written,
                        stderr=subprocess.STDOUT,
                        env=environment,
                        cwd=self.folder,
                        start_new_session=True,
                    )
            except OSError as error:
                raise failures.of_start(image, error) from None
            self._guest = guest
            self._guardian.watch(guest.pid)
            try:
                if self._is_ended:
                    _kill(guest)
                self._wait(guest, _Patience(silence_s, limit_s, real_s), progress)
            finally:
                _end(guest)
                self._guest = None
        status = self._read("status").strip()
        left = failures.Guest(image, self._read("console"), guest.returncode, memory_mib, memory_folder)
        if not status:
            raise failures.of(left)
        ended = Ended(int(status), self._read("out"), self._read("err"))
        if ended.status != 0 and (too_small := failures.of_memory(left, ended.err)) is not None:
            raise too_small
        return ended

    def _wait(
        self, guest: subprocess.Popen[bytes], patience: _Patience, progress: Callable[[float], None] | None
    ) -> None:
        """Wait for the guest's end.

        Raises:
            RunFailedError: It takes too long.
        """
        told = clock = ""
        began = since = time.monotonic()
        while True:
            try:
                guest.wait(POLL_S)
            except subprocess.TimeoutExpired:
                pass
            else:
                return
            share, now = self._read(_PROGRESS), self._read(_CLOCK)
            real = time.monotonic()
            if share != told and share and progress is not None:
                progress(float(share))
            if (share, now) != (told, clock):
                told, clock, since = share, now, real
            too_long = patience.exceeded(float(clock or 0), real - since, real - began)
            if too_long:
                raise RunFailedError(f"{too_long}{self.end_of_console()}")

    def end_of_console(self) -> str:
        """The last lines that the guest's kernel printed, each after a line break."""
        return failures.end_of(self._read("console"))

    def _read(self, name: str) -> str:
        try:
            return (self.folder / name).read_text("utf-8", "replace")
        except OSError:
            return ""

    def _write(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text, "utf-8")


def _time(terminal: int | None) -> list[str]:
    if terminal is None:
        return ["time-travel=inf-cpu", f"time-travel-start={START_NS}"]
    return ["con1=fd:0"]


def _memory_mib() -> int:
    given = os.environ.get(failures.MEMORY_VARIABLE) or str(MEMORY_MIB)
    if not given.isdecimal() or int(given) < LEAST_MIB:
        raise UserError(f"{failures.MEMORY_VARIABLE}={given}: a number of MiB was expected, {LEAST_MIB} or more")
    return int(given)


def _memory_folder(memory_mib: int) -> str:
    """The folder for the guest's memory: if possible, a file system in memory from which programs may run.

    Raises:
        UserError: No folder has enough space.
    """
    fit = [folder for folder in ("/dev/shm", tempfile.gettempdir(), "/var/tmp") if _runs_programs(folder)]  # noqa: S108
    for folder in fit:
        if failures.free_mib(folder) >= memory_mib:
            return folder
    places = ", ".join(f"{folder} has {failures.free_mib(folder):,} MiB" for folder in fit) or "none lets programs run"
    raise UserError(
        f"no folder has {memory_mib:,} MiB for the guest's memory: {places}", hint="name one with space: TMPDIR=FOLDER"
    )


def _runs_programs(folder: str) -> bool:
    return os.access(folder, os.W_OK) and not os.statvfs(folder).f_flag & os.ST_NOEXEC


def _kill(guest: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(guest.pid, signal.SIGKILL)


def _end(guest: subprocess.Popen[bytes]) -> None:
    _kill(guest)
    guest.wait()
