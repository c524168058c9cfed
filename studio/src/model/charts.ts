/** The charts of a run. */
import type { Chart, Series } from "../chart/model.ts";
import { chosen, type Table } from "../engine/message.ts";
import { figure } from "./quantity.ts";
import { capacityOf, limitOf } from "./route.ts";
import { mainRows, type Points, sequence } from "./sequence.ts";
import { type Resolved, tableOf } from "./summary.ts";
import type { Drawn } from "./underway.ts";

/** Most lines of a chart. */
export const MOST_LINES = 8;
/** The rate is the mean over this share of the run. */
const BINS = 200;

/** A pacing rate of more than this many times the largest bandwidth estimate is not drawn. */
const MOST_PACED = 3;

/** Goodput of more than this many times the link's rate is explained. */
const MOST_GOODPUT = 1.05;
/** The maximum of a queue is named if its samples reach less than this share of it. */
const REACHED = 0.9;
/** A shorter peak, as a share of the longest queue, is left out of the note. */
const VISIBLE = 0.05;

const CWND = 0;
const SSTHRESH = 1;
const IN_FLIGHT = 2;

/** Mean rates between samples, in Mbit/s. */
export function rates(time: Float64Array, delivered: Float64Array, step: number): Points {
  const x: number[] = [];
  const y: number[] = [];
  let from = 0;
  for (let i = 1; i < time.length; i++) {
    if (time[i] - time[from] < step * 0.999) continue;
    x.push(time[i]);
    y.push(((delivered[i] - delivered[from]) * 8e-6) / (time[i] - time[from]));
    from = i;
  }
  return { x: Float64Array.from(x), y: Float64Array.from(y) };
}

function lines(samples: Table, flow: string): (column: string) => Points {
  const rows = samples.rowsWith("flow", flow);
  const time = chosen(samples.numbers("time_s"), rows);
  return (column) => ({ x: time, y: chosen(samples.numbers(column), rows) });
}

const hasValues = (y: Float64Array): boolean => y.some((value) => !Number.isNaN(value));

/** Changes of the labels and the look of a run that is laid under another. */
export interface Look {
  label: (text: string) => string;
  dash?: number[];
  shift: number;
}

export const PLAIN: Look = { label: (text) => text, shift: 0 };

/** A run with the choices of its charts. */
interface Drawing {
  run: Drawn;
  look: Look;
  focus: string;
  /** The flows with lines. */
  named: string[];
  /** Values of a flow's samples. */
  read: Map<string, (column: string) => Points>;
  /** Says that some flows have no line. */
  few: string | undefined;
}

/** The charts of a run or of its first part; `focus` is the flow of the chart of sequences. */
export function chartsOf(run: Drawn, focus: string, look: Look = PLAIN): Chart[] {
  const { tables, flows } = run;
  const samples = tables.get("samples");
  const links = tables.get("link_samples");
  const packets = tables.get("packets");
  const named = flows.slice(0, MOST_LINES);
  const few = flows.length > named.length ? `The first ${named.length} of ${flows.length} flows.` : undefined;
  const read = new Map(named.map((flow) => [flow, samples?.rows ? lines(samples, flow) : () => NONE]));
  const drawing: Drawing = { run, look, focus, named, read, few };
  const made = [
    goodput(drawing),
    windows(drawing),
    links?.rows ? queues(run, links, look) : undefined,
    roundTrips(drawing),
    samples?.rows && samples.has("pacing_rate_mbit_s") ? pacing(drawing) : undefined,
    packets?.rows && look.shift === 0 ? sequences(run, focus, packets) : undefined,
  ];
  return made.filter((chart) => chart !== undefined);
}

const NONE: Points = { x: new Float64Array(), y: new Float64Array() };

/** Sentences as one text; undefined without one. */
function sentences(...parts: (string | undefined)[]): string | undefined {
  return parts.filter((part) => part !== undefined).join(" ") || undefined;
}

const isTcp = (resolved: Resolved, flow: string): boolean => (tableOf(resolved, flow)?.protocol ?? "tcp") === "tcp";

