/** Evaluates the expressions of claims, as in python/anabranch/study/expression.py. */
import type { Condition, Expression, Tree } from "./definition.ts";
import { FUNCTIONS, type Keywords } from "./functions.ts";
import { type Cell, combine, NoValue, number, Series, type Value } from "./series.ts";

/** The source of quantities. */
export interface Source {
  /** Whether a name is a quantity; else it is an axis. */
  isQuantity(name: string): boolean;
  quantity(name: string, experiment: string | undefined): Series;
  axis(name: string, experiment: string | undefined): Series;
}

export type Measures = Map<string, Value>;

const ARITHMETIC: { [operator: string]: (a: number, b: number) => number | null } = {
  "+": (a, b) => a + b,
  "-": (a, b) => a - b,
  "*": (a, b) => a * b,
  "/": (a, b) => (b === 0 ? null : a / b),
  "**": power,
};

/** null where the command has no value: 0 to a negative power, and an overflow. */
function power(a: number, b: number): number | null {
  const made = a ** b;
  return Number.isFinite(made) || !Number.isFinite(a) || !Number.isFinite(b) ? made : null;
}

const COMPARISONS: { [operator: string]: (a: number | string, b: number | string) => boolean } = {
  "<": (a, b) => a < b,
  "<=": (a, b) => a <= b,
  ">": (a, b) => a > b,
  ">=": (a, b) => a >= b,
  "==": (a, b) => a === b,
  "!=": (a, b) => a !== b,
};

export function evaluate(
  expression: Expression,
  source: Source,
  measures: Measures,
  experiment: string | undefined,
): Value {
  return new Evaluator(source, measures, experiment).value(expression.tree);
}

class Evaluator {
  constructor(
    private readonly source: Source,
    private readonly measures: Measures,
    private readonly experiment: string | undefined,
  ) {}

  value(tree: Tree): Value {
    const [operator, ...operands] = tree;
    const each = operands as Tree[];
    switch (operator) {
      case "value":
        return operands[0] as Cell;
      case "name":
        return this.named(operands[0] as string);
      case "neg":
        return combine(0, this.value(each[0]), (a, b) => number(a) - number(b));
      case "not": {
        const value = this.value(each[0]);
        return value instanceof Series ? value.map((one) => !one) : !value;
      }
      case "and":
        return this.folded(each, (a, b) => Boolean(a) && Boolean(b));
      case "or":
        return this.folded(each, (a, b) => Boolean(a) || Boolean(b));
      case "compare":
        return this.compare(operands[0] as string[], each.slice(1));
      case "select":
        return this.selection(operands as [string, string | null, string[], Condition[]]);
      case "call":
        return this.call(operands[0] as string, operands[1] as { [name: string]: Tree | string }, each.slice(2));
      default: {
        const act = ARITHMETIC[operator];
        return combine(this.value(each[0]), this.value(each[1]), (a, b) => act(number(a), number(b)));
      }
    }
  }

  private named(name: string): Value {
    const measure = this.measures.get(name);
    if (measure !== undefined) return measure;
    if (this.source.isQuantity(name)) return this.source.quantity(name, this.experiment);
    return this.source.axis(name, this.experiment);
  }

  private folded(trees: Tree[], act: (a: Cell, b: Cell) => Cell): Value {
    return trees.map((tree) => this.value(tree)).reduce((a, b) => combine(a, b, act));
  }

  private compare(operators: string[], trees: Tree[]): Value {
    let left = forComparison(this.value(trees[0]));
    let result: Value = true;
    operators.forEach((operator, i) => {
      const right = forComparison(this.value(trees[i + 1]));
      const step = combine(left, right, (a, b) => {
        if ((typeof a === "string") !== (typeof b === "string")) {
          const shown = (value: Cell) => (typeof value === "string" ? `'${value}'` : String(value));
          throw new NoValue(`${shown(a)} ${operator} ${shown(b)} compares text with a number`);
        }
        const plain = (value: Cell) => (typeof value === "boolean" ? Number(value) : value) as number | string;
        return COMPARISONS[operator](plain(a), plain(b));
      });
      result = combine(result, step, (a, b) => Boolean(a) && Boolean(b));
      left = right;
    });
    return result;
  }

  private call(name: string, given: { [name: string]: Tree | string }, trees: Tree[]): Value {
    const values = trees.map((tree) => this.value(tree));
    const keywords: Keywords = {};
    for (const [keyword, one] of Object.entries(given)) {
      keywords[keyword] = typeof one === "string" ? one : this.value(one);
    }
    return FUNCTIONS[name](values, keywords);
  }

  private selection([name, experiment, variants, conditions]: [string, string | null, string[], Condition[]]): Series {
    let series = this.source.quantity(name, experiment ?? this.experiment);
    for (const variant of variants) {
      const none = `the experiment has no variant ${variant}`;
      if (!series.axes.includes("variant")) throw new NoValue(none);
      const kept = series.keep((at) => at("variant") === variant);
      if (!kept.rows.length) throw new NoValue(none);
      series = kept.drop("variant");
    }
    for (const condition of conditions) series = this.filtered(series, condition);
    return series;
  }

  private filtered(series: Series, condition: Condition): Series {
    for (const axis of condition.axes) {
      if (!series.axes.includes(axis)) {
        throw new NoValue(`there is no axis ${axis} here, only ${series.axes.join(", ") || "one value"}`);
      }
    }
    const here: Measures = new Map(this.measures);
    const inner = new Evaluator(this.source, here, this.experiment);
    const kept = series.keep((at) => {
      for (const axis of series.axes) here.set(axis, at(axis));
      return Boolean(inner.value(condition.tree));
    });
    if (!kept.rows.length) throw new NoValue(`no point of the grid has ${condition.text}`);
    return condition.fixed === null ? kept : kept.drop(condition.fixed);
  }
}

/** Series are compared by their means over seeds, samples run by run. */
function forComparison(value: Value): Value {
  return value instanceof Series && !value.axes.includes("time_s") ? value.collapsed() : value;
}
