/** The parts of the page that the build embeds: the engine's module and the worker. */

import { unpacked } from "./lzma.ts";
import type { Study } from "./study/definition.ts";

const text = (id: string): string => document.getElementById(id)!.textContent!;

/** The octets of an embedded part. */
function octets(id: string): Uint8Array<ArrayBuffer> {
  const binary = atob(text(id).trim());
  const made = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i++) made[i] = binary.charCodeAt(i);
  return made;
}

async function module(): Promise<WebAssembly.Module> {
  return WebAssembly.compile(unpacked(octets("engine")));
}

/** The published studies. */
export function studies(): Promise<Study[]> {
  const stream = new Blob([octets("studies")]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).json();
}

export function embedded(): { module: Promise<WebAssembly.Module>; worker: string } {
  return { module: module(), worker: text("worker") };
}
