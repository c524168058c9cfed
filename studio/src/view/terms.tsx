/** Explanations of the terms of the run in view. */
import type { Run } from "../model/run.ts";
import { termsOf } from "../model/terms.ts";

export function Terms({ run, flow }: { run: Run; flow: string | undefined }) {
  return (
    <details class="terms">
      <summary>Explain the terms of this run</summary>
      <dl>
        {termsOf(run.resolved, run.summary, flow).map(({ name, words }) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{words}</dd>
          </div>
        ))}
      </dl>
    </details>
  );
}
