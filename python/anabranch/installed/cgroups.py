"""The congestion control of a cgroup: a program at its sockets' events (``BPF_PROG_TYPE_SOCK_OPS``).

The program sets ``TCP_CONGESTION`` when a socket of the cgroup connects, and when one accepts a connection. It has no
maps and no types, so bpf(2) takes its instructions as they are, without a compiler or the loader. Its link is pinned
to a file: the attachment lasts until the file or the cgroup is removed.
"""

from __future__ import annotations

import ctypes
import errno
import hashlib
import os
import platform
import struct
from pathlib import Path

from anabranch.errors import RunFailedError, UserError

PINS = Path("/sys/fs/bpf/anabranch-cc")
"""Files of the links."""

_NUMBERS = {"x86_64": 321, "aarch64": 280, "riscv64": 280, "s390x": 351, "ppc64le": 361}
"""The number of bpf(2), by machine."""
_PROGRAM_LOAD, _PIN, _GET, _INFO, _LINK_CREATE = 5, 6, 7, 15, 28
_SOCK_OPS, _ATTACH = 13, 3
_CONNECT, _ACCEPTED = 3, 5
"""``BPF_SOCK_OPS_TCP_CONNECT_CB`` and ``BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB``."""
_SET_OPTION = 49
_TCP, _CONGESTION = 6, 13
_NAME = 16
"""``TCP_CA_NAME_MAX``."""
_LICENCE = b"Dual BSD/GPL\0"


def place(text: str) -> Path:
    """The directory of a cgroup, given by its path or by its name below the mount point of cgroup2.

    Raises:
        UserError: There is no such cgroup, or it belongs to version 1.
    """
    mounts = _mounts()
    if not mounts:
        raise UserError(
            f"--cgroup {text}: no cgroup2 file system is mounted", hint="mount -t cgroup2 none /sys/fs/cgroup"
        )
    given = Path(text)
    tried = [given] if given.is_absolute() else []
    tried += [mount / text.lstrip("/") for mount in mounts]
    for one in tried:
        if (one / "cgroup.procs").exists():
            if any(_is_in(one, mount) for mount in mounts):
                return one.resolve()
            raise UserError(
                f"--cgroup {text}: it is a cgroup of version 1", hint=f"give one below {mounts[0]} (cgroup2)"
            )
    raise UserError(
        f"--cgroup {text}: there is no such cgroup below {mounts[0]}",
        hint="give its path, such as web.slice: systemd-cgls lists them",
    )


def _mounts() -> list[Path]:
    lines = Path("/proc/self/mounts").read_text(errors="replace").splitlines()
    words = [line.split(" ") for line in lines]
    return [Path(one[1].replace("\\040", " ")) for one in words if len(one) > 2 and one[2] == "cgroup2"]


def _is_in(path: Path, mount: Path) -> bool:
    return path.resolve().is_relative_to(mount) and path.stat().st_dev == mount.stat().st_dev


def pin(control: str, cgroup: str) -> Path:
    """The file of the link of a control and a cgroup."""
    return PINS / f"{control}-{hashlib.sha256(cgroup.encode()).hexdigest()[:12]}"