/** Goodput by the samples of TCP; of another flow by its packets, if they are recorded. */
function goodput({ run, look, focus, named, read, few }: Drawing): Chart | undefined {
  const { duration, resolved, tables } = run;
  const packets = tables.get("packets");
  let [isAbove, isMissing] = [false, false];
  const series = named.flatMap((flow, i): Series[] => {
    const { x, y } = read.get(flow)!("delivered_bytes");
    const own =
      x.length || flow !== focus || !packets?.rows ? rates(x, y, duration / BINS) : arrivals(packets, duration);
    if (!own.x.length && !isTcp(resolved, flow)) {
      isMissing = true;
      return [];
    }
    isAbove ||= isTcp(resolved, flow) && own.y.some((value) => value > MOST_GOODPUT * limitRate(resolved, flow));
    return [{ label: look.label(flow), ...own, kind: "line", colour: i + look.shift, dash: look.dash }];
  });
  if (!series.length) return undefined;
  const missing = isMissing ? "A flow of UDP has a line while it is chosen." : undefined;
  const above = isAbove
    ? "Goodput can exceed the link's rate for a moment: data that was held is delivered in order after a repair."
    : undefined;
  return { name: "goodput", title: "Goodput", unit: "Mbit/s", series, about: sentences(few, missing, above) };
}

/** Mean rates of the payload that arrives, in Mbit/s. */
function arrivals(packets: Table, duration: number): Points {
  const received = packets.numbers("received_s");
  const payload = packets.numbers("payload_bytes");
  const step = duration / BINS;
  const x = Float64Array.from({ length: BINS }, (_, i) => (i + 1) * step);
  const y = new Float64Array(BINS);
  for (const row of mainRows(packets)) {
    const bin = Math.floor(received[row] / step);
    if (bin >= 0 && bin < BINS) y[bin] += (payload[row] * 8e-6) / step;
  }
  return { x, y };
}

/** The rate of the link that limits a flow, in Mbit/s; infinite if it is not fixed. */
function limitRate(resolved: Resolved, flow: string): number {
  const limit = limitOf(resolved, undefined, flow);
  const isFixed = limit?.hop.ways.every(({ link, way }) => {
    const table = resolved.link?.[link];
    return table && (table[way]?.service?.kind ?? "fixed") === "fixed";
  });
  return limit && isFixed ? limit.capacity : Number.POSITIVE_INFINITY;
}

function windows({ run: { flows }, look, focus, named, read, few }: Drawing): Chart | undefined {
  const series: Series[] = [];
  named.forEach((flow, i) => {
    const line = read.get(flow)!;
    const one = flows.length === 1;
    const own = i + look.shift;
    const name = (text: string) => look.label(one ? text : `${flow} ${text}`);
    const cwnd = line("cwnd_packets");
    if (!hasValues(cwnd.y)) return;
    series.push({ label: name("cwnd"), ...cwnd, kind: "line", colour: one ? CWND + look.shift : own, dash: look.dash });
    if (!one && flow !== focus) return;
    const isHidden = !one;
    series.push({
      label: name("in flight"),
      ...line("in_flight_packets"),
      kind: "line",
      colour: one ? IN_FLIGHT + look.shift : own,
      width: 1,
      isHidden,
      dash: one ? look.dash : [1, 2],
    });
    const ssthresh = line("ssthresh_packets");
    if (!hasValues(ssthresh.y)) return;
    series.push({
      label: name("ssthresh"),
      ...ssthresh,
      kind: "step",
      colour: one ? SSTHRESH + look.shift : own,
      dash: [5, 3],
      isHidden,
    });
  });
  return series.length ? { name: "window", title: "Window", unit: "packets", series, about: few } : undefined;
}

function roundTrips({ look, named, read, few }: Drawing): Chart | undefined {
  const series = named.flatMap((flow, i): Series[] => {
    const srtt = read.get(flow)!("srtt_ms");
    if (!hasValues(srtt.y)) return [];
    return [{ label: look.label(flow), ...srtt, kind: "line", colour: i + look.shift, dash: look.dash }];
  });
  return series.length ? { name: "rtt", title: "Smoothed round-trip time", unit: "ms", series, about: few } : undefined;
}

