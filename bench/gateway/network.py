"""Two namespaces, paths between them that the live engine or a wire makes, and two gateways that bond the paths."""

from __future__ import annotations

import argparse
import itertools
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from anabranch import Scenario
from anabranch.gateway.status import Status
from anabranch.kernel.program import run as run_inside

ROOT = Path(__file__).resolve().parents[2]
ENDS = ("near", "far")
INNER = {"near": "10.99.0.2", "far": "10.99.0.1"}
PORT = 51900
PATIENCE_S = 60.0
LOOK_S = 0.25
GATEWAY = ROOT / "target/dist/anabranch-gateway"
WITHIN = "ANABRANCH_BENCH_WITHIN"
"""The environment variable of a program that runs in a kernel in virtual time."""
_COUNT = itertools.count()


def gateway_argument(parser: argparse.ArgumentParser) -> None:
    """Add the option that names the gateway's program."""
    parser.add_argument(
        "--gateway",
        type=Path,
        default=GATEWAY,
        metavar="FILE",
        help="the program; of cargo build --profile dist -p anabranch-gatewayd; %(default)s",
    )


def engine_argument(parser: argparse.ArgumentParser) -> None:
    """Add the option that puts all of it into a kernel in virtual time."""
    parser.add_argument(
        "--engine",
        choices=("live", "kernel"),
        default="live",
        help="kernel: all of it in a Linux kernel in virtual time, the same each time; %(default)s",
    )


def in_kernel(options: argparse.Namespace) -> None:
    """Run this program again in a kernel if requested, and exit with its status."""
    if options.engine == "kernel" and WITHIN not in os.environ:
        os.environ[WITHIN] = "1"
        sys.exit(run_inside([sys.executable, *sys.argv]))


def check(gateway: Path) -> None:
    """End the program if it cannot measure here."""
    if os.geteuid() != 0 or shutil.which("ip") is None:
        sys.exit("root and the program ip (iproute2) are needed, to make namespaces")
    if not gateway.exists():
        sys.exit(f"{gateway} is missing: cargo build --profile dist -p anabranch-gatewayd, or --gateway FILE")


def run(*words: str) -> str:
    """Run a command that must succeed, and return its output."""
    done = subprocess.run(words, check=False, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(words)}: {done.stderr.strip()}")
    return done.stdout


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


def wait(is_done: Callable[[], bool], what: str) -> None:
    """Wait until a condition holds."""
    until = time.monotonic() + PATIENCE_S
    while not is_done():
        if time.monotonic() > until:
            sys.exit(f"waited for {PATIENCE_S:.0f} s in vain: {what}")
        time.sleep(LOOK_S)


@contextmanager
def namespaces(*kinds: str) -> Iterator[dict[str, str]]:
    """Yield the names of namespaces, which are gone with the block."""
    names = {kind: f"anabranch-bench-{os.getpid()}-{next(_COUNT)}-{kind}" for kind in kinds}
    try:
        for name in names.values():
            run("ip", "netns", "add", name)
            run("ip", "-n", name, "link", "set", "lo", "up")
        yield names
    finally:
        for name in names.values():
            subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True)


def address(names: dict[str, str], end: str, path: int) -> None:
    """Give the interface of a path its address, and set it up."""
    interface = f"wan{path}"
    run("ip", "-n", names[end], "link", "set", interface, "up")
    run("ip", "-n", names[end], "addr", "add", f"{outer(end, path)}/24", "dev", interface)


@contextmanager
def wired(paths: Sequence[int]) -> Iterator[dict[str, str]]:
    """Yield the two ends, with a wire for each path: no delay, and no limit but the processor."""
    with namespaces(*ENDS) as names:
        for path in paths:
            interface = f"wan{path}"
            peer = ("type", "veth", "peer", "name", interface, "netns", names["far"])
            run("ip", "-n", names["near"], "link", "add", interface, *peer)
            for end in ENDS:
                address(names, end, path)
        yield names


@contextmanager
def spaces(paths: Sequence[int]) -> Iterator[dict[str, str]]:
    """Yield three namespaces: the two ends, and between them the one whose interfaces the engine connects."""
    with namespaces(*ENDS, "wan") as names:
        for end in ENDS:
            for path in paths:
                inner, interface = f"{end}{path}", f"wan{path}"
                peer = ("type", "veth", "peer", "name", interface, "netns", names[end])
                run("ip", "-n", names["wan"], "link", "add", inner, *peer)
                run("ip", "-n", names["wan"], "link", "set", inner, "up")
                # Each frame of a path holds one segment, as on a physical link.
                run("ip", "-n", names[end], "link", "set", interface, "gso_max_segs", "1")
                address(names, end, path)
        yield names


