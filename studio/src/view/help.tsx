/** The button "What would help": tries changes over three seeds, and names the best one with its price. */
import { useEffect, useRef, useState } from "preact/hooks";
import { type Engine, Problem } from "../engine/client.ts";
import { type Change, changes, gain, helps, neediest, type Outcome, outcome, sentence } from "../model/help.ts";
import { type Run, run as runOnce } from "../model/run.ts";

const SEEDS = 3;
/** Runs that would take longer than this together use one seed. */
const PATIENCE_MS = 8000;

interface Answer {
  change: Change;
  words: string;
  ratio: number;
}

/** The changes that help and the runs of each, or a sentence in their place. */
interface Found {
  answers: Answer[];
  seeds: number;
  none?: string;
}

interface Props {
  engine: Engine;
  run: Run;
  /** The flow to help, if one was chosen. */
  flow: string | undefined;
  seed: number | undefined;
  onText(text: string): void;
}

export function Help({ engine, run, flow: wanted, seed, onText }: Props) {
  const [found, setFound] = useState<Found>();
  const [tried, setTried] = useState<[number, number]>();
  const asked = useRef(0);
  useEffect(() => {
    asked.current++;
    setFound(undefined);
    setTried(undefined);
    return () => engine.stop();
  }, [run, wanted]);

  const ask = async () => {
    const mine = ++asked.current;
    const flow = wanted ?? neediest(run.summary);
    const all = flow === undefined ? [] : changes(run.text, run.resolved, run.summary, flow);
    if (flow === undefined || !all.length)
      return setFound({ answers: [], seeds: 0, none: `There is no change to try for ${flow ?? "these flows"}.` });
    const first = seed ?? run.resolved.seed;
    const count = run.took * all.length * SEEDS > PATIENCE_MS ? 1 : SEEDS;
    const seeds = Array.from({ length: count }, (_, i) => first + i);
    const over = async (text: string): Promise<Outcome> => {
      const runs: Run[] = [];
      for (const one of seeds) runs.push(await runOnce(engine, { text, seed: one, isBrief: true }));
      return outcome(runs, flow);
    };
    setTried([0, all.length]);
    try {
      const base = await over(run.text);
      const answers: Answer[] = [];
      for (const [i, change] of all.entries()) {
        try {
          const result = await over(change.text);
          answers.push({ change, words: sentence(change, base, result, flow), ratio: gain(base, result, flow) });
        } catch (error) {
          // A change that the scenario does not permit is no candidate.
          if (!(error instanceof Problem) || error.kind !== "scenario") throw error;
        }
        if (mine !== asked.current) return;
        setTried([i + 1, all.length]);
      }
      const best = answers.filter(({ ratio }) => helps(ratio)).sort((a, b) => b.ratio - a.ratio);
      const none = `None of the ${answers.length} changes tried helps ${flow} by 5 % or more.`;
      setFound({ answers: best, seeds: count, none });
    } catch (error) {
      if (mine === asked.current) setFound({ answers: [], seeds: 0, none: `No answer: ${(error as Error).message}.` });
    } finally {
      if (mine === asked.current) setTried(undefined);
    }
  };

  return (
    <div class="help">
      <button
        type="button"
        class="primary"
        onClick={() => {
          if (!tried) return void ask();
          asked.current++;
          engine.stop();
          setTried(undefined);
        }}
      >
        {tried ? `Stop (${tried[0]} of ${tried[1]} tried)` : `What would help${wanted ? ` ${wanted}` : ""}`}
      </button>
      <div aria-live="polite">
        {found?.answers.length === 0 && <p>{found.none}</p>}
        {found !== undefined && found.answers.length > 0 && (
          <>
            <ol>
              {found.answers.slice(0, 3).map(({ change, words }) => (
                <li key={change.words}>
                  {words}{" "}
                  <button type="button" onClick={() => onText(change.text)}>
                    Apply
                  </button>
                </li>
              ))}
            </ol>
            {found.seeds > 1 && <p class="soft">Means of {found.seeds} seeds.</p>}
          </>
        )}
      </div>
    </div>
  );
}