def attach(control: str, cgroup: Path) -> None:
    """Give the cgroup's connections a control from now on; nothing changes if they have it.

    Raises:
        UserError: The privilege is missing.
        RunFailedError: The kernel refuses the program.
    """
    file = pin(control, str(cgroup))
    if is_attached(control, cgroup):
        return
    file.unlink(missing_ok=True)
    PINS.mkdir(mode=0o700, exist_ok=True)
    target = os.open(cgroup, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    opened = [target]
    try:
        program = _load(control)
        opened.append(program)
        link = _call(_LINK_CREATE, struct.pack("=4I", program, target, _ATTACH, 0))
        opened.append(link)
        _pin(link, file)
    except OSError as error:
        if error.errno == errno.EPERM:
            raise UserError(
                f"--cgroup {cgroup}: the kernel does not permit it",
                hint="it needs root, and a cgroup without a program that forbids others (bpftool cgroup show)",
            ) from None
        raise RunFailedError(f"--cgroup {cgroup}: the kernel refuses the program: {error.strerror}") from None
    finally:
        for descriptor in opened:
            os.close(descriptor)


def is_attached(control: str, cgroup: Path) -> bool | None:
    """Whether the control's link is at this cgroup; ``None`` if only root may see it.

    A cgroup that was made again has none.
    """
    text = ctypes.create_string_buffer(os.fsencode(pin(control, str(cgroup))))
    try:
        link = _call(_GET, struct.pack("=Q2I", ctypes.addressof(text), 0, 0))
    except OSError as error:
        return None if error.errno in (errno.EACCES, errno.EPERM) else False
    info = ctypes.create_string_buffer(64)
    try:
        _call(_INFO, struct.pack("=2IQ", link, len(info), ctypes.addressof(info)))
        number = int(struct.unpack_from("=Q", info, 16)[0])
        return cgroup.exists() and number == cgroup.stat().st_ino
    except OSError as error:
        return None if error.errno in (errno.EACCES, errno.EPERM) else False
    finally:
        os.close(link)


def detach(control: str, cgroup: str) -> None:
    """Remove the control's link. Connections keep their control."""
    pin(control, cgroup).unlink(missing_ok=True)


def detach_all(control: str) -> None:
    """Remove all links of a control, and the empty folder."""
    if PINS.is_dir():
        for file in PINS.iterdir():
            if file.name.rpartition("-")[0] == control:
                file.unlink(missing_ok=True)
        if not any(PINS.iterdir()):
            PINS.rmdir()


def _load(control: str) -> int:
    code = _instructions(control)
    program, licence = ctypes.create_string_buffer(code, len(code)), ctypes.create_string_buffer(_LICENCE)
    return _call(
        _PROGRAM_LOAD,
        struct.pack(
            "=2I2Q2IQ2I16s2I",
            *(_SOCK_OPS, len(code) // 8, ctypes.addressof(program), ctypes.addressof(licence)),
            *(0, 0, 0, 0, 0, b"anabranch_cc", 0, _ATTACH),
        ),
    )


def _pin(link: int, file: Path) -> None:
    text = ctypes.create_string_buffer(os.fsencode(file))
    _call(_PIN, struct.pack("=Q2I", ctypes.addressof(text), link, 0))


def _instructions(control: str) -> bytes:
    """The program: at one of both events it sets the socket's congestion control."""
    first, second = struct.unpack("=2Q", control.encode().ljust(_NAME, b"\0"))

    def one(code: int, dst: int = 0, src: int = 0, off: int = 0, imm: int = 0) -> bytes:
        return struct.pack("=BBhI", code, src << 4 | dst, off, imm & 0xFFFFFFFF)

    def word(dst: int, value: int) -> bytes:
        return one(0x18, dst, imm=value & 0xFFFFFFFF) + one(0, imm=value >> 32)

    return b"".join(
        (
            one(0x61, 2, 1),  # r2 = context->op
            one(0x15, 2, off=1, imm=_CONNECT),
            one(0x55, 2, off=12, imm=_ACCEPTED),
            word(3, first),
            one(0x7B, 10, 3, -_NAME),  # the name on the stack
            word(3, second),
            one(0x7B, 10, 3, -_NAME + 8),
            one(0xB7, 2, imm=_TCP),
            one(0xB7, 3, imm=_CONGESTION),
            one(0xBF, 4, 10),
            one(0x07, 4, imm=-_NAME),
            one(0xB7, 5, imm=_NAME),
            one(0x85, imm=_SET_OPTION),
            one(0xB7, 0, imm=1),
            one(0x95),
        )
    )


def _call(command: int, attributes: bytes) -> int:
    """bpf(2).

    Raises:
        OSError: It fails.
    """
    number = _NUMBERS.get(platform.machine())
    if number is None:
        raise RunFailedError(f"--cgroup: the number of bpf(2) is not known for {platform.machine()}")
    library = ctypes.CDLL(None, use_errno=True)
    buffer = ctypes.create_string_buffer(attributes.ljust(128, b"\0"), 128)
    done: int = library.syscall(ctypes.c_long(number), command, buffer, ctypes.c_uint(len(buffer)))
    if done < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
    return done
