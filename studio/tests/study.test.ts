/** Claims in the page: expressions, functions and verdicts are those of the command. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, test } from "node:test";
import { type Message, readMessage } from "../src/engine/message.ts";
import { ALONE, Instance } from "../src/engine/module.ts";
import type { Claim, Expression, Study } from "../src/study/definition.ts";
import { evaluate, type Source } from "../src/study/expression.ts";
import { conclude, general, type Judgement, measured } from "../src/study/judge.ts";
import { type Cell, NoValue, Series, type Value } from "../src/study/series.ts";
import { fsum, interval, jain, ofMaxMin, tQuantile } from "../src/study/statistics.ts";
import { Work } from "../src/study/study.ts";

const read = (name: string) => {
  const file = process.env[name];
  return file ? JSON.parse(readFileSync(file, "utf8")) : undefined;
};

type Plain = Cell | { number: string } | { axes: string[]; rows: [Cell[], Plain][] };

/** A value that the command wrote. */
function value(plain: Plain): Value {
  if (plain === null || typeof plain !== "object") return plain;
  if ("number" in plain)
    return { inf: Number.POSITIVE_INFINITY, "-inf": Number.NEGATIVE_INFINITY, nan: Number.NaN }[plain.number]!;
  return new Series(
    plain.axes,
    plain.rows.map(([key, cell]) => [key, value(cell) as Cell]),
  );
}

function assertClose(found: Cell, expected: Cell, what: string): void {
  if (typeof found === "number" && typeof expected === "number" && Number.isFinite(expected)) {
    assert.ok(
      Math.abs(found - expected) <= 1e-11 * Math.max(1, Math.abs(expected)),
      `${what}: ${found}, not ${expected}`,
    );
    // The command counts with booleans, whose JSON differs.
  } else
    assert.ok(Object.is(Number(found), Number(expected)) || found === expected, `${what}: ${found}, not ${expected}`);
}

