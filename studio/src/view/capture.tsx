/** The diagnosis of a capture, which never leaves the browser. */
import { useEffect, useState } from "preact/hooks";
import type { Chart } from "../chart/model.ts";
import { View } from "../chart/plot.ts";
import { type Engine, Problem } from "../engine/client.ts";
import { fileWord } from "../model/command.ts";
import {
  author,
  type Connection,
  contents,
  fitted,
  headline,
  limits,
  mainSide,
  type QuicFlow,
  quicText,
  type Report,
  remarks,
} from "../model/diagnosis.ts";
import { figure, percent } from "../model/quantity.ts";
import { type Trace, traced } from "../model/traced.ts";
import { Charts } from "./charts.tsx";

const MOST_SHOWN = 20;

interface Props {
  engine: Engine;
  file: File;
  theme: number;
  /** Whether the capture is the newest of many: the report before stays until its own is there. */
  isFollowing: boolean;
  /** Called after the diagnosis of a capture. */
  onRead(): void;
  onScenario(text: string): void;
  onClose(): void;
}

export function Capture({ engine, file, theme, isFollowing, onRead, onScenario, onClose }: Props) {
  const [report, setReport] = useState<Report>();
  const [share, setShare] = useState<number>();
  const [problem, setProblem] = useState("");
  const [open, setOpen] = useState<string>();
  useEffect(() => {
    let isCurrent = true;
    setProblem("");
    if (!isFollowing) {
      setReport(undefined);
      setOpen(undefined);
      setShare(0);
    }
    engine
      .ask({ request: "diagnose", name: file.name }, (part) => isCurrent && !isFollowing && setShare(part), file)
      .then(({ head }) => {
        if (!isCurrent) return;
        const found = head.report as unknown as Report;
        setReport(found);
        document.documentElement.dataset.diagnosed = String(found.connections.length);
      })
      .catch(
        (error) =>
          isCurrent &&
          setProblem(
            error instanceof Problem && error.kind === "stopped" ? "Stopped." : `${file.name}: ${error.message}`,
          ),
      )
      .finally(() => {
        if (!isCurrent) return;
        setShare(undefined);
        onRead();
      });
    return () => {
      isCurrent = false;
    };
  }, [file]);
  const shown = report && [...report.connections].sort((a, b) => size(b) - size(a)).slice(0, MOST_SHOWN);
  const shownQuic = [...(report?.quic ?? [])].sort((a, b) => octets(b) - octets(a)).slice(0, MOST_SHOWN);
  return (
    <section class="capture" aria-label="Diagnosis">
      <div class="row">
        <h2>{file.name}</h2>
        <span class="soft">
          {figure(file.size / 1e6)} MB, read in this page;{" "}
          {isFollowing ? "the last packets" : "it is not sent anywhere"}
        </span>
        <span class="spring" />
        <button type="button" onClick={onClose}>
          Close
        </button>
      </div>
      {share !== undefined && (
        <div class="running">
          <progress max={1} value={share} aria-label="Progress of the diagnosis" />
          <button type="button" onClick={() => engine.stop()}>
            Stop
          </button>
        </div>
      )}
      {problem && (
        <p class="problem" role="alert">
          {problem}
        </p>
      )}
      {report && (
        <>
          <p>
            {contents(report)}
            {report.connections.length > MOST_SHOWN ? `; the ${MOST_SHOWN} with most data are shown` : ""}.
          </p>
          {remarks(report).map((remark) => (
            <p key={remark} class="remark">
              {remark}
            </p>
          ))}
          {shown?.map((connection) => (
            <article key={endsOf(connection)} class="connection">
              <h3>
                Connection {connection.id}: {headline(connection)}
              </h3>
              {connection.quic && <p class="soft">{author(connection)}</p>}
              <p class="shares">
                {limits(connection).map(([limit, part]) => (
                  <span key={limit}>
                    <span class="share">
                      <i style={{ width: `${Math.min(100 * part, 100)}%` }} />
                    </span>{" "}
                    {limit} {percent(part)}
                  </span>
                ))}
              </p>
              <ul>
                {connection.findings.map((finding) => (
                  <li key={finding.text}>{finding.text}</li>
                ))}
              </ul>
              {connection.next && (
                <p>
                  <b>Next step:</b> {connection.next}
                </p>
              )}
              <div class="row">
                <button
                  type="button"
                  aria-expanded={open === endsOf(connection)}
                  onClick={() => setOpen(open === endsOf(connection) ? undefined : endsOf(connection))}
                >
                  Charts
                </button>
                {fitted(connection) !== undefined && (
                  <button type="button" onClick={() => onScenario(fitted(connection)!)}>
                    Simulate its path
                  </button>
                )}
              </div>
              {open === endsOf(connection) && (
                <Traced engine={engine} file={file} connection={connection} theme={theme} />
              )}
            </article>
          ))}
          {report.quic.length > 0 && (
            <>
              <p>By unencrypted headers alone. For limits and retransmissions, open a qlog of one end.</p>
              <ul>
                {shownQuic.map((flow) => (
                  <li key={quicText(flow)}>{quicText(flow)}</li>
                ))}
              </ul>
            </>
          )}
          <p class="soft">
            The command has the same report: <code>anabranch diagnose {fileWord(file.name)} --json</code>
          </p>
        </>
      )}
    </section>
  );
}

/** The ends of a connection, which stay in later captures of an interface. */
const endsOf = ({ a, b }: Connection): string => `${a} ${b}`;
const octets = ({ directions: { a_to_b, b_to_a } }: QuicFlow) => a_to_b.bytes + b_to_a.bytes;
const size = (connection: Connection) => connection.directions[mainSide(connection)].bytes;

function Traced({
  engine,
  file,
  connection,
  theme,
}: {
  engine: Engine;
  file: File;
  connection: Connection;
  theme: number;
}) {
  const [charts, setCharts] = useState<Chart[]>();
  const [problem, setProblem] = useState("");
  const [view] = useState(() => new View());
  useEffect(() => {
    engine
      .ask({ request: "diagnose", name: file.name, connections: [connection.id] }, undefined, file)
      .then(({ head }) => {
        const [trace] = head.traces as unknown as Trace[];
        view.setWhole(Math.max(connection.duration_s, 1e-3));
        setCharts(traced(connection, trace));
      })
      .catch((error) => setProblem(String(error.message)));
  }, [connection]);
  if (problem) return <p class="problem">{problem}</p>;
  if (!charts) return <p class="soft">Reading the capture …</p>;
  return <Charts charts={charts} view={view} theme={theme} onPick={() => undefined} onStep={() => undefined} />;
}
