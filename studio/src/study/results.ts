/** The runs of a study as the quantities of expressions, as in python/anabranch/study/results.py. */
import type { Message, Table } from "../engine/message.ts";
import { megabits } from "../model/quantity.ts";
import type { Need, Placed, Quantity, Study } from "./definition.ts";
import { evaluate, type Source } from "./expression.ts";
import { type Cell, NoValue, type Row, Series } from "./series.ts";
import { fsum, jain, ofMaxMin } from "./statistics.ts";

type Figures = Map<string, number | null>;

/** The part of a run that quantities read: a cell, or cells over time. */
export interface Outcome {
  figures: { [quantity: string]: Cell | undefined };
  samples: { [quantity: string]: [time: number, value: Cell][] };
}

const SECTIONS: [section: string, name: string][] = [
  ["flows", "flow"],
  ["links", "link"],
  ["groups", "group"],
  ["gateways", "gateway"],
  ["fairness", "fairness"],
];
/** Parts of a flow's summary that are null if they do not apply. */
const PARTS = ["reordering", "transfers", "fec"];

type Tables = { [name: string]: unknown };

/** All figures of a summary by dotted names: `flow.main.goodput_mbit_s`. */
export function flatten(summary: Tables, withDistributions = false): Figures {
  const flat: Figures = new Map();
  const walk = (prefix: string, table: Tables) => {
    for (const [key, inner] of Object.entries(table)) {
      if (typeof inner === "number") flat.set(`${prefix}.${key}`, inner);
      else if (inner === null) {
        if (!PARTS.includes(key)) flat.set(`${prefix}.${key}`, null);
      } else if (typeof inner === "object" && !Array.isArray(inner) && (withDistributions || key !== "reordering")) {
        walk(`${prefix}.${key}`, inner as Tables);
      }
    }
  };
  for (const [section, name] of SECTIONS) {
    const table = summary[section];
    if (table && typeof table === "object") walk(name, table as Tables);
  }
  return flat;
}

/** `flow.main.x` for `flow.main/0.x`. */
function withoutCopy(figure: string): string {
  const parts = /^([^/]+)\/[0-9]+(\.[^/]*)?$/s.exec(figure);
  return parts ? `${parts[1]}${parts[2] ?? ""}` : figure;
}

/** A path with `*` for any letters. */
function pattern(path: string): RegExp {
  const parts = path.split("*").map((part) => part.replace(/[.+?^${}()|[\]\\/]/g, "\\$&"));
  return new RegExp(`^${parts.join(".*")}$`, "s");
}

/** Workloads whose momentary load is unknown. */
const RANDOM = ["poisson", "request-response", "on-off", "replay", "paced"];

/** The demand of each flow in Mbit/s: NaN if it is unknown, infinite if the flow takes what it gets. */
function demandsOf(resolved: Tables, flows: string[]): Map<string, number> {
  const tables = (resolved.flow ?? {}) as { [flow: string]: { workload?: Tables } };
  return new Map(
    flows.map((name) => {
      const workload = tables[name.split("/")[0]]?.workload ?? {};
      if (workload.kind === "paced" && !("profile" in workload)) return [name, megabits(workload.rate) ?? Number.NaN];
      return [name, RANDOM.includes(String(workload.kind)) ? Number.NaN : Number.POSITIVE_INFINITY];
    }),
  );
}

/** The figure of a quantity; undefined if the run's scenario has no such flow or link. */
function figure(quantity: Quantity, figures: Figures, demands: Map<string, number>): Cell | undefined {
  const path = quantity.path!;
  if (!path.includes("*") && quantity.capacity === undefined) {
    const own = figures.get(path);
    if (own !== undefined) return own;
    // A flow's name means the mean over its copies.
    const copies = [...figures].filter(([name]) => withoutCopy(name) === path).map(([, value]) => value);
    if (copies.length) return copies.includes(null) ? null : fsum(copies as number[]) / copies.length;
    const part = path.slice(0, path.lastIndexOf("."));
    const isPart = PARTS.includes(part.slice(part.lastIndexOf(".") + 1));
    return isPart && ![...figures.keys()].some((name) => name.startsWith(`${part}.`)) ? null : undefined;
  }
  const fits = pattern(path);
  const values = [...figures].filter(([name]) => fits.test(name));
  if (!values.length) return undefined;
  if (values.some(([, value]) => value === null)) return null;
  const known = values.map(([, value]) => value as number);
  if (quantity.capacity !== undefined) {
    const got = new Map(
      values.map(([name, value]) => [name.slice(0, name.lastIndexOf(".")).replace(/^flow\./, ""), value as number]),
    );
    const shares = ofMaxMin(got, quantity.capacity, demands);
    if (quantity.combine === "jain") return jain(shares);
    return shares.length ? Math.min(...shares) : null;
  }
  if (quantity.combine === "min") return Math.min(...known);
  if (quantity.combine === "max") return Math.max(...known);
  const total = fsum(known);
  return quantity.combine === "sum" ? total : total / known.length;
}

