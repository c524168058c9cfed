import assert from "node:assert/strict";
import { test } from "node:test";
import { extent, firstAt, type Series, valueAt } from "../src/chart/model.ts";
import { drawSeries, type Pen } from "../src/chart/pen.ts";
import { ticks } from "../src/chart/plot.ts";
import { command } from "../src/model/command.ts";
import { difference } from "../src/model/compare.ts";
import { gain, sentence } from "../src/model/help.ts";
import { figure, megabits, milliseconds, rateText, timeText } from "../src/model/quantity.ts";

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

test("the command quotes a text for the shell", () => {
  assert.equal(command("x", "scenarios/a b.toml", 3), "anabranch run 'scenarios/a b.toml' --seed 3");
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
  };
  const frame = { width: 800, height: 100, x: { min: 0, max: 1 }, y: { min: -1, max: 9 } };
  drawSeries(pen, { label: "", x, y, kind: "line", colour: 0 }, frame, "");
  assert.ok(drawn <= 4 * 802, `${drawn}`);
  assert.ok(Math.abs(top) < 1e-3);
  drawn = 0;
  drawSeries(pen, { label: "", x, y, kind: "points", colour: 0 }, frame, "");
  assert.ok(drawn <= 801 * 101);
});

test("round ticks", () => {
  assert.deepEqual(ticks(0, 10, 5), [0, 2, 4, 6, 8, 10]);
});

test("a paired difference has a t interval", () => {
  const { mean, lower, upper } = difference([2, 3, 4], [1, 1, 1]);
  assert.equal(mean, 2);
  assert.ok(Math.abs(upper - (2 + 4.303 / Math.sqrt(3))) < 1e-9 && Math.abs(lower - (2 - 4.303 / Math.sqrt(3))) < 1e-9);
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
