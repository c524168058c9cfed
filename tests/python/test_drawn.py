"""Each chart of each report has drawn points within a second of opening, at both widths."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from anabranch import Scenario, diagnose
from anabranch.report import capture_output, run_output, sweep_output

from . import quic_log, two_points
from .browser import WIDTHS, View, asked, needs_chromium
from .command import Call

TEXT = """
title = "Losses"
duration = "3 s"
[link.lan]
between = ["A", "M"]
rate = "1 Gbit/s"
delay = "0.1 ms"
[link.path]
between = ["M", "N"]
rate = "10 Mbit/s"
delay = "20 ms"
queue = { kind = "drop-tail", limit = "1 bdp" }
forward.impair = [{ kind = "bernoulli-loss", rate = 0.02 }]
[link.end]
between = ["N", "B"]
rate = "1 Gbit/s"
delay = "0.1 ms"
[flow.f]
from = "A"
to = "B"
"""
REPORTS = ("run", "sweep", "capture", "qlog", "points")
"""Reports with charts; the figures of a comparison are images."""

# Coloured pixels within the axes: grid and text are grey.
DRAWN = """
  const opened = performance.now() - began;
  return [opened, anabranchCharts.plots.map(({ plot, home }) => {
    const { left, top, width, height } = plot.bbox, canvas = home.querySelector("canvas");
    const pixels = canvas.getContext("2d").getImageData(left, top, width, height).data;
    let coloured = 0;
    for (let i = 0; i < pixels.length; i += 4) {
      const part = [pixels[i], pixels[i + 1], pixels[i + 2]];
      if (pixels[i + 3] && Math.max(...part) - Math.min(...part) > 40) coloured++;
    }
    return [home.id, coloured];
  })];
"""
LEAST = 5
"""Pixels of one point."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("drawn")
    run = Scenario.from_text(TEXT).run(samples_ms=10, captures=["lan", "end"], packets=True)
    for link in ("lan", "end"):
        (folder / f"{link}.pcapng").write_bytes(run.pcapng(link))
    near, far = (two_points.packets(run.pcapng(link)) for link in ("lan", "end"))
    (folder / "log.sqlog").write_bytes(quic_log.sequential(quic_log.events(near, far)))
    (folder / "run.html").write_text(run_output.html_report(run), encoding="utf-8")
    return folder


def pages(name: str, folder: Path, anabranch: Call, out: Path) -> Iterator[str]:
    """The page of a report."""
    if name == "run":
        yield (folder / "run.html").read_text(encoding="utf-8")
    elif name == "sweep":
        swept = Scenario.from_text(TEXT).sweep({"link.path.rate": ["5 Mbit/s", "10 Mbit/s"]}, repeat=2)
        yield sweep_output.html_report(swept)
    elif name in ("capture", "qlog"):
        file = folder / ("lan.pcapng" if name == "capture" else "log.sqlog")
        yield capture_output.html_report(diagnose(file))
    else:
        done = anabranch("diagnose", folder / "lan.pcapng", folder / "end.pcapng", "--out", out)
        assert done.status == 0, done.err
        yield (out / "report.html").read_text(encoding="utf-8")


@needs_chromium
@pytest.mark.parametrize("name", REPORTS)
def test_each_chart_is_drawn_within_a_second(name: str, folder: Path, anabranch: Call, tmp_path: Path) -> None:
    (page,) = pages(name, folder, anabranch, tmp_path / "out")
    for width in WIDTHS:
        # A busy machine delays the browser: the best of three counts.
        for _ in range(3):
            opened, charts = asked(page, DRAWN, tmp_path, View(width), name=f"{name}{width}")
            if opened <= 1000:
                break
        assert opened <= 1000, f"{name} at {width} pixels"
        assert charts, name
        assert not [chart for chart, coloured in charts if coloured < LEAST], f"{name} at {width} pixels"
