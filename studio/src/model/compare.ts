/** Differences of two scenarios over seeds, with an interval. */
import { interval, mean } from "../study/statistics.ts";

export interface Difference {
  mean: number;
  lower: number;
  upper: number;
}

/** Mean of the paired differences, and its 95 % interval. */
export function difference(first: number[], second: number[]): Difference {
  const all = first.map((value, i) => value - second[i]);
  const [lower, upper] = interval(all) ?? [Number.NaN, Number.NaN];
  return { mean: mean(all), lower, upper };
}
