/** The engine as the page sees it: requests to a worker, which can be stopped. */
import { type Message, readMessage } from "./message.ts";

/** One error of a scenario. */
export interface ScenarioError {
  line: number | null;
  column: number | null;
  message: string;
  help: string[];
}

/** A problem that the engine names. */
export class Problem extends Error {
  constructor(
    readonly kind: "scenario" | "stopped" | "request",
    text: string,
    readonly errors: ScenarioError[] = [],
  ) {
    super(text);
  }
}

interface Waiting {
  resolve(message: Message): void;
  reject(problem: Problem): void;
  progress?: (share: number) => void;
  part?: (message: Message) => void;
}

/** Addresses of the sources of workers: one each, however many workers start. */
const addresses = new Map<string, string>();

function addressOf(source: string): string {
  const known = addresses.get(source);
  if (known) return known;
  const made = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
  addresses.set(source, made);
  return made;
}

export class Engine {
  private worker: Worker | undefined;
  private waiting = new Map<number, Waiting>();
  private last = 0;

  constructor(
    private readonly module: Promise<WebAssembly.Module>,
    private readonly source: string,
  ) {}

  private async start(): Promise<Worker> {
    const module = await this.module;
    if (this.worker) return this.worker;
    const worker = new Worker(addressOf(this.source));
    worker.onmessage = ({ data }) => this.receive(data);
    worker.onerror = (event) => this.fail(event.message || "the engine's worker does not start");
    worker.postMessage({ module });
    this.worker = worker;
    return worker;
  }

  /** Sends a request. `part` receives the samples of a run until then. Rejects with a `Problem`. */
  ask(
    request: object,
    progress?: (share: number) => void,
    capture?: File,
    part?: (message: Message) => void,
  ): Promise<Message> {
    const id = ++this.last;
    return new Promise((resolve, reject) => {
      this.waiting.set(id, { resolve, reject, progress, part });
      this.start()
        .then((worker) => {
          if (this.waiting.has(id)) worker.postMessage({ id, request, capture, hasParts: part !== undefined });
        })
        .catch((error) => this.fail(`this browser does not run the engine: ${error}`));
    });
  }

  /** Ends all requests. */
  stop(): void {
    this.worker?.terminate();
    this.worker = undefined;
    this.end(new Problem("stopped", "stopped"));
  }

  private fail(text: string): void {
    this.worker?.terminate();
    this.worker = undefined;
    this.end(new Problem("request", text));
  }

  private end(problem: Problem): void {
    const ended = [...this.waiting.values()];
    this.waiting.clear();
    for (const one of ended) one.reject(problem);
  }

  private receive(data: {
    id: number;
    share?: number;
    part?: ArrayBuffer;
    octets?: ArrayBuffer;
    failed?: string;
    memory?: number;
  }): void {
    const one = this.waiting.get(data.id);
    if (!one) return;
    if (data.share !== undefined) {
      one.progress?.(data.share);
      return;
    }
    if (data.part) {
      one.part?.(readMessage(data.part));
      return;
    }
    this.waiting.delete(data.id);
    if (data.failed !== undefined || !data.octets) {
      one.reject(new Problem("request", trapped(data.failed ?? "", data.memory)));
      return;
    }
    const message = readMessage(data.octets);
    const problem = message.head.problem as unknown as
      | { kind: "scenario" | "stopped" | "request"; text?: string; errors?: ScenarioError[] }
      | undefined;
    if (problem) one.reject(new Problem(problem.kind, problem.text ?? problem.kind, problem.errors));
    else one.resolve(message);
  }
}

/**
 * Octets of memory from which a trap is a failed allocation: a table that grows is copied to twice its room, and all
 * is at most 4 GiB.
 */
const FULL = 2 ** 30;

/** The message for a trap of the module, whose memory had this number of octets. */
export function trapped(error: string, memory = 0): string {
  const isFull = /memory|allocation/i.test(error) || (/unreachable/i.test(error) && memory >= FULL);
  return isFull
    ? "this needs more memory than a page has; the command `anabranch` has no such limit"
    : `the engine failed: ${error}`;
}
