/** The verdict on a run, in one sentence: the rate of each flow, and its limit with the cause. */
import { figure, percent } from "./quantity.ts";
import { bottleneck, capacityOf, type FlowSummary, type Resolved, type Summary, tableOf } from "./summary.ts";

/** A link counts as full from this utilization on. */
const FULL = 0.95;
/** Most flows that the sentence names. */
const MOST_NAMED = 3;

const plural = (count: number, noun: string): string =>
  `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;

function times(count: number): string {
  return count === 1 ? "once" : count === 2 ? "twice" : `${count.toLocaleString("en")} times`;
}

/** Sums of a run. */
interface Sums {
  dropped: number;
  lost: number;
  reordered: number;
}

function sums(summary: Summary): Sums {
  const made = { dropped: 0, lost: 0, reordered: 0 };
  for (const ways of Object.values(summary.links)) {
    for (const one of [ways.forward, ways.reverse]) {
      made.dropped += one.dropped_packets;
      made.lost += one.lost_packets;
      made.reordered += one.reordered_packets;
    }
  }
  return made;
}

/** The cause of the reductions of a window. */
function cause(flow: FlowSummary, { dropped, lost, reordered }: Sums): string {
  const spurious = flow.spurious_retransmissions ?? 0;
  const again = flow.retransmitted_packets ?? 0;
  if (spurious > again / 2 && reordered > 0) return "reordering";
  if (lost > 2 * dropped) return "random loss";
  if (dropped > 2 * lost) return "drops of the full queue";
  return lost + dropped > 0 ? "random loss and drops of the queue" : "the stack";
}

/** The limit of a flow, with its cause. */
function limit(flow: FlowSummary, resolved: Resolved, summary: Summary, name: string): string {
  if (flow.cwnd_limited_share === null) return "";
  const at = bottleneck(resolved, summary, name);
  const link = at && summary.links[at.link][at.way];
  const cuts = (flow.fast_recoveries ?? 0) + (flow.timeouts ?? 0);
  const waits = link?.p95_queue_delay_ms ?? 0;
  const shares: [number, string][] = [
    [flow.cwnd_limited_share, "the window"],
    [flow.rwnd_limited_share ?? 0, "the receive window"],
    [flow.sndbuf_limited_share ?? 0, "the send buffer"],
    [flow.application_limited_share ?? 0, "the application"],
  ];
  if (at && (link?.utilization ?? 0) >= FULL) {
    return `link ${at.link} is full${waits >= 1 ? `, and its queue adds up to ${figure(waits)} ms` : ""}`;
  }
  const rest = 1 - shares.reduce((sum, [share]) => sum + share, 0);
  const [share, words] = [...shares, [rest, "pacing, recovery and set-up"] as [number, string]].reduce((a, b) =>
    b[0] > a[0] ? b : a,
  );
  if (words === "the window" && cuts > 0) return `the window, cut ${times(cuts)} by ${cause(flow, sums(summary))}`;
  if (words === "the window") return "the window, which still grows";
  return `${words}, ${percent(share)} of the time`;
}

/** The verdict on one flow that ended, or serves requests. */
function served(flow: FlowSummary): string {
  if (flow.exchanges?.mean_response_time_ms) {
    const { completed, mean_response_time_ms, p95_response_time_ms } = flow.exchanges;
    return `${plural(completed, "response")} of ${figure(mean_response_time_ms)} ms, 95th percentile ${figure(p95_response_time_ms)} ms`;
  }
  if (flow.transfers?.mean_completion_time_s) {
    return `${plural(flow.transfers.completed, "transfer")} of ${figure(flow.transfers.mean_completion_time_s)} s on average`;
  }
  if (flow.flow_completion_time_s !== null) return `done in ${figure(flow.flow_completion_time_s)} s`;
  return "";
}

/** Spurious retransmissions, if a tenth of all is spurious. */
function spurious(flows: FlowSummary[]): string {
  const again = flows.reduce((sum, flow) => sum + (flow.retransmitted_packets ?? 0), 0);
  const needless = flows.reduce((sum, flow) => sum + (flow.spurious_retransmissions ?? 0), 0);
  if (needless < 1 || needless < again / 10) return "";
  return `; ${needless.toLocaleString("en")} of ${plural(again, "retransmission")} spurious`;
}

/** The sentence. */
export function verdict(summary: Summary, resolved: Resolved): string {
  const named = Object.entries(summary.flows);
  if (!named.length) return "No flow sends data in this scenario.";
  const links = { ...resolved.link, ...resolved.group };
  const rate = (flow: FlowSummary) => flow.goodput_mbit_s ?? 0;
  if (named.length === 1) {
    const [name, flow] = named[0];
    const at = bottleneck(resolved, summary, name);
    const capacity = at ? capacityOf(links[at.link], at.way) : Number.POSITIVE_INFINITY;
    const result = served(flow);
    const of = Number.isFinite(capacity) ? ` of ${figure(capacity)}` : "";
    const rates = `${figure(rate(flow))}${of} Mbit/s`;
    const reason = limit(flow, resolved, summary, name);
    const first = result ? `${capital(result)} at ${rates}` : rates;
    return `${first}${reason ? `: ${reason}` : ""}${spurious([flow])}.`;
  }
  const total = named.reduce((sum, [, flow]) => sum + rate(flow), 0);
  const at = bottleneck(resolved, summary);
  const capacity = at ? capacityOf(links[at.link], at.way) : Number.POSITIVE_INFINITY;
  const of = Number.isFinite(capacity) ? ` of ${figure(capacity)}` : "";
  const shares =
    named.length <= MOST_NAMED
      ? named.map(([name, flow]) => `${name} ${figure(rate(flow))}`).join(", ")
      : `${named.length.toLocaleString("en")} flows of ${range(named.map(([, flow]) => rate(flow)))}`;
  const [slowest, worst] = named.reduce((a, b) => (rate(b[1]) < rate(a[1]) ? b : a));
  const reason = limit(worst, resolved, summary, slowest);
  const isFull = reason.startsWith("link ");
  const last = reason ? (isFull ? `: ${reason}` : `; ${slowest} is limited by ${reason}`) : "";
  return `${figure(total)}${of} Mbit/s (${shares})${last}${spurious(named.map(([, flow]) => flow))}.`;
}

function range(rates: number[]): string {
  const low = figure(Math.min(...rates));
  const high = figure(Math.max(...rates));
  return low === high ? `${low} each` : `${low} to ${high}`;
}

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** Fairness of flows in words; "" for one flow. */
export function protocolOf(resolved: Resolved, flow: string): string {
  const table = tableOf(resolved, flow);
  return table?.cc ? `${table.cc.kind} over ${table.stack}` : "UDP";
}
