/** The parts of the page that the build embeds: the engine's module and the worker. */

async function module(base64: string): Promise<WebAssembly.Module> {
  const octets = Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
  const stream = new Blob([octets]).stream().pipeThrough(new DecompressionStream("gzip"));
  return WebAssembly.compile(await new Response(stream).arrayBuffer());
}

/** The capture of `anabranch studio CAPTURE`, which its server sends to this page. */
export async function served(): Promise<File | undefined> {
  const found = document.getElementById("served");
  if (!found?.textContent) return undefined;
  const { name, address } = JSON.parse(found.textContent);
  const answer = await fetch(address);
  if (!answer.ok) throw new Error(`the server does not send ${name}`);
  return new File([await answer.blob()], name);
}

export function embedded(): { module: Promise<WebAssembly.Module>; worker: string } {
  const text = (id: string) => document.getElementById(id)!.textContent!;
  return { module: module(text("engine").trim()), worker: text("worker") };
}
