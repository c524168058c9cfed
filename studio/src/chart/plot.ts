/**
 * A chart on the screen. uPlot draws the axes and handles the pointer; the series are drawn by `pen.ts` from the typed
 * arrays, so that a zoom joins and copies nothing.
 */
import uPlot from "uplot";
import { type Chart, extent, placeText, type Range, type Series } from "./model.ts";
import { canvasPen, drawSeries, svgPen } from "./pen.ts";

/** Number of the views made. */
let views = 0;

/** The part of the time that all charts of a page show. */
export class View {
  min = 0;
  max = 1;
  whole: Range = { min: 0, max: 1 };
  /** The time of the playhead. */
  now: number | undefined;
  /** Joins the cursors of the charts of this view. */
  readonly key = `view ${++views}`;
  private readonly followers = new Set<() => void>();

  follow(tell: () => void): () => void {
    this.followers.add(tell);
    return () => this.followers.delete(tell);
  }

  show(min: number, max: number): void {
    const low = Math.max(min, this.whole.min);
    const high = Math.min(max, this.whole.max);
    if (!(high > low)) return;
    this.min = low;
    this.max = high;
    this.tell();
  }

  showAll(): void {
    this.show(this.whole.min, this.whole.max);
  }

  get isWhole(): boolean {
    return this.min === this.whole.min && this.max === this.whole.max;
  }

  /** Sets the whole; a part that was shown stays. */
  setWhole(max: number): void {
    const wasWhole = this.isWhole;
    this.whole = { min: 0, max };
    if (wasWhole || this.max > max) {
      this.min = 0;
      this.max = max;
    }
  }

  /** Sets the whole of an axis that need not begin at 0, and shows it. */
  setRange(whole: Range): void {
    this.whole = whole;
    this.showAll();
  }

  zoom(factor: number, around?: number): void {
    const middle = around ?? (this.min + this.max) / 2;
    this.show(middle - (middle - this.min) * factor, middle + (this.max - middle) * factor);
  }

  pan(share: number): void {
    const span = this.max - this.min;
    const min = Math.min(Math.max(this.min + share * span, this.whole.min), this.whole.max - span);
    this.show(min, min + span);
  }

  setNow(now: number | undefined): void {
    this.now = now;
    this.tell();
  }

  tell(): void {
    for (const one of this.followers) one();
  }
}

/** Colours of the page. */
export interface Colours {
  ink: string;
  grid: string;
  paper: string;
  palette: string[];
}

export function coloursOf(element: Element): Colours {
  const style = getComputedStyle(element);
  const read = (name: string) => style.getPropertyValue(name).trim();
  return {
    ink: read("--chart-ink"),
    grid: read("--chart-grid"),
    paper: read("--chart-paper"),
    palette: read("--chart-palette").split(/\s+/),
  };
}

/** Called with the time under the pointer, or undefined when it leaves. */
export type OnCursor = (time: number | undefined) => void;
/** Called with the place of a click: time, value, and their reach of a few pixels. */
export type OnPick = (time: number, value: number, reach: { time: number; value: number }) => void;

const REACH = 12;
/** Width of the vertical axis. */
const AXIS = 56;

export class Plot {
  private plot: uPlot;
  private hidden = new Set<string>();
  private colours: Colours;
  chart: Chart;

  constructor(
    private readonly home: HTMLElement,
    chart: Chart,
    private readonly view: View,
    private readonly size: { height: number; hasAxis: boolean },
    private readonly on: { cursor: OnCursor; pick?: OnPick },
  ) {
    this.chart = chart;
    this.colours = coloursOf(home);
    for (const one of chart.series) if (one.isHidden) this.hidden.add(one.label);
    this.plot = this.make(Math.max(home.clientWidth, 120));
  }

