/** Statistics of claims, as in python/anabranch/statistics. */

/** The sum, rounded once: partial sums without overlap keep the rest of each addition (Shewchuk, 1997). */
export function fsum(values: Iterable<number>): number {
  const parts: number[] = [];
  let special = 0;
  for (let x of values) {
    if (!Number.isFinite(x)) {
      special += x;
      continue;
    }
    let kept = 0;
    for (let y of parts) {
      if (Math.abs(x) < Math.abs(y)) [x, y] = [y, x];
      const high = x + y;
      const low = y - (high - x);
      if (low) parts[kept++] = low;
      x = high;
    }
    parts.length = kept;
    parts.push(x);
  }
  if (special || Number.isNaN(special)) return special;
  let i = parts.length - 1;
  if (i < 0) return 0;
  let high = parts[i];
  let low = 0;
  while (i > 0) {
    const x = high;
    const y = parts[--i];
    high = x + y;
    low = y - (high - x);
    if (low) break;
  }
  // Half of a unit in the last place is rounded by the sign of the next part.
  if (i > 0 && low && Math.sign(low) === Math.sign(parts[i - 1])) {
    const y = low * 2;
    const x = high + y;
    if (y === x - high) high = x;
  }
  return high;
}

export const mean = (values: number[]): number => fsum(values) / values.length;

/** The two-sided Student-t interval of the mean; undefined for one value. */
export function interval(values: number[], level = 0.95): [lower: number, upper: number] | undefined {
  const n = values.length;
  if (n < 2) return undefined;
  const middle = mean(values);
  const variance = fsum(values.map((value) => (value - middle) ** 2)) / (n - 1);
  const half = tQuantile(0.5 + level / 2, n - 1) * Math.sqrt(variance / n);
  return [middle - half, middle + half];
}

const quantiles = new Map<string, number>();

/** The `p` quantile (0.5 < p < 1) of Student's t distribution. */
export function tQuantile(p: number, degrees: number): number {
  const name = `${p} ${degrees}`;
  const known = quantiles.get(name);
  if (known !== undefined) return known;
  let low = 0;
  let high = 1;
  while (cdf(high, degrees) < p) high *= 2;
  for (let i = 0; i < 200; i++) {
    const middle = (low + high) / 2;
    if (cdf(middle, degrees) < p) low = middle;
    else high = middle;
  }
  quantiles.set(name, (low + high) / 2);
  return (low + high) / 2;
}

function cdf(t: number, degrees: number): number {
  const x = degrees / (degrees + t * t);
  return 1 - 0.5 * beta(x, degrees / 2);
}

/** The regularised incomplete beta function I_x(a, 1/2). */
function beta(x: number, a: number): number {
  if (x <= 0) return 0;
  if (x >= 1) return 1;
  const b = 0.5;
  // Γ(a + 1/2) ÷ (Γ(a) Γ(1/2)) x^a (1 − x)^(1/2)
  const front = (gammaRatio(a) / Math.sqrt(Math.PI)) * Math.exp(a * Math.log(x)) * Math.sqrt(1 - x);
  if (x < (a + 1) / (a + b + 2)) return (front * fraction(x, a, b)) / a;
  return 1 - (front * fraction(1 - x, b, a)) / b;
}

/** Γ(a + 1/2) ÷ Γ(a). */
function gammaRatio(a: number): number {
  // The recursion reaches arguments for which the asymptotic series is exact in double precision.
  let factor = 1;
  let at = a;
  while (at < 40) {
    factor *= at / (at + 0.5);
    at += 1;
  }
  const z = 1 / at;
  const series = 1 + z * (-1 / 8 + z * (1 / 128 + z * (5 / 1024 + z * (-21 / 32768 + z * (-399 / 262144)))));
  return factor * Math.sqrt(at) * series;
}

