/** The published studies: claims with verdicts, and figures, whose runs are made in this page. */
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Chart } from "../chart/model.ts";
import { View } from "../chart/plot.ts";
import { Engine, Problem } from "../engine/client.ts";
import { MOST_WORKERS } from "../model/many.ts";
import { figure as number } from "../model/quantity.ts";
import type { Claim, Figure, Study } from "../study/definition.ts";
import { measured } from "../study/judge.ts";
import { NoValue } from "../study/series.ts";
import { type Judged, Work } from "../study/study.ts";
import { One } from "./charts.tsx";

interface Props {
  module: Promise<WebAssembly.Module>;
  worker: string;
  studies: () => Promise<Study[]>;
  chosen: string | undefined;
  theme: number;
  onChoose(name: string): void;
  onClose(): void;
}

/** The results of a study, which stay while the page is open. */
interface Results {
  work: Work;
  judged: Map<string, Judged>;
  charts: Map<string, Chart>;
}

const results = new Map<string, Results>();

function resultsOf(study: Study): Results {
  const found = results.get(study.name) ?? { work: new Work(study), judged: new Map(), charts: new Map() };
  results.set(study.name, found);
  return found;
}

/** Work under way: the runs made, and all of them. */
interface Progress {
  made: number;
  all: number;
}

export function Studies({ module, worker, studies, chosen, theme, onChoose, onClose }: Props) {
  const [all, setAll] = useState<Study[]>();
  const [problem, setProblem] = useState("");
  useEffect(() => {
    studies().then(setAll, (error) => setProblem(String(error.message ?? error)));
  }, []);
  const study = all?.find(({ name }) => name === chosen) ?? all?.[0];
  return (
    <section class="studies" aria-label="Studies">
      <div class="row">
        <h2>Published claims, run again in this page</h2>
        <span class="spring" />
        <button type="button" onClick={onClose}>
          Close
        </button>
      </div>
      {problem && (
        <p class="problem" role="alert">
          {problem}
        </p>
      )}
      {all && study && (
        <>
          <ul class="tabs">
            {all.map(({ name }) => (
              <li key={name}>
                <button
                  type="button"
                  class={name === study.name ? "chosen" : ""}
                  aria-pressed={name === study.name}
                  onClick={() => onChoose(name)}
                >
                  {name.replace("-", " ")}
                </button>
              </li>
            ))}
          </ul>
          <OneStudy key={study.name} study={study} module={module} worker={worker} theme={theme} />
        </>
      )}
    </section>
  );
}

interface StudyProps {
  study: Study;
  module: Promise<WebAssembly.Module>;
  worker: string;
  theme: number;
}

function OneStudy({ study, module, worker, theme }: StudyProps) {
  const { work, judged, charts } = useMemo(() => resultsOf(study), [study]);
  const engines = useMemo(() => {
    const count = Math.min(Math.max(navigator.hardwareConcurrency || 1, 1), MOST_WORKERS);
    return Array.from({ length: count }, () => new Engine(module, worker));
  }, []);
  const [, setChanged] = useState(0);
  const [progress, setProgress] = useState<Progress>();
  const [problem, setProblem] = useState("");
  const isStopped = useRef(false);
  const stop = () => {
    isStopped.current = true;
    for (const engine of engines) engine.stop();
  };
  useEffect(() => stop, []);

  /** Makes runs on all workers. */
  const make = async (runs: number[], made: () => void) => {
    const queue = [...runs];
    const drain = async (engine: Engine) => {
      for (let run = queue.shift(); run !== undefined && !isStopped.current; run = queue.shift()) {
        await work.make((request) => engine.ask(request), run);
        made();
      }
    };
    await Promise.all(engines.map(drain));
  };
  /** Judges claims and draws figures one after the other, each as soon as its runs are made. */
  const start = async (claims: Claim[], figures: Figure[]) => {
    isStopped.current = false;
    setProblem("");
    const all = new Set([
      ...claims.flatMap((one) => work.ofClaim(one)),
      ...figures.flatMap((one) => work.ofFigure(one)),
    ]);
    let made = 0;
    setProgress({ made, all: all.size });
    const count = () => setProgress({ made: ++made, all: all.size });
    try {
      for (const claim of claims) {
        await make(work.ofClaim(claim), count);
        if (isStopped.current) return;
        judged.set(claim.id, work.judged(claim));
        setChanged((n) => n + 1);
      }
      for (const figure of figures) {
        await make(work.ofFigure(figure), count);
        if (isStopped.current) return;
        charts.set(figure.id, work.chart(figure));
        setChanged((n) => n + 1);
      }
    } catch (error) {
      if (!(error instanceof Problem && error.kind === "stopped")) {
        stop();
        setProblem(error instanceof NoValue ? error.message : String((error as Error).message));
      }
    } finally {
      setProgress(undefined);
      document.documentElement.dataset.judged = String(claims.length);
    }
  };
  const isBusy = progress !== undefined;
  const sections = [null, ...Object.keys(study.sections)];
  const counts = new Map<string, number>();
  for (const { verdict } of judged.values()) counts.set(verdict, (counts.get(verdict) ?? 0) + 1);
  return (
    <div class="study">
      <h3>{study.title}</h3>
      <p class="soft">{study.source}</p>
      <p>{study.about}</p>
      <div class="row">
        <button type="button" class="primary" disabled={isBusy} onClick={() => start(study.claims, study.figures)}>
          Run the quick grid
        </button>
        {progress && (
          <>
            <progress max={Math.max(progress.all, 1)} value={progress.made} aria-label="Progress of the study" />
            <span class="soft">
              {progress.made.toLocaleString("en")} of {progress.all.toLocaleString("en")} runs on {engines.length}{" "}
              {engines.length === 1 ? "core" : "cores"}
            </span>
            <button type="button" onClick={stop}>
              Stop
            </button>
          </>
        )}
        <span class="soft" aria-live="polite">
          {[...counts].map(([verdict, count]) => `${count} ${verdict}`).join(", ")}
        </span>
      </div>
      {problem && (
        <p class="problem" role="alert">
          {problem}
        </p>
      )}
      {sections.map((section) => {
        const claims = study.claims.filter((claim) => claim.section === section);
        if (!claims.length) return null;
        return (
          <div key={section ?? ""}>
            {section !== null && (
              <>
                <h3>{study.sections[section].title}</h3>
                <p class="soft">{study.sections[section].about}</p>
              </>
            )}
            {claims.map((claim) => (
              <OneClaim
                key={claim.id}
                study={study}
                claim={claim}
                judged={judged.get(claim.id)}
                isBusy={isBusy}
                onRun={() => start([claim], [])}
              />
            ))}
          </div>
        );
      })}
      {study.figures.map((figure) => (
        <OneFigure
          key={figure.id}
          figure={figure}
          chart={charts.get(figure.id)}
          isBusy={isBusy}
          theme={theme}
          onRun={() => start([], [figure])}
        />
      ))}
      <p class="soft">
        The command judges the same claims on the same grid: <code>anabranch study {study.name} --quick</code>
      </p>
    </div>
  );
}

