import assert from "node:assert/strict";
import { test } from "node:test";
import { extent, firstAt, type Series, valueAt } from "../src/chart/model.ts";
import { drawSeries, type Pen } from "../src/chart/pen.ts";
import { legendOf, ticks, View } from "../src/chart/plot.ts";
import { tableOf } from "../src/engine/local.ts";
import { command, fileWord } from "../src/model/command.ts";
import { changedWords, difference } from "../src/model/compare.ts";
import { gain, sentence } from "../src/model/help.ts";
import { Newest } from "../src/model/newest.ts";
import { figure, megabits, milliseconds, rateText, timeText } from "../src/model/quantity.ts";
import type { Shown } from "../src/model/run.ts";
import { ordersOf, places, type Swept, sweptCharts } from "../src/model/sweep.ts";

test("quantities in both ways", () => {
  assert.equal(megabits("1.5 Gbit/s"), 1500);
  assert.equal(megabits("unlimited"), undefined);
  assert.equal(milliseconds("2 s"), 2000);
  assert.equal(rateText(0.128), "128 kbit/s");
  assert.equal(rateText(1234.5), "1.23 Gbit/s");
  assert.equal(timeText(0.25), "0.25 ms");
  assert.equal(figure(12345.6), "12,346");
  assert.equal(figure(null), "–");
});

test("of the parts that arrive during a drawing only the newest is drawn", () => {
  const [drawn, ends]: [number[], (() => void)[]] = [[], []];
  const parts = new Newest<number>(
    (part) => drawn.push(part),
    (after) => ends.push(after),
  );
  for (const part of [1, 2, 3]) parts.offer(part);
  assert.deepEqual(drawn, [1]);
  ends.shift()!();
  assert.deepEqual(drawn, [1, 3]);
  parts.offer(4);
  parts.drop();
  ends.shift()!();
  assert.deepEqual(drawn, [1, 3]);
  parts.offer(5);
  assert.deepEqual(drawn, [1, 3, 5]);
});

test("the command quotes a text for the shell", () => {
  assert.equal(fileWord("my capture (1).pcapng"), "'my capture (1).pcapng'");
  assert.equal(fileWord("it's.pcap"), "'it'\\''s.pcap'");
  assert.equal(fileWord("-x.pcap"), "./-x.pcap");
  // A ready path works outside a checkout.
  assert.equal(
    command('title = "t"\n', "scenarios/live/lossy.toml", 3),
    "anabranch run - --seed 3 <<'END'\n# scenarios/live/lossy.toml\ntitle = \"t\"\nEND",
  );
  assert.equal(command("a = 1\nEND\n", undefined, undefined), "anabranch run - <<'END_'\na = 1\nEND\nEND_");
});

test("values of a line at a time", () => {
  const x = Float64Array.from([0, 1, 2]);
  const line: Series = { label: "", x, y: Float64Array.from([5, 7, 6]), kind: "line", colour: 0 };
  assert.equal(firstAt(x, 1), 1);
  assert.equal(valueAt(line, 1.5), 7);
  assert.ok(Number.isNaN(valueAt(line, -1)));
  assert.deepEqual(extent(line, { min: 0.5, max: 1.5 }), { min: 5, max: 7 });
});

test("a million points become as many as there are pixels, with the extremes", () => {
  const count = 1_000_000;
  const x = new Float64Array(count).map((_, i) => i / count);
  const y = new Float64Array(count).map((_, i) => (i === 123_456 ? 9 : Math.sin(i)));
  let drawn = 0;
  let top = Number.POSITIVE_INFINITY;
  const pen: Pen = {
    path(points, n) {
      drawn += n;
      for (let i = 0; i < n; i++) top = Math.min(top, points[2 * i + 1]);
    },
    dots(_, n) {
      drawn += n;
    },
    ring() {},
  };
  const frame = { width: 800, height: 100, x: { min: 0, max: 1 }, y: { min: -1, max: 9 } };
  drawSeries(pen, { label: "", x, y, kind: "line", colour: 0 }, frame, "");
  assert.ok(drawn <= 4 * 802, `${drawn}`);
  assert.ok(Math.abs(top) < 1e-3);
  drawn = 0;
  drawSeries(pen, { label: "", x, y, kind: "points", colour: 0 }, frame, "");
  assert.ok(drawn <= 801 * 101);
});

