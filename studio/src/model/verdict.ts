/** The verdict on a run, in one sentence: the rate of each flow, and its limit with the cause. */
import { figure, percent } from "./quantity.ts";
import { FULL, type Limit, limitOf } from "./route.ts";
import { type FlowSummary, type Resolved, type Summary, tableOf, WAYS } from "./summary.ts";

/** Most flows that the sentence names. */
const MOST_NAMED = 3;

/** The kind of a queue that drops only while it is full. */
const DROP_TAIL = "drop-tail";

const plural = (count: number, noun: string): string =>
  `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;

function times(count: number): string {
  return count === 1 ? "once" : count === 2 ? "twice" : `${count.toLocaleString("en")} times`;
}

/** Sums of a run. */
interface Sums {
  dropped: number;
  /** The kind of the queue with the most drops. */
  queue: string;
  lost: number;
  reordered: number;
}

function sums(summary: Summary, resolved: Resolved): Sums {
  const made = { dropped: 0, queue: DROP_TAIL, lost: 0, reordered: 0 };
  let most = 0;
  for (const [name, ways] of Object.entries(summary.links)) {
    const table = resolved.link?.[name] ?? resolved.group?.[name];
    for (const way of WAYS) {
      const one = ways[way];
      if (one.dropped_packets > most) {
        most = one.dropped_packets;
        made.queue = (table?.[way] ?? table)?.queue?.kind ?? DROP_TAIL;
      }
      made.dropped += one.dropped_packets;
      made.lost += one.lost_packets;
      made.reordered += one.reordered_packets;
    }
  }
  return made;
}

/** The cause of the reductions of a window. */
function cause(flow: FlowSummary, { dropped, queue, lost, reordered }: Sums): string {
  const spurious = flow.spurious_retransmissions ?? 0;
  const again = flow.retransmitted_packets ?? 0;
  if (spurious > again / 2 && reordered > 0) return "reordering";
  if (lost > 2 * dropped) return "random loss";
  if (dropped > 2 * lost) return queue === DROP_TAIL ? "drops of the full queue" : `drops of ${queue}`;
  return lost + dropped > 0 ? "random loss and drops of the queue" : "the stack";
}

/** The limit of a flow, with its cause. */
function limit(flow: FlowSummary, at: Limit | undefined, summary: Summary, resolved: Resolved): string {
  if (flow.cwnd_limited_share === null) return "";
  if (isFull(flow, at)) return full(at, summary);
  const cuts = (flow.fast_recoveries ?? 0) + (flow.timeouts ?? 0);
  const shares: [number, string][] = [
    [flow.cwnd_limited_share, "the window"],
    [flow.rwnd_limited_share ?? 0, "the receive window"],
    [flow.sndbuf_limited_share ?? 0, "the send buffer"],
    [flow.application_limited_share ?? 0, "the application"],
  ];
  const rest = 1 - shares.reduce((sum, [share]) => sum + share, 0);
  const [share, words] = [...shares, [rest, "pacing, recovery and set-up"] as [number, string]].reduce((a, b) =>
    b[0] > a[0] ? b : a,
  );
  if (words === "the window" && cuts > 0)
    return `the congestion window, cut ${times(cuts)} by ${cause(flow, sums(summary, resolved))}`;
  if (words === "the window") return "the congestion window, which still grows";
  // A file that has been sent waits for its last acknowledgments.
  if (words === "the application" && flow.ended === "completed") return "";
  return `${words}, ${percent(share)} of the time`;
}

/** Goodput of this share of a hop's rate fills it: the rest is headers and what the start of the flow leaves. */
const FULL_OF_DATA = 0.9;

/** Whether the limiting hop is full; a flow that starts late fills it for a part of the run. */
function isFull(flow: FlowSummary, at: Limit | undefined): at is Limit {
  return at !== undefined && (at.utilization >= FULL || rate(flow) >= FULL_OF_DATA * at.capacity);
}

/** A hop that is full, with the delay of its queue. */
function full({ hop, at }: Limit, summary: Summary): string {
  const waits = summary.links[at.link][at.way].p95_queue_delay_ms ?? 0;
  if (hop.isGateway)
    return `the ${hop.ways.length === 1 ? "link" : "links"} of gateway ${hop.name} ${hop.ways.length === 1 ? "is" : "are"} full`;
  return `link ${hop.name} is full${waits >= 1 ? `, and its queue adds up to ${figure(waits)} ms` : ""}`;
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

const rate = (flow: FlowSummary): number => flow.goodput_mbit_s ?? 0;

/** The capacity that a flow has at most: " of 20", or "" if it is unlimited or changes. */
const ofCapacity = (at: Limit | undefined): string =>
  at && Number.isFinite(at.capacity) ? ` of ${figure(at.capacity)}` : "";

/** The sentence. */
export function verdict(summary: Summary, resolved: Resolved): string {
  const flows = Object.entries(summary.flows).map(
    ([name, flow]): Judged => ({ name, flow, at: limitOf(resolved, summary, name) }),
  );
  if (!flows.length) return "No flow sends data in this scenario.";
  if (flows.length === 1) {
    const [{ flow, at }] = flows;
    const result = served(flow);
    const rates = `${figure(rate(flow))}${ofCapacity(at)} Mbit/s`;
    const reason = limit(flow, at, summary, resolved);
    const first = result ? `${capital(result)} at ${rates}` : rates;
    return `${first}${reason ? `: ${reason}` : ""}${spurious([flow])}.`;
  }
  const isShared = flows.every(({ at }) => at && placeOf(at) === placeOf(flows[0].at));
  const waiting = flows.filter(({ flow }) => flow.exchanges).slice(0, MOST_NAMED);
  // Flows that only ask or send datagrams have no window that could limit them.
  const bulk = flows.filter(({ flow }) => !flow.exchanges && flow.cwnd_limited_share !== null);
  const worst = (bulk.length ? bulk : flows).reduce((a, b) => (rate(b.flow) < rate(a.flow) ? b : a));
  const reason = limit(worst.flow, worst.at, summary, resolved);
  return [
    isShared ? together(flows) : apart(flows),
    reason ? (isShared && isFull(worst.flow, worst.at) ? `: ${reason}` : `; ${worst.name}: ${reason}`) : "",
    ...waiting.map(({ name, flow }) => `; ${name}: ${served(flow)}`),
    spurious(flows.map(({ flow }) => flow)),
    ".",
  ].join("");
}

interface Judged {
  name: string;
  flow: FlowSummary;
  at: Limit | undefined;
}

/** The hop with its direction. */
const placeOf = (at: Limit | undefined): string => (at ? `${at.hop.name} ${at.hop.ways[0].way}` : "");

/** The rates of flows that share a hop. They have a sum if all last as long. */
function together(flows: Judged[]): string {
  const of = ofCapacity(flows[0].at);
  const isLasting = flows.every(({ flow }) => flow.ended === "running" && !flow.transfers);
  const total = flows.reduce((sum, { flow }) => sum + rate(flow), 0);
  const shares =
    flows.length <= MOST_NAMED
      ? flows.map(({ name, flow }) => `${name} ${figure(rate(flow))}`).join(", ")
      : `${flows.length.toLocaleString("en")} flows of ${range(flows.map(({ flow }) => rate(flow)))}`;
  if (isLasting) return `${figure(total)}${of} Mbit/s (${shares})`;
  const last = flows.reduce((most, { flow }) => Math.max(most, flow.flow_completion_time_s ?? Number.NaN), 0);
  return `${shares} Mbit/s${of ? ` on ${of.slice(4)} Mbit/s` : ""}${last > 0 ? `, the slowest done in ${figure(last)} s` : ""}`;
}

/** The rates of flows that different hops limit. */
function apart(flows: Judged[]): string {
  if (flows.length > MOST_NAMED)
    return `${flows.length.toLocaleString("en")} flows of ${range(flows.map(({ flow }) => rate(flow)))} Mbit/s`;
  return `${flows.map(({ name, flow, at }) => `${name} ${figure(rate(flow))}${ofCapacity(at)}`).join(", ")} Mbit/s`;
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
