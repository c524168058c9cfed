/** The run in view beside the pinned one, and their difference over seeds. */
import { useEffect, useRef, useState } from "preact/hooks";
import type { Brief } from "../engine/local.ts";
import { changedWords, difference } from "../model/compare.ts";
import type { Many } from "../model/many.ts";
import { figure } from "../model/quantity.ts";
import { bottleneck } from "../model/route.ts";
import type { Run } from "../model/run.ts";
import { verdict } from "../model/verdict.ts";

/** Seeds of the difference: in the page, and by the command. */
const SEEDS = 10;
const SEEDS_NATIVE = 100;

interface Row {
  label: string;
  unit: string;
  of(run: Brief): number | null;
}

function measures(first: Run, second: Run): Row[] {
  const flows = Object.keys(first.summary.flows).filter((name) => second.summary.flows[name]);
  const rows: Row[] = flows.slice(0, 6).map((name) => ({
    label: `goodput of ${name}`,
    unit: "Mbit/s",
    of: (run) => run.summary.flows[name]?.goodput_mbit_s ?? null,
  }));
  const goodput = (run: Brief) =>
    Object.values(run.summary.flows).reduce((sum, flow) => sum + (flow.goodput_mbit_s ?? 0), 0);
  if (flows.length !== 1 || Object.keys(second.summary.flows).length !== 1)
    rows.push({ label: "goodput of all flows", unit: "Mbit/s", of: goodput });
  for (const name of flows.slice(0, 6).filter((one) => first.summary.flows[one].exchanges))
    rows.push({
      label: `response time of ${name} (mean)`,
      unit: "ms",
      of: (run) => run.summary.flows[name]?.exchanges?.mean_response_time_ms ?? null,
    });
  rows.push({
    label: "queue delay (p95)",
    unit: "ms",
    of: (run) => {
      const at = bottleneck(run.resolved, run.summary);
      return at ? run.summary.links[at.link][at.way].p95_queue_delay_ms : null;
    },
  });
  const again = (run: Brief) =>
    Object.values(run.summary.flows).reduce((sum, flow) => sum + (flow.retransmitted_packets ?? 0), 0);
  rows.push({ label: "retransmissions", unit: "", of: again });
  // A faster flow sends more packets: the counts of two runs do not compare.
  const sent = (run: Brief) => Object.values(run.summary.flows).reduce((sum, flow) => sum + flow.sent_packets, 0);
  rows.push({
    label: "retransmitted share of packets",
    unit: "%",
    of: (run) => (sent(run) > 0 ? (100 * again(run)) / sent(run) : null),
  });
  return rows;
}

export function Comparison({ many, first, second, onUnpin }: { many: Many; first: Run; second: Run; onUnpin(): void }) {
  const seeds = many.isNative ? SEEDS_NATIVE : SEEDS;
  const [over, setOver] = useState<[Brief[], Brief[]]>();
  const [made, setMade] = useState<number>();
  const abort = useRef<AbortController>();
  useEffect(() => {
    setOver(undefined);
    setMade(undefined);
    return () => abort.current?.abort();
  }, [first, second]);
  const from = first.seed ?? first.resolved.seed;
  const ask = async () => {
    const control = new AbortController();
    abort.current = control;
    setMade(0);
    const orders = [first, second].flatMap(({ text }) =>
      Array.from({ length: seeds }, (_, i) => ({ scenario: text, seed: from + i })),
    );
    try {
      const all = await many.runs(orders, (count) => setMade(Math.floor(count / 2)), control.signal);
      if (!control.signal.aborted) setOver([all.slice(0, seeds), all.slice(seeds)]);
    } catch {
      // Stopped, or one of the texts has an error that the editor shows.
    }
    if (!control.signal.aborted) setMade(undefined);
  };
  const isSame = first.text === second.text;
  const changed = changedWords(second.text, first.text);
  return (
    <section class="comparison" aria-label="Comparison with the pinned run">
      <p>
        <b>Pinned (dashed):</b> {verdict(second.summary, second.resolved)}{" "}
        <button type="button" onClick={onUnpin}>
          Unpin
        </button>
      </p>
      {changed && (
        <p class="changed">
          <b>This run (solid):</b> {changed}
        </p>
      )}
      <div class="scroll" tabIndex={0} role="group" aria-label="Table">
        <table>
          <thead>
            <tr>
              <th scope="col">measure</th>
              <th scope="col">this run</th>
              <th scope="col">pinned</th>
              <th scope="col">{over ? `difference over ${seeds} seeds, 95 % interval` : "difference"}</th>
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
      {isSame ? (
        <p class="soft">Both runs have the same scenario: over the same seeds they do not differ.</p>
      ) : (
        <button
          type="button"
          onClick={() => {
            if (made === undefined) return void ask();
            abort.current?.abort();
            setMade(undefined);
          }}
        >
          {made === undefined ? `Difference over ${seeds} seeds` : `Stop (${made} of ${seeds} seeds)`}
        </button>
      )}
    </section>
  );
}
