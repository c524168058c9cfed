/** Differences of two scenarios over seeds, with an interval. */
import { interval, mean } from "../study/statistics.ts";

/** Most differences that the sentence names. */
const MOST_CHANGES = 4;

export interface Difference {
  mean: number;
  lower: number;
  upper: number;
}

/** A line of a scenario that differs. A side without the line is empty. */
export interface ChangedLine {
  /** The header of the line's table; "" before the first. */
  table: string;
  before: string;
  after: string;
}

/** The lines of two scenarios that differ, without comments and titles; lines with the same key are paired. */
export function changedLines(before: string, after: string): ChangedLine[] {
  const [old, now] = [before, after].map(linesOf);
  const made: ChangedLine[] = [];
  for (const [place, { table, line }] of old) {
    const other = now.get(place)?.line ?? "";
    if (other !== line) made.push({ table, before: line, after: other });
  }
  for (const [place, { table, line }] of now) {
    if (!old.has(place)) made.push({ table, before: "", after: line });
  }
  return made;
}

/** The lines of a scenario by table, key and number of the occurrence. */
function linesOf(text: string): Map<string, { table: string; line: string }> {
  const made = new Map<string, { table: string; line: string }>();
  let table = "";
  for (const raw of text.split("\n")) {
    const line = raw.trim();
    if (!line || line.startsWith("#") || (!table && /^title\s*=/.test(line))) continue;
    if (/^\[.*\]$/.test(line) && !line.includes("=")) table = line;
    const key = `${table} ${/^[^=]*/.exec(line)?.[0].trim()}`;
    let place = key;
    for (let n = 1; made.has(place); n++) place = `${key} ${n}`;
    made.set(place, { table, line });
  }
  return made;
}

/** The differences of two scenarios in one sentence; "" if there is none. */
export function changedWords(before: string, after: string): string {
  const all = changedLines(before, after);
  if (all.length > MOST_CHANGES) return `Another scenario: ${all.length} lines differ.`;
  const words = all.map(({ table, before: old, after: now }) => {
    const place = table && old !== table && now !== table ? `${table} ` : "";
    if (!old) return `${place}${now} added`;
    return now ? `${place}${now} instead of ${old.replace(/^[^=]*=\s*/, "")}` : `${place}${old} removed`;
  });
  return words.length ? `${words.join("; ")}.` : "";
}

/** Mean of the paired differences, and its 95 % interval. */
export function difference(first: number[], second: number[]): Difference {
  const all = first.map((value, i) => value - second[i]);
  const [lower, upper] = interval(all) ?? [Number.NaN, Number.NaN];
  return { mean: mean(all), lower, upper };
}
