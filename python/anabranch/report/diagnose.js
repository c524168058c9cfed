// What the report of a capture adds to its charts: a click on a pause or a retransmission says what it is and draws the
// packets around it as they passed the capture point.
"use strict";
document.addEventListener("anabranch-charts", () => {
  function ladder(data, index, home) {
    const [, , told, frames, places] = data.moments[index];
    const rows = places.filter((place) => place >= 0).map((place) => data.rows[place]);
    if (!rows.length) { home.replaceChildren(); return; }
    const marked = new Set(frames), arrows = [], notes = [];
    const ms = (time, digits) => ((time - rows[0][1]) * 1e3).toFixed(digits);
    places.forEach((place, step) => {
      if (place < 0) { notes.push({ step, text: `… ${-place} packets …` }); return; }
      const [frame, time, isFromA, text, isAgain] = data.rows[place], isChosen = marked.has(frame);
      arrows.push({ side: isFromA ? 0 : 1, sent: step, arrived: step, isAgain, isChosen, label: (isAgain ? "R " : "") + text });
      notes.push({ step, side: 0, text: `${frame}`, short: "", isChosen, isSoft: true });
      notes.push({ step, side: 1, text: `${ms(time, 2)} ms`, short: "", isSoft: true });
    });
    anabranchLadder.draw(home, {
      about: `${told} The table below has the same packets.`, ends: [data.a, data.b], margins: [[12, 12], [150, 90]],
      steps: places.length, arrows, notes, heads: ["frame", "time (ms)", "sender", "carries", "note"],
      rows: rows.map(([frame, time, isFromA, text, isAgain]) => [frame, ms(time, 3), isFromA ? data.a : data.b, text,
        [isAgain ? "retransmission" : "", marked.has(frame) ? "named above" : ""].filter(Boolean).join(", ")]),
    });
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
    anabranchLadder.tools(block.querySelector(".ladder-tools"), chart, data.moments.length, () => drawn, (index) =>
      data.moments[index][4].filter((place) => place >= 0).map((place) => data.rows[place][1]));
    addEventListener("resize", () => ladder(data, drawn, home));
  }
});
