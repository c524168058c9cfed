/** Why the chosen packet was retransmitted, and the packets around it. */
import { useMemo } from "preact/hooks";
import type { Table } from "../engine/message.ts";
import { around, why } from "../model/why.ts";
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
          {told
            ? `${again.indexOf(chosen) + 1} of ${again.length}`
            : `${again.length.toLocaleString("en")} retransmissions`}
        </span>
      </div>
      <p aria-live="polite">{told?.why}</p>
      {told && <Ladder packets={told.around} chosen={chosen} />}
    </section>
  );
}
