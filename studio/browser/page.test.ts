/** The page in Chromium, from a file. Nothing of it reaches the network. */
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import type { BrowserContext, Page } from "playwright-core";
import { afterRun, editor, launched } from "./browser.ts";

const PAGE = `file://${process.env.STUDIO_PAGE}`;
const CAPTURES = join(import.meta.dirname, "../../../docs/captures");
const AXE = readFileSync(
  createRequire(join(import.meta.dirname, "../../package.json")).resolve("axe-core/axe.min.js"),
  "utf8",
);

const verdict = (page: Page) => page.locator(".verdict > p").innerText();

describe("the studio's page", () => {
  const folder = mkdtempSync(join(tmpdir(), "studio-"));
  let context: BrowserContext;
  const faults: string[] = [];
  const asked: string[] = [];

  before(async () => {
    context = await launched(folder);
  });
  after(async () => {
    await context.close();
    rmSync(folder, { recursive: true, force: true });
  });

  async function opened(
    fragment = "",
    size: [number, number] = [1280, 900],
    colorScheme: "light" | "dark" = "light",
  ): Promise<Page> {
    const page = await context.newPage();
    page.on("pageerror", (error) => faults.push(String(error)));
    page.on("console", (message) => message.type() === "error" && faults.push(message.text()));
    page.on("request", (request) => asked.push(request.url()));
    await page.emulateMedia({ colorScheme });
    await page.setViewportSize({ width: size[0], height: size[1] });
    await page.goto(`${PAGE}${fragment}`);
    await page.waitForSelector("html[data-run]", { timeout: 60_000 });
    return page;
  }

  test("the first screen is a finished picture, and a control runs it again", async () => {
    const page = await opened();
    console.log(
      `first picture ${await page.evaluate(() => document.documentElement.dataset.first)} ms after the load began`,
    );
    assert.match(await verdict(page), /Mbit\/s \(bbr [\d.]+, cubic [\d.]+\)/);
    for (const title of ["Goodput", "Window", "Queue", "Smoothed round-trip time"])
      assert.ok(await page.getByRole("region", { name: title, exact: true }).isVisible(), title);
    await afterRun(page, () => page.getByLabel("Congestion control").selectOption("bbr"));
    assert.match(await editor(page).inputValue(), /\[flow\.(bbr|cubic)\][^[]*cc = "bbr"/);
    const times: number[] = [];
    for (let i = 0; i < 20; i++) {
      await afterRun(page, () => page.getByLabel("Delay", { exact: false }).first().press("ArrowRight"));
      times.push(Number(await page.evaluate(() => document.documentElement.dataset.took)));
    }
    times.sort((a, b) => a - b);
    console.log(`run again: median ${times[10]} ms, p95 ${times[18]} ms`);
    await page.close();
  });

  test("errors of the text are those of the command, and the page stays usable", async () => {
    const page = await opened();
    const text = await editor(page).inputValue();
    await afterRun(page, () => editor(page).fill(text.replace('cc = "cubic"', 'cc = "cubik"')));
    const problem = await page.getByRole("alert").innerText();
    assert.match(problem, /unknown .*`cubik`[\s\S]*\^\^\^[\s\S]*did you mean `cubic`\?/);
    await page.getByRole("button", { name: /Go to line/ }).click();
    assert.equal(
      await page.evaluate(() => (document.activeElement as HTMLTextAreaElement).selectionStart),
      text.indexOf('"cubic"'),
    );
    await afterRun(page, () => editor(page).fill(text));
    assert.equal(await page.getByRole("alert").count(), 0);
    await page.close();
  });

  test("a link restores the state", async () => {
    const page = await opened();
    await afterRun(page, () => page.getByLabel("Random loss").press("End"));
    await page.getByRole("button", { name: "Copy link" }).click();
    await page.waitForFunction(() => location.hash.length > 9);
    await page.getByText("In another copy of this page").waitFor();
    const digest = async (of: Page) => {
      await of.getByRole("button", { name: "Digest" }).click();
      await of.waitForFunction(() => (document.querySelector(".digest code")?.textContent?.length ?? 0) === 32);
      return of.locator(".digest code").innerText();
    };
    const made = await digest(page);
    const [fragment, text, said] = [
      await page.evaluate(() => location.hash),
      await editor(page).inputValue(),
      await verdict(page),
    ];
    await page.close();
    const other = await opened(fragment);
    assert.equal(await editor(other).inputValue(), text);
    assert.equal(await verdict(other), said);
    assert.equal(await digest(other), made);
    await other.close();
  });

  test("broken links give one message and a usable page", async () => {
    for (const [fragment, message] of [
      ["#nonsense", /link is broken/],
      ["#1.AAAA", /link is broken/],
      ["#7.abc", /version 7/],
    ] as const) {
      const page = await opened(fragment);
      await page.waitForFunction(() => document.querySelector(".notice")?.textContent);
      assert.match(await page.locator(".notice").innerText(), message);
      assert.match(await verdict(page), /Mbit\/s/);
      await afterRun(page, () => page.getByRole("button", { name: "Random loss" }).click());
      await page.close();
    }
  });

  test("the way to the charts keeps the scenario", async () => {
    const page = await opened();
    await verdict(page);
    const text = `${await editor(page).inputValue()}# own\n`;
    await afterRun(page, () => editor(page).fill(text));
    await page.locator(".skip").focus();
    await page.keyboard.press("Enter");
    assert.equal(await page.evaluate(() => document.activeElement?.id), "charts");
    assert.equal(await editor(page).inputValue(), text);
    assert.equal(await page.evaluate(() => location.hash), "");
    await page.close();
  });

  test("a ready path does not discard an own scenario, and a drag is one step", async () => {
    const page = await opened();
    const text = `${await editor(page).inputValue()}# own\n`;
    await afterRun(page, () => editor(page).fill(text));
    await afterRun(page, () => page.getByRole("button", { name: "Bufferbloat" }).click());
    await afterRun(page, () => page.getByRole("button", { name: "Undo" }).click());
    assert.equal(await editor(page).inputValue(), text);
    const rate = page.getByLabel("Rate", { exact: false }).first();
    for (let i = 0; i < 5; i++) await rate.press("ArrowRight");
    await page.waitForTimeout(900);
    await afterRun(page, () => page.getByRole("button", { name: "Undo" }).click());
    assert.equal(await editor(page).inputValue(), text);
    await page.close();
  });

  test("an error takes the place of the verdict, and nothing is advised", async () => {
    const page = await opened();
    const text = await editor(page).inputValue();
    await afterRun(page, () => editor(page).fill(text.replace('cc = "cubic"', 'cc = "cubik"')));
    assert.match(await verdict(page), /^Line 20: .*cubik.*The charts show the run before\./);
    assert.equal(await page.getByRole("button", { name: /What would help/ }).count(), 0);
    await afterRun(page, () => editor(page).fill(text));
    assert.match(await verdict(page), /Mbit\/s/);
    await page.close();
  });

  test("a control of one direction leaves the other, and the direction can be chosen", async () => {
    const page = await opened();
    await afterRun(page, () => page.getByRole("button", { name: "Cable download" }).click());
    assert.match(await verdict(page), /^[\d.]+ of 45\.6 Mbit\/s: link access is full/);
    const direction = page.getByLabel("Direction");
    assert.equal(await direction.inputValue(), "forward");
    await direction.selectOption("reverse");
    await afterRun(page, () => page.getByLabel("Rate", { exact: false }).first().press("ArrowRight"));
    assert.match(await editor(page).inputValue(), /^reverse\.rate = "5\.09 Mbit\/s"$/m);
    assert.match(await verdict(page), /^[\d.]+ of 45\.6 Mbit\/s/);
    await page.close();
  });

  test("the number of flows changes with the arrow keys", async () => {
    const page = await opened();
    const count = page.getByLabel("Number of flows");
    for (const expected of ["2", "3"]) {
      await afterRun(page, () => count.press("ArrowRight"));
      assert.equal(await count.getAttribute("aria-valuetext"), expected);
    }
    await page.close();
  });

  test("a long run shows its progress and stops", async () => {
    const page = await opened();
    const text = (await editor(page).inputValue())
      .replace('duration = "15 s"', 'duration = "100000 s"')
      .replace('rate = "20 Mbit/s"', 'rate = "1 Gbit/s"');
    await editor(page).fill(text);
    await page.getByRole("button", { name: "Stop" }).waitFor();
    await afterRun(page, () => page.getByRole("button", { name: "Stop" }).click());
    assert.match(await page.locator(".notice").innerText(), /Stopped/);
    await afterRun(page, () => page.getByRole("button", { name: "Random loss" }).click());
    await page.close();
  });

  test("charts fill in during a long run, and keep the part of a stopped run", async () => {
    const page = await opened();
    const text = (await editor(page).inputValue())
      .replace('duration = "15 s"', 'duration = "3000 s"')
      .replace("[link.bottleneck]", "[link.wan]");
    const times = await page.evaluate(async () => {
      const { dataset } = document.documentElement;
      const made: number[] = [];
      new MutationObserver(() => dataset.until && made.push(Number(dataset.drawn))).observe(document.documentElement, {
        attributeFilter: ["data-until"],
      });
      (window as unknown as { drawn: number[] }).drawn = made;
      return made;
    });
    assert.deepEqual(times, []);
    await editor(page).fill(text);
    await page.waitForFunction(() => (window as unknown as { drawn: number[] }).drawn.length >= 6, undefined, {
      timeout: 60_000,
    });
    assert.match(await verdict(page), /under way/);
    assert.match(await page.locator(".running").innerText(), / of 3000 s/);
    // The drawing and the controls show the run under way, not the run before.
    assert.equal(await page.getByRole("button", { name: /^Link wan / }).count(), 1);
    assert.match(await page.getByRole("form", { name: "Controls" }).innerText(), /Link wan/);
    assert.doesNotMatch(await page.locator(".flows").innerText(), /Mbit/);
    await afterRun(page, () => page.getByRole("button", { name: "Stop" }).click());
    assert.match(await verdict(page), /ended after [\d.]+ of 3000 s, and has no result/);
    const stopped = await page.evaluate(() => document.documentElement.dataset.run);
    await page.getByRole("button", { name: "Run again" }).click();
    await page.getByRole("button", { name: "Stop" }).waitFor();
    await page.waitForFunction(() => document.documentElement.dataset.until);
    assert.equal(await page.evaluate(() => document.documentElement.dataset.run), stopped);
    await afterRun(page, () => page.getByRole("button", { name: "Stop" }).click());
    const goodput = page.getByRole("region", { name: /^Goodput, [\d.]+ of 3000 s$/ });
    assert.ok(await goodput.isVisible());
    assert.equal(await page.locator(".stack-tools span").first().innerText(), "All 3000 s");
    const drawn = await page.evaluate(() => (window as unknown as { drawn: number[] }).drawn);
    drawn.sort((a, b) => a - b);
    const at = (share: number) => drawn[Math.min(Math.floor(share * drawn.length), drawn.length - 1)];
    console.log(`charts of a run under way: ${drawn.length}, median ${at(0.5)} ms, p95 ${at(0.95)} ms`);
    // A finished run replaces the part.
    await afterRun(page, () => editor(page).fill(text.replace("3000 s", "15 s")));
    assert.match(await verdict(page), /Mbit\/s \(bbr/);
    assert.ok(await page.getByRole("region", { name: "Goodput", exact: true }).isVisible());
    assert.equal(await page.locator(".stack-tools span").first().innerText(), "All 15 s");
    await page.close();
  });

  test("huge scenarios give one message", async () => {
    const page = await opened();
    const text = await editor(page).inputValue();
    for (const huge of [
      `${text}\n# ${"x".repeat(5 * 2 ** 20)}`,
      text.replace('cc = "cubic"', 'cc = "cubic"\ncount = 100000000'),
    ]) {
      await afterRun(page, () => editor(page).fill(huge));
      assert.ok((await page.getByRole("alert").innerText()).length > 10);
    }
    await afterRun(page, () => editor(page).fill(text));
    assert.match(await verdict(page), /Mbit\/s/);
    await page.close();
  });

  test("what would help names gains, and applies one", async () => {
    const page = await opened();
    await afterRun(page, () => page.getByRole("button", { name: "Random loss" }).click());
    await page.getByRole("button", { name: "What would help" }).click();
    const first = page.locator(".help li").first();
    await first.waitFor({ timeout: 120_000 });
    assert.match(await first.innerText(), /gets [\d.]+ instead of [\d.]+ Mbit\/s/);
    await afterRun(page, () => first.getByRole("button", { name: "Apply" }).click());
    await page.close();
  });

  test("a pinned run is compared over seeds", async () => {
    const page = await opened();
    await page.getByRole("button", { name: "Pin run" }).click();
    await afterRun(page, () => page.getByRole("combobox", { name: "Queue" }).selectOption("fq-codel"));
    const table = page.getByRole("region", { name: "Comparison with the pinned run" });
    await table.getByRole("button", { name: /Difference over/ }).click();
    await table.getByText("95 % interval").waitFor({ timeout: 120_000 });
    assert.match(await table.innerText(), /queue delay \(p95\)[\s\S]*\(-?[\d.]+ to -?[\d.]+\)/);
    assert.match(await table.innerText(), /This run \(solid\): .*fq-codel.* instead of .*drop-tail/);
    assert.match(await table.innerText(), /retransmitted share of packets\s+[\d.]+ %/);
    assert.ok(await page.getByRole("button", { name: /pinned: bbr cwnd/ }).isVisible());
    await page.close();
  });

  test("the terms of a run stay open over its changes", async () => {
    const page = await opened();
    await afterRun(page, () => page.getByRole("button", { name: "Random loss" }).click());
    await page.getByText("Explain the terms of this run").click();
    const terms = page.locator(".terms dl");
    assert.match(await terms.innerText(), /Loss law \(square root\)[\s\S]*In this run main gets [\d.]+ Mbit\/s/);
    await afterRun(page, () => page.getByRole("combobox", { name: "Congestion control" }).selectOption("bbr"));
    assert.ok(await terms.isVisible());
    assert.match(await terms.innerText(), /BBR \(version 1\)/);
    assert.doesNotMatch(await terms.innerText(), /Loss law/);
    await page.close();
  });

  test("the legend of a new page marks hidden lines", async () => {
    const page = await opened();
    const shown = page.getByRole("button", { name: "cubic cwnd" });
    const hidden = page.getByRole("button", { name: "cubic in flight" });
    assert.equal(await shown.getAttribute("aria-pressed"), "true");
    assert.equal(await hidden.getAttribute("aria-pressed"), "false");
    await hidden.click();
    assert.equal(await hidden.getAttribute("aria-pressed"), "true");
    await page.close();
  });

  test("labels of controls keep one line on a phone", async () => {
    const page = await opened();
    await page.setViewportSize({ width: 400, height: 800 });
    for (const label of await page.locator(".knob > span:first-child").all()) {
      const { height = 99 } = (await label.boundingBox()) ?? {};
      assert.ok(height < 30, `${await label.innerText()}: ${height}`);
    }
    await page.close();
  });

  test("a retransmission has a reason and a ladder, by keyboard alone", async () => {
    const page = await opened();
    const chart = page.locator("section.chart").last().locator(".chart-area");
    await chart.focus();
    await page.keyboard.press("n");
    await page.keyboard.press("n");
    const reason = page.getByRole("region", { name: "Why a packet was retransmitted" });
    assert.match(await reason.innerText(), /2 of \d+[\s\S]*Octet [\d,]+ was retransmitted/);
    assert.ok(await reason.locator("svg.ladder").isVisible());
    await page.keyboard.press("+");
    await page.waitForFunction(() => / to .* of 15 s/.test(document.querySelector(".stack-tools")?.textContent ?? ""));
    await page.keyboard.press("0");
    // Every control is reached by Tab.
    await page.evaluate(() => (document.activeElement as HTMLElement).blur());
    const reached = new Set<string>();
    for (let i = 0; i < 90; i++) {
      await page.keyboard.press("Tab");
      const name = await page.evaluate(() => {
        const { activeElement: at } = document;
        return (
          at?.getAttribute("aria-label") ?? (at as HTMLInputElement)?.labels?.[0]?.textContent ?? at?.textContent ?? ""
        );
      });
      reached.add(name.trim());
    }
    for (const name of ["Copy link", "Pin run", "What would help", "Play", "Scenario (TOML)"])
      assert.ok(reached.has(name), `${name} of ${[...reached].join(" | ")}`);
    assert.ok([...reached].some((name) => name.startsWith("Link bottleneck")));
    await page.close();
  });

  test("a topology is built by hand, and steps are undone", async () => {
    const page = await opened();
    const text = (await editor(page).inputValue()).replace('duration = "15 s"', 'duration = "4 s"');
    await afterRun(page, () => editor(page).fill(text));
    await page.getByText("Change the topology").click();
    await afterRun(page, () => page.getByRole("button", { name: "Add gateway" }).click());
    await afterRun(page, () => page.getByRole("button", { name: "Add link" }).click());
    assert.match(await editor(page).inputValue(), /routes = \["bottleneck", "link", "link2"\]/);
    assert.equal(await page.getByRole("alert").count(), 0);
    await afterRun(page, () => page.getByRole("button", { name: "Add impairment" }).click());
    await afterRun(page, () => page.getByRole("button", { name: "Add impairment" }).click());
    await afterRun(page, () => page.getByRole("button", { name: "Add host beside A" }).click());
    assert.match(await editor(page).inputValue(), /\[link.link\][\s\S]*\[gateway.gateway\][\s\S]*"host"/);
    await page.locator('g.host[data-node="host"]').waitFor();
    const node = page.locator('g.host[data-node="A"]');
    await node.scrollIntoViewIfNeeded();
    const box = (await node.locator(".handle").boundingBox())!;
    const drawing = (await page.locator("svg.drawing").first().boundingBox())!;
    await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
    await page.mouse.down();
    await page.mouse.move(drawing.x + 3, drawing.y + 3, { steps: 4 });
    await afterRun(page, () => page.mouse.up());
    assert.match(await editor(page).inputValue(), /host2/);
    for (let i = 0; i < 6; i++) await afterRun(page, () => page.keyboard.press("Control+z"));
    assert.equal(await editor(page).inputValue(), text);
    await afterRun(page, () => page.getByRole("button", { name: "Redo" }).click());
    assert.equal(await page.getByRole("alert").count(), 0);
    await page.close();
  });

  test("a capture is diagnosed in the page, and its path simulated", async () => {
    const page = await opened();
    await page.locator("input[type=file]").setInputFiles(join(CAPTURES, "reordering.pcapng.gz"));
    await page.waitForSelector("html[data-diagnosed]", { timeout: 60_000 });
    const diagnosis = page.getByRole("region", { name: "Diagnosis" });
    assert.match(
      await diagnosis.innerText(),
      /36 retransmissions, 36 of them spurious[\s\S]*reached 10.0.0.3:5001 after later ones/,
    );
    await diagnosis.getByRole("button", { name: "Charts" }).click();
    await diagnosis.getByRole("region", { name: "Time and sequence" }).waitFor({ timeout: 60_000 });
    await afterRun(page, () => diagnosis.getByRole("button", { name: "Simulate its path" }).click());
    assert.match(await editor(page).inputValue(), /fitted/);
    assert.equal(await page.getByRole("alert").count(), 0);
    await page.close();
  });

  test("a qlog is diagnosed in the page, and its path simulated", { skip: !process.env.STUDIO_QLOGS }, async () => {
    const page = await opened();
    await page.locator("input[type=file]").setInputFiles(join(process.env.STUDIO_QLOGS!, "sequence.sqlog"));
    await page.waitForSelector("html[data-diagnosed]", { timeout: 60_000 });
    const diagnosis = page.getByRole("region", { name: "Diagnosis" });
    assert.match(await diagnosis.innerText(), /[\d,]+ packets, 1 QUIC connection\.[\s\S]*Log of the client/);
    await diagnosis.getByRole("button", { name: "Charts" }).click();
    await diagnosis.getByRole("region", { name: "Time and sequence" }).waitFor({ timeout: 60_000 });
    await afterRun(page, () => diagnosis.getByRole("button", { name: "Simulate its path" }).click());
    assert.equal(await page.getByRole("alert").count(), 0);
    await page.close();
  });

  test("a capture of 100 MB is diagnosed in the page", { skip: !process.env.STUDIO_LARGE }, async () => {
    const page = await opened();
    await page.locator("input[type=file]").setInputFiles(process.env.STUDIO_LARGE!);
    await page.waitForSelector("html[data-diagnosed]", { timeout: 180_000 });
    assert.match(await page.getByRole("region", { name: "Diagnosis" }).innerText(), /1\d\d MB, read in this page/);
    // The page stays usable while another worker reads the capture.
    await afterRun(page, () => page.getByRole("button", { name: "Random loss" }).click());
    await page.close();
  });

  test("claims are judged in the page, and figures drawn", async () => {
    const page = await opened();
    await page.getByRole("button", { name: "Studies" }).click();
    const studies = page.getByRole("region", { name: "Studies" });
    await studies.getByRole("button", { name: "multipath" }).click();
    await studies.getByRole("button", { name: "Check claim M3" }).click();
    await page.waitForSelector("html[data-judged]", { timeout: 180_000 });
    const claim = studies.getByRole("article", { name: "Claim M3" });
    assert.match(await claim.innerText(), /reproduced[\s\S]*Published[\s\S]*Measured\s+explained A 0\.99/);
    await studies.getByRole("button", { name: /^Draw Throughput over the loss/ }).click();
    const chart = studies.getByRole("region", { name: /^Throughput over the loss/ });
    await chart.waitFor({ timeout: 180_000 });
    assert.ok(await chart.getByRole("button", { name: /method A/ }).isVisible());
    // Both are in the link.
    await page.getByRole("button", { name: "Copy link" }).click();
    await page.waitForFunction(() => location.hash.length > 9);
    const other = await opened(await page.evaluate(() => location.hash));
    await other.getByRole("button", { name: "Check claim M3" }).waitFor();
    await other.close();
    await page.getByRole("button", { name: "Run the quick grid" }).click();
    await studies.getByRole("button", { name: "Stop" }).click();
    await studies.getByRole("progressbar").waitFor({ state: "detached" });
    assert.equal(await page.getByRole("alert").count(), 0);
    await page.close();
  });

  test("a node is moved by drag and by keys, and put back", async () => {
    const page = await opened();
    const node = page.locator('g.host[data-node="A"]');
    await node.scrollIntoViewIfNeeded();
    const place = async () => (await node.locator("rect").boundingBox())!;
    const before = await place();
    const drawing = async () => (await page.locator("svg.drawing").first().boundingBox())!;
    const whole = await drawing();
    await page.mouse.move(before.x + before.width / 2, before.y + before.height / 2);
    await page.mouse.down();
    await page.mouse.move(before.x + before.width / 2, before.y + before.height / 2 + 90, { steps: 5 });
    await page.mouse.up();
    assert.ok((await drawing()).height > whole.height + 30);
    const text = await editor(page).inputValue();
    await page.getByRole("button", { name: "Undo" }).click();
    await page.waitForFunction((height) => {
      const now = document.querySelector("svg.drawing")!.getBoundingClientRect().height;
      return Math.abs(now - height) < 2;
    }, whole.height);
    assert.equal(await editor(page).inputValue(), text);
    await node.focus();
    for (let i = 0; i < 8; i++) await page.keyboard.press("ArrowDown");
    assert.ok((await drawing()).height > whole.height + 30);
    await page.getByRole("button", { name: "Copy link" }).click();
    await page.waitForFunction(() => location.hash.length > 9);
    const other = await opened(await page.evaluate(() => location.hash));
    const shown = (await other.locator("svg.drawing").first().boundingBox())!;
    assert.ok(Math.abs(shown.height - (await drawing()).height) < 2);
    await other.close();
    await node.focus();
    await page.keyboard.press("0");
    assert.ok(Math.abs((await drawing()).height - whole.height) < 2);
    await page.close();
  });

  test("several impairments of a link are changed and removed", async () => {
    const page = await opened();
    await page.getByText("Change the topology").click();
    const add = page.getByRole("button", { name: "Add impairment" });
    await afterRun(page, () => add.click());
    await page.getByRole("combobox", { name: /: impairment/ }).selectOption("duplicate");
    await afterRun(page, () => add.click());
    await page.getByRole("combobox", { name: /: impairment/ }).selectOption("jitter");
    await afterRun(page, () => add.click());
    const list = page.getByRole("list", { name: "Impairments of link bottleneck, forward" });
    assert.equal(await list.getByRole("listitem").count(), 3);
    const rate = list.getByRole("listitem").nth(1).getByLabel("rate");
    await afterRun(page, async () => {
      await rate.fill("0.25");
      await rate.press("Enter");
    });
    assert.match(await editor(page).inputValue(), /kind = "duplicate", rate = 0\.25/);
    await afterRun(page, () => list.getByRole("button", { name: "Remove impairment 1, bernoulli-loss" }).click());
    assert.equal(await list.getByRole("listitem").count(), 2);
    assert.doesNotMatch(await editor(page).inputValue(), /bernoulli-loss/);
    assert.equal(await page.getByRole("alert").count(), 0);
    await page.close();
  });

  test("connections without data are diagnosed, and offer no path", async () => {
    // A pcap of raw IP with two SYNs of 10.0.0.1:4000.
    const syn = "450000280000400040060000 0a000001 0a000002 0fa00050 00000001 00000000 5002ffff00000000".replaceAll(
      " ",
      "",
    );
    const record = (seconds: number) => {
      const head = Buffer.alloc(16);
      head.writeUInt32LE(seconds, 0);
      for (const at of [8, 12]) head.writeUInt32LE(40, at);
      return Buffer.concat([head, Buffer.from(syn, "hex")]);
    };
    const head = Buffer.from("d4c3b2a1 02000400 00000000 00000000 ffff0000 65000000".replaceAll(" ", ""), "hex");
    writeFileSync(join(folder, "syns.pcap"), Buffer.concat([head, record(1), record(2)]));
    const page = await opened();
    await page.locator("input[type=file]").setInputFiles(join(folder, "syns.pcap"));
    await page.waitForSelector("html[data-diagnosed]", { timeout: 60_000 });
    const diagnosis = page.getByRole("region", { name: "Diagnosis" });
    assert.match(await diagnosis.innerText(), /10\.0\.0\.1:4000/);
    assert.equal(await diagnosis.getByRole("button", { name: "Simulate its path" }).count(), 0);
    await page.close();
  });

  test("a file that is no capture gives one message", async () => {
    const page = await opened();
    writeFileSync(join(folder, "notes.txt"), "no capture");
    await page.locator("input[type=file]").setInputFiles(join(folder, "notes.txt"));
    assert.match(await page.getByRole("alert").innerText(), /notes\.txt: \S/);
    await page.close();
  });

  test("play moves the time; steps go from packet to packet", async () => {
    const page = await opened();
    await page.getByRole("button", { name: "Next packet" }).click();
    await page.getByRole("button", { name: "Next packet" }).click();
    await page.locator("circle.packet").first().waitFor();
    await page.getByRole("button", { name: "Play", exact: true }).click();
    await page.getByRole("button", { name: "Pause" }).click();
    await page.close();
  });

  test("charts are saved as SVG and PNG", async () => {
    const page = await opened();
    for (const [kind, begin] of [
      ["SVG", /^<svg /],
      ["PNG", /^.PNG/],
    ] as const) {
      await page.getByLabel("Save or read Goodput").click();
      const [file] = await Promise.all([
        page.waitForEvent("download"),
        page.getByRole("button", { name: `Save as ${kind}` }).click(),
      ]);
      const path = join(folder, file.suggestedFilename());
      await file.saveAs(path);
      assert.match(readFileSync(path, "latin1"), begin);
      await page.getByLabel("Save or read Goodput").click();
    }
    await page.close();
  });

  test("the policy permits no connection", async () => {
    const page = await opened();
    const tried = await page.evaluate(async () => {
      const results: string[] = [];
      for (const act of [
        () => fetch("http://127.0.0.1:9/"),
        () => new Promise((_, no) => Object.assign(new WebSocket("ws://127.0.0.1:9/"), { onerror: no })),
        () =>
          new Promise((yes, no) =>
            Object.assign(new Image(), { onload: yes, onerror: no, src: "http://127.0.0.1:9/x.png" }),
          ),
        () =>
          new Promise((yes, no) => Object.assign(new EventSource("http://127.0.0.1:9/"), { onopen: yes, onerror: no })),
      ]) {
        try {
          await act();
          results.push("reached");
        } catch {
          results.push("refused");
        }
      }
      const script = document.createElement("script");
      script.textContent = "document.documentElement.dataset.injected = 'yes'";
      document.head.append(script);
      results.push(document.documentElement.dataset.injected ?? "refused");
      return results;
    });
    assert.deepEqual(tried, Array(5).fill("refused"));
    faults.length = 0;
    asked.length = 0;
    await page.close();
  });

  test("names of a scenario are text, never markup", async () => {
    const page = await opened();
    const text = (await editor(page).inputValue()).replaceAll("[flow.bbr]", '[flow."<img src=x onerror=alert(1)>"]');
    await afterRun(page, () => editor(page).fill(text));
    assert.equal(await page.locator("main img").count(), 0);
    await page.close();
  });

  test("a million points zoom", async () => {
    const page = await opened();
    const text = (await editor(page).inputValue())
      .replace('duration = "15 s"', 'duration = "120 s"')
      .replace('rate = "20 Mbit/s"', 'rate = "100 Mbit/s"');
    await afterRun(page, () => editor(page).fill(text));
    const times = await page.evaluate(async () => {
      const made: number[] = [];
      const press = (name: string) => (document.querySelector(`button[aria-label="${name}"]`) as HTMLElement).click();
      for (let i = 0; i < 20; i++) {
        const began = performance.now();
        press(i % 2 ? "Zoom out" : "Zoom in");
        await new Promise((done) => queueMicrotask(() => done(0)));
        made.push(performance.now() - began);
        await new Promise(requestAnimationFrame);
      }
      return made.sort((a, b) => a - b);
    });
    console.log(`zoom of all charts: median ${times[10].toFixed(1)} ms, p95 ${times[18].toFixed(1)} ms`);
    await page.close();
  });

  for (const [width, scheme] of [
    [1280, "light"],
    [1280, "dark"],
    [400, "light"],
    [400, "dark"],
  ] as const) {
    test(`accessible at ${width} pixels, ${scheme}`, async () => {
      const page = await opened("", [width, 900], scheme);
      await page.evaluate(AXE);
      const found = await page.evaluate(async () => {
        const { violations } = await (
          window as unknown as { axe: { run(): Promise<{ violations: { id: string; nodes: { html: string }[] }[] }> } }
        ).axe.run();
        return violations.map(
          ({ id, nodes }) =>
            `${id}: ${nodes
              .map(({ html }) => html)
              .slice(0, 3)
              .join(" ")}`,
        );
      });
      assert.deepEqual(found, []);
      const overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      assert.ok(overflow <= 0, `the page is ${overflow} pixels too wide`);
      await page.close();
    });
  }

  test("accessible with all panels open", async () => {
    const page = await opened();
    await page.getByRole("button", { name: "Studies" }).click();
    await page.getByRole("button", { name: "Check claim R1", exact: true }).waitFor();
    await page.getByText("Explain the terms of this run").click();
    await page.getByText("Change the topology").click();
    await afterRun(page, () => page.getByRole("button", { name: "Add impairment" }).click());
    await page.getByText("Sweep a value").click();
    await page.getByLabel("seeds").fill("2");
    await page.getByLabel("seeds").press("Enter");
    await page.getByRole("button", { name: "Sweep", exact: true }).click();
    await page.getByRole("region", { name: "Goodput over link.bottleneck.rate" }).waitFor({ timeout: 120_000 });
    await page.getByRole("button", { name: "Pin run" }).click();
    await page.evaluate(AXE);
    const found = await page.evaluate(async () => {
      const axe = (window as unknown as { axe: { run(): Promise<{ violations: { id: string }[] }> } }).axe;
      return (await axe.run()).violations.map(({ id }) => id);
    });
    assert.deepEqual(found, []);
    await page.close();
  });

  test("nothing was asked of the network, and nothing failed", () => {
    assert.deepEqual(
      asked.filter((address) => !/^(file|blob|data):/.test(address)),
      [],
    );
    assert.deepEqual(faults, []);
  });
});
