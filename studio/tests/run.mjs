// Bundles the tests and runs them: node tests/run.mjs [FOLDER [NAME]]
import { spawnSync } from "node:child_process";
import { mkdirSync, readdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const HERE = dirname(fileURLToPath(import.meta.url));
const out = join(HERE, "../build/tests");
const folder = process.argv[2] ?? "tests";
const files = readdirSync(join(HERE, "..", folder)).filter((file) => file.endsWith(".test.ts"));
mkdirSync(out, { recursive: true });
await build({
  entryPoints: files.map((file) => join(HERE, "..", folder, file)),
  outdir: out,
  outExtension: { ".js": ".mjs" },
  bundle: true,
  format: "esm",
  platform: "node",
  external: ["playwright-core", "axe-core"],
  jsx: "automatic",
  jsxImportSource: "preact",
});
const made = files.map((file) => join(out, file.replace(/\.ts$/, ".mjs")));
const { status } = spawnSync(
  process.execPath,
  ["--test", "--test-concurrency=1", ...(process.argv[3] ? [`--test-name-pattern=${process.argv[3]}`] : []), ...made],
  { stdio: "inherit" },
);
process.exit(status ?? 1);
