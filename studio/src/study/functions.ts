/** The functions of claims' expressions, as in python/anabranch/study/functions.py. */
import {
  type Cell,
  combine,
  intervalEnds,
  NoValue,
  number,
  pairs,
  type Row,
  reduce,
  Series,
  type Value,
} from "./series.ts";
import { fsum, mean, pearson, slope, spearman } from "./statistics.ts";

/** Keywords of a call: `over` is the name of an axis. */
export interface Keywords {
  [name: string]: Value | undefined;
}

export type Function = (values: Value[], keywords: Keywords) => Value;

function seriesOf(value: Value, name: string): Series {
  if (!(value instanceof Series)) throw new NoValue(`${name}() needs a series over the grid, not a single value`);
  return value;
}

function reducer(name: string, act: (values: number[]) => Cell): Function {
  return ([x], { over }) => reduce(seriesOf(x, name), over as string | undefined, act);
}

function overTrue(name: string, act: (values: number[]) => Cell): Function {
  const whole = reducer(name, act);
  return (values, keywords) => (typeof values[0] === "boolean" ? act([Number(values[0])]) : whole(values, keywords));
}

function extremeAt(name: string, isBetter: (a: number, b: number) => boolean): Function {
  return ([x], { over }) => {
    const series = seriesOf(x, name).collapsed();
    if (typeof over !== "string") throw new NoValue(`${name}() needs over=AXIS`);
    if (!series.axes.includes(over)) throw new NoValue(`there is no axis ${over} to go along`);
    const { axes, groups } = series.groups(over);
    const rows = groups.map(({ key, rows: own }): Row => {
      let [at, best] = [own[0][0], number(own[0][1])];
      for (const [place, value] of own) if (isBetter(number(value), best)) [at, best] = [place, number(value)];
      return [key, at];
    });
    return axes.length ? new Series(axes, rows) : rows[0][1];
  };
}

function elementwise(act: (value: number) => number): Function {
  return ([x]) => {
    if (x instanceof Series) return x.map((value) => act(number(value)));
    return x === null ? null : act(number(x));
  };
}

function folded(act: (a: number, b: number) => number): Function {
  return (values) => values.reduce((a, b) => combine(a, b, (x, y) => act(number(x), number(y))));
}

function lookup([x]: Value[], where: Keywords): Value {
  const series = seriesOf(x, "lookup").collapsed();
  const known = new Map(series.rows.map(([key, value]) => [JSON.stringify(key), value]));
  const sources = Object.entries(where).map(([axis, to]) => {
    if (!series.axes.includes(axis)) throw new NoValue(`there is no axis ${axis} to look along`);
    const flat = to instanceof Series ? to.collapsed() : to;
    const cells =
      flat instanceof Series ? new Map(flat.rows.map(([key, value]) => [JSON.stringify(key), value])) : undefined;
    return { axis: series.axes.indexOf(axis), flat, cells };
  });
  const rows: Row[] = [];
  for (const [key] of series.rows) {
    const moved = [...key];
    for (const { axis, flat, cells } of sources) {
      moved[axis] =
        flat instanceof Series
          ? (cells!.get(JSON.stringify(flat.axes.map((name) => key[series.axes.indexOf(name)] ?? null))) ?? null)
          : (flat ?? null);
    }
    const found = known.get(JSON.stringify(moved));
    if (found !== undefined) rows.push([key, found]);
  }
  return new Series(series.axes, rows);
}

type Timed = [time: number, value: Cell][];

function byTime(x: Value, name: string): { axes: string[]; groups: { key: Cell[]; rows: Timed }[] } {
  const series = seriesOf(x, name);
  if (!series.axes.includes("time_s")) throw new NoValue(`${name}() needs samples over time`);
  const { axes, groups } = series.groups("time_s");
  return {
    axes,
    groups: groups.map(({ key, rows }) => ({
      key,
      rows: rows.map(([time, value]): [number, Cell] => [number(time), value]).sort((a, b) => a[0] - b[0]),
    })),
  };
}

/** A series of one value is the value. */
function single(series: Series): Value {
  const flat = series.collapsed();
  return !flat.axes.length && flat.rows.length ? flat.rows[0][1] : flat;
}

