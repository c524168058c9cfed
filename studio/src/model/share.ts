/** The page's state in the fragment of its address: `#VERSION.DATA`, data in compressed JSON. Nothing is sent. */

import { type LinkWay, WAYS, type Way } from "./summary.ts";
import type { Moved } from "./topology.ts";

/** What a link restores. */
export interface State {
  /** The ready path, if the text is unchanged; the text itself otherwise. */
  ready?: string;
  text?: string;
  seed?: number;
  /** The pinned run's text and seed. */
  pinned?: { text: string; seed?: number };
  /** The part of the time that the charts show, in seconds. */
  view?: [number, number];
  /** The flow in focus. */
  flow?: string;
  /** The chosen direction of a link. */
  link?: LinkWay;
  /** Nodes of the drawing that were moved by hand. */
  moved?: Moved;
  /** The open study; "" for the first. */
  study?: string;
}

export const VERSION = 1;
/** Longest text of a shared scenario. */
const MOST = 4 * 2 ** 20;

async function through(
  octets: Uint8Array<ArrayBuffer>,
  stream: GenericTransformStream,
  most: number,
): Promise<Uint8Array<ArrayBuffer>> {
  const reader = new Blob([octets])
    .stream()
    .pipeThrough(stream as ReadableWritablePair<Uint8Array, Uint8Array>)
    .getReader();
  const parts: Uint8Array<ArrayBuffer>[] = [];
  for (let size = 0; ; ) {
    const { value, done } = await reader.read();
    if (done) return new Uint8Array(await new Blob(parts).arrayBuffer());
    size += value.length;
    // A short link may expand to gigabytes.
    if (size > most) throw new Error("too long");
    parts.push(value as Uint8Array<ArrayBuffer>);
  }
}

function base64(octets: Uint8Array): string {
  let text = "";
  for (let i = 0; i < octets.length; i += 0x8000) text += String.fromCharCode(...octets.subarray(i, i + 0x8000));
  return btoa(text).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
}

function octets(text: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (c) => c.charCodeAt(0));
}

/** The fragment of a state, without `#`. */
export async function encode(state: State): Promise<string> {
  const json = new TextEncoder().encode(JSON.stringify(state));
  return `${VERSION}.${base64(await through(json, new CompressionStream("deflate-raw"), Number.POSITIVE_INFINITY))}`;
}

const BROKEN = "The link is broken: its last part is incomplete or changed. The first path is shown instead.";

/** The state of a fragment, or a message for its reader. */
export async function decode(fragment: string): Promise<State | string> {
  const found = /^(\d{1,9})\.(.*)$/s.exec(fragment);
  if (!found) return BROKEN;
  if (Number(found[1]) !== VERSION) {
    return `The link is of version ${found[1]} of the studio's links, and this page reads version ${VERSION}. The first path is shown instead.`;
  }
  try {
    const json = new TextDecoder("utf-8", { fatal: true }).decode(
      await through(octets(found[2]), new DecompressionStream("deflate-raw"), MOST),
    );
    return checked(JSON.parse(json)) ?? BROKEN;
  } catch {
    return BROKEN;
  }
}

function isRecord(value: unknown): value is { [name: string]: unknown } {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

const isText = (value: unknown): value is string => typeof value === "string" && value.length <= MOST;
const isSeed = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0;

/** Most moved nodes of a link, and how far they may be moved. */
const MOST_MOVED = 100;
const FARTHEST = 5000;

function isPlace(value: unknown): boolean {
  return Array.isArray(value) && value.length === 2 && value.every((one) => Math.abs(one) <= FARTHEST);
}

/** The state of data that anyone may have written. */
function checked(value: unknown): State | undefined {
  if (!isRecord(value)) return undefined;
  const { ready, text, seed, pinned, view, flow, study, moved, link } = value;
  const state: State = {};
  if (isText(ready)) state.ready = ready;
  if (isText(text)) state.text = text;
  if (state.ready === undefined && state.text === undefined) return undefined;
  if (isSeed(seed)) state.seed = seed;
  if (isText(flow)) state.flow = flow;
  if (isText(study)) state.study = study;
  if (isRecord(link) && isText(link.link) && WAYS.includes(link.way as Way))
    state.link = { link: link.link, way: link.way as Way };
  if (isRecord(moved)) {
    const places = Object.entries(moved).filter((one): one is [string, [number, number]] => isPlace(one[1]));
    if (places.length) state.moved = Object.fromEntries(places.slice(0, MOST_MOVED));
  }
  if (isRecord(pinned) && isText(pinned.text)) {
    state.pinned = { text: pinned.text };
    if (isSeed(pinned.seed)) state.pinned.seed = pinned.seed;
  }
  if (Array.isArray(view) && view.length === 2 && view.every(Number.isFinite) && view[0] < view[1]) {
    state.view = [view[0], view[1]];
  }
  return state;
}
