/** Plays a run: the time moves through the charts, and packets move over the topology. */
import { useEffect, useRef, useState } from "preact/hooks";
import { firstAt } from "../chart/model.ts";
import type { View } from "../chart/plot.ts";
import type { Table } from "../engine/message.ts";
import type { Run } from "../model/run.ts";
import { tableOf } from "../model/summary.ts";
import type { Moving } from "./topology.tsx";

/** Seconds of the run per second of playing. */
const SPEEDS = [0.01, 0.03, 0.1, 0.3, 1, 3];
/** Most packets of a drawing. */
const MOST_MOVING = 120;
/** Longest time that a packet is on its way. */
const LONGEST_S = 3;

interface Props {
  view: View;
  packets: Table | undefined;
  rows: Uint32Array;
  now: number | undefined;
  onNow(now: number | undefined): void;
}

export function Player({ view, packets, rows, now, onNow }: Props) {
  const [isPlaying, setPlaying] = useState(false);
  const [speed, setSpeed] = useState(0.1);
  const at = useRef(now);
  at.current = now;
  const go = (time: number | undefined) => {
    onNow(time);
    view.setNow(time);
  };
  useEffect(() => {
    if (!isPlaying) return;
    let last = performance.now();
    let frame = requestAnimationFrame(function play(time) {
      const next = (at.current ?? view.min) + Math.max(time - last, 0) * 1e-3 * speed;
      last = time;
      if (next >= view.max) {
        go(view.max);
        setPlaying(false);
        return;
      }
      at.current = next;
      go(next);
      frame = requestAnimationFrame(play);
    });
    return () => cancelAnimationFrame(frame);
  }, [isPlaying, speed]);
  const step = (by: number) => {
    if (!packets) return;
    setPlaying(false);
    const sent = packets.numbers("sent_s");
    const times = Float64Array.from(rows, (row) => sent[row]);
    const from = now ?? view.min;
    let i = firstAt(times, from);
    if (by > 0) while (i < times.length && times[i] <= from) i++;
    else i--;
    if (i >= 0 && i < times.length) go(times[i]);
  };
  return (
    <div class="player" role="toolbar" aria-label="Play">
      <button
        type="button"
        onClick={() => {
          if (!isPlaying && (now === undefined || now >= view.max || now < view.min)) go(view.min);
          setPlaying(!isPlaying);
        }}
      >
        {isPlaying ? "Pause" : "Play"}
      </button>
      <button type="button" disabled={!packets} onClick={() => step(-1)}>
        Previous packet
      </button>
      <button type="button" disabled={!packets} onClick={() => step(1)}>
        Next packet
      </button>
      <label>
        Speed{" "}
        <select value={String(speed)} onChange={(event) => setSpeed(Number(event.currentTarget.value))}>
          {SPEEDS.map((one) => (
            <option key={one} value={String(one)}>
              {one < 1 ? `1/${Math.round(1 / one)}` : `${one} ×`}
            </option>
          ))}
        </select>
      </label>
      {now !== undefined && (
        <>
          <span class="soft">{now.toFixed(4)} s</span>
          <button
            type="button"
            onClick={() => {
              setPlaying(false);
              go(undefined);
            }}
          >
            End
          </button>
        </>
      )}
    </div>
  );
}

/** Packets under way at a time, at an even pace over the links of their route. */
export function movingAt(run: Run, packets: Table, rows: Uint32Array, now: number): Moving[] {
  const table = run.focus === undefined ? undefined : tableOf(run.resolved, run.focus);
  const route = table?.route;
  if (!table || !route?.length) return [];
  const links = { ...run.resolved.link, ...run.resolved.group };
  let node = table.from;
  const ways = route.map((name) => {
    const [a, b] = links[name].between;
    const isForward = a === node;
    node = isForward ? b : a;
    return { name, isForward };
  });
  const sent = packets.numbers("sent_s");
  const received = packets.numbers("received_s");
  const again = packets.flags("retransmission");
  const moving: Moving[] = [];
  for (let i = rows.length - 1; i >= 0 && moving.length < MOST_MOVING; i--) {
    const row = rows[i];
    if (sent[row] > now) continue;
    if (now - sent[row] > LONGEST_S) break;
    if (!(received[row] > now)) continue;
    const share = ((now - sent[row]) / (received[row] - sent[row])) * ways.length;
    const at = Math.min(Math.floor(share), ways.length - 1);
    const part = share - at;
    moving.push({ link: ways[at].name, share: ways[at].isForward ? part : 1 - part, isAgain: again[row] === 1 });
  }
  return moving;
}
