"""What the tunnel makes of pairs of paths, with kernel TCP between namespaces: python bench/gateway/live.py [PROFILE…].

Runs as root, after `cargo build --profile dist -p anabranch-gatewayd`. The live engine carries the frames of each path
between two interfaces as profiles.toml says, and two `anabranch-gateway` bond the paths. Each profile runs over each
path by itself, without a tunnel, and over both through it. Nothing is configured per profile.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from anabranch import Scenario

from profiles import FILE_BYTES, Profile, arguments, link, table

ROOT = Path(__file__).resolve().parents[2]
ENDS = ("near", "far")
INNER = {"near": "10.99.0.2", "far": "10.99.0.1"}
PATIENCE_S = 60.0
PORT = 51900
LOAD = Path(__file__).with_name("load.py")


def run(*words: str) -> str:
    """Run a command that must succeed, and return what it prints."""
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


def inside(space: str, *words: str) -> list[str]:
    """Return a command that runs in a namespace."""
    return ["ip", "netns", "exec", space, *words]


def outer(end: str, path: int) -> str:
    """Return the address of an end on a path."""
    return f"10.{path + 1}.0.{1 if end == 'far' else 2}"


@contextmanager
def ended(process: subprocess.Popen[str]) -> Iterator[subprocess.Popen[str]]:
    """Yield a process, and end it with the block."""
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@contextmanager
def spaces(paths: list[int]) -> Iterator[dict[str, str]]:
    """Yield three namespaces: the two ends, and between them the one whose interfaces the engine connects."""
    names = {name: f"anabranch-bench-{os.getpid()}-{name}" for name in (*ENDS, "wan")}
    try:
        for name in names.values():
            run("ip", "netns", "add", name)
            run("ip", "-n", name, "link", "set", "lo", "up")
        for end in ENDS:
            for path in paths:
                inner, interface = f"{end}{path}", f"wan{path}"
                peer = ("type", "veth", "peer", "name", interface, "netns", names[end])
                run("ip", "-n", names["wan"], "link", "add", inner, *peer)
                run("ip", "-n", names["wan"], "link", "set", inner, "up")
                # The frames of a path are what a wire would carry: one segment each.
                run("ip", "-n", names[end], "link", "set", interface, "gso_max_segs", "1", "up")
                run("ip", "-n", names[end], "addr", "add", f"{outer(end, path)}/24", "dev", interface)
        yield names
    finally:
        for name in names.values():
            subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True)


def wan(profile: Profile, paths: list[int], seed: int) -> Scenario:
    """Return the scenario that carries the frames of these paths."""
    document: dict[str, dict[str, Any]] = {"link": {}, "host": {}, "flow": {}}
    for path in paths:
        ends = [f"{end}{path}" for end in ENDS]
        document["link"][f"path{path}"] = {"between": ends, **link(profile["paths"][path])}
        document["host"] |= {end: {"attach": f"interface:{end}"} for end in ends}
        document["flow"][f"path{path}"] = {"from": ends[0], "to": ends[1]}
    return Scenario.from_dict({"title": "Paths", "duration": "600 s", "seed": seed, **document})


@contextmanager
def engine(space: str, scenario: Scenario, folder: Path, count: int) -> Iterator[None]:
    """Carry the frames of paths within the block."""
    file = folder / "wan.toml"
    file.write_text(scenario.text, encoding="utf-8")
    words = inside(space, sys.executable, "-m", "anabranch", "run", str(file), "--engine", "live", "--allow-tainted")
    log = (folder / "wan.log").open("w+", encoding="utf-8")
    with log, ended(subprocess.Popen(words, stdout=log, stderr=log, text=True)) as process:

        def listens() -> bool:
            if process.poll() is not None:
                log.seek(0)
                sys.exit(f"the live engine ended: {log.read().strip()}")
            return run("ip", "-n", space, "-d", "-o", "link").count("promiscuity 1") == count

        wait(listens, "the live engine listens")
        yield


@contextmanager
def gateways(names: dict[str, str], paths: list[int], folder: Path) -> Iterator[None]:
    """Bond the paths within the block."""
    program = ROOT / "target/dist/anabranch-gateway"
    if not program.exists():
        sys.exit(f"{program} is missing: cargo build --profile dist -p anabranch-gatewayd")
    public = {end: run(str(program), "keygen", "--out", str(folder / f"{end}.key")).split()[-1] for end in ENDS}
    endpoints = ", ".join(f'"{outer("far", path)}:{PORT}"' for path in paths)
    with ExitStack() as stack:
        for end, other in (("far", "near"), ("near", "far")):
            file = folder / f"{end}.toml"
            file.write_text(
                f'[gateway]\nprivate_key_file = "{end}.key"\ninterface = "bond"\naddresses = ["{INNER[end]}/24"]\n'
                + (f'listen = ["0.0.0.0:{PORT}"]\n' if end == "far" else "")
                + f'[peer.{other}]\npublic_key = "{public[other]}"\nallowed = ["{INNER[other]}/32"]\n'
                + (f"endpoints = [{endpoints}]\n" if end == "near" else "")
                + "".join(f'[path.wan{path}]\ninterface = "wan{path}"\n' for path in paths),
                encoding="utf-8",
            )
            log = stack.enter_context((folder / f"{end}.log").open("w", encoding="utf-8"))
            words = inside(names[end], str(program), "up", str(file))
            stack.enter_context(ended(subprocess.Popen(words, stdout=log, stderr=log, text=True)))

        def is_up() -> bool:
            ping = inside(names["near"], "ping", "-c", "1", "-W", "1", INNER["far"])
            return subprocess.run(ping, check=False, capture_output=True).returncode == 0

        wait(is_up, "the tunnel is up")
        # As in mqvpn's report: flows begin when every path has been validated.
        time.sleep(2)
        yield


def wait(is_done: Callable[[], bool], what: str) -> None:
    """Wait until a condition holds."""
    until = time.monotonic() + PATIENCE_S
    while not is_done():
        if time.monotonic() > until:
            sys.exit(f"waited for {PATIENCE_S:.0f} s in vain: {what}")
        time.sleep(0.05)


def goodput(profile: Profile, paths: list[int], seed: int) -> float:
    """Return the goodput in Mbit/s: of a file until all of it has arrived."""
    load = profile.get("load")
    with tempfile.TemporaryDirectory() as name, spaces(paths) as names, ExitStack() as stack:
        folder = Path(name)
        stack.enter_context(engine(names["wan"], wan(profile, paths, seed), folder, 2 * len(paths)))
        server = outer("far", paths[0])
        if len(paths) > 1:
            stack.enter_context(gateways(names, paths, folder))
            server = INNER["far"]
        cc = load["cc"] if load else "bbr"
        sender = subprocess.Popen(
            inside(names["far"], sys.executable, str(LOAD), "send", server, cc), stdout=subprocess.PIPE, text=True
        )
        stack.enter_context(ended(sender))
        assert sender.stdout is not None
        sender.stdout.readline()
        amount = [str(load["flows"]), f"{load['seconds']}s"] if load else ["1", str(FILE_BYTES)]
        return float(run(*inside(names["near"], sys.executable, str(LOAD), "receive", server, *amount)))


if __name__ == "__main__":
    if os.geteuid() != 0 or shutil.which("ip") is None:
        sys.exit("root and the program ip (iproute2) are needed, to make namespaces")
    table(arguments(__doc__).parse_args(), goodput)
