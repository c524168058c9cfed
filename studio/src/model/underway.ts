/** A run under way: what its charts draw before its end. */
import type { Message, Table } from "../engine/message.ts";
import { figure } from "./quantity.ts";
import { type LinkWay, type Resolved, type Summary, WAYS, type Way } from "./summary.ts";

/** A direction of a link with the longest queue of its samples or its run. */
export interface Queue extends LinkWay {
  most: number;
}

/** A run, or its first part, as the charts draw it. */
export interface Drawn {
  resolved: Resolved;
  duration: number;
  tables: Map<string, Table>;
  flows: string[];
  queues: Queue[];
}

/** The first part of a run. */
export interface Underway extends Drawn {
  /** Time of the last sample. */
  until: number;
}

/** The first part of a run, of the engine's message. */
export function underwayOf(
  described: { duration_s: number; flows: string[]; links: string[]; resolved_scenario: Resolved },
  message: Message,
): Underway {
  return {
    resolved: described.resolved_scenario,
    duration: described.duration_s,
    tables: message.tables,
    flows: described.flows,
    queues: longest(message.tables.get("link_samples"), described.links),
    until: message.head.until_s as number,
  };
}

function longest(samples: Table | undefined, links: string[]): Queue[] {
  const found = links.map((link) => WAYS.map((way): Queue => ({ link, way, most: 0 })));
  if (samples) {
    const [link, way] = [samples.texts("link"), samples.texts("direction")];
    const places = link.names.map((name) => links.indexOf(name));
    const sides = way.names.map((name) => WAYS.indexOf(name as Way));
    const packets = samples.numbers("queue_packets");
    for (let row = 0; row < samples.rows; row++) {
      const queue = found[places[link.codes[row]]]?.[sides[way.codes[row]]];
      if (queue && packets[row] > queue.most) queue.most = packets[row];
    }
  }
  return found.flat();
}

/** The queues of a finished run. */
export function queuesOf(summary: Summary): Queue[] {
  return Object.entries(summary.links).flatMap(([link, ways]) =>
    WAYS.map((way) => ({ link, way, most: ways[way].max_queue_packets ?? 0 })),
  );
}

/** The part of the run in words. */
export function partText({ until, duration }: Underway): string {
  return `${figure(until, 4)} of ${figure(duration, 4)} s`;
}
