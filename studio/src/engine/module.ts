/** Calls the engine's module (crates/studio/src/abi.rs), in a worker or in Node. */

/** The answer to a report of progress that asks for the samples of the run until then. */
export const WITH_PART = 2;

/** The functions that the module imports. */
export interface Page {
  /** Receives the completed share of a request. Returns 0 to continue, `WITH_PART` to receive a part, and else stops it. */
  progress(share: number): number;
  /** Receives the message of a run under way: a copy. */
  part?(octets: ArrayBuffer): void;
  captureLength(): number;
  /** Octets of the capture from `at` on, at most `length`; `null` if they cannot be read. */
  readCapture(at: number, length: number): Uint8Array | null;
}

interface Exports {
  memory: WebAssembly.Memory;
  request(length: number): number;
  answer(): number;
  answer_length(): number;
}

/** An instance of the engine. */
export class Instance {
  private constructor(private readonly exports: Exports) {}

  static async start(module: WebAssembly.Module, page: Page): Promise<Instance> {
    let memory: WebAssembly.Memory | undefined;
    const imports = {
      page: {
        progress: (share: number) => page.progress(share),
        part: (address: number, length: number) => {
          const at = address >>> 0;
          page.part?.(memory!.buffer.slice(at, at + (length >>> 0)) as ArrayBuffer);
        },
        capture_length: () => page.captureLength(),
        read_capture: (at: number, address: number, length: number) => {
          const octets = page.readCapture(at, length);
          if (!octets) return -1;
          new Uint8Array(memory!.buffer, address >>> 0, octets.length).set(octets);
          return octets.length;
        },
      },
    };
    const instance = await WebAssembly.instantiate(module, imports);
    const exports = instance.exports as unknown as Exports;
    memory = exports.memory;
    return new Instance(exports);
  }

  /** Octets of the module's memory, which never shrinks. */
  get memory(): number {
    return this.exports.memory.buffer.byteLength;
  }

  /** Serves a request. The answer is a copy. */
  ask(request: object): ArrayBuffer {
    const octets = new TextEncoder().encode(JSON.stringify(request));
    const { memory, request: room, answer, answer_length } = this.exports;
    const to = room(octets.length) >>> 0;
    new Uint8Array(memory.buffer, to, octets.length).set(octets);
    const at = answer() >>> 0;
    return memory.buffer.slice(at, at + (answer_length() >>> 0)) as ArrayBuffer;
  }
}

/** No capture, and no report of progress. */
export const ALONE: Page = { progress: () => 0, captureLength: () => 0, readCapture: () => null };
