/** Differences of two scenarios over seeds, with an interval. */

/** 97.5 % quantiles of Student's t by degrees of freedom, from 1. */
const T = [12.71, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.16, 2.145, 2.131, 2.12, 2.11, 2.101, 2.093]; // biome-ignore format: a table

export interface Difference {
  mean: number;
  lower: number;
  upper: number;
}

/** Mean of the paired differences, and its 95 % interval. */
export function difference(first: number[], second: number[]): Difference {
  const all = first.map((value, i) => value - second[i]);
  const mean = all.reduce((sum, one) => sum + one, 0) / all.length;
  if (all.length < 2) return { mean, lower: Number.NaN, upper: Number.NaN };
  const variance = all.reduce((sum, one) => sum + (one - mean) ** 2, 0) / (all.length - 1);
  const half = (T[all.length - 2] ?? 1.96) * Math.sqrt(variance / all.length);
  return { mean, lower: mean - half, upper: mean + half };
}
