/** Changes of a scenario that may help, and the sentence on the best one, with the harm to others. */
import { set } from "../toml/edit.ts";
import { setControl, setQueueKind } from "./knobs.ts";
import { figure } from "./quantity.ts";
import { bottleneck, returnQueue } from "./route.ts";
import type { LinkWay, Resolved, Summary } from "./summary.ts";

/** A change of a scenario. */
export interface Change {
  /** The change as a clause: "BBR for flow main". */
  words: string;
  text: string;
}

/** Means of a scenario over its seeds. */
export interface Outcome {
  goodput: { [flow: string]: number };
  /** 95th percentile of the queue delay in ms: at the bottleneck, or on the route of the acknowledgments if that is longer. */
  delay: number;
  /** Response or completion time in seconds of flows that have one. */
  time: { [flow: string]: number };
}

const CONTROLS = ["cubic", "bbr", "bbr3"];
const REMEDIES = ["rr-tcp", "tcp-pr"];
/** A change of less is no help, and no harm. */
const LEAST = 0.05;
const LEAST_MS = 2;

/** The changes to try, by the limit of the flow. */
export function changes(text: string, resolved: Resolved, summary: Summary, flow: string): Change[] {
  const table = flow.replace(/\/\d+$/, "");
  const one = summary.flows[flow];
  const made: Change[] = [];
  const now = resolved.flow?.[table]?.cc?.kind;
  if (!now) return made;
  for (const kind of CONTROLS) {
    if (kind !== now) made.push({ words: `${kind} for ${table}`, text: setControl(text, table, kind) });
  }
  for (const { at, words } of queuesOf(resolved, summary, flow)) {
    const queue = (resolved.link?.[at.link]?.[at.way] ?? resolved.link?.[at.link])?.queue?.kind;
    for (const kind of queue ? ["fq-codel", "codel"] : []) {
      const changed = setQueueKind(text, resolved, at, kind);
      if (kind !== queue && made.every((one) => one.text !== changed))
        made.push({ words: `${kind} as the queue of ${words}`, text: changed });
    }
  }
  if ((one?.spurious_retransmissions ?? 0) > 0 && resolved.flow?.[table]?.transport?.recovery !== "rack") {
    const transport = ["flow", table, "transport"];
    made.push({ words: `RACK for ${table}`, text: set(text, [...transport, "recovery"], '"rack"') });
    for (const kind of REMEDIES) {
      made.push({
        words: `the remedy ${kind} for ${table}`,
        text: set(text, [...transport, "reordering"], `"${kind}"`),
      });
    }
  }
  if ((one?.rwnd_limited_share ?? 0) > LEAST) {
    made.push({
      words: `a receive window of 64 MiB for ${table}`,
      text: set(text, ["flow", table, "transport", "receive_window"], '"64 MiB"'),
    });
  }
  if ((one?.sndbuf_limited_share ?? 0) > LEAST) {
    made.push({
      words: `a send buffer of 64 MiB for ${table}`,
      text: set(text, ["flow", table, "transport", "send_buffer"], '"64 MiB"'),
    });
  }
  return made;
}

/** The queues to change for a flow: that of its bottleneck, and a full one that its acknowledgments wait in. */
function queuesOf(resolved: Resolved, summary: Summary, flow: string): { at: LinkWay; words: string }[] {
  const made: { at: LinkWay; words: string }[] = [];
  const at = bottleneck(resolved, summary, flow);
  if (at && resolved.link?.[at.link]) made.push({ at, words: at.link });
  const back = returnQueue(resolved, summary, flow);
  const table = back && resolved.link?.[back.at.link];
  if (back && table && back.delay >= LEAST_MS) {
    const [from, to] = back.at.way === "forward" ? table.between : [...table.between].reverse();
    made.push({ at: back.at, words: `${back.at.link} from ${from} to ${to}` });
  }
  return made;
}

