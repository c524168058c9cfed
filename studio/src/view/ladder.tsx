/** Packets around a retransmission: arrows from the sender to the receiver. Steps are events, not equal times. */
import { useEffect, useRef } from "preact/hooks";
import type { LadderPacket } from "../model/why.ts";

const STEP = 19;
const WIDTH = 680;
const LEFT = 210;
const RIGHT = 410;

interface Event {
  time: number;
  packet: LadderPacket;
  isSent: boolean;
}

export function Ladder({ packets, chosen }: { packets: LadderPacket[]; chosen: number }) {
  const events: Event[] = packets.flatMap((packet) => {
    const made: Event[] = [{ time: packet.sent, packet, isSent: true }];
    if (packet.received !== undefined) made.push({ time: packet.received, packet, isSent: false });
    return made;
  });
  events.sort((a, b) => a.time - b.time);
  const y = (packet: LadderPacket, isSent: boolean) =>
    26 + STEP * events.findIndex((one) => one.packet === packet && one.isSent === isSent);
  const begin = events[0]?.time ?? 0;
  const ms = (time: number) => `${((time - begin) * 1e3).toFixed(2)} ms`;
  const octets = (value: number) => value.toLocaleString("en");
  const height = 26 + STEP * events.length;
  // The chosen packet is in the middle of the visible part. The page does not scroll.
  const home = useRef<HTMLDivElement>(null);
  const at = packets.find(({ row }) => row === chosen);
  const middle = at ? (y(at, true) + y(at, at.received === undefined)) / 2 : 0;
  useEffect(() => {
    if (home.current) home.current.scrollTop = middle - home.current.clientHeight / 2;
  }, [packets, middle]);
  return (
    <div ref={home} class="scroll" tabIndex={0} role="group" aria-label="Packets around the retransmission">
      <svg
        viewBox={`0 0 ${WIDTH} ${height}`}
        width={WIDTH}
        class="drawing ladder"
        role="img"
        aria-label="Packet ladder; the table below has the same"
      >
        <text x={LEFT} y={12} text-anchor="middle" class="strong">
          sender
        </text>
        <text x={RIGHT} y={12} text-anchor="middle" class="strong">
          receiver
        </text>
        <path d={`M${LEFT} 18V${height}M${RIGHT} 18V${height}`} class="rail" />
        {packets.map((packet) => {
          const from = y(packet, true);
          const isLost = packet.received === undefined;
          const [x, to] = isLost ? [LEFT + 110, from + STEP * 0.9] : [RIGHT - 4, y(packet, false)];
          const kind = `${packet.isAgain ? "again" : "first"}${packet.row === chosen ? " chosen" : ""}`;
          return (
            <g key={packet.row} class={kind}>
              <path d={`M${LEFT} ${from}L${x} ${to}`} class="arrow" marker-end={isLost ? undefined : "url(#head)"} />
              {isLost && (
                <text x={x + 4} y={to + 5}>
                  × {packet.where ?? "in flight"}
                </text>
              )}
              <text x={LEFT - 8} y={from + 4} text-anchor="end" class={packet.row === chosen ? "strong" : ""}>
                {ms(packet.sent)} {octets(packet.start)}
                {packet.isAgain ? " R" : ""}
              </text>
              {!isLost && (
                <text x={RIGHT + 8} y={to + 4}>
                  {packet.isHeld ? "held; " : ""}expects {packet.expected === undefined ? "–" : octets(packet.expected)}{" "}
                  {ms(packet.received!)}
                </text>
              )}
            </g>
          );
        })}
        <defs>
          <marker id="head" viewBox="0 0 6 6" refX="5" refY="3" markerWidth="6" markerHeight="6" orient="auto">
            <path d="M0 0L6 3L0 6z" fill="currentColor" />
          </marker>
        </defs>
      </svg>
    </div>
  );
}
