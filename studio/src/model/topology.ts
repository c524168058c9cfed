/** Places of nodes and links: nodes in layers by their distance from the senders, so that data goes to the right. */
import { percent } from "./quantity.ts";
import type { Direction, LinkTable, Resolved } from "./summary.ts";

export interface NodeBox {
  name: string;
  x: number;
  y: number;
  half: number;
}

export interface LinkBox {
  name: string;
  ends: [string, string];
  lines: string[];
  x: number;
  y: number;
  width: number;
  height: number;
  /** The curve from the first end to the second, through the box. */
  d: string;
}

export interface Layout {
  width: number;
  height: number;
  nodes: NodeBox[];
  links: LinkBox[];
}

export const MOST_LINKS = 30;
/** Largest width with the nodes side by side; a longer chain runs downwards. */
const MOST_WIDE = 1240;
const LETTER = 6.4;
export const LINE = 15;
const NODE = 17;
const STEP = 56;
const AROUND = 24;
const APART = 12;
const MOST_LETTERS = 30;

const short = (text: string): string => (text.length <= MOST_LETTERS ? text : `${text.slice(0, MOST_LETTERS - 1)}…`);

function quantity(value: unknown): string {
  if (value && typeof value === "object") return String((value as { kind?: string }).kind ?? "variable");
  return typeof value === "number" ? String(Number(value.toPrecision(6))) : String(value);
}

function rate(way: Direction): string {
  const kind = way.service?.kind ?? "fixed";
  const own = quantity(way.rate ?? "unlimited");
  if (kind === "fixed") return own;
  return way.service?.file ? `${kind} rate` : `${own}, ${kind}`;
}

function* effects(way: Direction): Generator<string> {
  const queue = way.queue ?? {};
  const limit = queue.limit ?? "unlimited";
  if (queue.kind !== "drop-tail" || limit !== "unlimited") {
    yield `${queue.kind ?? "queue"}${limit === "unlimited" ? "" : `, ${quantity(limit)}`}`;
  }
  if (queue.reorder && typeof queue.reorder === "object") yield `reorder: ${values(queue.reorder)}`;
  for (const one of way.impair ?? []) {
    const isRandom = one.kind === "bernoulli-loss" && typeof one.rate === "number";
    yield isRandom ? `random loss ${percent(one.rate as number)}` : `${one.kind} ${values(one)}`.trim();
  }
}

function values(one: { [name: string]: unknown }): string {
  const plain = Object.entries(one).filter(
    ([key, value]) => key !== "kind" && ["string", "number"].includes(typeof value),
  );
  return plain
    .slice(0, 2)
    .map(([key, value]) => `${key.replaceAll("_", " ")} ${quantity(value)}`)
    .join(", ");
}

const both = (forward: string, reverse: string): string =>
  forward === reverse ? forward : `→ ${forward} ← ${reverse}`;

/** The lines of a link's box; both directions if they differ. The arrows point as in a drawing with the first end left. */
export function linesOf(link: LinkTable, isFlipped = false): string[] {
  const forward = (isFlipped ? link.reverse : link.forward) ?? link;
  const reverse = (isFlipped ? link.forward : link.reverse) ?? link;
  const lines: string[] = [];
  if (link.members) lines.push(`${link.members} members, ${link.spread}`);
  const rates = both(rate(forward), rate(reverse));
  const delays = both(quantity(forward.delay ?? "0 ms"), quantity(reverse.delay ?? "0 ms"));
  if (rates.length + delays.length + 3 <= MOST_LETTERS) lines.push(`${rates} · ${delays}`);
  else lines.push(rates, delays);
  const [there, back] = [[...effects(forward)], [...effects(reverse)]];
  if (there.join() === back.join()) lines.push(...there);
  else lines.push(...there.map((line) => `→ ${line}`), ...back.map((line) => `← ${line}`));
  return lines.map(short);
}

