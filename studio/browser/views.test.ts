/** Views of the page in Chromium: charts, files of them, sweeps, studies, captures. */
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { gunzipSync } from "node:zlib";
import type { BrowserContext, Locator, Page } from "playwright-core";
import { afterRun, editor, launched } from "./browser.ts";

const PAGE = `file://${process.env.STUDIO_PAGE}`;
const CAPTURES = join(import.meta.dirname, "../../../docs/captures");

const PATH = `duration = "4 s"

[link.path]
between = ["A", "B"]
rate = "20 Mbit/s"
delay = "10 ms"
queue = { kind = "drop-tail", limit = "1 bdp" }

[flow.main]
from = "A"
to = "B"
`;

const chart = (page: Page | Locator, name: string) => page.getByRole("region", { name, exact: true });

describe("views of the studio's page", () => {
  const folder = mkdtempSync(join(tmpdir(), "studio-"));
  let context: BrowserContext;
  const faults: string[] = [];

  before(async () => {
    context = await launched(folder);
  });
  after(async () => {
    await context.close();
    rmSync(folder, { recursive: true, force: true });
  });

  async function opened(text = "", size: [number, number] = [1280, 900]): Promise<Page> {
    const page = await context.newPage();
    page.on("pageerror", (error) => faults.push(String(error)));
    page.on("console", (message) => message.type() === "error" && faults.push(message.text()));
    await page.setViewportSize({ width: size[0], height: size[1] });
    await page.goto(PAGE);
    await page.waitForSelector("html[data-run]", { timeout: 60_000 });
    if (text) await afterRun(page, () => editor(page).fill(text));
    return page;
  }

  async function diagnosed(page: Page, name: string, octets: Buffer): Promise<Locator> {
    writeFileSync(join(folder, name), octets);
    await page.evaluate(() => delete document.documentElement.dataset.diagnosed);
    await page.locator("input[type=file]").setInputFiles(join(folder, name));
    await page.waitForSelector("html[data-diagnosed]", { timeout: 60_000 });
    return page.getByRole("region", { name: "Diagnosis" });
  }

  test("flows of UDP alone have charts", async () => {
    const page = await opened(`${PATH}protocol = "udp"\nworkload = { kind = "paced", rate = "8 Mbit/s" }\n`);
    for (const name of ["Goodput", "Queue", "Time and sequence: main"])
      assert.ok(await chart(page, name).isVisible(), name);
    // The queue is empty. Its axis has different values.
    await page.getByLabel("Save or read Queue").click();
    const [file] = await Promise.all([
      page.waitForEvent("download"),
      page.getByRole("button", { name: "Save as SVG" }).click(),
    ]);
    await file.saveAs(join(folder, "queue.svg"));
    const values = [...readFileSync(join(folder, "queue.svg"), "utf8").matchAll(/anchor="end">([^<]*)</g)].map(
      ([, value]) => value,
    );
    assert.ok(values.length > 2 && new Set(values).size === values.length, `${values}`);
    await page.close();
  });

  test("a saved PNG has title, legend and axis", async () => {
    const page = await opened();
    await page.getByLabel("Save or read Goodput").click();
    const saved = async (kind: string) => {
      const [file] = await Promise.all([
        page.waitForEvent("download"),
        page.getByRole("button", { name: `Save as ${kind}` }).click(),
      ]);
      const path = join(folder, file.suggestedFilename());
      await file.saveAs(path);
      return readFileSync(path);
    };
    const svg = (await saved("SVG")).toString();
    for (const text of [">Goodput<", ">cubic<", ">bbr<", ">time (s)<", ">Mbit/s<"]) assert.ok(svg.includes(text), text);
    const png = await saved("PNG");
    // The header has twice the width and height of the drawing.
    const [, width, height] = /width="(\d+)" height="(\d+)"/.exec(svg)!;
    assert.deepEqual([png.readUInt32BE(16), png.readUInt32BE(20)], [2 * Number(width), 2 * Number(height)]);
    const shown = (await chart(page, "Goodput").locator("canvas").boundingBox())!;
    assert.ok(Number(height) > shown.height + 30, "title, legend and time are beyond the drawing of the page");
    // The rows of the title and of the axis have ink.
    const ink = await page.evaluate(async (data) => {
      const image = new Image();
      image.src = `data:image/png;base64,${data}`;
      await image.decode();
      const canvas = document.createElement("canvas");
      [canvas.width, canvas.height] = [image.width, image.height];
      const drawing = canvas.getContext("2d")!;
      drawing.drawImage(image, 0, 0);
      const inked = (top: number, rows: number) =>
        drawing.getImageData(0, top, image.width, rows).data.filter((v, i) => i % 4 === 0 && v < 120).length;
      return [inked(0, 34), inked(34, 34), inked(image.height - 40, 40)];
    }, png.toString("base64"));
    assert.ok(
      ink.every((count) => count > 20),
      `${ink}`,
    );
    await page.close();
  });

  test("each of eight lines has its colour", async () => {
    const flows = Array.from({ length: 8 }, (_, i) => `[flow.f${i}]\nfrom = "A"\nto = "B"\n`).join("\n");
    const page = await opened(PATH.replace(/\[flow[\s\S]*/, flows));
    for (const colorScheme of ["light", "dark"] as const) {
      await page.emulateMedia({ colorScheme });
      const colours = await chart(page, "Goodput")
        .locator(".legend i")
        .evaluateAll((all) => all.map((one) => getComputedStyle(one).borderTopColor));
      assert.equal(new Set(colours).size, 8, `${colours}`);
    }
    await page.close();
  });

  test("a chosen packet is in the visible part of its ladder, and in a table", async () => {
    const page = await opened();
    await page.getByRole("button", { name: "Next retransmission" }).click();
    for (let i = 0; i < 5; i++) await page.getByRole("button", { name: "Next retransmission" }).click();
    const reason = page.getByRole("region", { name: "Why a packet was retransmitted" });
    const ladder = reason.getByRole("group", { name: "Packets around the retransmission", exact: true });
    const [outer, arrow] = [
      (await ladder.boundingBox())!,
      (await ladder.locator("g.chosen .arrow").first().boundingBox())!,
    ];
    assert.ok(arrow.y >= outer.y && arrow.y < outer.y + outer.height, `${arrow.y} in ${outer.y} + ${outer.height}`);
    // The chart has a ring at the packet.
    const chartOfPackets = page.locator("section.chart").last();
    const saved = async () => {
      await chartOfPackets.locator("summary").click();
      const [file] = await Promise.all([
        page.waitForEvent("download"),
        chartOfPackets.getByRole("button", { name: "Save as SVG" }).click(),
      ]);
      await file.saveAs(join(folder, "ring.svg"));
      await chartOfPackets.locator("summary").click();
      return [...readFileSync(join(folder, "ring.svg"), "utf8").matchAll(/<circle cx="([\d.]+)"/g)].map(([, x]) => x);
    };
    const first = await saved();
    assert.equal(first.length, 2, "the ring and its halo");
    await page.getByRole("button", { name: "Previous retransmission" }).click();
    await page.getByRole("button", { name: "Previous retransmission" }).click();
    assert.notDeepEqual(await saved(), first);
    await reason.getByText("These packets as a table").click();
    const table = reason.getByRole("group", { name: "Table of the packets around the retransmission" });
    assert.equal(await table.locator("tbody tr").count(), await ladder.locator("g").count());
    assert.equal(await table.locator("tr.chosen").count(), 1);
    await page.close();
  });

  test("a sweep keeps the seeds of its runs, and goes with its path", async () => {
    const page = await opened(PATH);
    await page.getByText("Sweep a value").click();
    const [key, seeds, list] = [
      page.getByLabel("Value", { exact: true }),
      page.getByLabel("seeds"),
      page.getByLabel("from the list"),
    ];
    await list.fill("5 Mbit/s, 10 Mbit/s");
    const sweep = async (count: string) => {
      await seeds.fill(count);
      await seeds.press("Enter");
      await page.getByRole("button", { name: "Sweep", exact: true }).click();
    };
    const drawn = chart(page, "Goodput over link.path.rate");
    await sweep("2");
    await drawn.waitFor({ timeout: 60_000 });
    await seeds.fill("20");
    await seeds.press("Enter");
    assert.ok(await page.getByRole("heading", { name: "Means over 2 seeds" }).isVisible());
    // After an error there are no charts of before.
    await list.fill("5 Mbit/s");
    await page.getByRole("button", { name: "Sweep", exact: true }).click();
    await page.locator(".sweep .problem").waitFor();
    assert.equal(await drawn.count(), 0);
    await list.fill("5 Mbit/s, 10 Mbit/s");
    await sweep("1");
    await drawn.waitFor({ timeout: 60_000 });
    assert.equal(await page.locator(".sweep .problem").count(), 0);
    assert.ok(await page.getByRole("heading", { name: "Means over 1 seed", exact: true }).isVisible());
    // Another key, and another scenario.
    await key.fill("link.path.delay");
    await drawn.waitFor({ state: "detached" });
    await key.fill("link.path.rate");
    await sweep("1");
    await drawn.waitFor({ timeout: 60_000 });
    await afterRun(page, () => editor(page).fill(PATH.replace("10 ms", "11 ms")));
    await drawn.waitFor({ state: "detached" });
    await page.close();
  });

  test("the results of a study stay while it is closed", async () => {
    const page = await opened();
    await page.getByRole("button", { name: "Studies" }).click();
    const studies = page.getByRole("region", { name: "Studies" });
    await studies.getByRole("button", { name: "multipath" }).click();
    await studies.getByRole("button", { name: "Check claim M3" }).click();
    await page.waitForSelector("html[data-judged]", { timeout: 180_000 });
    const claim = studies.getByRole("article", { name: "Claim M3" });
    const said = await claim.innerText();
    assert.match(said, /Measured/);
    await studies.locator(".tabs button").first().click();
    await studies.getByRole("button", { name: "multipath" }).click();
    assert.equal(await claim.innerText(), said);
    await studies.getByRole("button", { name: "Close" }).click();
    await page.getByRole("button", { name: "Studies" }).click();
    await studies.getByRole("button", { name: "multipath" }).click();
    assert.equal(await claim.innerText(), said);
    await page.close();
  });

  test("a capture that is cut off says so, and its command is quoted", async () => {
    const page = await opened();
    const whole = gunzipSync(readFileSync(join(CAPTURES, "reordering.pcapng.gz")));
    let diagnosis = await diagnosed(page, "my capture (1).pcapng", whole.subarray(0, 100_000));
    assert.match(await diagnosis.innerText(), /The capture is cut off within its last record\./);
    assert.match(await diagnosis.innerText(), /anabranch diagnose 'my capture \(1\)\.pcapng' --json/);
    diagnosis = await diagnosed(page, "head.pcapng", whole.subarray(0, 20));
    assert.match(await diagnosis.innerText(), /The capture is cut off before its first packet\./);
    diagnosis = await diagnosed(page, "whole.pcapng", whole);
    assert.doesNotMatch(await diagnosis.innerText(), /cut off/);
    await page.close();
  });

  test("the charts of a capture have a cursor of their own", async () => {
    const page = await opened(PATH);
    const diagnosis = await diagnosed(
      page,
      "c.pcapng",
      gunzipSync(readFileSync(join(CAPTURES, "reordering.pcapng.gz"))),
    );
    await diagnosis.getByRole("button", { name: "Charts" }).first().click();
    const area = chart(diagnosis, "Time and sequence").locator(".chart-area");
    await area.waitFor({ timeout: 60_000 });
    await area.hover();
    await diagnosis.getByText(/ · at [\d.]+ s$/).waitFor();
    assert.doesNotMatch(await page.locator("#charts .stack-tools").innerText(), / at /);
    await page.close();
  });

  test("links and flows in braces are removed", async () => {
    const link = '{ between = ["A", "B"], rate = "20 Mbit/s", delay = "10 ms" }';
    const flow = '{ from = "A", to = "B" }';
    const text = `duration = "2 s"\nlink.path = ${link}\nlink.more = ${link.replace('"B"', '"C"')}\nflow.main = ${flow}\nflow.other = ${flow}\n`;
    const page = await opened(text);
    await page.getByText("Change the topology").click();
    await page.locator(".flows").getByRole("button", { name: "other" }).click();
    await afterRun(page, () => page.getByRole("button", { name: "Remove flow other" }).click());
    assert.equal(await editor(page).inputValue(), text.replace(`flow.other = ${flow}\n`, ""));
    await page.getByRole("button", { name: /^Link more / }).click();
    await afterRun(page, () => page.getByRole("button", { name: "Remove link more" }).click());
    assert.doesNotMatch(await editor(page).inputValue(), /more/);
    assert.equal(await page.getByRole("alert").count(), 0);
    await page.close();
  });

  for (const width of [1280, 400]) {
    test(`long names stay within ${width} pixels`, async () => {
      const name = (letter: string) => letter.repeat(60);
      const text = PATH.replace("link.path", `link.${name("l")}`)
        .replace("flow.main", `flow.${name("f")}`)
        .replaceAll('"A"', `"${name("A")}"`);
      const page = await opened(text, [width, 900]);
      await page.getByText("Change the topology").click();
      await page.getByText("Sweep a value").click();
      const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      assert.ok(wide <= 0, `the page is ${wide} pixels too wide`);
      const [list, main] = [
        (await page.locator(".flows li").boundingBox())!,
        (await page.locator("main").boundingBox())!,
      ];
      assert.ok(list.x >= main.x && list.x + list.width <= main.x + main.width);
      assert.equal(await page.getByRole("alert").count(), 0);
      await page.close();
    });
  }

  test("nothing failed", () => {
    assert.deepEqual(faults, []);
  });
});