describe("claims", () => {
  test("sums are rounded once", () => {
    assert.equal(fsum([1e16, 1, -1e16]), 1);
    assert.equal(fsum(Array(10).fill(0.1)), 1);
    assert.equal(fsum([1, 1e100, 1, -1e100]), 2);
    assert.equal(fsum([]), 0);
    assert.equal(fsum([1, Number.POSITIVE_INFINITY]), Number.POSITIVE_INFINITY);
  });

  test("quantiles of Student's t are those of the tables", () => {
    for (const [degrees, expected] of [
      [1, 12.7062],
      [2, 4.30265],
      [9, 2.26216],
      [30, 2.04227],
      [200, 1.9719],
    ])
      assert.ok(Math.abs(tQuantile(0.975, degrees) - expected) < 5e-5, `${degrees}`);
    assert.equal(interval([1]), undefined);
  });

  test("fairness leaves out flows of unknown demand", () => {
    const goodputs = new Map([
      ["a", 4],
      ["b", 2],
      ["c", 3],
    ]);
    const demands = new Map([
      ["a", Number.POSITIVE_INFINITY],
      ["b", 2],
      ["c", Number.NaN],
    ]);
    assert.deepEqual(ofMaxMin(goodputs, 10, demands), [0.8, 1]);
    assert.equal(jain([1, 1]), 1);
    assert.equal(jain([0, 0]), null);
  });

  test("numbers are shown as the command shows them", () => {
    for (const [number, digits, text] of [
      [9.543421, 4, "9.543"],
      [0.00006565, 4, "6.565e-05"],
      [123456, 6, "123456"],
      [1234567, 6, "1.23457e+06"],
      [0.5, 4, "0.5"],
      [0, 6, "0"],
      [100, 6, "100"],
      [99999.6, 4, "1e+05"],
    ] as const)
      assert.equal(general(number, digits), text);
  });

  test("a claim that fails or holds by chance gets the command's verdict", () => {
    const claim = { id: "X", why: "Because.", check: { control: null } } as unknown as Claim;
    const failed: Judgement = { holds: false, measures: [["x_mbit_s", 2]], reason: "does not hold: x > 3" };
    const held: Judgement = { holds: true, measures: [["x_mbit_s", 4]], reason: "" };
    assert.deepEqual(conclude(claim, failed), {
      verdict: "not reproduced",
      why: "does not hold: x > 3. Because.",
    });
    assert.equal(conclude(claim, held).verdict, "reproduced");
    assert.equal(conclude(claim, held, { control: held }).verdict, "inconclusive");
    assert.equal(conclude(claim, held, { control: failed, jitter: 0.4 }).verdict, "reproduced (fragile)");
    assert.equal(
      conclude({ ...claim, robustness: 0.125 }, held).why,
      "it holds at only 12% of the open parameters' plausible points. Because.",
    );
    const inconsistent = { statements: ["a", "b"], argument: "They exclude each other.", proof: null, excludes: ["Y"] };
    assert.deepEqual(conclude({ ...claim, inconsistent }, failed, { proof: { plain: held } }), {
      verdict: "paper inconsistent",
      why: "They exclude each other. Shown by: x 4 Mbit/s",
    });
    const witnesses = [
      { name: "w", title: "ns-2", holds: true, measured: "x 5", verdict: "reproduced", reason: "", share: null },
    ];
    const artefact = { witness: "w", argument: "Only there." };
    assert.equal(conclude({ ...claim, artefact, witnesses }, failed).verdict, "artefact");
  });

  test("expressions have the command's values", { skip: !process.env.STUDIO_EXPRESSIONS }, () => {
    const { series, expressions } = read("STUDIO_EXPRESSIONS") as {
      series: { [experiment: string]: { [name: string]: Plain } };
      expressions: (Expression & { value?: Plain; none?: string })[];
    };
    const known = Object.fromEntries(
      Object.entries(series).map(([experiment, own]) => [
        experiment,
        Object.fromEntries(Object.entries(own).map(([name, one]) => [name, value(one) as Series])),
      ]),
    );
    const axes = (experiment: string) => Object.values(known[experiment])[0];
    const source: Source = {
      isQuantity: (name) => ["x", "y", "k", "gap", "t", "u", "state", "twice"].includes(name),
      quantity(name, experiment) {
        if (name === "twice") return known.grid.x.map((cell) => 2 * (cell as number));
        const own = known[experiment ?? "grid"][name];
        return own ?? known.time[name] ?? known.grid[name];
      },
      axis(name, experiment) {
        const of = axes(experiment ?? "grid");
        const at = of.axes.indexOf(name);
        if (at < 0 || name === "time_s") throw new NoValue(`the experiment has no axis ${name}`);
        return new Series(
          [name],
          [...new Set(of.rows.map(([key]) => key[at]))].map((one) => [[one], one]),
        );
      },
    };
    for (const one of expressions) {
      let found: Value;
      try {
        found = evaluate(one, source, new Map(), undefined);
      } catch (error) {
        assert.ok(error instanceof NoValue, `${one.text}: ${error}`);
        assert.equal(error.message, one.none, one.text);
        continue;
      }
      assert.equal(one.none, undefined, `${one.text} has a value`);
      const expected = value(one.value!);
      if (!(expected instanceof Series)) {
        assertClose(found as Cell, expected, one.text);
        continue;
      }
      assert.ok(found instanceof Series, one.text);
      assert.deepEqual(found.axes, expected.axes, one.text);
      const cells = new Map(found.rows.map(([key, cell]) => [JSON.stringify(key), cell]));
      assert.equal(cells.size, expected.rows.length, one.text);
      for (const [key, cell] of expected.rows)
        assertClose(cells.get(JSON.stringify(key))!, cell, `${one.text} at ${key}`);
    }
    assert.ok(expressions.length > 70);
  });

  const verdicts = read("STUDIO_VERDICTS") as
    | {
        study: string;
        claims: { id: string; verdict: string; measured: string; why?: string; control: string | null }[];
      }[]
    | undefined;
  const studies = read("STUDIO_STUDIES") as Study[] | undefined;
  for (const { study: name, claims } of verdicts ?? []) {
    test(`the verdicts on ${name} are the command's`, async () => {
      const module = await WebAssembly.compile(readFileSync(process.env.STUDIO_WASM!));
      const instance = await Instance.start(module, ALONE);
      const ask = async (request: object): Promise<Message> => {
        const message = readMessage(instance.ask(request));
        assert.equal(message.head.problem, undefined, JSON.stringify(message.head.problem));
        return message;
      };
      const study = studies!.find((one) => one.name === name)!;
      const work = new Work(study);
      for (const expected of claims) {
        const claim = study.claims.find(({ id }) => id === expected.id)!;
        for (const run of work.ofClaim(claim)) await work.make(ask, run);
        const found = work.judged(claim);
        assert.equal(found.verdict, expected.verdict, `${claim.id}: ${found.why}`);
        assert.equal(measured(found.plain), expected.measured, claim.id);
        // The page does not know whether the stored robustness is older than the study.
        const why = expected.why?.replace(" (computed before the last change)", "");
        assert.equal(found.verdict === "reproduced" ? undefined : found.why, why, claim.id);
      }
      for (const figure of study.figures) {
        for (const run of work.ofFigure(figure)) await work.make(ask, run);
        assert.ok(
          work.chart(figure).series.every(({ x, kind }) => x.length > (kind === "crosses" ? 0 : 1)),
          figure.id,
        );
      }
    });
  }

  test("each study has claims, and figures with lines", { skip: !studies }, () => {
    for (const { name, claims, figures, plans, runs } of studies!) {
      assert.ok(claims.length > 5 && figures.length && plans.plain.length && runs.length, name);
    }
  });
});