/** The outcome of runs of one scenario. */
export function outcome(runs: { summary: Summary; resolved: Resolved }[], flow: string): Outcome {
  const mean = (values: number[]) => values.reduce((sum, one) => sum + one, 0) / Math.max(values.length, 1);
  const { summary: first } = runs[0];
  const made: Outcome = { goodput: {}, delay: 0, time: {} };
  for (const name of Object.keys(first.flows)) {
    made.goodput[name] = mean(runs.map(({ summary }) => summary.flows[name]?.goodput_mbit_s ?? 0));
    const times = runs.map(({ summary: { flows } }) => {
      const one = flows[name];
      const ms = one?.exchanges?.mean_response_time_ms;
      return ms ? ms / 1e3 : (one?.transfers?.mean_completion_time_s ?? one?.flow_completion_time_s ?? null);
    });
    if (times.every((time) => time !== null)) made.time[name] = mean(times as number[]);
  }
  made.delay = mean(
    runs.map(({ summary, resolved }) => {
      const at = bottleneck(resolved, summary, flow);
      const ahead = at ? (summary.links[at.link][at.way].p95_queue_delay_ms ?? 0) : 0;
      return Math.max(ahead, returnQueue(resolved, summary, flow)?.delay ?? 0);
    }),
  );
  return made;
}

/** How much better `to` is than `from` for a flow: a ratio above 1 is better. */
export function gain(from: Outcome, to: Outcome, flow: string): number {
  if (from.time[flow] && to.time[flow]) return from.time[flow] / to.time[flow];
  const rate = to.goodput[flow] / Math.max(from.goodput[flow], 1e-9);
  if (rate >= 1 + LEAST || rate < 1 - LEAST) return rate;
  // Equal rates: the shorter queue is better.
  return from.delay - to.delay >= LEAST_MS ? 1 + LEAST + (from.delay - to.delay) / 1e4 : 1;
}

/** Two times in seconds, or in milliseconds if both are shorter than one second. */
function timesText(to: number, from: number): string {
  const isShort = to < 1 && from < 1;
  const [factor, unit] = isShort ? [1e3, "ms"] : [1, "s"];
  return `${figure(to * factor)} instead of ${figure(from * factor)} ${unit}`;
}

/** What a change does, in one sentence: gain, harm to other flows, and the delay of the queue. */
export function sentence(change: Change, from: Outcome, to: Outcome, flow: string): string {
  const parts: string[] = [];
  if (from.time[flow] && to.time[flow]) parts.push(`${flow} takes ${timesText(to.time[flow], from.time[flow])}`);
  else parts.push(`${flow} gets ${figure(to.goodput[flow])} instead of ${figure(from.goodput[flow])} Mbit/s`);
  const harmed = Object.keys(from.goodput).filter((name) => {
    const slower = from.time[name] && to.time[name] ? to.time[name] > from.time[name] * (1 + LEAST) : false;
    return name !== flow && (slower || to.goodput[name] < from.goodput[name] * (1 - LEAST));
  });
  if (harmed.length > 2) {
    const lost = harmed.reduce((sum, name) => sum + from.goodput[name] - to.goodput[name], 0);
    parts.push(`it takes ${figure(lost)} Mbit/s from ${harmed.length} other flows`);
  } else {
    for (const name of harmed) {
      if (from.time[name] && to.time[name])
        parts.push(`${name} waits ${figure(to.time[name] * 1e3)} instead of ${figure(from.time[name] * 1e3)} ms`);
      else parts.push(`${name} falls from ${figure(from.goodput[name])} to ${figure(to.goodput[name])} Mbit/s`);
    }
  }
  if (Math.abs(to.delay - from.delay) >= LEAST_MS) {
    parts.push(
      `the queue's delay (95th percentile) ${to.delay > from.delay ? "rises" : "falls"} from ${figure(from.delay)} to ${figure(to.delay)} ms`,
    );
  }
  return `With ${change.words}, ${parts.join("; ")}.`;
}

/** The flow that a change should help: one that waits for responses, or else the slowest with a window. */
export function neediest(summary: Summary): string | undefined {
  const names = Object.keys(summary.flows).filter((name) => summary.flows[name].cwnd_limited_share !== null);
  const rate = (name: string) => summary.flows[name].goodput_mbit_s ?? 0;
  const timed = names.find((name) => summary.flows[name].exchanges);
  return timed ?? names.reduce<string | undefined>((a, b) => (a === undefined || rate(b) < rate(a) ? b : a), undefined);
}

export const helps = (ratio: number): boolean => ratio >= 1 + LEAST;
