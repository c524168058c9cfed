import assert from "node:assert/strict";
import { test } from "node:test";
import { deflateRawSync } from "node:zlib";
import { decode, encode } from "../src/model/share.ts";

const packed = (value: unknown) => `1.${deflateRawSync(JSON.stringify(value)).toString("base64url")}`;

test("a state comes back whole", async () => {
  const state = {
    text: 'title = "ä"\n',
    seed: 7,
    flow: "main",
    view: [1, 2] as [number, number],
    pinned: { text: "x", seed: 3 },
  };
  assert.deepEqual(await decode(await encode(state)), state);
});

test("a broken fragment gives a message", async () => {
  const whole = await encode({ text: "duration = 1\n".repeat(40) });
  for (const broken of [
    "",
    "x",
    "1.",
    "1.%%%",
    "1.AAAA",
    whole.slice(0, -9),
    whole.replace(/.{6}$/, "AAAAAA"),
    packed(1),
    packed([]),
    packed({}),
    packed({ text: 5 }),
  ]) {
    const found = await decode(broken);
    assert.equal(typeof found, "string", broken);
    assert.match(found as string, /^The link is broken/);
  }
});

test("another version is named", async () => {
  assert.match((await decode("2.abc")) as string, /version 2 .*version 1/);
});

test("values of wrong types are left out", async () => {
  const found = await decode(packed({ text: "a", seed: -1, flow: 5, view: [2, 1], pinned: { text: 3 } }));
  assert.deepEqual(found, { text: "a" });
});

test("a link that expands without end is refused", async () => {
  const bomb = `1.${deflateRawSync(Buffer.alloc(64 * 2 ** 20)).toString("base64url")}`;
  assert.equal(typeof (await decode(bomb)), "string");
});
