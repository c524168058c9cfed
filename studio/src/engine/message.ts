/** Reads an answer of the engine: JSON, then columns as typed arrays in place (crates/studio/src/message.rs). */

export type Json = null | boolean | number | string | Json[] | { [name: string]: Json };

/** A column of texts: an index into the names for each row; the number of names where there is no text. */
export interface Texts {
  codes: Uint32Array;
  names: string[];
}

interface Declared {
  name: string;
  kind: "number" | "flag" | "text";
  at: number;
  names?: string[];
}

/** A table of a run. */
export class Table {
  constructor(
    readonly rows: number,
    private readonly columns: Map<string, Float64Array | Uint8Array | Texts>,
  ) {}

  private column(name: string): Float64Array | Uint8Array | Texts {
    const found = this.columns.get(name);
    if (!found) throw new Error(`no column ${name}`);
    return found;
  }

  has(name: string): boolean {
    return this.columns.has(name);
  }

  kindOf(name: string): "number" | "flag" | "text" {
    const column = this.column(name);
    return column instanceof Float64Array ? "number" : column instanceof Uint8Array ? "flag" : "text";
  }

  /** NaN where there is no value. */
  numbers(name: string): Float64Array {
    return this.column(name) as Float64Array;
  }

  /** 0, 1, or 2 where there is no value. */
  flags(name: string): Uint8Array {
    return this.column(name) as Uint8Array;
  }

  texts(name: string): Texts {
    return this.column(name) as Texts;
  }

  /** The rows whose text is `text`. */
  rowsWith(name: string, text: string): Uint32Array {
    const { codes, names } = this.texts(name);
    const code = names.indexOf(text);
    const rows = new Uint32Array(this.rows);
    let count = 0;
    if (code >= 0) for (let i = 0; i < codes.length; i++) if (codes[i] === code) rows[count++] = i;
    return rows.subarray(0, count);
  }
}

/** An answer. */
export interface Message {
  head: { [name: string]: Json };
  tables: Map<string, Table>;
}

/** Reads an answer. Its columns are views of `octets`, which begin at a multiple of 8. */
export function readMessage(octets: ArrayBuffer): Message {
  const length = new DataView(octets).getUint32(0, true);
  const head = JSON.parse(new TextDecoder().decode(new Uint8Array(octets, 8, length)));
  const begin = Math.ceil((8 + length) / 8) * 8;
  const tables = new Map<string, Table>();
  const declared: { [name: string]: { rows: number; columns: Declared[] } } = head.tables ?? {};
  for (const [name, table] of Object.entries(declared)) {
    const columns = new Map<string, Float64Array | Uint8Array | Texts>();
    for (const column of table.columns) {
      const at = begin + column.at;
      if (column.kind === "number") columns.set(column.name, new Float64Array(octets, at, table.rows));
      else if (column.kind === "flag") columns.set(column.name, new Uint8Array(octets, at, table.rows));
      else {
        columns.set(column.name, { codes: new Uint32Array(octets, at, table.rows), names: column.names ?? [] });
      }
    }
    tables.set(name, new Table(table.rows, columns));
  }
  return { head, tables };
}

/** The values of some rows. */
export function chosen(values: Float64Array, rows: Uint32Array): Float64Array {
  const made = new Float64Array(rows.length);
  for (let i = 0; i < rows.length; i++) made[i] = values[rows[i]];
  return made;
}