function perSeries(name: string, act: (rows: Timed) => Cell): Function {
  return ([x]) => {
    const { axes, groups } = byTime(x, name);
    return single(
      new Series(
        axes,
        groups.map(({ key, rows }): Row => [key, act(rows)]),
      ),
    );
  };
}

function until([x, condition]: Value[]): Value {
  const values = byTime(
    combine(x, condition, (a) => a),
    "until",
  );
  const holds = byTime(
    combine(x, condition, (_, b) => b),
    "until",
  );
  const met = new Map(holds.groups.map(({ key, rows }) => [JSON.stringify(key), rows]));
  const rows = values.groups.map(({ key, rows: own }): Row => {
    const at = met.get(JSON.stringify(key))!.findIndex(([, value]) => value);
    return [key, (at < 0 ? own[own.length - 1] : own[at])[1]];
  });
  return single(new Series(values.axes, rows));
}

/** The largest correlation of x with y delayed by 0 to `lag` seconds. */
function crossCorrelation([x, y, lag]: Value[]): Value {
  const left = byTime(
    combine(x, y, (a) => a),
    "cross_correlation",
  );
  const right = byTime(
    combine(x, y, (_, b) => b),
    "cross_correlation",
  );
  if (lag instanceof Series) throw new NoValue("the lag must be one number of seconds");
  const limit = number(lag);
  const other = new Map(right.groups.map(({ key, rows }) => [JSON.stringify(key), rows]));
  const rows = left.groups.map(({ key, rows: own }): Row => {
    const xs = own.map(([, value]) => number(value));
    const ys = other.get(JSON.stringify(key))!.map(([, value]) => number(value));
    const step = own.length > 1 ? own[1][0] - own[0][0] : 1;
    let best: number | null = null;
    const most = Math.min(Math.trunc(limit / step + 1e-9), xs.length - 2);
    for (let shift = 0; shift <= most; shift++) {
      const r = pearson(xs.slice(shift), ys.slice(0, ys.length - shift));
      if (r !== null && (best === null || r > best)) best = r;
    }
    return [key, best];
  });
  return single(new Series(left.axes, rows));
}

function median(values: number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return (sorted[(sorted.length - 1) >> 1] + sorted[sorted.length >> 1]) / 2;
}

const least = (values: number[]): number => values.reduce((a, b) => (b < a ? b : a));
const most = (values: number[]): number => values.reduce((a, b) => (b > a ? b : a));
const total = (values: number[]): number => values.reduce((a, b) => a + b, 0);

function firstTime(rows: Timed): Cell {
  return rows.find(([, value]) => value)?.[0] ?? Number.POSITIVE_INFINITY;
}

export const FUNCTIONS: { [name: string]: Function } = {
  min: reducer("min", least),
  max: reducer("max", most),
  mean: reducer("mean", mean),
  sum: reducer("sum", fsum),
  median: reducer("median", median),
  points: reducer("points", (values) => values.length),
  count: overTrue("count", total),
  share: overTrue("share", (values) => total(values) / values.length),
  all: overTrue("all", (values) => values.every((value) => value !== 0)),
  any: overTrue("any", (values) => values.some((value) => value !== 0)),
  argmin: extremeAt("argmin", (a, b) => a < b),
  argmax: extremeAt("argmax", (a, b) => a > b),
  seed_mean: ([x]) => seriesOf(x, "seed_mean").collapsed(),
  spearman: ([x, y]) => spearman(...pairs(x, y)),
  correlation: ([x, y]) => pearson(...pairs(x, y)),
  slope: ([y, x]) => {
    const [ys, xs] = pairs(y, x);
    return slope(xs, ys);
  },
  lower95: ([x]) => intervalEnds(seriesOf(x, "lower95"))[0],
  upper95: ([x]) => intervalEnds(seriesOf(x, "upper95"))[1],
  lower95_at_once: ([x]) => intervalEnds(seriesOf(x, "lower95_at_once"), true)[0],
  abs: elementwise(Math.abs),
  log10: elementwise(Math.log10),
  larger: folded(Math.max),
  smaller: folded(Math.min),
  lookup,
  runs: perSeries("runs", (rows) => rows.filter(([, value], i) => value && !(i && rows[i - 1][1])).length),
  time_when: perSeries("time_when", firstTime),
  first: perSeries("first", (rows) => rows[0][1]),
  last: perSeries("last", (rows) => rows[rows.length - 1][1]),
  until,
  cross_correlation: crossCorrelation,
};
