import assert from "node:assert/strict";
import { test } from "node:test";
import { addTable, has, length, remove, removeItem, removeTable, set, source } from "../src/toml/edit.ts";

const TEXT = `# A comment.
title = "t" # kept

[link.path]
between = ["A", "B"]
rate = "20 Mbit/s"
queue = { kind = "drop-tail", limit = "1 bdp" }
forward.impair = [
  { kind = "bernoulli-loss", rate = 0.01 }, # loss
  { kind = "jitter", mean = "1 ms" },
]

[flow.main]
from = "A"
to = "B"
`;

test("reads values of headers, inline tables, dotted keys and lists", () => {
  assert.equal(source(TEXT, ["title"]), '"t"');
  assert.equal(source(TEXT, ["link", "path", "queue", "limit"]), '"1 bdp"');
  assert.equal(source(TEXT, ["link", "path", "forward", "impair", 0, "rate"]), "0.01");
  assert.equal(length(TEXT, ["link", "path", "forward", "impair"]), 2);
  assert.equal(source(TEXT, ["link", "path", "delay"]), undefined);
  assert.ok(has(TEXT, ["flow", "main"]));
});

test("replaces a value and keeps all else", () => {
  const made = set(TEXT, ["link", "path", "rate"], '"5 Mbit/s"');
  assert.equal(made, TEXT.replace('"20 Mbit/s"', '"5 Mbit/s"'));
  assert.equal(set(TEXT, ["link", "path", "forward", "impair", 0, "rate"], "0.5"), TEXT.replace("0.01", "0.5"));
});

test("inserts a key into its section", () => {
  assert.match(set(TEXT, ["flow", "main", "cc"], '"bbr"'), /to = "B"\ncc = "bbr"\n$/);
  assert.match(set(TEXT, ["link", "path", "delay"], '"5 ms"'), /\]\ndelay = "5 ms"\n\n\[flow.main\]/);
  assert.match(
    set(TEXT, ["duration"], '"5 s"'),
    /^# A comment.\ntitle = "t"\nduration = "5 s" # kept|title = "t" # kept\nduration|title = "t"\nduration = "5 s"/,
  );
});

test("inserts into inline tables, lists and dotted tables", () => {
  assert.equal(
    source(set(TEXT, ["link", "path", "queue", "reorder"], '"x"'), ["link", "path", "queue", "reorder"]),
    '"x"',
  );
  const longer = set(TEXT, ["link", "path", "forward", "impair", 2], '{ kind = "duplicate", rate = 0.1 }');
  assert.equal(length(longer, ["link", "path", "forward", "impair"]), 3);
  assert.equal(
    source(set(TEXT, ["link", "path", "forward", "delay"], '"1 ms"'), ["link", "path", "forward", "delay"]),
    '"1 ms"',
  );
});

test("turns the short form of a component into a table", () => {
  const made = set('[link.a]\nqueue = "codel"\n', ["link", "a", "queue", "limit"], '"2 bdp"');
  assert.match(made, /queue = \{ kind = "codel", limit = "2 bdp" \}/);
});

test("adds a header for a new table", () => {
  assert.match(set(TEXT, ["flow", "other", "cc"], '"bbr"'), /\n\n\[flow.other\]\ncc = "bbr"\n$/);
});

test("edits tables of lists with headers", () => {
  const text = '[link.a]\nrate = "1 Mbit/s"\n[[link.a.impair]]\nkind = "bernoulli-loss"\nrate = 0.1\n';
  assert.equal(source(set(text, ["link", "a", "impair", 0, "rate"], "0.2"), ["link", "a", "impair", 0, "rate"]), "0.2");
  const longer = set(text, ["link", "a", "impair", 1], '{ kind = "jitter", mean = "1 ms" }');
  assert.equal(source(longer, ["link", "a", "impair", 1, "mean"]), '"1 ms"');
});

test("removes statements and items", () => {
  assert.equal(remove(TEXT, ["link", "path", "rate"]), TEXT.replace('rate = "20 Mbit/s"\n', ""));
  const shorter = remove(TEXT, ["link", "path", "forward", "impair", 1]);
  assert.equal(length(shorter, ["link", "path", "forward", "impair"]), 1);
  assert.equal(
    source(remove(TEXT, ["link", "path", "queue", "limit"]), ["link", "path", "queue"]),
    '{ kind = "drop-tail" }',
  );
  assert.equal(remove(TEXT, ["link", "path", "nothing"]), TEXT);
});

