"""In a guest: writable folders, devices and the loopback interface for the user's programs.

A module of :mod:`anabranch.kernel.inside`, which explains the few imports.
"""

import os
import time

_BIND = 0x1000
"""``MS_BIND`` (mount(2))."""
_TEMPORARY = "/tmp"  # noqa: S108 - the folder itself
_OF_THE_GUEST = ("/dev", "/proc", "/run", "/sys")
_DEVICES = {"fd": "/proc/self/fd", "stdin": "fd/0", "stdout": "fd/1", "stderr": "fd/2"}
"""Links below ``/dev`` that an init makes, not the kernel."""
_UP_S = 2.0
"""Seconds of uptime before the user's programs start: ``ping`` treats a clock below one second as unset."""
_SET_FLAGS = 0x8914
"""``SIOCSIFFLAGS`` (netdevice(7))."""
_UP = 0x1
"""``IFF_UP``."""


def settle(folder: "str | None") -> None:
    """Prepare the guest for programs.

    The command's working directory is the host's, and can be written. ``/tmp`` and the home folder take new files, in
    memory.

    Args:
        folder: The working directory; none if it was removed.
    """
    _complete_devices()
    _start_loopback()
    for place in (_TEMPORARY, os.path.normpath(os.environ.get("HOME", "/"))):
        if os.path.isabs(place) and os.path.isdir(place) and _is_ours(place):
            _take_new_files(place)
    if folder is not None and (_is_ours(folder) or folder not in _OF_THE_GUEST):
        # It may lie below a folder of the guest, as in /run/user.
        os.makedirs(folder, exist_ok=True)
        _mount("none", folder, "hostfs", data=folder)
    time.sleep(max(0.0, _UP_S - time.monotonic()))


def _complete_devices() -> None:
    for name, target in _DEVICES.items():
        if not os.path.exists(f"/dev/{name}"):
            os.symlink(target, f"/dev/{name}")
    os.makedirs("/dev/pts", exist_ok=True)
    _mount("devpts", "/dev/pts", "devpts", data="ptmxmode=0666")


def _start_loopback() -> None:
    """Set the loopback interface up; the kernel then assigns its addresses."""
    import _socket
    import fcntl

    control = _socket.socket(_socket.AF_INET, _socket.SOCK_DGRAM)
    fcntl.ioctl(control.fileno(), _SET_FLAGS, b"lo".ljust(16, b"\0") + _UP.to_bytes(2, "little") + bytes(22))
    control.close()


def _is_ours(folder: str) -> bool:
    """Whether the folder is the host's, and the guest can do without its own there."""
    return folder != "/" and not any(folder == own or folder.startswith(f"{own}/") for own in _OF_THE_GUEST)


def _take_new_files(folder: str) -> None:
    """Mount a file system in memory over a folder; it still shows all previous entries.

    It is ramfs because tmpfs draws a random number for each file: a run's draws would depend on the folder's contents.
    """
    names = sorted(os.listdir(folder))
    mode = os.stat(folder).st_mode & 0o7777
    below = os.open(folder, os.O_PATH | os.O_DIRECTORY)
    try:
        _mount("ramfs", folder, "ramfs")
        os.chmod(folder, mode)
        for name in names:
            # The entry belongs to another user, or has been removed.
            try:
                _show(f"/proc/self/fd/{below}/{name}", f"{folder}/{name}")
            except OSError:
                continue
    finally:
        os.close(below)


def _show(original: str, place: str) -> None:
    import stat

    mode = os.lstat(original).st_mode
    if stat.S_ISLNK(mode):
        os.symlink(os.readlink(original), place)
        return
    if stat.S_ISDIR(mode):
        os.mkdir(place)
    elif stat.S_ISREG(mode):
        os.close(os.open(place, os.O_WRONLY | os.O_CREAT))
    else:
        return
    _mount(original, place, "none", flags=_BIND)


def _mount(source: str, place: str, kind: str, *, flags: int = 0, data: str = "") -> None:
    import ctypes

    system = ctypes.CDLL(None, use_errno=True)
    words = (os.fsencode(word) for word in (source, place, kind))
    if system.mount(*words, ctypes.c_ulong(flags), os.fsencode(data)) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), place)
