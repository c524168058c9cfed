/** Time and sequence of a flow's packets, with the state of its receiver. */
import type { Place } from "../chart/model.ts";
import { chosen, type Table } from "../engine/message.ts";

/** Points, ascending in time. */
export interface Points {
  x: Float64Array;
  y: Float64Array;
}

/** The columns of the table `packets` that the charts read. */
export const COLUMNS = [
  "direction", "sequence_bytes", "payload_bytes", "retransmission", "cause", "needed", "sent_s", "received_s", "fate",
  "where",
]; // biome-ignore format: a list

export interface Sequence {
  sent: Points;
  needed: Points;
  spurious: Points;
  undecided: Points;
  lost: Points;
  /** Packets that the receiver held out of order, at their arrival. */
  held: Points;
  /** The next octet that the receiver expects. */
  expected: Points;
  /** Rows of the packets of the flow's main direction with payload, by time of sending. */
  rows: Uint32Array;
}

const UNKNOWN = 2;

function points(table: Table, rows: number[], x: string): Points {
  const chosenRows = Uint32Array.from(rows);
  const y = chosen(table.numbers("sequence_bytes"), chosenRows);
  for (let i = 0; i < y.length; i++) y[i] /= 1e6;
  return { x: chosen(table.numbers(x), chosenRows), y };
}

/** The place of a packet on the chart of sequences; undefined for a negative row. */
export function placeOf(table: Table, row: number): Place | undefined {
  if (row < 0) return undefined;
  return { x: table.numbers("sent_s")[row], y: table.numbers("sequence_bytes")[row] / 1e6 };
}

/** The rows of the direction with more octets, by time of sending. */
export function mainRows(table: Table): Uint32Array {
  const { codes, names } = table.texts("direction");
  const payload = table.numbers("payload_bytes");
  const octets = new Float64Array(names.length + 1);
  for (let i = 0; i < table.rows; i++) octets[codes[i]] += payload[i];
  const main = octets.indexOf(Math.max(...octets));
  const rows = new Uint32Array(table.rows);
  let count = 0;
  for (let i = 0; i < table.rows; i++) if (codes[i] === main && payload[i] > 0) rows[count++] = i;
  const sent = table.numbers("sent_s");
  return rows.subarray(0, count).sort((a, b) => sent[a] - sent[b] || a - b);
}

/** Arrivals of the receiver: the next octet expected after each, and whether the packet was held. */
export function receiver(
  table: Table,
  rows: Uint32Array,
): { rows: Uint32Array; expected: Float64Array; held: Uint8Array } {
  const received = table.numbers("received_s");
  const starts = table.numbers("sequence_bytes");
  const payload = table.numbers("payload_bytes");
  const arrived = rows.filter((row) => !Number.isNaN(received[row]));
  const ordered = arrived.sort((a, b) => received[a] - received[b] || a - b);
  const expected = new Float64Array(ordered.length);
  const held = new Uint8Array(ordered.length);
  // Ends of the blocks beyond the gap, by their begins.
  const beyond = new Map<number, number>();
  let next = rows.length ? starts[rows[0]] : 0;
  ordered.forEach((row, i) => {
    const start = starts[row];
    const end = start + payload[row];
    if (start > next) {
      held[i] = 1;
      if ((beyond.get(start) ?? 0) < end) beyond.set(start, end);
    } else if (end > next) {
      next = end;
      for (let to = beyond.get(next); to !== undefined; to = beyond.get(next)) {
        beyond.delete(next);
        next = Math.max(next, to);
      }
      // Segments may be cut differently when they are retransmitted.
      for (const [begin, to] of beyond)
        if (begin < next) {
          beyond.delete(begin);
          if (to > next) next = to;
        }
    }
    expected[i] = next;
  });
  return { rows: ordered, expected, held };
}

/** The clouds of the chart of sequences. */
export function sequence(table: Table): Sequence {
  const rows = mainRows(table);
  const again = table.flags("retransmission");
  const needed = table.flags("needed");
  const fate = table.texts("fate");
  const gone = ["lost", "dropped", "too-big"].map((name) => fate.names.indexOf(name));
  const sets: { [name: string]: number[] } = { sent: [], needed: [], spurious: [], undecided: [], lost: [] };
  for (const row of rows) {
    if (again[row] !== 1) sets.sent.push(row);
    else if (needed[row] === UNKNOWN) sets.undecided.push(row);
    else (needed[row] === 1 ? sets.needed : sets.spurious).push(row);
    if (gone.includes(fate.codes[row])) sets.lost.push(row);
  }
  const state = receiver(table, rows);
  const heldRows: number[] = [];
  state.held.forEach((is, i) => {
    if (is) heldRows.push(state.rows[i]);
  });
  const edge = { x: chosen(table.numbers("received_s"), state.rows), y: state.expected.map((value) => value / 1e6) };
  return {
    sent: points(table, sets.sent, "sent_s"),
    needed: points(table, sets.needed, "sent_s"),
    spurious: points(table, sets.spurious, "sent_s"),
    undecided: points(table, sets.undecided, "sent_s"),
    lost: points(table, sets.lost, "sent_s"),
    held: points(table, heldRows, "received_s"),
    expected: edge,
    rows,
  };
}