function pacing({ run: { flows }, look, named, read }: Drawing): Chart | undefined {
  const series = named.flatMap((flow, i): Series[] => {
    const line = read.get(flow)!;
    const [rate, bandwidth] = [line("pacing_rate_mbit_s"), line("bandwidth_estimate_mbit_s")];
    const name = (text: string) => look.label(flows.length === 1 ? text : `${flow} ${text}`);
    const own = { kind: "line", colour: i + look.shift } as const;
    // Before its first measurements BBR paces at many times the path's rate, which would flatten the lines.
    const most = MOST_PACED * (bandwidth.y.reduce((a, b) => (b > a ? b : a), 0) || Number.POSITIVE_INFINITY);
    const y = rate.y.map((value) => (value > most ? Number.NaN : value));
    return [
      ...(hasValues(rate.y) ? [{ label: name("pacing rate"), x: rate.x, y, ...own, width: 1, dash: look.dash }] : []),
      ...(hasValues(bandwidth.y)
        ? [
            {
              label: name("bandwidth estimate"),
              ...bandwidth,
              ...own,
              colour: (flows.length === 1 ? 1 : i) + look.shift,
              width: 2.4,
              dash: look.dash ?? [6, 3],
            },
          ]
        : []),
    ];
  });
  // A control without an estimate is paced by its window, which has a chart.
  if (!series.some(({ label }) => label.endsWith("bandwidth estimate"))) return undefined;
  const about = `A pacing rate of more than ${MOST_PACED} times the largest estimate is not drawn.`;
  return { name: "pacing", title: "Pacing rate and bandwidth estimate", unit: "Mbit/s", series, about };
}

function sequences({ resolved }: Drawn, focus: string, packets: Table): Chart {
  const set = sequence(packets);
  const sack = tableOf(resolved, focus)?.transport?.sack;
  const series: Series[] = [
    { label: "sent", ...set.sent, kind: "points", colour: 6 },
    {
      label: sack ? "SACKed (held out of order)" : "held out of order",
      ...set.held,
      kind: "points",
      colour: 5,
      isThinned: true,
    },
    { label: "lost or dropped", ...set.lost, kind: "crosses", colour: 3 },
    { label: "retransmitted, needed", ...set.needed, kind: "marks", colour: 0 },
    { label: "retransmitted, spurious", ...set.spurious, kind: "marks", colour: 1 },
    { label: "retransmitted, undecided", ...set.undecided, kind: "marks", colour: 4 },
    // Above the marks, which may be many.
    { label: "next expected", ...set.expected, kind: "step", colour: 2, width: 1 },
  ];
  const made = {
    name: "sequence",
    title: `Time and sequence: ${focus}`,
    unit: "sequence (MB)",
    isTall: true,
    fits: true,
  };
  // A receiver of UDP holds and expects nothing.
  if (!isTcp(resolved, focus)) return { ...made, series: [series[0], series[2]].filter(({ x }) => x.length) };
  return {
    ...made,
    series: series.filter(({ x }) => x.length),
    about: "A click near a retransmission shows its cause and the packets around it.",
  };
}

function queues({ queues: all, resolved }: Drawn, links: Table, look: Look): Chart {
  const busy = all.filter(({ most }) => most > 0).sort((a, b) => b.most - a.most);
  const shown = (busy.length ? busy : all.slice(0, 1)).slice(0, 4);
  const { codes, names } = links.texts("direction");
  const missed: string[] = [];
  const series = shown.map(({ link, way, most }, i): Series => {
    const code = names.indexOf(way);
    const rows = links.rowsWith("link", link).filter((row) => codes[row] === code);
    const x = chosen(links.numbers("time_s"), rows);
    const y = chosen(links.numbers("queue_packets"), rows);
    const isOne = capacityOf({ ...resolved.link, ...resolved.group }[link], way) > 0;
    const name = isOne ? `${link} ${way}` : link;
    const sampled = y.reduce((a, b) => Math.max(a, b), 0);
    if (sampled < REACHED * most && most >= VISIBLE * shown[0].most)
      missed.push(`${figure(most)} ${most === 1 ? "packet" : "packets"} (${name})`);
    return {
      label: look.label(name),
      x,
      y,
      kind: "line",
      colour: i + look.shift,
      dash: look.dash,
    };
  });
  const about = missed.length ? `The samples miss short peaks: up to ${missed.join(", ")}.` : undefined;
  return { name: "queue", title: "Queue", unit: "packets", series, about };
}

/** Adds the lines of a pinned run, dashed. */
export function overlaid(charts: Chart[], pinned: Chart[]): Chart[] {
  const below = new Map(pinned.map((chart) => [chart.name, chart]));
  return charts.map((chart) => ({ ...chart, series: [...chart.series, ...(below.get(chart.name)?.series ?? [])] }));
}
