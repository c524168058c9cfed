// What the report of several captures adds to its charts: the packets around a pause or a loss, with a life line for each
// point and times of one clock.
"use strict";
document.addEventListener("anabranch-charts", () => {
  function ladder(data, index, home) {
    const { told, marks, places } = data.moments[index], rows = places.filter((place) => place >= 0).map((place) => data.rows[place]);
    if (!rows.length) { home.replaceChildren(); return; }
    const marked = new Set(marks), last = data.points.length - 1, events = [], arrows = [], notes = [];
    const begin = Math.min(...rows.flatMap((row) => row.times.filter((time) => time !== null)));
    const ms = (time, digits) => ((time - begin) * 1e3).toFixed(digits);
    let before = begin;
    for (const place of places) {
      if (place < 0) { events.push({ time: before + 1e-9, left: -place }); continue; }
      const row = data.rows[place], isChosen = marked.has(place);
      const lines = row.times.map((time, line) => (time === null ? -1 : line)).filter((line) => line >= 0);
      if (!row.isForward) lines.reverse();
      before = row.times[lines[0]];
      lines.forEach((line, step) => {
        const label = (row.isAgain ? "R " : "") + row.text, way = row.isForward ? 1 : -1;
        const arrow = { side: line, to: line + way, isAgain: row.isAgain, isChosen, label };
        const isLast = step === lines.length - 1, isAtEnd = line === (row.isForward ? last : 0);
        const own = isLast ? (!isAtEnd && row.lost ? arrow : null) : arrow;
        if (own) arrows.push(own);
        events.push({ time: row.times[line], line, row, isChosen, out: own, into: step ? row.arrow : null, isAdded: !step && line !== (row.isForward ? 0 : last) });
        row.arrow = own;
      });
    }
    events.sort((a, b) => a.time - b.time).forEach(({ time, line, row, isChosen, out, into, left, isAdded }, step) => {
      if (left) { notes.push({ step, text: `… ${left} packets …` }); return; }
      if (out) out.sent = step;
      if (into) into.arrived = step;
      const frame = row.frames[line];
      const text = line === 0 ? `${frame}  ${ms(time, 2)} ms` : line === last ? `${ms(time, 2)} ms  ${frame}` : "";
      notes.push({ step, side: line, text: text + (isAdded && text ? " (first seen)" : ""), short: "", isChosen, isSoft: !isChosen });
    });
    anabranchLadder.draw(home, {
      about: `${told} The table below has the same packets.`, ends: data.points, margins: [[12, 12], [150, 150]], steps: events.length,
      arrows, notes, heads: ["sender", "carries", ...data.points.flatMap((name) => [`${name} frame`, `${name} (ms)`]), "note"],
      rows: rows.map((row) => [row.isFromA ? data.a : data.b, row.text,
        ...row.times.flatMap((time, line) => (time === null ? ["–", "–"] : [row.frames[line], ms(time, 3)])),
        [row.lost ? "lost" : "", row.isAgain ? "retransmission" : ""].filter(Boolean).join(", ")]),
    });
  }

  for (const block of document.querySelectorAll(".points-moments")) {
    const data = JSON.parse(block.querySelector("script").textContent), chart = block.dataset.chart;
    const told = block.querySelector(".moment-told"), home = block.querySelector(".ladder"), choice = block.querySelector("select");
    let drawn = Number(block.dataset.first);
    const draw = (index) => {
      drawn = index;
      told.textContent = data.moments[index].told;
      choice.value = String(index);
      ladder(data, index, home);
    };
    draw(drawn);
    choice.addEventListener("change", () => draw(Number(choice.value)));
    block.querySelector(".ladder-tools").addEventListener("click", ({ target: { dataset } }) => {
      const to = drawn + Number(dataset.step);
      if (dataset.step && dataset.step !== "0" && to >= 0 && to < data.moments.length) draw(to);
      if (dataset.step !== "0") return;
      const times = data.moments[drawn].places.filter((place) => place >= 0).flatMap((place) => data.rows[place].times.filter((time) => time !== null));
      const low = Math.min(...times), high = Math.max(...times), edge = (high - low || 0.1) * 0.5, { whole, show } = anabranchCharts;
      if (chart) show(Math.max(low - edge, whole.min), Math.min(high + edge, whole.max));
    });
    addEventListener("resize", () => ladder(data, drawn, home));
  }
});
