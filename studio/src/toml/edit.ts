/** Changes of values of a TOML text. Comments and the order of the keys stay. */
import { type Entry, type List, type Node, readHeaders, readTree, type Table } from "./tree.ts";

export type Path = readonly (string | number)[];

/** A text as a TOML string. */
export function quoted(text: string): string {
  return JSON.stringify(text);
}

function key(name: string): string {
  return /^[A-Za-z0-9_-]+$/.test(name) ? name : quoted(name);
}

function dotted(names: Path): string {
  return names.map((name) => key(String(name))).join(".");
}

function child(node: Node, name: string | number): Node | undefined {
  if (node.kind === "table") return node.entries.get(String(name))?.node;
  if (node.kind === "list") return node.items[Number(name)];
  return undefined;
}

/** The node at a path. */
export function find(text: string, path: Path): Node | undefined {
  let node: Node | undefined = readTree(text);
  for (const name of path) node = node && child(node, name);
  return node;
}

/** Whether there is a value at a path. */
export function has(text: string, path: Path): boolean {
  return find(text, path) !== undefined;
}

function splice(text: string, start: number, end: number, by: string): string {
  return text.slice(0, start) + by + text.slice(end);
}

function span(node: Node): [number, number] | undefined {
  if (node.kind !== "table") return node.start === node.end ? undefined : [node.start, node.end];
  return node.inline && [node.inline.start, node.inline.end];
}

/** Number of items of the list at a path. */
export function length(text: string, path: Path): number {
  const node = find(text, path);
  return node?.kind === "list" ? node.items.length : 0;
}

/** The text of the value at a path; undefined without one, or if headers make it. */
export function source(text: string, path: Path): string | undefined {
  const node = find(text, path);
  const at = node && span(node);
  return at && text.slice(...at);
}

/** Sets the value at a path, given as TOML. */
export function set(text: string, path: Path, value: string): string {
  let node: Node = readTree(text);
  let depth = 0;
  while (depth < path.length) {
    const next = child(node, path[depth]);
    if (!next) break;
    node = next;
    depth++;
  }
  const rest = path.slice(depth);
  if (!rest.length) {
    const at = span(node);
    return at ? splice(text, ...at, value) : text;
  }
  if (node.kind === "list") return append(text, node, path.slice(0, depth), rest.slice(1), value);
  if (node.kind === "scalar") {
    // The short form of a component is its kind.
    return splice(
      text,
      node.start,
      node.end,
      `{ kind = ${text.slice(node.start, node.end)}, ${dotted(rest)} = ${value} }`,
    );
  }
  return insert(text, node, path, rest, value);
}

function append(text: string, list: List, path: Path, rest: Path, value: string): string {
  const last = list.items[list.items.length - 1];
  if (last?.kind === "table" && last.section) {
    const inner = rest.length
      ? `${dotted(rest)} = ${value}`
      : value.replace(/^\{\s*|\s*\}$/g, "").replaceAll(", ", "\n");
    return splice(text, last.section.end, last.section.end, `\n\n[[${dotted(path)}]]\n${inner}`);
  }
  const item = rest.length ? `{ ${dotted(rest)} = ${value} }` : value;
  const at = last && span(last);
  return at ? splice(text, at[1], at[1], `, ${item}`) : splice(text, list.start, list.end, `[${item}]`);
}

function insert(text: string, into: Table, path: Path, rest: Path, value: string): string {
  const statement = `${dotted(rest)} = ${value}`;
  if (into.inline) {
    const { start, end } = into.inline;
    const last = [...into.entries.values()].reduce((most, one) => Math.max(most, one.end), 0);
    return last ? splice(text, last, last, `, ${statement}`) : splice(text, start, end, `{ ${statement} }`);
  }
  if (into.within) {
    const { table, names } = into.within;
    return insert(text, table, path, [...names, ...rest], value);
  }
  if (into.section) {
    const { end } = into.section;
    return end === 0 ? `${statement}\n${text}` : splice(text, end, end, `\n${statement}`);
  }
  // A table of tables: the first of the missing names gets a header.
  const above = path.slice(0, path.length - rest.length);
  const names = rest.length > 1 ? [...above, rest[0]] : above;
  const line = rest.length > 1 ? `${dotted(rest.slice(1))} = ${value}` : statement;
  return `${text.trimEnd()}\n\n[${dotted(names)}]\n${line}\n`;
}

