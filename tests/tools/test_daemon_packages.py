"""Packages of the gateway and the group controller: installer, files, and OpenWrt's scripts with stand-in functions."""

from __future__ import annotations

import hashlib
import io
import os
import platform
import shutil
import struct
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[2]
PACKAGING = ROOT / "packaging"
PACKAGES = sorted(path.stem for path in PACKAGING.glob("*.package"))
OPENWRT = PACKAGING / "openwrt/anabranch-gateway"
MACHINE = {"x86_64": 62, "aarch64": 183}


def program(machine: str = "x86_64") -> bytes:
    """The header of an ELF file for a machine, with text in place of code."""
    header = b"\x7fELF\x02\x01\x01" + bytes(9) + struct.pack("<HH", 2, MACHINE[machine])
    return header + b"no program\n"


@pytest.fixture(params=PACKAGES)
def release(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """A folder as of a release, named as the package in it: the archive of this machine, and its sum."""
    machine = platform.machine()
    if machine not in MACHINE:
        pytest.skip(f"no binary for {machine}")
    name = str(request.param)
    folder = tmp_path / name
    folder.mkdir()
    base = f"{name}-1.2.3-{machine}-linux"
    archive = folder / f"{base}.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        for file, content in ((name, program()), (f"{name}.8", b".TH\n")):
            about = tarfile.TarInfo(f"{base}/{file}")
            about.size = len(content)
            tar.addfile(about, io.BytesIO(content))
    total = hashlib.sha256(archive.read_bytes()).hexdigest()
    (folder / "SHA256SUMS").write_text(f"{'0' * 64}  other.tar.gz\n{total}  {archive.name}\n", "utf-8")
    return folder


def install(release: Path, prefix: Path, *more: str) -> subprocess.CompletedProcess[str]:
    """Run the installer as a pipe from curl does."""
    script = (PACKAGING / "install-gateway.sh").read_text("utf-8")
    named = [] if release.name == "anabranch-gateway" else ["--package", release.name]
    arguments = [*named, "--url", f"file://{release}", "--prefix", str(prefix), *more]
    return subprocess.run(
        ["/bin/sh", "-s", "--", *arguments], input=script, capture_output=True, text=True, check=False, timeout=60
    )


needs_curl = pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not there")


@needs_curl
@pytest.mark.parametrize("more", [[], ["--version", "1.2.3"]])
def test_the_installer_verifies_and_replaces_the_binary(release: Path, tmp_path: Path, more: list[str]) -> None:
    prefix = tmp_path / "usr"
    (prefix / "bin").mkdir(parents=True)
    installed = prefix / "bin" / release.name
    installed.write_text("years", "utf-8")
    done = install(release, prefix, *more)
    assert done.returncode == 0, done.stderr
    assert "sum verified" in done.stdout
    assert installed.read_bytes() == program()
    assert os.access(installed, os.X_OK)
    assert [path.name for path in installed.parent.iterdir()] == [release.name]


@needs_curl
def test_the_installer_changes_nothing_where_a_sum_differs(release: Path, tmp_path: Path) -> None:
    """Detects an archive that was altered, a sum from elsewhere that differs, and a missing archive."""
    (archive,) = release.glob("*.tar.gz")
    good = archive.read_bytes()
    prefix = tmp_path / "usr"
    archive.write_bytes(good + b"x")
    done = install(release, prefix)
    assert (done.returncode, "does not have the sum" in done.stderr) == (1, True), done.stderr
    archive.write_bytes(good)
    done = install(release, prefix, "--sha256", "1" * 64)
    assert (done.returncode, "nothing was installed" in done.stderr) == (1, True), done.stderr
    done = install(release, prefix, "--version", "9.9.9")
    assert (done.returncode, "no archive" in done.stderr) == (1, True), done.stderr
    done = install(release, prefix, "--prefx", "x")
    assert (done.returncode, "expected --package, --version" in done.stderr) == (1, True), done.stderr
    done = install(release, prefix, "--package", "anabranch-groups")
    assert (done.returncode, "expected anabranch-gateway or anabranch-group" in done.stderr) == (1, True), done.stderr
    assert not prefix.exists()


def test_a_cut_script_installs_nothing(release: Path, tmp_path: Path) -> None:
    """Detects commands that run before the whole script has come through the pipe."""
    script = (PACKAGING / "install-gateway.sh").read_text("utf-8")
    for share in (0.3, 0.6, 0.9):
        cut = script[: int(len(script) * share)]
        arguments = ["--url", f"file://{release}", "--prefix", str(tmp_path / "usr")]
        subprocess.run(["/bin/sh", "-s", "--", *arguments], input=cut, text=True, capture_output=True, check=False)
        assert not (tmp_path / "usr").exists()


def build(program_name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a builder of packages, which writes into the folder of its binary, the second argument."""
    environment = os.environ | {"DIST": str(Path(arguments[1]).parent)}
    return subprocess.run(
        [PACKAGING / program_name, *arguments], capture_output=True, text=True, check=False, timeout=120,
        env=environment,
    )  # fmt: skip


@pytest.mark.parametrize("name", PACKAGES)
@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_an_openwrt_package_has_its_files(tmp_path: Path, machine: str, name: str) -> None:
    binary = tmp_path / "binary"
    binary.write_bytes(program(machine))
    done = build("build-package-ipk", name, str(binary), f"test_{machine}")
    assert done.returncode == 0, done.stderr
    with tarfile.open(done.stdout.strip()) as outer:
        assert outer.getnames() == ["./debian-binary", "./data.tar.gz", "./control.tar.gz"]
        data = outer.extractfile("./data.tar.gz")
        control = outer.extractfile("./control.tar.gz")
        assert data is not None
        assert control is not None
        with tarfile.open(fileobj=data) as inner:
            modes = {about.name: about.mode for about in inner if about.isfile()}
            assert all(about.uid == about.gid == 0 for about in inner)
        with tarfile.open(fileobj=control) as inner:
            about = inner.extractfile("./control")
            assert about is not None
            assert f"Architecture: test_{machine}\n" in about.read().decode()
    assert modes[f"./usr/bin/{name}"] == 0o755
    assert modes[f"./etc/init.d/{name}"] == 0o755
    assert f"./etc/config/{name}" in modes


def test_a_dynamic_binary_is_no_openwrt_package(tmp_path: Path) -> None:
    binary = tmp_path / "binary"
    binary.write_bytes(program() + b"/lib64/ld-linux-x86-64.so.2\0")
    done = build("build-package-ipk", "anabranch-group", str(binary))
    assert (done.returncode, "expected a static one" in done.stderr) == (2, True)
    binary.write_bytes(b"#!/bin/sh\n" * 9)
    done = build("build-package-ipk", "anabranch-group", str(binary))
    assert (done.returncode, "no program for" in done.stderr) == (2, True)


@pytest.mark.parametrize("builder", ["build-package-deb", "build-package-rpm", "build-package-ipk", "build-release"])
def test_an_unknown_package_is_refused(tmp_path: Path, builder: str) -> None:
    done = build(builder, "anabranch-groups", str(tmp_path))
    assert (done.returncode, f"expected one of: {' '.join(PACKAGES)}" in done.stderr) == (2, True), done.stderr


def script(root: Path, name: str) -> str:
    """A script of an unpacked Debian package; the shell finds no fault in it."""
    path = root / "DEBIAN" / name
    checked = subprocess.run(["/bin/sh", "-n", str(path)], capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stderr
    return path.read_text("utf-8")


@pytest.mark.skipif(not Path("/usr/bin/dpkg-deb").is_file(), reason="dpkg-deb is not there")
@pytest.mark.parametrize("name", PACKAGES)
def test_a_debian_package_has_its_files_and_scripts(tmp_path: Path, name: str) -> None:
    """Detects a unit that is not in the package, or that its scripts do not end."""
    binary = tmp_path / "binary"
    binary.write_bytes(program("aarch64"))
    done = build("build-package-deb", name, str(binary))
    assert done.returncode == 0, done.stderr
    (package,) = tmp_path.glob(f"{name}_*_arm64.deb")
    root = tmp_path / "root"
    subprocess.run(["/usr/bin/dpkg-deb", "-R", str(package), str(root)], check=True, capture_output=True)
    units = {path.name for path in (root / "usr/lib/systemd/system").iterdir()}
    assert units == {path.name for path in PACKAGING.glob(f"{name}[-@.]*service")}
    assert (root / "usr/bin" / name).stat().st_mode & 0o777 == 0o755
    assert (root / f"usr/share/man/man8/{name}.8.gz").is_file()
    control = (root / "DEBIAN/control").read_text("utf-8")
    assert control.startswith(f"Package: {name}\n")
    assert "\n\n" not in control
    started, stopped = script(root, "postinst"), script(root, "prerm")
    assert all(unit in stopped for unit in units)
    assert ("adduser" in started) == ("adduser" in control) == (name == "anabranch-gateway")
    assert f"/var/lib/{name}" in script(root, "postrm")


@pytest.mark.skipif(shutil.which("rpmbuild") is None, reason="rpmbuild is not there")
def test_an_rpm_package_has_its_files(tmp_path: Path) -> None:
    binary = tmp_path / "binary"
    binary.write_bytes(program("aarch64"))
    done = build("build-package-rpm", "anabranch-group", str(binary))
    assert done.returncode == 0, done.stderr
    package = done.stdout.strip()
    listed = subprocess.run(
        [shutil.which("rpm") or "rpm", "-qlp", package], check=True, capture_output=True, text=True
    ).stdout
    files = set(listed.split())
    for file in ("/usr/bin/anabranch-group", "/usr/lib/systemd/system/anabranch-group@.service",
                 "/usr/share/man/man8/anabranch-group.8.gz", "/etc/anabranch-group"):  # fmt: skip
        assert file in files


# The functions of OpenWrt's /lib/functions.sh that the scripts call. Each option is a file, with a line for each item.
FUNCTIONS = r"""
config_load() { UCI=$STUB/$1; }
config_get() { eval "$1=\$(cat \"\$UCI/$2/$3\" 2>/dev/null | head -n 1)"; }
config_get_bool() { config_get "$1" "$2" "$3"; eval "[ -n \"\$$1\" ] || $1=$4"; }
config_list_foreach() {
    file=$UCI/$1/$2 callback=$3
    shift 3
    [ -f "$file" ] || return 0
    while IFS= read -r item; do "$callback" "$item" "$@"; done <"$file"
}
config_foreach() {
    for place in "$UCI"/*; do
        [ "$(cat "$place/.type")" != "$2" ] || "$1" "${place##*/}"
    done
}
procd_open_instance() { :; }
procd_close_instance() { :; }
procd_add_reload_trigger() { :; }
procd_set_param() { echo "$*" >>"$STUB/procd"; }
procd_append_param() { echo "$*" >>"$STUB/procd"; }
"""

SHELLS = [shell for shell in (["busybox", "ash"], ["dash"]) if shutil.which(shell[0])]


def uci(stub: Path, sections: dict[str, dict[str, str]], package: str = "anabranch-gateway") -> None:
    """Write sections of the package's configuration; `.type` is a section's type."""
    for name, options in sections.items():
        place = stub / package / name
        place.mkdir(parents=True)
        for option, value in options.items():
            (place / option).write_text(value + "\n", "utf-8")


@pytest.mark.skipif(not SHELLS, reason="neither busybox nor dash is there")
@pytest.mark.parametrize("shell", SHELLS, ids=lambda shell: shell[0])
def test_uci_sections_make_a_configuration(tmp_path: Path, shell: list[str]) -> None:
    sections = {
        "gateway": {
            ".type": "gateway",
            "address": "10.9.0.2/24\nfd09::2/64",
            "private_key_file": "/etc/key",
            "protect": "1",
        },
        "server": {".type": "peer", "public_key": "AA==", "allowed": "10.9.0.1/32", "endpoint": "gw.example:51900"},
        "fibre": {".type": "path", "interface": "eth1"},
        "lte": {".type": "path", "interface": 'ww"\\an0', "policy": "metered", "cap": "20 GB/month", "reset_day": "7"},
        "calls": {".type": "class", "dscp": "ef", "mode": "interactive"},
    }
    uci(tmp_path, sections)
    load = f". {OPENWRT}/usr/lib/anabranch-gateway/uci.sh\nconfig_load anabranch-gateway\ngateway_toml\n"
    script = f"STUB={tmp_path}\n{FUNCTIONS}\n{load}"
    done = subprocess.run([*shell, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert tomllib.loads(done.stdout) == {
        "gateway": {"addresses": ["10.9.0.2/24", "fd09::2/64"], "private_key_file": "/etc/key", "protect": True},
        "peer": {"server": {"public_key": "AA==", "allowed": ["10.9.0.1/32"], "endpoints": ["gw.example:51900"]}},
        "path": {
            "fibre": {"interface": "eth1"},
            "lte": {"interface": 'ww"\\an0', "policy": "metered", "cap": "20 GB/month", "reset_day": 7},
        },
        "class": {"calls": {"match": {"dscp": "ef"}, "mode": "interactive"}},
    }


@pytest.mark.skipif(not SHELLS, reason="neither busybox nor dash is there")
@pytest.mark.parametrize("shell", SHELLS, ids=lambda shell: shell[0])
@pytest.mark.parametrize(("enabled", "is_good"), [("1", True), ("0", True), ("1", False)])
def test_the_init_script_starts_a_checked_configuration(
    tmp_path: Path, shell: list[str], enabled: str, is_good: bool
) -> None:
    """Detects an instance of procd that is disabled, or whose configuration `check` refuses."""
    uci(tmp_path, {"gateway": {".type": "gateway", "enabled": enabled, "file": "/etc/gw.toml"}})
    checked = tmp_path / "program"
    checked.write_text(f"#!/bin/sh\nexit {0 if is_good else 2}\n", "utf-8")
    checked.chmod(0o755)
    script = (OPENWRT / "etc/init.d/anabranch-gateway").read_text("utf-8")
    script = script.replace("/usr/lib/anabranch-gateway", f"{OPENWRT}/usr/lib/anabranch-gateway")
    script = script.replace("PROGRAM=/usr/bin/anabranch-gateway", f"PROGRAM={checked}")
    whole = f"STUB={tmp_path}\n{FUNCTIONS}\n{script}\nstart_service\n"
    done = subprocess.run([*shell, "-c", whole], capture_output=True, text=True, check=False)
    procd = tmp_path / "procd"
    started = procd.read_text("utf-8") if procd.exists() else ""
    assert (f"command {checked} up /etc/gw.toml\n" in started) == (enabled == "1" and is_good)
    assert (done.returncode == 0) == is_good, done.stderr


@pytest.mark.skipif(not SHELLS, reason="neither busybox nor dash is there")
@pytest.mark.parametrize("shell", SHELLS, ids=lambda shell: shell[0])
def test_the_init_script_controls_each_enabled_bond(tmp_path: Path, shell: list[str]) -> None:
    """Detects an option that is not passed on, a disabled bond that starts, and a bond that a stop does not release."""
    uci(
        tmp_path,
        {
            "bond0": {
                ".type": "bond",
                "enabled": "1",
                "least": "2",
                "set": "interval=6 s\npercentile=95",
                "power": "idle=3 W",
            },
            "wan": {".type": "bond", "enabled": "1", "bond": "bond7", "method": "peak-forecast"},
            "off": {".type": "bond", "enabled": "0"},
        },
        "anabranch-group",
    )
    program_file = tmp_path / "program"
    program_file.write_text(f'#!/bin/sh\necho "$*" >>{tmp_path}/called\nexit 2\n', "utf-8")
    program_file.chmod(0o755)
    text = (PACKAGING / "openwrt/anabranch-group/etc/init.d/anabranch-group").read_text("utf-8")
    text = text.replace("PROGRAM=/usr/bin/anabranch-group", f"PROGRAM={program_file}")
    whole = f"STUB={tmp_path}\n{FUNCTIONS}\n{text}\nstart_service\nservice_stopped\n"
    done = subprocess.run([*shell, "-c", whole], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    lines = [line for line in (tmp_path / "procd").read_text("utf-8").splitlines() if line.startswith("command ")]
    assert lines == [
        f"command {program_file} control bond0",
        "command --least 2",
        "command --set interval=6 s",
        "command --set percentile=95",
        "command --power idle=3 W",
        f"command {program_file} control bond7",
        "command --method peak-forecast",
    ]
    called = (tmp_path / "called").read_text("utf-8").splitlines()
    assert called == ["release bond0", "release off", "release bond7"]