test("crowded marks are thinned, and their opacity shows their density", () => {
  const drawn: { count: number; opacity: number | undefined; size: number }[] = [];
  const pen: Pen = {
    path() {},
    dots(_, count, { opacity, size }) {
      drawn.push({ count, opacity, size });
    },
    ring() {},
  };
  const frame = { width: 800, height: 200, x: { min: 0, max: 1 }, y: { min: 0, max: 1 } };
  const draw = (x: number[], kind: Series["kind"], more: Partial<Series> = {}) => {
    drawn.length = 0;
    const places = Float64Array.from(x);
    drawSeries(pen, { label: "", x: places, y: places, kind, colour: 0, ...more }, frame, "");
  };
  // Ten times as dense in the second half.
  const many = Array.from({ length: 22_000 }, (_, i) => (i < 2000 ? i / 4000 : 0.5 + (i - 2000) / 40_000));
  draw(many, "marks");
  assert.ok(drawn.length >= 2, `${drawn.length} levels`);
  const count = drawn.reduce((sum, one) => sum + one.count, 0);
  assert.ok(count <= 400, `${count} marks on 800 pixels`);
  assert.ok(drawn[0].opacity! < drawn[drawn.length - 1].opacity! && drawn[0].size < 6);
  // Groups apart from each other keep their marks, however many a group has.
  const groups = [0.1, 0.4, 0.9].flatMap((at) => Array.from({ length: 100 }, (_, i) => at + i * 1e-6));
  draw(groups, "marks");
  assert.deepEqual(
    drawn.map(({ opacity, size }) => [opacity, size]),
    [[undefined, 6]],
  );
  // A burst over some columns is thinned, and marks far from it are not.
  draw([...Array.from({ length: 900 }, (_, i) => 0.2 + i * 1e-4), 0.9], "marks");
  assert.deepEqual([drawn[drawn.length - 1].count, drawn[drawn.length - 1].opacity], [1, undefined]);
  assert.ok(drawn.length >= 2 && drawn.slice(0, -1).every(({ opacity }) => opacity! > 0));
  // Points are a line, if they are not to be thinned.
  draw(many, "points");
  assert.equal(drawn[0].opacity, undefined);
  draw(many, "points", { isThinned: true });
  assert.notEqual(drawn[0].opacity, undefined);
});

test("the legend of a saved chart has as many rows as it needs", () => {
  const series = ["one", "a longer name of a line", "another long name of a line", "last"].map(
    (label): Series => ({ label, x: new Float64Array(), y: new Float64Array(), kind: "line", colour: 0 }),
  );
  const wide = legendOf(series, 56, 1200);
  const narrow = legendOf(series, 56, 360);
  assert.equal(new Set(wide.entries.map(({ y }) => y)).size, 1);
  assert.ok(new Set(narrow.entries.map(({ y }) => y)).size >= 2);
  assert.ok(narrow.height > wide.height);
  for (const { x, y } of narrow.entries) assert.ok(x >= 56 && x < 360 && y < narrow.height);
});

test("each view joins the cursors of its own charts", () => {
  assert.notEqual(new View().key, new View().key);
});

test("round ticks", () => {
  assert.deepEqual(ticks(0, 10, 5), [0, 2, 4, 6, 8, 10]);
});

test("a paired difference has a t interval", () => {
  const { mean, lower, upper } = difference([2, 3, 4], [1, 1, 1]);
  assert.equal(mean, 2);
  const half = 4.302652729911275 / Math.sqrt(3);
  assert.ok(Math.abs(upper - (2 + half)) < 1e-9 && Math.abs(lower - (2 - half)) < 1e-9);
});

