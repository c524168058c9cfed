"""Packages of the gateway: the installer, files of packages, and OpenWrt's scripts with stand-ins for its functions."""

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
OPENWRT = PACKAGING / "openwrt/files"
MACHINE = {"x86_64": 62, "aarch64": 183}


def program(machine: str = "x86_64") -> bytes:
    """The header of an ELF file for a machine, with text in place of code."""
    header = b"\x7fELF\x02\x01\x01" + bytes(9) + struct.pack("<HH", 2, MACHINE[machine])
    return header + b"no program\n"


@pytest.fixture
def release(tmp_path: Path) -> Path:
    """A folder as of a release: the archive of this machine, and its sum."""
    machine = platform.machine()
    if machine not in MACHINE:
        pytest.skip(f"no binary for {machine}")
    folder = tmp_path / "release"
    folder.mkdir()
    base = f"anabranch-gateway-1.2.3-{machine}-linux"
    archive = folder / f"{base}.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        for name, content in (("anabranch-gateway", program()), ("anabranch-gateway.8", b".TH\n")):
            about = tarfile.TarInfo(f"{base}/{name}")
            about.size = len(content)
            tar.addfile(about, io.BytesIO(content))
    total = hashlib.sha256(archive.read_bytes()).hexdigest()
    (folder / "SHA256SUMS").write_text(f"{'0' * 64}  other.tar.gz\n{total}  {archive.name}\n", "utf-8")
    return folder


def install(release: Path, prefix: Path, *more: str) -> subprocess.CompletedProcess[str]:
    """Run the installer as a pipe from curl does."""
    script = (PACKAGING / "install-gateway.sh").read_text("utf-8")
    arguments = ["--url", f"file://{release}", "--prefix", str(prefix), *more]
    return subprocess.run(
        ["/bin/sh", "-s", "--", *arguments], input=script, capture_output=True, text=True, check=False, timeout=60
    )


needs_curl = pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not there")


@needs_curl
@pytest.mark.parametrize("more", [[], ["--version", "1.2.3"]])
def test_the_installer_verifies_and_replaces_the_binary(release: Path, tmp_path: Path, more: list[str]) -> None:
    prefix = tmp_path / "usr"
    (prefix / "bin").mkdir(parents=True)
    installed = prefix / "bin/anabranch-gateway"
    installed.write_text("years", "utf-8")
    done = install(release, prefix, *more)
    assert done.returncode == 0, done.stderr
    assert "sum verified" in done.stdout
    assert installed.read_bytes() == program()
    assert os.access(installed, os.X_OK)
    assert [path.name for path in installed.parent.iterdir()] == ["anabranch-gateway"]


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
    assert (done.returncode, "expected --version" in done.stderr) == (1, True), done.stderr
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
    """Run a builder of packages."""
    return subprocess.run(
        [PACKAGING / program_name, *arguments], capture_output=True, text=True, check=False, timeout=120
    )


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_an_openwrt_package_has_its_files(tmp_path: Path, machine: str) -> None:
    binary = tmp_path / "binary"
    binary.write_bytes(program(machine))
    done = build("build-gateway-ipk", str(binary), f"test_{machine}")
    assert done.returncode == 0, done.stderr
    package = ROOT / done.stdout.strip()
    try:
        with tarfile.open(package) as outer:
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
    finally:
        package.unlink()
    assert modes["./usr/bin/anabranch-gateway"] == 0o755
    assert modes["./etc/init.d/anabranch-gateway"] == 0o755
    assert "./etc/config/anabranch-gateway" in modes


def test_a_dynamic_binary_is_no_openwrt_package(tmp_path: Path) -> None:
    binary = tmp_path / "binary"
    binary.write_bytes(program() + b"/lib64/ld-linux-x86-64.so.2\0")
    done = build("build-gateway-ipk", str(binary))
    assert (done.returncode, "expected a static one" in done.stderr) == (2, True)
    binary.write_bytes(b"#!/bin/sh\n" * 9)
    done = build("build-gateway-ipk", str(binary))
    assert (done.returncode, "no program for" in done.stderr) == (2, True)


# The functions of OpenWrt's /lib/functions.sh that the scripts call. Each option is a file, with a line for each item.
FUNCTIONS = r"""
config_load() { UCI=$STUB/$1; }
config_get() { eval "$1=\$(cat \"\$UCI/$2/$3\" 2>/dev/null | head -n 1)"; }
config_get_bool() { config_get "$1" "$2" "$3"; eval "[ -n \"\$$1\" ] || $1=$4"; }
config_list_foreach() {
    [ -f "$UCI/$1/$2" ] || return 0
    while IFS= read -r item; do "$3" "$item"; done <"$UCI/$1/$2"
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
"""

SHELLS = [shell for shell in (["busybox", "ash"], ["dash"]) if shutil.which(shell[0])]


def uci(stub: Path, sections: dict[str, dict[str, str]]) -> None:
    """Write sections of the package's configuration; `.type` is a section's type."""
    for name, options in sections.items():
        place = stub / "anabranch-gateway" / name
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
