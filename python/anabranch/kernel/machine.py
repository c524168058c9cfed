"""A program in a kernel of its own, in virtual time."""

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

from anabranch.errors import RunFailedError
from anabranch.kernel.guardian import Guardian
from anabranch.kernel.images import Image

MEMORY_MIB = 1024
"""Memory of a guest. The host gives it as it is used."""
POLL_S = 0.02
"""Seconds of real time between two looks at the guest."""
SILENCE_S = 120.0
"""Seconds of real time without progress after which a guest is ended: its program polls a clock that stands still."""
_PROGRESS = "progress"
_CONSOLE_LINES = 6
_TOO_LITTLE = ("Out of memory", "Cannot allocate memory", "Too few physical memory")
"""Words of a kernel whose memory is too small, for it or for the program."""


@dataclass(frozen=True)
class Ended:
    """What a guest leaves.

    Attributes:
        status: The program's exit status.
        out: What it printed.
        err: What it printed as errors.
    """

    status: int
    out: str
    err: str


class Job:
    """A folder of the host that the guest may write; it goes with the ``with`` block.

    Inside it is ``/run/job``.
    """

    INSIDE = Path("/run/job")

    def __enter__(self) -> Job:
        self.folder = Path(tempfile.mkdtemp(prefix="anabranch-kernel-"))
        self._guardian = Guardian(self.folder)
        self._guest: subprocess.Popen[bytes] | None = None
        self._is_ended = False
        return self

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
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
        memory_mib: int = MEMORY_MIB,
        silence_s: float = SILENCE_S,
        progress: Callable[[float], None] | None = None,
    ) -> Ended:
        """Start a guest, run a program in it as root, and wait for both.

        Args:
            image: The kernel.
            command: The program and its arguments.
            memory_mib: The guest's memory in MiB.
            silence_s: How long the program may run without progress, in seconds of real time.
            progress: Is told the share that is done, as the program writes it into the job's file ``progress``.

        Raises:
            RunFailedError: The kernel did not start, stopped, or made no progress.
        """
        self._write("command", f"exec {shlex.join(command)}\n")
        console = self.folder / "console"
        arguments = [
            str(image.linux), f"mem={memory_mib}M", "rootfstype=hostfs", "rootflags=/", "ro", "time-travel=inf-cpu",
            f"init={image.init}", "con=null", "con0=null,fd:1", "quiet", "panic=-1",
            f"uml_dir={self.folder}/", "umid=guest", f"job={self.folder}",
        ]  # fmt: skip
        environment = {**os.environ, "TMPDIR": _memory_folder()}
        with console.open("wb") as written:
            # A group of its own: the guest is several processes, and Ctrl-C is ours to pass on.
            guest = subprocess.Popen(  # noqa: S603 - the image is the user's own
                arguments,
                stdin=subprocess.DEVNULL,
                stdout=written,
                stderr=subprocess.STDOUT,
                env=environment,
                start_new_session=True,
            )
            self._guest = guest
            self._guardian.watch(guest.pid)
            try:
                if self._is_ended:
                    _kill(guest)
                self._wait(guest, silence_s, progress)
            finally:
                _end(guest)
                self._guest = None
        status = self._read("status").strip()
        if not status:
            raise RunFailedError(f"the kernel {image.release} {self._why(guest)}{self.end_of_console()}")
        return Ended(int(status), self._read("out"), self._read("err"))

    def _wait(self, guest: subprocess.Popen[bytes], silence_s: float, progress: Callable[[float], None] | None) -> None:
        told, since = "", time.monotonic()
        while True:
            try:
                guest.wait(POLL_S)
            except subprocess.TimeoutExpired:
                pass
            else:
                return
            now = self._read(_PROGRESS)
            if now != told:
                told, since = now, time.monotonic()
                if progress is not None and now:
                    progress(float(now))
            elif time.monotonic() - since > silence_s:
                raise RunFailedError(
                    f"the program made no progress in {silence_s:.0f} s: virtual time stands still while a program "
                    f"polls the clock without sleeping{self.end_of_console()}"
                )

    def _why(self, guest: subprocess.Popen[bytes]) -> str:
        console = self._read("console")
        if any(words in console for words in _TOO_LITTLE):
            return "has too little memory"
        if "Kernel panic" in console:
            return "panicked"
        return f"ended with status {guest.returncode}"

    def end_of_console(self) -> str:
        """The last lines, each after a line break; of a panic its first ones, which a call trace follows."""
        lines = [line.strip() for line in self._read("console").splitlines() if line.strip()]
        panic = next((at for at, line in enumerate(lines) if "Kernel panic" in line), None)
        shown = lines[-_CONSOLE_LINES:] if panic is None else lines[panic : panic + _CONSOLE_LINES]
        return "".join(f"\n  {line}" for line in shown)

    def _read(self, name: str) -> str:
        try:
            return (self.folder / name).read_text("utf-8", "replace")
        except OSError:
            return ""

    def _write(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text, "utf-8")


def _memory_folder() -> str:
    """Where the guest's memory lies: a file system in memory that lets programs run from it, where there is one."""
    shared = Path("/dev/shm")  # noqa: S108
    return str(shared) if os.access(shared, os.W_OK) and not os.statvfs(shared).f_flag & os.ST_NOEXEC else "/tmp"  # noqa: S108


def _kill(guest: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(guest.pid, signal.SIGKILL)


def _end(guest: subprocess.Popen[bytes]) -> None:
    _kill(guest)
    guest.wait()
