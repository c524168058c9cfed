/** Additions to a scenario and removals from it, as the drawing offers them. */
import {
  addTable,
  has,
  length,
  type Path,
  quoted,
  remove,
  removeItem,
  removeTable,
  set,
  source,
} from "../toml/edit.ts";
import { directionOf } from "./knobs.ts";
import type { LinkWay, Resolved } from "./summary.ts";

/** Impairments with values to begin with. */
export const IMPAIRMENTS: { [kind: string]: string } = {
  "bernoulli-loss": "rate = 0.001",
  "gilbert-elliott": "loss_rate = 0.01, mean_burst = 5.0",
  jitter: 'mean = "2 ms"',
  duplicate: "rate = 0.001",
  corrupt: "rate = 0.001",
};

/** A name that a table does not have: `stem`, `stem2`, `stem3` and so on. */
export function fresh(taken: Iterable<string>, stem: string): string {
  const all = new Set(taken);
  for (let i = 1; ; i++) {
    const name = i === 1 ? stem : `${stem}${i}`;
    if (!all.has(name)) return name;
  }
}

export function nodesOf(resolved: Resolved): string[] {
  return [...new Set(Object.values({ ...resolved.link, ...resolved.group }).flatMap(({ between }) => between))];
}

/** The links between two nodes. */
function between(resolved: Resolved, from: string, to: string): string[] {
  const links = Object.entries(resolved.link ?? {});
  return links.filter(([, one]) => one.between.includes(from) && one.between.includes(to)).map(([name]) => name);
}

/** The gateway between two nodes. */
function gatewayOf(resolved: Resolved, from: string, to: string): string | undefined {
  const found = Object.entries(resolved.gateway ?? {}).find(
    ([, one]) => one.between.includes(from) && one.between.includes(to),
  );
  return found?.[0];
}

/** A link. A second one between two nodes needs a gateway, which shares the packets out. */
export function addLink(text: string, resolved: Resolved, from: string, to: string): string {
  const name = fresh(Object.keys({ ...resolved.link, ...resolved.group }), "link");
  const made = addTable(
    text,
    ["link", name],
    [
      `between = [${quoted(from)}, ${quoted(to)}]`,
      'rate = "20 Mbit/s"',
      'delay = "10 ms"',
      'queue = { kind = "drop-tail", limit = "1 bdp" }',
    ],
  );
  const routes = [...between(resolved, from, to), name];
  if (routes.length === 1) return made;
  const list = `[${routes.map(quoted).join(", ")}]`;
  const gateway = gatewayOf(resolved, from, to);
  if (gateway) return set(made, ["gateway", gateway, "routes"], list);
  return addTable(
    made,
    ["gateway", fresh(Object.keys(resolved.gateway ?? {}), "gateway")],
    [`between = [${quoted(from)}, ${quoted(to)}]`, `routes = ${list}`, 'kind = "tunnel"'],
  );
}

/** A host with a link to a node. */
export function addHost(text: string, resolved: Resolved, beside: string): string {
  return addLink(text, resolved, beside, fresh(nodesOf(resolved), "host"));
}

export function addFlow(text: string, resolved: Resolved, from: string, to: string): string {
  const name = fresh(Object.keys(resolved.flow ?? {}), "flow");
  return addTable(text, ["flow", name], [`from = ${quoted(from)}`, `to = ${quoted(to)}`, 'cc = "cubic"']);
}

/** A tunnel over the link between two nodes and a second one; undefined without a link, or with a gateway. */
export function addGateway(text: string, resolved: Resolved, from: string, to: string): string | undefined {
  if (gatewayOf(resolved, from, to) || !between(resolved, from, to).length) return undefined;
  return addLink(text, resolved, from, to);
}

export function addImpairment(text: string, resolved: Resolved, { link, way }: LinkWay, kind: string): string {
  const table = resolved.group?.[link] ? "group" : "link";
  const own = [table, link, way, "impair"];
  const path = has(text, own) ? own : [table, link, "impair"];
  const value = `{ kind = ${quoted(kind)}, ${IMPAIRMENTS[kind]} }`;
  return has(text, path) ? set(text, [...path, length(text, path)], value) : set(text, path, `[${value}]`);
}

export function removeLink(text: string, resolved: Resolved, link: string): string {
  return removeTable(text, [resolved.group?.[link] ? "group" : "link", link]);
}

export function removeFlow(text: string, flow: string): string {
  return removeTable(text, ["flow", flow]);
}

/** An impairment of a link's direction, with the parameters that a field can hold. */
export interface Impairment {
  kind: string;
  parameters: [name: string, value: string | number][];
}

/** The impairments of a link's direction. */
export function impairmentsOf(resolved: Resolved, at: LinkWay): Impairment[] {
  return (directionOf(resolved, at)?.impair ?? []).map(({ kind, ...rest }) => ({
    kind,
    parameters: Object.entries(rest).filter(
      (one): one is [string, string | number] => typeof one[1] === "string" || typeof one[1] === "number",
    ),
  }));
}

function impairment(text: string, resolved: Resolved, { link, way }: LinkWay, index: number): Path {
  const table = resolved.group?.[link] ? "group" : "link";
  const own: Path = [table, link, way, "impair"];
  return [...(has(text, own) ? own : [table, link, "impair"]), index];
}

/** Sets a parameter of the impairment at an index: a number, or a quantity with its unit. */
export function setParameter(
  text: string,
  resolved: Resolved,
  at: LinkWay,
  index: number,
  name: string,
  value: string,
): string {
  const path = impairment(text, resolved, at, index);
  const isNumber = value.trim() !== "" && Number.isFinite(Number(value));
  return set(text, [...path, name], isNumber ? String(Number(value)) : quoted(value));
}

export function removeImpairment(text: string, resolved: Resolved, at: LinkWay, index: number): string {
  const path = impairment(text, resolved, at, index);
  return source(text, path) === undefined ? removeItem(text, path.slice(0, -1), index) : remove(text, path);
}
