"""``anabranch cc`` and ``cc = { kind = "bpf" }``: congestion controls as eBPF programs."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from anabranch import _engine

from .command import Call

CONTROLS = Path(__file__).parents[2] / "bpf" / "cc"
KERNEL = json.loads(_engine.cc_list())["loaded"] is not None


def hindrance() -> str | None:
    """The reason why controls cannot be loaded into this kernel; ``None`` if they can."""
    if not KERNEL:
        return "the engine is built without loading controls into the kernel"
    if os.geteuid() != 0:
        return "loading controls into the kernel needs root"
    if shutil.which("clang") is None:
        return "no clang"
    if not Path("/sys/kernel/btf/vmlinux").exists():
        return "the kernel does not describe its types (BTF)"
    if shutil.which("unshare") is None:
        return "no unshare, to keep the mount of the test's own"
    return None


@pytest.fixture
def kernel() -> None:
    """Skip if controls cannot be loaded; with ``ANABRANCH_LIVE=required``, as in CI, fail."""
    why = hindrance()
    if why is not None and os.environ.get("ANABRANCH_LIVE") == "required":
        pytest.fail(f"ANABRANCH_LIVE=required: {why}")
    if why is not None:
        pytest.skip(why)


def script(*lines: str) -> subprocess.CompletedProcess[str]:
    """Run commands in a new mount namespace: its BPF file system and controls end with the last of them."""
    command = "\n".join(line.replace("anabranch", f"{sys.executable} -m anabranch") for line in lines)
    arguments = ["unshare", "--mount", "sh", "-ec", command]
    return subprocess.run(arguments, capture_output=True, text=True, check=False)  # noqa: S603


def test_a_control_stays_until_it_is_unloaded(kernel: None, tmp_path: Path) -> None:
    # A unique name, so that the tests of two checkouts can run at the same time.
    name = f"ab_t{os.getpid() % 100000}"
    mine = tmp_path / "mine.bpf.c"
    mine.write_text((CONTROLS / "vegas.bpf.c").read_text("utf-8").replace('"ab_vegas"', f'"{name}"'), "utf-8")
    done = script(f"anabranch cc load {mine}", "anabranch cc list --json", f"anabranch cc unload {name}")
    assert done.returncode == 0, done.stderr
    listed = json.loads(done.stdout)
    assert listed["loaded"] == [name]
    assert name in listed["available"]
    assert name in listed["allowed"], "any user may choose it"
    assert f"{name} is in the kernel until `anabranch cc unload {name}` or a restart" in done.stderr
    assert f"{name} is unloaded" in done.stderr
    after = json.loads(_engine.cc_list())
    assert name not in after["available"]


def test_a_control_that_the_kernel_refuses(kernel: None, tmp_path: Path) -> None:
    text = (CONTROLS / "reno.bpf.c").read_text("utf-8").replace('"ab_reno"', '"ab_refused"')
    wrong = tmp_path / "wrong.bpf.c"
    wrong.write_text(text.replace("tp->snd_cwnd_cnt = reno->count_before;", "tp->snd_nxt = 0;"), "utf-8")
    done = script(f"anabranch cc load {wrong}")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"error: the kernel refuses `{wrong}`: reno_undo_cwnd: ")
    assert "at `tp->snd_nxt = 0;`" in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["load", "compund"],
            'error: no control "compund" ships, and there is no such file\n  did you mean "compound"?\n',
        ),
        (["unload", "nobody"], "error: "),
    ],
)
def test_bad_input(anabranch: Call, arguments: list[str], message: str) -> None:
    done = anabranch("cc", *arguments)
    assert (done.status, done.out) == (2, "")
    assert done.err.startswith(message)


def test_shipped_controls_are_listed(anabranch: Call) -> None:
    done = anabranch("cc", "list", "--json")
    assert done.status == 0
    names = [one["name"] for one in json.loads(done.out)["shipped"]]
    assert sorted(names) == ["bic", "compound", "cubic-plus", "reno", "vegas", "westwood-plus"]
    assert all(len(one["kernel_name"]) < 16 for one in json.loads(done.out)["shipped"])
    done = anabranch("cc", "list")
    assert done.status == 0
    assert "westwood-plus" in done.out


def test_a_file_next_to_its_scenario_runs(anabranch: Call, tmp_path: Path) -> None:
    shutil.copy(CONTROLS / "compound.bpf.c", tmp_path / "mine.bpf.c")
    scenario = tmp_path / "scenario.toml"
    scenario.write_text(
        """
duration = "3 s"
[link.path]
between = ["A", "B"]
rate = "10 Mbit/s"
delay = "20 ms"
queue = { kind = "drop-tail", limit = "1 bdp" }
impair = [{ kind = "bernoulli-loss", rate = 0.001 }]
[flow.main]
from = "A"
to = "B"
cc = { kind = "bpf", file = "mine.bpf.c" }
""",
        "utf-8",
    )
    shipped = 'flow.main.cc={kind="bpf",name="compound"}'
    outputs = set()
    for more in (["--jobs", "1"], ["--jobs", "4"], ["--set", shipped]):
        done = anabranch("sweep", scenario, "--repeat", "4", *more, "--json")
        assert done.status == 0, done.err
        figures = json.loads(done.out)["points"][0]["figures"]
        assert figures["flow.main.goodput_mbit_s"]["n"] == 4
        outputs.add(json.dumps(figures))
    assert len(outputs) == 1


def test_a_file_that_does_not_compile(anabranch: Call, tmp_path: Path, scenario_file: Path) -> None:
    scenario = tmp_path / "scenario.toml"
    shutil.copy(scenario_file, scenario)
    mine = tmp_path / "wrong.bpf.c"
    mine.write_text('#include "vmlinux.h"\nu32 f(void) { return beta; }\n', "utf-8")
    done = anabranch("run", scenario, "--set", 'flow.main.cc={kind="bpf",file="wrong.bpf.c"}')
    assert (done.status, done.out) == (2, "")
    assert f"`{mine}` does not compile: wrong.bpf.c:2:22: error: " in done.err
    assert "beta" in done.err
