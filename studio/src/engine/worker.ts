/** The engine's worker: one request at a time. The page stops it by ending the worker. */
import { Instance, WITH_PART } from "./module.ts";

declare const self: DedicatedWorkerGlobalScope;

/** Progress is reported at most this often. */
const EVERY_MS = 60;

/** The first part of a run is sent after this time, */
const FIRST_PART_MS = 300;
/** the next ones at most this often, */
const PARTS_MS = 250;
/** and making them takes at most this share of the time. */
const PARTS_SHARE = 0.05;

/** Octets of a capture that are read at once. */
const PART = 4 * 2 ** 20;

let instance: Promise<Instance> | undefined;
let module: WebAssembly.Module | undefined;
let capture: File | undefined;
/** The last part of the capture that was read: the engine asks for small pieces. */
let part = { at: 0, octets: new Uint8Array() };
let serving = 0;
let reported = 0;
/** The time of the next part of the run, and that of the last order of one. */
let next = Number.POSITIVE_INFINITY;
let ordered = 0;

function start(): Promise<Instance> {
  const reader = new FileReaderSync();
  return Instance.start(module!, {
    progress(share) {
      const now = performance.now();
      if (now - reported > EVERY_MS) {
        reported = now;
        self.postMessage({ id: serving, share });
      }
      if (now < next) return 0;
      ordered = now;
      return WITH_PART;
    },
    part(octets) {
      self.postMessage({ id: serving, part: octets }, [octets]);
      const now = performance.now();
      next = now + Math.max(PARTS_MS, (now - ordered) / PARTS_SHARE);
    },
    captureLength: () => capture?.size ?? 0,
    readCapture(at, length) {
      try {
        if (at < part.at || at >= part.at + part.octets.length) {
          part = { at, octets: new Uint8Array(reader.readAsArrayBuffer(capture!.slice(at, at + PART))) };
        }
        return part.octets.subarray(at - part.at, at - part.at + length);
      } catch {
        return null;
      }
    },
  });
}

self.onmessage = async ({ data }: MessageEvent) => {
  if (data.module) {
    module = data.module;
    instance = start();
    return;
  }
  serving = data.id;
  reported = performance.now();
  next = data.hasParts ? reported + FIRST_PART_MS : Number.POSITIVE_INFINITY;
  if (data.capture) {
    capture = data.capture;
    part = { at: 0, octets: new Uint8Array() };
  }
  try {
    const octets = (await instance!).ask(data.request);
    self.postMessage({ id: data.id, octets }, [octets]);
  } catch (error) {
    const memory = await instance!.then(
      (failed) => failed.memory,
      () => undefined,
    );
    // The module's memory is undefined after a trap.
    instance = start();
    self.postMessage({ id: data.id, failed: String(error), memory });
  }
};
