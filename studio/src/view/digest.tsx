/** The digest of a run: equal to that of the command for the same scenario, seed and version. */
import { useEffect, useRef, useState } from "preact/hooks";
import type { Engine } from "../engine/client.ts";
import { type Run, run as runOnce } from "../model/run.ts";

export function Digest({ engine, run }: { engine: Engine; run: Run }) {
  const [digest, setDigest] = useState("");
  const shown = useRef(run);
  shown.current = run;
  useEffect(() => setDigest(""), [run]);
  const ask = async () => {
    setDigest("…");
    let found = "";
    try {
      const made = await runOnce(engine, { text: run.text, seed: run.seed, digest: true, isBrief: true });
      found = made.summary.digest ?? "none";
    } catch {
      // Stopped.
    }
    // Another run may be in view by now.
    if (shown.current === run) setDigest(found);
  };
  return (
    <p class="digest">
      <button type="button" title="A hash of every event: equal digests are equal runs" onClick={ask}>
        Digest
      </button>{" "}
      <code aria-live="polite">{digest}</code>
    </p>
  );
}