/** Removes the value at a path. Does nothing without one, or if headers make it. */
export function remove(text: string, path: Path): string {
  const parent = find(text, path.slice(0, -1));
  const name = path[path.length - 1];
  if (parent?.kind === "list") {
    const at = parent.items[Number(name)] && span(parent.items[Number(name)]);
    return at ? cut(text, at[0], at[1]) : text;
  }
  const entry: Entry | undefined = parent?.kind === "table" ? parent.entries.get(String(name)) : undefined;
  if (!entry || entry.start === entry.end) return text;
  // Dotted keys may be within braces.
  const isInline = parent?.kind === "table" && (parent.within?.table ?? parent).inline;
  if (isInline) return cut(text, entry.start, entry.end);
  const begin = text.lastIndexOf("\n", entry.start - 1) + 1;
  const next = text.indexOf("\n", entry.end);
  return splice(text, begin, next < 0 ? text.length : next + 1, "");
}

/** Removes an item between commas. */
function cut(text: string, start: number, end: number): string {
  const after = /^\s*,\s*/.exec(text.slice(end));
  if (after) return splice(text, start, end + after[0].length, "");
  const before = /,\s*$/.exec(text.slice(0, start));
  return splice(text, before ? start - before[0].length : start, end, "");
}

/** Appends a table with a header. */
export function addTable(text: string, path: Path, statements: readonly string[]): string {
  return `${text.trimEnd()}\n\n[${dotted(path)}]\n${statements.join("\n")}\n`;
}

/** Removes a table and those within it, as headers, braces or dotted keys make them. */
export function removeTable(text: string, path: Path): string {
  let made = removeSections(text, path);
  for (let at = statement(made, path); at; at = statement(made, path)) {
    const shorter = remove(made, at);
    if (shorter === made) break;
    made = shorter;
  }
  return made;
}

/** The path of the first statement that makes a part of the value at a path. */
function statement(text: string, path: Path): Path | undefined {
  const parent = find(text, path.slice(0, -1));
  const entry = parent?.kind === "table" ? parent.entries.get(String(path[path.length - 1])) : undefined;
  if (!entry || entry.start !== entry.end) return entry && path;
  if (entry.node.kind !== "table") return undefined;
  for (const name of entry.node.entries.keys()) {
    const found = statement(text, [...path, name]);
    if (found) return found;
  }
  return undefined;
}

/** Removes the sections of a table and of those within it, with the comments directly above their headers. */
function removeSections(text: string, path: Path): string {
  const headers = readHeaders(text);
  let made = text;
  for (let i = headers.length - 1; i >= 0; i--) {
    const { names, start } = headers[i];
    if (!path.every((name, k) => names[k] === name)) continue;
    const above = /(?:^|\n)((?:[ \t]*#[^\n]*\n)*)[ \t]*$/.exec(made.slice(0, start));
    const begin = start - (above ? above[1].length + (/[ \t]*$/.exec(made.slice(0, start))?.[0].length ?? 0) : 0);
    const next = headers[i + 1]?.start ?? made.length;
    const end = Math.min(next, made.length);
    // Comments above the next header belong to it.
    const kept = /(?:^|\n)((?:[ \t]*#[^\n]*\n)+)[ \t]*$/.exec(made.slice(begin, end))?.[1].length ?? 0;
    made = splice(made, begin, headers[i + 1] ? end - kept : end, "");
    const cut = end - kept - begin;
    for (const later of headers.slice(i + 1)) later.start -= headers[i + 1] ? cut : 0;
  }
  return made;
}

/** Removes an item that a header `[[…]]` makes, with the tables within it. */
export function removeItem(text: string, path: Path, index: number): string {
  const headers = readHeaders(text);
  const isItem = (names: readonly string[]) => names.length === path.length && path.every((one, i) => names[i] === one);
  const items = headers.filter(({ names }) => isItem(names));
  const item = items[index];
  if (!item) return text;
  const later = headers.slice(headers.indexOf(item) + 1);
  const next = later.find(({ names }) => isItem(names) || !path.every((one, i) => names[i] === one));
  return next ? splice(text, item.start, next.start, "") : `${text.slice(0, item.start).trimEnd()}\n`;
}
