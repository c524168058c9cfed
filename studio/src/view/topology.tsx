/** The drawing of the network. A link is a button that chooses it for the controls. */

import { figure, percent } from "../model/quantity.ts";
import type { Shown } from "../model/run.ts";
import { type LinkWay, type Summary, tableOf, WAYS, type Way } from "../model/summary.ts";
import { LINE, layout, MOST_LINKS, type Moved } from "../model/topology.ts";
import { protocolOf } from "../model/verdict.ts";

/** A packet on the drawing: a share of the way along a link. */
export interface Moving {
  link: string;
  share: number;
  isAgain: boolean;
}

interface Props {
  path: Shown;
  width: number;
  link: LinkWay | undefined;
  flow: string | undefined;
  moving?: Moving[];
  onLink(link: LinkWay): void;
  onFlow(flow: string): void;
  /** Nodes that were moved by hand. */
  moved: Moved;
  /** Moves a node; `isDone` ends a drag. */
  onMove(node: string, by: [number, number], isDone: boolean): void;
  /** A drag from a node's handle to another node, or to the free space. */
  onDrag(from: string, to: string | undefined): void;
}

/** A drag begins after this distance in pixels. */
const FAR = 12;
const NEAR = 3;
/** Distance of a step by an arrow key. */
const STEP = 12;

const MOST_FLOWS = 8;

