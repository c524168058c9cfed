// Builds the studio: one HTML file with the engine, the worker and the page (make studio).
//   node build.mjs ENGINE.wasm STUDIES.json OUT.html
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { constants, gzipSync } from "node:zlib";
import { build } from "esbuild";

const HERE = dirname(fileURLToPath(import.meta.url));
const ROOT = join(HERE, "..");
/** Octets of the whole file. */
const MOST = 3 * 2 ** 20;

/** The ready-made scenarios, by their file. Those of hosts need a kernel. */
export function ready() {
  const files = readdirSync(join(ROOT, "scenarios"), { recursive: true, encoding: "utf8" });
  const chosen = files.filter((file) => file.endsWith(".toml") && !file.startsWith("hosts")).sort();
  const texts = chosen.map((file) => [
    `scenarios/${file.replaceAll("\\", "/")}`,
    readFileSync(join(ROOT, "scenarios", file), "utf8"),
  ]);
  // A page runs no eBPF program.
  return Object.fromEntries(texts.filter(([, text]) => !/^\s*cc = \{ kind = "bpf"/m.test(text)));
}

export async function bundle(entry, more = {}) {
  const { outputFiles } = await build({
    entryPoints: [join(HERE, entry)],
    bundle: true,
    minify: true,
    write: false,
    format: "iife",
    target: "es2022",
    jsx: "automatic",
    jsxImportSource: "preact",
    legalComments: "inline",
    ...more,
  });
  return outputFiles[0].text;
}

/** A module without custom sections: names of functions are half a megabyte. */
export function stripped(module) {
  const parts = [module.subarray(0, 8)];
  for (let at = 8; at < module.length; ) {
    const start = at;
    const id = module[at++];
    let length = 0;
    for (let shift = 0; ; shift += 7) {
      const octet = module[at++];
      length += (octet & 127) * 2 ** shift;
      if (octet < 128) break;
    }
    at += length;
    if (id !== 0) parts.push(module.subarray(start, at));
  }
  return Buffer.concat(parts);
}

/** Text of a script element, which must not end it. */
const inScript = (text) => text.replaceAll("</script", "<\\/script").replaceAll("<!--", "<\\!--");

const hash = (text) => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;

/** The module as the page carries it (src/lzma.ts). */
function packed(module) {
  const python = process.env.PYTHON ?? join(ROOT, ".venv/bin/python");
  return execFileSync(python, [join(HERE, "pack.py")], { input: module, maxBuffer: 2 ** 26 });
}

async function page(engine, studies) {
  const worker = inScript(await bundle("src/engine/worker.ts"));
  const main = inScript(await bundle("src/main.tsx", { define: { READY: JSON.stringify(ready()) } }));
  const style = `${readFileSync(join(HERE, "node_modules/uplot/dist/uPlot.min.css"), "utf8")}${readFileSync(join(HERE, "src/style.css"), "utf8")}`;
  // No connect-src and no default: the page can reach nothing.
  const policy = [
    "default-src 'none'",
    `script-src ${hash(main)} 'wasm-unsafe-eval' blob:`,
    "worker-src blob:",
    "style-src 'unsafe-inline'",
    "img-src data: blob:",
    "base-uri 'none'",
    "form-action 'none'",
  ].join("; ");
  const texts = gzipSync(studies, { level: constants.Z_BEST_COMPRESSION });
  const licences = readFileSync(join(HERE, "LICENSES.txt"), "utf8");
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<title>Anabranch studio</title>
<style>${style}</style>
</head>
<body>
<div id="app"><p class="starting">Starting the engine …</p></div>
<noscript><p>The studio needs JavaScript and WebAssembly.</p></noscript>
<script type="text/plain" id="licences">${inScript(licences)}</script>
<script type="text/plain" id="worker">${worker}</script>
<script type="application/octet-stream" id="engine">${engine.toString("base64")}</script>
<script type="application/octet-stream" id="studies">${texts.toString("base64")}</script>
<script>${main}</script>
</body>
</html>
`;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [wasm, studies, out] = process.argv.slice(2);
  const module = stripped(readFileSync(wasm));
  const engine = packed(module);
  const made = await page(engine, readFileSync(studies));
  mkdirSync(dirname(out), { recursive: true });
  writeFileSync(out, made);
  const { size } = statSync(out);
  const megabytes = (octets) => `${(octets / 1e6).toFixed(2)} MB`;
  const gzip = gzipSync(module, { level: constants.Z_BEST_COMPRESSION }).length;
  console.log(
    `${relative(process.cwd(), out)}: ${megabytes(size)}; the engine ${megabytes(engine.length)} compressed (${megabytes(gzip)} by gzip, ${megabytes(module.length)} as code)`,
  );
  if (size > MOST) {
    console.error(`error: the page has ${size} octets, more than ${MOST}`);
    process.exit(1);
  }
}
