// What the report of a run adds to its charts: a click on a retransmission says why it was sent and draws the packets
// around it, and a second report can be laid over this one.
"use strict";
document.addEventListener("anabranch-charts", () => {
  const octets = (value) => value.toLocaleString("en");
  const rowsOf = (why, index) => (why.ladders[index] || []).filter((place) => place >= 0).map((place) => why.rows[place]);

  function ladder(why, index) {
    const home = document.getElementById("ladder"), told = document.getElementById("ladder-told");
    const rows = rowsOf(why, index), chosen = why.packets[index];
    const cut = ` The first ${why.ladders.length} of ${why.ladders_of} retransmissions have a ladder.`;
    if (!rows.length) {
      home.replaceChildren();
      told.textContent = index < why.ladders.length ? "" : cut.trim();
      return;
    }
    const begin = rows[0][0], events = [], notes = [], arrows = new Map();
    for (const place of why.ladders[index]) {
      const row = why.rows[place];
      // What is left out stands behind the packet before it.
      if (!row) { events.push({ time: events.filter((event) => event.isSent).at(-1).time + 1e-9, left: -place }); continue; }
      const isChosen = Boolean(row[4]) && Math.abs(row[0] - chosen[0]) < 1e-6 && row[2] === Math.round(chosen[1] * 1e6);
      arrows.set(row, { side: 0, isAgain: row[4], isChosen, label: row[1] === null ? row[5] ? row[5].split(".")[1] || row[5] : "in flight" : "" });
      events.push({ time: row[0], row, isSent: true });
      if (row[1] !== null) events.push({ time: row[1], row, isSent: false });
    }
    const ms = (time) => `${((time - begin) * 1e3).toFixed(2)} ms`;
    events.sort((a, b) => a.time - b.time).forEach(({ time, row, isSent, left }, step) => {
      if (left) { notes.push({ step, text: `… ${left} packets sent …` }); return; }
      const arrow = arrows.get(row);
      arrow[isSent ? "sent" : "arrived"] = step;
      const short = isSent ? octets(row[2]) + (row[4] ? " R" : "") : row[6] === null ? "" : (row[7] ? "held, " : "") + octets(row[6]);
      const after = row[6] === null ? "" : `${row[7] ? "held; " : ""}expects ${octets(row[6])}`;
      notes.push({ step, side: isSent ? 0 : 1, short, text: isSent ? `${ms(time)}  ${short}` : `${after}  ${ms(time)}`, isChosen: isSent && arrow.isChosen });
    });
    anabranchLadder.draw(home, {
      about: `Packets around the retransmission of octet ${octets(Math.round(chosen[1] * 1e6))}; the table below has the same.`,
      ends: ["sender", "receiver"], margins: [[92, 108], [210, 230]], steps: events.length, arrows: [...arrows.values()], notes,
      heads: ["sent (ms)", "first octet", "octets", "note", "arrived (ms)", "then expected"],
      rows: rows.map(([sent, arrived, start, count, again, where, edge, held]) => {
        const exact = (time) => ((time - begin) * 1e3).toFixed(3);
        const what = [again ? "retransmission" : "", held ? "held" : ""].filter(Boolean).join(", ");
        return [exact(sent), octets(start), octets(count), what, arrived === null ? where || "in flight" : exact(arrived), edge === null ? "–" : octets(edge)];
      }),
    });
    told.textContent = "Left: first octet of each packet, R for a retransmission. Right: the octet the receiver then expects, "
      + "which is what its acknowledgment says; held: out of order. Steps are events, not equal times."
      + (why.ladders.length < why.ladders_of ? cut : "");
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
    anabranchLadder.tools(document.querySelector(".ladder-tools"), "sequence", why.packets.length, () => drawn, (index) => {
      const rows = rowsOf(why, index);
      return rows.length ? rows.flatMap((row) => [row[0], row[1] ?? row[0]]) : [why.packets[index][0]];
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
