/** The parts of a run's summary and of its resolved scenario that the page reads. docs/reference/results.md has all. */

export interface FlowSummary {
  goodput_mbit_s: number | null;
  sent_packets: number;
  retransmitted_packets: number | null;
  spurious_retransmissions: number | null;
  fast_recoveries: number | null;
  timeouts: number | null;
  mean_srtt_ms: number | null;
  min_rtt_ms: number | null;
  cwnd_limited_share: number | null;
  rwnd_limited_share: number | null;
  sndbuf_limited_share: number | null;
  application_limited_share: number | null;
  flow_completion_time_s: number | null;
  ended: string;
  ended_at_s: number | null;
  reordered_ratio: number | null;
  transfers: { started: number; completed: number; mean_completion_time_s: number | null } | null;
  exchanges: { completed: number; mean_response_time_ms: number | null; p95_response_time_ms: number | null } | null;
  p95_one_way_delay_ms: number | null;
}

export interface LinkSummary {
  sent_packets: number;
  dropped_packets: number;
  lost_packets: number;
  reordered_packets: number;
  utilization: number | null;
  mean_queue_packets: number | null;
  max_queue_packets: number | null;
  p95_queue_delay_ms: number | null;
}

export type Way = "forward" | "reverse";
export const WAYS: readonly Way[] = ["forward", "reverse"];

export interface Summary {
  digest: string | null;
  flows: { [name: string]: FlowSummary };
  links: { [name: string]: { [way in Way]: LinkSummary } };
}

export interface Direction {
  rate?: string;
  delay?: unknown;
  queue?: { kind?: string; limit?: string; reorder?: { [name: string]: unknown } };
  impair?: { kind: string; rate?: number; [name: string]: unknown }[];
  service?: { kind?: string; file?: string };
}

export interface LinkTable extends Direction {
  between: [string, string];
  members?: number;
  spread?: string;
  forward?: Direction;
  reverse?: Direction;
}

export interface FlowTable {
  from: string;
  to: string;
  count?: number;
  stack?: string;
  protocol?: string;
  cc?: { kind: string };
  transport?: { mss?: string; sack?: boolean; [name: string]: unknown };
  fec?: { kind: string };
  workload?: { kind: string; size?: string };
  route?: string[];
  return_route?: string[];
}

/** The resolved scenario, with every default. */
export interface Resolved {
  title?: string;
  duration: string;
  seed: number;
  link?: { [name: string]: LinkTable };
  group?: { [name: string]: LinkTable };
  flow?: { [name: string]: FlowTable };
  gateway?: { [name: string]: { between: [string, string]; kind?: string; routes?: string[] } };
}

/** The table of the flow `name`, whose copies are `name/0`, `name/1` and so on. */
export function tableOf(resolved: Resolved, flow: string): FlowTable | undefined {
  return resolved.flow?.[flow] ?? resolved.flow?.[flow.replace(/\/\d+$/, "")];
}

/** A direction of a link. */
export interface LinkWay {
  link: string;
  way: Way;
}

/** The direction of a link that most limits a flow: the slowest of its route. */
export function bottleneck(resolved: Resolved, summary: Summary | undefined, flow?: string): LinkWay | undefined {
  const table = flow === undefined ? undefined : tableOf(resolved, flow);
  const links = { ...resolved.link, ...resolved.group };
  const names = Object.keys(summary?.links ?? links);
  const route = table?.route?.some((link) => names.includes(link)) ? table.route : undefined;
  let best: LinkWay | undefined;
  let least = Number.POSITIVE_INFINITY;
  for (const link of names) {
    if (route && !route.includes(link)) continue;
    for (const way of WAYS) {
      const capacity = capacityOf(links[link], way);
      const found = summary?.links[link][way];
      // Of equal rates, the direction with more packets dropped or waiting limits.
      const load = (found?.mean_queue_packets ?? 0) + (found?.dropped_packets ?? 0) + (found?.utilization ?? 0);
      const score = capacity - 1e-6 * Math.min(load, 1e5) * capacity;
      if (capacity > 0 && score < least) {
        least = score;
        best = { link, way };
      }
    }
  }
  return best;
}

import { megabits } from "./quantity.ts";

/** The rate of a direction in Mbit/s; infinite if it is unlimited or follows a trace. */
export function capacityOf(link: LinkTable | undefined, way: Way): number {
  const service = link?.[way]?.service ?? link?.service;
  if (service?.file) return Number.POSITIVE_INFINITY;
  return megabits(link?.[way]?.rate ?? link?.rate) ?? Number.POSITIVE_INFINITY;
}
