"""Packets per second of CPU and memory of `anabranch diagnose`, tshark and tcptrace, on one synthetic capture.

    tools/env python validation/diagnose/speed.py [--megabytes 1000]

The capture repeats a simulated one with losses, each time with other ports and later times, so that
connections begin and end. A hundredth of it is also read: memory must not grow with the file.
"""

from __future__ import annotations

import argparse
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

BASE = """
duration = "20 s"
[link.path]
between = ["A", "B"]
rate = "50 Mbit/s"
delay = "15 ms"
queue = { kind = "drop-tail", limit = "1 bdp" }
forward.impair = [{ kind = "bernoulli-loss", rate = 0.002 }]
[flow.main]
from = "A"
to = "B"
count = 4
"""


def synthetic(file: Path, size: int) -> int:
    """Write a capture of about ``size`` bytes; return its number of packets."""
    # Imported here: a child process inherits the memory of its parent in its peak.
    from anabranch import Scenario  # noqa: PLC0415 - see above

    from diagnose import editing  # noqa: PLC0415 - see above

    content = Scenario.from_text(BASE, file="speed.toml").run(captures=["path"]).pcapng("path")
    frames = []
    for _, block in editing.frames(content):
        (length,) = struct.unpack_from("<I", block.content, 24)
        frames.append((block.time, length, block.packet))
    last = frames[-1][0]
    packets = written = 0
    with file.open("wb") as out:
        out.write(struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 96, 101))
        turn = 0
        while written < size:
            turn += 1
            chunk = bytearray()
            for at, length, packet in frames:
                seconds, nanos = divmod(at + turn * (last + 10**9), 10**9)
                header = (packet[0] & 15) * 4
                # The opening host's port is not the server's; both directions get the same new
                # port.
                ports = struct.unpack_from(">HH", packet, header)
                moved = struct.pack(">HH", *((port + 16 * turn) % 65536 for port in ports))
                chunk += struct.pack("<IIII", seconds, nanos, len(packet), length)
                chunk += packet[:header] + moved + packet[header + 4 :]
            out.write(chunk)
            written += len(chunk)
            packets += len(frames)
    return packets


def measured(words: list[str]) -> tuple[float, float, int]:
    """Elapsed and CPU seconds of a command, and its peak memory in bytes."""
    start = time.monotonic()
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise RuntimeError(f"{words[0]} ended with status {process.returncode}")
    return time.monotonic() - start, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024


def main() -> int:
    """Make the captures and time all three."""
    options = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    options.add_argument("--megabytes", type=int, default=1000)
    options.add_argument("--without-tshark", action="store_true", help="it takes minutes")
    options.add_argument("--make", nargs=2, metavar=("FILE", "BYTES"), help="write a capture, and do nothing else")
    arguments = options.parse_args()
    if arguments.make:
        print(synthetic(Path(arguments.make[0]), int(arguments.make[1])))
        return 0
    commands = {
        "diagnose": [sys.executable, "-m", "anabranch", "diagnose", "FILE", "--json"],
        "tshark": ["tshark", "-r", "FILE", "-Y", "tcp.analysis.retransmission", "-T", "fields", "-e", "frame.number"],
        "tcptrace": ["tcptrace", "-n", "-l", "FILE"],
    }
    with tempfile.TemporaryDirectory() as folder:
        for size in (arguments.megabytes * 10_000, arguments.megabytes * 1_000_000):
            file = Path(folder) / "synthetic.pcap"
            made = [sys.executable, __file__, "--make", str(file), str(size)]
            packets = int(subprocess.run(made, capture_output=True, text=True, check=True).stdout)
            print(f"{file.stat().st_size / 1e6:.0f} MB, {packets:,} packets")
            for name, words in commands.items():
                if name == "tshark" and arguments.without_tshark:
                    continue
                if name != "diagnose" and shutil.which(name) is None:
                    print(f"    {name}: not installed")
                    continue
                elapsed, cpu, memory = measured([str(file) if word == "FILE" else word for word in words])
                print(
                    f"    {name}: {packets / cpu / 1e6:.2f} M packets per CPU second, {elapsed:.1f} s, "
                    f"peak {memory / 1e6:.0f} MB"
                )
    return 0


if __name__ == "__main__":
    sys.exit(main())
