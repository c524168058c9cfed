/** Builds a topology: hosts, links, flows, gateways and impairments. Each step is written into the text. */
import { useState } from "preact/hooks";
import * as build from "../model/build.ts";
import type { Shown } from "../model/run.ts";
import type { LinkWay } from "../model/summary.ts";

interface Props {
  path: Shown;
  text: string;
  link: LinkWay | undefined;
  flow: string | undefined;
  onText(text: string): void;
}

function Pick(props: { label: string; value: string; names: string[]; on(value: string): void }) {
  return (
    <label>
      {props.label}{" "}
      <select value={props.value} onChange={(event) => props.on(event.currentTarget.value)}>
        {props.names.map((name) => (
          <option key={name} value={name}>
            {name}
          </option>
        ))}
      </select>
    </label>
  );
}

export function Build({ path, text, link, flow, onText }: Props) {
  const { resolved } = path;
  const nodes = build.nodesOf(resolved);
  const [first, setFirst] = useState("");
  const [second, setSecond] = useState("");
  const [kind, setKind] = useState("bernoulli-loss");
  const from = nodes.includes(first) ? first : (nodes[0] ?? "");
  const to = nodes.includes(second) ? second : (nodes[nodes.length - 1] ?? "");
  const gateway = build.addGateway(text, resolved, from, to);
  const table = flow?.replace(/\/\d+$/, "");
  return (
    <details class="build">
      <summary>Change the topology</summary>
      <div class="row">
        <Pick label="From" value={from} names={nodes} on={setFirst} />
        <Pick label="to" value={to} names={nodes} on={setSecond} />
        <button type="button" disabled={from === to} onClick={() => onText(build.addLink(text, resolved, from, to))}>
          Add link
        </button>
        <button type="button" disabled={from === to} onClick={() => onText(build.addFlow(text, resolved, from, to))}>
          Add flow
        </button>
        <button
          type="button"
          disabled={!gateway}
          title="A second link, and a tunnel over both"
          onClick={() => gateway && onText(gateway)}
        >
          Add gateway
        </button>
        <button type="button" disabled={!from} onClick={() => onText(build.addHost(text, resolved, from))}>
          Add host beside {from}
        </button>
      </div>
      <div class="row">
        {link && (
          <>
            <Pick
              label={`Link ${link.link}: impairment`}
              value={kind}
              names={Object.keys(build.IMPAIRMENTS)}
              on={setKind}
            />
            <button type="button" onClick={() => onText(build.addImpairment(text, resolved, link, kind))}>
              Add impairment
            </button>
            <button type="button" onClick={() => onText(build.removeLink(text, resolved, link.link))}>
              Remove link {link.link}
            </button>
          </>
        )}
        {table && (
          <button type="button" onClick={() => onText(build.removeFlow(text, table))}>
            Remove flow {table}
          </button>
        )}
      </div>
      {link && <Impairments path={path} text={text} link={link} onText={onText} />}
      <p class="hint">
        Drag a node to move it, or move it with the arrow keys. Drag its + to another node to add a link, or into the
        free space to add a host. Ctrl-Z undoes a step.
      </p>
    </details>
  );
}

/** The impairments of a direction of a link, in the order in which packets meet them. */
function Impairments({
  path,
  text,
  link,
  onText,
}: {
  path: Shown;
  text: string;
  link: LinkWay;
  onText(text: string): void;
}) {
  const { resolved } = path;
  const all = build.impairmentsOf(resolved, link);
  if (!all.length) return null;
  return (
    <ol class="impairments" aria-label={`Impairments of link ${link.link}, ${link.way}`}>
      {all.map(({ kind, parameters }, i) => (
        <li key={`${i} ${kind}`}>
          <b>
            {i + 1}. {kind}
          </b>
          {parameters.map(([name, value]) => (
            <label key={name}>
              {name.replaceAll("_", " ")}{" "}
              <input
                value={String(value)}
                onChange={(event) =>
                  onText(build.setParameter(text, resolved, link, i, name, event.currentTarget.value))
                }
              />
            </label>
          ))}
          <button
            type="button"
            aria-label={`Remove impairment ${i + 1}, ${kind}`}
            onClick={() => onText(build.removeImpairment(text, resolved, link, i))}
          >
            Remove
          </button>
        </li>
      ))}
    </ol>
  );
}