  private make(width: number): uPlot {
    const { ink, grid } = this.colours;
    const { view } = this;
    const axis: uPlot.Axis = {
      stroke: ink,
      grid: { stroke: grid, width: 1 },
      ticks: { stroke: grid, width: 1 },
      font: FONT,
    };
    const options: uPlot.Options = {
      width,
      height: this.size.height,
      legend: { show: false },
      series: [{}, { show: true, width: 0, points: { show: false }, paths: () => null }],
      padding: [6, 8, this.size.hasAxis ? 0 : 4, 0],
      cursor: {
        drag: { x: true, y: false, setScale: false },
        ...(this.chart.axis ? {} : { sync: { key: view.key, setSeries: false } }),
        points: { show: false },
        y: false,
        bind: {
          dblclick: () => () => {
            view.showAll();
            return null;
          },
        },
      },
      scales: {
        x: { time: false, range: () => [view.min, view.max] },
        y: { range: () => this.vertical() },
      },
      axes: [
        this.size.hasAxis
          ? {
              ...axis,
              label: this.chart.axis?.label ?? "time (s)",
              labelSize: 16,
              size: 34,
              labelFont: FONT,
              ...(this.chart.axis?.isLog
                ? { values: (_: uPlot, all: number[]) => all.map((at) => placeText(this.chart, at, 2)) }
                : {}),
            }
          : { ...axis, size: 0, values: () => [] },
        { ...axis, label: this.chart.unit, labelSize: 16, labelFont: FONT, size: AXIS, space: 22 },
      ],
      hooks: {
        draw: [(u) => this.draw(u)],
        setCursor: [
          (u) =>
            this.on.cursor(
              u.cursor.left !== undefined && u.cursor.left >= 0 ? u.posToVal(u.cursor.left, "x") : undefined,
            ),
        ],
        setSelect: [
          (u) => {
            if (u.select.width < 3) return;
            const [min, max] = [u.select.left, u.select.left + u.select.width].map((at) => u.posToVal(at, "x"));
            u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
            view.show(min, max);
          },
        ],
      },
    };
    const made = new uPlot(
      options,
      [
        [0, 1],
        [null, null],
      ],
      this.home,
    );
    let down: number | undefined;
    made.over.addEventListener("mousedown", (event) => {
      down = event.clientX;
    });
    made.over.addEventListener("click", (event) => {
      if (down === undefined || Math.abs(event.clientX - down) > 3 || !this.on.pick) return;
      const box = made.over.getBoundingClientRect();
      const [x, y] = [event.clientX - box.left, event.clientY - box.top];
      const per = (axis: "x" | "y") => Math.abs(made.posToVal(1, axis) - made.posToVal(0, axis)) * REACH;
      this.on.pick(made.posToVal(x, "x"), made.posToVal(y, "y"), { time: per("x"), value: per("y") });
    });
    return made;
  }

  private vertical(): [number, number] {
    let range: Range | undefined;
    for (const series of this.chart.series) {
      if (this.hidden.has(series.label)) continue;
      const own = extent(series, this.view);
      if (own) range = range ? { min: Math.min(range.min, own.min), max: Math.max(range.max, own.max) } : own;
    }
    if (!range) return [0, 1];
    const span = range.max - range.min || Math.abs(range.max) || 1;
    if (this.chart.fits && !this.view.isWhole) return [range.min - span * 0.05, range.max + span * 0.05];
    // A line of zeros has an axis to 1.
    const top = range.max > 0 ? 1.06 * range.max : range.min < 0 ? 0 : 1;
    return [Math.min(0, range.min), top];
  }

  private draw(u: uPlot): void {
    const ratio = devicePixelRatio;
    const { left, top, width, height } = u.bbox;
    const { ctx } = u;
    ctx.save();
    ctx.beginPath();
    ctx.rect(left, top, width, height);
    ctx.clip();
    const pen = canvasPen(ctx, left, top, ratio);
    this.paint(pen, width / ratio, height / ratio);
    if (this.view.now !== undefined) {
      const x = u.valToPos(this.view.now, "x", true);
      ctx.strokeStyle = this.colours.ink;
      ctx.lineWidth = ratio;
      ctx.beginPath();
      ctx.moveTo(x, top);
      ctx.lineTo(x, top + height);
      ctx.stroke();
    }
    ctx.restore();
  }

  private paint(pen: ReturnType<typeof canvasPen>, width: number, height: number): void {
    const [min, max] = this.vertical();
    const frame = { width, height, x: { min: this.view.min, max: this.view.max }, y: { min, max } };
    for (const series of this.chart.series) {
      if (this.hidden.has(series.label)) continue;
      drawSeries(pen, series, frame, this.colourOf(series.colour));
    }
    const { ring } = this.chart;
    if (!ring) return;
    const x = ((ring.x - frame.x.min) / (frame.x.max - frame.x.min)) * width;
    const y = height - ((ring.y - min) / (max - min)) * height;
    pen.ring(x, y, { ink: this.colours.ink, paper: this.colours.paper });
  }

  colourOf(colour: number): string {
    return this.colours.palette[colour % this.colours.palette.length];
  }

  /** Whether a line is hidden; of a line that is not set yet, whether it will be. */
  isHidden({ label, isHidden = false }: Series): boolean {
    return this.chart.series.some((one) => one.label === label) ? this.hidden.has(label) : isHidden;
  }

  toggle(label: string): void {
    if (!this.hidden.delete(label)) this.hidden.add(label);
    this.redraw();
  }

  setChart(chart: Chart): void {
    const before = new Set(this.chart.series.map(({ label }) => label));
    for (const one of chart.series) if (one.isHidden && !before.has(one.label)) this.hidden.add(one.label);
    this.chart = chart;
    this.redraw();
  }

  redraw(): void {
    this.plot.setData([
      [0, 1],
      [null, null],
    ]);
  }

  /** The colours of the page have changed. */
  restyle(): void {
    this.colours = coloursOf(this.home);
    const width = this.plot.width;
    this.plot.destroy();
    this.plot = this.make(width);
  }

  resize(): void {
    const width = Math.max(this.home.clientWidth, 120);
    if (width !== this.plot.width) this.plot.setSize({ width, height: this.size.height });
  }

  /** Moves the cursor to a time. */
  point(time: number): void {
    this.plot.setCursor({ left: this.plot.valToPos(time, "x"), top: 10 });
  }

