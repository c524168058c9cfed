/** The page: one state, and a run for each change of it. */
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { View } from "../chart/plot.ts";
import { Engine, Problem } from "../engine/client.ts";
import type { Local } from "../engine/local.ts";
import { addHost, addLink } from "../model/build.ts";
import { chartsOf, overlaid } from "../model/charts.ts";
import { command } from "../model/command.ts";
import { FIRST, ready } from "../model/gallery.ts";
import { Latest } from "../model/latest.ts";
import { Many } from "../model/many.ts";
import names from "../model/names.json";
import { Newest } from "../model/newest.ts";
import { figure } from "../model/quantity.ts";
import { bottleneck } from "../model/route.ts";
import { drawnOf, focusOn, liveOf, type Run, run, type Shown, shownOf } from "../model/run.ts";
import { mainRows, placeOf } from "../model/sequence.ts";
import { decode, encode, type State } from "../model/share.ts";
import { type LinkWay, sameFlow } from "../model/summary.ts";
import type { Moved } from "../model/topology.ts";
import { partText, type Underway } from "../model/underway.ts";
import { verdict } from "../model/verdict.ts";
import { nearest } from "../model/why.ts";
import type { Study } from "../study/definition.ts";
import { Build } from "./build.tsx";
import { Capture } from "./capture.tsx";
import { Charts } from "./charts.tsx";
import { Comparison } from "./comparison.tsx";
import { Digest } from "./digest.tsx";
import { Editor } from "./editor.tsx";
import { Gallery } from "./gallery.tsx";
import { Help } from "./help.tsx";
import { Knobs } from "./knobs.tsx";
import { movingAt, Player } from "./player.tsx";
import { Reason } from "./reason.tsx";
import { Studies } from "./studies.tsx";
import { Sweep } from "./sweep.tsx";
import { Terms } from "./terms.tsx";
import { Topology } from "./topology.tsx";

/** A run that takes longer shows a progress bar and can be stopped. */
const LONG_MS = 300;
/** Wait after a keystroke before the scenario runs. */
const TYPING_MS = 250;

/** Time between two looks at the packets that the command captures. */
const FOLLOW_MS = 3000;
/** Octets of a capture without packets. */
const EMPTY = 24;

/** Steps that can be undone. */
const MOST_STEPS = 100;

/** Changes that follow each other within this time are one step. */
const SAME_STEP_MS = 800;

/** Whether an element takes text. */
const isTyped = (element: Element): boolean =>
  element.tagName === "TEXTAREA" || (element instanceof HTMLInputElement && element.type !== "range");

/** Longest scenario. */
const MOST_TEXT = 4 * 2 ** 20;

/** A state that undo restores. */
interface Step {
  text: string;
  file: string | undefined;
  moved: Moved;
  seed: number | undefined;
}

/** The first part of a run that is under way or was stopped. */
interface FirstPart {
  underway: Underway;
  path: Shown;
  isStopped: boolean;
  /** When it arrived. */
  at: number;
}

/** The first error of a scenario in a sentence. */
function errorText({ message, errors }: Problem, hasRun: boolean): string {
  const [first] = errors;
  const line = first?.line ? `Line ${first.line}: ` : "";
  const text = (first?.message ?? message).replace(/\.$/, "");
  return `${line}${text}.${hasRun ? " The charts show the run before." : ""}`;
}

interface Props {
  module: Promise<WebAssembly.Module>;
  worker: string;
  local: Local | undefined;
  studies: () => Promise<Study[]>;
}

/** Width of the window, in steps that matter to the drawing. */
function useWidth(): number {
  const [width, setWidth] = useState(innerWidth);
  useEffect(() => {
    const follow = () => setWidth(innerWidth);
    addEventListener("resize", follow);
    return () => removeEventListener("resize", follow);
  }, []);
  return width;
}

function useTheme(): number {
  const [theme, setTheme] = useState(0);
  useEffect(() => {
    const query = matchMedia("(prefers-color-scheme: dark)");
    const follow = () => setTheme((n) => n + 1);
    query.addEventListener("change", follow);
    return () => query.removeEventListener("change", follow);
  }, []);
  return theme;
}

