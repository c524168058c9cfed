/** Draws series onto a canvas or into an SVG: only as many points as there are pixels. */
import { firstAt, type Range, type Series } from "./model.ts";

/** What drawings are made of. Places are in pixels of the plot, from its top left. */
export interface Pen {
  path(points: Float32Array, count: number, style: { colour: string; width: number; dash?: number[] }): void;
  dots(points: Float32Array, count: number, style: Dots): void;
  /** A ring with a halo, which is seen on any background. */
  ring(x: number, y: number, style: { ink: string; paper: string }): void;
}

interface Dots {
  colour: string;
  size: number;
  isCross: boolean;
  /** 1 if it is left out. */
  opacity?: number;
}

/** A rectangle and the values at its edges. */
export interface Frame {
  width: number;
  height: number;
  x: Range;
  y: Range;
}

/** Radius of the ring, and the ends of its four ticks. */
const RING = 8;
const TICKS: readonly [number, number][] = [
  [1, 0],
  [-1, 0],
  [0, 1],
  [0, -1],
];
const TICK = [RING - 3, RING + 5] as const;

/** Thinned points are one per cell of this width and height, */
const CELL = 5;
/** no larger than this, */
const THIN = 3.2;
/** and of as many steps of opacity, from this one to 1. */
const STEPS = 4;
const LEAST_OPACITY = 0.3;
/** Points are thinned in as many columns of cells side by side or more, if all have points, */
const LEAST_COLUMNS = 6;
/** and if a cell has more than this number in the mean. */
const CROWDED = 2;

const SIZES = { points: 2.6, marks: 6, crosses: 8, line: 4.5, step: 4.5 };

/** Draws a series. */
export function drawSeries(pen: Pen, series: Series, frame: Frame, colour: string): void {
  const isLine = series.kind === "line" || series.kind === "step";
  if (isLine) drawLine(pen, series, frame, colour);
  if (!isLine || series.hasDots) drawCloud(pen, series, frame, colour);
}

/** First, lowest, highest and last value of each pixel column. */
function drawLine(pen: Pen, series: Series, frame: Frame, colour: string): void {
  const { x, y } = series;
  const from = Math.max(firstAt(x, frame.x.min) - 1, 0);
  const to = Math.min(firstAt(x, frame.x.max) + 1, x.length);
  const sx = frame.width / (frame.x.max - frame.x.min);
  const sy = frame.height / (frame.y.max - frame.y.min);
  const px = (i: number) => (x[i] - frame.x.min) * sx;
  const py = (i: number) => frame.height - (y[i] - frame.y.min) * sy;
  const isStep = series.kind === "step";
  const style = { colour, width: series.width ?? 1.4, dash: series.dash };
  const room = new Float32Array(Math.min(to - from, 4 * (frame.width + 3)) * 4 + 16);
  let count = 0;
  let last = Number.NaN;
  const put = (i: number) => {
    const at = px(i);
    const value = py(i);
    if (isStep && count) {
      room[2 * count] = at;
      room[2 * count++ + 1] = last;
    }
    room[2 * count] = at;
    room[2 * count++ + 1] = value;
    last = value;
  };
  const flush = () => {
    if (count) pen.path(room, count, style);
    count = 0;
  };
  for (let i = from; i < to; ) {
    if (Number.isNaN(y[i])) {
      flush();
      i++;
      continue;
    }
    const column = Math.floor(px(i));
    let end = i + 1;
    let low = i;
    let high = i;
    while (end < to && !Number.isNaN(y[end]) && Math.floor(px(end)) === column) {
      if (y[end] < y[low]) low = end;
      if (y[end] > y[high]) high = end;
      end++;
    }
    const kept = [i, Math.min(low, high), Math.max(low, high), end - 1];
    for (let k = 0; k < 4; k++) if (k === 0 || kept[k] > kept[k - 1]) put(kept[k]);
    i = end;
  }
  flush();
}

function drawCloud(pen: Pen, series: Series, frame: Frame, colour: string): void {
  const isThinned = series.isThinned || series.kind === "marks" || series.kind === "crosses";
  const crowd = isThinned ? crowdOf(series, frame) : undefined;
  if (crowd) drawCrowd(pen, series, frame, colour, crowd);
  drawPoints(pen, series, frame, colour, crowd);
}

/** Crowded columns of cells. */
interface Crowd {
  isCrowded: Uint8Array;
  /** Points of each column. */
  counts: Uint32Array;
  /** The first point of each cell of a crowded column. */
  kept: number[];
}