  destroy(): void {
    this.plot.destroy();
  }

  /** The visible part as an SVG document, with title, legend and axes. */
  svg(): Drawing {
    const { colours, plot } = this;
    const ratio = devicePixelRatio;
    const shown = this.chart.series.filter(({ label }) => !this.hidden.has(label));
    const legend = legendOf(shown, plot.bbox.left / ratio, plot.width);
    const [left, top, width, height] = [
      plot.bbox.left,
      plot.bbox.top + legend.height * ratio,
      plot.bbox.width,
      plot.bbox.height,
    ].map((v) => v / ratio);
    const out: string[] = [];
    const whole = { width: plot.width, height: Math.ceil(top + height + 40) };
    const text = (x: number, y: number, words: string, anchor: string, more = "") =>
      out.push(`<text x="${x.toFixed(1)}" y="${y.toFixed(1)}" text-anchor="${anchor}"${more}>${escaped(words)}</text>`);
    const [low, high] = this.vertical();
    for (const tick of ticks(this.view.min, this.view.max, Math.max(width / 90, 2))) {
      const x = left + ((tick - this.view.min) / (this.view.max - this.view.min)) * width;
      out.push(`<path d="M${x.toFixed(1)} ${top}v${height}" stroke="${colours.grid}"/>`);
      const label = placeText(this.chart, tick, this.chart.axis?.isLog ? 2 : 6);
      const isLast = x + (label.length * LETTER) / 2 > whole.width;
      text(isLast ? whole.width - 1 : x, top + height + 15, label, isLast ? "end" : "middle");
    }
    for (const tick of ticks(low, high, Math.max(height / 30, 2))) {
      const y = top + height - ((tick - low) / (high - low)) * height;
      out.push(`<path d="M${left} ${y.toFixed(1)}h${width}" stroke="${colours.grid}"/>`);
      text(left - 6, y + 4, String(Number(tick.toPrecision(6))), "end");
    }
    text(left + width / 2, top + height + 32, this.chart.axis?.label ?? "time (s)", "middle");
    const middle = top + height / 2;
    text(13, middle, this.chart.unit, "middle", ` transform="rotate(-90 13 ${middle.toFixed(1)})"`);
    out.push(
      `<clipPath id="plot"><rect x="${left}" y="${top}" width="${width}" height="${height}"/></clipPath><g clip-path="url(#plot)">`,
    );
    this.paint(svgPen(left, top, out), width, height);
    out.push("</g>");
    text(left, 14, this.chart.title, "start", ' font-weight="600"');
    for (const { series, x, y } of legend.entries) {
      const colour = this.colourOf(series.colour);
      const isLine = series.kind === "line" || series.kind === "step";
      const dash = series.dash ? ` stroke-dasharray="${series.dash.join(" ")}"` : "";
      out.push(
        isLine
          ? `<path d="M${x.toFixed(1)} ${y - 4}h16" stroke="${colour}" stroke-width="3"${dash}/>`
          : `<rect x="${(x + 4).toFixed(1)}" y="${y - 9}" width="9" height="9" rx="2" fill="${colour}"/>`,
      );
      text(x + SAMPLE, y, series.label, "start");
    }
    const markup = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${whole.width} ${whole.height}" width="${whole.width}" height="${whole.height}" font-family="system-ui, sans-serif" font-size="12" fill="${colours.ink}"><rect width="100%" height="100%" fill="${colours.paper}"/>${out.join("")}</svg>`;
    return { ...whole, markup };
  }
}

/** An SVG document and its size. */
export interface Drawing {
  width: number;
  height: number;
  markup: string;
}

/** An entry of an exported legend. */
interface Entry {
  series: Series;
  x: number;
  y: number;
}

/** Places of the entries of an exported legend, in as many rows as they need, and the height of title and legend. */
export function legendOf(shown: Series[], left: number, width: number): { entries: Entry[]; height: number } {
  const entries: Entry[] = [];
  let [x, y] = [left, TITLE + ROW];
  for (const series of shown) {
    const room = SAMPLE + series.label.length * LETTER;
    if (x > left && x + room > width) [x, y] = [left, y + ROW];
    entries.push({ series, x, y });
    x += room + 14;
  }
  return { entries, height: y + 4 };
}

const FONT = "11.5px system-ui, sans-serif";
/** Heights of an exported title, and of a row of the legend; widths of the sample of a line, and of a letter. */
const TITLE = 16;
const ROW = 16;
const SAMPLE = 21;
const LETTER = 6.6;

export function escaped(text: string): string {
  return text.replace(/[&<>"]/g, (c) => `&#${c.charCodeAt(0)};`);
}

/** Round values within a range. */
export function ticks(min: number, max: number, most: number): number[] {
  const rough = (max - min) / most;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((k) => k * power).find((k) => k >= rough)!;
  const made: number[] = [];
  for (let i = Math.ceil(min / step); i * step <= max + step * 1e-9; i++) made.push(i * step);
  return made;
}
