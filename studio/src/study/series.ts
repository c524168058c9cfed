/** Figures over a grid: one value per point of some axes, as in python/anabranch/study/series.py. */
import { fsum, interval } from "./statistics.ts";

export type Cell = number | boolean | string | null;

/** A figure that a claim needs does not exist, so that the claim cannot be judged. */
export class NoValue extends Error {}

export type Row = [key: Cell[], value: Cell];

const keyOf = (cells: Cell[]): string => JSON.stringify(cells);

export class Series {
  constructor(
    readonly axes: string[],
    readonly rows: Row[],
  ) {}

  map(act: (value: Cell) => Cell): Series {
    return new Series(
      this.axes,
      this.rows.map(([key, value]): Row => [key, value === null ? null : act(value)]),
    );
  }

  /** The points for which `test` is true. */
  keep(test: (at: (axis: string) => Cell) => boolean): Series {
    const places = new Map(this.axes.map((axis, i) => [axis, i]));
    return new Series(
      this.axes,
      this.rows.filter(([key]) => test((axis) => key[places.get(axis)!])),
    );
  }

  /** Drops an axis with one coordinate left. */
  drop(axis: string): Series {
    const at = this.axes.indexOf(axis);
    if (new Set(this.rows.map(([key]) => key[at])).size > 1) throw new NoValue(`several values of ${axis} are left`);
    const rest = (list: Cell[]) => list.filter((_, i) => i !== at);
    return new Series(
      rest(this.axes) as string[],
      this.rows.map(([key, value]): Row => [rest(key), value]),
    );
  }

  /** Coordinate on `over` and value, in groups by the other axes. */
  groups(over: string): { axes: string[]; groups: { key: Cell[]; rows: [at: Cell, value: Cell][] }[] } {
    const at = this.axes.indexOf(over);
    const found = new Map<string, { key: Cell[]; rows: [Cell, Cell][] }>();
    for (const [key, value] of this.rows) {
      const rest = key.filter((_, i) => i !== at);
      const name = keyOf(rest);
      let group = found.get(name);
      if (!group) {
        group = { key: rest, rows: [] };
        found.set(name, group);
      }
      group.rows.push([key[at], value]);
    }
    return { axes: this.axes.filter((_, i) => i !== at), groups: [...found.values()] };
  }

  /** The mean over seeds; missing if the value of a seed is missing. */
  collapsed(): Series {
    if (!this.axes.includes("seed")) return this;
    const { axes, groups } = this.groups("seed");
    const rows: Row[] = [];
    for (const { key, rows: own } of groups) {
      const values = own.map(([, value]) => value);
      if (values.includes(null)) rows.push([key, null]);
      else if (values.length === 1) rows.push([key, values[0]]);
      else if (values.some((value) => typeof value === "string")) return this;
      else rows.push([key, fsum(values.map(number)) / values.length]);
    }
    return new Series(axes, rows);
  }

  /** All values as numbers. */
  numbers(): number[] {
    if (!this.rows.length) throw new NoValue("no point of the grid fits");
    return this.rows.map(([key, value]) => {
      if (value === null) throw new NoValue(`no value${at(this.axes, key)}`);
      return number(value);
    });
  }
}

export type Value = Series | Cell;

export function number(value: Cell): number {
  if (value === null) throw new NoValue("no value");
  if (typeof value === "string") throw new NoValue(`"${value}" is not a number`);
  return Number(value);
}

function at(axes: string[], key: Cell[]): string {
  return axes.length ? ` at ${axes.map((axis, i) => `${axis} ${key[i]}`).join(", ")}` : "";
}

/** `act` of both, point by point on their common axes; missing if one is missing. */
export function combine(a: Value, b: Value, act: (a: Exclude<Cell, null>, b: Exclude<Cell, null>) => Cell): Value {
  const both = (x: Cell, y: Cell): Cell => (x === null || y === null ? null : act(x, y));
  if (!(a instanceof Series)) {
    if (!(b instanceof Series)) return both(a, b);
    return new Series(
      b.axes,
      b.rows.map(([key, value]): Row => [key, both(a, value)]),
    );
  }
  if (!(b instanceof Series)) {
    return new Series(
      a.axes,
      a.rows.map(([key, value]): Row => [key, both(value, b)]),
    );
  }
  const shared = a.axes.filter((axis) => b.axes.includes(axis));
  const extra = b.axes.filter((axis) => !a.axes.includes(axis));
  const inA = shared.map((axis) => a.axes.indexOf(axis));
  const inB = shared.map((axis) => b.axes.indexOf(axis));
  const rest = extra.map((axis) => b.axes.indexOf(axis));
  const found = new Map<string, Row[]>();
  for (const [key, value] of b.rows) {
    const name = keyOf(inB.map((i) => key[i]));
    const more: Row = [rest.map((i) => key[i]), value];
    const list = found.get(name);
    if (list) list.push(more);
    else found.set(name, [more]);
  }
  const rows: Row[] = [];
  for (const [key, value] of a.rows) {
    for (const [more, other] of found.get(keyOf(inA.map((i) => key[i]))) ?? []) {
      rows.push([[...key, ...more], both(value, other)]);
    }
  }
  if (!rows.length && a.rows.length && b.rows.length) {
    throw new NoValue(`no common point of ${named(a.axes)} and ${named(b.axes)}`);
  }
  return new Series([...a.axes, ...extra], rows);
}

/** `act` of all values (means over seeds), or of those along one axis. */
export function reduce(series: Series, over: string | undefined, act: (values: number[]) => Cell): Value {
  const flat = series.collapsed();
  if (over === undefined) return act(flat.numbers());
  if (!flat.axes.includes(over)) throw new NoValue(`there is no axis ${over} to go along`);
  const { axes, groups } = flat.groups(over);
  return new Series(
    axes,
    groups.map(({ key, rows }): Row => [key, act(rows.map(([, value]) => number(value)))]),
  );
}

/** Ends of the 95 % interval over seeds at each point; `atOnce`: the intervals of all points hold jointly. */
export function intervalEnds(series: Series, atOnce = false): [lower: Series, upper: Series] {
  const few = "an interval needs at least 2 seeds per point";
  if (!series.axes.includes("seed")) throw new NoValue(few);
  const { axes, groups } = series.groups("seed");
  const level = 1 - 0.05 / (atOnce ? groups.length : 1);
  const lower: Row[] = [];
  const upper: Row[] = [];
  for (const { key, rows } of groups) {
    const found = interval(
      rows.map(([, value]) => number(value)),
      level,
    );
    if (!found) throw new NoValue(few);
    lower.push([key, found[0]]);
    upper.push([key, found[1]]);
  }
  return [new Series(axes, lower), new Series(axes, upper)];
}

/** Values of both at their common points, as means over seeds. */
export function pairs(a: Value, b: Value): [number[], number[]] {
  if (!(a instanceof Series) || !(b instanceof Series)) throw new NoValue("two series over the grid were expected");
  const left = combine(a.collapsed(), b.collapsed(), (x) => x) as Series;
  const right = combine(a.collapsed(), b.collapsed(), (_, y) => y) as Series;
  return [left.numbers(), right.numbers()];
}

const named = (axes: string[]): string => (axes.length ? `(${axes.join(", ")})` : "a single value");
