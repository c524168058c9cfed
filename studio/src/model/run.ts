/** Runs of scenarios in the engine. */
import type { Engine } from "../engine/client.ts";
import type { Message, Table } from "../engine/message.ts";
import { milliseconds, octets } from "./quantity.ts";
import { limitOf, mostOf } from "./route.ts";
import { COLUMNS } from "./sequence.ts";
import { type FlowTable, type Resolved, type Summary, sameFlow } from "./summary.ts";
import { type Drawn, queuesOf, type Underway, underwayOf } from "./underway.ts";

/** A finished run. */
export interface Run {
  text: string;
  seed: number | undefined;
  message: Message;
  summary: Summary;
  resolved: Resolved;
  duration: number;
  /** The flow whose packets are recorded; undefined without a record. */
  focus: string | undefined;
  /** Time that the engine took, in milliseconds. */
  took: number;
}

/** A path as the page shows it. A run under way has no summary. */
export interface Shown {
  text: string;
  seed: number | undefined;
  resolved: Resolved;
  flows: string[];
  summary?: Summary;
}

/** Packets that a page records; a longer run has no chart of sequences. */
export const MOST_PACKETS = 1_500_000;
/** A packet on a link, in bits. */
const PACKET = 12_000;

/** Packets and repairs of a file for each packet that it has. */
const REPEATED = 3;

/** An upper estimate of the packets of a run: each bottleneck is full all the time, or a flow sends all its files. */
export function packetsOf(resolved: Resolved): number {
  const seconds = (milliseconds(resolved.duration) ?? 0) / 1e3;
  const most = new Map<string, number>();
  for (const [name, flow] of Object.entries(resolved.flow ?? {})) {
    const limit = limitOf(resolved, undefined, name);
    const key = limit ? limit.hop.name : name;
    const full = limit ? (mostOf(resolved, limit) * 1e6 * seconds) / PACKET : Number.POSITIVE_INFINITY;
    most.set(key, Math.min(full, (most.get(key) ?? 0) + Math.min(full, filePackets(flow))));
  }
  return [...most.values()].reduce((sum, one) => sum + one, 0);
}

/** Packets of a flow that ends by itself; infinite for another. */
function filePackets({ workload, count = 1 }: FlowTable): number {
  const size = workload?.kind === "file" ? octets(workload.size) : undefined;
  return size === undefined ? Number.POSITIVE_INFINITY : count * REPEATED * Math.ceil((8 * size) / PACKET);
}

interface Described {
  duration_s: number;
  flows: string[];
  links: string[];
  resolved_scenario: Resolved;
}

/** What a run is asked for. */
export interface Order {
  text: string;
  seed?: number;
  /** The flow in focus, if there is one of this name. */
  focus?: string;
  digest?: boolean;
  /** Leave out tables and packets. */
  isBrief?: boolean;
}

/** Makes a run. `take` receives its first part several times per second, if it takes longer. */
export async function run(
  engine: Engine,
  order: Order,
  progress?: (share: number) => void,
  take?: (underway: Underway) => void,
): Promise<Run> {
  const began = performance.now();
  const request = { scenario: order.text, seed: order.seed };
  const first = (await engine.ask({ request: "resolve", ...request })).head.scenario as unknown as Described;
  const packets = !order.isBrief && packetsOf(first.resolved_scenario) <= MOST_PACKETS;
  const tables = order.isBrief ? [] : ["samples", "link_samples", ...(packets ? ["retransmissions"] : [])];
  const message = await engine.ask(
    { request: "run", ...request, digest: order.digest ?? false, packets, tables },
    progress,
    undefined,
    take && ((part) => take(underwayOf(first, part))),
  );
  const described = message.head.scenario as unknown as Described;
  const summary = message.head.summary as unknown as Summary;
  const known = Object.keys(summary.flows);
  const focus = sameFlow(known, order.focus) ?? mostRetransmitting(summary);
  const made: Run = {
    text: order.text,
    seed: order.seed,
    message,
    summary,
    resolved: described.resolved_scenario,
    duration: described.duration_s,
    focus: packets ? focus : undefined,
    took: 0,
  };
  if (packets && focus !== undefined) await focusOn(engine, made, focus);
  made.took = performance.now() - began;
  return made;
}

/** The path of a finished run. */
export function shownOf({ text, seed, resolved, summary }: Run): Shown {
  return { text, seed, resolved, flows: Object.keys(summary.flows), summary };
}

/** A finished run as the charts draw it. */
export function drawnOf({ resolved, duration, message, summary }: Run): Drawn {
  return { resolved, duration, tables: message.tables, flows: Object.keys(summary.flows), queues: queuesOf(summary) };
}

/** A run that the command made with this machine's kernel. */
export function liveOf(
  text: string,
  seed: number | undefined,
  summary: Summary & { resolved_scenario: Resolved; duration_s: number },
  tables: Map<string, Table>,
): Run {
  return {
    text,
    seed,
    message: { head: {}, tables },
    summary,
    resolved: summary.resolved_scenario,
    duration: summary.duration_s,
    focus: undefined,
    took: summary.duration_s * 1e3,
  };
}

/** Reads the packets of a flow of the engine's last run. */
export async function focusOn(engine: Engine, made: Run, flow: string): Promise<void> {
  const more = await engine.ask({ request: "tables", tables: [{ flow, columns: COLUMNS }] });
  made.message.tables.set("packets", more.tables.get("packets")!);
  made.focus = flow;
}

function mostRetransmitting(summary: Summary): string | undefined {
  const again = (name: string) => summary.flows[name].retransmitted_packets ?? 0;
  return Object.keys(summary.flows).reduce<string | undefined>(
    (most, name) => (most === undefined || again(name) > again(most) ? name : most),
    undefined,
  );
}
