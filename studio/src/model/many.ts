/** Runs for their summaries: on all cores, by the command if it opened the page, else by workers. */
import { Engine } from "../engine/client.ts";
import type { Brief, BriefOrder, Local } from "../engine/local.ts";
import type { Resolved, Summary } from "./summary.ts";

/** Most workers. */
export const MOST_WORKERS = 8;

/** Workers for runs beside the run in view. */
export class Many {
  private readonly engines: Engine[];

  constructor(
    module: Promise<WebAssembly.Module>,
    source: string,
    private readonly local: Local | undefined,
  ) {
    const count = Math.min(Math.max(navigator.hardwareConcurrency || 1, 1), MOST_WORKERS);
    this.engines = Array.from({ length: count }, () => new Engine(module, source));
  }

  get cores(): number {
    return this.local?.cores ?? this.engines.length;
  }

  /** Whether the command makes the runs. */
  get isNative(): boolean {
    return this.local !== undefined;
  }

  /** Makes runs, in the order of `orders`. */
  async runs(orders: BriefOrder[], made: (count: number) => void, signal: AbortSignal): Promise<Brief[]> {
    if (this.local) return this.local.runs(orders, made, signal);
    const stop = () => {
      for (const engine of this.engines) engine.stop();
    };
    signal.addEventListener("abort", stop);
    const all = new Array<Brief>(orders.length);
    let next = 0;
    let count = 0;
    const drain = async (engine: Engine) => {
      while (next < orders.length && !signal.aborted) {
        const i = next++;
        const { head } = await engine.ask({ request: "run", samples: 0, ...orders[i] });
        const described = head.scenario as unknown as { resolved_scenario: Resolved };
        all[i] = { summary: head.summary as unknown as Summary, resolved: described.resolved_scenario };
        made(++count);
      }
    };
    try {
      await Promise.all(this.engines.map(drain));
    } catch (error) {
      stop();
      throw error;
    } finally {
      signal.removeEventListener("abort", stop);
    }
    signal.throwIfAborted();
    return all;
  }
}
