/** Explanations of the terms of a run, and the law that its loss rate sets. */
import { figure, octets, percent } from "./quantity.ts";
import { hopsOf, limitOf } from "./route.ts";
import { type FlowTable, type Resolved, type Summary, tableOf, WAYS } from "./summary.ts";

export interface Term {
  name: string;
  words: string;
}

const CHARTS: Term[] = [
  {
    name: "Goodput",
    words:
      "New data that the receiver passes to its application, per second. Headers and retransmissions do not count.",
  },
  {
    name: "Window, cwnd",
    words:
      "The congestion window limits the packets in flight: sent and not yet acknowledged. A sender that fills its window sends cwnd packets per round-trip time.",
  },
  {
    name: "ssthresh",
    words:
      "The slow-start threshold. Below it cwnd doubles each round trip (slow start). Above it cwnd grows slowly (congestion avoidance).",
  },
  {
    name: "Round-trip time (RTT)",
    words:
      "Time from a packet to its acknowledgment: the delay of each link in both directions, plus the delay of each queue.",
  },
  {
    name: "Bandwidth × delay (BDP)",
    words:
      "Rate of the bottleneck times RTT: the data in flight that fills the path without a queue. A smaller cwnd leaves capacity unused. The excess of a larger cwnd waits in the queue.",
  },
  {
    name: "95th percentile (p95)",
    words: "95 % of the values are at or below it.",
  },
  {
    name: "Retransmission: needed, spurious",
    words:
      "A retransmission is needed if the receiver lacked the data, and spurious if the data had arrived or was still on its way.",
  },
  {
    name: "SACK, RACK, RTO",
    words:
      "SACK: the receiver lists data that arrived after a gap. RACK: the sender declares a packet lost if one sent sufficiently later has arrived. RTO: the retransmission timer expires without an acknowledgment.",
  },
];

const PACING: Term = {
  name: "Pacing rate, bandwidth estimate",
  words:
    "A paced sender spaces its packets evenly at the pacing rate. BBR's bandwidth estimate is the highest recent delivery rate; the pacing rate is the estimate times a gain.",
};

const RENO = "adds one packet to cwnd each round trip, and halves cwnd for each loss event.";
const CONTROLS: { [kind: string]: string } = {
  reno: `Reno ${RENO}`,
  cubic:
    "CUBIC lowers cwnd to 0.7 of its value for each loss event, whatever the cause of the loss. Then cwnd grows along a cubic curve of time, and at least as fast as Reno's would.",
  bbr: "BBR (version 1) measures the bottleneck's rate and the least RTT, and paces at that rate. A single loss does not lower its pacing rate, so random loss costs it little more than the lost packets. It limits the data in flight to 2 BDP.",
  bbr3: "BBR version 3 measures the bottleneck's rate and the least RTT, and paces at that rate. It reduces the data in flight only if more than 2 % of a round trip's packets are lost or marked.",
};

const QUEUES: { [kind: string]: string } = {
  "drop-tail":
    "One queue for all flows, in order of arrival. It drops packets only when it is full. A flow whose control reacts only to loss fills it, and packets of other flows wait for that data.",
  codel:
    "One queue for all flows. CoDel drops or marks packets once each has waited longer than its target (5 ms by default) for an interval (100 ms by default). A long flow thus reduces its window before the queue grows.",
  "fq-codel":
    "FQ-CoDel gives each flow its own queue and serves them in turn, so a call or a request does not wait for a bulk transfer. CoDel limits the delay of each queue.",
};

const MBIT = 1e6;

/** Rate of a flow that random loss limits, with the terms of its formula. */
export interface LossLaw {
  control: string;
  loss: number;
  rtt_ms: number;
  window: number;
  mbit_s: number;
  isReno: boolean;
  /** Goodput of the run in Mbit/s. */
  goodput: number;
  /** The rate of the flow's bottleneck in Mbit/s; infinite if it is unlimited. */
  capacity: number;
}

/** Chance that a packet of the flow is lost at random on its route; undefined if another impairment or path changes it. */
function lossOf(resolved: Resolved, table: FlowTable | undefined): number | undefined {
  let kept = 1;
  for (const { ways, isGateway } of hopsOf(resolved, table)) {
    if (isGateway || ways.length !== 1) return undefined;
    const [{ link, way }] = ways;
    const found = resolved.link?.[link];
    if (!found) return undefined;
    const impair = found[way]?.impair ?? found.impair ?? [];
    if (impair.some(({ kind }) => kind !== "bernoulli-loss")) return undefined;
    for (const { rate } of impair) kept *= 1 - (rate ?? 0);
  }
  return 1 - kept;
}

