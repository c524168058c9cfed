/** Verdicts on claims, as in python/anabranch/study/verdict.py. */
import type { Check, Claim, OnWitness } from "./definition.ts";
import { evaluate, type Measures, type Source } from "./expression.ts";
import { type Cell, NoValue, Series, type Value } from "./series.ts";

/** A verdict is fragile if it holds at less than this share of settings, or of seeds of the start. */
const FRAGILE_BELOW = 0.5;

export type Verdict =
  | "reproduced"
  | "reproduced (fragile)"
  | "not reproduced"
  | "inconclusive"
  | "paper inconsistent"
  | "artefact"
  | "artefact (fragile)";

/** A check on one set of runs. */
export interface Judgement {
  /** null if it is undecided. */
  holds: boolean | null;
  measures: [name: string, value: Cell][];
  reason: string;
}

export interface Concluded {
  verdict: Verdict;
  why: string;
}

function valueOr<T>(act: () => T, none: (message: string) => T): T {
  try {
    return act();
  } catch (error) {
    if (error instanceof NoValue) return none(error.message);
    throw error;
  }
}

export function judge(check: Check, source: Source): Judgement {
  const values: Measures = new Map();
  const shown: [string, Cell][] = [];
  const missing: string[] = [];
  for (const [name, expression] of check.measures) {
    valueOr(
      () => {
        const value = evaluate(expression, source, values, check.experiment);
        values.set(name, value);
        shown.push(...shownOf(name, value));
      },
      (message) => {
        values.set(name, null);
        missing.push(`${name}: ${message}`);
      },
    );
  }
  const failed: string[] = [];
  const unknown: string[] = [];
  for (const condition of check.accept) {
    valueOr(
      () => {
        if (!truth(evaluate(condition, source, values, check.experiment))) failed.push(condition.text);
      },
      (message) => {
        unknown.push(`${condition.text}: ${message}`);
      },
    );
  }
  if (failed.length) return { holds: false, measures: shown, reason: `does not hold: ${failed.join("; ")}` };
  if (unknown.length) {
    return { holds: null, measures: shown, reason: (missing.length ? missing : unknown).join("; ") };
  }
  return { holds: true, measures: shown, reason: "" };
}

function truth(value: Value): boolean {
  let cell: Cell;
  if (value instanceof Series) {
    const flat = value.collapsed();
    if (flat.rows.length !== 1) throw new NoValue("several points; say all(…) or share(…)");
    cell = flat.rows[0][1];
  } else cell = value;
  if (cell === null || Number.isNaN(cell)) throw new NoValue("no value");
  return Boolean(cell);
}

/** A measure for people: a single figure; later measures reduce a series. */
function shownOf(name: string, value: Value): [string, Cell][] {
  if (!(value instanceof Series)) {
    if (value === null) throw new NoValue("no value");
    return [[name, value]];
  }
  const flat = value.collapsed();
  return flat.rows.length === 1 ? [[name, flat.rows[0][1]]] : [];
}

/** The results of a claim under other conditions than its own. */
export interface Others {
  control?: Judgement;
  /** Share of the seeds of the start with which it holds. */
  jitter?: number;
  proof?: { plain: Judgement; control?: Judgement };
}

/** The verdict, from all results. */
export function conclude(claim: Claim, plain: Judgement, { control, jitter, proof }: Others = {}): Concluded {
  let verdict: Verdict = plain.holds === null ? "inconclusive" : plain.holds ? "reproduced" : "not reproduced";
  let why = plain.reason;
  const shown = plain.holds === false ? artefact(claim) : undefined;
  if (plain.holds === false && claim.inconsistent && proof && isShown(proof)) {
    verdict = "paper inconsistent";
    why = `${claim.inconsistent.argument} Shown by: ${measured(proof.plain)}`;
  } else if (shown) {
    ({ verdict, why } = shown);
  } else if (plain.holds === false) {
    if (claim.why) why = `${why}. ${claim.why}`;
    if (proof) why = `${why}. The proof that the source contradicts itself fails: ${reasonOf(proof)}`;
    const failing = (claim.witnesses ?? []).filter(({ name }) => name === claim.artefact?.witness);
    why += failing.map(({ title, reason }) => `. Not shown to be an artefact of ${title}: ${reason}`).join("");
  }
  if (control && plain.holds === true && control.holds !== false) {
    verdict = "inconclusive";
    why = control.holds
      ? `the check accepts the wrong system, too (${measured(control)}): no number of runs settles it`
      : `the check cannot be made on the wrong system: ${control.reason}`;
  }
  if (verdict !== "reproduced") return { verdict, why };
  const reasons: string[] = [];
  const { robustness, depends } = claim;
  if (jitter !== undefined && jitter < FRAGILE_BELOW) {
    reasons.push(`with start jitter it holds for only ${whole(jitter)} of the seeds`);
  }
  if (robustness !== undefined && robustness < FRAGILE_BELOW) {
    reasons.push(`it holds at only ${whole(robustness)} of the open parameters' plausible points`);
    if (depends?.length) reasons.push(`the points differ most by ${depends.join(" and ")}`);
  }
  if (!reasons.length) return { verdict, why };
  return { verdict: "reproduced (fragile)", why: reasons.join("; ") + (claim.why ? `. ${claim.why}` : "") };
}

