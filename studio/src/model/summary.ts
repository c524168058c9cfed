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
  gateway?: {
    [name: string]: {
      between: [string, string];
      kind?: string;
      routes?: string[];
      policies?: { [link: string]: string };
    };
  };
  /** Changes during the run. */
  at?: { set?: { [key: string]: unknown } }[];
}

/** The table of the flow `name`, whose copies are `name/0`, `name/1` and so on. */
export function tableOf(resolved: Resolved, flow: string): FlowTable | undefined {
  return resolved.flow?.[flow] ?? resolved.flow?.[flow.replace(/\/\d+$/, "")];
}

/** The flow of this name, or the first with the same table: copies have numbers, a single flow has none. */
export function sameFlow(flows: string[], name: string | undefined): string | undefined {
  if (name === undefined || flows.includes(name)) return name;
  const table = (one: string) => one.replace(/\/\d+$/, "");
  return flows.find((one) => table(one) === table(name));
}

/** A direction of a link. */
export interface LinkWay {
  link: string;
  way: Way;
}
