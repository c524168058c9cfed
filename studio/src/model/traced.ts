/** Charts of a captured connection. */
import type { Chart, Series } from "../chart/model.ts";
import { type Connection, mainSide, type Side } from "./diagnosis.ts";

interface Thinned<T> {
  points: T[];
  of: number;
}

interface Traced {
  sent: Thinned<[packet: number, time: number, start: number, end: number]>;
  acknowledged: Thinned<[time: number, ack: number, edge: number | null]>;
  sacked: Thinned<[time: number, start: number, end: number]>;
  round_trips: Thinned<[time: number, ms: number]>;
}

export type Trace = { id: number } & { [side in Side]: Traced };

function series(
  label: string,
  points: [number, number][],
  kind: Series["kind"],
  colour: number,
  more: Partial<Series> = {},
): Series {
  const sorted = [...points].sort((a, b) => a[0] - b[0]);
  return {
    label,
    x: Float64Array.from(sorted, ([x]) => x),
    y: Float64Array.from(sorted, ([, y]) => y),
    kind,
    colour,
    ...more,
  };
}

export function traced(connection: Connection, trace: Trace): Chart[] {
  const side = mainSide(connection);
  const own = trace[side];
  const way = connection.directions[side];
  const at = (time: number) => time - connection.start_s;
  const again = new Map(way.retransmissions.map((one) => [one.packet, one]));
  const verdict = (needed: boolean | null) =>
    way.retransmissions
      .filter((one) => one.needed === needed)
      .map(({ time_s, seq }): [number, number] => [at(time_s), seq / 1e6]);
  const sent = own.sent.points
    .filter(([packet]) => !again.has(packet))
    .map(([, time, start]): [number, number] => [at(time), start / 1e6]);
  const all: Series[] = [
    series("sent", sent, "points", 6),
    series(
      "SACKed",
      own.sacked.points.map(([time, , end]): [number, number] => [at(time), end / 1e6]),
      "points",
      5,
      { isThinned: true },
    ),
    series("retransmitted, needed", verdict(true), "marks", 0),
    series("retransmitted, spurious", verdict(false), "marks", 1),
    series("retransmitted, undecided", verdict(null), "marks", 4),
    // Above the marks, which may be many.
    series(
      "acknowledged",
      own.acknowledged.points.map(([time, ack]): [number, number] => [at(time), ack / 1e6]),
      "step",
      2,
      { width: 1 },
    ),
  ];
  const trips = own.round_trips.points.map(([time, ms]): [number, number] => [at(time), ms]);
  const thinned =
    own.sent.points.length < own.sent.of
      ? `${own.sent.points.length.toLocaleString("en")} of ${own.sent.of.toLocaleString("en")} segments are drawn.`
      : undefined;
  return [
    { name: "rtt", title: "Round trips", unit: "ms", series: [series("round trip", trips, "points", 0)] },
    {
      name: "sequence",
      title: "Time and sequence",
      unit: "sequence (MB)",
      series: all.filter(({ x }) => x.length),
      isTall: true,
      fits: true,
      about: thinned,
    },
  ];
}