function isShown({ plain, control }: { plain: Judgement; control?: Judgement }): boolean {
  return plain.holds === true && (!control || control.holds === false);
}

function reasonOf({ plain, control }: { plain: Judgement; control?: Judgement }): string {
  if (plain.holds !== true) return plain.reason;
  if (control?.holds === true) return "it holds on its wrong system as well";
  return control?.reason ?? "";
}

function artefact(claim: Claim): Concluded | undefined {
  const one: OnWitness | undefined = claim.witnesses?.find(
    ({ name, holds }) => name === claim.artefact?.witness && holds,
  );
  if (!claim.artefact || !one) return undefined;
  const why = `${claim.artefact.argument} ${one.title}: ${one.measured}`;
  if (one.share === null || one.share >= FRAGILE_BELOW) return { verdict: "artefact", why };
  return {
    verdict: "artefact (fragile)",
    why: `${why}; it holds at only ${whole(one.share)} of the settings with runs there`,
  };
}

/** The proof that claims exclude each other: together they hold at no point, and each holds somewhere. */
export function exclusion(claim: Claim, plain: { [claim: string]: boolean | null }): Judgement {
  const together = [claim.id, ...claim.inconsistent!.excludes];
  if (!claim.points) {
    const reason = "the points have not been computed: the study was not run for robustness";
    return { holds: null, measures: [], reason };
  }
  const points = [...claim.points, plain];
  const holding = together.map((name): [string, number] => [
    name,
    points.filter((point) => point[name] === true).length,
  ]);
  const both = points.filter((point) => together.every((name) => point[name] === true)).length;
  const measures: [string, Cell][] = [
    ["settings", points.length],
    ...holding.map(([name, count]): [string, Cell] => [`${name}_holds_at`, count]),
  ];
  const never = holding.filter(([, count]) => !count).map(([name]) => name);
  const reason = both
    ? `${together.join(" and ")} hold together in ${both} settings`
    : never.length
      ? `${never.join(", ")} holds in no setting`
      : "";
  return { holds: !reason, measures, reason };
}

/** A share in whole per cent; a half is rounded to the even number. */
function whole(share: number): string {
  const value = 100 * share;
  const down = Math.floor(value);
  const isUp = value - down > 0.5 || (value - down === 0.5 && down % 2 === 1);
  return `${isUp ? down + 1 : down}%`;
}

const UNITS: [suffix: string, unit: string][] = [
  ["_mbit_s", "Mbit/s"],
  ["_ms", "ms"],
  ["_s", "s"],
  ["_packets", "packets"],
  ["_bytes", "bytes"],
  ["_joules", "J"],
  ["_percent", "%"],
];

/** The measured figures, for people. */
export function measured({ measures }: Judgement): string {
  return measures.map(([name, value]) => said(name, value)).join(", ");
}

function said(name: string, value: Cell): string {
  const found = UNITS.find(([suffix]) => name.endsWith(suffix));
  const words = (found ? name.slice(0, -found[0].length) : name).replaceAll("_", " ");
  return `${words} ${show(value)}${found ? ` ${found[1]}` : ""}`;
}

function show(value: Cell): string {
  if (value === null) return "–";
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (typeof value === "string") return value;
  return general(value, Number.isInteger(value) ? 6 : 4);
}

/** A number with significant digits and without trailing zeros, as C's %g. */
export function general(value: number, digits: number): string {
  if (!Number.isFinite(value)) return Number.isNaN(value) ? "nan" : value < 0 ? "-inf" : "inf";
  if (value === 0) return Object.is(value, -0) ? "-0" : "0";
  const [mantissa, power] = value.toExponential(digits - 1).split("e");
  const exponent = Number(power);
  const trim = (text: string) => (text.includes(".") ? text.replace(/\.?0+$/, "") : text);
  if (exponent >= -4 && exponent < digits) return trim(value.toFixed(digits - 1 - exponent));
  return `${trim(mantissa)}e${exponent < 0 ? "-" : "+"}${String(Math.abs(exponent)).padStart(2, "0")}`;
}
