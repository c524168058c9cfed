"""Every option that names an output, with every kind of existing file.

Devices of /dev are never used: nodes are made in a temporary directory, which the tests may lose.
"""

from __future__ import annotations

import errno
import os
import resource
import shlex
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from anabranch import Scenario, _engine
from anabranch.cli.app import app
from anabranch.errors import RunFailedError, UserError
from anabranch.files import output_file
from anabranch.files.output_file import OutputFile, write_whole
from anabranch.files.output_target import Kind, find

from .command import Call

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="device nodes and /proc")

TEXT = """\
duration = "0.3 s"
link.path = { between = ["A", "B"], rate = "10 Mbit/s", delay = "5 ms" }
flow.main = { from = "A", to = "B" }
"""
FOREIGN = b"years of work\n"


@dataclass(frozen=True)
class Inputs:
    """Input files of the commands."""

    scenario: Path
    capture: Path
    script: Path


FILES: dict[tuple[str, str], tuple[Callable[[Inputs, Path], list[object]], str]] = {
    ("run", "--pcap"): (lambda given, out: ["run", given.scenario, "--pcap", f"path={out}"], "out.pcapng"),
    ("sweep", "--report"): (
        lambda given, out: ["sweep", given.scenario, "--grid", "flow.main.cc=reno", "--report", out],
        "out.html",
    ),
    ("diagnose", "--annotate"): (lambda given, out: ["diagnose", given.capture, "--annotate", out], "out.pcapng"),
    ("convert", "--out"): (lambda given, out: ["convert", given.script, "--out", out], "out.toml"),
}
"""Options that name a file: the command, and a suitable name."""

DIRECTORIES: dict[tuple[str, str], Callable[[Inputs, Path], list[object]]] = {
    ("demo", "--out"): lambda _, out: ["demo", "--out", out],
    ("new", "DIR"): lambda _, out: ["new", out],
    ("run", "--out"): lambda given, out: ["run", given.scenario, "--out", out],
    ("study", "--out"): lambda _, out: ["study", "reordering", "--quick", "--out", out],
    ("study", "--store"): lambda _, out: ["study", "reordering", "--quick", "--store", out],
    ("sweep", "--out"): lambda given, out: ["sweep", given.scenario, "--grid", "flow.main.cc=reno", "--out", out],
    ("sweep", "--store"): lambda given, out: ["sweep", given.scenario, "--grid", "flow.main.cc=reno", "--store", out],
    ("stress", "--out"): lambda _, out: ["stress", "vegas", "--goal", "slow", "--runs", "1", "--out", out],
    ("compare", "--out"): lambda given, out: ["compare", given.scenario, given.capture, "--out", out],
    ("compare", "--store"): lambda given, out: [
        *("compare", given.scenario, given.scenario.with_name("b.toml"), "--repeat", "2", "--store", out)
    ],
    ("evaluate", "--out"): lambda _, out: ["evaluate", "cubic", "--quick", "--out", out],
    ("evaluate", "--store"): lambda _, out: ["evaluate", "cubic", "--quick", "--store", out],
    ("diagnose", "--out"): lambda given, out: ["diagnose", given.capture, "--out", out],
    ("diagnose", "--save-to"): lambda _, out: ["diagnose", "--follow", "lo", "--save-to", out],
    ("vectors", "--out"): lambda _, out: ["vectors", "reno", "--out", out],
    ("plan cc", "--out"): lambda given, out: ["plan", "cc", given.capture, "--seeds", "2", "--out", out],
    ("plan aqm", "--out"): lambda _, out: ["plan", "aqm", "--rate", "1mbit", "--seeds", "2", "--out", out],
    ("plan group", "--out"): lambda given, out: [
        *(
            "plan",
            "group",
            given.scenario.with_name("counters.csv"),
            "--members",
            "2",
            "--rate",
            "1mbit",
            "--seeds",
            "2",
            "--out",
            out,
        )
    ],
    ("validate", "--out"): lambda given, out: ["validate", given.scenario, "--out", out],
    ("validate", "--keep"): lambda given, out: ["validate", given.scenario, "--keep", out],
}

