/** A sweep: one value of the scenario, several seeds, and means with their intervals. */
import type { Chart, Series } from "../chart/model.ts";
import { interval, mean } from "../study/statistics.ts";
import { quoted } from "../toml/edit.ts";
import { bottleneck } from "./route.ts";
import type { Shown } from "./run.ts";
import type { Resolved, Summary } from "./summary.ts";

/** Most runs of a sweep. */
export const MOST_RUNS = 2000;

/** A sweep. */
export interface Order {
  path: string;
  values: string[];
  seeds: number;
}

/** The result of a run. */
export interface Swept {
  summary: Summary;
  resolved: Resolved;
}

/** A value as TOML: a number, a truth value, a list or table as they are, or a text. */
function toml(value: string): string {
  return /^([-+]?[0-9][0-9._]*(e[-+]?[0-9]+)?|true|false|\[.*|\{.*|".*")$/i.test(value) ? value : quoted(value);
}

/** The runs of a sweep: all seeds of the first value, then those of the next. */
export function ordersOf(run: Shown, { path, values, seeds }: Order) {
  if (!path) throw new Error("the path of a value was expected, for example link.NAME.rate");
  if (values.length < 2 || values.includes(""))
    throw new Error("two values or more were expected, separated by commas");
  if (values.length * seeds > MOST_RUNS) throw new Error(`${values.length * seeds} runs are more than ${MOST_RUNS}`);
  const first = run.seed ?? run.resolved.seed;
  return values.flatMap((value) =>
    Array.from({ length: seeds }, (_, i) => ({ scenario: run.text, set: [`${path}=${toml(value)}`], seed: first + i })),
  );
}

/** The places of the values on the axis: their numbers if they ascend, else their order. */
export function places(values: string[]): { x: number[]; hasNumbers: boolean } {
  const numbers = values.map((value) => Number.parseFloat(value));
  const units = new Set(values.map((value) => value.replace(/^[-+0-9.e]+\s*/i, "")));
  const hasNumbers =
    units.size === 1 && numbers.every((one, i) => Number.isFinite(one) && (!i || one > numbers[i - 1]));
  return { x: hasNumbers ? numbers : values.map((_, i) => i + 1), hasNumbers };
}

/** Means over seeds with 95 % intervals: goodput of each flow, and the delay of the bottleneck's queue. */
export function sweptCharts(order: Order, results: Swept[]): Chart[] {
  const { values, seeds, path } = order;
  const { x, hasNumbers } = places(values);
  const of = (value: number) => results.slice(value * seeds, (value + 1) * seeds);
  const unit = values[0].replace(/^[-+0-9.e]+\s*/i, "");
  const label = hasNumbers ? `${path}${unit ? ` (${unit})` : ""}` : `${path}: ${values.join(", ")}`;
  const lines = (name: string, colour: number, read: (one: Swept) => number | null): Series[] => {
    const columns: [number[], number[], number[]] = [[], [], []];
    for (let i = 0; i < values.length; i++) {
      const known = of(i)
        .map(read)
        .filter((one) => one !== null);
      const ends = known.length > 1 ? interval(known) : undefined;
      columns[0].push(known.length ? mean(known) : Number.NaN);
      columns[1].push(ends?.[0] ?? Number.NaN);
      columns[2].push(ends?.[1] ?? Number.NaN);
    }
    const [middle, lower, upper] = columns.map((column): Series => {
      return { label: name, x: Float64Array.from(x), y: Float64Array.from(column), kind: "line", colour };
    });
    const bound = { dash: [2, 3], width: 1 };
    return [
      { ...middle, hasDots: true },
      { ...lower, ...bound, label: `${name}, lower end of 95 %` },
      { ...upper, ...bound, label: `${name}, upper end of 95 %` },
    ];
  };
  const flows = [...new Set(results.flatMap(({ summary }) => Object.keys(summary.flows)))].slice(0, 6);
  const axis = { label };
  return [
    {
      name: "sweep-goodput",
      title: `Goodput over ${path}`,
      unit: "Mbit/s",
      series: flows.flatMap((flow, i) => lines(flow, i, ({ summary }) => summary.flows[flow]?.goodput_mbit_s ?? null)),
      axis,
    },
    {
      name: "sweep-delay",
      title: `Queue delay (p95) of the bottleneck over ${path}`,
      unit: "ms",
      series: lines("queue delay", 0, ({ summary, resolved }) => {
        const at = bottleneck(resolved, summary);
        return at ? summary.links[at.link][at.way].p95_queue_delay_ms : null;
      }),
      axis,
    },
  ];
}