function layersOf(links: { ends: [string, string] }[], resolved: Resolved): string[][] {
  const nodes = [...new Set(links.flatMap(({ ends }) => ends))];
  const flows = Object.values(resolved.flow ?? {});
  const receivers = new Set(flows.map(({ to }) => to));
  let senders = flows.map(({ from }) => from).filter((from) => !receivers.has(from));
  if (!senders.length) senders = flows.slice(0, 1).map(({ from }) => from);
  const distance = new Map<string, number>();
  for (const starts of [senders, ...nodes.map((node) => [node])]) {
    const queue = [...new Set(starts)].filter((node) => nodes.includes(node) && !distance.has(node));
    for (const node of queue) distance.set(node, 0);
    for (let node = queue.shift(); node !== undefined; node = queue.shift()) {
      for (const { ends } of links) {
        for (const i of [0, 1]) {
          const end = ends[1 - i];
          if (ends[i] !== node || distance.has(end)) continue;
          distance.set(end, distance.get(node)! + 1);
          queue.push(end);
        }
      }
    }
  }
  const layers: string[][] = [];
  for (const node of nodes) {
    const layer = distance.get(node)!;
    layers[layer] = [...(layers[layer] ?? []), node];
  }
  return layers.filter((layer) => layer?.length);
}

/** A drawing side by side is scaled down by this factor at most. */
const SCALED = 1.4;

/** Distances by which nodes were moved from their places, by their names. */
export interface Moved {
  [node: string]: [x: number, y: number];
}

/** The layout for a screen of some width: side by side if its letters stay legible. */
export function layout(resolved: Resolved, mostWide = MOST_WIDE, moved: Moved = {}): Layout {
  const wide = placed(resolved, true);
  const made = wide.width <= Math.min(mostWide * SCALED, MOST_WIDE) ? wide : placed(resolved, false);
  return made.nodes.some(({ name }) => moved[name]) ? shiftedNodes(made, moved) : made;
}

/** Moves nodes. A link follows by half of the distances of its ends, and the drawing grows to hold everything. */
function shiftedNodes({ nodes, links }: Layout, moved: Moved): Layout {
  const by = (name: string): [number, number] => moved[name] ?? [0, 0];
  const places = nodes.map((node) => ({ ...node, x: node.x + by(node.name)[0], y: node.y + by(node.name)[1] }));
  const boxes = links.map((link) => {
    const [a, b] = link.ends.map(by);
    return { ...link, x: link.x + (a[0] + b[0]) / 2, y: link.y + (a[1] + b[1]) / 2 };
  });
  const left = Math.min(0, ...places.map(({ x, half }) => x - half), ...boxes.map(({ x, width }) => x - width / 2)) - 2;
  const top = Math.min(0, ...places.map(({ y }) => y - NODE), ...boxes.map(({ y, height }) => y - height / 2)) - 2;
  for (const one of [...places, ...boxes]) {
    one.x -= left;
    one.y -= top;
  }
  const width = Math.max(...places.map(({ x, half }) => x + half), ...boxes.map((one) => one.x + one.width / 2)) + 4;
  const height = Math.max(...places.map(({ y }) => y + NODE), ...boxes.map((one) => one.y + one.height / 2)) + 4;
  const at = new Map(places.map((node) => [node.name, node]));
  for (const box of boxes) {
    const [from, to] = box.ends.map((end) => at.get(end)!);
    box.d = `M${dot(from.x, from.y)}C${half(from, box)}C${half(box, to)}`;
  }
  return { width, height, nodes: places, links: boxes };
}

const dot = (x: number, y: number): string => `${x.toFixed(1)} ${y.toFixed(1)}`;

/** The curve from one place to another, along the longer of the two distances first. */
function half(from: { x: number; y: number }, to: { x: number; y: number }): string {
  const isWide = Math.abs(to.x - from.x) >= Math.abs(to.y - from.y);
  const [x, y] = [(from.x + to.x) / 2, (from.y + to.y) / 2];
  return isWide
    ? `${dot(x, from.y)} ${dot(x, to.y)} ${dot(to.x, to.y)}`
    : `${dot(from.x, y)} ${dot(to.x, y)} ${dot(to.x, to.y)}`;
}