function cellsOf(table: Table, column: string): (row: number) => Cell {
  const kind = table.kindOf(column);
  if (kind === "text") {
    const { codes, names } = table.texts(column);
    return (row) => names[codes[row]] ?? null;
  }
  if (kind === "flag") {
    const flags = table.flags(column);
    return (row) => (flags[row] > 1 ? null : flags[row] === 1);
  }
  const numbers = table.numbers(column);
  // A slow-start threshold that was never set is infinite, not missing.
  const none = column === "ssthresh_packets" ? Number.POSITIVE_INFINITY : null;
  return (row) => (Number.isNaN(numbers[row]) ? none : numbers[row]);
}

function samplesOf(quantity: Quantity, table: Table): [number, Cell][] {
  const time = table.numbers(table.has("time_s") ? "time_s" : "sent_s");
  const read = cellsOf(table, quantity.column!);
  const tests = Object.entries(quantity.select ?? {}).map(([column, wanted]) => {
    const own = cellsOf(table, column);
    return (row: number) => own(row) === wanted;
  });
  const made: [number, Cell][] = [];
  for (let row = 0; row < table.rows; row++) if (tests.every((test) => test(row))) made.push([time[row], read(row)]);
  return made;
}

/** Tables of samples that the study's quantities read. */
export function tablesOf(study: Study): string[] {
  return [...new Set(Object.values(study.quantities).flatMap(({ table }) => table ?? []))].sort();
}

/** Reads the quantities of a run. */
export function outcomeOf(study: Study, { head, tables }: Message): Outcome {
  const summary = head.summary as Tables;
  const described = head.scenario as { resolved_scenario?: unknown };
  const demands = demandsOf(
    (described.resolved_scenario ?? {}) as Tables,
    Object.keys((summary.flows ?? {}) as Tables),
  );
  const paths = Object.values(study.quantities).flatMap(({ path }) => path ?? []);
  const figures = flatten(
    summary,
    paths.some((path) => path.includes(".reordering.") || path.endsWith("*")),
  );
  const made: Outcome = { figures: {}, samples: {} };
  for (const [name, quantity] of Object.entries(study.quantities)) {
    if (quantity.path !== undefined) made.figures[name] = figure(quantity, figures, demands);
    const table = quantity.table && tables.get(quantity.table);
    if (table) made.samples[name] = samplesOf(quantity, table);
  }
  return made;
}

/** Whether a run is one of those that an expression reads. */
export function covers(needs: Need[], [experiment, variant]: Placed): boolean {
  return needs.some(([own, one]) => own === experiment && (one === null || one === variant));
}

/** Outcomes of runs as the source of quantities. */
export class Results implements Source {
  private readonly cache = new Map<string, Series>();

  constructor(
    readonly study: Study,
    private readonly runs: { place: Placed; outcome: Outcome }[],
  ) {}

  seeds(): number[] {
    return [...new Set(this.runs.map(({ place }) => place[3]))].sort((a, b) => a - b);
  }

  onlySeed(seed: number): Results {
    return new Results(
      this.study,
      this.runs.filter(({ place }) => place[3] === seed),
    );
  }

  isQuantity(name: string): boolean {
    return Object.hasOwn(this.study.quantities, name);
  }

  axis(name: string, experiment: string | undefined): Series {
    let chosen = experiment ?? this.study.default_experiment;
    if (name === "time_s" || !this.axes(chosen).includes(name)) {
      const having = Object.entries(this.study.experiments).find(([, { axes }]) => axes.includes(name));
      if (!having) throw new NoValue(`the experiment ${chosen} has no axis ${name}`);
      chosen = having[0];
    }
    const at = this.axes(chosen).indexOf(name);
    const values = new Set(this.of(chosen).map(({ place }) => keyOf(place)[at]));
    return new Series(
      [name],
      [...values].map((value): Row => [[value], value]),
    );
  }

  quantity(name: string, experiment: string | undefined): Series {
    const chosen = experiment ?? this.study.default_experiment;
    const key = JSON.stringify([name, chosen]);
    const known = this.cache.get(key);
    if (known) return known;
    const made = this.compute(name, chosen);
    this.cache.set(key, made);
    return made;
  }

  private axes(experiment: string): string[] {
    return ["variant", ...this.study.experiments[experiment].axes, "seed"];
  }

  private of(experiment: string) {
    return this.runs.filter(({ place }) => place[0] === experiment);
  }

  private compute(name: string, experiment: string): Series {
    const { expression, path } = this.study.quantities[name];
    if (expression) {
      const value = evaluate(expression, this, new Map(), experiment);
      return value instanceof Series ? value : new Series([], [[[], value]]);
    }
    const axes = this.axes(experiment);
    const rows: Row[] = [];
    for (const { place, outcome } of this.of(experiment)) {
      const key = keyOf(place);
      if (path !== undefined) {
        const value = outcome.figures[name];
        if (value === undefined) throw new NoValue(`the summary has no figure "${path}"`);
        rows.push([key, value]);
      } else for (const [time, value] of outcome.samples[name] ?? []) rows.push([[...key, time], value]);
    }
    if (path === undefined) {
      axes.push("time_s");
      if (!rows.length) throw new NoValue(`no samples were kept for ${name}`);
    }
    const series = new Series(axes, rows);
    return this.study.experiments[experiment].hasVariants ? series : series.drop("variant");
  }
}

function keyOf([, variant, point, seed]: Placed): Cell[] {
  return [variant, ...point, seed];
}
