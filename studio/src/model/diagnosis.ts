/** The report of a capture as the page reads it (docs/reference/documents.md), and a connection's path as a scenario. */
import { figure } from "./quantity.ts";

export interface Estimate {
  value: number | null;
  low: number | null;
  high: number | null;
  seen: string;
}

export interface Direction {
  bytes: number;
  data_packets: number;
  goodput_mbit_s: number | null;
  receiver_application_s: number;
  limits_s: { [limit: string]: number };
  retransmission_counts: { all: number; needed: number; spurious: number; undecided: number };
  retransmissions: { packet: number; time_s: number; seq: number; needed: boolean | null }[];
}

export type Side = "a_to_b" | "b_to_a";

export interface PathModel {
  direction: Side;
  bottleneck: string;
  base_rtt_ms: Estimate;
  rate_mbit_s: Estimate;
  rate_trace?: [number, number][];
  buffer_bytes: Estimate;
  loss: { kind: string; rate: Estimate; mean_burst: Estimate };
  policer: { rate_mbit_s: Estimate; burst_bytes: Estimate } | null;
  reordering: { ratio: Estimate; late_ms: number | null };
  jitter_ms: Estimate;
  reverse: { to_receiver_ms: number | null };
  flow: {
    mss_bytes: number;
    bytes: number;
    is_closed: boolean;
    is_from_start: boolean;
    congestion_control: string;
    receive_window_bytes: number | null;
    send_buffer_bytes: number | null;
    timestamps: boolean;
    sack: boolean;
    segments_per_ack: number | null;
    initial_window_packets: number | null;
  };
}

export interface Connection {
  id: number;
  /** Of a qlog: its author. */
  quic: { vantage: "client" | "server"; version: string | null; retry: boolean; frames: boolean } | null;
  a: string;
  b: string;
  start_s: number;
  duration_s: number;
  packets: number;
  directions: { [side in Side]: Direction };
  findings: { cause: string; direction: Side | null; share: number | null; text: string; packets: number[] }[];
  next: string | null;
  /** Empty if there is too little data. */
  path: PathModel | Record<string, never>;
}

/** A connection of QUIC in a capture, by its unencrypted headers. */
export interface QuicFlow {
  a: string;
  b: string;
  version: string;
  duration_s: number;
  handshake: { answered_ms: number | null; unanswered_datagrams: number };
  directions: { [side in Side]: { bytes: number; mbit_s: number | null } };
}

export interface Report {
  file: string;
  source: "capture" | "qlog";
  packets: number;
  damaged: string | null;
  cut_off: boolean;
  /** Connections that ended early, because too many were open. */
  ended_early: number;
  connections: Connection[];
  quic: QuicFlow[];
  omitted: { connections: number };
}