def wan(links: dict[int, dict[str, Any]], seed: int, changes: Sequence[dict[str, Any]] = ()) -> Scenario:
    """Return the scenario that carries the frames of these paths."""
    document: dict[str, dict[str, Any]] = {"link": {}, "host": {}, "flow": {}}
    for path, link in links.items():
        ends = [f"{end}{path}" for end in ENDS]
        document["link"][f"path{path}"] = {"between": ends, **link}
        document["host"] |= {end: {"attach": f"interface:{end}"} for end in ends}
        document["flow"][f"path{path}"] = {"from": ends[0], "to": ends[1]}
    at = {"at": list(changes)} if changes else {}
    return Scenario.from_dict({"title": "Paths", "duration": "3600 s", "seed": seed, **at, **document})


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


def processor_seconds(processes: Iterable[int]) -> float:
    """Return the processor's seconds that processes have used."""
    ticks = 0
    for process in processes:
        fields = Path(f"/proc/{process}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


class Gateways:
    """Two gateways that are up."""

    def __init__(self, program: Path, names: dict[str, str], folder: Path, processes: dict[str, int]) -> None:
        """Remember where they are."""
        self.program = program
        self.names = names
        self.folder = folder
        self.processes = processes

    def status(self, end: str) -> Status:
        """Return the status of an end; empty before it answers."""
        words = inside(self.names[end], str(self.program), "status", str(self.folder / f"{end}.toml"), "--json")
        done = subprocess.run(words, check=False, capture_output=True, text=True)
        found: Status = json.loads(done.stdout if done.returncode == 0 else "{}")
        return found

    def times(self, end: str, message: str) -> list[float]:
        """Return when an end has logged a message, in seconds of the system's clock."""
        lines = (self.folder / f"{end}.log").read_text(encoding="utf-8").splitlines()
        return [entry["time_s"] for entry in map(json.loads, lines) if entry["message"] == message]

    def states(self, end: str) -> list[str]:
        """Return the states of an end's paths."""
        peers = self.status(end).get("peers", {}).values()
        return [path["state"] for peer in peers for path in peer["paths"].values()]

    def seconds(self) -> float:
        """Return the processor's seconds that both have used."""
        return processor_seconds(self.processes.values())

    def resident_kib(self, end: str) -> int:
        """Return the memory that an end holds."""
        status = Path(f"/proc/{self.processes[end]}/status").read_text(encoding="ascii")
        return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS:"))


@contextmanager
def gateways(
    program: Path,
    names: dict[str, str],
    paths: Sequence[int],
    folder: Path,
    classes: str = "",
    *,
    is_bound: bool = True,
) -> Iterator[Gateways]:
    """Bond the paths within the block, which begins when every path has been validated.

    The far end's sockets are bound to the paths, or else it listens on all its interfaces.
    """
    public = {end: run(str(program), "keygen", "--out", str(folder / f"{end}.key")).split()[-1] for end in ENDS}
    endpoints = ", ".join(f'"{outer("far", path)}:{PORT}"' for path in paths)
    processes = {}
    with ExitStack() as stack:
        for end, other in (("far", "near"), ("near", "far")):
            file = folder / f"{end}.toml"
            file.write_text(
                f'[gateway]\nprivate_key_file = "{end}.key"\ninterface = "bond"\naddresses = ["{INNER[end]}/24"]\n'
                + (f'listen = ["0.0.0.0:{PORT}"]\n' if end == "far" else "")
                + f'[peer.{other}]\npublic_key = "{public[other]}"\nallowed = ["{INNER[other]}/32"]\n'
                + (f"endpoints = [{endpoints}]\n" if end == "near" else "")
                + "".join(f'[path.wan{path}]\ninterface = "wan{path}"\n' for path in paths if is_bound or end == "near")
                + classes
                + f'[status]\nsocket = "{folder}/{end}.sock"\n',
                encoding="utf-8",
            )
            log = stack.enter_context((folder / f"{end}.log").open("w", encoding="utf-8"))
            words = inside(names[end], str(program), "up", str(file), "--log", "json")
            process = stack.enter_context(ended(subprocess.Popen(words, stdout=log, stderr=log, text=True)))
            processes[end] = process.pid
        both = Gateways(program, names, folder, processes)

        def is_up() -> bool:
            return all(both.states(end) == ["active"] * len(paths) for end in ENDS)

        wait(is_up, "every path of the tunnel is active")
        # As in mqvpn's report: flows begin a little after every path has been validated.
        time.sleep(2)
        yield both


@contextmanager
def temporary() -> Iterator[Path]:
    """Yield a folder that is gone with the block."""
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


def conditions() -> str:
    """Return the conditions of the measurement."""
    return f"Linux {os.uname().release} in virtual time." if WITHIN in os.environ else load_average()


def load_average() -> str:
    """Return how busy the machine was: figures of a busy one show that it works, and no more."""
    return f"Load average {', '.join(f'{load:.1f}' for load in os.getloadavg())}; {os.cpu_count()} processors."
