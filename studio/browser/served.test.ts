/** The page that `anabranch studio` serves: work by the command. */
import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import type { BrowserContext, Page } from "playwright-core";
import { launched } from "./browser.ts";

const COMMAND = process.env.STUDIO_COMMAND ?? "";
const SCENARIO = `title = "Served"
duration = "3 s"

[link.path]
between = ["A", "B"]
rate = "20 Mbit/s"
delay = "10 ms"
queue = { kind = "drop-tail", limit = "1 bdp" }

[flow.main]
from = "A"
to = "B"
`;

describe("the page of anabranch studio", { skip: COMMAND ? false : "no command" }, () => {
  const folder = mkdtempSync(join(tmpdir(), "studio-"));
  const file = join(folder, "own.toml");
  let context: BrowserContext;
  const started: ChildProcess[] = [];
  const faults: string[] = [];

  before(async () => {
    context = await launched(folder);
  });
  after(async () => {
    await context.close();
    for (const one of started) one.kill("SIGINT");
    rmSync(folder, { recursive: true, force: true });
  });

  /** Starts the command; its address, or what it says if it ends. */
  function command(...options: string[]): Promise<string> {
    const one = spawn(COMMAND, ["studio", "--no-browser", ...options], { stdio: ["ignore", "ignore", "pipe"] });
    started.push(one);
    return new Promise((resolve) => {
      let said = "";
      one.stderr!.on("data", (part) => {
        said += part;
        const found = /http:\/\/\S+/.exec(said);
        if (found) resolve(found[0]);
      });
      one.on("exit", () => resolve(said));
    });
  }

  async function opened(address: string): Promise<Page> {
    const page = await context.newPage();
    page.on("pageerror", (error) => faults.push(String(error)));
    page.on("console", (message) => message.type() === "error" && faults.push(message.text()));
    await page.goto(address);
    await page.waitForSelector("html[data-run]", { timeout: 60_000 });
    return page;
  }

  test("a scenario is saved, swept and compared by the command", async () => {
    writeFileSync(file, SCENARIO);
    const page = await opened(await command(file));
    const editor = page.getByRole("textbox", { name: "Scenario (TOML)" });
    assert.equal(await editor.inputValue(), SCENARIO);
    const before = await page.evaluate(() => Number(document.documentElement.dataset.run));
    await editor.fill(SCENARIO.replace("20 Mbit/s", "8 Mbit/s"));
    await page.waitForFunction((n) => Number(document.documentElement.dataset.run) > n, before);
    await page.getByRole("button", { name: "Save", exact: true }).click();
    await page.getByText("Saved own.toml.").waitFor();
    assert.equal(readFileSync(file, "utf8"), SCENARIO.replace("20 Mbit/s", "8 Mbit/s"));
    await page.getByText("Sweep a value").click();
    assert.equal(await page.getByLabel("Value", { exact: true }).inputValue(), "link.path.rate");
    await page.getByLabel("seeds").fill("3");
    await page.getByLabel("seeds").press("Enter");
    await page.getByRole("button", { name: "Sweep", exact: true }).click();
    await page.locator(".sweep section.chart").first().waitFor({ timeout: 120_000 });
    await page.getByRole("button", { name: "Pin run" }).click();
    const runs = await page.evaluate(() => Number(document.documentElement.dataset.run));
    await page.getByRole("combobox", { name: "Congestion control" }).selectOption("bbr");
    await page.waitForFunction((n) => Number(document.documentElement.dataset.run) > n, runs);
    const table = page.getByRole("region", { name: "Comparison with the pinned run" });
    await table.getByRole("button", { name: "Difference over 100 seeds" }).click();
    await table.getByText("difference over 100 seeds, 95 % interval").waitFor({ timeout: 120_000 });
    assert.equal(await page.getByRole("alert").count(), 0);
    await page.close();
  });

  test("a path that does not exist gives one message", async () => {
    writeFileSync(file, SCENARIO);
    const page = await opened(await command(file));
    await page.getByText("Sweep a value").click();
    await page.getByLabel("Value", { exact: true }).fill("link.path.rat");
    await page.getByRole("button", { name: "Sweep", exact: true }).click();
    const alert = page.locator(".sweep [role=alert]");
    await alert.waitFor({ timeout: 60_000 });
    assert.match(await alert.innerText(), /unknown key `rat`/);
    await page.close();
  });

  test("a live run has the same charts, or says what is missing", async () => {
    writeFileSync(file, SCENARIO);
    const page = await opened(await command(file));
    await page.getByRole("button", { name: "Run with this machine's kernel" }).click();
    await page.waitForSelector("html[data-live]", { timeout: 60_000 });
    const said = await page.locator(".notice").innerText();
    console.log(said);
    assert.match(said, /made with the kernel of this machine|^No live run: \S/);
    assert.ok(await page.getByRole("region", { name: "Goodput", exact: true }).isVisible());
    assert.ok(await page.getByRole("region", { name: "Window", exact: true }).isVisible());
    await page.close();
  });

  test("an interface is followed", async (t) => {
    const address = await command("--follow", "lo", "--ring", "20s");
    if (!address.startsWith("http")) {
      assert.match(address, /not permitted|Linux/);
      t.skip(address);
      return;
    }
    const server = createServer((socket) => socket.resume()).listen(0, "127.0.0.1");
    await new Promise((done) => server.once("listening", done));
    const { port } = server.address() as { port: number };
    const socket = connect(port, "127.0.0.1");
    const writing = setInterval(() => socket.write(Buffer.alloc(50_000)), 100);
    const page = await opened(address);
    const diagnosis = page.getByRole("region", { name: "Diagnosis" });
    const connection = diagnosis.getByText(new RegExp(`127\\.0\\.0\\.1:${port}`)).first();
    await connection.waitFor({ timeout: 60_000 });
    const frames = async () => Number(/([\d,]+) frames/.exec(await diagnosis.innerText())?.[1].replaceAll(",", ""));
    const first = await frames();
    await page.waitForFunction(
      (n) => {
        const text = document.querySelector(".capture")?.textContent ?? "";
        return Number(/([\d,]+) frames/.exec(text)?.[1].replaceAll(",", "")) > n;
      },
      first,
      { timeout: 60_000 },
    );
    clearInterval(writing);
    socket.destroy();
    server.close();
    await page.close();
  });

  test("nothing failed", () => {
    // The browser reports the refusal of a live run, and the page shows it.
    assert.deepEqual(faults, []);
  });
});
