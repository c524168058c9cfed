// The chart component of reports and of the documentation. It draws every chart of the page that "#charts" describes.
// Charts over time share one window: zooming one zooms all. Only as many points as there are pixels are handed to the
// drawing library, so a million packets cost as much as a thousand; zooming in brings back every one.
"use strict";
(async () => {
  const HEIGHT = 260;
  const STRIP = 110;
  // Charts of a stack have one axis of time, below the last of them.
  const STACKED = 112;
  const STACKED_TALL = 170;
  const AXIS = 44;
  const NO_AXIS = 8;
  const OVERVIEW = 44;
  // A sample is drawn as a point once samples lie this far apart.
  const POINT_SPACE = 14;
  const PAPER_WIDTH = 680;
  const TABLE_ROWS = 100;
  const REACH = 14;
  const data = document.getElementById("charts");
  if (!data) return;

  async function unpack(base64) {
    const bytes = Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    return new Response(stream).arrayBuffer();
  }

  async function load(series) {
    const raw = await unpack(series.x);
    if (series.unit_s) {
      const steps = new Uint32Array(raw), perSecond = 1 / series.unit_s;
      series.x = new Float64Array(steps.length);
      for (let i = 0, ticks = 0; i < steps.length; i++) series.x[i] = (ticks += steps[i]) / perSecond;
    } else series.x = new Float64Array(raw);
    for (const name of ["y", "low", "high"]) if (series[name]) series[name] = new Float32Array(await unpack(series[name]));
    return series;
  }

  const charts = JSON.parse(data.textContent);
  for (const chart of charts) for (const series of chart.series) await load(series);

  // The part of an axis that is shown, and the charts that show it.
  function view() { return { min: 0, max: 1, whole: { min: 0, max: 1 }, plots: [] }; }
  const time = view();

  function measure(view, charts) {
    let first = Infinity, last = -Infinity;
    for (const chart of charts) for (const s of chart.series) if (s.x.length) {
      first = Math.min(first, s.x[0]);
      last = Math.max(last, s.x[s.x.length - 1]);
    }
    if (!(last >= first)) { first = 0; last = 1; }
    const chart = charts[0];
    if (chart.is_time) first = Math.min(0, first);
    else if (chart.x_names.length) { first = -0.5; last = chart.x_names.length - 0.5; }
    else if (!chart.x_log) { const edge = (last - first || 1) * 0.02; first -= edge; last += edge; }
    else { first /= 1.1; last *= 1.1; }
    view.whole = { min: first, max: last > first ? last : first + 1 };
    view.min = view.whole.min;
    view.max = view.whole.max;
  }

  // Index of the first x at or after t.
  function at(x, t) {
    let low = 0, high = x.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (x[middle] < t) low = middle + 1; else high = middle;
    }
    return low;
  }

  const known = (value) => (Number.isNaN(value) ? null : value);

  // Lowest and highest value of each pixel column; one point beyond either edge, so that lines reach it.
  function thinLine(s, width, range) {
    const a = Math.max(at(s.x, range.min) - 1, 0), b = Math.min(at(s.x, range.max) + 1, s.x.length);
    const xs = [], ys = [];
    if (b - a <= 4 * width) {
      for (let i = a; i < b; i++) { xs.push(s.x[i]); ys.push(known(s.y[i])); }
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
  function thinPoints(s, width, range) {
    const a = at(s.x, range.min), b = at(s.x, range.max + 1e-12);
    let low = Infinity, high = -Infinity;
    for (let i = a; i < b; i++) { if (s.y[i] < low) low = s.y[i]; if (s.y[i] > high) high = s.y[i]; }
    const xs = [], ys = [];
    if (b - a <= 2 * width) {
      for (let i = a; i < b; i++) { xs.push(s.x[i]); ys.push(known(s.y[i])); }
      return [xs, ys];
    }
    const rows = HEIGHT, seen = new Uint8Array((width + 1) * (rows + 1));
    const sx = width / (range.max - range.min || 1), sy = rows / (high - low || 1);
    for (let i = a; i < b; i++) {
      const cell = ((s.x[i] - range.min) * sx | 0) * (rows + 1) + ((s.y[i] - low) * sy | 0);
      if (seen[cell]) continue;
      seen[cell] = 1;
      xs.push(s.x[i]);
      ys.push(s.y[i]);
    }
    return [xs, ys];
  }

  // Spans and ranges that reach into the part that is shown; the hook below draws them, whatever the library has.
  function within(s, range) {
    const xs = [], ys = [], ends = s.kind === "spans" ? s.high : s.x;
    for (let i = 0; i < s.x.length; i++) {
      if (s.x[i] > range.max || ends[i] < range.min) continue;
      xs.push(Math.max(s.x[i], range.min));
      ys.push(known(s.y[i]));
    }
    return [xs, ys];
  }

  // Times must ascend strictly to be joined with other series; packets of one instant move apart by a nanosecond.
  function spread([xs, ...rest]) {
    for (let i = 1; i < xs.length; i++) if (xs[i] <= xs[i - 1]) xs[i] = xs[i - 1] + 1e-9;
    return [xs, ...rest];
  }

  function visible(chart, width, range) {
    const tables = chart.series.map((s) => {
      if (s.kind === "line" || s.kind === "step") return spread(thinLine(s, width, range));
      if (s.kind === "points" || s.kind === "marks") return spread(thinPoints(s, width, range));
      if (s.kind === "spans" || s.kind === "ranges") return spread(within(s, range));
      const xs = Array.from(s.x), ys = Array.from(s.y, known);
      return s.kind === "band" ? [xs, Array.from(s.low, known), ys] : spread([xs, ys]);
    });
    return tables.length === 1 ? tables[0] : uPlot.join(tables);
  }

  const plots = [];

  function showView(view, min, max) {
    view.min = min;
    view.max = max;
    if (view.follow) view.follow();
    for (const one of view.plots) {
      one.plot.setData(visible(one.chart, Math.max(one.plot.bbox.width / devicePixelRatio | 0, 200), view));
      fillTable(one);
    }
  }

  function isWhole(view) { return view.min === view.whole.min && view.max === view.whole.max; }

  function zoom(one, factor) {
    const { view } = one, left = one.plot.cursor.left;
    const log = one.chart.x_log, to = log ? Math.log : (v) => v, from = log ? Math.exp : (v) => v;
    const low = to(view.min), high = to(view.max);
    const middle = left > 0 ? to(one.plot.posToVal(left, "x")) : (low + high) / 2;
    const wanted = [middle - (middle - low) * factor, middle + (high - middle) * factor].map(from);
    showView(view, Math.max(wanted[0], view.whole.min), Math.min(wanted[1], view.whole.max));
  }

  function pan(view, share) {
    const span = view.max - view.min;
    const min = Math.min(Math.max(view.min + share * span, view.whole.min), view.whole.max - span);
    showView(view, min, min + span);
  }

  function colours(home) {
    const style = getComputedStyle(home), read = (name) => style.getPropertyValue(name).trim();
    return { ink: read("--chart-ink"), grid: read("--chart-grid"), palette: read("--chart-palette").split(/\s+/) };
  }

  const shown = (v) => (v == null ? "–" : Number(v.toPrecision(5)).toString());

  function place(chart, v) {
    if (v == null) return "–";
    if (chart.x_names.length) return chart.x_names[Math.round(v)] ?? "";
    return chart.is_time ? v.toFixed(4) : shown(v);
  }

  // What one series is for the drawing library: a band is two lines with the area between them.
  // Between two names there is nothing that a line could show.
  function drawnSeries(s, i, palette, isJoined) {
    const colour = palette[i % palette.length];
    const line = s.kind === "line" || s.kind === "step";
    const dash = s.faint ? [5, 4] : i >= palette.length ? [8, 3] : undefined;
    const plain = { label: s.label, stroke: colour, value: (u, v) => shown(v) };
    if (s.kind === "points" || s.kind === "marks") {
      const size = s.kind === "marks" ? 7 : s.faint ? 2 : 3.5;
      return [{ ...plain, width: 0, paths: () => null, points: { show: true, size, width: 0, fill: colour, stroke: colour } }];
    }
    if (s.kind === "band") {
      const edge = { ...plain, width: 0.5, points: { show: false }, spanGaps: true };
      return [{ ...edge, label: s.low_label || s.label }, edge];
    }
    if (s.kind === "spans" || s.kind === "ranges") return [{ ...plain, width: 0, paths: () => null, points: { show: false } }];
    const paths = s.kind === "step" ? uPlot.paths.stepped({ align: 1 }) : undefined;
    const marks = s.kind === "interval" ? { show: true, size: 6, width: 1.5, stroke: colour, fill: colour }
      : { show: isSparse, size: 5, width: 0, stroke: colour, fill: colour };
    const joined = s.kind === "interval" && !isJoined ? { width: 0, paths: () => null } : { width: 1.3, dash, paths };
    return [{ ...plain, ...joined, points: marks, spanGaps: !line }];
  }

  function isSparse(u, series, first, last) {
    let count = 0;
    for (let i = first; i <= last; i++) if (u.data[series][i] != null) count++;
    return count > 0 && count * POINT_SPACE <= u.bbox.width / devicePixelRatio;
  }

  function bars(u, chart, palette) {
    const { ctx } = u, ratio = devicePixelRatio;
    chart.series.forEach((s, i) => {
      if (s.kind !== "interval" || !s.low || !u.series[i + 1].show) return;
      ctx.save();
      ctx.beginPath();
      ctx.rect(u.bbox.left, u.bbox.top, u.bbox.width, u.bbox.height);
      ctx.clip();
      ctx.beginPath();
      ctx.strokeStyle = palette[i % palette.length];
      ctx.lineWidth = ratio;
      for (let k = 0; k < s.x.length; k++) {
        if (Number.isNaN(s.low[k]) || Number.isNaN(s.high[k])) continue;
        const x = u.valToPos(s.x[k], "x", true), cap = 4 * ratio;
        const low = u.valToPos(s.low[k], "y", true), high = u.valToPos(s.high[k], "y", true);
        for (const [x1, y1, x2, y2] of [[x, low, x, high], [x - cap, low, x + cap, low], [x - cap, high, x + cap, high]]) {
          ctx.moveTo(x1, y1);
          ctx.lineTo(x2, y2);
        }
      }
      ctx.stroke();
      ctx.restore();
    });
  }

  function areas(u, chart, palette) {
    const { ctx } = u, ratio = devicePixelRatio, { left, top, width, height } = u.bbox;
    chart.series.forEach((s, i) => {
      if ((s.kind !== "spans" && s.kind !== "ranges") || !u.series[i + 1].show) return;
      ctx.save();
      ctx.beginPath();
      ctx.rect(left, top, width, height);
      ctx.clip();
      ctx.fillStyle = palette[i % palette.length];
      for (let k = 0; k < s.x.length; k++) {
        const x = u.valToPos(s.x[k], "x", true);
        if (s.kind === "spans") {
          const end = u.valToPos(s.high[k], "x", true);
          if (end >= left && x <= left + width) ctx.fillRect(x, top, Math.max(end - x, ratio / 2), height);
        } else if (x >= left && x <= left + width) {
          const low = u.valToPos(s.low[k], "y", true), high = u.valToPos(s.high[k], "y", true);
          ctx.fillRect(x - ratio / 2, high, ratio, Math.max(low - high, ratio));
        }
      }
      ctx.restore();
    });
  }

  // Of intervals the axis has to hold the ends as well.
  function extent(chart, low, high) {
    for (const s of chart.series) if ((s.kind === "interval" || s.kind === "ranges") && s.low) for (let k = 0; k < s.x.length; k++) {
      if (s.low[k] < low) low = s.low[k];
      if (s.high[k] > high) high = s.high[k];
    }
    return [low, chart.y_top === null ? high : Math.max(high, chart.y_top)];
  }

  function heightOf({ chart, stack, is_last }) {
    if (chart.is_strip) return STRIP;
    if (!stack) return HEIGHT;
    return (chart.is_tall ? STACKED_TALL : STACKED) + (is_last ? AXIS : NO_AXIS);
  }

  function options(one, width) {
    const { chart, view, home } = one, { ink, grid, palette } = colours(home);
    const axis = { stroke: ink, grid: { stroke: grid, width: 1 }, ticks: { stroke: grid, width: 1 } };
    const names = chart.x_names;
    const has_axis = !one.stack || one.is_last;
    const across = !has_axis ? { ...axis, size: NO_AXIS, values: () => [] }
      : { ...axis, label: chart.x_label, labelSize: 20, ...(names.length ? {
      splits: () => names.map((_, i) => i),
      values: (u, splits) => {
        const most = Math.max(2, Math.floor(u.bbox.width / devicePixelRatio / names.length / 6.5));
        return splits.map((i) => (names[i].length > most ? names[i].slice(0, most - 1) + "…" : names[i]));
      },
    } : {}) };
    const series = [{ label: chart.x_label, value: (u, v) => place(chart, v) }], fills = [];
    const filler = [];
    chart.series.forEach((s, i) => {
      const made = drawnSeries(s, i, palette, names.length === 0);
      if (s.kind === "band") fills.push({ series: [series.length + 1, series.length], fill: palette[i % palette.length] + "33" });
      for (const each of made) { series.push(each); filler.push(palette[i % palette.length]); }
    });
    return {
      width, height: heightOf(one), series, bands: fills,
      legend: { markers: { width: 0, fill: (u, i) => (i > 0 ? filler[i - 1] : "transparent") } },
      cursor: {
        drag: { x: true, y: false, setScale: false },
        sync: chart.shares_time ? { key: "time" } : undefined,
        bind: { dblclick: () => () => { showView(view, view.whole.min, view.whole.max); return null; } },
      },
      scales: {
        x: { time: false, distr: chart.x_log ? 3 : 1, range: () => [view.min, view.max] },
        y: { range: (u, low, high) => {
          if (low == null || chart.is_strip) return [0, 1];
          [low, high] = extent(chart, low, high);
          const floor = chart.from_zero || low < 0 ? Math.min(0, low) : low - (high - low) * 0.05;
          const top = high > floor ? high : floor + 1;
          return isWhole(view) || chart.series[0].kind !== "points" || low === high
            ? [floor, floor + (top - floor) * 1.05]
            : [low - (high - low) * 0.05, high + (high - low) * 0.05];
        } },
      },
      axes: [across, chart.is_strip ? { show: true, size: 78, values: () => [], ticks: { show: false }, grid: { show: false } }
        : { ...axis, label: chart.y_label, labelSize: 20, size: 58, ...(one.stack ? { labelFont: "11px system-ui, sans-serif" } : {}) }],
      hooks: {
        draw: [(u) => { areas(u, chart, palette); bars(u, chart, palette); }],
        setSelect: [(u) => {
          if (u.select.width < 3) return;
          const min = u.posToVal(u.select.left, "x"), max = u.posToVal(u.select.left + u.select.width, "x");
          u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
          if (max > min) showView(view, min, max);
        }],
      },
    };
  }

  function element(kind, attributes, text) {
    const made = document.createElement(kind);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    if (text) made.textContent = text;
    return made;
  }

  // The buttons of a chart, or of a stack of charts. The name of a button with a word begins with it (WCAG 2.5.3).
  function buttons(one, title) {
    const { view } = one, tools = element("div", { class: "chart-tools" });
    const button = (text, about, act) => {
      const made = element("button", { type: "button", "aria-label": `${text.length > 1 ? text : about}: ${title}`, title: about }, text);
      made.addEventListener("click", act);
      tools.append(made);
    };
    button("+", "Zoom in", () => zoom(one, 0.5));
    button("−", "Zoom out", () => zoom(one, 2));
    button("◂", "Earlier", () => pan(view, -0.5));
    button("▸", "Later", () => pan(view, 0.5));
    button("All", "All of it", () => showView(view, view.whole.min, view.whole.max));
    return tools;
  }

  // The whole run in small above a stack, with the part that is shown; dragging there chooses another part.
  function overview(stack, one) {
    const SVG = "http://www.w3.org/2000/svg", { view, chart } = one, [s] = chart.series;
    const made = document.createElementNS(SVG, "svg");
    const width = 1000, at_x = (t) => ((t - view.whole.min) / (view.whole.max - view.whole.min)) * width;
    const [xs, ys] = thinLine(s, 400, view.whole), top = Math.max(...ys.filter((y) => y !== null), 1e-9);
    const points = xs.map((x, i) => (ys[i] === null ? "" : `${at_x(x).toFixed(1)},${(OVERVIEW - 2 - (ys[i] / top) * (OVERVIEW - 6)).toFixed(1)}`));
    const line = document.createElementNS(SVG, "polyline"), part = document.createElementNS(SVG, "rect");
    const set = (node, attributes) => { for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value); };
    set(made, { viewBox: `0 0 ${width} ${OVERVIEW}`, preserveAspectRatio: "none", class: "overview", height: OVERVIEW, "aria-hidden": "true" });
    set(line, { points: points.join(" "), fill: "none", "vector-effect": "non-scaling-stroke" });
    set(part, { y: 0, height: OVERVIEW, "vector-effect": "non-scaling-stroke" });
    made.append(part, line);
    const told = element("span", { class: "overview-told" });
    let start = null;
    const time_of = (event) => {
      const box = made.getBoundingClientRect(), share = Math.min(Math.max((event.clientX - box.left) / box.width, 0), 1);
      return view.whole.min + share * (view.whole.max - view.whole.min);
    };
    made.addEventListener("pointerdown", (event) => { start = time_of(event); made.setPointerCapture(event.pointerId); });
    made.addEventListener("pointerup", (event) => {
      if (start === null) return;
      const end = time_of(event), span = view.max - view.min, few = (view.whole.max - view.whole.min) / 200;
      if (Math.abs(end - start) > few) showView(view, Math.min(start, end), Math.max(start, end));
      else {
        const min = Math.min(Math.max(end - span / 2, view.whole.min), view.whole.max - span);
        showView(view, min, min + span);
      }
      start = null;
    });
    view.follow = () => {
      set(part, { x: at_x(view.min), width: Math.max(at_x(view.max) - at_x(view.min), 2) });
      told.textContent = isWhole(view) ? `All ${shown(view.whole.max)} s` : `${shown(view.min)} to ${shown(view.max)} s of ${shown(view.whole.max)} s`;
    };
    const bar = element("div", { class: "stack-tools" });
    bar.append(told, made, buttons(one, "all charts"));
    stack.prepend(bar);
    view.follow();
  }

  // The buttons, the drawing, a line that speaks, and the table in place of the drawing.
  function furnish(one) {
    const { home, chart } = one;
    one.area = element("div", { class: "chart-area", tabindex: "0", role: "img", "aria-label":
      `${home.getAttribute("aria-label")} Arrow keys read values, plus and minus zoom, 0 shows everything.` });
    one.told = element("div", { class: "chart-told", "aria-live": "polite" });
    one.table = element("details", { class: "chart-table" });
    one.table.append(element("summary", {}, "Values as a table"), element("div", { class: "scroll", tabindex: "0",
      role: "group", "aria-label": `Values of ${chart.title}` }));
    one.table.addEventListener("toggle", () => fillTable(one));
    home.replaceChildren(...(one.stack ? [] : [buttons(one, chart.title)]), one.area, one.told, one.table);
    one.area.addEventListener("keydown", (event) => key(one, event));
  }

  function key(one, event) {
    const { plot, view } = one, step = (event.shiftKey ? 0.1 : 0.01) * plot.over.clientWidth;
    const left = plot.cursor.left >= 0 ? plot.cursor.left : 0;
    const acts = {
      ArrowRight: () => read(one, left + step), ArrowLeft: () => read(one, left - step),
      "+": () => zoom(one, 0.5), "=": () => zoom(one, 0.5), "-": () => zoom(one, 2),
      PageDown: () => pan(view, 0.5), PageUp: () => pan(view, -0.5),
      0: () => showView(view, view.whole.min, view.whole.max),
      Home: () => read(one, 0), End: () => read(one, plot.over.clientWidth),
      n: () => step_pick(one, 1), p: () => step_pick(one, -1), Enter: () => step_pick(one, 0),
    };
    const act = acts[event.key];
    if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    act();
  }

  // Moves the cursor to a place and says what is there.
  function read(one, left) {
    const { plot, chart } = one, to = Math.min(Math.max(left, 0), plot.over.clientWidth);
    plot.setCursor({ left: to, top: plot.over.clientHeight / 2 });
    const x = plot.posToVal(to, "x"), parts = [];
    chart.series.forEach((s) => {
      const i = Math.min(at(s.x, x), s.x.length - 1);
      if (s.kind === "spans") {
        const k = s.x.findIndex((start, n) => start <= x && x <= s.high[n] * (1 + 1e-6));
        if (k >= 0) parts.push(`${s.label} for ${shown(known(s.y[k]))} ms`);
      } else if (i >= 0 && s.kind !== "points" && s.kind !== "marks" && s.kind !== "ranges") parts.push(`${s.label} ${shown(known(s.y[i]))}`);
    });
    one.told.textContent = `${chart.x_label} ${place(chart, x)}: ${parts.join(", ")}`;
  }

  function fillTable(one) {
    if (!one.table.open) return;
    const { plot, chart } = one, [xs, ...columns] = plot.data, step = Math.max(1, Math.ceil(xs.length / TABLE_ROWS));
    const table = element("table", {}), head = element("tr", {});
    for (const s of plot.series) head.append(element("th", { scope: "col" }, s.label));
    const body = element("tbody", {});
    for (let i = 0; i < xs.length; i += step) {
      const row = element("tr", {});
      row.append(element("td", {}, place(chart, xs[i])));
      for (const column of columns) row.append(element("td", {}, shown(column[i])));
      body.append(row);
    }
    const caption = step > 1 ? `Every ${step}th of ${xs.length} places in the part that is shown.` : "The part that is shown.";
    const top = element("thead", {});
    top.append(head);
    table.append(element("caption", {}, caption), top, body);
    one.table.querySelector(".scroll").replaceChildren(table);
  }

  function draw(one, width) {
    const { chart, view, area } = one;
    if (one.plot) one.plot.destroy();
    one.plot = new uPlot(options(one, width), visible(chart, width, view), area);
    if (one.points) listen(one);
  }

  // What can be chosen in a chart: a click near a point, Enter, or n and p for the next and the previous one.
  function listen(one) {
    let down = null;
    const { over } = one.plot;
    over.addEventListener("mousedown", (event) => { down = event.clientX; });
    over.addEventListener("click", (event) => {
      if (down !== null && Math.abs(event.clientX - down) > 3) return;
      const box = over.getBoundingClientRect();
      choose(one, nearest(one, event.clientX - box.left, event.clientY - box.top, REACH));
    });
  }

  function nearest(one, x, y, reach) {
    let found = -1, distance = reach;
    one.points.forEach(([px, py], i) => {
      const dy = y === null ? 0 : one.plot.valToPos(py, "y") - y;
      const away = Math.hypot(one.plot.valToPos(px, "x") - x, dy);
      if (away < distance) { found = i; distance = away; }
    });
    return found;
  }

  function choose(one, index) {
    one.chosen = index;
    one.tell(index);
  }

  function step_pick(one, by) {
    if (!one.points || !one.points.length) return;
    const from = one.chosen >= 0 ? one.chosen : -1;
    const index = by === 0 ? nearest(one, Math.max(one.plot.cursor.left, 0), null, Infinity)
      : Math.min(Math.max(from + by, 0), one.points.length - 1);
    const [x] = one.points[index];
    if (x < one.view.min || x > one.view.max) {
      const span = one.view.max - one.view.min;
      showView(one.view, Math.max(x - span / 2, one.view.whole.min), Math.min(x + span / 2, one.view.whole.max));
    }
    one.plot.setCursor({ left: one.plot.valToPos(x, "x"), top: one.plot.valToPos(one.points[index][1], "y") });
    choose(one, index);
  }

  function chooseByName(name, index) {
    const one = plots.find(({ chart }) => chart.name === name);
    if (one && one.points && one.points[index]) choose(one, index);
  }

  function pick(name, points, tell) {
    const one = plots.find(({ chart }) => chart.name === name);
    if (!one) return false;
    Object.assign(one, { points, tell, chosen: -1 });
    listen(one);
    return true;
  }

  // Draws the series of another page's charts into those of the same name, dashed.
  async function overlay(html, label) {
    const other = new DOMParser().parseFromString(html, "text/html").getElementById("charts");
    if (!other) return 0;
    let added = 0;
    for (const theirs of JSON.parse(other.textContent)) {
      const one = plots.find(({ chart }) => chart.name === theirs.name && chart.shares_time);
      if (!one) continue;
      for (const series of theirs.series) {
        if (series.kind === "band") continue;
        one.chart.series.push({ ...(await load(series)), label: `${label}: ${series.label}`, faint: true });
        added++;
      }
    }
    measure(time, time.plots.map(({ chart }) => chart));
    redraw();
    return added;
  }

  function redraw(width) {
    for (const one of plots) { draw(one, width || one.area.clientWidth || 600); fillTable(one); }
  }

  measure(time, charts.filter((chart) => chart.shares_time).concat({ series: [], is_time: true }));
  for (const chart of charts) {
    const home = document.getElementById("chart-" + chart.name);
    if (!home) continue;
    const one = { chart, home, view: chart.shares_time ? time : view(), stack: home.closest(".stack") };
    if (!chart.shares_time) measure(one.view, [chart]);
    one.view.plots.push(one);
    plots.push(one);
  }
  for (const stack of document.querySelectorAll(".stack")) {
    const inside = plots.filter((one) => one.stack === stack);
    if (!inside.length) continue;
    inside.at(-1).is_last = true;
    const [from, to] = [stack.dataset.from, stack.dataset.to].map(Number);
    if (to > from) Object.assign(time, { min: Math.max(from, time.whole.min), max: Math.min(to, time.whole.max) });
    overview(stack, inside[0]);
  }
  for (const one of plots) {
    furnish(one);
    draw(one, one.area.clientWidth || 600);
  }

  // A chart in a closed part of the page has no width until that is opened.
  const resized = new ResizeObserver((entries) => {
    for (const { target } of entries) {
      const one = plots.find(({ area }) => area === target), width = target.clientWidth;
      if (!one || !width || printing || width === one.plot.width) continue;
      one.plot.setSize({ width, height: heightOf(one) });
      one.plot.setData(visible(one.chart, Math.max(width - 80, 200), one.view));
    }
  });
  let printing = false;
  for (const { area } of plots) resized.observe(area);
  const paper = (on) => {
    printing = on;
    document.documentElement.classList.toggle("on-paper", on);
    redraw(on ? PAPER_WIDTH : 0);
  };
  addEventListener("beforeprint", () => paper(true));
  addEventListener("afterprint", () => paper(false));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => redraw());
  new MutationObserver(() => redraw()).observe(document.body, { attributeFilter: ["data-md-color-scheme"] });

  window.anabranchCharts = {
    show: (min, max) => showView(time, min, max), whole: time.whole, view: time, plots, pick, choose: chooseByName,
    overlay, redraw,
  };
  document.documentElement.dataset.drawn = "yes";
  document.dispatchEvent(new Event("anabranch-charts"));
})();
