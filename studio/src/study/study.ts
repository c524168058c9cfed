/** Makes the runs of a study's claims and figures, and judges them. */
import type { Chart, Series as Line } from "../chart/model.ts";
import type { Message } from "../engine/message.ts";
import type { Check, Claim, Figure, Need, Placed, Study } from "./definition.ts";
import { evaluate } from "./expression.ts";
import { type Concluded, conclude, exclusion, type Judgement, judge } from "./judge.ts";
import { covers, type Outcome, outcomeOf, Results, tablesOf } from "./results.ts";
import { NoValue, Series } from "./series.ts";

/** Serves a request of the engine. */
export type Ask = (request: object) => Promise<Message>;

/** A claim with its results. */
export interface Judged extends Concluded {
  plain: Judgement;
  control?: Judgement;
  /** Share of the seeds of the start with which it holds. */
  jitter?: number;
}

/** A study in the page, with the outcomes of the runs that were made. */
export class Work {
  private readonly outcomes = new Map<number, Outcome>();

  constructor(readonly study: Study) {}

  /** Places of the grid under a condition that an expression reads. */
  private places(condition: string, needs: Need[]): Placed[] {
    return (this.study.plans[condition] ?? []).filter((place) => covers(needs, place));
  }

  private checks(claim: Claim): [condition: string, check: Check][] {
    const found: [string, Check][] = [["plain", claim.check]];
    if (this.study.plans.jitter) found.push(["jitter", claim.check]);
    if (claim.check.control) found.push([`wrong ${claim.check.control}`, claim.check]);
    const proof = claim.inconsistent?.proof;
    if (proof) found.push(["plain", proof], [`wrong ${proof.control}`, proof]);
    return found;
  }

  /** The claims whose runs a claim needs: itself, and those that its source excludes. */
  private together(claim: Claim): Claim[] {
    const names = [claim.id, ...(claim.inconsistent?.excludes ?? [])];
    return this.study.claims.filter(({ id }) => names.includes(id));
  }

  /** Numbers of the runs of a claim that were not made yet. */
  ofClaim(claim: Claim): number[] {
    if (claim.fullOnly) return [];
    const places = this.together(claim).flatMap((one) =>
      this.checks(one).flatMap(([condition, { needs }]) => this.places(condition, needs)),
    );
    return this.missing(places);
  }

  /** Numbers of the runs of a figure that were not made yet. */
  ofFigure(figure: Figure): number[] {
    return this.missing(this.places("plain", figure.needs));
  }

  private missing(places: Placed[]): number[] {
    return [...new Set(places.map(([, , , , run]) => run))].filter((run) => !this.outcomes.has(run));
  }

  /** Makes a run. */
  async make(ask: Ask, run: number): Promise<void> {
    const [file, changes, seed, samples] = this.study.runs[run];
    const message = await ask({
      request: "run",
      scenario: this.study.scenarios[file],
      set: changes.map((change) => this.study.changes[change]),
      seed,
      ...(samples === null ? { samples: 0 } : { samples_ms: samples }),
      tables: samples === null ? [] : tablesOf(this.study),
    });
    this.outcomes.set(run, outcomeOf(this.study, message));
  }

  private results(condition: string, needs: Need[]): Results {
    const runs = this.places(condition, needs).map((place) => ({ place, outcome: this.outcomes.get(place[4])! }));
    return new Results(this.study, runs);
  }

  /** The verdict on a claim whose runs were made. */
  judged(claim: Claim): Judged {
    if (claim.fullOnly) {
      const reason = "the quick grid cannot judge it; run the full study (one run per point)";
      const plain: Judgement = { holds: null, measures: [], reason };
      return { plain, ...conclude(claim, plain) };
    }
    const { check, inconsistent } = claim;
    const plain = judge(check, this.results("plain", check.needs));
    const control = check.control ? judge(check, this.results(`wrong ${check.control}`, check.needs)) : undefined;
    let jitter: number | undefined;
    if (this.study.plans.jitter) {
      const results = this.results("jitter", check.needs);
      const held = results.seeds().map((seed) => judge(check, results.onlySeed(seed)).holds === true);
      if (held.length) jitter = held.filter(Boolean).length / held.length;
    }
    const proof = inconsistent && this.proof(claim);
    return { plain, control, jitter, ...conclude(claim, plain, { control, jitter, proof }) };
  }

  private proof(claim: Claim): { plain: Judgement; control?: Judgement } {
    const check = claim.inconsistent!.proof;
    if (check) {
      return {
        plain: judge(check, this.results("plain", check.needs)),
        control: judge(check, this.results(`wrong ${check.control}`, check.needs)),
      };
    }
    const holds = this.together(claim).map((one): [string, boolean | null] => [
      one.id,
      judge(one.check, this.results("plain", one.check.needs)).holds,
    ]);
    return { plain: exclusion(claim, Object.fromEntries(holds)) };
  }

  /** The chart of a figure whose runs were made: means over seeds. */
  chart(figure: Figure): Chart {
    const results = this.results("plain", figure.needs);
    const series: Line[] = [];
    for (const [label, expression] of figure.lines) {
      const value = evaluate(expression, results, new Map(), figure.experiment);
      if (!(value instanceof Series)) throw new NoValue("a single value; nothing to draw");
      const parts: [string, Series][] = value.axes.includes("variant")
        ? figure.variants.map((name) => [name, value.keep((at) => at("variant") === name).drop("variant")])
        : [["", value]];
      for (const [variant, part] of parts) {
        if (!part.rows.length) continue;
        const colour = series.length;
        const name = label || this.study.variants[variant] || figure.yLabel;
        series.push({ ...lineOf(name, points(part, figure), figure, colour), hasDots: figure.x !== "time_s" });
        const printed = figure.printed[label || variant];
        if (printed) series.push({ ...lineOf(`${name}, as printed`, printed, figure, colour), kind: "crosses" });
      }
    }
    const axis = { label: figure.xLabel, isLog: figure.isLogX };
    return { name: figure.id, title: figure.title, unit: figure.yLabel, series, axis };
  }
}

function points(part: Series, { x }: Figure): [number, number][] {
  const flat = part.collapsed();
  const at = flat.axes.indexOf(x);
  if (at < 0 || flat.axes.length > 1) throw new NoValue(`the figure is over ${x}, not over ${flat.axes.join(", ")}`);
  return flat.rows
    .map(([key, value]): [number, number] => [Number(key[at]), value === null ? Number.NaN : Number(value)])
    .sort((a, b) => a[0] - b[0]);
}

function lineOf(label: string, list: [number, number][], { isLogX }: Figure, colour: number): Line {
  // A logarithmic axis shows 0 at a third of the smallest other value.
  const least = Math.min(...list.map(([value]) => (value > 0 ? value : Number.POSITIVE_INFINITY)));
  const place = (value: number) => (isLogX ? Math.log10(value > 0 ? value : least / 3) : value);
  const x = Float64Array.from(list, ([value]) => place(value));
  const y = Float64Array.from(list, ([, value]) => value);
  return { label, x, y, kind: "line", colour };
}
