/** A study as tools/build_studio prepares it (studio/studies/prepare.py): claims, figures and the quick grid's runs. */

/** An expression's tree: an operator, then its operands. */
export type Tree = [string, ...unknown[]];

export interface Expression {
  text: string;
  tree: Tree;
}

/** A condition on the points of a selection. */
export interface Condition {
  text: string;
  tree: Tree;
  axes: string[];
  /** The axis with one value, which is dropped. */
  fixed: string | null;
}

/** The runs that an expression reads: an experiment and one of its variants, or all. */
export type Need = [experiment: string, variant: string | null];

export interface Check {
  experiment: string;
  measures: [name: string, expression: Expression][];
  accept: Expression[];
  control: string | null;
  needs: Need[];
}

export interface OnWitness {
  name: string;
  title: string;
  holds: boolean;
  measured: string;
  verdict: string;
  reason: string;
  share: number | null;
}

export interface Claim {
  id: string;
  claim: string;
  published: string;
  acceptIf: string;
  section: string | null;
  note: string;
  why: string;
  fullOnly: boolean;
  check: Check;
  robustness?: number;
  depends?: string[];
  /** The claims that hold at each point of the open parameters' ranges. */
  points?: { [claim: string]: boolean | null }[];
  witnesses?: OnWitness[];
  inconsistent?: { statements: string[]; argument: string; proof: Check | null; excludes: string[] };
  artefact?: { witness: string; argument: string };
}

export interface Figure {
  id: string;
  title: string;
  published: string;
  experiment: string;
  x: string;
  xLabel: string;
  yLabel: string;
  isLogX: boolean;
  variants: string[];
  lines: [label: string, expression: Expression][];
  printed: { [line: string]: [number, number][] };
  needs: Need[];
}

export interface Quantity {
  label: string;
  expression?: Expression;
  path?: string;
  combine?: string;
  capacity?: number;
  table?: string;
  column?: string;
  select?: { [column: string]: string };
}

/** A place of the grid, and its run. */
export type Placed = [experiment: string, variant: string, point: number[], seed: number, run: number];

/** A run: the scenario's file, numbers of changes, the seed, and the interval of samples in milliseconds. */
export type Made = [file: string, changes: number[], seed: number, samples: number | null];

export interface Study {
  name: string;
  title: string;
  source: string;
  about: string;
  default_experiment: string;
  experiments: { [name: string]: { axes: string[]; hasVariants: boolean } };
  variants: { [name: string]: string };
  quantities: { [name: string]: Quantity };
  sections: { [name: string]: { title: string; about: string } };
  wrongs: { [name: string]: string };
  claims: Claim[];
  figures: Figure[];
  plans: { [condition: string]: Placed[] };
  runs: Made[];
  changes: string[];
  scenarios: { [file: string]: string };
}
