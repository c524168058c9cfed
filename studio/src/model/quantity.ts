/** Quantities as the scenario format writes them. */

const RATES: { [unit: string]: number } = { "bit/s": 1e-6, "kbit/s": 1e-3, "Mbit/s": 1, "Gbit/s": 1e3, "Tbit/s": 1e6 };
const TIMES: { [unit: string]: number } = { ns: 1e-6, us: 1e-3, µs: 1e-3, ms: 1, s: 1e3, min: 6e4, h: 3.6e6 };
const SIZES: { [unit: string]: number } = {
  byte: 1, bytes: 1, B: 1, kB: 1e3, MB: 1e6, GB: 1e9, KiB: 1024, MiB: 1024 ** 2, GiB: 1024 ** 3,
}; // biome-ignore format: a table

function of(units: { [unit: string]: number }, value: unknown): number | undefined {
  if (typeof value !== "string") return undefined;
  const found = /^\s*([0-9.eE+-]+)\s*(\S+)\s*$/.exec(value);
  const factor = found ? units[found[2]] : undefined;
  const number = found ? Number(found[1]) : Number.NaN;
  return factor === undefined || Number.isNaN(number) ? undefined : number * factor;
}

/** A rate in Mbit/s; undefined if it is unlimited or follows a trace. */
export const megabits = (value: unknown): number | undefined => of(RATES, value);

/** A duration in milliseconds. */
export const milliseconds = (value: unknown): number | undefined => of(TIMES, value);

/** A size in octets. */
export const octets = (value: unknown): number | undefined => of(SIZES, value);

/** A number with three significant digits. */
export function figure(value: number | null | undefined, digits = 3): string {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  if (value !== 0 && Math.abs(value) >= 10 ** digits) return Math.round(value).toLocaleString("en");
  return String(Number(value.toPrecision(digits)));
}

/** A share as a percentage. */
export const percent = (share: number): string => `${figure(100 * share, 2)} %`;

function round(value: number): number {
  return Number(value.toPrecision(3));
}

/** A rate as the scenario format writes it. */
export function rateText(mbit: number): string {
  const value = round(mbit);
  if (value >= 1000) return `${round(value / 1000)} Gbit/s`;
  return value >= 1 ? `${value} Mbit/s` : `${round(value * 1000)} kbit/s`;
}

/** A duration as the scenario format writes it. */
export function timeText(ms: number): string {
  const value = round(ms);
  return value >= 1000 ? `${round(value / 1000)} s` : `${value} ms`;
}
