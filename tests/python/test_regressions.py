"""Regressions, from end to end."""

from __future__ import annotations

import polars as pl

from anabranch import Scenario

PATH = """
title = "A path"
duration = "{duration}"

[host.a]

[host.b]

[link.l]
between = ["a", "b"]
rate = "{rate}"
delay = "{delay}"
queue = {{ kind = "drop-tail", limit = "{limit}" }}

[flow.main]
from = "a"
to = "b"
{flow}
"""


def test_accurate_ecn_reduces_nothing_without_marks() -> None:
    # The engine took an ACK of many SACKed packets for a report of CE marks.
    flow = 'stack = "linux"\ntransport = { ecn = "accecn" }'
    text = PATH.format(duration="20 s", rate="20 Mbit/s", delay="10 ms", limit="60 packets", flow=flow)
    events = Scenario.from_text(text).run(packets=True).table("window_events")
    assert "recovery-left" in events["event"].to_list()
    assert "ecn" not in events["event"].to_list()


def test_cubic_grows_from_a_window_of_two_segments() -> None:
    # The engine took the wait for the ACK of all outstanding data for a pause, which stops the
    # clock of CUBIC.
    flow = 'stack = "rfc"\ncc = { kind = "cubic", tcp_friendly = false }'
    text = PATH.format(duration="60 s", rate="100 Mbit/s", delay="10 ms", limit="1 packets", flow=flow)
    text += '[[at]]\ntime = "8 s"\nset = { "link.l.queue.limit" = "1000 packets" }\n'
    samples = Scenario.from_text(text).run(samples_ms=100).table("samples")
    assert samples["cwnd_packets"].tail(1).item() > 50


def test_three_duplicates_suffice_without_reordering() -> None:
    # After successive recoveries the engine took answers to retransmissions for late originals, and
    # raised the duplicate threshold to 240.
    text = PATH.format(duration="10 s", rate="20 Mbit/s", delay="25 ms", limit="2 bdp", flow='cc = "bbr"')
    text = text.replace("[flow.", 'forward.impair = [{ kind = "bernoulli-loss", rate = 0.02 }]\n[flow.')
    samples = Scenario.from_text(text).run(seed=1, samples_ms=1).table("samples")
    runs = samples.select(pl.col("state").rle().struct.unnest())
    disorder = runs.filter(pl.col("value") == "disorder")["len"]
    lasted = [int(samples) for samples in disorder]
    assert len(lasted) > 20
    # A packet takes 0.6 ms; the reordering window of RACK, a quarter of the round trip, would be
    # 12.5 ms. A loss at the end of a recovery begins another one even if pacing delays it.
    assert max(lasted) < 8, lasted


def test_bbr_leaves_startup_with_a_full_send_buffer() -> None:
    # Every sample was a lower bound while the send buffer was full: 44,000 packets were
    # retransmitted.
    text = PATH.format(duration="20 s", rate="100 Mbit/s", delay="50 ms", limit="833 packets", flow='cc = "bbr"')
    text = text.replace("[flow.", 'forward.impair = [{ kind = "bernoulli-loss", rate = 0.01 }]\n[flow.')
    result = Scenario.from_text(text).run(seed=3)
    link = result.links["l"]["forward"]
    assert link["dropped_packets"] < 0.03 * link["sent_packets"]
    srtt_ms = result.flows["main"]["mean_srtt_ms"]
    assert srtt_ms is not None
    assert srtt_ms < 120


def test_packets_sent_count_up_to_the_last_sample() -> None:
    text = PATH.format(duration="5 s", rate="2 Mbit/s", delay="10 ms", limit="50 packets", flow='stack = "rfc"')
    result = Scenario.from_text(text).run(samples_ms=10)
    sent = result.table("link_samples").filter(pl.col("link") == "l", pl.col("direction") == "forward")["sent_packets"]
    assert sent.is_sorted()
    assert sent.tail(1).item() == result.links["l"]["forward"]["sent_packets"]
