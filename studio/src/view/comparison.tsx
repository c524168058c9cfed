/** The run in view beside the pinned one, and their difference over seeds. */
import { useEffect, useRef, useState } from "preact/hooks";
import type { Engine } from "../engine/client.ts";
import { difference } from "../model/compare.ts";
import { figure } from "../model/quantity.ts";
import { type Run, run as runOnce } from "../model/run.ts";
import { bottleneck } from "../model/summary.ts";
import { verdict } from "../model/verdict.ts";

const SEEDS = 10;

interface Row {
  label: string;
  unit: string;
  of(run: Run): number | null;
}

function measures(first: Run, second: Run): Row[] {
  const flows = Object.keys(first.summary.flows).filter((name) => second.summary.flows[name]);
  const rows: Row[] = flows.slice(0, 6).map((name) => ({
    label: `goodput of ${name}`,
    unit: "Mbit/s",
    of: (run) => run.summary.flows[name]?.goodput_mbit_s ?? null,
  }));
  const goodput = (run: Run) =>
    Object.values(run.summary.flows).reduce((sum, flow) => sum + (flow.goodput_mbit_s ?? 0), 0);
  if (flows.length !== 1 || Object.keys(second.summary.flows).length !== 1)
    rows.push({ label: "goodput of all flows", unit: "Mbit/s", of: goodput });
  rows.push({
    label: "queue delay (p95)",
    unit: "ms",
    of: (run) => {
      const at = bottleneck(run.resolved, run.summary);
      return at ? run.summary.links[at.link][at.way].p95_queue_delay_ms : null;
    },
  });
  const again = (run: Run) =>
    Object.values(run.summary.flows).reduce((sum, flow) => sum + (flow.retransmitted_packets ?? 0), 0);
  rows.push({ label: "retransmissions", unit: "", of: again });
  return rows;
}

export function Comparison({
  engine,
  first,
  second,
  onUnpin,
}: {
  engine: Engine;
  first: Run;
  second: Run;
  onUnpin(): void;
}) {
  const [over, setOver] = useState<[Run[], Run[]]>();
  const [made, setMade] = useState<number>();
  const asked = useRef(0);
  useEffect(() => {
    asked.current++;
    setOver(undefined);
    setMade(undefined);
  }, [first, second]);
  const ask = async () => {
    const mine = ++asked.current;
    const all: [Run[], Run[]] = [[], []];
    setMade(0);
    try {
      for (let i = 0; i < SEEDS; i++) {
        for (const [k, one] of [first, second].entries()) {
          all[k].push(await runOnce(engine, { text: one.text, seed: 1 + i, isBrief: true }));
        }
        if (mine !== asked.current) return;
        setMade(i + 1);
      }
      setOver(all);
    } catch {
      // Stopped, or one of the texts has an error that the editor shows.
    }
    setMade(undefined);
  };
  return (
    <section class="comparison" aria-label="Comparison with the pinned run">
      <p>
        <b>Pinned (dashed):</b> {verdict(second.summary, second.resolved)}{" "}
        <button type="button" onClick={onUnpin}>
          Unpin
        </button>
      </p>
      <div class="scroll" tabIndex={0} role="group" aria-label="Table">
        <table>
          <thead>
            <tr>
              <th scope="col">measure</th>
              <th scope="col">this run</th>
              <th scope="col">pinned</th>
              <th scope="col">{over ? `difference over ${SEEDS} seeds, 95 % interval` : "difference"}</th>
            </tr>
          </thead>
          <tbody>
            {measures(first, second).map(({ label, unit, of }) => {
              const [a, b] = [of(first), of(second)];
              const both = over?.map((runs) => runs.map(of).filter((value) => value !== null));
              const d =
                both && both[0].length === both[1].length && both[0].length > 0
                  ? difference(both[0], both[1])
                  : undefined;
              return (
                <tr key={label}>
                  <th scope="row">{label}</th>
                  <td>
                    {figure(a)} {unit}
                  </td>
                  <td>
                    {figure(b)} {unit}
                  </td>
                  <td>
                    {d
                      ? `${figure(d.mean)} (${figure(d.lower)} to ${figure(d.upper)})`
                      : a === null || b === null
                        ? "–"
                        : figure(a - b)}{" "}
                    {unit}
                  </td>
                </tr>
              );
            })}
          </tbody>
        </table>
      </div>
      <button type="button" disabled={made !== undefined} onClick={ask}>
        {made === undefined ? `Difference over ${SEEDS} seeds` : `${made} of ${SEEDS} seeds`}
      </button>
    </section>
  );
}
