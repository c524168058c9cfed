// What the report of a capture adds to its charts: a click on a pause or a retransmission says what it is and draws the
// packets around it as they passed the capture point.
"use strict";
document.addEventListener("anabranch-charts", () => {
  const SVG = "http://www.w3.org/2000/svg";
  const ROW = 18;
  const LETTER = 6.4;

  function svg(kind, attributes, text) {
    const made = document.createElementNS(SVG, kind);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    if (text !== undefined) made.textContent = text;
    return made;
  }

  const ms = (row, begin) => `${((row[1] - begin) * 1e3).toFixed(2)} ms`;

  // Packets stand one below another in their order; equal steps, because most of the time nothing happens.
  function ladder(data, index, home) {
    const [, , , frames, places] = data.moments[index];
    const known = places.filter((place) => place >= 0).map((place) => data.rows[place]);
    if (!known.length) { home.replaceChildren(); return; }
    const begin = known[0][1], marked = new Set(frames);
    const width = Math.min(home.clientWidth || 340, 860), narrow = width < 560;
    const x1 = narrow ? 12 : 150, x2 = width - (narrow ? 12 : 90), height = places.length * ROW + 44;
    const made = svg("svg", { class: "drawing", viewBox: `0 0 ${width} ${height}`, width, role: "img",
      "aria-label": `${data.moments[index][2]} The table below has the same packets.` });
    for (const [x, text, anchor] of [[x1, data.a, narrow ? "start" : "middle"], [x2, data.b, narrow ? "end" : "middle"]]) {
      made.append(svg("line", { x1: x, x2: x, y1: 24, y2: height - 6, stroke: "currentColor", "stroke-width": 1.5 }));
      made.append(svg("text", { x, y: 14, "text-anchor": anchor, class: "strong" }, text));
    }
    places.forEach((place, i) => {
      const y = 40 + i * ROW, middle = (x1 + x2) / 2;
      if (place < 0) {
        made.append(svg("text", { x: middle, y: y + 2, "text-anchor": "middle", class: "soft" }, `… ${-place} packets …`));
        return;
      }
      const row = data.rows[place], [frame, , isFromA, text, isAgain] = row;
      const ink = isAgain ? "var(--ladder-again)" : "var(--ladder-first)", heavy = marked.has(frame) ? 2.6 : 1.2;
      const [from, to] = isFromA ? [x1, x2] : [x2, x1], tip = isFromA ? -6 : 6;
      made.append(svg("line", { x1: from, y1: y - 3, x2: to, y2: y + 3, stroke: ink, "stroke-width": heavy }));
      made.append(svg("path", { d: `M${to} ${y + 3} l${tip} -4 l0 7 z`, fill: ink }));
      const words = (isAgain ? "R " : "") + text, room = (x2 - x1) / LETTER - 6;
      const label = words.length > room ? words.slice(0, room - 1) + "…" : words, wide = label.length * LETTER + 8;
      made.append(svg("rect", { x: middle - wide / 2, y: y - 8, width: wide, height: 15, fill: "var(--chart-paper)", opacity: 0.9 }));
      made.append(svg("text", { x: middle, y: y + 4, "text-anchor": "middle", ...(marked.has(frame) ? { class: "strong chosen" } : {}) }, label));
      if (!narrow) {
        made.append(svg("text", { x: x1 - 8, y: y + 4, "text-anchor": "end", class: marked.has(frame) ? "strong" : "soft" }, `${frame}`));
        made.append(svg("text", { x: x2 + 8, y: y + 4, class: "soft" }, ms(row, begin)));
      }
    });
    const was = home.querySelector("details");
    const list = table(data, known, begin, marked);
    list.open = Boolean(was && was.open);
    home.replaceChildren(made, list);
  }

  function table(data, rows, begin, marked) {
    const details = document.createElement("details"), summary = document.createElement("summary");
    summary.textContent = "The ladder as a table";
    const made = document.createElement("table"), head = made.createTHead().insertRow(), body = made.createTBody();
    for (const name of ["frame", "time (ms)", "sender", "carries", "note"]) {
      const cell = document.createElement("th");
      cell.scope = "col";
      cell.textContent = name;
      head.append(cell);
    }
    for (const row of rows) {
      const line = body.insertRow(), [frame, time, isFromA, text, isAgain] = row;
      const what = [isAgain ? "retransmission" : "", marked.has(frame) ? "named above" : ""].filter(Boolean).join(", ");
      for (const cell of [frame, ((time - begin) * 1e3).toFixed(3), isFromA ? data.a : data.b, text, what]) line.insertCell().textContent = cell;
    }
    const scroll = document.createElement("div");
    scroll.className = "scroll";
    scroll.tabIndex = 0;
    scroll.setAttribute("role", "group");
    scroll.setAttribute("aria-label", summary.textContent);
    scroll.append(made);
    details.append(summary, scroll);
    return details;
  }

  for (const block of document.querySelectorAll(".moments")) {
    const data = JSON.parse(block.querySelector("script").textContent), chart = block.dataset.chart;
    const told = block.querySelector(".moment-told"), home = block.querySelector(".ladder");
    const choice = block.querySelector("select");
    let drawn = Number(block.dataset.first);
    const draw = (index) => {
      drawn = index;
      told.textContent = data.moments[index][2];
      choice.value = String(index);
      ladder(data, index, home);
    };
    anabranchCharts.pick(chart, data.moments, (index) => { if (index >= 0) draw(index); });
    draw(drawn);
    choice.addEventListener("change", () => anabranchCharts.choose(chart, Number(choice.value)));
    block.querySelector(".ladder-tools").addEventListener("click", ({ target }) => {
      if (!target.dataset.step) return;
      const to = drawn + Number(target.dataset.step);
      if (target.dataset.step !== "0") {
        if (to >= 0 && to < data.moments.length) anabranchCharts.choose(chart, to);
        return;
      }
      const times = data.moments[drawn][4].filter((place) => place >= 0).map((place) => data.rows[place][1]);
      if (!times.length) return;
      const low = Math.min(...times), high = Math.max(...times), edge = (high - low || 0.1) * 0.5;
      const { whole, show } = anabranchCharts;
      show(Math.max(low - edge, whole.min), Math.min(high + edge, whole.max));
    });
    addEventListener("resize", () => ladder(data, drawn, home));
  }
});
