// The packet ladder, for the reports of runs and of captures: life lines, and an arrow for each packet between two of them.
// Events are one below another in their order; steps are equal, because most of the time nothing happens.
"use strict";
const anabranchLadder = (() => {
  const SVG = "http://www.w3.org/2000/svg", ROW = 18, LETTER = 6.4, MOST = 860;

  function svg(kind, attributes, text) {
    const made = document.createElementNS(SVG, kind);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    if (text !== undefined) made.textContent = text;
    return made;
  }

  // `ends`: the life lines from left to right. `margins`: beside the outer ones, narrow and wide. `arrows`: the line that
  // sends and the one that receives (the other one, if there are two), the steps of sending and of arriving (none if
  // lost), whether it is a retransmission and the chosen one, a label.
  // `notes`: a step, a side (none for the middle), the text, and another text where it is narrow.
  function draw(home, { about, ends, margins, steps, arrows, notes, heads, rows }) {
    const width = Math.min(home.clientWidth || 340, MOST), narrow = width < 560, height = steps * ROW + 44;
    const [left, right] = margins[narrow ? 0 : 1], last = ends.length - 1, room = width - right - left;
    const x = ends.map((_, line) => left + (room * line) / last), middle = (x[0] + x[last]) / 2;
    const at = (step) => 40 + step * ROW, style = (isChosen, other) => (isChosen ? "strong chosen" : other);
    const made = svg("svg", { class: "drawing", viewBox: `0 0 ${width} ${height}`, width, role: "img", "aria-label": about });
    ends.forEach((text, side) => {
      const margin = margins[narrow ? 0 : 1][side === 0 ? 0 : 1], isInner = side > 0 && side < last;
      const anchor = isInner || margin > 40 ? "middle" : side ? "end" : "start";
      made.append(svg("line", { x1: x[side], x2: x[side], y1: 24, y2: height - 6, stroke: "currentColor", "stroke-width": 1.5 }));
      made.append(svg("text", { x: x[side], y: 14, "text-anchor": anchor, class: "strong" }, text));
    });
    const labels = [];
    for (const { side, to = 1 - side, sent, arrived, isAgain, isChosen, label } of arrows) {
      const ink = isAgain ? "var(--ladder-again)" : "var(--ladder-first)";
      const line = { x1: x[side], y1: at(sent), x2: x[to], y2: at(arrived), stroke: ink, "stroke-width": isChosen ? 2.6 : 1.3 };
      if (arrived === undefined) {
        const [xm, ym] = [x[side] + (x[to] - x[side]) * 0.55, at(sent) + 2];
        made.append(svg("line", { ...line, x2: xm, y2: ym, "stroke-dasharray": "5 3" }), svg("text", { x: xm - 2, y: ym + 4 }, "✕"));
        if (!narrow) labels.push([xm + 12 + (label.length * LETTER) / 2, ym + 3, label, "soft"]);
        continue;
      }
      if (arrived === sent) { line.y1 -= 3; line.y2 += 3; }
      const angle = (Math.atan2(line.y2 - line.y1, line.x2 - line.x1) * 180) / Math.PI;
      const head = { d: "M0 0 l-6 -3.5 l0 7 z", fill: ink, transform: `translate(${line.x2} ${line.y2}) rotate(${angle})` };
      made.append(svg("line", line), svg("path", head));
      if (label) {
        const most = room / last / LETTER - 6, short = label.length > most ? label.slice(0, most - 1) + "…" : label;
        labels.push([(x[side] + x[to]) / 2, at(sent) + 4, short, style(isChosen, "")]);
      }
    }
    for (const { step, side, text, short = text, isChosen, isSoft } of notes) {
      const told = narrow ? short : text, y = at(step) + 4;
      if (side === undefined) labels.push([middle, y, told, "soft"]);
      else made.append(svg("text", { x: x[side] + (side ? 7 : -7), y, "text-anchor": side ? "start" : "end",
        class: style(isChosen, isSoft ? "soft" : "") }, told));
    }
    for (const [center, y, text, kind] of labels) {
      const room = text.length * LETTER + 8;
      made.append(svg("rect", { x: center - room / 2, y: y - 12, width: room, height: 15, fill: "var(--chart-paper)", opacity: 0.9 }));
      made.append(svg("text", { x: center, y, "text-anchor": "middle", class: kind }, text));
    }
    const list = table(heads, rows), was = home.querySelector("details");
    list.open = Boolean(was && was.open);
    home.replaceChildren(made, list);
  }

  function table(heads, rows) {
    const details = document.createElement("details"), summary = document.createElement("summary");
    summary.textContent = "The ladder as a table";
    const made = document.createElement("table"), head = made.createTHead().insertRow(), body = made.createTBody();
    for (const name of heads) {
      const cell = document.createElement("th");
      cell.scope = "col";
      cell.textContent = name;
      head.append(cell);
    }
    for (const cells of rows) {
      const row = body.insertRow();
      for (const text of cells) row.insertCell().textContent = text;
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

  // The buttons: the one before, the next of `count`, and the charts from the first to the last of its `times`.
  function tools(bar, chart, count, drawn, times) {
    bar.addEventListener("click", ({ target: { dataset } }) => {
      const to = drawn() + Number(dataset.step);
      if (dataset.step && dataset.step !== "0" && to >= 0 && to < count) anabranchCharts.choose(chart, to);
      if (dataset.step !== "0") return;
      const all = times(drawn());
      if (!all.length) return;
      const low = Math.min(...all), high = Math.max(...all), edge = (high - low || 0.1) * 0.5;
      const { whole, show } = anabranchCharts;
      show(Math.max(low - edge, whole.min), Math.min(high + edge, whole.max));
    });
  }

  return { draw, tools };
})();
