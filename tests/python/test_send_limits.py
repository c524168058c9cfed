"""Windows that are not the limit do not grow, and the summary names the limit (docs/concepts/tcp.md).

The live figures are of Linux 6.18 on the same path.
"""

from __future__ import annotations

from typing import Any

import pytest

from anabranch.result.remarks import limits
from anabranch.result.result import RunResult
from anabranch.scenario import Scenario

SHARES = ("cwnd_limited_share", "rwnd_limited_share", "sndbuf_limited_share", "application_limited_share")

WINDOW = 'transport = { receive_window = "256 KiB", receive_autotuning = false }'


def run(rate: str, delay: str, *, duration: str, flow: str = "", link: str = "", warmup: str = "0 s") -> RunResult:
    return Scenario.from_text(f"""
title = "what limits"
duration = "{duration}"
warmup = "{warmup}"
[link.l]
between = ["A", "B"]
rate = "{rate}"
delay = "{delay}"
{link}
[flow.f]
from = "A"
to = "B"
{flow}
""").run()


def losses(*times: int) -> str:
    listed = ", ".join(f'"{time} s"' for time in times)
    return f'forward.impair = [ {{ kind = "loss-list", times = [{listed}] }} ]'


def flow(result: RunResult) -> dict[str, Any]:
    return dict(result.flows["f"])


def test_cwnd_stops_at_the_receive_window() -> None:
    found = flow(run("50 Mbit/s", "200 ms", duration="16 s", flow=WINDOW))
    # Live: 324. 181 segments fit into the window, and slow start grows to at most twice that.
    assert 290 < found["mean_cwnd_packets"] < 362
    assert found["rwnd_limited_share"] > 0.6


def test_reductions_start_from_the_window_in_use() -> None:
    found = flow(run("50 Mbit/s", "200 ms", duration="30 s", warmup="10 s", flow=WINDOW, link=losses(*range(10, 16))))
    # Live: 3.11.
    assert found["goodput_mbit_s"] == pytest.approx(3.11, abs=0.15)


def test_a_send_buffer_of_four_mebibytes_limits_a_long_fat_path() -> None:
    # Live, with a forwarder between two namespaces: 248 Mbit/s without loss, and about 180 with a
    # loss every 4 s.
    clean = flow(run("1 Gbit/s", "50 ms", duration="8 s", warmup="3 s"))
    assert clean["goodput_mbit_s"] == pytest.approx(248, rel=0.2)
    assert clean["sndbuf_limited_share"] > 0.5
    lossy = flow(run("1 Gbit/s", "50 ms", duration="30 s", link=losses(*range(4, 30, 4))))
    assert lossy["goodput_mbit_s"] == pytest.approx(180, rel=0.15)


@pytest.mark.parametrize(("rate", "delay"), [("10 Gbit/s", "5 ms"), ("50 Mbit/s", "300 ms"), ("100 Mbit/s", "300 ms")])
def test_default_flows_on_long_paths_name_the_send_buffer(rate: str, delay: str) -> None:
    found = flow(run(rate, delay, duration="3 s" if delay == "5 ms" else "24 s"))
    assert found["sndbuf_limited_share"] > 0.1
    assert sum(found[share] for share in SHARES) <= 1.0 + 1e-9


def test_shares_are_null_where_they_do_not_apply() -> None:
    udp = flow(
        run(
            "10 Mbit/s",
            "5 ms",
            duration="1 s",
            flow='protocol = "udp"\nworkload = { kind = "paced", rate = "1 Mbit/s" }',
        )
    )
    many = flow(
        run(
            "10 Mbit/s",
            "5 ms",
            duration="1 s",
            flow='workload = { kind = "poisson", rate = "1 Mbit/s", sizes = { kind = "fixed", size = "10 kB" } }',
        )
    )
    for found in (udp, many):
        assert all(found[share] is None for share in SHARES)


def test_the_table_names_the_limit_of_each_flow() -> None:
    paced = run("20 Mbit/s", "5 ms", duration="2 s", flow='workload = { kind = "paced", rate = "1 Mbit/s" }')
    (told,) = limits(paced)
    assert told.startswith("f: limited by the application 9")
