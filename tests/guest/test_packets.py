"""Packets of a run in its table."""

from __future__ import annotations

import polars as pl

from anabranch import Scenario
from anabranch.text import quantity

from .conftest import FLOW, PATH, kernel_run


def test_the_one_way_delay_is_queueing_and_propagation() -> None:
    """FQ-CoDel instead of drop-tail, with the kernel's TCP."""
    text = PATH.replace('{ kind = "drop-tail", limit = "1 bdp" }', '"fq-codel"')
    scenario = Scenario.from_text(text + FLOW).set("duration", "1 s")
    link = scenario.resolve()["resolved_scenario"]["link"]["path"]["forward"]
    rate, delay = quantity.bits_per_second(link["rate"]), quantity.seconds(link["delay"])
    assert rate is not None
    packets = kernel_run(scenario, packets=True).table("packets")
    rows = packets.filter((pl.col("direction") == "forward") & (pl.col("fate") == "delivered"))
    one_way_ms = (rows["received_s"] - rows["sent_s"]) * 1e3
    moving_ms = rows["size_bytes"] * (8e3 / rate) + float(delay) * 1e3
    assert rows["queue_delay_ms"].max() > 0  # type: ignore[operator]
    assert (one_way_ms - rows["queue_delay_ms"] - moving_ms).abs().max() < 1e-6
