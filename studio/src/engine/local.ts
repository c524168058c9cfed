/** The command that opened the page: work that a browser cannot do. Absent in a page from a file. */
import type { Resolved, Summary } from "../model/summary.ts";
import { Table, type Texts } from "./message.ts";

/** The offers of the command (python/anabranch/studio/jobs.py). */
interface Offered {
  capture: string | null;
  save: string | null;
  follow: string | null;
  cores: number;
}

/** A run for its summary. */
export interface BriefOrder {
  scenario: string;
  set?: string[];
  seed?: number;
}

export interface Brief {
  summary: Summary;
  resolved: Resolved;
}

interface Part {
  problem?: string;
  share?: number;
  summaries?: (Summary & { resolved_scenario: Resolved })[];
  summary?: Summary & { resolved_scenario: Resolved; duration_s: number };
  tables?: { [table: string]: { [column: string]: (number | string | boolean | null)[] } };
}

export class Local {
  constructor(private readonly offered: Offered) {}

  /** The file that a scenario is saved into. */
  get file(): string | null {
    return this.offered.save;
  }

  /** The interface that is followed. */
  get follows(): string | null {
    return this.offered.follow;
  }

  get cores(): number {
    return this.offered.cores;
  }

  private async read(name: string): Promise<Blob> {
    const answer = await fetch(name);
    if (!answer.ok) throw new Error(`the command does not send ${name}`);
    return answer.blob();
  }

  /** The capture that the command was given. */
  async capture(): Promise<File | undefined> {
    const { capture } = this.offered;
    return capture === null ? undefined : new File([await this.read("capture")], capture);
  }

  /** The last packets of the interface. */
  async followed(): Promise<File> {
    return new File([await this.read("follow")], `${this.follows}.pcap`);
  }

  /** Asks for work; `take` receives each part of the answer. */
  private async work(name: string, order: object, take: (part: Part) => void, signal?: AbortSignal): Promise<void> {
    const answer = await fetch(name, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(order),
      signal,
    });
    if (answer.status === 409) throw new Error("the command is at work on another request");
    if (!answer.ok || !answer.body) throw new Error(`the command does not serve ${name}`);
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    for (;;) {
      const { value, done } = await reader.read();
      const lines = (rest + (value ?? "")).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) {
        const part: Part = JSON.parse(line);
        if (part.problem !== undefined) throw new Error(part.problem);
        take(part);
      }
      if (done) return;
    }
  }

  async save(text: string): Promise<void> {
    await this.work("save", { text }, () => undefined);
  }

  /** Makes runs on all cores. */
  async runs(orders: BriefOrder[], made: (count: number) => void, signal?: AbortSignal): Promise<Brief[]> {
    const all: Brief[] = [];
    const take = ({ summaries }: Part) => {
      for (const summary of summaries ?? []) all.push({ summary, resolved: summary.resolved_scenario });
      made(all.length);
    };
    await this.work("runs", { runs: orders }, take, signal);
    return all;
  }

  /** Makes a run with the kernel of this machine. */
  async live(scenario: string, seed: number | undefined, progress: (share: number) => void, signal?: AbortSignal) {
    let last: Part = {};
    const take = (part: Part) => {
      if (part.share !== undefined) progress(part.share);
      else last = part;
    };
    await this.work("live", { scenario, seed }, take, signal);
    if (!last.summary) throw new Error("the live run ended without a result");
    const tables = Object.entries(last.tables ?? {}).map(([name, columns]): [string, Table] => [
      name,
      tableOf(columns),
    ]);
    return { summary: last.summary, tables: new Map(tables) };
  }
}

/** A table of columns in JSON. */
export function tableOf(columns: { [name: string]: (number | string | boolean | null)[] }): Table {
  const rows = Object.values(columns)[0]?.length ?? 0;
  const made = Object.entries(columns).map(([name, values]): [string, Float64Array | Uint8Array | Texts] => {
    const kind = typeof values.find((value) => value !== null);
    if (kind === "string") {
      const names = [...new Set(values.filter((value) => value !== null) as string[])];
      const codes = new Map(names.map((text, code) => [text, code]));
      const code = (value: number | string | boolean | null) =>
        value === null ? names.length : codes.get(value as string)!;
      return [name, { codes: Uint32Array.from(values, code), names }];
    }
    if (kind === "boolean") return [name, Uint8Array.from(values, (value) => (value === null ? 2 : Number(value)))];
    return [name, Float64Array.from(values, (value) => (value === null ? Number.NaN : (value as number)))];
  });
  return new Table(rows, new Map(made));
}

/** The command that opened this page, if one did. */
export function local(): Local | undefined {
  const found = document.getElementById("served")?.textContent;
  return found ? new Local(JSON.parse(found)) : undefined;
}