test("a sweep orders its runs by value and seed, and draws means with intervals", () => {
  const run = { text: "x", seed: 3, resolved: { seed: 1 }, flows: [] } as unknown as Shown;
  const order = { path: "link.a.rate", values: ["1 Mbit/s", "2 Mbit/s"], seeds: 2 };
  assert.deepEqual(ordersOf(run, order).slice(1, 3), [
    { scenario: "x", set: ['link.a.rate="1 Mbit/s"'], seed: 4 },
    { scenario: "x", set: ['link.a.rate="2 Mbit/s"'], seed: 3 },
  ]);
  assert.deepEqual(ordersOf(run, { ...order, values: ["0.5", "true"] })[2].set, ["link.a.rate=true"]);
  assert.throws(() => ordersOf(run, { ...order, values: ["1"] }), /two values/);
  assert.throws(() => ordersOf(run, { ...order, seeds: 2000 }), /more than 2000/);
  const results = [1, 3, 4, 4].map((rate) => ({
    summary: { flows: { main: { goodput_mbit_s: rate } }, links: {} },
    resolved: {},
  })) as unknown as Swept[];
  const [goodput] = sweptCharts(order, results);
  assert.equal(goodput.axis?.label, "link.a.rate (Mbit/s)");
  const [middle, lower, upper] = goodput.series;
  assert.deepEqual(
    [[...middle.x], [...middle.y]],
    [
      [1, 2],
      [2, 4],
    ],
  );
  assert.ok(lower.y[0] < -10 && upper.y[0] > 14 && lower.y[1] === 4);
  assert.deepEqual(places(["codel", "pie"]), { x: [1, 2], hasNumbers: false });
});

test("columns in JSON become a table", () => {
  const table = tableOf({ time_s: [0, 1], flow: ["a", null], ok: [true, null], none: [null, 2] });
  assert.deepEqual([...table.numbers("none")], [Number.NaN, 2]);
  assert.deepEqual([...table.flags("ok")], [1, 2]);
  assert.deepEqual([...table.rowsWith("flow", "a")], [0]);
  assert.equal(table.rows, 2);
});

test("help gives times below one second in milliseconds", () => {
  const from = { goodput: { main: 1 }, delay: 0, time: { main: 0.163 } };
  const change = { words: "codel", text: "" };
  assert.equal(
    sentence(change, from, { ...from, time: { main: 0.0323 } }, "main"),
    "With codel, main takes 32.3 instead of 163 ms.",
  );
  assert.equal(
    sentence(change, from, { ...from, time: { main: 1.2 } }, "main"),
    "With codel, main takes 1.2 instead of 0.163 s.",
  );
});

test("the comparison names the lines that differ", () => {
  const before = 'title = "t"\nduration = "9 s" # all\n\n[link.a]\nrate = "1 Mbit/s"\n\n[flow.main]\ncc = "cubic"\n';
  assert.equal(changedWords(before, `# note\n${before}`.replace('"t"', '"u"')), "");
  assert.equal(changedWords(before, before.replace('"cubic"', '"bbr"')), '[flow.main] cc = "bbr" instead of "cubic".');
  assert.equal(
    changedWords(before, before.replace("[flow", 'delay = "1 ms"\n[flow').replace('rate = "1 Mbit/s"\n', "")),
    '[link.a] rate = "1 Mbit/s" removed; [link.a] delay = "1 ms" added.',
  );
  assert.equal(changedWords(before, '[link.b]\nrate = "2 Mbit/s"'), "Another scenario: 7 lines differ.");
});

test("help names the harm to others in the same sentence", () => {
  const from = { goodput: { main: 5, other: 10 }, delay: 20, time: {} };
  const to = { goodput: { main: 12, other: 3 }, delay: 40, time: {} };
  assert.equal(
    sentence({ words: "bbr for main", text: "" }, from, to, "main"),
    "With bbr for main, main gets 12 instead of 5 Mbit/s; other falls from 10 to 3 Mbit/s; the queue's delay (95th percentile) rises from 20 to 40 ms.",
  );
  assert.ok(gain(from, to, "main") > 2);
  assert.ok(gain(from, { ...from, delay: 5 }, "main") > 1.05);
  assert.equal(gain(from, from, "main"), 1);
});