/** Scales of a frame. */
function scales({ width, height, x, y }: Frame): [x: number, y: number] {
  return [width / (x.max - x.min), height / (y.max - y.min)];
}

/** The columns whose points cannot be told apart; undefined without one. */
function crowdOf({ x, y }: Series, frame: Frame): Crowd | undefined {
  const columns = Math.max(Math.ceil(frame.width / CELL), 1) + 1;
  const rows = Math.max(Math.ceil(frame.height / CELL), 1) + 1;
  const seen = new Uint8Array(columns * rows);
  const counts = new Uint32Array(columns);
  const cells = new Uint32Array(columns);
  const [sx, sy] = scales(frame);
  const columnOf = (i: number) => (((x[i] - frame.x.min) * sx) / CELL) | 0;
  const firsts: number[] = [];
  const to = firstAt(x, frame.x.max + 1e-12);
  for (let i = firstAt(x, frame.x.min); i < to; i++) {
    const value = frame.height - (y[i] - frame.y.min) * sy;
    if (!(value >= 0 && value <= frame.height)) continue;
    const column = columnOf(i);
    const cell = column * rows + ((value / CELL) | 0);
    counts[column]++;
    if (seen[cell]) continue;
    seen[cell] = 1;
    cells[column]++;
    firsts.push(i);
  }
  const isCrowded = new Uint8Array(columns);
  for (let from = 0; from < columns; ) {
    let end = from;
    let [points, used] = [0, 0];
    for (; end < columns && counts[end]; end++) [points, used] = [points + counts[end], used + cells[end]];
    if (end - from >= LEAST_COLUMNS && points > CROWDED * used) isCrowded.fill(1, from, end);
    from = end + 1;
  }
  const kept = firsts.filter((i) => isCrowded[columnOf(i)]);
  return kept.length ? { isCrowded, counts, kept } : undefined;
}

/** Draws crowded columns: one point per cell, whose opacity shows the number of points of its column. */
function drawCrowd(pen: Pen, { x, y, kind }: Series, frame: Frame, colour: string, { counts, kept }: Crowd): void {
  const [sx, sy] = scales(frame);
  const most = Math.log1p(counts.reduce((a, b) => Math.max(a, b)));
  const levels = kept.map((i) => {
    const count = counts[(((x[i] - frame.x.min) * sx) / CELL) | 0];
    return Math.ceil((STEPS * Math.log1p(count)) / most);
  });
  const room = new Float32Array(2 * kept.length);
  const style = { colour, size: Math.min(THIN, SIZES[kind]), isCross: kind === "crosses" };
  for (let level = 1; level <= STEPS; level++) {
    let count = 0;
    kept.forEach((i, k) => {
      if (levels[k] !== level) return;
      room[2 * count] = (x[i] - frame.x.min) * sx;
      room[2 * count++ + 1] = frame.height - (y[i] - frame.y.min) * sy;
    });
    const opacity = LEAST_OPACITY + ((1 - LEAST_OPACITY) * level) / STEPS;
    if (count) pen.dots(room, count, { ...style, opacity });
  }
}

/** One point per pixel outside the crowd: a second one cannot be seen. */
function drawPoints(pen: Pen, series: Series, frame: Frame, colour: string, crowd?: Crowd): void {
  const { x, y } = series;
  const from = firstAt(x, frame.x.min);
  const to = firstAt(x, frame.x.max + 1e-12);
  const width = Math.max(Math.ceil(frame.width), 1);
  const height = Math.max(Math.ceil(frame.height), 1);
  const seen = new Uint8Array((width + 1) * (height + 1));
  const [sx, sy] = scales(frame);
  const room = new Float32Array(2 * Math.min(to - from, seen.length));
  let count = 0;
  for (let i = from; i < to; i++) {
    const at = (x[i] - frame.x.min) * sx;
    const value = frame.height - (y[i] - frame.y.min) * sy;
    if (!(value >= 0 && value <= frame.height) || crowd?.isCrowded[(at / CELL) | 0]) continue;
    const cell = (at | 0) * (height + 1) + (value | 0);
    if (seen[cell]) continue;
    seen[cell] = 1;
    room[2 * count] = at;
    room[2 * count++ + 1] = value;
  }
  const { kind } = series;
  if (count) pen.dots(room, count, { colour, size: SIZES[kind], isCross: kind === "crosses" });
}

