/** The stack of charts, which share one axis of time. */
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { type Chart, type Place, placeText, valueAt } from "../chart/model.ts";
import { coloursOf, Plot, type View } from "../chart/plot.ts";
import { figure } from "../model/quantity.ts";
import { savePng, saveSvg } from "./save.ts";

const HEIGHT = 118;
const TALL = 230;
const AXIS = 34;
/** Rows of a table of values. */
const ROWS = 40;

interface OneProps {
  chart: Chart;
  view: View;
  isLast: boolean;
  theme: number;
  onCursor(time: number | undefined): void;
  cursor: number | undefined;
  onPick?(time: number, value: number, reach: { time: number; value: number }): void;
  onStep?(by: number): void;
}

export function One({ chart, view, isLast, theme, onCursor, cursor, onPick, onStep }: OneProps) {
  const home = useRef<HTMLDivElement>(null);
  const plot = useRef<Plot>();
  const handlers = useRef({ onCursor, onPick });
  handlers.current = { onCursor, onPick };
  const [, setChanged] = useState(0);
  const [isOpen, setOpen] = useState(false);
  const height = (chart.isTall ? TALL : HEIGHT) + (isLast ? AXIS : 0);

  useEffect(() => {
    const element = home.current!;
    const made = new Plot(
      element,
      chart,
      view,
      { height, hasAxis: isLast },
      {
        cursor: (time) => handlers.current.onCursor(time),
        pick: (time, value, reach) => handlers.current.onPick?.(time, value, reach),
      },
    );
    plot.current = made;
    const unfollow = view.follow(() => made.redraw());
    const resized = new ResizeObserver(() => made.resize());
    resized.observe(element);
    setChanged((n) => n + 1);
    return () => {
      unfollow();
      resized.disconnect();
      made.destroy();
      plot.current = undefined;
    };
  }, [isLast, height]);
  useEffect(() => plot.current?.setChart(chart), [chart]);
  useEffect(() => {
    if (theme) plot.current?.restyle();
  }, [theme]);

  const palette = home.current ? coloursOf(home.current).palette : [];
  const key = (event: KeyboardEvent) => {
    const at = cursor ?? view.min;
    const step = (view.max - view.min) * (event.shiftKey ? 0.1 : 0.01);
    const acts: { [key: string]: () => void } = {
      ArrowRight: () => plot.current?.point(Math.min(at + step, view.max)),
      ArrowLeft: () => plot.current?.point(Math.max(at - step, view.min)),
      "+": () => view.zoom(0.5, cursor),
      "=": () => view.zoom(0.5, cursor),
      "-": () => view.zoom(2, cursor),
      PageDown: () => view.pan(0.5),
      PageUp: () => view.pan(-0.5),
      "0": () => view.showAll(),
      n: () => onStep?.(1),
      p: () => onStep?.(-1),
    };
    const act = acts[event.key];
    if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    act();
  };
  const name = `anabranch-${chart.name}`;
  return (
    <section class="chart" aria-label={chart.title}>
      <div class="chart-head">
        <h3>{chart.title}</h3>
        <ul class="legend">
          {chart.series.map((series) => {
            const isOff = plot.current?.isHidden(series) ?? series.isHidden ?? false;
            const value = cursor === undefined || series.kind !== "line" ? "" : figure(valueAt(series, cursor));
            return (
              <li key={series.label}>
                <button
                  type="button"
                  aria-pressed={!isOff}
                  class={isOff ? "off" : ""}
                  onClick={() => {
                    plot.current?.toggle(series.label);
                    setChanged((n) => n + 1);
                  }}
                >
                  <i
                    class={series.kind}
                    style={{
                      "--colour": palette[series.colour % Math.max(palette.length, 1)],
                      borderTopStyle: series.dash ? "dashed" : "solid",
                    }}
                  />
                  {series.label} <b>{value}</b>
                </button>
              </li>
            );
          })}
        </ul>
        <details class="menu">
          <summary aria-label={`Save or read ${chart.title}`}>⋯</summary>
          <div>
            <button type="button" onClick={() => savePng(plot.current!.svg(), `${name}.png`)}>
              Save as PNG
            </button>
            <button type="button" onClick={() => saveSvg(plot.current!.svg(), `${name}.svg`)}>
              Save as SVG
            </button>
            <button type="button" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
              Values as a table
            </button>
          </div>
        </details>
      </div>
      {chart.about && <p class="hint">{chart.about}</p>}
      <div
        ref={home}
        class="chart-area"
        style={{ minHeight: `${height}px` }}
        tabIndex={0}
        role="application"
        aria-roledescription="chart"
        aria-label={`${chart.title} over ${chart.axis?.label ?? "time"}, ${chart.series.map(({ label }) => label).join(", ")}. Arrow keys read values, plus and minus zoom, 0 shows everything.`}
        onKeyDown={key}
      />
      {isOpen && <Values chart={chart} view={view} />}
    </section>
  );
}

