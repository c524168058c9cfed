import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { closeSync, existsSync, fstatSync, openSync, readFileSync, readSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { type Message, readMessage } from "../src/engine/message.ts";
import { ALONE, Instance, WITH_PART } from "../src/engine/module.ts";
import { unpacked } from "../src/lzma.ts";
import { chartsOf } from "../src/model/charts.ts";
import { fitted, type Report } from "../src/model/diagnosis.ts";
import { changes, gain, outcome } from "../src/model/help.ts";
import * as knobs from "../src/model/knobs.ts";
import { packetsOf } from "../src/model/run.ts";
import { COLUMNS, sequence } from "../src/model/sequence.ts";
import type { Resolved, Summary } from "../src/model/summary.ts";
import { lossLaw, termsOf } from "../src/model/terms.ts";
import { layout } from "../src/model/topology.ts";
import { partText, queuesOf, underwayOf } from "../src/model/underway.ts";
import { verdict } from "../src/model/verdict.ts";
import { countsOf, nearest, why } from "../src/model/why.ts";

const WASM = process.env.STUDIO_WASM ?? "";
const DIGESTS = process.env.STUDIO_DIGESTS ?? "";
const CAPTURES = process.env.STUDIO_CAPTURES ?? "";
const LARGE = process.env.STUDIO_LARGE ?? "";

const LOSSY = `title = "Loss"
duration = "10 s"

[link.path]
between = ["A", "B"]
rate = "20 Mbit/s"
delay = "20 ms"
queue = { kind = "drop-tail", limit = "1 bdp" }
impair = [{ kind = "bernoulli-loss", rate = 0.002 }]

[flow.main]
from = "A"
to = "B"
cc = "cubic"
`;

describe("the engine's module", async () => {
  const module = await WebAssembly.compile(readFileSync(WASM));
  const instance = await Instance.start(module, ALONE);
  const ask = (request: object): Message => readMessage(instance.ask(request));
  const ran = (scenario: string, more: object = {}) => {
    const { head, tables } = ask({ request: "run", scenario, ...more });
    assert.equal(head.problem, undefined, JSON.stringify(head.problem));
    const described = head.scenario as unknown as { resolved_scenario: Resolved };
    return { summary: head.summary as unknown as Summary, resolved: described.resolved_scenario, tables };
  };

  test("the packed engine is the module", () => {
    const whole = readFileSync(WASM);
    const python = process.env.STUDIO_PYTHON ?? "python3";
    const pack = (content: Uint8Array) =>
      execFileSync(python, [join(import.meta.dirname, "../../pack.py")], { input: content, maxBuffer: 2 ** 26 });
    for (const content of [
      whole,
      Buffer.alloc(0),
      Buffer.from("a"),
      Buffer.alloc(100_000, "ab"),
      randomBytes(70_000),
    ]) {
      const began = performance.now();
      const made = unpacked(new Uint8Array(pack(content)));
      assert.ok(Buffer.from(made.buffer).equals(content), `${content.length}`);
      if (content === whole) console.log(`packed and unpacked in ${(performance.now() - began).toFixed(0)} ms`);
    }
    const damaged = new Uint8Array(pack(Buffer.from("damaged ".repeat(99))));
    damaged.fill(0xff, 20);
    assert.doesNotThrow(() => {
      try {
        unpacked(damaged);
      } catch (error) {
        assert.match(String(error), /damaged/);
      }
    });
  });

  test("errors have places, carets and the nearest name", () => {
    const { head } = ask({ request: "run", scenario: LOSSY.replace("cubic", "cubik") });
    const problem = head.problem as unknown as {
      kind: string;
      text: string;
      errors: { line: number; column: number }[];
    };
    assert.equal(problem.kind, "scenario");
    assert.match(problem.text, /scenario.toml:14:6: .*cubik[\s\S]*\^\^\^[\s\S]*did you mean `cubic`/);
    assert.deepEqual([problem.errors[0].line, problem.errors[0].column], [14, 6]);
  });

  test("malformed requests are answered", () => {
    for (const request of [{}, { request: "x" }, { request: "run" }, { request: "tables", tables: ["flows"] }]) {
      const fresh = request.request === "tables" ? ask({ request: "run", scenario: "x" }) : undefined;
      assert.ok((fresh ?? ask(request)).head.problem, JSON.stringify(request));
    }
  });

  test("a scenario of a link reads no files and runs no programs", () => {
    for (const part of ['impair = [{ kind = "loss-list", file = "/etc/passwd" }]', "cc"]) {
      const text =
        part === "cc"
          ? LOSSY.replace('cc = "cubic"', 'cc = { kind = "bpf", name = "x" }')
          : LOSSY.replace(/impair = .*/, part);
      const { head } = ask({ request: "run", scenario: text });
      assert.ok(head.problem, part);
    }
  });

  test("the verdict names the rate, the limit and its cause", () => {
    const { summary, resolved } = ran(LOSSY);
    assert.match(
      verdict(summary, resolved),
      /^[\d.]+ of 20 Mbit\/s: the congestion window, cut \d+ times by random loss\.$/,
    );
    const full = ran(LOSSY.replace(/impair = .*\n/, ""));
    assert.match(
      verdict(full.summary, full.resolved),
      /of 20 Mbit\/s: link path is full, and its queue adds up to [\d.]+ ms/,
    );
    const jitter = ran(
      LOSSY.replace(/impair = .*/, 'impair = [{ kind = "jitter", mean = "5 ms", reorder = true }]').replace(
        'cc = "cubic"',
        'cc = "reno"\nstack = "rfc"',
      ),
    );
    assert.match(
      verdict(jitter.summary, jitter.resolved),
      /cut [\d,]+ times by reordering; [\d,]+ of [\d,]+ retransmissions spurious/,
    );
    const two = ran(`${LOSSY.replace(/impair = .*\n/, "")}\n[flow.second]\nfrom = "A"\nto = "B"\ncc = "bbr"\n`);
    assert.match(
      verdict(two.summary, two.resolved),
      /^[\d.]+ of 20 Mbit\/s \(main [\d.]+, second [\d.]+\): link path is full/,
    );
  });

  test("the verdict is of the direction of the data, and of all links of a gateway", () => {
    const both = LOSSY.replace(/impair = .*\n/, "").replace(
      'rate = "20 Mbit/s"',
      'forward.rate = "20 Mbit/s"\nreverse.rate = "2 Mbit/s"',
    );
    const one = ran(both);
    assert.match(verdict(one.summary, one.resolved), /^[\d.]+ of 20 Mbit\/s/);
    const two = ran(`${both}\n[flow.back]\nfrom = "B"\nto = "A"\n`);
    assert.match(
      verdict(two.summary, two.resolved),
      /^main [\d.]+ of 20, back [\d.]+ of 2 Mbit\/s; back: link path is full/,
    );
    const link = (name: string, rate: number) =>
      `[link.${name}]\nbetween = ["A", "B"]\nrate = "${rate} Mbit/s"\ndelay = "5 ms"\n`;
    const gateway = `duration = "3 s"\n${link("one", 10)}${link("two", 5)}[gateway.pair]\nbetween = ["A", "B"]\nroutes = ["one", "two"]\nkind = "tunnel"\n[flow.main]\nfrom = "A"\nto = "B"\n`;
    const spread = ran(gateway);
    assert.match(verdict(spread.summary, spread.resolved), /^[\d.]+ of 15 Mbit\/s/);
    assert.ok(packetsOf(spread.resolved) < 1e5);
    const event = ran(`${both}\n[[at]]\ntime = "1 s"\nset = { "link.path.forward.rate" = "8 Mbit/s" }\n`);
    assert.match(verdict(event.summary, event.resolved), /^[\d.]+ Mbit\/s/);
  });

  test("the packets of a file bound the estimate", () => {
    const file = LOSSY.replace(/rate = "20 Mbit\/s"/, 'rate = "100 Gbit/s"').replace(
      'cc = "cubic"',
      'cc = "cubic"\nworkload = { kind = "file", size = "100 kB" }',
    );
    assert.ok(packetsOf(ran(file).resolved) < 1000);
  });

  test("controls of a direction leave the other, and keep keys that they do not show", () => {
    const text = LOSSY.replace('rate = "20 Mbit/s"', 'forward.rate = "20 Mbit/s"\nreverse.rate = "2 Mbit/s"').replace(
      /impair = .*/,
      'impair = [{ kind = "jitter", mean = "5 ms", distribution = "normal" }]',
    );
    const { resolved } = ran(text);
    let made = knobs.setRate(text, resolved, { link: "path", way: "reverse" }, 3);
    made = knobs.setReordering(made, resolved, { link: "path", way: "forward" }, 2);
    const after = ran(made).resolved.link!.path;
    assert.deepEqual([after.forward?.rate, after.reverse?.rate], ["20 Mbit/s", "3 Mbit/s"]);
    const jitter = after.forward?.impair?.find(({ kind }) => kind === "jitter");
    assert.deepEqual([jitter?.mean, jitter?.distribution, jitter?.reorder], ["2 ms", "normal", true]);
    const burst = ran(
      LOSSY.replace(/impair = .*/, 'impair = [{ kind = "gilbert-elliott", p = 0.01, r = 0.5 }]'),
    ).resolved;
    assert.equal(knobs.otherLossOf(burst.link!.path.forward), "gilbert-elliott");
  });

  test("controls change the text, and the engine reads it", () => {
    const { resolved } = ran(LOSSY);
    const at = { link: "path", way: "forward" } as const;
    let text = knobs.setRate(LOSSY, resolved, at, 5);
    text = knobs.setDelay(text, resolved, at, 7);
    text = knobs.setLoss(text, resolved, at, 0);
    text = knobs.setReordering(text, resolved, at, 2);
    text = knobs.setQueueKind(text, resolved, at, "fq-codel");
    text = knobs.setQueueLimit(text, resolved, at, 4);
    text = knobs.setControl(text, "main", "bbr");
    text = knobs.setCount(text, "main", 3);
    const after = ran(text).resolved;
    const way = knobs.directionOf(after, at)!;
    assert.deepEqual([way.rate, way.delay, way.queue?.kind], ["5 Mbit/s", "7 ms", "fq-codel"]);
    assert.equal(knobs.lossOf(way), 0);
    assert.equal(knobs.reorderingOf(way), 2);
    assert.equal(knobs.bdpOf(text, after, at), 4);
    assert.equal(after.flow!.main.cc!.kind, "bbr");
    assert.equal(after.flow!.main.count, 3);
  });

  test("time and sequence: verdicts of retransmissions, the receiver, and the reason of one", () => {
    const { summary, tables } = ran(LOSSY, { packets: true, tables: [{ flow: "main", columns: COLUMNS }] });
    const packets = tables.get("packets")!;
    const set = sequence(packets);
    const flow = summary.flows.main;
    assert.equal(set.needed.x.length + set.spurious.x.length + set.undecided.x.length, flow.retransmitted_packets);
    assert.equal(set.spurious.x.length, flow.spurious_retransmissions);
    assert.ok(set.lost.x.length > 0 && set.held.x.length > 0);
    const last = set.expected.y[set.expected.y.length - 1] * 1e6;
    assert.ok(Math.abs(last - 1 - (flow as unknown as { delivered_bytes: number }).delivered_bytes) < 1e6);
    const again = [...set.rows].filter((row) => packets.flags("retransmission")[row] === 1);
    const counts = /^([\d,]+) retransmissions: (.*); (none|[\d,]+) spurious$/.exec(countsOf(packets, again));
    assert.equal(Number(counts?.[1].replaceAll(",", "")), flow.retransmitted_packets);
    const byCause = counts?.[2].split(", ").map((words) => Number.parseInt(words, 10)) ?? [];
    assert.equal(
      byCause.reduce((sum, one) => sum + one, 0),
      flow.retransmitted_packets,
    );
    assert.deepEqual(
      byCause,
      [...byCause].sort((a, b) => b - a),
    );
    assert.equal(counts?.[3] === "none" ? 0 : Number(counts?.[3]), flow.spurious_retransmissions);
    const row = nearest(packets, set.rows, set.needed.x[0], set.needed.y[0], { time: 0.01, value: 0.01 });
    assert.match(
      why(packets, set.rows, row),
      /^Octet [\d,]+ was retransmitted at [\d.]+ s by RACK: the previous transmission, sent [\d.]+ ms before, was (lost on link path \(bernoulli-loss\)|dropped by the queue of link path), so the retransmission was needed\.$/,
    );
  });

  test("samples have BBR's pacing rate and bandwidth estimate", () => {
    const last = (scenario: string, column: string) => {
      const values = ran(scenario, { tables: ["samples"] })
        .tables.get("samples")!
        .numbers(column);
      return values[values.length - 1];
    };
    const text = LOSSY.replace(/impair = .*\n/, "");
    for (const control of ["bbr", "bbr3"]) {
      const own = text.replace("cubic", control);
      // In Mbit/s: the link's rate without headers, and the gain of the phase.
      const estimate = last(own, "bandwidth_estimate_mbit_s");
      assert.ok(estimate > 17 && estimate < 21, `${control} ${estimate}`);
      const rate = last(own, "pacing_rate_mbit_s") / estimate;
      assert.ok(rate > 0.4 && rate < 1.4, `${control} ${rate}`);
    }
    assert.ok(Number.isNaN(last(text, "bandwidth_estimate_mbit_s")));
  });

  test("a run under way shows the first rows of its samples, and has the same result", async () => {
    const parts: Message[] = [];
    const watching = await Instance.start(module, {
      ...ALONE,
      progress: () => WITH_PART,
      part: (octets) => parts.push(readMessage(octets)),
    });
    const tables = ["samples", "link_samples", { flow: "main", columns: COLUMNS }];
    const request = { request: "run", scenario: LOSSY, digest: true, packets: true, tables };
    const whole = readMessage(watching.ask(request));
    const plain = ask(request);
    assert.deepEqual(whole.head, plain.head);
    assert.ok(parts.length > 150, `${parts.length} parts`);
    for (const { head, tables: found } of [parts[0], parts[99], parts[parts.length - 1]]) {
      assert.deepEqual([...found.keys()], ["samples", "link_samples"]);
      for (const [name, table] of found) {
        const last = whole.tables.get(name)!;
        assert.ok(table.rows > 0 && table.rows < last.rows);
        for (const column of ["time_s", name === "samples" ? "cwnd_packets" : "queue_packets"])
          assert.deepEqual(table.numbers(column), last.numbers(column).slice(0, table.rows), `${name} ${column}`);
        assert.equal(table.numbers("time_s")[table.rows - 1], head.until_s);
      }
    }
    const described = plain.head.scenario as unknown as Parameters<typeof underwayOf>[0];
    const drawn = underwayOf(described, parts[99]);
    assert.equal(partText(drawn), "5 of 10 s");
    assert.deepEqual(
      chartsOf(drawn, "").map(({ name }) => name),
      ["goodput", "window", "queue", "rtt"],
    );
    assert.ok(drawn.queues.some(({ most }) => most > 0));
    const seen = parts.length;
    ask(request);
    assert.equal(parts.length, seen, "without a wish for parts there are none");
  });

  const UDP = LOSSY.replace(/impair = .*\n/, "").replace(
    'cc = "cubic"',
    'protocol = "udp"\nworkload = { kind = "paced", rate = "8 Mbit/s" }',
  );
  const drawn = (scenario: string, focus: string, duration = 10) => {
    const tables = ["samples", "link_samples", { flow: focus, columns: COLUMNS }];
    const { summary, resolved, tables: made } = ran(scenario, { packets: true, tables });
    const flows = Object.keys(summary.flows);
    return chartsOf({ resolved, duration, tables: made, flows, queues: queuesOf(summary) }, focus);
  };

  test("flows of UDP alone have charts, by the queue's samples and the packets", () => {
    const charts = drawn(UDP, "main");
    assert.deepEqual(
      charts.map(({ name }) => name),
      ["goodput", "queue", "sequence"],
    );
    const [goodput, , sequence] = charts;
    const { y } = goodput.series[0];
    const rest = y.slice(2);
    assert.ok(
      rest.every((rate) => rate > 7.5 && rate < 8.5),
      `${rest}`,
    );
    assert.deepEqual(
      sequence.series.map(({ label }) => label),
      ["sent"],
    );
    assert.equal(goodput.about, undefined);
    // Another flow has a line if it has samples.
    const mixed = `${UDP.replace("8 Mbit", "2 Mbit")}\n[flow.other]\nfrom = "A"\nto = "B"\n`;
    assert.deepEqual(
      drawn(mixed, "other")[0].series.map(({ label }) => label),
      ["other"],
    );
    assert.match(drawn(mixed, "other")[0].about ?? "", /UDP/);
    assert.equal(drawn(mixed, "main")[0].series.length, 2);
  });

  const lossRatio = (text: string) => {
    const { summary, resolved } = ran(text);
    const law = lossLaw(resolved, summary, "main");
    const ratio = (summary.flows.main.goodput_mbit_s ?? 0) / (law?.mbit_s ?? 0);
    console.log(`goodput / loss law: ${ratio.toFixed(3)}`);
    return { isReno: law?.isReno, ratio };
  };
  const scenario = readFileSync(join(import.meta.dirname, "../../../scenarios/live/lossy.toml"), "utf8");
  const minute = scenario.replace('"20 s"', '"60 s"');

  test("the square-root law is within a quarter of long runs", () => {
    for (const text of [minute, minute.replace('"reno"', '"cubic"').replace("0.005", "0.01")]) {
      const { isReno, ratio } = lossRatio(text);
      assert.equal(isReno, true);
      assert.ok(ratio > 0.75 && ratio < 1.25, `${ratio}`);
    }
  });

  test("CUBIC's loss law bounds a long run from below", () => {
    const distant = minute.replace('delay = "20 ms"', 'delay = "150 ms"').replace("0.005", "0.0005");
    const { isReno, ratio } = lossRatio(distant.replace('"reno"', '"cubic"').replace('"60 s"', '"600 s"'));
    assert.equal(isReno, false);
    assert.ok(ratio > 1, `${ratio}`);
  });

  test("the loss law names a flow that loss does not limit", () => {
    const { summary, resolved } = ran(LOSSY.replace("0.002", "0.00001"));
    assert.match(termsOf(resolved, summary, "main")[0].words, /this loss rate does not limit main\.$/);
    const bbr = ran(LOSSY.replace('"cubic"', '"bbr"'));
    assert.equal(lossLaw(bbr.resolved, bbr.summary, "main"), undefined);
    const names = termsOf(bbr.resolved, bbr.summary, "main").map(({ name }) => name);
    for (const name of ["bbr", "drop-tail", "Pacing rate, bandwidth estimate"]) assert.ok(names.includes(name), name);
  });

  test("queues of acknowledgments are changed to help a flow", () => {
    const upload = readFileSync(join(import.meta.dirname, "../../../scenarios/paths/upload.toml"), "utf8");
    const base = ran(upload);
    const bloat = termsOf(base.resolved, base.summary, "requests").find(({ name }) => name === "Bufferbloat");
    assert.match(bloat?.words ?? "", /link access from home to network adds up to \d+ ms/);
    const all = changes(upload, base.resolved, base.summary, "requests");
    const found = all.find(({ words }) => words === "fq-codel as the queue of access from home to network");
    assert.ok(found, all.map(({ words }) => words).join("; "));
    const better = ran(found.text);
    assert.ok(gain(outcome([base], "requests"), outcome([better], "requests"), "requests") > 2);
    assert.match(verdict(better.summary, better.resolved), /cut \d+ times by drops of fq-codel;/);
    assert.ok(termsOf(better.resolved, better.summary, "requests").every(({ name }) => name !== "Bufferbloat"));
    assert.equal(new Set(all.map(({ text }) => text)).size, all.length);
  });

  test("a chart says that samples miss the longest queue, and why goodput exceeds the link's rate", () => {
    const lossy = readFileSync(join(import.meta.dirname, "../../../scenarios/live/lossy.toml"), "utf8");
    const [, , queue] = drawn(lossy, "main", 20);
    assert.match(queue.about ?? "", /miss short peaks: up to \d+ packets \(path forward\)\.$/);
    // A full queue hides the peak of one packet in the other direction.
    const bloated = drawn(lossy.replace('"reno"', '"bbr"'), "main", 20).find(({ name }) => name === "queue");
    assert.ok(bloated?.series.some(({ y }) => Math.max(...y) > 100));
    assert.equal(bloated?.about, undefined);
    const full = LOSSY.replace(/impair = .*\n/, "");
    const one = drawn(full, "main");
    assert.equal(one.find(({ name }) => name === "queue")?.about, undefined);
    let explained = 0;
    const above = /exceed the link's rate/;
    const over = ({ series }: { series: { y: Float64Array }[] }) => Math.max(...series.flatMap(({ y }) => [...y])) > 21;
    for (const scenario of [lossy, full, LOSSY, full.replace("20 ms", "100 ms")]) {
      const [goodput] = drawn(scenario.replace("100 Mbit/s", "20 Mbit/s"), "main");
      assert.equal(above.test(goodput.about ?? ""), over(goodput), scenario);
      if (over(goodput)) explained++;
    }
    assert.ok(explained > 0);
    // Without a fixed rate there is no sentence.
    const changed = `${LOSSY}\n[[at]]\ntime = "5 s"\nset = { "link.path.rate" = "60 Mbit/s" }\n`;
    assert.doesNotMatch(drawn(changed, "main")[0].about ?? "", above);
  });

  test("the estimate of packets bounds a run", () => {
    const { summary, resolved } = ran(LOSSY.replace(/impair = .*\n/, ""));
    const sent = summary.flows.main.sent_packets;
    assert.ok(packetsOf(resolved) >= sent && packetsOf(resolved) < 1.5 * sent, `${packetsOf(resolved)} of ${sent}`);
  });

  test("a layout has a place for each node and link", () => {
    const { resolved } = ran(LOSSY);
    const made = layout(resolved);
    assert.deepEqual(
      made.nodes.map(({ name }) => name),
      ["A", "B"],
    );
    assert.ok(
      made.links.every(
        ({ x, y, width, height }) =>
          x - width / 2 > 0 && y - height / 2 >= 0 && x + width / 2 < made.width && y + height / 2 <= made.height + 1,
      ),
    );
  });

  test("digests equal the native engine's", { skip: DIGESTS ? false : "no native digests" }, () => {
    const all: { name: string; scenario: string; digest: string }[] = JSON.parse(readFileSync(DIGESTS, "utf8"));
    assert.ok(all.length >= 40);
    for (const { name, scenario, digest } of all) {
      const { head } = ask({ request: "run", scenario, digest: true });
      assert.equal(
        (head.summary as { digest?: string } | undefined)?.digest,
        digest,
        `${name}: ${JSON.stringify(head.problem ?? "")}`,
      );
    }
    console.log(`${all.length} digests are equal`);
  });

  test("two flows over 10 s at 20 Mbit/s", () => {
    const text = `${LOSSY.replace(/impair = .*\n/, "")}\n[flow.second]\nfrom = "A"\nto = "B"\ncc = "bbr"\n`;
    const times: number[] = [];
    for (let i = 0; i < 20; i++) {
      const began = performance.now();
      ran(text, { packets: true, tables: ["samples", "link_samples", { flow: "main", columns: COLUMNS }] });
      times.push(performance.now() - began);
    }
    times.sort((a, b) => a - b);
    console.log(`run with tables: median ${times[10].toFixed(1)} ms, p95 ${times[18].toFixed(1)} ms`);
  });

  test(
    "a capture is diagnosed as by the command",
    { skip: CAPTURES ? false : "no reports of the command" },
    async () => {
      const all: { file: string; report: Report; fitted: { [id: string]: string } }[] = JSON.parse(
        readFileSync(CAPTURES, "utf8"),
      );
      for (const { file, report, fitted: digests } of all) {
        assert.ok(existsSync(file));
        const octets = readFileSync(file);
        const reader = await Instance.start(module, {
          progress: () => 0,
          captureLength: () => octets.length,
          readCapture: (at, length) => octets.subarray(at, at + length),
        });
        const { head } = readMessage(reader.ask({ request: "diagnose", name: file }));
        assert.deepEqual(head.report, report, file);
        for (const connection of report.connections) {
          const scenario = fitted(connection);
          const digest = digests[connection.id];
          assert.equal(scenario !== undefined, digest !== undefined, `${file}: ${connection.id}`);
          if (!scenario) continue;
          const made = ask({ request: "run", scenario, digest: true }).head;
          assert.equal(
            (made.summary as { digest?: string } | undefined)?.digest,
            digest,
            `${file}: ${JSON.stringify(made.problem ?? "")}\n${scenario}`,
          );
        }
      }
    },
  );

  test("a capture of 100 MB is diagnosed in bounded memory", { skip: LARGE ? false : "no capture" }, async () => {
    const file = openSync(LARGE, "r");
    const { size } = fstatSync(file);
    assert.ok(size > 100e6, `${size}`);
    const room = Buffer.alloc(2 ** 20);
    const reader = await Instance.start(module, {
      progress: () => 0,
      captureLength: () => size,
      readCapture: (at, length) => room.subarray(0, readSync(file, room, 0, Math.min(length, room.length), at)),
    });
    const { head } = readMessage(reader.ask({ request: "diagnose", name: "large.pcapng" }));
    const report = head.report as unknown as Report;
    assert.equal(report.connections.length, 1);
    const diagnosed = reader.memory;
    const connections = [report.connections[0].id];
    const traced = readMessage(reader.ask({ request: "diagnose", name: "large.pcapng", connections }));
    assert.equal((traced.head.traces as unknown[]).length, 1);
    console.log(
      `${(size / 1e6).toFixed(0)} MB: diagnosed in ${diagnosed / 2 ** 20} MiB, traced in ${reader.memory / 2 ** 20} MiB`,
    );
    assert.ok(diagnosed < 48 * 2 ** 20 && reader.memory < 96 * 2 ** 20);
    closeSync(file);
  });

  test("a file that is no capture gives one message", async () => {
    const octets = Buffer.from("this is no capture at all, but a text of some length");
    const reader = await Instance.start(module, {
      progress: () => 0,
      captureLength: () => octets.length,
      readCapture: (at, length) => octets.subarray(at, at + length),
    });
    const { head } = readMessage(reader.ask({ request: "diagnose", name: "x" }));
    assert.match((head.problem as { text: string }).text, /\S/);
  });
});
