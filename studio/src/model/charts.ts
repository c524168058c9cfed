/** The charts of a run. */
import type { Chart, Series } from "../chart/model.ts";
import { chosen, type Table } from "../engine/message.ts";
import { sequence } from "./sequence.ts";
import { capacityOf } from "./summary.ts";
import type { Drawn } from "./underway.ts";

/** Most lines of a chart. */
export const MOST_LINES = 8;
/** The rate is the mean over this share of the run. */
const BINS = 200;

/** A pacing rate of more than this many times the largest bandwidth estimate is not drawn. */
const MOST_PACED = 3;

const CWND = 0;
const SSTHRESH = 1;
const IN_FLIGHT = 2;

/** Mean rates between samples, in Mbit/s. */
export function rates(time: Float64Array, delivered: Float64Array, step: number): { x: Float64Array; y: Float64Array } {
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

function lines(samples: Table, flow: string): (column: string) => { x: Float64Array; y: Float64Array } {
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

/** The charts of a run or of its first part; `focus` is the flow of the chart of sequences. */
export function chartsOf(run: Drawn, focus: string, look: Look = PLAIN): Chart[] {
  const { resolved, tables, flows } = run;
  const samples = tables.get("samples");
  const links = tables.get("link_samples");
  const named = flows.slice(0, MOST_LINES);
  const colour = (i: number) => i + look.shift;
  const few = flows.length > named.length ? `The first ${named.length} of ${flows.length} flows.` : undefined;
  const charts: Chart[] = [];
  if (!samples?.rows) return charts;
  const read = new Map(named.map((flow) => [flow, lines(samples, flow)]));

  const goodput: Series[] = named.map((flow, i) => {
    const { x, y } = read.get(flow)!("delivered_bytes");
    const step = Math.max(run.duration / BINS, 0);
    return { label: look.label(flow), ...rates(x, y, step), kind: "line", colour: colour(i), dash: look.dash };
  });
  charts.push({ name: "goodput", title: "Goodput", unit: "Mbit/s", series: goodput, about: few });

  const windows: Series[] = [];
  named.forEach((flow, i) => {
    const line = read.get(flow)!;
    const one = flows.length === 1;
    const name = (text: string) => look.label(one ? text : `${flow} ${text}`);
    const cwnd = line("cwnd_packets");
    if (!hasValues(cwnd.y)) return;
    windows.push({
      label: name("cwnd"),
      ...cwnd,
      kind: "line",
      colour: one ? CWND + look.shift : colour(i),
      dash: look.dash,
    });
    if (one || flow === focus) {
      const isHidden = !one;
      const own = one ? IN_FLIGHT + look.shift : colour(i);
      windows.push({
        label: name("in flight"),
        ...line("in_flight_packets"),
        kind: "line",
        colour: own,
        width: 1,
        isHidden,
        dash: one ? look.dash : [1, 2],
      });
      const ssthresh = line("ssthresh_packets");
      if (hasValues(ssthresh.y)) {
        windows.push({
          label: name("ssthresh"),
          ...ssthresh,
          kind: "step",
          colour: one ? SSTHRESH + look.shift : colour(i),
          dash: [5, 3],
          isHidden,
        });
      }
    }
  });
  if (windows.length) charts.push({ name: "window", title: "Window", unit: "packets", series: windows, about: few });

  if (links?.rows) charts.push(queues(run, links, look));

  const round: Series[] = named.flatMap((flow, i): Series[] => {
    const srtt = read.get(flow)!("srtt_ms");
    return hasValues(srtt.y)
      ? [{ label: look.label(flow), ...srtt, kind: "line", colour: colour(i), dash: look.dash }]
      : [];
  });
  if (round.length)
    charts.push({ name: "rtt", title: "Smoothed round-trip time", unit: "ms", series: round, about: few });

  const paced = (samples.has("pacing_rate_mbit_s") ? named : []).flatMap((flow, i): Series[] => {
    const line = read.get(flow)!;
    const [rate, bandwidth] = [line("pacing_rate_mbit_s"), line("bandwidth_estimate_mbit_s")];
    const name = (text: string) => look.label(flows.length === 1 ? text : `${flow} ${text}`);
    const own = { kind: "line", colour: colour(i) } as const;
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
              colour: colour(flows.length === 1 ? 1 : i),
              width: 2.4,
              dash: look.dash ?? [6, 3],
            },
          ]
        : []),
    ];
  });
  // A control without an estimate is paced by its window, which has a chart.
  if (paced.some(({ label }) => label.endsWith("bandwidth estimate")))
    charts.push({
      name: "pacing",
      title: "Pacing rate and bandwidth estimate",
      unit: "Mbit/s",
      series: paced,
      about: `A pacing rate of more than ${MOST_PACED} times the largest estimate is not drawn.`,
    });

  const packets = tables.get("packets");
  if (packets?.rows && look.shift === 0) {
    const set = sequence(packets);
    const sack = resolved.flow?.[focus.replace(/\/\d+$/, "")]?.transport?.sack;
    const series: Series[] = [
      { label: "sent", ...set.sent, kind: "points", colour: 6 },
      { label: sack ? "SACKed (held out of order)" : "held out of order", ...set.held, kind: "points", colour: 5 },
      { label: "next expected", ...set.expected, kind: "step", colour: 2, width: 1 },
      { label: "lost or dropped", ...set.lost, kind: "crosses", colour: 3 },
      { label: "retransmitted, needed", ...set.needed, kind: "marks", colour: 0 },
      { label: "retransmitted, spurious", ...set.spurious, kind: "marks", colour: 1 },
      { label: "retransmitted, undecided", ...set.undecided, kind: "marks", colour: 4 },
    ];
    charts.push({
      name: "sequence",
      title: `Time and sequence: ${focus}`,
      unit: "sequence (MB)",
      series: series.filter((one) => one.x.length),
      isTall: true,
      fits: true,
      about: "A click near a retransmission shows its cause and the packets around it.",
    });
  }
  return charts;
}

function queues({ queues: all, resolved }: Drawn, links: Table, look: Look): Chart {
  const busy = all.filter(({ most }) => most > 0).sort((a, b) => b.most - a.most);
  const shown = (busy.length ? busy : all.slice(0, 1)).slice(0, 4);
  const { codes, names } = links.texts("direction");
  const series = shown.map(({ link, way }, i): Series => {
    const code = names.indexOf(way);
    const rows = links.rowsWith("link", link).filter((row) => codes[row] === code);
    const x = chosen(links.numbers("time_s"), rows);
    const y = chosen(links.numbers("queue_packets"), rows);
    const isOne = capacityOf({ ...resolved.link, ...resolved.group }[link], way) > 0;
    return {
      label: look.label(isOne ? `${link} ${way}` : link),
      x,
      y,
      kind: "line",
      colour: i + look.shift,
      dash: look.dash,
    };
  });
  return { name: "queue", title: "Queue", unit: "packets", series };
}

/** Adds the lines of a pinned run, dashed. */
export function overlaid(charts: Chart[], pinned: Chart[]): Chart[] {
  const below = new Map(pinned.map((chart) => [chart.name, chart]));
  return charts.map((chart) => ({ ...chart, series: [...chart.series, ...(below.get(chart.name)?.series ?? [])] }));
}
