/** Chromium, and parts of the page, for the tests of the page. */
import { join } from "node:path";
import { type BrowserContext, chromium, type Page } from "playwright-core";

/** Starts Chromium with a profile in `folder`. */
export function launched(folder: string): Promise<BrowserContext> {
  return chromium.launchPersistentContext(join(folder, "profile"), {
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    headless: true,
    acceptDownloads: true,
    args: [
      "--no-sandbox",
      "--disable-gpu",
      "--no-first-run",
      "--disable-background-networking",
      "--disable-component-update",
      "--disable-sync",
    ],
  });
}

/** Runs of the page so far. */
const runs = (page: Page) => page.evaluate(() => Number(document.documentElement.dataset.run ?? 0));

/** Acts, and waits for the end of the run that follows. */
export async function afterRun(page: Page, act: () => Promise<unknown>): Promise<void> {
  const before = await runs(page);
  await act();
  await page.waitForFunction((n) => Number(document.documentElement.dataset.run ?? 0) > n, before, { timeout: 60_000 });
}

export const editor = (page: Page) => page.getByRole("textbox", { name: "Scenario (TOML)" });
