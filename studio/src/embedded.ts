/** The parts of the page that the build embeds: the engine's module and the worker. */

import type { Study } from "./study/definition.ts";

/** The content of an embedded part. */
function content(id: string): Response {
  const octets = Uint8Array.from(atob(text(id).trim()), (c) => c.charCodeAt(0));
  return new Response(new Blob([octets]).stream().pipeThrough(new DecompressionStream("gzip")));
}

const text = (id: string): string => document.getElementById(id)!.textContent!;

async function module(): Promise<WebAssembly.Module> {
  return WebAssembly.compile(await content("engine").arrayBuffer());
}

/** The published studies. */
export function studies(): Promise<Study[]> {
  return content("studies").json();
}

export function embedded(): { module: Promise<WebAssembly.Module>; worker: string } {
  return { module: module(), worker: text("worker") };
}