/** Draws onto a canvas whose plot begins at (left, top), in its own pixels. */
export function canvasPen(context: CanvasRenderingContext2D, left: number, top: number, ratio: number): Pen {
  return {
    path(points, count, { colour, width, dash }) {
      context.beginPath();
      for (let i = 0; i < count; i++) context.lineTo(left + points[2 * i] * ratio, top + points[2 * i + 1] * ratio);
      context.strokeStyle = colour;
      context.lineWidth = width * ratio;
      context.lineJoin = "round";
      context.setLineDash((dash ?? []).map((part) => part * ratio));
      context.stroke();
      context.setLineDash([]);
    },
    dots(points, count, { colour, size, isCross, opacity }) {
      const half = (size * ratio) / 2;
      context.globalAlpha = opacity ?? 1;
      if (isCross) {
        context.beginPath();
        for (let i = 0; i < count; i++) {
          const x = left + points[2 * i] * ratio;
          const y = top + points[2 * i + 1] * ratio;
          context.moveTo(x - half, y - half);
          context.lineTo(x + half, y + half);
          context.moveTo(x - half, y + half);
          context.lineTo(x + half, y - half);
        }
        context.strokeStyle = colour;
        context.lineWidth = 1.5 * ratio;
        context.stroke();
        context.globalAlpha = 1;
        return;
      }
      context.fillStyle = colour;
      for (let i = 0; i < count; i++) {
        context.fillRect(
          left + points[2 * i] * ratio - half,
          top + points[2 * i + 1] * ratio - half,
          2 * half,
          2 * half,
        );
      }
      context.globalAlpha = 1;
    },
    ring(x, y, { ink, paper }) {
      const [atX, atY] = [left + x * ratio, top + y * ratio];
      for (const [colour, width] of [
        [paper, 5],
        [ink, 2],
      ] as const) {
        context.beginPath();
        context.arc(atX, atY, RING * ratio, 0, 2 * Math.PI);
        for (const [dx, dy] of TICKS) {
          context.moveTo(atX + dx * TICK[0] * ratio, atY + dy * TICK[0] * ratio);
          context.lineTo(atX + dx * TICK[1] * ratio, atY + dy * TICK[1] * ratio);
        }
        context.strokeStyle = colour;
        context.lineWidth = width * ratio;
        context.stroke();
      }
    },
  };
}

/** Collects the elements of an SVG. */
export function svgPen(left: number, top: number, out: string[]): Pen {
  const place = (value: number) => Number(value.toFixed(1));
  return {
    path(points, count, { colour, width, dash }) {
      let d = "";
      for (let i = 0; i < count; i++)
        d += `${i ? "L" : "M"}${place(left + points[2 * i])} ${place(top + points[2 * i + 1])}`;
      const dashes = dash ? ` stroke-dasharray="${dash.join(" ")}"` : "";
      out.push(
        `<path d="${d}" fill="none" stroke="${colour}" stroke-width="${width}" stroke-linejoin="round"${dashes}/>`,
      );
    },
    dots(points, count, { colour, size, isCross, opacity }) {
      const half = size / 2;
      let d = "";
      for (let i = 0; i < count; i++) {
        const x = left + points[2 * i];
        const y = top + points[2 * i + 1];
        d += isCross
          ? `M${place(x - half)} ${place(y - half)}l${size} ${size}m${-size} 0l${size} ${-size}`
          : `M${place(x - half)} ${place(y - half)}h${size}v${size}h${-size}z`;
      }
      const look = isCross ? `fill="none" stroke="${colour}" stroke-width="1.5"` : `fill="${colour}"`;
      out.push(`<path d="${d}" ${look}${opacity === undefined ? "" : ` opacity="${opacity.toFixed(2)}"`}/>`);
    },
    ring(x, y, { ink, paper }) {
      const [atX, atY] = [place(left + x), place(top + y)];
      const ticks = TICKS.map(
        ([dx, dy]) =>
          `M${place(atX + dx * TICK[0])} ${place(atY + dy * TICK[0])}L${place(atX + dx * TICK[1])} ${place(atY + dy * TICK[1])}`,
      ).join("");
      for (const [colour, width] of [
        [paper, 5],
        [ink, 2],
      ] as const)
        out.push(
          `<g class="ring" fill="none" stroke="${colour}" stroke-width="${width}"><circle cx="${atX}" cy="${atY}" r="${RING}"/><path d="${ticks}"/></g>`,
        );
    },
  };
}
