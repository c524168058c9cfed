"""Ends a guest whose owner has gone: a process that is killed, or that ends at once, cannot do it itself."""

from __future__ import annotations

import contextlib
import subprocess
from pathlib import Path

_SCRIPT = """
group=
while read -r word; do
    case $word in
    done) exit ;;
    *) group=$word ;;
    esac
done
[ -z "$group" ] || kill -s KILL -- "-$group" 2>/dev/null
rm -rf -- "$1"
"""
"""It reads a pipe. The end of the pipe before ``done`` is the end of the owner."""


class Guardian:
    """A process that waits for the end of this one, then ends a guest and removes its folder.

    Args:
        folder: The folder of the job.
    """

    def __init__(self, folder: Path) -> None:
        # In a separate session, because Ctrl-C reaches the whole group of a terminal.
        self._process = subprocess.Popen(  # noqa: S603 - a script of ours
            ["/bin/sh", "-c", _SCRIPT, "guardian", str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            start_new_session=True,
        )

    def watch(self, group: int) -> None:
        """Watch a guest from now on, by its process group."""
        self._say(f"{group}\n")

    def dismiss(self) -> None:
        """The guest has ended, and its folder is gone."""
        self._say("done\n")
        with contextlib.suppress(OSError):
            if self._process.stdin is not None:
                self._process.stdin.close()
        self._process.wait()

    def _say(self, line: str) -> None:
        with contextlib.suppress(OSError, ValueError):
            if self._process.stdin is not None:
                self._process.stdin.write(line.encode())
                self._process.stdin.flush()
