/**
 * Positions of the values of a TOML text. The engine checks the text; this reader accepts any text and stops at the
 * first thing that it does not know, so that a half-typed scenario can still be edited by the controls.
 */

/** A value and its place in the text. */
export type Node = Table | List | Scalar;

export interface Scalar {
  kind: "scalar";
  start: number;
  end: number;
}

export interface List {
  kind: "list";
  start: number;
  end: number;
  items: Node[];
}

export interface Entry {
  node: Node;
  /** Begin and end of the statement `key = value`; equal for a table that a header makes. */
  start: number;
  end: number;
}

export interface Table {
  kind: "table";
  entries: Map<string, Entry>;
  /** Of an inline table: its braces. */
  inline?: { start: number; end: number };
  /** Of a table with a header: the end of its last statement. */
  section?: { end: number };
  /** Of a table that dotted keys make: the table of the statement, and the names before. */
  within?: { table: Table; names: string[] };
}

export function table(): Table {
  return { kind: "table", entries: new Map() };
}

class Stop extends Error {}

/** A header, from its bracket to the end of its line's brackets. */
export interface Header {
  names: string[];
  start: number;
}

class Reader {
  at = 0;
  readonly headers: Header[] = [];
  constructor(readonly text: string) {}

  private get char(): string {
    return this.text[this.at] ?? "";
  }

  private blank(lines: boolean): void {
    for (;;) {
      const c = this.char;
      if (c === " " || c === "\t" || (lines && (c === "\n" || c === "\r"))) this.at++;
      else if (c === "#") while (this.char && this.char !== "\n") this.at++;
      else return;
    }
  }

  private take(char: string): boolean {
    if (this.char !== char) return false;
    this.at++;
    return true;
  }

  private need(char: string): void {
    if (!this.take(char)) throw new Stop();
  }

  private string(): string {
    const quote = this.char;
    if (this.text.startsWith(quote.repeat(3), this.at)) {
      const end = this.text.indexOf(quote.repeat(3), this.at + 3);
      if (end < 0) throw new Stop();
      const found = this.text.slice(this.at + 3, end);
      this.at = end + 3;
      return found;
    }
    this.at++;
    let found = "";
    for (;;) {
      const c = this.char;
      if (!c || c === "\n") throw new Stop();
      this.at++;
      if (c === quote) return found;
      found += c === "\\" && quote === '"' ? (this.text[this.at++] ?? "") : c;
    }
  }

  private name(): string {
    if (this.char === '"' || this.char === "'") return this.string();
    const bare = /[A-Za-z0-9_-]+/y;
    bare.lastIndex = this.at;
    const found = bare.exec(this.text);
    if (!found) throw new Stop();
    this.at = bare.lastIndex;
    return found[0];
  }

  private names(): string[] {
    const names = [this.name()];
    for (;;) {
      this.blank(false);
      if (!this.take(".")) return names;
      this.blank(false);
      names.push(this.name());
    }
  }

  private value(): Node {
    const start = this.at;
    if (this.char === "[") {
      const items: Node[] = [];
      this.at++;
      for (;;) {
        this.blank(true);
        if (this.take("]")) return { kind: "list", start, end: this.at, items };
        items.push(this.value());
        this.blank(true);
        if (!this.take(",")) {
          this.need("]");
          return { kind: "list", start, end: this.at, items };
        }
      }
    }
    if (this.char === "{") {
      const made: Table = { ...table(), inline: { start, end: start } };
      this.at++;
      for (;;) {
        this.blank(true);
        if (this.take("}")) break;
        this.statement(made);
        this.blank(true);
        if (!this.take(",")) {
          this.need("}");
          break;
        }
      }
      made.inline!.end = this.at;
      return made;
    }
    if (this.char === '"' || this.char === "'") this.string();
    else while (this.char && !/[\s,\]}#]/.test(this.char)) this.at++;
    if (this.at === start) throw new Stop();
    return { kind: "scalar", start, end: this.at };
  }

  private statement(into: Table): void {
    const start = this.at;
    const names = this.names();
    this.blank(false);
    this.need("=");
    this.blank(false);
    const node = this.value();
    let at = into;
    for (const [i, name] of names.slice(0, -1).entries()) {
      const made: Table = { ...table(), within: { table: into, names: names.slice(0, i + 1) } };
      at = step(at, name, made);
    }
    at.entries.set(names[names.length - 1], { node, start, end: this.at });
    if (into.section) into.section.end = this.at;
  }

  /** Reads statements and headers up to the end, or to the first fault. */
  read(): Table {
    const root = table();
    root.section = { end: 0 };
    let current = root;
    try {
      for (;;) {
        this.blank(true);
        if (this.at >= this.text.length) break;
        if (this.char === "[") {
          const start = this.at;
          const isList = this.text.startsWith("[[", this.at);
          this.at += isList ? 2 : 1;
          this.blank(false);
          const names = this.names();
          this.need("]");
          if (isList) this.need("]");
          this.headers.push({ names, start });
          current = header(root, names, isList, this.at);
        } else this.statement(current);
      }
    } catch (error) {
      if (!(error instanceof Stop)) throw error;
    }
    return root;
  }
}

/** The table `name` in `into`: the last one of a list of tables, and `made` if there is none. */
function step(into: Table, name: string, made: Table): Table {
  const found = into.entries.get(name)?.node;
  const last = found?.kind === "list" ? found.items[found.items.length - 1] : found;
  if (last?.kind === "table") return last;
  into.entries.set(name, { node: made, start: 0, end: 0 });
  return made;
}

function header(root: Table, names: string[], isList: boolean, end: number): Table {
  let at = root;
  for (const name of names.slice(0, -1)) at = step(at, name, table());
  const last = names[names.length - 1];
  if (isList) {
    const made: Table = { ...table(), section: { end } };
    const found = at.entries.get(last)?.node;
    if (found?.kind === "list") found.items.push(made);
    else at.entries.set(last, { node: { kind: "list", start: end, end, items: [made] }, start: 0, end: 0 });
    return made;
  }
  const made = step(at, last, table());
  made.section = { end };
  return made;
}

/** Reads the positions of a text. */
export function readTree(text: string): Table {
  return new Reader(text).read();
}

/** The headers of a text, in order. */
export function readHeaders(text: string): Header[] {
  const reader = new Reader(text);
  reader.read();
  return reader.headers;
}