INPUTS = {
    *(("run", "FILE"), ("study", "[NAME|DIRECTORY]..."), ("sweep", "FILE|merge DIR..."), ("compare", "A B...")),
    *(
        ("diagnose", "CAPTURE..."),
        ("studio", "[FILE]"),
        ("convert", "FILE|DIR|-"),
        ("gateway plan", "FILE"),
        ("gateway plan", "--path"),
    ),
    *(("gateway plan", "--status"), ("validate", "FILE..."), ("validate", "--host-times"), ("shell", "FILE")),
    *(("script", "SCRIPT..."), ("vectors", "--check"), ("vectors", "--compare")),
    *(("cc install", "NAME|FILE"), ("plan group", "FILE"), ("plan cc", "CAPTURE"), ("plan aqm", "[CAPTURE]")),
    ("evaluate", "--baseline"),
    *(("cc load", "NAME|FILE"), ("kernel build", "[VERSION|DIR|FILE]"), ("kernel check", "[RELEASE|DIR]")),
}
"""Options and arguments that name an input."""
ELSEWHERE = {("studio", "--out")}
"""The studio needs a page that is not part of a checkout: test_studio.py has one."""


def parameters(command: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Every option and argument of every command."""
    for one, inner in getattr(command, "commands", {}).items():
        yield from parameters(inner, f"{name} {one}".strip())
    if not hasattr(command, "commands"):
        for one in command.params:
            yield name, one


def names_a_file(one: Any) -> bool:
    kind = str(one.type.name)
    words = str(one.metavar or "")
    return "path" in kind or any(word in words for word in ("FILE", "DIR"))


def test_every_option_that_names_a_file_is_covered() -> None:
    found = {
        (name, one.opts[0] if one.param_type_name == "option" else one.metavar)
        for name, one in parameters(app)
        if names_a_file(one)
    }
    assert found == {*FILES, *DIRECTORIES, *INPUTS, *ELSEWHERE}


@pytest.fixture(scope="module")
def given(tmp_path_factory: pytest.TempPathFactory) -> Inputs:
    folder = tmp_path_factory.mktemp("inputs")
    (folder / "s.toml").write_text(TEXT)
    (folder / "b.toml").write_text(TEXT.replace("10 Mbit/s", "20 Mbit/s"))
    (folder / "counters.csv").write_text("0,0\n1,1000\n2,3000\n")
    (folder / "wan.sh").write_text("tc qdisc add dev eth0 root netem delay 20ms rate 10mbit limit 1000\n")
    content = Scenario.from_text(TEXT, file="s.toml").run(captures=["path"]).pcapng("path")
    (folder / "in.pcapng").write_bytes(content)
    return Inputs(folder / "s.toml", folder / "in.pcapng", folder / "wan.sh")


def device(path: Path) -> Path:
    """A new node that is a copy of the null device."""
    try:
        os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, 3))
        with path.open("wb") as opened:
            opened.write(b"")
    except PermissionError:
        pytest.skip("this user or file system has no device nodes")
    return path


def sight(path: Path) -> tuple[object, ...]:
    """The properties of a file that must not change."""
    found = path.lstat()
    content = path.read_bytes() if stat.S_ISREG(found.st_mode) else b""
    link = os.readlink(path) if path.is_symlink() else ""
    return found.st_ino, stat.S_IFMT(found.st_mode), found.st_mode, content, link


@pytest.fixture(params=FILES, ids=" ".join)
def write(request: pytest.FixtureRequest, anabranch: Call, given: Inputs) -> Callable[..., Any]:
    """The command that writes a file."""
    make, name = FILES[request.param]

    def run(path: Path, *more: object) -> Any:
        return anabranch(*make(given, path), *more)

    run.name = name  # type: ignore[attr-defined]
    return run


def test_a_new_file(write: Callable[..., Any], tmp_path: Path) -> None:
    path = tmp_path / write.name  # type: ignore[attr-defined]
    done = write(path)
    assert done.status == 0, done.err
    assert path.stat().st_size > 0
    assert path.stat().st_mode & 0o777 == 0o666 & ~umask()
    assert os.listdir(tmp_path) == [path.name]


def umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def test_a_foreign_file_is_unchanged_unless_forced(write: Callable[..., Any], tmp_path: Path) -> None:
    path = tmp_path / write.name  # type: ignore[attr-defined]
    path.write_bytes(FOREIGN)
    path.chmod(0o640)
    os.link(path, tmp_path / "hard")
    before = sight(path)
    done = write(path)
    assert (done.status, done.out) == (2, "")
    assert "--force" in done.err
    assert sight(path) == before
    done = write(path, "--force")
    assert done.status == 0, done.err
    assert path.read_bytes() != FOREIGN
    assert path.stat().st_mode & 0o777 == 0o640
    assert (tmp_path / "hard").read_bytes() == FOREIGN
    assert sorted(os.listdir(tmp_path)) == sorted([path.name, "hard"])


def test_our_file_is_replaced(write: Callable[..., Any], tmp_path: Path) -> None:
    path = tmp_path / write.name  # type: ignore[attr-defined]
    path.touch()
    assert write(path).status == 0
    first = path.read_bytes()
    done = write(path)
    assert done.status == 0, done.err
    assert path.read_bytes() == first


def test_a_link_is_followed_and_remains(write: Callable[..., Any], tmp_path: Path) -> None:
    path, there = tmp_path / write.name, tmp_path / "there"  # type: ignore[attr-defined]
    there.mkdir()
    path.symlink_to("there/again")
    (there / "again").symlink_to(there / "end")
    for force in ([], ["--force"]):
        done = write(path, *force)
        assert done.status == 0, done.err
        assert (os.readlink(path), os.readlink(there / "again")) == ("there/again", str(there / "end"))
        assert stat.S_ISREG((there / "end").lstat().st_mode)
    (there / "end").write_bytes(FOREIGN)
    assert write(path).status == 2
    assert (there / "end").read_bytes() == FOREIGN


@pytest.mark.parametrize("force", [[], ["--force"]], ids=["plain", "forced"])
@pytest.mark.parametrize("is_linked", [False, True], ids=["itself", "link"])
def test_a_device_is_written_and_remains(
    write: Callable[..., Any], tmp_path: Path, force: list[str], is_linked: bool
) -> None:
    node = device(tmp_path / ("node" if is_linked else write.name))  # type: ignore[attr-defined]
    path = tmp_path / write.name  # type: ignore[attr-defined]
    if is_linked:
        path.symlink_to(node)
    before = sight(node)
    done = write(path, *force)
    assert done.status == 0, done.err
    assert sight(node) == before
    assert len(os.listdir(tmp_path)) == 1 + is_linked


@pytest.mark.parametrize("force", [[], ["--force"]], ids=["plain", "forced"])
def test_a_pipe_is_written_and_remains(write: Callable[..., Any], tmp_path: Path, force: list[str]) -> None:
    path = tmp_path / write.name  # type: ignore[attr-defined]
    os.mkfifo(path)
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append(path.read_bytes()))
    reader.start()
    done = write(path, *force)
    reader.join()
    assert done.status == 0, done.err
    assert path.is_fifo()
    plain = tmp_path / f"plain-{path.name}"
    assert write(plain).status == 0
    assert read == [plain.read_bytes()]


@pytest.mark.parametrize("force", [[], ["--force"]], ids=["plain", "forced"])
@pytest.mark.parametrize("kind", ["directory", "socket", "circle", "no folder", "file as folder"])
def test_directories_sockets_and_missing_folders_are_refused(
    write: Callable[..., Any], tmp_path: Path, kind: str, force: list[str]
) -> None:
    path = tmp_path / write.name  # type: ignore[attr-defined]
    with socket.socket(socket.AF_UNIX) as listener:
        if kind == "directory":
            path.mkdir()
        elif kind == "socket":
            listener.bind(str(path))
        elif kind == "circle":
            path.symlink_to(path.name)
        elif kind == "no folder":
            path = tmp_path / "no" / path.name
        else:
            (tmp_path / "file").write_bytes(FOREIGN)
            path = tmp_path / "file" / path.name
        before = [sight(one) for one in tmp_path.iterdir()]
        done = write(path, *force)
        assert (done.status, done.out) == (2, "")
        assert str(tmp_path) in done.err
        assert "Traceback" not in done.err
        assert [sight(one) for one in tmp_path.iterdir()] == before


def test_a_block_device_holds_foreign_content(write: Callable[..., Any], tmp_path: Path) -> None:
    path = tmp_path / write.name  # type: ignore[attr-defined]
    try:
        # No driver has this number: opening the node would fail.
        os.mknod(path, stat.S_IFBLK | 0o666, os.makedev(240, 255))
    except PermissionError:
        pytest.skip("this user has no device nodes")
    before = sight(path)
    done = write(path)
    assert (done.status, done.out) == (2, "")
    assert "block device" in done.err
    assert sight(path) == before


@pytest.mark.parametrize(("command", "option"), [place for place in FILES if place[0] != "sweep"])
@pytest.mark.parametrize("redirect", ["> {file}", ">> {file}", "| cat > {file}"])
def test_standard_output_by_its_name(given: Inputs, tmp_path: Path, command: str, option: str, redirect: str) -> None:
    """A sweep is left out, because its tables are on standard output."""
    make, name = FILES[command, option]
    out, plain = tmp_path / "out", tmp_path / name
    out.write_bytes(FOREIGN if ">>" in redirect else b"")
    words = [sys.executable, "-m", "anabranch", *map(str, make(given, Path("/dev/stdout")))]
    if command == "convert":
        words += ["--to", "scenario"]
    done = subprocess.run(  # noqa: S602 - our own command
        f"{shlex.join(words)} {redirect.format(file=shlex.quote(str(out)))}",
        shell=True,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    subprocess.run(  # noqa: S603 - our own command
        [sys.executable, "-m", "anabranch", *map(str, make(given, plain))], capture_output=True, check=True
    )
    assert out.read_bytes() == (FOREIGN if ">>" in redirect else b"") + plain.read_bytes()
    assert Path("/dev/stdout").is_symlink()


@pytest.mark.parametrize(("command", "option"), DIRECTORIES)
@pytest.mark.parametrize("kind", ["device", "pipe", "socket", "file", "dangling link", "link to a device"])
def test_an_output_directory_replaces_nothing_else(
    anabranch: Call, given: Inputs, tmp_path: Path, command: str, option: str, kind: str
) -> None:
    path = tmp_path / "out"
    with socket.socket(socket.AF_UNIX) as listener:
        if kind == "device":
            device(path)
        elif kind == "pipe":
            os.mkfifo(path)
        elif kind == "socket":
            listener.bind(str(path))
        elif kind == "file":
            path.write_bytes(FOREIGN)
        elif kind == "dangling link":
            path.symlink_to(tmp_path / "nowhere")
        else:
            path.symlink_to(device(tmp_path / "node"))
        before = sorted(map(sight, tmp_path.iterdir()))
        done = anabranch(*DIRECTORIES[command, option](given, path))
        assert (done.status, done.out) == (2, ""), done.err
        assert "Traceback" not in done.err
        assert sorted(map(sight, tmp_path.iterdir())) == before


def target(path: Path, *, force: bool = False) -> OutputFile:
    return output_file.output_file(path, "--out", is_ours=lambda head: head.startswith(b"ours"), force=force)


SWAPS: dict[str, Callable[[Path], object]] = {
    "device": device,
    "pipe": os.mkfifo,
    "directory": Path.mkdir,
    "link": lambda path: path.symlink_to("elsewhere"),
    "foreign": lambda path: path.write_bytes(FOREIGN),
}


@pytest.mark.parametrize("kind", SWAPS)
@pytest.mark.parametrize("before", ["absent", "ours"])
@pytest.mark.parametrize("moment", ["before", "within"])
def test_a_target_that_changes_during_the_run_is_unchanged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, before: str, moment: str
) -> None:
    path = tmp_path / "x"
    if before == "ours":
        path.write_bytes(b"ours")
    file = target(path)

    def swap() -> None:
        path.unlink(missing_ok=True)
        SWAPS[kind](path)

    if moment == "before":
        swap()
    else:
        # In the last step: after the second check of the target.
        for name in ("exchange", "rename_new"):
            monkeypatch.setattr(_engine, name, once(swap, getattr(_engine, name)))
    with pytest.raises(UserError, match=r"left as it is|cannot be written"):
        file.write(b"ours, new")
    there = path.lstat()
    kinds = {"device": stat.S_ISCHR, "pipe": stat.S_ISFIFO, "directory": stat.S_ISDIR, "link": stat.S_ISLNK}
    assert kinds.get(kind, stat.S_ISREG)(there.st_mode)
    assert kind != "foreign" or path.read_bytes() == FOREIGN
    assert not (tmp_path / "elsewhere").exists()
    assert os.listdir(tmp_path) == ["x"]


def once(first: Callable[[], None], function: Callable[..., bool]) -> Callable[..., bool]:
    left = [first]

    def call(*arguments: str) -> bool:
        if left:
            left.pop()()
        return function(*arguments)

    return call


@pytest.mark.parametrize("kind", ["foreign", "link", "directory"])
def test_a_replaced_device_is_not_written(tmp_path: Path, kind: str) -> None:
    path = device(tmp_path / "x")
    file = target(path)
    path.unlink()
    SWAPS[kind](path)
    with pytest.raises(UserError):
        file.write(b"ours")
    assert kind != "foreign" or path.read_bytes() == FOREIGN


def test_without_an_atomic_exchange_the_target_is_checked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_engine, "exchange", lambda *_: False)
    monkeypatch.setattr(_engine, "rename_new", lambda *_: False)
    path = tmp_path / "x"
    for content in (b"ours 1", b"ours 2"):
        target(path).write(content)
        assert path.read_bytes() == content
    file = target(path)
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(UserError, match="left as it is"):
        file.write(b"ours")
    assert path.is_fifo()


def test_a_full_disk_preserves_the_earlier_content(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"ours")
    file = target(path)

    def parts() -> Iterator[bytes]:
        yield b"ours, half"
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.raises(RunFailedError, match="No space left on device"):
        file.write(parts())
    assert path.read_bytes() == b"ours"
    assert os.listdir(tmp_path) == ["x"]


@pytest.mark.parametrize(("command", "option"), FILES)
def test_a_file_size_limit_preserves_the_earlier_content(
    given: Inputs, tmp_path: Path, command: str, option: str
) -> None:
    make, name = FILES[command, option]
    path = tmp_path / name
    path.write_bytes(FOREIGN)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    done = subprocess.run(  # noqa: S603 - our own command
        [sys.executable, "-m", "anabranch", *map(str, make(given, path)), "--force"],
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (100, limits[1])),
        capture_output=True,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    assert b"Traceback" not in done.stderr
    assert path.read_bytes() == FOREIGN
    assert os.listdir(tmp_path) == [path.name]


def test_an_interrupted_write_preserves_the_earlier_content(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"ours")

    def parts() -> Iterator[bytes]:
        yield b"ours, half"
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        target(path).write(parts())
    assert path.read_bytes() == b"ours"
    assert os.listdir(tmp_path) == ["x"]


def test_owner_mode_and_attributes_are_preserved(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"ours")
    path.chmod(0o606)
    if os.geteuid() == 0:
        os.chown(path, 12345, 54321)
    try:
        os.setxattr(path, "user.note", b"keep")
        has_attributes = True
    except OSError:
        has_attributes = False
    before = path.stat()
    target(path).write(b"ours, new")
    after = path.stat()
    assert path.read_bytes() == b"ours, new"
    assert (after.st_mode, after.st_uid, after.st_gid) == (before.st_mode, before.st_uid, before.st_gid)
    assert not has_attributes or os.getxattr(path, "user.note") == b"keep"


def test_a_link_of_another_user_in_a_shared_directory_is_not_followed(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("gives a link to another user")
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o1777)
    (shared / "x").symlink_to(tmp_path / "victim")
    os.lchown(shared / "x", 12345, 12345)
    with pytest.raises(UserError, match="link of another user"):
        target(shared / "x", force=True)
    assert not (tmp_path / "victim").exists()


def test_a_descriptor_is_written_in_place(tmp_path: Path) -> None:
    with (tmp_path / "x").open("wb") as opened:
        opened.write(b"before, ")
        opened.flush()
        for name in (f"/dev/fd/{opened.fileno()}", f"/proc/self/fd/{opened.fileno()}"):
            file = target(Path(name))
            assert file.target.kind is Kind.DESCRIPTOR
            assert file.write(b"ours, ")
    assert (tmp_path / "x").read_bytes() == b"before, ours, ours, "
    with (tmp_path / "x").open("rb") as opened, pytest.raises(UserError, match="not open for writing"):
        find(Path(f"/dev/fd/{opened.fileno()}"))


def test_a_terminal_gets_no_control_characters() -> None:
    main, end = os.openpty()
    try:
        target(Path(os.ttyname(end))).write(b"a\x1b[31mb\n")
        assert os.read(main, 100) == "a␛[31mb\r\n".encode()
    finally:
        os.close(main)
        os.close(end)


@pytest.mark.parametrize("kind", ["device", "pipe", "directory"])
def test_files_inside_results_are_regular(tmp_path: Path, kind: str) -> None:
    SWAPS[kind](tmp_path / "x")
    before = sight(tmp_path / "x")
    with pytest.raises(UserError, match="not a regular file"):
        write_whole(tmp_path / "x", b"1")
    assert sight(tmp_path / "x") == before


def test_a_sweep_preserves_foreign_files_with_its_names(anabranch: Call, given: Inputs, tmp_path: Path) -> None:
    sweep = ["sweep", given.scenario, "--grid", "flow.main.cc=reno", "--out", tmp_path / "out"]
    assert anabranch(*sweep).status == 0
    assert anabranch(*sweep).status == 0
    for name in ("runs.csv", "table.parquet"):
        (tmp_path / "out" / name).unlink()
        os.mkfifo(tmp_path / "out" / name)
        done = anabranch(*sweep)
        assert done.status == 2, done.err
        assert (tmp_path / "out" / name).is_fifo()
        (tmp_path / "out" / name).unlink()


def test_results_with_foreign_nodes_are_not_replaced(anabranch: Call, given: Inputs, tmp_path: Path) -> None:
    run = ["run", given.scenario, "--no-packets", "--out", tmp_path / "out"]
    assert anabranch(*run).status == 0
    report = tmp_path / "out" / "report.html"
    for make in (os.mkfifo, device, lambda path: path.symlink_to(given.scenario)):
        report.unlink()
        make(report)
        before = sight(report)
        done = anabranch(*run)
        assert (done.status, "holds files that are not ours (report.html)" in done.err) == (2, True), done.err
        assert sight(report) == before


def test_additional_files_are_not_put_beside_a_device(anabranch: Call, given: Inputs, tmp_path: Path) -> None:
    folder = tmp_path / "devices"
    folder.mkdir()
    node = device(folder / "node")
    done = anabranch("convert", given.scenario, "--to", "mahimahi", "--out", node, "--force")
    assert (done.status, os.listdir(folder)) == (2, ["node"]), done.err
    assert "more files are needed beside it" in done.err
