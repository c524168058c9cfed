/** Changes that the controls make to a scenario's text. */
import { has, length, type Path, quoted, remove, set, source } from "../toml/edit.ts";
import { milliseconds, rateText, timeText } from "./quantity.ts";
import type { Direction, LinkWay, Resolved } from "./summary.ts";

/** The path of a link's key: the direction's if the text has it, the link's otherwise. */
function place(text: string, resolved: Resolved, { link, way }: LinkWay, key: string): Path {
  const table = resolved.group?.[link] ? "group" : "link";
  const own: Path = [table, link, way, key];
  return has(text, own) ? own : [table, link, key];
}

export function setRate(text: string, resolved: Resolved, at: LinkWay, mbit: number): string {
  return set(text, place(text, resolved, at, "rate"), quoted(rateText(mbit)));
}

export function setDelay(text: string, resolved: Resolved, at: LinkWay, ms: number): string {
  return set(text, place(text, resolved, at, "delay"), quoted(timeText(ms)));
}

/** The table of a direction, with every default. */
export function directionOf(resolved: Resolved, { link, way }: LinkWay): Direction | undefined {
  const table = resolved.link?.[link] ?? resolved.group?.[link];
  return table?.[way] ?? table;
}

function impairments(text: string, resolved: Resolved, at: LinkWay): Path {
  return place(text, resolved, at, "impair");
}

/** Sets the impairment of a kind; `value` is its table, or undefined for none. */
function setImpairment(text: string, resolved: Resolved, at: LinkWay, kind: string, value: string | undefined): string {
  const list = impairments(text, resolved, at);
  const count = length(text, list);
  for (let i = 0; i < count; i++) {
    if (source(text, [...list, i, "kind"]) !== quoted(kind)) continue;
    const isInline = source(text, [...list, i]) !== undefined;
    if (value !== undefined && isInline) return set(text, [...list, i], value);
    if (value === undefined && isInline) return remove(text, [...list, i]);
    return editTable(text, [...list, i], kind, value);
  }
  if (value === undefined) return text;
  return has(text, list) ? set(text, [...list, count], value) : set(text, list, `[${value}]`);
}

/** An impairment whose table has a header: its keys are set one after the other. */
function editTable(text: string, path: Path, kind: string, value: string | undefined): string {
  if (value === undefined)
    return kind === "bernoulli-loss" ? set(text, [...path, "rate"], "0.0") : set(text, [...path, "mean"], '"0 ms"');
  let made = text;
  for (const [, key, one] of value.matchAll(/(\w+) = ("[^"]*"|[^,}\s]+)/g))
    if (key !== "kind") made = set(made, [...path, key], one);
  return made;
}

export function setLoss(text: string, resolved: Resolved, at: LinkWay, rate: number): string {
  const value = rate > 0 ? `{ kind = "bernoulli-loss", rate = ${Number(rate.toPrecision(2))} }` : undefined;
  return setImpairment(text, resolved, at, "bernoulli-loss", value);
}

/** Delays packets at random so that they overtake each other. */
export function setReordering(text: string, resolved: Resolved, at: LinkWay, ms: number): string {
  const value = ms > 0 ? `{ kind = "jitter", mean = ${quoted(timeText(ms))}, reorder = true }` : undefined;
  return setImpairment(text, resolved, at, "jitter", value);
}

export function lossOf(way: Direction | undefined): number {
  return way?.impair?.find(({ kind }) => kind === "bernoulli-loss")?.rate ?? 0;
}

export function reorderingOf(way: Direction | undefined): number {
  const jitter = way?.impair?.find(({ kind, reorder }) => kind === "jitter" && reorder === true);
  return milliseconds(jitter?.mean) ?? 0;
}

/** Sets the kind of a queue. Parameters of the kind before are removed, but the limit and the reordering stay. */
export function setQueueKind(text: string, resolved: Resolved, at: LinkWay, kind: string): string {
  const path = place(text, resolved, at, "queue");
  const limit = source(text, [...path, "limit"]);
  const reorder = source(text, [...path, "reorder"]);
  const parts = [`kind = ${quoted(kind)}`];
  if (limit) parts.push(`limit = ${limit}`);
  if (reorder) parts.push(`reorder = ${reorder}`);
  if (has(text, path) && source(text, path) === undefined) return set(text, [...path, "kind"], quoted(kind));
  return set(text, path, `{ ${parts.join(", ")} }`);
}

export function setQueueLimit(text: string, resolved: Resolved, at: LinkWay, bdp: number): string {
  const path = place(text, resolved, at, "queue");
  const value = quoted(`${Number(bdp.toPrecision(2))} bdp`);
  if (has(text, path)) return set(text, [...path, "limit"], value);
  const kind = directionOf(resolved, at)?.queue?.kind ?? "drop-tail";
  return set(text, path, `{ kind = ${quoted(kind)}, limit = ${value} }`);
}

/** The limit of a queue in bandwidth-delay products, if the text gives it in these. */
export function bdpOf(text: string, resolved: Resolved, at: LinkWay): number | undefined {
  const limit = source(text, [...place(text, resolved, at, "queue"), "limit"]);
  const found = limit && /^"([0-9.]+) bdp"$/.exec(limit);
  return found ? Number(found[1]) : undefined;
}

export function setControl(text: string, flow: string, kind: string): string {
  return set(text, ["flow", flow, "cc"], quoted(kind));
}

export function setCount(text: string, flow: string, count: number): string {
  const path: Path = ["flow", flow, "count"];
  return count === 1 && has(text, path) ? remove(text, path) : set(text, path, String(count));
}

export function setDuration(text: string, seconds: number): string {
  return set(text, ["duration"], quoted(`${seconds} s`));
}