/** The law of random loss for a flow of Reno or CUBIC; undefined for others, and without random loss. */
export function lossLaw(resolved: Resolved, summary: Summary, flow: string): LossLaw | undefined {
  const table = tableOf(resolved, flow);
  const control = table?.cc?.kind;
  const one = summary.flows[flow];
  const loss = lossOf(resolved, table);
  const mss = octets(table?.transport?.mss);
  if ((control !== "reno" && control !== "cubic") || !loss || !mss || !one?.mean_srtt_ms) return undefined;
  const rtt = one.mean_srtt_ms / 1e3;
  const reno = Math.sqrt(1.5 / loss);
  // RFC 9438 §5.1, with C = 0.4 and β = 0.7.
  const cubic = control === "cubic" ? 1.054 * (rtt / loss) ** 0.75 : 0;
  const window = Math.max(reno, cubic);
  return {
    control,
    loss,
    rtt_ms: one.mean_srtt_ms,
    window,
    mbit_s: (window * mss * 8) / rtt / MBIT,
    isReno: reno >= cubic,
    goodput: one.goodput_mbit_s ?? 0,
    capacity: limitOf(resolved, summary, flow)?.capacity ?? Number.POSITIVE_INFINITY,
  };
}

function lawTerm(law: LossLaw, flow: string): Term {
  const { control, loss, rtt_ms, window, mbit_s, isReno, goodput, capacity } = law;
  const growth = !isReno
    ? " On a path of this RTT CUBIC grows faster than Reno."
    : control === "cubic"
      ? " On a path of this RTT CUBIC grows as Reno does."
      : "";
  // The formula of RFC 9438 is that of evenly spaced losses: random ones leave a larger window.
  const about = isReno ? "about" : "at least";
  const formula = isReno ? "√(1.5 / p)" : "1.054 · (RTT / p)^0.75, with RTT in seconds";
  const result =
    mbit_s < capacity
      ? `With an RTT of ${figure(rtt_ms)} ms that is ${figure(mbit_s)} Mbit/s, however fast the link is. In this run ${flow} gets ${figure(goodput)} Mbit/s.`
      : `With an RTT of ${figure(rtt_ms)} ms that is ${figure(mbit_s)} Mbit/s, more than the link's rate: this loss rate does not limit ${flow}.`;
  return {
    name: isReno ? "Loss law (square root)" : "Loss law (CUBIC)",
    words: `cwnd falls for each loss and grows between losses.${growth} Its mean over a long run is ${about} ${formula} packets at loss rate p. Here p = ${percent(loss)} gives ${figure(window)} packets. ${result}`,
  };
}

/** The queue that delays most, if it adds more than the path's round-trip time without queues. */
function bufferbloat({ link }: Resolved, { links, flows }: Summary): Term | undefined {
  const rtt = Math.min(...Object.values(flows).map(({ min_rtt_ms }) => min_rtt_ms ?? Number.POSITIVE_INFINITY));
  const all = Object.entries(links).flatMap(([name, ways]) =>
    WAYS.map((way) => ({ name, way, delay: ways[way].p95_queue_delay_ms ?? 0 })),
  );
  const most = all.reduce((a, b) => (b.delay > a.delay ? b : a), { name: "", way: WAYS[0], delay: 0 });
  const ends = link?.[most.name]?.between;
  if (!ends || most.delay <= rtt) return undefined;
  const [from, to] = most.way === "forward" ? ends : [ends[1], ends[0]];
  return {
    name: "Bufferbloat",
    words: `A sender fills a long queue until a packet is dropped, and keeps it filled. The queue of link ${most.name} from ${from} to ${to} adds up to ${figure(most.delay)} ms (95th percentile) to a round trip of ${figure(rtt)} ms. A call, a request or an acknowledgment in the same queue waits as long. A shorter queue, or one that manages its delay (codel, fq-codel, cake), removes the wait.`,
  };
}

/** The terms of a run: first its law, its controls and queues, then those of the charts. */
export function termsOf(resolved: Resolved, summary: Summary, flow: string | undefined): Term[] {
  const made: Term[] = [];
  const law = flow === undefined ? undefined : lossLaw(resolved, summary, flow);
  if (law && flow !== undefined) made.push(lawTerm(law, flow));
  const bloat = bufferbloat(resolved, summary);
  if (bloat) made.push(bloat);
  const controls = new Set(Object.values(resolved.flow ?? {}).map(({ cc }) => cc?.kind ?? ""));
  for (const kind of controls) if (CONTROLS[kind]) made.push({ name: kind, words: CONTROLS[kind] });
  const tables = Object.values(resolved.link ?? {}).flatMap((link) => [link, link.forward, link.reverse]);
  const queues = new Set(tables.map((table) => table?.queue?.kind ?? ""));
  for (const kind of queues) if (QUEUES[kind]) made.push({ name: kind, words: QUEUES[kind] });
  if (tables.some((table) => table?.impair?.some(({ kind }) => kind === "bernoulli-loss")))
    made.push({
      name: "Random loss (bernoulli-loss)",
      words: "The link loses each packet with this probability, independently of the others and of the queue.",
    });
  return [...made, ...CHARTS, ...(["bbr", "bbr3"].some((kind) => controls.has(kind)) ? [PACING] : [])];
}
