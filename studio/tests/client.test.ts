import assert from "node:assert/strict";
import { test } from "node:test";
import { Engine, trapped } from "../src/engine/client.ts";

test("a trap is a lack of memory only if the memory is large, or the browser says so", () => {
  const memory = /more memory than a page has/;
  assert.match(trapped("RuntimeError: unreachable", 3 * 2 ** 30), memory);
  assert.match(trapped("RangeError: WebAssembly.Memory(): could not allocate memory"), memory);
  assert.match(trapped("RangeError: Array buffer allocation failed", 2 ** 28), memory);
  for (const [error, size] of [
    ["RuntimeError: unreachable", 2 ** 25],
    ["RuntimeError: unreachable", undefined],
    ["RangeError: Maximum call stack size exceeded", 2 ** 31],
  ] as const)
    assert.equal(trapped(error, size), `the engine failed: ${error}`);
});

test("workers of a source share an address, and a failure names its cause", async () => {
  const [made, started]: [string[], FakeWorker[]] = [[], []];
  class FakeWorker {
    onmessage: (event: { data: object }) => void = () => undefined;
    constructor(readonly address: string) {
      started.push(this);
    }
    postMessage({ id }: { id?: number }): void {
      if (id !== undefined) this.onmessage({ data: { id, failed: "RuntimeError: unreachable", memory: 2 ** 22 } });
    }
    terminate(): void {}
  }
  const [{ Worker: before }, create] = [globalThis as { Worker?: unknown }, URL.createObjectURL];
  Object.assign(globalThis, { Worker: FakeWorker });
  URL.createObjectURL = () => {
    made.push(`blob:${made.length}`);
    return made[made.length - 1];
  };
  try {
    const module = Promise.resolve({} as WebAssembly.Module);
    for (let i = 0; i < 3; i++) {
      const engine = new Engine(module, "the source");
      await assert.rejects(engine.ask({}), /the engine failed: RuntimeError: unreachable/);
      engine.stop();
      await assert.rejects(engine.ask({}), /the engine failed/);
    }
    assert.equal(started.length, 6);
    assert.deepEqual(made, ["blob:0"]);
  } finally {
    Object.assign(globalThis, { Worker: before });
    URL.createObjectURL = create;
  }
});
