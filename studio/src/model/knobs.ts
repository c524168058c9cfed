/** Changes that the controls make to a scenario's text. */
import { has, length, type Path, quoted, remove, set, source } from "../toml/edit.ts";
import { milliseconds, rateText, timeText } from "./quantity.ts";
import type { Direction, LinkWay, Resolved } from "./summary.ts";

/** The path of a link's key: in the direction's table if the directions differ or the text has it, else in the link's. */
function place(text: string, resolved: Resolved, { link, way }: LinkWay, key: string): Path {
  const table = resolved.group?.[link] ? "group" : "link";
  const own: Path = [table, link, way, key];
  return has(text, own) || differs(resolved, link, key) ? own : [table, link, key];
}

/** Whether the directions of a link differ, in one key or at all. */
export function differs(resolved: Resolved, link: string, key?: string): boolean {
  const table = resolved.link?.[link] ?? resolved.group?.[link];
  const part = (way: Direction | undefined) => JSON.stringify((key ? way?.[key as keyof Direction] : way) ?? null);
  return part(table?.forward) !== part(table?.reverse);
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

/** Sets keys of the impairment of a kind, adds it if there is none, or removes it. */
function setImpairment(
  text: string,
  resolved: Resolved,
  at: LinkWay,
  kind: string,
  keys: { [key: string]: string } | undefined,
): string {
  const list = impairments(text, resolved, at);
  const count = length(text, list);
  for (let i = 0; i < count; i++) {
    if (source(text, [...list, i, "kind"]) !== quoted(kind)) continue;
    if (!keys)
      return source(text, [...list, i]) === undefined ? silenced(text, [...list, i], kind) : remove(text, [...list, i]);
    return Object.entries(keys).reduce((made, [key, value]) => set(made, [...list, i, key], value), text);
  }
  if (!keys) return text;
  const value = `{ kind = ${quoted(kind)}, ${Object.entries(keys)
    .map(([key, one]) => `${key} = ${one}`)
    .join(", ")} }`;
  if (has(text, list)) return set(text, [...list, count], value);
  // The text names a ready path, whose own impairments stay.
  const before = (directionOf(resolved, at)?.impair ?? []).map(inline);
  return set(text, list, `[${[...before, value].join(", ")}]`);
}

/** A table of the resolved scenario as an inline table. */
function inline(table: { [key: string]: unknown }): string {
  const value = (one: unknown): string => {
    if (Array.isArray(one)) return `[${one.map(value).join(", ")}]`;
    if (one && typeof one === "object") return inline(one as { [key: string]: unknown });
    return typeof one === "string" ? quoted(one) : String(one);
  };
  return `{ ${Object.entries(table)
    .filter(([, one]) => one !== null)
    .map(([key, one]) => `${key} = ${value(one)}`)
    .join(", ")} }`;
}

/** An impairment whose table has a header cannot be removed alone: it does nothing. */
function silenced(text: string, path: Path, kind: string): string {
  return kind === "bernoulli-loss" ? set(text, [...path, "rate"], "0.0") : set(text, [...path, "mean"], '"0 ms"');
}

export function setLoss(text: string, resolved: Resolved, at: LinkWay, rate: number): string {
  const keys = rate > 0 ? { rate: String(Number(rate.toPrecision(2))) } : undefined;
  return setImpairment(text, resolved, at, "bernoulli-loss", keys);
}

/** Delays packets at random so that they overtake each other. */
export function setReordering(text: string, resolved: Resolved, at: LinkWay, ms: number): string {
  const keys = ms > 0 ? { mean: quoted(timeText(ms)), reorder: "true" } : undefined;
  return setImpairment(text, resolved, at, "jitter", keys);
}

export function lossOf(way: Direction | undefined): number {
  return way?.impair?.find(({ kind }) => kind === "bernoulli-loss")?.rate ?? 0;
}

const OTHER_LOSSES = ["gilbert-elliott", "four-state-loss", "loss-list"];

/** The kind of an impairment that loses packets without a rate that a control could set. */
export function otherLossOf(way: Direction | undefined): string | undefined {
  if (lossOf(way)) return undefined;
  return way?.impair?.find(({ kind }) => OTHER_LOSSES.includes(kind))?.kind;
}

/** Whether packets overtake each other by delays from a table, which have no mean to set. */
export function hasDelayTable(way: Direction | undefined): boolean {
  return way?.impair?.some(({ kind, distribution }) => kind === "jitter" && distribution === "table") ?? false;
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
