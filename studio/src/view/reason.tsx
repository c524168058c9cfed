/** Why the chosen packet was retransmitted, and the packets around it. */
import { useMemo } from "preact/hooks";
import type { Table } from "../engine/message.ts";
import { around, countsOf, type LadderPacket, why } from "../model/why.ts";
import { Ladder } from "./ladder.tsx";

interface Props {
  packets: Table;
  rows: Uint32Array;
  chosen: number;
  again: number[];
  onStep(by: number): void;
}

export function Reason({ packets, rows, chosen, again, onStep }: Props) {
  const told = useMemo(
    () => (chosen >= 0 ? { why: why(packets, rows, chosen), around: around(packets, rows, chosen) } : undefined),
    [packets, rows, chosen],
  );
  const counts = useMemo(() => countsOf(packets, again), [packets, again]);
  if (!again.length) return <p class="hint">Nothing was retransmitted.</p>;
  return (
    <section class="reason" aria-label="Why a packet was retransmitted">
      <div class="row">
        <button type="button" onClick={() => onStep(-1)}>
          Previous retransmission
        </button>
        <button type="button" onClick={() => onStep(1)}>
          Next retransmission
        </button>
        <span class="soft">
          {told ? `${again.indexOf(chosen) + 1} of ` : ""}
          {counts}
        </span>
      </div>
      <p aria-live="polite">{told?.why}</p>
      {told && (
        <>
          <Ladder packets={told.around} chosen={chosen} />
          <details>
            <summary>These packets as a table</summary>
            <Packets packets={told.around} chosen={chosen} />
          </details>
        </>
      )}
    </section>
  );
}

/** The packets of the ladder, in the order of sending. */
function Packets({ packets, chosen }: { packets: LadderPacket[]; chosen: number }) {
  const octets = (value: number | undefined) => (value === undefined ? "–" : value.toLocaleString("en"));
  return (
    <div class="scroll" tabIndex={0} role="group" aria-label="Table of the packets around the retransmission">
      <table>
        <thead>
          <tr>
            <th scope="col">sent (s)</th>
            <th scope="col">octet</th>
            <th scope="col">retransmission</th>
            <th scope="col">received (s)</th>
            <th scope="col">lost by</th>
            <th scope="col">receiver expects</th>
          </tr>
        </thead>
        <tbody>
          {packets.map((packet) => (
            <tr key={packet.row} class={packet.row === chosen ? "chosen" : ""}>
              <td>{packet.sent.toFixed(5)}</td>
              <td>{octets(packet.start)}</td>
              <td>{packet.row === chosen ? "chosen" : packet.isAgain ? "yes" : ""}</td>
              <td>{packet.received?.toFixed(5) ?? "–"}</td>
              <td>{packet.received === undefined ? (packet.where ?? "in flight") : ""}</td>
              <td>
                {octets(packet.expected)}
                {packet.isHeld ? ", packet held" : ""}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