export function App({ module, worker, local, studies }: Props) {
  const engine = useMemo(() => new Engine(module, worker), []);
  // Workers of their own for what runs beside the run in view: a stop ends the work of one part only.
  const [sweeper, comparer] = useMemo(() => [0, 1].map(() => new Many(module, worker, local)), []);
  const [aside, helper, reader] = useMemo(() => [0, 1, 2].map(() => new Engine(module, worker)), []);
  const latest = useMemo(() => new Latest(() => engine.stop(), LONG_MS), []);
  const view = useMemo(() => new View(), []);
  const [text, setText] = useState<string>();
  const [file, setFile] = useState<string>();
  const [seed, setSeed] = useState<number>();
  const [done, setDone] = useState<Run>();
  const [partial, setPartial] = useState<FirstPart>();
  const [problem, setProblem] = useState<Problem>();
  const [share, setShare] = useState<number>();
  const [isLong, setLong] = useState(false);
  const [notice, setNotice] = useState("");
  const [link, setLink] = useState<LinkWay>();
  const [flow, setFlow] = useState<string>();
  const [pinned, setPinned] = useState<Run>();
  const [chosen, setChosen] = useState(-1);
  const [now, setNow] = useState<number>();
  const [, setFocused] = useState(0);
  const [capture, setCapture] = useState<File>();
  const [study, setStudy] = useState<string>();
  const [moved, setMoved] = useState<Moved>({});
  const [isOver, setOver] = useState(false);
  const theme = useTheme();
  const width = useWidth();
  const liveRun = useRef<AbortController>();
  const present: Step | undefined = text === undefined ? undefined : { text, file, moved, seed };
  const current = useRef({ flow, asked: 0, done, step: present });
  Object.assign(current.current, { flow, done, step: present });
  // The part of the time that a link shows, until its run is there.
  const wantedView = useRef<[number, number]>();

  // A run of the same scenario again, after a stop.
  const [runs, setAgain] = useState(0);

  const start = async (state: State, isOwn = false) => {
    const name = state.ready ?? "";
    const own = state.text ?? (Object.hasOwn(ready, name) ? ready[name] : undefined);
    if (own === undefined) {
      setNotice("The link names a ready path that this page does not have. The first path is shown instead.");
      start({ ready: FIRST[0][0] });
      return;
    }
    if (current.current.step) remember(current.current.step);
    setNotice("");
    setFile(state.text === undefined ? state.ready : undefined);
    setSeed(state.seed);
    setFlow(state.flow);
    setLink(state.link);
    setChosen(-1);
    setMoved(state.moved ?? {});
    setText(own);
    setAgain((n) => n + 1);
    view.showAll();
    wantedView.current = state.view;
    if (isOwn) return;
    // A link restores the whole state.
    setStudy(state.study);
    setPinned(undefined);
    if (state.pinned) {
      const { text: other, seed: with_ } = state.pinned;
      run(aside, { text: other, seed: with_ }).then(setPinned, () =>
        setNotice("The pinned run of the link has an error and is left out."),
      );
    }
  };

  const open = async () => {
    const fragment = location.hash.slice(1);
    setNotice("");
    if (!fragment) return start({ ready: FIRST[0][0] });
    const state = await decode(fragment);
    if (typeof state !== "string") return start(state);
    await start({ ready: FIRST[0][0] });
    setNotice(state);
  };

  useEffect(() => {
    open();
    local?.capture().then(setCapture, (error) => setNotice(String(error.message)));
    addEventListener("hashchange", open);
    return () => removeEventListener("hashchange", open);
  }, []);
  // The interface that the command follows: its last packets are a capture. The next is read after the diagnosis of
  // the one before.
  const isFollowing = local !== undefined && local.follows !== null;
  const waiting = useRef<ReturnType<typeof setTimeout>>();
  const follow = async () => {
    try {
      const found = await local!.followed();
      // A capture without packets has its head alone.
      if (found.size > EMPTY) setCapture(found);
      else waiting.current = setTimeout(follow, FOLLOW_MS);
    } catch (error) {
      setNotice(`${local!.follows} is no longer followed: ${(error as Error).message}`);
    }
  };
  useEffect(() => {
    if (isFollowing) follow();
    return () => clearTimeout(waiting.current);
  }, []);

  const typed = useRef(false);
  useEffect(() => {
    if (text === undefined) return;
    const asked = ++current.current.asked;
    const isCurrent = () => asked === current.current.asked;
    const wait = typed.current ? TYPING_MS : 0;
    typed.current = false;
    const job = async () => {
      if (!isCurrent()) return;
      const long = setTimeout(() => setLong(true), LONG_MS);
      let last: FirstPart | undefined;
      const parts = new Newest((underway: Underway) => {
        if (!isCurrent()) return;
        const path = { text, seed, resolved: underway.resolved, flows: underway.flows };
        last = { underway, path, isStopped: false, at: performance.now() };
        view.setWhole(underway.duration);
        setPartial(last);
      });
      try {
        const made = await run(engine, { text, seed, focus: current.current.flow }, setShare, (part) =>
          parts.offer(part),
        );
        const wanted = sameFlow(Object.keys(made.summary.flows), current.current.flow);
        // A flow may have been chosen meanwhile.
        if (wanted && made.focus !== undefined && wanted !== made.focus)
          await focusOn(engine, made, wanted).catch(() => undefined);
        view.setWhole(made.duration);
        if (wantedView.current && isCurrent()) {
          view.show(...wantedView.current);
          wantedView.current = undefined;
        }
        setPartial(undefined);
        setDone(made);
        setChosen(-1);
        if (isCurrent()) setProblem(undefined);
        document.documentElement.dataset.first ??= performance.now().toFixed(0);
        document.documentElement.dataset.took = made.took.toFixed(1);
      } catch (error) {
        if (!isCurrent()) return;
        const found = error instanceof Problem ? error : new Problem("request", String(error));
        const before = current.current.done;
        if (last) setPartial({ ...last, isStopped: true });
        else {
          setPartial(undefined);
          if (before) view.setWhole(before.duration);
        }
        if (found.kind === "stopped" && !last) setNotice("Stopped. The charts show the run before.");
        setProblem(found.kind === "stopped" ? undefined : found);
      } finally {
        parts.drop();
        clearTimeout(long);
        setLong(false);
        setShare(undefined);
        document.documentElement.dataset.run = String(asked);
      }
    };
    const begin = setTimeout(() => latest.submit(job), wait);
    return () => clearTimeout(begin);
  }, [text, seed, runs]);

  const past = useRef<{ before: Step[]; after: Step[]; at: number }>({ before: [], after: [], at: 0 });
  // Changes that follow each other at once, such as a drag or a word, are one step.
  const remember = (step: Step, isPart = false) => {
    const now = performance.now();
    const isSame = isPart && now - past.current.at < SAME_STEP_MS && past.current.before.length > 0;
    past.current.at = isPart ? now : 0;
    past.current.after = [];
    if (isSame) return;
    past.current.before.push(step);
    past.current.before.splice(0, past.current.before.length - MOST_STEPS);
  };
  const change = (next: string, isPart = false) => {
    if (present && text !== next) remember(present, isPart);
    setFile(undefined);
    setNotice("");
    setText(next);
  };
  // A drag is one step: the places before it are kept until its end.
  const beforeDrag = useRef<Moved>();
  const move = (node: string, by: [number, number], isDone: boolean) => {
    beforeDrag.current ??= moved;
    if (isDone && present) {
      remember({ ...present, moved: beforeDrag.current });
      beforeDrag.current = undefined;
    }
    setMoved((now) => {
      const { [node]: _, ...others } = now;
      return by[0] || by[1] ? { ...others, [node]: by } : others;
    });
  };
  const undo = (from: "before" | "after", to: "before" | "after") => {
    const next = past.current[from].pop();
    if (next === undefined || !present) return;
    past.current[to].push(present);
    past.current.at = 0;
    setFile(next.file);
    setText(next.text);
    setMoved(next.moved);
    setSeed(next.seed);
  };
  const undone = useRef(undo);
  undone.current = undo;
  useEffect(() => {
    const key = (event: KeyboardEvent) => {
      // A field of text has an undo of its keystrokes.
      if (!(event.ctrlKey || event.metaKey) || isTyped(event.target as Element)) return;
      const name = event.key.toLowerCase();
      if (name !== "z" && name !== "y") return;
      event.preventDefault();
      if (name === "z" && !event.shiftKey) undone.current("before", "after");
      else undone.current("after", "before");
    };
    addEventListener("keydown", key);
    return () => removeEventListener("keydown", key);
  }, []);
  const focus = async (name: string) => {
    setFlow(name);
    // The engine is at work on another run, and has no packets of this one.
    if (!done || partial || !done.message.tables.has("packets")) return;
    setChosen(-1);
    await focusOn(engine, done, name).catch(() => undefined);
    setFocused((n) => n + 1);
  };

  const path = partial ? partial.path : done && shownOf(done);
  const shownFlow = path && (sameFlow(path.flows, flow) ?? (partial ? undefined : done?.focus) ?? path.flows[0]);
  const shownLink =
    path &&
    (link && { ...path.resolved.link, ...path.resolved.group }[link.link]
      ? link
      : bottleneck(path.resolved, path.summary, shownFlow));
  const packets = partial ? undefined : done?.message.tables.get("packets");
  const charts = useMemo(() => {
    const drawn = partial?.underway ?? (done && drawnOf(done));
    if (!drawn) return [];
    let own = chartsOf(drawn, partial ? "" : (done?.focus ?? shownFlow ?? ""));
    // A chart that is saved says that it is not the whole run.
    if (partial?.isStopped)
      own = own.map((chart) => ({ ...chart, title: `${chart.title}, ${partText(partial.underway)}` }));
    if (!pinned) return own;
    const dashed = {
      label: (label: string) => `pinned: ${label}`,
      dash: [4, 3],
      shift: drawn.flows.length === 1 ? 3 : 0,
    };
    const other = chartsOf(drawnOf(pinned), pinned.focus ?? "", { ...dashed, shift: Math.max(dashed.shift, 1) });
    return overlaid(own, other);
  }, [done, partial, pinned, packets, shownFlow]);
  useEffect(() => {
    const { dataset } = document.documentElement;
    if (!partial) {
      delete dataset.until;
      return;
    }
    // The charts draw in microtasks before this one.
    queueMicrotask(() => {
      dataset.drawn = (performance.now() - partial.at).toFixed(1);
      dataset.until = String(partial.underway.until);
    });
  }, [charts]);
  const rows = useMemo(() => (packets?.rows ? mainRows(packets) : new Uint32Array()), [packets]);
  const again = useMemo(
    () => (packets?.rows ? [...rows].filter((row) => packets.flags("retransmission")[row] === 1) : []),
    [packets, rows],
  );
  const step = (by: number) => {
    if (!again.length || !packets) return;
    const at = again.indexOf(chosen);
    const next = at < 0 ? (by > 0 ? 0 : again.length - 1) : Math.min(Math.max(at + by, 0), again.length - 1);
    setChosen(again[next]);
    const time = packets.numbers("sent_s")[again[next]];
    if (time < view.min || time > view.max) view.pan((time - (view.min + view.max) / 2) / (view.max - view.min));
  };

  const copyLink = async () => {
    const state: State = file ? { ready: file } : { text };
    if (seed !== undefined) state.seed = seed;
    if (flow) state.flow = flow;
    if (link) state.link = link;
    if (study !== undefined) state.study = study;
    if (Object.keys(moved).length) state.moved = moved;
    if (pinned) state.pinned = { text: pinned.text, seed: pinned.seed };
    if (!view.isWhole) state.view = [view.min, view.max];
    const fragment = await encode(state);
    history.replaceState(null, "", `#${fragment}`);
    const whole = "It holds the whole state, and nothing is sent to a server.";
    // A reader's copy of the file has another address.
    const elsewhere =
      location.protocol === "file:" ? " In another copy of this page, append the part from # on to the address." : "";
    try {
      await navigator.clipboard.writeText(location.href);
      setNotice(`The link is copied. ${whole}${elsewhere}`);
    } catch {
      setNotice(`The address of this page is now the link. ${whole}${elsewhere}`);
    }
  };
  // A scenario is opened as text, and any other file is diagnosed.
  const take = async (dropped: File) => {
    if (!dropped.name.toLowerCase().endsWith(".toml")) return setCapture(dropped);
    if (dropped.size > MOST_TEXT) return setNotice(`${dropped.name} is longer than a scenario may be, 4 MiB.`);
    setSeed(undefined);
    change(await dropped.text());
  };
  const taken = useRef(take);
  taken.current = take;
  useEffect(() => {
    const over = (event: DragEvent) => {
      event.preventDefault();
      setOver(event.type === "dragover");
    };
    const drop = (event: DragEvent) => {
      event.preventDefault();
      setOver(false);
      const [dropped] = event.dataTransfer?.files ?? [];
      if (dropped) taken.current(dropped);
    };
    addEventListener("dragover", over);
    addEventListener("dragleave", over);
    addEventListener("drop", drop);
    return () => {
      removeEventListener("dragover", over);
      removeEventListener("dragleave", over);
      removeEventListener("drop", drop);
    };
  }, []);
  const saveFile = async () => {
    if (text === undefined) return;
    try {
      await local!.save(text);
      setNotice(`Saved ${local!.file}.`);
    } catch (error) {
      setNotice(`${local!.file} is not saved: ${(error as Error).message}`);
    }
  };
  const runLive = async () => {
    if (text === undefined) return;
    setNotice("");
    setShare(0);
    setLong(true);
    const control = new AbortController();
    liveRun.current = control;
    try {
      const { summary, tables } = await local!.live(text, seed, setShare, control.signal);
      view.setWhole(summary.duration_s);
      setPartial(undefined);
      setDone(liveOf(text, seed, summary, tables));
      setChosen(-1);
      setProblem(undefined);
      setNotice("This run was made with the kernel of this machine. A change of the scenario simulates again.");
    } catch (error) {
      if (!control.signal.aborted) setNotice(`No live run: ${(error as Error).message}`);
    } finally {
      setShare(undefined);
      setLong(false);
      liveRun.current = undefined;
      document.documentElement.dataset.live = String(Date.now());
    }
  };
  const line = text === undefined ? "" : command(text, file, seed);
  const said = partial
    ? partial.isStopped
      ? `The run ended after ${partText(partial.underway)}, and has no result. The charts show this part.`
      : "The run is under way. The charts show its samples so far."
    : problem
      ? errorText(problem, done !== undefined)
      : done
        ? verdict(done.summary, done.resolved)
        : "Starting the engine …";

  return (
    <div class={isOver ? "drop" : ""}>
      <header>
        <button type="button" class="skip" onClick={() => document.getElementById("charts")?.focus()}>
          Go to the charts
        </button>
        <h1>
          Anabranch <span>studio</span>
        </h1>
        <Gallery chosen={file} onChoose={(name) => start({ ready: name }, true)} />
        <div class="actions">
          <label class="button">
            Open file
            <input
              type="file"
              aria-label="Open a capture (pcap, pcapng), a qlog or a scenario (TOML)"
              onChange={(event) => {
                const [found] = event.currentTarget.files ?? [];
                if (found) take(found);
                event.currentTarget.value = "";
              }}
            />
          </label>
          <button type="button" disabled={!past.current.before.length} onClick={() => undo("before", "after")}>
            Undo
          </button>
          <button type="button" disabled={!past.current.after.length} onClick={() => undo("after", "before")}>
            Redo
          </button>
          <button
            type="button"
            aria-pressed={study !== undefined}
            onClick={() => setStudy(study === undefined ? "" : undefined)}
          >
            Studies
          </button>
          <button type="button" onClick={copyLink}>
            Copy link
          </button>
          {local && local.file !== null && (
            <button type="button" title={`Save the scenario into ${local.file}`} onClick={saveFile}>
              Save
            </button>
          )}
          <button
            type="button"
            aria-pressed={pinned !== undefined}
            disabled={!done || partial !== undefined}
            onClick={() => setPinned(pinned ? undefined : done)}
          >
            {pinned ? "Unpin" : "Pin run"}
          </button>
        </div>
      </header>
      <main>
        <p class="notice" role="status">
          {notice}
        </p>
        {capture && (
          <Capture
            engine={reader}
            file={capture}
            theme={theme}
            isFollowing={isFollowing}
            onRead={() => {
              if (isFollowing) waiting.current = setTimeout(follow, FOLLOW_MS);
            }}
            onClose={() => {
              clearTimeout(waiting.current);
              reader.stop();
              setCapture(undefined);
            }}
            onScenario={(next) => {
              change(next);
              document.getElementById("verdict")?.scrollIntoView();
            }}
          />
        )}
        {study !== undefined && (
          <Studies
            module={module}
            worker={worker}
            studies={studies}
            chosen={study}
            theme={theme}
            onChoose={setStudy}
            onClose={() => setStudy(undefined)}
          />
        )}
        <section class={problem && !partial ? "verdict wrong" : "verdict"} id="verdict" aria-label="Verdict">
          <p aria-live="polite">{said}</p>
          {done && !partial && !problem && shownFlow && (
            <Help engine={helper} run={done} flow={flow && shownFlow} seed={seed} onText={(next) => change(next)} />
          )}
          {partial?.isStopped && (
            <button type="button" onClick={() => setAgain((n) => n + 1)}>
              Run again
            </button>
          )}
        </section>
        {isLong && (
          <div class="running">
            <progress max={1} value={share ?? 0} aria-label="Progress of the run" />
            {partial && !partial.isStopped && <span class="soft">{partText(partial.underway)}</span>}
            <button type="button" onClick={() => (liveRun.current ? liveRun.current.abort() : engine.stop())}>
              Stop
            </button>
          </div>
        )}
        {path && (
          <Topology
            path={path}
            width={width - 48}
            link={shownLink}
            flow={shownFlow}
            moving={now === undefined || !packets || !done ? undefined : movingAt(done, packets, rows, now)}
            moved={moved}
            onMove={move}
            onLink={setLink}
            onFlow={focus}
            onDrag={(from, to) =>
              text !== undefined &&
              change(to === undefined ? addHost(text, path.resolved, from) : addLink(text, path.resolved, from, to))
            }
          />
        )}
        {done && <Terms run={done} flow={shownFlow} />}
        {path && <Sweep many={sweeper} path={path} link={shownLink} theme={theme} />}
        {path && text !== undefined && (
          <Build path={path} text={text} link={shownLink} flow={shownFlow} onText={(next) => change(next)} />
        )}
        <div class="columns">
          <div class="side">
            {path && text !== undefined && (
              <Knobs
                path={path}
                text={text}
                link={shownLink}
                flow={shownFlow}
                names={names}
                onText={(next) => {
                  // The controls stay with the link and the flow that they change.
                  setFlow(shownFlow);
                  setLink(shownLink);
                  change(next, true);
                }}
                onLink={setLink}
              />
            )}
            {text !== undefined && (
              <Editor
                text={text}
                problem={problem}
                onText={(next) => {
                  typed.current = true;
                  change(next, true);
                }}
              />
            )}
            {path && (
              <section class="same" aria-label="The same run outside">
                <h2>The same run as a command</h2>
                <pre tabIndex={0}>{line}</pre>
                <label class="seed">
                  Seed{" "}
                  <input
                    type="number"
                    min={0}
                    step={1}
                    value={seed ?? path.resolved.seed}
                    onChange={(event) => {
                      const { value, valueAsNumber: number } = event.currentTarget;
                      if (value === "") return setSeed(undefined);
                      if (Number.isSafeInteger(number) && number >= 0) return setSeed(number);
                      setNotice(`A seed is a whole number from 0 to ${Number.MAX_SAFE_INTEGER}, not ${value}.`);
                      event.currentTarget.value = String(seed ?? path.resolved.seed);
                    }}
                  />
                </label>
                {local && (
                  <button type="button" disabled={isLong} onClick={runLive}>
                    Run with this machine's kernel
                  </button>
                )}
                {done && !partial && (
                  <>
                    <Digest engine={aside} run={done} />
                    <p class="soft">
                      {figure(done.took)} ms in this page
                      {done.focus === undefined ? "; packets are not recorded: the run has too many" : ""}
                    </p>
                  </>
                )}
              </section>
            )}
          </div>
          <div class={problem && !partial ? "main old" : "main"} id="charts" tabIndex={-1}>
            {pinned && done && !partial && (
              <Comparison many={comparer} first={done} second={pinned} onUnpin={() => setPinned(undefined)} />
            )}
            {done && !partial && <Player view={view} packets={packets} rows={rows} now={now} onNow={setNow} />}
            <Charts
              charts={charts}
              view={view}
              theme={theme}
              ring={packets && placeOf(packets, chosen)}
              onPick={(time, value, reach) => packets && setChosen(nearest(packets, rows, time, value, reach))}
              onStep={step}
            />
            {packets && packets.rows > 0 && (
              <Reason packets={packets} rows={rows} chosen={chosen} again={again} onStep={step} />
            )}
          </div>
        </div>
      </main>
      <footer>
        <p class="soft">
          {local
            ? "The engine runs in this page. Its policy permits connections to the command that opened it, and to nothing else."
            : "The engine runs in this page. Nothing leaves the browser: the page's policy permits no connection."}
        </p>
      </footer>
    </div>
  );
}