export function Topology({ path, width, link, flow, moving, moved, onLink, onFlow, onMove, onDrag }: Props) {
  const { resolved, flows, summary } = path;
  const count = Object.keys({ ...resolved.link, ...resolved.group }).length;
  if (count > MOST_LINKS) return <p class="soft">{count} links are too many for a drawing.</p>;
  if (!count) return null;
  const drawn = layout(resolved, width, moved);
  const shift = (node: string, x: number, y: number, isDone: boolean) => {
    const [from, to] = moved[node] ?? [0, 0];
    onMove(node, [from + x, to + y], isDone);
  };
  const begin = (node: string, event: PointerEvent) => {
    const home = (event.currentTarget as Element).closest("svg")!;
    const scale = home.getScreenCTM()!.inverse();
    const start = [event.clientX, event.clientY];
    const [x0, y0] = moved[node] ?? [0, 0];
    let isFar = false;
    const place = (one: PointerEvent): [number, number] => [
      x0 + (one.clientX - start[0]) * scale.a,
      y0 + (one.clientY - start[1]) * scale.d,
    ];
    const move = (one: PointerEvent) => {
      isFar ||= Math.hypot(one.clientX - start[0], one.clientY - start[1]) >= NEAR;
      if (isFar) onMove(node, place(one), false);
    };
    const end = (one: PointerEvent) => {
      removeEventListener("pointermove", move);
      removeEventListener("pointerup", end);
      removeEventListener("pointercancel", end);
      if (isFar) onMove(node, one.type === "pointercancel" ? [x0, y0] : place(one), true);
    };
    addEventListener("pointermove", move);
    addEventListener("pointerup", end);
    addEventListener("pointercancel", end);
  };
  const arrows: { [key: string]: [number, number] } = {
    ArrowLeft: [-STEP, 0],
    ArrowRight: [STEP, 0],
    ArrowUp: [0, -STEP],
    ArrowDown: [0, STEP],
  };
  const connect = (node: string, event: PointerEvent) => {
    event.stopPropagation();
    const home = (event.currentTarget as Element).closest("svg")!;
    const [x, y] = [event.clientX, event.clientY];
    const rubber = document.createElementNS("http://www.w3.org/2000/svg", "path");
    rubber.setAttribute("class", "rubber");
    const place = (one: PointerEvent) =>
      new DOMPoint(one.clientX, one.clientY).matrixTransform(home.getScreenCTM()!.inverse());
    const start = place(event);
    const move = (one: PointerEvent) => {
      if (Math.hypot(one.clientX - x, one.clientY - y) < FAR) return;
      const at = place(one);
      rubber.setAttribute("d", `M${start.x} ${start.y}L${at.x} ${at.y}`);
      if (!rubber.parentNode) home.append(rubber);
    };
    const end = (one: PointerEvent) => {
      removeEventListener("pointermove", move);
      removeEventListener("pointerup", end);
      removeEventListener("pointercancel", end);
      rubber.remove();
      if (one.type === "pointercancel" || Math.hypot(one.clientX - x, one.clientY - y) < FAR) return;
      const under = document.elementFromPoint(one.clientX, one.clientY);
      const target = under?.closest<SVGElement>("[data-node]")?.dataset.node;
      if (target !== node && (target !== undefined || home.contains(under))) onDrag(node, target);
    };
    addEventListener("pointermove", move);
    addEventListener("pointerup", end);
    addEventListener("pointercancel", end);
  };
  return (
    <div class="topology">
      <svg
        viewBox={`0 0 ${drawn.width.toFixed(0)} ${drawn.height.toFixed(0)}`}
        width={drawn.width.toFixed(0)}
        class="drawing"
        role="group"
        aria-label="Topology"
      >
        {drawn.links.map((box) => (
          <path key={box.name} id={`way-${box.name}`} d={box.d} class="wire" />
        ))}
        {drawn.links.map((box) => {
          const ways = summary?.links[box.name];
          const used = ways ? Math.max(ways.forward.utilization ?? 0, ways.reverse.utilization ?? 0) : 0;
          const isChosen = link?.link === box.name;
          const choose = () => onLink({ link: box.name, way: busierWay(path.summary, box.name) });
          return (
            <g
              key={box.name}
              class={isChosen ? "link chosen" : "link"}
              role="button"
              tabindex={0}
              aria-pressed={isChosen}
              aria-label={`Link ${box.name} from ${box.ends[0]} to ${box.ends[1]}: ${box.lines.join(", ")}; ${percent(used)} used`}
              onClick={choose}
              onKeyDown={(event) => {
                if (event.key === "Enter" || event.key === " ") {
                  event.preventDefault();
                  choose();
                }
              }}
            >
              <rect
                x={box.x - box.width / 2}
                y={box.y - box.height / 2}
                width={box.width}
                height={box.height}
                rx={6}
                class="box"
              />
              <rect
                x={box.x - box.width / 2 + 5}
                y={box.y + box.height / 2 - 4}
                width={(box.width - 10) * Math.min(used, 1)}
                height={2.5}
                rx={1.2}
                class="used"
              />
              <text class="strong" x={box.x} y={box.y - box.height / 2 + 16} text-anchor="middle">
                {box.name}
              </text>
              {box.lines.map((line, i) => (
                <text
                  class="soft"
                  key={line}
                  x={box.x}
                  y={box.y - box.height / 2 + 16 + LINE * (i + 1)}
                  text-anchor="middle"
                >
                  {line}
                </text>
              ))}
            </g>
          );
        })}
        {drawn.nodes.map((node) => (
          <g
            key={node.name}
            data-node={node.name}
            class="host"
            role="button"
            tabindex={0}
            aria-label={`Node ${node.name}: arrow keys move it, 0 puts it back`}
            onPointerDown={(event) => begin(node.name, event)}
            onKeyDown={(event) => {
              const step = arrows[event.key];
              if (!step && event.key !== "0") return;
              event.preventDefault();
              if (step) shift(node.name, ...step, true);
              else onMove(node.name, [0, 0], true);
            }}
          >
            <title>{node.name}</title>
            <rect x={node.x - node.half} y={node.y - 17} width={2 * node.half} height={34} rx={17} class="node" />
            <text class="strong" x={node.x} y={node.y + 4} text-anchor="middle">
              {node.name.length <= 9 ? node.name : `${node.name.slice(0, 8)}…`}
            </text>
            <g class="handle" onPointerDown={(event) => connect(node.name, event)}>
              <title>Drag to another node to add a link, or into the free space to add a host</title>
              <circle cx={node.x + node.half - 5} cy={node.y - 14} r={7} />
              <path d={`M${node.x + node.half - 9} ${node.y - 14}h8m-4-4v8`} />
            </g>
          </g>
        ))}
        {moving?.map((one, i) => {
          const box = drawn.links.find(({ name }) => name === one.link);
          const at = box && pointOn(box.d, one.share);
          return at ? (
            <circle key={String(i)} cx={at[0]} cy={at[1]} r={3.4} class={one.isAgain ? "packet again" : "packet"} />
          ) : null;
        })}
      </svg>
      <ul class="flows">
        {flows.slice(0, MOST_FLOWS).map((name) => {
          const table = tableOf(resolved, name);
          return (
            <li key={name}>
              <button
                type="button"
                class={name === flow ? "plain chosen" : "plain"}
                aria-pressed={name === flow}
                onClick={() => onFlow(name)}
              >
                {name}
              </button>{" "}
              {table ? `${table.from} → ${table.to}` : ""}, {protocolOf(resolved, name)}
              {summary ? `: ${figure(summary.flows[name].goodput_mbit_s)} Mbit/s` : ""}
            </li>
          );
        })}
        {flows.length > MOST_FLOWS && <li class="soft">and {flows.length - MOST_FLOWS} more</li>}
      </ul>
    </div>
  );
}

/** The direction of a link with more packets. */
function busierWay(summary: Summary | undefined, link: string): Way {
  const ways = summary?.links[link];
  if (!ways) return "forward";
  const load = (way: Way) => ways[way].utilization ?? 0;
  return load("reverse") > load("forward") ? "reverse" : WAYS[0];
}

/** A point of a path of two cubic curves. */
function pointOn(d: string, share: number): [number, number] | undefined {
  const n = (d.match(/-?\d+(?:\.\d+)?/g) ?? []).map(Number);
  if (n.length < 14) return undefined;
  const second = share > 0.5;
  const p = second ? n.slice(6, 14) : n.slice(0, 8);
  const t = second ? 2 * share - 1 : 2 * share;
  const u = 1 - t;
  const at = (i: number) => u ** 3 * p[i] + 3 * u * u * t * p[i + 2] + 3 * u * t * t * p[i + 4] + t ** 3 * p[i + 6];
  return [at(0), at(1)];
}
