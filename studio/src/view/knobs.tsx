/** Controls of the chosen link and flow. Each change is written into the scenario's text. */
import * as knobs from "../model/knobs.ts";
import { megabits, milliseconds, percent, rateText, timeText } from "../model/quantity.ts";
import type { Shown } from "../model/run.ts";
import type { LinkWay, Way } from "../model/summary.ts";

interface Props {
  path: Shown;
  text: string;
  link: LinkWay | undefined;
  flow: string | undefined;
  names: { queues: string[]; controls: string[] };
  onText(text: string): void;
  onLink(link: LinkWay): void;
}

const STEPS = 300;

/** A slider on a logarithmic scale; `zero` at its left end. */
function Slider(props: {
  label: string;
  value: number | undefined;
  min: number;
  max: number;
  zero?: boolean;
  shown: string;
  /** The value as it is written: a step goes on to the next value that differs. */
  rounded?: (value: number) => number;
  on(value: number): void;
}) {
  const { label, value, min, max, zero, shown, rounded = (one) => one, on } = props;
  const scale = Math.log(max / min);
  const first = zero ? 1 : 0;
  const place = !value || value < min ? 0 : first + Math.round((Math.log(Math.min(value, max) / min) / scale) * STEPS);
  return (
    <label class="knob">
      <span>{label}</span>
      <span class="value">{shown}</span>
      <input
        type="range"
        min={0}
        max={STEPS + first}
        value={place}
        disabled={value === undefined}
        aria-valuetext={shown}
        onInput={(event) => {
          const at = Number(event.currentTarget.value);
          const valueAt = (one: number) =>
            zero && one === 0 ? 0 : rounded(min * Math.exp(((one - first) / STEPS) * scale));
          const by = Math.sign(at - place);
          let next = at;
          while (by && valueAt(next) === value && next > 0 && next < STEPS + first) next += by;
          on(valueAt(next));
        }}
      />
    </label>
  );
}

function Choice(props: { label: string; value: string; names: string[]; on(value: string): void }) {
  const { label, value, names, on } = props;
  const all = names.includes(value) ? names : [value, ...names];
  return (
    <label class="knob">
      <span>{label}</span>
      <select value={value} onChange={(event) => on(event.currentTarget.value)}>
        {all.map((name) => (
          <option key={name} value={name}>
            {name}
          </option>
        ))}
      </select>
    </label>
  );
}

export function Knobs({ path, text, link, flow, names, onText, onLink }: Props) {
  const { resolved } = path;
  const way = link && knobs.directionOf(resolved, link);
  const table = flow?.replace(/\/\d+$/, "");
  const own = table === undefined ? undefined : resolved.flow?.[table];
  const rate = megabits(way?.rate);
  const delay = milliseconds(way?.delay);
  const loss = knobs.lossOf(way);
  const reordering = knobs.reorderingOf(way);
  const limit = link && knobs.bdpOf(text, resolved, link);
  const ends = link && { ...resolved.link, ...resolved.group }[link.link]?.between;
  const otherLoss = knobs.otherLossOf(way);
  const hasTable = knobs.hasDelayTable(way);
  return (
    <form class="knobs" aria-label="Controls" onSubmit={(event) => event.preventDefault()}>
      {link && way && (
        <fieldset>
          <legend>Link {link.link}</legend>
          {ends && knobs.differs(resolved, link.link) && (
            <label class="knob">
              <span>Direction</span>
              <select
                value={link.way}
                onChange={(event) => onLink({ link: link.link, way: event.currentTarget.value as Way })}
              >
                <option value="forward">
                  {ends[0]} to {ends[1]}
                </option>
                <option value="reverse">
                  {ends[1]} to {ends[0]}
                </option>
              </select>
            </label>
          )}
          <Slider
            label="Rate"
            value={rate}
            min={0.1}
            max={1000}
            shown={rate === undefined ? String(way.rate ?? "unlimited") : rateText(rate)}
            on={(v) => onText(knobs.setRate(text, resolved, link, v))}
          />
          <Slider
            label="Delay (one way)"
            value={delay}
            min={0.1}
            max={500}
            shown={delay === undefined ? "variable" : timeText(delay)}
            on={(v) => onText(knobs.setDelay(text, resolved, link, v))}
          />
          <Slider
            label="Random loss"
            value={otherLoss ? undefined : loss}
            min={1e-5}
            max={0.2}
            zero
            rounded={(v) => Number(v.toPrecision(2))}
            shown={otherLoss ?? (loss ? percent(loss) : "none")}
            on={(v) => onText(knobs.setLoss(text, resolved, link, v))}
          />
          <Slider
            label="Reordering (mean delay)"
            value={hasTable ? undefined : reordering}
            min={0.1}
            max={50}
            zero
            shown={hasTable ? "from a table" : reordering ? timeText(reordering) : "none"}
            on={(v) => onText(knobs.setReordering(text, resolved, link, v))}
          />
          <Choice
            label="Queue"
            value={way.queue?.kind ?? "drop-tail"}
            names={names.queues}
            on={(v) => onText(knobs.setQueueKind(text, resolved, link, v))}
          />
          <Slider
            label="Queue limit"
            value={limit ?? 1}
            min={0.1}
            max={16}
            rounded={(v) => Number(v.toPrecision(2))}
            shown={limit ? `${limit} × bandwidth × delay` : (way.queue?.limit ?? "unlimited")}
            on={(v) => onText(knobs.setQueueLimit(text, resolved, link, v))}
          />
        </fieldset>
      )}
      {table !== undefined && own && (
        <fieldset>
          <legend>Flow {table}</legend>
          {own.cc && (
            <Choice
              label="Congestion control"
              value={own.cc.kind}
              names={names.controls}
              on={(v) => onText(knobs.setControl(text, table, v))}
            />
          )}
          <Slider
            label="Number of flows"
            value={own.count ?? 1}
            min={1}
            max={64}
            rounded={(v) => Math.max(Math.round(v), 1)}
            shown={String(own.count ?? 1)}
            on={(v) => onText(knobs.setCount(text, table, v))}
          />
        </fieldset>
      )}
    </form>
  );
}
