// Draws every chart of the page. All share one time window: dragging in one zooms all, a double click shows
// everything again. Only as many points as there are pixels are handed to the drawing library, so a million packets
// cost as much as a thousand; zooming in brings back every one.
"use strict";
(async () => {
  const COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#7f7f7f"];
  const HEIGHT = 260;
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  const ink = dark ? "#c9d1d9" : "#3a424a";
  const grid = dark ? "#2a3138" : "#e8ebee";
  const charts = JSON.parse(document.getElementById("charts").textContent);

  async function unpack(base64) {
    const bytes = Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    return new Response(stream).arrayBuffer();
  }

  async function load(series) {
    const steps = new Uint32Array(await unpack(series.x));
    const x = new Float64Array(steps.length);
    const perSecond = 1 / series.unit_s;
    let ticks = 0;
    for (let i = 0; i < steps.length; i++) {
      ticks += steps[i];
      x[i] = ticks / perSecond;
    }
    series.x = x;
    series.y = new Float32Array(await unpack(series.y));
  }

  for (const chart of charts) for (const series of chart.series) await load(series);

  let first = Infinity, last = -Infinity;
  for (const chart of charts) for (const s of chart.series) if (s.x.length) {
    first = Math.min(first, s.x[0]);
    last = Math.max(last, s.x[s.x.length - 1]);
  }
  const range = { min: Math.min(0, first), max: last };
  const whole = { ...range };

  // Index of the first x at or after t.
  function at(x, t) {
    let low = 0, high = x.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (x[middle] < t) low = middle + 1; else high = middle;
    }
    return low;
  }

  // Lowest and highest value of each pixel column; one point beyond either edge, so that lines reach it.
  function thinLine(s, width) {
    const a = Math.max(at(s.x, range.min) - 1, 0), b = Math.min(at(s.x, range.max) + 1, s.x.length);
    const xs = [], ys = [];
    if (b - a <= 4 * width) {
      for (let i = a; i < b; i++) { xs.push(s.x[i]); ys.push(Number.isNaN(s.y[i]) ? null : s.y[i]); }
      return [xs, ys];
    }
    const per = (b - a) / (2 * width);
    for (let k = 0; k < 2 * width; k++) {
      let low = -1, high = -1;
      const end = Math.floor(a + (k + 1) * per);
      for (let i = Math.floor(a + k * per); i < end; i++) {
        if (Number.isNaN(s.y[i])) continue;
        if (low < 0 || s.y[i] < s.y[low]) low = i;
        if (high < 0 || s.y[i] > s.y[high]) high = i;
      }
      if (low < 0) continue;
      for (const i of low === high ? [low] : [Math.min(low, high), Math.max(low, high)]) {
        xs.push(s.x[i]);
        ys.push(s.y[i]);
      }
    }
    return [xs, ys];
  }

  // One point per pixel: what falls on a pixel already drawn cannot be seen.
  function thinPoints(s, width) {
    const a = at(s.x, range.min), b = at(s.x, range.max + 1e-12);
    let low = Infinity, high = -Infinity;
    for (let i = a; i < b; i++) { if (s.y[i] < low) low = s.y[i]; if (s.y[i] > high) high = s.y[i]; }
    const xs = [], ys = [];
    if (b - a <= 2 * width) {
      for (let i = a; i < b; i++) { xs.push(s.x[i]); ys.push(s.y[i]); }
      return [xs, ys];
    }
    const columns = width, rows = HEIGHT, seen = new Uint8Array((columns + 1) * (rows + 1));
    const sx = columns / (range.max - range.min || 1), sy = rows / (high - low || 1);
    for (let i = a; i < b; i++) {
      const cell = ((s.x[i] - range.min) * sx | 0) * (rows + 1) + ((s.y[i] - low) * sy | 0);
      if (seen[cell]) continue;
      seen[cell] = 1;
      xs.push(s.x[i]);
      ys.push(s.y[i]);
    }
    return [xs, ys];
  }

  function visible(chart, width) {
    const tables = chart.series.map((s) => (s.kind === "line" ? thinLine(s, width) : spread(thinPoints(s, width))));
    return tables.length === 1 ? tables[0] : uPlot.join(tables);
  }

  // Times must ascend strictly to be joined with other series; packets of one instant move apart by a nanosecond.
  function spread([xs, ys]) {
    for (let i = 1; i < xs.length; i++) if (xs[i] <= xs[i - 1]) xs[i] = xs[i - 1] + 1e-9;
    return [xs, ys];
  }

  const plots = [];
  function show(min, max) {
    range.min = min;
    range.max = max;
    for (const { plot, chart } of plots) plot.setData(visible(chart, Math.max(plot.bbox.width / devicePixelRatio | 0, 200)));
  }

  const axis = { stroke: ink, grid: { stroke: grid, width: 1 }, ticks: { stroke: grid, width: 1 } };
  for (const chart of charts) {
    const home = document.getElementById("chart-" + chart.name);
    const width = home.clientWidth;
    const options = {
      width, height: HEIGHT,
      legend: { markers: { width: 0, fill: (u, i) => (i > 0 ? COLOURS[(i - 1) % COLOURS.length] : "transparent") } },
      cursor: {
        drag: { x: true, y: false, setScale: false },
        sync: { key: "time" },
        bind: { dblclick: () => () => { show(whole.min, whole.max); return null; } },
      },
      scales: { x: { time: false, range: () => [range.min, range.max] }, y: { range: (u, low, high) => {
        if (low == null) return [0, 1];
        const floor = Math.min(0, low), top = high > floor ? high : floor + 1;
        return range.min === whole.min && range.max === whole.max || chart.series[0].kind === "line" || low === high
          ? [floor, floor + (top - floor) * 1.05]
          : [low - (high - low) * 0.05, high + (high - low) * 0.05];
      } } },
      axes: [{ ...axis, label: "Time (s)", labelSize: 20 }, { ...axis, label: chart.y_label, labelSize: 20, size: 58 }],
      series: [
        { label: "Time (s)", value: (u, v) => (v == null ? "–" : v.toFixed(4)) },
        ...chart.series.map((s, i) => ({
          label: s.label,
          stroke: COLOURS[i % COLOURS.length],
          width: s.kind === "line" ? 1.3 : 0,
          dash: s.faint ? [5, 4] : undefined,
          paths: s.kind === "line" ? undefined : () => null,
          points: s.kind === "line" ? { show: false }
            : { show: true, size: 3, width: 0, fill: COLOURS[i % COLOURS.length], stroke: COLOURS[i % COLOURS.length] },
          value: (u, v) => (v == null ? "–" : Number(v.toPrecision(5)).toString()),
        })),
      ],
      hooks: { setSelect: [(u) => {
        if (u.select.width < 3) return;
        const min = u.posToVal(u.select.left, "x"), max = u.posToVal(u.select.left + u.select.width, "x");
        u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
        if (max > min) show(min, max);
      }] },
    };
    const plot = new uPlot(options, visible(chart, width), home);
    plots.push({ plot, chart, home });
  }

  // A click on a retransmission tells why it was sent.
  const REACH = 14;
  const why = document.getElementById("why");
  const sequence = plots.find(({ chart }) => chart.name === "sequence");
  if (why && sequence) {
    const { plot } = sequence, { packets, episodes } = JSON.parse(why.textContent);
    const told = document.getElementById("why-told");
    let down = null;
    plot.over.addEventListener("mousedown", (event) => { down = event.clientX; });
    plot.over.addEventListener("click", (event) => {
      if (down !== null && Math.abs(event.clientX - down) > 3) return;
      const box = plot.over.getBoundingClientRect();
      const x = event.clientX - box.left, y = event.clientY - box.top;
      let nearest = null, distance = REACH;
      for (const packet of packets) {
        const away = Math.hypot(plot.valToPos(packet[0], "x") - x, plot.valToPos(packet[1], "y") - y);
        if (away < distance) { nearest = packet; distance = away; }
      }
      told.textContent = nearest ? nearest[2] + "\n\n" + episodes[nearest[3]] : told.dataset.hint;
    });
  }

  addEventListener("resize", () => {
    for (const { plot, home } of plots) plot.setSize({ width: home.clientWidth, height: HEIGHT });
    show(range.min, range.max);
  });
  window.anabranchCharts = { show, whole, plots };
  document.documentElement.dataset.drawn = "yes";
})();