function Values({ chart, view }: { chart: Chart; view: View }) {
  const lines = chart.series.filter(({ kind }) => kind === "line" || kind === "step");
  const times = chart.axis
    ? [...new Set(lines.flatMap(({ x }) => [...x]))].sort((a, b) => a - b)
    : Array.from({ length: ROWS }, (_, i) => view.min + ((view.max - view.min) * i) / (ROWS - 1));
  return (
    <div class="scroll" tabIndex={0} role="group" aria-label={`Values of ${chart.title}`}>
      <table>
        <thead>
          <tr>
            <th scope="col">{chart.axis?.label ?? "time (s)"}</th>
            {lines.map(({ label }) => (
              <th scope="col" key={label}>
                {label} ({chart.unit})
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {times.map((time) => (
            <tr key={time}>
              <td>{placeText(chart, time)}</td>
              {lines.map((series) => (
                <td key={series.label}>{figure(valueAt(series, time))}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

interface Props {
  charts: Chart[];
  view: View;
  theme: number;
  /** The chosen packet, on the chart of sequences. */
  ring?: Place;
  onPick(time: number, value: number, reach: { time: number; value: number }): void;
  onStep(by: number): void;
}

export function Charts({ charts: plain, view, theme, ring, onPick, onStep }: Props) {
  const charts = useMemo(
    () => (ring ? plain.map((chart) => (chart.name === "sequence" ? { ...chart, ring } : chart)) : plain),
    [plain, ring?.x, ring?.y],
  );
  const [cursor, setCursor] = useState<number>();
  const [, setChanged] = useState(0);
  useEffect(() => view.follow(() => setChanged((n) => n + 1)), [view]);
  return (
    <div class="stack">
      <div class="stack-tools" role="toolbar" aria-label="Part of the time">
        <span class="soft" aria-live="polite">
          {view.isWhole
            ? `All ${figure(view.whole.max, 4)} s`
            : `${figure(view.min, 5)} to ${figure(view.max, 5)} s of ${figure(view.whole.max, 4)} s`}
          {cursor === undefined ? "" : ` · at ${cursor.toFixed(3)} s`}
        </span>
        <span class="spring" />
        <button type="button" aria-label="Zoom in" onClick={() => view.zoom(0.5, cursor)}>
          +
        </button>
        <button type="button" aria-label="Zoom out" onClick={() => view.zoom(2, cursor)}>
          −
        </button>
        <button type="button" aria-label="Earlier" onClick={() => view.pan(-0.5)}>
          ◂
        </button>
        <button type="button" aria-label="Later" onClick={() => view.pan(0.5)}>
          ▸
        </button>
        <button type="button" onClick={() => view.showAll()}>
          All
        </button>
      </div>
      {charts.map((chart, i) => (
        <One
          key={chart.name}
          chart={chart}
          view={view}
          theme={theme}
          isLast={i === charts.length - 1}
          cursor={cursor}
          onCursor={setCursor}
          onPick={chart.name === "sequence" ? onPick : undefined}
          onStep={chart.name === "sequence" ? onStep : undefined}
        />
      ))}
    </div>
  );
}
