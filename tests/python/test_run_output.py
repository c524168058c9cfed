"""Output of ``anabranch run`` for people: blocks in 80 columns, remarks, values with their spread."""

from __future__ import annotations

import json
import math
import re
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from anabranch import Scenario
from anabranch.cli.blocks import laid_out, print_blocks
from anabranch.result.format import spread
from anabranch.result.remarks import seconds, size, trace
from anabranch.text.lines import WIDTH

from .command import Call

ROOT = Path(__file__).parents[2]
CONTRACT = sorted((ROOT / "scenarios").glob("*.toml"))
PATH = """
title = "{title}"
duration = "10 s"
[link.path]
between = ["A", "B"]
rate = "10 Mbit/s"
delay = "5 ms"
{link}
[flow.main]
from = "A"
to = "B"
{flow}
"""


def scenario(folder: Path, *, title: str = "t", link: str = "", flow: str = "", more: str = "") -> Path:
    file = folder / "s.toml"
    file.write_text(PATH.format(title=title, link=link, flow=flow) + more)
    return file


def words(text: str) -> str:
    """The text without line breaks, which depend on the width."""
    return " ".join(text.split())


@pytest.mark.parametrize("file", CONTRACT, ids=lambda file: file.stem)
def test_output_fits_80_columns(anabranch: Call, file: Path) -> None:
    done = anabranch("run", file, "--set", "duration='5 s'", "--why")
    assert done.status == 0
    assert [line for line in done.out.splitlines() if len(line) > WIDTH] == []


WORDS = st.lists(st.text("abcdefgh0123456789", min_size=1, max_size=20), min_size=1, max_size=12).map(" ".join)


@given(st.lists(st.tuples(st.text("abcdefgh", min_size=1, max_size=16), WORDS), max_size=8))
def test_labelled_values_fit_and_keep_their_order(pairs: list[tuple[str, str]]) -> None:
    lines = list(laid_out(pairs))
    assert [line for line in lines if len(line) > WIDTH] == []
    assert words(" ".join(lines)) == " ".join(f"{label} {value}" for label, value in pairs)


def test_a_long_title_has_separate_lines(anabranch: Call, tmp_path: Path) -> None:
    title = "A title of many words " * 6
    lines = anabranch("run", scenario(tmp_path, title=title)).out.splitlines()
    assert words(" ".join(lines[:2])) == title.strip()
    assert lines[2] == "seed 1, 10 s simulated"


def test_a_flow_of_programs_is_labelled(tmp_path: Path) -> None:
    result = Scenario.from_file(scenario(tmp_path)).run()
    flows: dict[str, Any] = result.summary["resolved_scenario"]["flow"]
    flows["main"]["workload"] = flows["main"]["cc"] = None
    text = StringIO()
    print_blocks(result, Console(file=text, width=WIDTH), all_flows=False)
    assert "main: A to B, packets of programs, still running" in text.getvalue()


def test_a_fairness_that_does_not_apply_is_not_printed(tmp_path: Path) -> None:
    result = Scenario.from_file(scenario(tmp_path, flow="count = 2")).run()
    texts = []
    for _ in range(2):
        texts.append(StringIO())
        print_blocks(result, Console(file=texts[-1], width=WIDTH), all_flows=False)
        result.summary["fairness"]["jain_index"] = None
    assert ["Jain index" in text.getvalue() for text in texts] == [True, False]


def test_copies_share_one_block_unless_all_are_requested(anabranch: Call, tmp_path: Path) -> None:
    file = scenario(tmp_path, flow="count = 5")
    out = anabranch("run", file).out
    assert "main: 5 copies, A to B, cubic over linux, 5 still running" in out
    assert "main/0" not in out
    assert all(f"main/{copy}: A to B" in anabranch("run", file, "--all-flows").out for copy in range(5))


def test_an_unlimited_queue_is_remarked(anabranch: Call, tmp_path: Path) -> None:
    assert "path forward: its queue is unlimited; it held up to " in words(anabranch("run", scenario(tmp_path)).out)
    assert anabranch("run", scenario(tmp_path), "--out", tmp_path / "out").status == 0
    assert "path forward: its queue is unlimited" in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    limited = scenario(tmp_path, link='queue = { kind = "drop-tail", limit = "50 packets" }')
    assert "unlimited" not in anabranch("run", limited).out


