// What the report of a run adds to its charts: a click on a retransmission says why it was sent and draws the packets
// around it, and a second report can be laid over this one.
"use strict";
document.addEventListener("anabranch-charts", () => {
  const SVG = "http://www.w3.org/2000/svg";
  const ROW = 17;

  function svg(kind, attributes, text) {
    const made = document.createElementNS(SVG, kind);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    if (text !== undefined) made.textContent = text;
    return made;
  }

  const octets = (value) => value.toLocaleString("en");

  // Sending and arriving stand one below another in their order; equal steps, because most of the time nothing happens.
  function ladder(why, index) {
    const home = document.getElementById("ladder"), told = document.getElementById("ladder-told");
    const places = why.ladders[index];
    if (!places || !places.length) {
      home.replaceChildren();
      told.textContent = index < why.ladders.length ? "" : `The first ${why.ladders.length} of ${why.ladders_of} retransmissions have a ladder.`;
      return;
    }
    const chosen = why.packets[index], begin = why.rows[places.find((place) => place >= 0)][0];
    const events = [];
    let left = 0, order = 0;
    for (const place of places) {
      if (place < 0) { left = -place; events.push({ time: null, order: order++, left }); continue; }
      const row = why.rows[place];
      events.push({ time: row[0], order: order++, row, sends: true });
      if (row[1] !== null) events.push({ time: row[1], order: order++, row, sends: false });
    }
    const gap = events.find((event) => event.left);
    if (gap) gap.time = events.filter((event) => event.sends && event.order < gap.order).at(-1).time + 1e-9;
    events.sort((a, b) => a.time - b.time || a.order - b.order);
    const width = Math.min(home.clientWidth || 340, 760), narrow = width < 560;
    const x1 = narrow ? 92 : 210, x2 = width - (narrow ? 108 : 230), height = events.length * ROW + 44;
    const made = svg("svg", { class: "drawing", viewBox: `0 0 ${width} ${height}`, width, role: "img",
      "aria-label": `Packets around the retransmission of octet ${octets(Math.round(chosen[1] * 1e6))}; the table below has the same.` });
    const colour = (row) => (row[4] ? "var(--ladder-again)" : "var(--ladder-first)");
    for (const [x, text] of [[x1, "sender"], [x2, "receiver"]]) {
      made.append(svg("line", { x1: x, x2: x, y1: 24, y2: height - 6, stroke: "currentColor", "stroke-width": 1.5 }));
      made.append(svg("text", { x, y: 14, "text-anchor": "middle", class: "strong" }, text));
    }
    const y = new Map(), labels = [];
    events.forEach((event, i) => {
      event.y = 38 + i * ROW;
      if (event.row) y.set(event.row, { ...y.get(event.row), [event.sends ? "sent" : "arrived"]: event.y });
    });
    for (const { row, sends, y: at, left: omitted, time } of events) {
      if (omitted) {
        labels.push([(x1 + x2) / 2, at + 4, `… ${omitted} packets sent …`]);
        continue;
      }
      const ms = `${((time - begin) * 1e3).toFixed(2)} ms`;
      if (sends) {
        const isChosen = row[4] && Math.abs(row[0] - chosen[0]) < 1e-6 && row[2] === Math.round(chosen[1] * 1e6);
        const to = y.get(row).arrived, ink = colour(row), heavy = isChosen ? 2.6 : 1.3;
        if (to !== undefined) {
          made.append(svg("line", { x1, y1: at, x2, y2: to, stroke: ink, "stroke-width": heavy }));
        } else {
          const xm = x1 + (x2 - x1) * 0.55, ym = at + ROW * 0.8;
          made.append(svg("line", { x1, y1: at, x2: xm, y2: ym, stroke: ink, "stroke-width": heavy, "stroke-dasharray": "5 3" }));
          made.append(svg("text", { x: xm - 4, y: ym + 5 }, "✕"));
          if (!narrow) {
            const where = row[5] ? row[5].split(".")[1] || row[5] : "in flight";
            labels.push([xm + 12 + (where.length * 6.4) / 2, ym + 4, where]);
          }
        }
        const mark = row[4] ? " R" : "";
        made.append(svg("text", { x: x1 - 7, y: at + 4, "text-anchor": "end", ...(isChosen ? { class: "strong chosen" } : {}) },
          narrow ? octets(row[2]) + mark : `${ms}  ${octets(row[2])}${mark}`));
      } else {
        const after = row[6] === null ? "" : narrow ? `${row[7] ? "held, " : ""}${octets(row[6])}` : `${row[7] ? "held; " : ""}expects ${octets(row[6])}`;
        made.append(svg("text", { x: x2 + 7, y: at + 4 }, narrow ? after : `${after}  ${ms}`));
      }
    }
    for (const [x, at, text] of labels) {
      const room = text.length * 6.4 + 6;
      made.append(svg("rect", { x: x - room / 2, y: at - 11, width: room, height: 15, fill: "var(--chart-paper)", opacity: 0.9 }));
      made.append(svg("text", { x, y: at, "text-anchor": "middle", class: "soft" }, text));
    }
    home.replaceChildren(made, table(places.filter((place) => place >= 0).map((place) => why.rows[place]), begin));
    told.textContent = "Left: first octet of each packet, R for a retransmission. Right: the octet the receiver then expects, "
      + "which is what its acknowledgment says; held: out of order. Steps are events, not equal times."
      + (why.ladders.length < why.ladders_of ? ` The first ${why.ladders.length} of ${why.ladders_of} retransmissions have a ladder.` : "");
  }

  function table(rows, begin) {
    const details = document.createElement("details"), summary = document.createElement("summary");
    summary.textContent = "The ladder as a table";
    const made = document.createElement("table"), head = made.createTHead().insertRow(), body = made.createTBody();
    for (const name of ["sent (ms)", "first octet", "octets", "note", "arrived (ms)", "then expected"]) {
      const cell = document.createElement("th");
      cell.scope = "col";
      cell.textContent = name;
      head.append(cell);
    }
    for (const [sent, arrived, start, count, again, where, edge, held] of rows) {
      const row = body.insertRow(), ms = (time) => ((time - begin) * 1e3).toFixed(3);
      const what = [again ? "retransmission" : "", held ? "held" : ""].filter(Boolean).join(", ");
      for (const text of [ms(sent), octets(start), octets(count), what, arrived === null ? where || "in flight" : ms(arrived),
        edge === null ? "–" : octets(edge)]) row.insertCell().textContent = text;
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

  const data = document.getElementById("why");
  if (data) {
    const why = JSON.parse(data.textContent), told = document.getElementById("why-told");
    const fold = document.querySelector("details.ladder");
    let drawn = 0;
    anabranchCharts.pick("sequence", why.packets, (index) => {
      if (index < 0) { told.textContent = told.dataset.hint; return; }
      fold.open = true;
      const [, , line, episode] = why.packets[index];
      told.textContent = line + "\n\n" + why.episodes[episode];
      ladder(why, drawn = index);
    });
    fold.addEventListener("toggle", () => { if (fold.open) ladder(why, drawn); });
    document.querySelector(".ladder-tools").addEventListener("click", ({ target }) => {
      if (!target.dataset.step) return;
      const to = drawn + Number(target.dataset.step);
      if (to >= 0 && to < why.packets.length) anabranchCharts.choose("sequence", to);
      if (target.dataset.step === "0") {
        const rows = (why.ladders[drawn] || []).filter((place) => place >= 0).map((place) => why.rows[place]);
        const times = rows.length ? rows.flatMap((row) => [row[0], row[1] ?? row[0]]) : [why.packets[drawn][0]];
        const low = Math.min(...times), high = Math.max(...times), edge = (high - low || 0.1) * 0.5;
        const { whole, show } = anabranchCharts;
        show(Math.max(low - edge, whole.min), Math.min(high + edge, whole.max));
      }
    });
    addEventListener("resize", () => { if (fold.open) ladder(why, drawn); });
  }

  const overlay = document.getElementById("overlay"), said = document.getElementById("overlay-told");
  if (overlay) overlay.addEventListener("change", async () => {
    const [file] = overlay.files;
    if (!file) return;
    const added = await anabranchCharts.overlay(await file.text(), file.name.replace(/\.html?$/, ""));
    said.textContent = added ? `${added} lines of ${file.name} are dashed.` : `${file.name} is no report with charts of this kind.`;
  });
});
