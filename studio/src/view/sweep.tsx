/** Sweeps one value of the scenario over seeds: goodput and the queue's delay, with intervals. */
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Chart } from "../chart/model.ts";
import { View } from "../chart/plot.ts";
import type { Many } from "../model/many.ts";
import type { Shown } from "../model/run.ts";
import type { LinkWay } from "../model/summary.ts";
import { type Order, ordersOf, type Swept, sweptCharts } from "../model/sweep.ts";
import { One } from "./charts.tsx";

/** Charts with the order that made them. */
interface Drawn {
  order: Order;
  charts: Chart[];
}

interface Props {
  many: Many;
  path: Shown;
  link: LinkWay | undefined;
  theme: number;
}

export function Sweep({ many, path, link, theme }: Props) {
  const [key, setKey] = useState("");
  const [values, setValues] = useState("5 Mbit/s, 10 Mbit/s, 20 Mbit/s, 40 Mbit/s");
  const [seeds, setSeeds] = useState(many.isNative ? 20 : 5);
  const [drawn, setDrawn] = useState<Drawn>();
  const [made, setMade] = useState<[number, number]>();
  const [problem, setProblem] = useState("");
  const [cursor, setCursor] = useState<number>();
  const view = useMemo(() => new View(), []);
  const abort = useRef<AbortController>();
  const table = link && path.resolved.group?.[link.link] ? "group" : "link";
  const chosen = key || (link ? `${table}.${link.link}.rate` : "");
  // Results of another path or another value are old, as are runs of them that are under way.
  useEffect(() => {
    setDrawn(undefined);
    setProblem("");
    return () => abort.current?.abort();
  }, [path.text, path.seed, chosen]);
  const ask = async () => {
    const order: Order = { path: chosen, values: values.split(",").map((one) => one.trim()), seeds };
    const control = new AbortController();
    abort.current = control;
    setDrawn(undefined);
    setProblem("");
    try {
      const orders = ordersOf(path, order);
      setMade([0, orders.length]);
      const results: Swept[] = await many.runs(orders, (count) => setMade([count, orders.length]), control.signal);
      const charts = sweptCharts(order, results);
      const { x } = charts[0].series[0];
      const room = (x[x.length - 1] - x[0] || 1) * 0.03;
      view.setRange({ min: x[0] - room, max: x[x.length - 1] + room });
      if (!control.signal.aborted) setDrawn({ order, charts });
    } catch (error) {
      if (!control.signal.aborted) setProblem(String((error as Error).message));
    } finally {
      if (abort.current === control) setMade(undefined);
      document.documentElement.dataset.swept = String(Date.now());
    }
  };
  return (
    <details class="sweep">
      <summary>Sweep a value</summary>
      <div class="row">
        <label>
          Value <input value={chosen} size={26} onInput={(event) => setKey(event.currentTarget.value)} />
        </label>
        <label>
          from the list <input value={values} size={40} onInput={(event) => setValues(event.currentTarget.value)} />
        </label>
        <label>
          seeds{" "}
          <input
            type="number"
            min={1}
            max={200}
            value={seeds}
            onChange={(event) => setSeeds(Math.min(Math.max(event.currentTarget.valueAsNumber || 1, 1), 200))}
          />
        </label>
        {made ? (
          <>
            <progress max={made[1]} value={made[0]} aria-label="Progress of the sweep" />
            <button type="button" onClick={() => abort.current?.abort()}>
              Stop
            </button>
          </>
        ) : (
          <button type="button" onClick={ask}>
            Sweep
          </button>
        )}
        <span class="soft">
          on {many.cores} {many.cores === 1 ? "core" : "cores"}
          {many.isNative ? ", by the command" : ""}
        </span>
      </div>
      {problem && (
        <p class="problem" role="alert">
          {problem}
        </p>
      )}
      {drawn && (
        <h2>
          Means over {drawn.order.seeds} {drawn.order.seeds === 1 ? "seed" : "seeds"}
        </h2>
      )}
      {drawn?.charts.map((chart) => (
        <One key={chart.name} chart={chart} view={view} theme={theme} isLast cursor={cursor} onCursor={setCursor} />
      ))}
    </details>
  );
}