def test_the_remark_on_a_queue_has_its_longest_delay(anabranch: Call, tmp_path: Path) -> None:
    """A queue that grows until the end: the packet with the longest delay has not left, and no percentile counts it."""
    file = scenario(tmp_path, flow='stack = "rfc"')
    told = json.loads(anabranch("run", file, "--json").out)["links"]["path"]["forward"]
    found = re.search(r"held up to ([0-9,]+) packets, and the last of them waits for about ([0-9,.]+) ms",
                      words(anabranch("run", file).out))  # fmt: skip
    assert found
    packets, delay = (float(text.replace(",", "")) for text in found.groups())
    assert packets == told["max_queue_packets"]
    assert delay == pytest.approx(packets * 1500 * 8 / 10e6 * 1000, rel=0.02)
    assert delay >= told["p99_queue_delay_ms"]


def test_a_window_that_limits_nothing_is_remarked(anabranch: Call, scenario_file: Path) -> None:
    """`ns3-2018` lets cwnd grow while the other windows of 128 KiB limit the sender."""
    out = words(anabranch("run", scenario_file).out)
    assert re.search(r"main: cwnd is [0-9,]+ packets, but the send buffer lets at most 90 segments be in flight", out)
    large = [f"flow.main.transport.{window}='16 MiB'" for window in ("send_buffer", "receive_window")]
    assert "main: cwnd is" not in anabranch("run", scenario_file, "--set", large[0], "--set", large[1]).out


def test_an_idle_link_is_remarked(anabranch: Call, tmp_path: Path) -> None:
    more = '[link.spare]\nbetween = ["B", "C"]\nrate = "1 Mbit/s"\ndelay = "1 ms"\n'
    out = anabranch("run", scenario(tmp_path, more=more)).out
    assert "spare: idle" in out.splitlines()
    assert "spare: no packet crossed it" in words(out)


def test_utilization_over_an_idle_time_is_remarked(anabranch: Call, tmp_path: Path) -> None:
    out = words(anabranch("run", scenario(tmp_path, flow='start = "6 s"')).out)
    assert "path: utilization counts 0 to 10 s; its flows ran from 6 to 10 s" in out
    assert "utilization counts" not in anabranch("run", scenario(tmp_path)).out


@pytest.mark.parametrize(
    ("engine", "reason"), [("kernel", "a kernel in virtual time has no BTF"), ("live", "it was turned off")]
)
def test_a_kernel_that_cannot_trace_is_not_said_to_have_it_turned_off(engine: str, reason: str) -> None:
    live: Any = {"trace": {"detail": None, "why_not": "it was turned off"}}
    assert trace(live, engine) == f"the kernel's TCP was not traced: {reason}"


def test_wide_and_json_exclude_each_other(anabranch: Call, scenario_file: Path) -> None:
    done = anabranch("run", scenario_file, "--wide", "--json")
    assert (done.status, done.out, done.err.splitlines()[0]) == (
        2, "", "error: --wide is of the printed output, and --json prints none",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("value", "half", "shown"),
    [
        (476.6, 278.2, "477 ± 278"),
        (0.3456, 0.1234, "0.35 ± 0.12"),
        (12.3456, 0.0996, "12.35 ± 0.10"),
        (8.8049, 0.0, "8.805 ± 0"),
        (1234567.8, 4321.0, "1,234,568 ± 4,321"),
    ],
)
def test_a_value_with_its_spread(value: float, half: float, shown: str) -> None:
    assert spread(value, half) == shown


@given(
    st.floats(-1e9, 1e9, allow_nan=False),
    st.floats(1e-8, 1e9, allow_nan=False, exclude_min=True),
)
def test_value_and_spread_have_the_same_decimals(value: float, half: float) -> None:
    """Neither is off by more than half of the last place."""
    left, _, right = spread(value, half).replace(",", "").partition(" ± ")
    places = [len(number.partition(".")[2]) for number in (left, right)]
    assert places[0] == places[1]
    assert "e" not in left + right
    assert math.isclose(float(left), value, abs_tol=0.5001 * 10.0 ** -places[0])
    assert math.isclose(float(right), half, abs_tol=0.5001 * 10.0 ** -places[0])
    if places[1]:
        assert len(re.sub(r"^0\.?0*|\.", "", right)) == 2


def test_quantities_are_formatted_as_by_the_engine() -> None:
    assert (seconds("200 ms"), seconds("10.2 s"), seconds("3 packets")) == (0.2, 10.2, None)
    assert (size("128 KiB"), size("1448 bytes"), size("unlimited")) == (131_072, 1_448, None)