test("reads as far as a text is valid", () => {
  const text = 'a = 1\n[b]\nc = "open\n';
  assert.equal(source(text, ["a"]), "1");
  assert.equal(source(text, ["b", "c"]), undefined);
  for (const broken of ["[", "a", "a =", "[[x]", "a = {b", "a = [1,", '"""', "= 1"])
    assert.doesNotThrow(() => set(broken, ["z"], "1"));
});

test("adds and removes tables with their parts", () => {
  const longer = addTable(TEXT, ["flow", "a b"], ['from = "A"']);
  assert.ok(longer.endsWith('\n\n[flow."a b"]\nfrom = "A"\n'));
  assert.equal(removeTable(longer, ["flow", "a b"]).trimEnd(), TEXT.trimEnd());
  const text =
    "# First.\n[link.a]\nx = 1\n\n# Of a.\n[[link.a.impair]]\ny = 2\n\n# Of b.\n[link.b]\nz = [\n  [1],\n]\n";
  assert.equal(removeTable(text, ["link", "a"]), "# Of b.\n[link.b]\nz = [\n  [1],\n]\n");
  assert.equal(removeTable(text, ["link", "b"]), text.slice(0, text.indexOf("# Of b.")));
});

test("removes tables that braces or dotted keys make", () => {
  const rest = 'title = "t"\n\n[flow.main]\nfrom = "A"\n';
  const link = 'between = ["A", "B"], rate = "1 Mbit/s"';
  for (const [before, after] of [
    [`link.l = { ${link} } # the link\n`, ""],
    [`link.l = { ${link} }\nlink.m = { ${link} }\n`, `link.m = { ${link} }\n`],
    [`link.l.between = ["A", "B"]\nlink.l.rate = "1 Mbit/s"\nlink.l.queue.kind = "codel"\n`, ""],
    [`link = { l = { ${link} }, m = { ${link} } }\n`, `link = { m = { ${link} } }\n`],
    [`link = { m = { ${link} }, l.rate = 1, l.delay = 2 }\n`, `link = { m = { ${link} } }\n`],
    [`link = { l.rate = 1, m.rate = 3, l.delay = 2 }\n`, "link = { m.rate = 3 }\n"],
    [`link.l = {\n  ${link},\n}\n`, ""],
  ])
    assert.equal(removeTable(before + rest, ["link", "l"]), after + rest, before);
  for (const [before, after] of [
    [`[link]\nl = { ${link} }\nm = { ${link} }\n`, `[link]\nm = { ${link} }\n`],
    [`[link]\nl.rate = 1\nm.rate = 2\n[link.l.queue]\nkind = "codel"\n`, "[link]\nm.rate = 2\n"],
  ])
    assert.equal(removeTable(rest + before, ["link", "l"]), rest + after, before);
  // Half a text does not loop.
  for (const broken of ["link.l = {", "link.l", "[link.l", "link.l = { a = 1", "link = { l.a = 1"])
    assert.doesNotThrow(() => removeTable(broken, ["link", "l"]));
});

test("names may be long", () => {
  const name = "n".repeat(1000);
  const text = `[link.${name}]\nrate = "1 Mbit/s"\n`;
  assert.equal(source(set(text, ["link", name, "rate"], '"2 Mbit/s"'), ["link", name, "rate"]), '"2 Mbit/s"');
});

test("removes an item with a header", () => {
  const text =
    '[link.a]\nx = 1\n\n[[link.a.impair]]\nkind = "one"\n\n[[link.a.impair]]\nkind = "two"\n[link.a.impair.more]\ny = 1\n\n[flow.b]\nz = 1\n';
  assert.equal(
    removeItem(text, ["link", "a", "impair"], 1),
    '[link.a]\nx = 1\n\n[[link.a.impair]]\nkind = "one"\n\n[flow.b]\nz = 1\n',
  );
  assert.equal(
    removeItem(text, ["link", "a", "impair"], 0),
    '[link.a]\nx = 1\n\n[[link.a.impair]]\nkind = "two"\n[link.a.impair.more]\ny = 1\n\n[flow.b]\nz = 1\n',
  );
  assert.equal(removeItem(text, ["link", "a", "impair"], 2), text);
  const last = '[[link.a.impair]]\nkind = "one"\n';
  assert.equal(removeItem(`[link.a]\n${last}`, ["link", "a", "impair"], 0), "[link.a]\n");
});
