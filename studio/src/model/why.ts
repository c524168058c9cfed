/** Why a packet was retransmitted, and the packets around it. */
import type { Table, Texts } from "../engine/message.ts";
import { figure } from "./quantity.ts";
import { receiver } from "./sequence.ts";

const text = ({ codes, names }: Texts, row: number): string | undefined => names[codes[row]];
const octets = (value: number): string => value.toLocaleString("en");

const CAUSES: { [cause: string]: string } = {
  rto: "by the retransmission timer",
  tlp: "as a tail loss probe",
  "dup-thresh": "by the duplicate-ACK threshold",
  rack: "by RACK",
};

/** The element of a loss in words: the queue of a link, an impairment of it, or another element by its name. */
export function placeWords(where: string): string {
  const found = /^(?:link|group)\.([^.]+)\.(?:forward|reverse)(?:\.(.*))?$/.exec(where);
  if (!found) return where;
  const [, link, part = ""] = found;
  const impairment = /^impair\.([^.]+)/.exec(part)?.[1];
  if (impairment) return `link ${link} (${impairment})`;
  return part.startsWith("queue") ? `the queue of link ${link}` : `link ${link}`;
}

/** The number of retransmissions, their triggers with the most frequent first, and the spurious ones. */
export function countsOf(packets: Table, again: number[]): string {
  const causes = packets.texts("cause");
  const needed = packets.flags("needed");
  const counts = new Map<string, number>();
  for (const row of again) {
    const cause = text(causes, row);
    if (cause) counts.set(cause, (counts.get(cause) ?? 0) + 1);
  }
  const words = [...counts]
    .sort(([, a], [, b]) => b - a)
    .map(([cause, count]) => `${octets(count)} ${CAUSES[cause] ?? `by ${cause}`}`);
  const spurious = again.filter((row) => needed[row] === 0).length;
  const all = `${octets(again.length)} retransmission${again.length === 1 ? "" : "s"}`;
  return `${all}${words.length ? `: ${words.join(", ")}` : ""}; ${spurious ? octets(spurious) : "none"} spurious`;
}

/** The retransmission nearest to a place of the chart, as a row of the table `packets`; -1 if none is in reach. */
export function nearest(
  packets: Table,
  rows: Uint32Array,
  time: number,
  mb: number,
  reach: { time: number; value: number },
): number {
  const again = packets.flags("retransmission");
  const sent = packets.numbers("sent_s");
  const starts = packets.numbers("sequence_bytes");
  let found = -1;
  let least = 1;
  for (const row of rows) {
    if (again[row] !== 1) continue;
    const away = Math.hypot((sent[row] - time) / reach.time, (starts[row] / 1e6 - mb) / reach.value);
    if (away < least) [found, least] = [row, away];
  }
  return found;
}

/** The sentence on a retransmission. */
export function why(packets: Table, rows: Uint32Array, row: number): string {
  const sent = packets.numbers("sent_s");
  const starts = packets.numbers("sequence_bytes");
  const payload = packets.numbers("payload_bytes");
  const received = packets.numbers("received_s");
  const cause = text(packets.texts("cause"), row);
  const by = cause ? (CAUSES[cause] ?? `by ${cause}`) : "";
  const first = `Octet ${octets(starts[row])} was retransmitted at ${sent[row].toFixed(4)} s ${by}`.trim();
  let original = -1;
  for (const other of rows) {
    if (sent[other] >= sent[row] || other === row) break;
    if (starts[other] < starts[row] + payload[row] && starts[other] + payload[other] > starts[row]) original = other;
  }
  if (original < 0) return `${first}.`;
  const before = `sent ${figure((sent[row] - sent[original]) * 1e3)} ms before`;
  const fate = text(packets.texts("fate"), original);
  const where = text(packets.texts("where"), original);
  const needed = packets.flags("needed")[row];
  if (fate === "delivered") {
    const late = (received[original] - sent[row]) * 1e3;
    const when =
      late > 0
        ? `arrived ${figure(late)} ms after the retransmission was sent`
        : `had arrived ${figure(-late)} ms earlier`;
    return `${first}: the previous transmission, ${before}, ${when}${needed === 0 ? ", so the retransmission was spurious" : ""}.`;
  }
  const lost =
    fate === "dropped"
      ? "was dropped by"
      : fate === "too-big"
        ? "was too big for"
        : fate === "lost"
          ? "was lost on"
          : fate === "refused"
            ? "was refused by"
            : "is in flight to";
  return `${first}: the previous transmission, ${before}, ${lost} ${where === undefined ? "the receiver" : placeWords(where)}${needed === 1 ? ", so the retransmission was needed" : ""}.`;
}

export interface LadderPacket {
  row: number;
  sent: number;
  received: number | undefined;
  start: number;
  isAgain: boolean;
  /** The place of its loss. */
  where: string | undefined;
  /** The octet that the receiver expects after it. */
  expected: number | undefined;
  isHeld: boolean;
}

/** Packets before and after one of them: the retransmission and the transmissions of the same octets included. */
export function around(packets: Table, rows: Uint32Array, row: number, most = 12): LadderPacket[] {
  const sent = packets.numbers("sent_s");
  const received = packets.numbers("received_s");
  const starts = packets.numbers("sequence_bytes");
  const payload = packets.numbers("payload_bytes");
  const again = packets.flags("retransmission");
  const at = rows.indexOf(row);
  const chosenRows = new Set(rows.subarray(Math.max(at - most / 2, 0), at + most / 2));
  for (const other of rows) {
    if (starts[other] < starts[row] + payload[row] && starts[other] + payload[other] > starts[row])
      chosenRows.add(other);
  }
  const state = receiver(packets, rows);
  const arrival = new Map<number, number>();
  state.rows.forEach((one, i) => {
    if (chosenRows.has(one)) arrival.set(one, i);
  });
  return [...chosenRows]
    .sort((a, b) => sent[a] - sent[b] || a - b)
    .map((one) => {
      const i = arrival.get(one);
      const where = text(packets.texts("where"), one);
      return {
        row: one,
        sent: sent[one],
        received: Number.isNaN(received[one]) ? undefined : received[one],
        start: starts[one],
        isAgain: again[one] === 1,
        where: where === undefined ? undefined : placeWords(where),
        expected: i === undefined ? undefined : state.expected[i],
        isHeld: i !== undefined && state.held[i] === 1,
      };
    });
}
