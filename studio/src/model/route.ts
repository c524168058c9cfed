/** The route of a flow's data, and the hop of it that limits the flow. */
import { megabits } from "./quantity.ts";
import {
  type FlowTable,
  type LinkTable,
  type LinkWay,
  type Resolved,
  type Summary,
  tableOf,
  type Way,
} from "./summary.ts";

/** A hop of a route: one direction of a link, or of each link of a gateway. */
export interface Hop {
  /** The name of the link or of the gateway. */
  name: string;
  isGateway: boolean;
  ways: LinkWay[];
}

const linksOf = (resolved: Resolved): { [name: string]: LinkTable } => ({ ...resolved.link, ...resolved.group });

/** The rate of a direction in Mbit/s; infinite if it is unlimited or follows a trace. */
export function capacityOf(link: LinkTable | undefined, way: Way): number {
  const service = link?.[way]?.service ?? link?.service;
  if (service?.file) return Number.POSITIVE_INFINITY;
  return megabits(link?.[way]?.rate ?? link?.rate) ?? Number.POSITIVE_INFINITY;
}

/** The hops of a flow's data in their order. */
export function hopsOf(resolved: Resolved, flow: FlowTable | undefined): Hop[] {
  const links = linksOf(resolved);
  const hops: Hop[] = [];
  let at = flow?.from;
  for (const name of flow?.route ?? []) {
    const gateway = resolved.gateway?.[name];
    const ends = gateway?.between ?? links[name]?.between;
    if (!ends) continue;
    const start = at === ends[1] ? ends[1] : ends[0];
    at = start === ends[0] ? ends[1] : ends[0];
    const names = gateway ? used(gateway) : [name];
    const wayOf = (link: string): Way => (links[link]?.between[0] === start ? "forward" : "reverse");
    hops.push({
      name,
      isGateway: gateway !== undefined,
      ways: names.filter((link) => links[link]).map((link) => ({ link, way: wayOf(link) })),
    });
  }
  return hops.filter(({ ways }) => ways.length);
}

/** The hops of a flow's acknowledgments in their order. */
export function returnHopsOf(resolved: Resolved, flow: FlowTable | undefined): Hop[] {
  if (!flow) return [];
  const route = flow.return_route ?? [...(flow.route ?? [])].reverse();
  return hopsOf(resolved, { ...flow, from: flow.to, to: flow.from, route });
}

/** The direction on the route of a flow's acknowledgments whose queue delays most, and its 95th percentile in ms. */
export function returnQueue(
  resolved: Resolved,
  summary: Summary,
  flow: string,
): { at: LinkWay; delay: number } | undefined {
  const delayOf = ({ link, way }: LinkWay) => summary.links[link]?.[way].p95_queue_delay_ms ?? 0;
  const ways = returnHopsOf(resolved, tableOf(resolved, flow)).flatMap((hop) => hop.ways);
  return ways
    .map((at) => ({ at, delay: delayOf(at) }))
    .reduce<{ at: LinkWay; delay: number } | undefined>((a, b) => (a && a.delay >= b.delay ? a : b), undefined);
}

/** The links of a gateway that carry data while all of them work. */
function used({ routes = [], policies = {} }: { routes?: string[]; policies?: { [link: string]: string } }): string[] {
  const active = routes.filter((link) => policies[link] !== "backup");
  return active.length ? active : routes;
}

/** What limits a flow. */
export interface Limit {
  hop: Hop;
  /** The direction of a link: of a gateway's links, the one with the most load. */
  at: LinkWay;
  /** The rate of the hop in Mbit/s; infinite if it is unlimited, follows a trace or changes during the run. */
  capacity: number;
  /** The share of the hop's capacity that is used; 0 without a summary. */
  utilization: number;
}

/** A hop counts as full from this utilization on. */
export const FULL = 0.95;

/** The hop that limits a flow: the fullest if one is full, else the slowest. */
export function limitOf(resolved: Resolved, summary: Summary | undefined, flow: string): Limit | undefined {
  const links = linksOf(resolved);
  const found = ({ link, way }: LinkWay) => summary?.links[link]?.[way];
  const load = (at: LinkWay) => found(at)?.utilization ?? 0;
  const limits = hopsOf(resolved, tableOf(resolved, flow)).map((hop): Limit => {
    const rates = hop.ways.map(({ link, way }) =>
      isSteady(resolved, link) ? capacityOf(links[link], way) : Number.POSITIVE_INFINITY,
    );
    const capacity = rates.reduce((sum, one) => sum + one, 0);
    const used = hop.ways.reduce((sum, at, i) => sum + load(at) * rates[i], 0);
    const most = hop.ways.reduce((a, b) => (load(b) > load(a) ? b : a));
    return {
      hop,
      at: most,
      capacity,
      utilization: Number.isFinite(capacity) && capacity > 0 ? used / capacity : Math.min(...hop.ways.map(load)),
    };
  });
  if (!limits.length) return undefined;
  const fullest = limits.reduce((a, b) => (b.utilization > a.utilization ? b : a));
  if (fullest.utilization >= FULL) return fullest;
  // Of equal rates, the hop with more packets dropped or waiting limits.
  const waits = ({ at }: Limit) => (found(at)?.mean_queue_packets ?? 0) + (found(at)?.dropped_packets ?? 0);
  return limits.reduce((a, b) =>
    b.capacity < a.capacity || (b.capacity === a.capacity && waits(b) > waits(a)) ? b : a,
  );
}

/** The highest rate of a limiting hop in Mbit/s, with every rate that an event sets. */
export function mostOf(resolved: Resolved, { hop }: Limit): number {
  const links = linksOf(resolved);
  const set = (resolved.at ?? []).flatMap((one) => Object.entries(one.set ?? {}));
  return hop.ways.reduce((sum, { link, way }) => {
    const rates = set
      .filter(([key]) => key.endsWith(".rate") && key.split(".")[1] === link)
      .map(([, value]) => megabits(value) ?? Number.POSITIVE_INFINITY);
    return sum + Math.max(capacityOf(links[link], way), ...rates);
  }, 0);
}

/** Whether no event of the scenario changes the rate of a link, or takes it down. */
function isSteady({ at = [] }: Resolved, link: string): boolean {
  return !at.some(({ set = {} }) =>
    Object.keys(set).some(
      (key) => /^(?:link|group)\./.test(key) && key.split(".")[1] === link && /\.(?:rate|service|up)\b/.test(key),
    ),
  );
}

/** The direction of a link that limits a flow, or the flow with the most goodput. */
export function bottleneck(resolved: Resolved, summary: Summary | undefined, flow?: string): LinkWay | undefined {
  const name = flow ?? greatest(resolved, summary);
  return name === undefined ? undefined : limitOf(resolved, summary, name)?.at;
}

function greatest(resolved: Resolved, summary: Summary | undefined): string | undefined {
  if (!summary) return Object.keys(resolved.flow ?? {})[0];
  const rate = (name: string) => summary.flows[name].goodput_mbit_s ?? 0;
  return Object.keys(summary.flows).reduce<string | undefined>(
    (a, b) => (a === undefined || rate(b) > rate(a) ? b : a),
    undefined,
  );
}
