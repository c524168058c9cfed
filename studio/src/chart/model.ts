/** A chart over time or another axis, without a drawing. */

export interface Series {
  label: string;
  /** Ascending; NaN is allowed in `y` alone. */
  x: Float64Array;
  y: Float64Array;
  kind: "line" | "step" | "points" | "marks" | "crosses";
  /** Number of the colour in the palette. */
  colour: number;
  dash?: number[];
  width?: number;
  /** A dot at each value of a line. */
  hasDots?: boolean;
  /** Drawn, and off at first. */
  isHidden?: boolean;
  /** Points that would cover the chart are thinned, and their opacity shows how many there are. */
  isThinned?: boolean;
}

/** A place of a chart. */
export interface Place {
  x: number;
  y: number;
}

export interface Chart {
  name: string;
  title: string;
  unit: string;
  series: Series[];
  isTall?: boolean;
  /** The vertical axis fits the visible part instead of beginning at 0. */
  fits?: boolean;
  about?: string;
  /** A place with a ring. */
  ring?: Place;
  /** The horizontal axis; without it the time, which all such charts share. */
  axis?: Axis;
}

/** A horizontal axis other than the time. */
export interface Axis {
  label: string;
  /** The values of the series are decimal logarithms. */
  isLog?: boolean;
}

/** A place on the horizontal axis for people. */
export function placeText(chart: Chart, at: number, digits = 4): string {
  const value = chart.axis?.isLog ? 10 ** at : at;
  return String(Number(value.toPrecision(digits)));
}

/** A part of an axis. */
export interface Range {
  min: number;
  max: number;
}

/** Index of the first value at or after `t`. */
export function firstAt(x: Float64Array, t: number): number {
  let low = 0;
  let high = x.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (x[middle] < t) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The value in force at `t`: the last one at or before it. */
export function valueAt(series: Series, t: number): number {
  const after = firstAt(series.x, t);
  const i = series.x[after] === t ? after : after - 1;
  return i < 0 ? Number.NaN : series.y[i];
}

/** Lowest and highest value of the visible part; undefined if nothing is visible. */
export function extent(series: Series, range: Range): Range | undefined {
  const isLine = series.kind === "line" || series.kind === "step";
  const from = Math.max(firstAt(series.x, range.min) - (isLine ? 1 : 0), 0);
  const to = firstAt(series.x, range.max + 1e-12);
  let min = Number.POSITIVE_INFINITY;
  let max = Number.NEGATIVE_INFINITY;
  const { y } = series;
  for (let i = from; i < to; i++) {
    const value = y[i];
    if (value < min) min = value;
    if (value > max) max = value;
  }
  return min <= max ? { min, max } : undefined;
}
