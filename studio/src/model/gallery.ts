/** The ready-made scenarios of the repository. */

/** The build collects the texts (studio/build.mjs). */
declare const READY: { [file: string]: string };

/** Files by topic, with a short name for each of the first topic. */
export const FIRST: readonly [file: string, name: string][] = [
  ["scenarios/live/bbr-beside-cubic.toml", "BBR beside CUBIC"],
  ["scenarios/reordering.toml", "Reordering"],
  ["scenarios/live/lossy.toml", "Random loss"],
  ["scenarios/paths/upload.toml", "Bufferbloat"],
  ["scenarios/paths/download.toml", "Cable download"],
  ["scenarios/live/capacity-change.toml", "Changing capacity"],
  ["scenarios/paths/incast.toml", "Incast"],
  ["scenarios/gateway/lossy-paths.toml", "Tunnel over two paths"],
];

export const ready: { [file: string]: string } = typeof READY === "undefined" ? {} : READY;

/** The title of a scenario's text, or its file. */
export function titleOf(text: string, file = ""): string {
  return /^title\s*=\s*"([^"]*)"/m.exec(text)?.[1] ?? file;
}

/** All files by topic, the folder under `scenarios`. */
export function topics(): [topic: string, files: string[]][] {
  const made = new Map<string, string[]>();
  for (const file of Object.keys(ready)) {
    const topic = file.split("/").length > 2 ? file.split("/")[1] : "studies";
    made.set(topic, [...(made.get(topic) ?? []), file]);
  }
  return [...made];
}