function placed(resolved: Resolved, isWide: boolean): Layout {
  const tables = Object.entries({ ...resolved.link, ...resolved.group });
  const layers = layersOf(
    tables.map(([, { between }]) => ({ ends: between })),
    resolved,
  );
  const depth = new Map(layers.flatMap((nodes, layer) => nodes.map((node): [string, number] => [node, layer])));
  const links = tables.map(([name, link]) => {
    const [first, second] = link.between.map((end) => depth.get(end)!);
    const lines = linesOf(link, first > second);
    const width = Math.max(name.length + 1, ...lines.map((line) => line.length)) * LETTER + 18;
    const arrows = isWide ? lines : lines.map((line) => line.replaceAll("→", "↓").replaceAll("←", "↑"));
    return { name, ends: link.between, lines: arrows, width, height: (1 + lines.length) * LINE + 10 };
  });
  const along = (link: (typeof links)[0]) => (isWide ? link.width : link.height);
  const across = (link: (typeof links)[0]) => (isWide ? link.height : link.width);
  const gaps = new Map<number, typeof links>();
  for (const link of links) {
    const layer = Math.min(...link.ends.map((end) => depth.get(end)!));
    gaps.set(layer, [...(gaps.get(layer) ?? []), link]);
  }
  const last = layers.length - 1;
  const room = layers.map((_, layer) => {
    const gap = gaps.get(layer);
    if (!gap) return layer === last ? 0 : 2 * AROUND;
    return Math.max(...gap.map(along)) + 2 * AROUND;
  });
  const step = isWide ? STEP : STEP * 1.3;
  const extent = Math.max(
    ...layers.map((nodes) => nodes.length * step),
    ...[...gaps.values()].map((gap) => gap.reduce((sum, link) => sum + across(link) + APART, 0)),
  );
  const halfOf = (name: string) => Math.max(NODE, (Math.min(name.length, 9) * LETTER) / 2 + 8);
  const deep = isWide ? (nodes: string[]) => Math.max(...nodes.map(halfOf)) : () => NODE;
  const begins: number[] = [];
  let at = 4;
  layers.forEach((nodes, layer) => {
    begins.push(at + deep(nodes));
    at += 2 * deep(nodes) + room[layer];
  });
  const place = new Map<string, [number, number]>();
  layers.forEach((nodes, layer) => {
    nodes.forEach((node, i) => {
      place.set(node, [begins[layer], (extent * (i + 0.5)) / nodes.length]);
    });
  });
  const turned = ([a, b]: [number, number]): [number, number] => (isWide ? [a, b] : [b, a]);
  const boxes: LinkBox[] = [];
  for (const [layer, gap] of gaps) {
    const middle = begins[layer] + deep(layers[layer]) + room[layer] / 2;
    const wanted = new Map(gap.map((link) => [link, (place.get(link.ends[0])![1] + place.get(link.ends[1])![1]) / 2]));
    const ordered = [...gap].sort((a, b) => wanted.get(a)! - wanted.get(b)!);
    const places: number[] = [];
    ordered.forEach((link, i) => {
      const least = i ? places[i - 1] + (across(ordered[i - 1]) + across(link)) / 2 + APART : Number.NEGATIVE_INFINITY;
      places.push(Math.max(wanted.get(link)!, least));
    });
    const shift = ordered.reduce((sum, link, i) => sum + places[i] - wanted.get(link)!, 0) / ordered.length;
    ordered.forEach((link, i) => {
      const box: [number, number] = [middle, places[i] - shift];
      const [x, y] = turned(box);
      const [from, to] = link.ends.map((end) => place.get(end)!);
      const half = ([a, b]: [number, number], [c, d]: [number, number]) => {
        const points: [number, number][] = [
          [(a + c) / 2, b],
          [(a + c) / 2, d],
          [c, d],
        ];
        return points
          .map((point) =>
            turned(point)
              .map((value) => value.toFixed(1))
              .join(" "),
          )
          .join(" ");
      };
      const start = turned(from)
        .map((value) => value.toFixed(1))
        .join(" ");
      boxes.push({ ...link, x, y, d: `M${start}C${half(from, box)}C${half(box, to)}` });
    });
  }
  const nodes = [...place].map(([name, where]) => {
    const [x, y] = turned(where);
    return { name, x, y, half: halfOf(name) };
  });
  const low = Math.min(0, ...boxes.map((box) => (isWide ? box.y - box.height / 2 : box.x - box.width / 2))) - 6;
  const high = Math.max(extent, ...boxes.map((box) => (isWide ? box.y + box.height / 2 : box.x + box.width / 2))) + 6;
  for (const one of [...boxes, ...nodes]) {
    if (isWide) one.y -= low;
    else one.x -= low;
  }
  if (low !== 0) for (const box of boxes) box.d = shifted(box.d, isWide ? 0 : -low, isWide ? -low : 0);
  const [width, height] = turned([at + 4, high - low]);
  return { width, height, nodes, links: boxes };
}

/** Moves every point of a path. */
function shifted(d: string, x: number, y: number): string {
  let i = 0;
  return d.replace(/-?\d+(?:\.\d+)?/g, (number) => (Number(number) + (i++ % 2 ? y : x)).toFixed(1));
}