/** The continued fraction of the incomplete beta function (Lentz; NIST DLMF 8.17.22). */
function fraction(x: number, a: number, b: number): number {
  const tiny = 1e-300;
  const away = (value: number) => (Math.abs(value) > tiny ? value : tiny);
  let c = 1;
  let d = 1 / Math.max(1 - ((a + b) * x) / (a + 1), tiny);
  let result = d;
  for (let m = 1; m < 500; m++) {
    const even = (m * (b - m) * x) / ((a + 2 * m - 1) * (a + 2 * m));
    d = 1 / away(1 + even * d);
    c = away(1 + even / c);
    result *= c * d;
    const odd = (-(a + m) * (a + b + m) * x) / ((a + 2 * m) * (a + 2 * m + 1));
    d = 1 / away(1 + odd * d);
    c = away(1 + odd / c);
    const step = c * d;
    result *= step;
    if (Math.abs(step - 1) < 1e-15) break;
  }
  return result;
}

/** Pearson's correlation; null for fewer than two pairs or a constant side. */
export function pearson(x: number[], y: number[]): number | null {
  if (x.length < 2) return null;
  const [mx, my] = [mean(x), mean(y)];
  const sxy = fsum(x.map((value, i) => (value - mx) * (y[i] - my)));
  const sxx = fsum(x.map((value) => (value - mx) ** 2));
  const syy = fsum(y.map((value) => (value - my) ** 2));
  return sxx === 0 || syy === 0 ? null : sxy / Math.sqrt(sxx * syy);
}

/** Spearman's rank correlation; ties share their mean rank. */
export function spearman(x: number[], y: number[]): number | null {
  return pearson(ranks(x), ranks(y));
}

function ranks(values: number[]): number[] {
  const order = values.map((_, i) => i).sort((a, b) => values[a] - values[b]);
  const made = new Array<number>(values.length).fill(0);
  for (let i = 0; i < order.length; ) {
    let j = i;
    while (j + 1 < order.length && values[order[j + 1]] === values[order[i]]) j++;
    for (let k = i; k <= j; k++) made[order[k]] = (i + j) / 2 + 1;
    i = j + 1;
  }
  return made;
}

/** The least-squares slope of y against x; null if x is constant. */
export function slope(x: number[], y: number[]): number | null {
  if (x.length < 2) return null;
  const [mx, my] = [mean(x), mean(y)];
  const sxx = fsum(x.map((value) => (value - mx) ** 2));
  return sxx === 0 ? null : fsum(x.map((value, i) => (value - mx) * (y[i] - my))) / sxx;
}

/** The max-min fair allocation of a capacity (Bertsekas and Gallager, Data Networks, §6.5.2). */
function maxMin(capacity: number, demands: number[]): number[] {
  const shares = new Array<number>(demands.length).fill(0);
  let left = Math.max(capacity, 0);
  const order = demands.map((_, i) => i).sort((a, b) => demands[a] - demands[b]);
  order.forEach((i, n) => {
    shares[i] = Math.min(demands[i], left / (order.length - n));
    left -= shares[i];
  });
  return shares;
}

/** Each flow's goodput over its fair share. A flow whose demand is NaN is not judged, and lowers the capacity. */
export function ofMaxMin(goodputs: Map<string, number>, capacity: number, demands: Map<string, number>): number[] {
  const demand = (name: string) => demands.get(name) ?? Number.POSITIVE_INFINITY;
  const judged = [...goodputs.keys()].filter((name) => !Number.isNaN(demand(name)));
  const others = fsum([...goodputs].filter(([name]) => !judged.includes(name)).map(([, value]) => value));
  const shares = maxMin(capacity - others, judged.map(demand));
  return judged.flatMap((name, i) => (shares[i] > 0 ? [goodputs.get(name)! / shares[i]] : []));
}

/** Jain's index; null if all values are 0. */
export function jain(values: number[]): number | null {
  const squares = fsum(values.map((value) => value * value));
  return squares > 0 ? fsum(values) ** 2 / (values.length * squares) : null;
}