const plural = (count: number, noun: string) => `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;

/** Number of packets and connections of a file. */
export function contents({ source, packets, connections, quic }: Report): string {
  const [noun, protocol] = source === "qlog" ? ["packet", "QUIC"] : ["frame", "TCP"];
  const more = quic.length ? `, ${quic.length.toLocaleString("en")} of QUIC` : "";
  return `${plural(packets, noun)}, ${plural(connections.length, `${protocol} connection`)}${more}`;
}

/** Remarks on the capture as a whole, as the command makes them. */
export function remarks({ packets, cut_off, damaged, ended_early, source }: Report): string[] {
  const file = source === "qlog" ? "log" : "capture";
  return [
    ...(cut_off && !packets ? [`The ${file} is cut off before its first packet.`] : []),
    ...(cut_off && packets ? [`The ${file} is cut off within its last record.`] : []),
    ...(damaged ? [`Damaged: ${damaged}; the part before is diagnosed.`] : []),
    ...(ended_early ? [`${plural(ended_early, "connection")} ended early: more were open than are followed.`] : []),
  ];
}

/** The author of a qlog; empty for a connection of a capture. */
export function author({ quic }: Connection): string {
  if (!quic) return "";
  const version = quic.version ? `, QUIC version ${quic.version}` : "";
  const inferred = quic.frames ? "" : "; it lists no frames: acknowledgments are inferred from the octets in flight";
  return `Log of the ${quic.vantage}${version}${quic.retry ? ", with a Retry" : ""}${inferred}.`;
}

/** One sentence on a connection of QUIC in a capture. */
export function quicText(flow: QuicFlow): string {
  const { answered_ms: answered, unanswered_datagrams: tries } = flow.handshake;
  const [up, down] = [flow.directions.a_to_b, flow.directions.b_to_a].map(
    ({ bytes, mbit_s: rate }) => `${figure(bytes / 1e6)} MB at ${figure(rate)} Mbit/s`,
  );
  const handshake =
    answered === null
      ? `no answer to ${plural(tries, "datagram")} of the client`
      : `handshake answered after ${figure(answered)} ms`;
  return `${flow.a} to ${flow.b}, version ${flow.version}: client ${up}, server ${down} in ${figure(flow.duration_s)} s; ${handshake}.`;
}

/** The direction with more data. */
export function mainSide(connection: Connection): Side {
  const { a_to_b, b_to_a } = connection.directions;
  return b_to_a.bytes > a_to_b.bytes ? "b_to_a" : "a_to_b";
}

/** One sentence on a connection. */
export function headline(connection: Connection): string {
  const side = mainSide(connection);
  const [from, to] = side === "a_to_b" ? [connection.a, connection.b] : [connection.b, connection.a];
  const way = connection.directions[side];
  const again = way.retransmission_counts;
  const spurious = again.spurious ? `, ${again.spurious.toLocaleString("en")} of them spurious` : "";
  return `${from} sends ${figure(way.bytes / 1e6)} MB to ${to} in ${figure(connection.duration_s)} s: ${figure(way.goodput_mbit_s)} Mbit/s, ${again.all.toLocaleString("en")} retransmissions${spurious}.`;
}

/** Limits of a direction with their shares, the largest first. */
export function limits(connection: Connection): [limit: string, share: number][] {
  const shares = Object.entries(connection.directions[mainSide(connection)].limits_s);
  const whole = Math.max(connection.duration_s, 1e-9);
  return shares
    .map(([limit, seconds]): [string, number] => [limit.replaceAll("-", " "), seconds / whole])
    .filter(([, share]) => share >= 0.005)
    .sort((a, b) => b[1] - a[1]);
}

const UNSEEN_FACTOR = 10;
const LEAST_JITTER = 0.02;
const LEAST_WINDOW = 0.02;
const APPLICATION = 0.5;
const LEAST_REQUESTS = 3;
const MOST_TABLE = 10_000;

const g = (value: number, digits: number) => String(Number(value.toPrecision(digits)));

/**
 * The path and the flow of a connection as a scenario, by the rules of `anabranch diagnose --out DIR`
 * (python/anabranch/fitted/scenario.py); undefined without a model of the path.
 */
export function fitted(connection: Connection): string | undefined {
  const { path } = connection;
  if (!hasModel(path)) return undefined;
  const base = path.base_rtt_ms.value;
  if (base === null) return undefined;
  const rate = rateOf(path);
  if (rate === undefined) return undefined;
  const isBefore = path.bottleneck === "before the capture point";
  const rest = isBefore ? Math.min(path.reverse.to_receiver_ms ?? 0, base) : 0;
  const { flow, duration } = flowOf(connection, path);
  const impair = [...impairments(path, base)];
  const lines = [
    `title = "Connection ${connection.id} of the capture, fitted"`,
    `duration = "${duration.toFixed(3)} s"`,
    "",
    "[link.path]",
    `between = ["sender", "${isBefore ? "middle" : "receiver"}"]`,
    `rate = "${g(rate, 5)} Mbit/s"`,
    `delay = "${((base - rest) / 2).toFixed(4)} ms"`,
    `forward.queue = { kind = "drop-tail", limit = "${limitOf(path, rate, base)} bytes" }`,
    ...(impair.length ? [`forward.impair = [\n${impair.map((one) => `  ${one},`).join("\n")}\n]`] : []),
  ];
  if (isBefore)
    lines.push("", "[link.rest]", 'between = ["middle", "receiver"]', `delay = "${(rest / 2).toFixed(4)} ms"`);
  lines.push("", "[flow.main]", 'from = "sender"', 'to = "receiver"', ...flow);
  for (const [time, mbit] of path.policer ? [] : (path.rate_trace ?? [])) {
    if (time > 0 && time < duration)
      lines.push(
        "",
        "[[at]]",
        `time = "${time.toFixed(3)} s"`,
        `set = { "link.path.rate" = "${mbit.toFixed(4)} Mbit/s" }`,
      );
  }
  return `${lines.join("\n")}\n`;
}

function hasModel(path: Connection["path"]): path is PathModel {
  return "base_rtt_ms" in path;
}

function rateOf(path: PathModel): number | undefined {
  if (path.policer) return path.policer.rate_mbit_s.value ?? undefined;
  if (path.rate_trace?.length) return path.rate_trace[0][1];
  const { value, seen } = path.rate_mbit_s;
  if (value === null) return undefined;
  return seen === "at-least" ? UNSEEN_FACTOR * value : value;
}

function limitOf(path: PathModel, rate: number, base: number): number {
  if (path.policer) return Math.round(path.policer.burst_bytes.value ?? 0);
  const { value, seen } = path.buffer_bytes;
  if (seen === "measured") return Math.round(value ?? 0);
  return Math.round(Math.max(2 * (value ?? 0), rate * base * 125));
}

function* impairments(path: PathModel, base: number): Generator<string> {
  const { loss, jitter_ms: jitter, reordering } = path;
  if (!path.policer && loss.kind === "bernoulli")
    yield `{ kind = "bernoulli-loss", rate = ${g(loss.rate.value ?? 0, 5)} }`;
  if (!path.policer && loss.kind === "gilbert-elliott") {
    yield `{ kind = "gilbert-elliott", loss_rate = ${g(loss.rate.value ?? 0, 5)}, mean_burst = ${float(g(loss.mean_burst.value ?? 1, 5))} }`;
  }
  if (jitter.seen === "measured" && (jitter.value ?? 0) > LEAST_JITTER * base) {
    yield `{ kind = "jitter", distribution = "exponential", mean = "${g(jitter.value ?? 0, 4)} ms" }`;
  }
  const [late, ratio] = [reordering.late_ms, reordering.ratio.value];
  if (ratio && late) {
    const entries = Math.min(MOST_TABLE, Math.max(2, Math.round(1 / ratio)));
    const table = [`"${g(late, 4)} ms"`, ...Array<string>(entries - 1).fill('"0 ms"')];
    yield `{ kind = "jitter", distribution = "table", table = [${table.join(", ")}], reorder = true }`;
  }
}

const float = (text: string) => (/[.e]/.test(text) ? text : `${text}.0`);

function flowOf(connection: Connection, path: PathModel): { flow: string[]; duration: number } {
  const seen = path.flow;
  const way = connection.directions[path.direction];
  let duration = Math.max(connection.duration_s, 0.1);
  const transport = [`mss = "${seen.mss_bytes} bytes"`, `sack = ${seen.sack}`, `timestamps = ${seen.timestamps}`];
  if (
    seen.receive_window_bytes &&
    way.limits_s["receive-window"] + way.limits_s["zero-window"] > LEAST_WINDOW * duration
  ) {
    transport.push(`receive_window = "${seen.receive_window_bytes} bytes"`);
  }
  if (seen.send_buffer_bytes) transport.push(`send_buffer = "${seen.send_buffer_bytes} bytes"`);
  if ((seen.initial_window_packets ?? 0) > 10) transport.push(`initial_cwnd = ${seen.initial_window_packets}`);
  if (seen.segments_per_ack !== null && seen.segments_per_ack < 1.2) transport.push('delayed_ack = "off"');
  const flow = [`cc = "${seen.congestion_control}"`, `transport = { ${transport.join(", ")} }`];
  const asking = connection.directions[path.direction === "a_to_b" ? "b_to_a" : "a_to_b"];
  const requests = asking.data_packets;
  if (requests >= LEAST_REQUESTS && asking.bytes <= requests * seen.mss_bytes) {
    const [request, response] = [asking, way].map(({ bytes }) => Math.max(1, Math.floor(bytes / requests)));
    const think = g((way.receiver_application_s / requests) * 1e3, 4);
    flow.push(
      `workload = { kind = "request-response", request = "${request} bytes", response = "${response} bytes", think = "${think} ms" }`,
    );
  } else if (
    way.limits_s.application + way.limits_s["round-trips"] > APPLICATION * Math.max(connection.duration_s, 1e-3) &&
    way.goodput_mbit_s
  ) {
    flow.push(`workload = { kind = "paced", rate = "${g(way.goodput_mbit_s, 5)} Mbit/s" }`);
  } else if (seen.is_closed && seen.is_from_start) {
    flow.push(`workload = { kind = "file", size = "${seen.bytes} bytes" }`);
    // The run ends with the file.
    duration = 4 * duration + 10;
  }
  return { flow, duration };
}