const CLASSES: { [verdict: string]: string } = {
  reproduced: "good",
  "reproduced (fragile)": "fair",
  "not reproduced": "poor",
};

interface ClaimProps {
  study: Study;
  claim: Claim;
  judged: Judged | undefined;
  isBusy: boolean;
  onRun(): void;
}

function OneClaim({ study, claim, judged, isBusy, onRun }: ClaimProps) {
  const { control } = claim.check;
  return (
    <article class="claim" aria-label={`Claim ${claim.id}`}>
      <div class="row">
        <b>{claim.id}</b>
        {judged ? (
          <span class={`badge ${CLASSES[judged.verdict] ?? "open"}`}>{judged.verdict}</span>
        ) : (
          <button type="button" disabled={isBusy} aria-label={`Check claim ${claim.id}`} onClick={onRun}>
            Check
          </button>
        )}
        <span class="sentence">{claim.claim}</span>
      </div>
      <dl>
        <dt>Published</dt>
        <dd>{claim.published}</dd>
        {claim.inconsistent && (
          <>
            <dt>The source says</dt>
            <dd>
              {claim.inconsistent.statements.map((one) => (
                <q key={one}>{one}</q>
              ))}
            </dd>
          </>
        )}
        <dt>Holds if</dt>
        <dd>{claim.acceptIf}</dd>
        {judged && (
          <>
            <dt>Measured</dt>
            <dd>
              {measured(judged.plain) || "–"}
              {judged.jitter !== undefined && `; holds for ${number(100 * judged.jitter)} % of the seeds of the start`}
            </dd>
            {judged.control && control && (
              <>
                <dt>Wrong system</dt>
                <dd>
                  {study.wrongs[control]}:{" "}
                  {judged.control.holds === false ? "the check fails, as it must" : "the check holds"}
                </dd>
              </>
            )}
            {judged.verdict !== "reproduced" && judged.why && (
              <>
                <dt>Why</dt>
                <dd>{judged.why}</dd>
              </>
            )}
          </>
        )}
      </dl>
    </article>
  );
}

interface FigureProps {
  figure: Figure;
  chart: Chart | undefined;
  isBusy: boolean;
  theme: number;
  onRun(): void;
}

function OneFigure({ figure, chart, isBusy, theme, onRun }: FigureProps) {
  const view = useMemo(() => new View(), []);
  const [cursor, setCursor] = useState<number>();
  const isShown = useRef(false);
  if (chart && !isShown.current) {
    isShown.current = true;
    const all = chart.series.flatMap(({ x }) => [x[0], x[x.length - 1]]).filter(Number.isFinite);
    const [min, max] = [Math.min(...all), Math.max(...all)];
    const room = figure.x === "time_s" ? 0 : (max - min || 1) * 0.03;
    view.setRange({ min: min - room, max: max + room });
  }
  return (
    <div class="figure">
      {chart ? (
        <One
          chart={{
            ...chart,
            isTall: true,
            about: figure.published ? `As ${figure.published} of the source.` : undefined,
          }}
          view={view}
          theme={theme}
          isLast
          cursor={cursor}
          onCursor={setCursor}
        />
      ) : (
        <div class="row">
          <button type="button" disabled={isBusy} aria-label={`Draw ${figure.title}`} onClick={onRun}>
            Draw
          </button>
          <span>
            {figure.title}
            {figure.published && <span class="soft"> ({figure.published})</span>}
          </span>
        </div>
      )}
    </div>
  );
}
