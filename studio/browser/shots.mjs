// Pictures of the page: node browser/shots.mjs STUDIO.html FOLDER [FRAGMENT]
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { chromium } from "playwright-core";

const [file, folder, fragment = ""] = process.argv.slice(2);
const context = await chromium.launchPersistentContext(mkdtempSync(join(tmpdir(), "studio-")), {
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  headless: true,
  args: [
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
  ],
});
for (const [width, height, colorScheme] of [
  [1280, 900, "light"],
  [1280, 900, "dark"],
  [400, 860, "light"],
  [400, 860, "dark"],
]) {
  const page = await context.newPage();
  page.on("console", (message) => console.log(message.text()));
  page.on("pageerror", (error) => console.log(String(error)));
  await page.emulateMedia({ colorScheme });
  await page.setViewportSize({ width, height });
  await page.goto(`file://${resolve(file)}${fragment}`);
  await page.waitForSelector("html[data-run]", { timeout: 60_000 });
  await page.waitForTimeout(400);
  await page.screenshot({ path: `${folder}/${width}-${colorScheme}.png`, fullPage: true });
  console.log(width, colorScheme, await page.evaluate(() => document.documentElement.dataset.took));
  await page.close();
}
await context.close();
