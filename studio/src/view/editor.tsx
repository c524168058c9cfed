/** The scenario's text, with the errors of the command. */
import { useEffect, useRef } from "preact/hooks";
import type { Problem } from "../engine/client.ts";

interface Props {
  text: string;
  problem: Problem | undefined;
  onText(text: string): void;
}

export function Editor({ text, problem, onText }: Props) {
  const area = useRef<HTMLTextAreaElement>(null);
  const gutter = useRef<HTMLPreElement>(null);
  const lines = text.split("\n").length;
  const wrong = new Set(problem?.errors.map(({ line }) => line));
  // A change by a control leaves the place of the caret.
  useEffect(() => {
    const element = area.current!;
    if (element.value === text) return;
    const { selectionStart, selectionEnd, scrollTop } = element;
    element.value = text;
    if (document.activeElement === element) element.setSelectionRange(selectionStart, selectionEnd);
    element.scrollTop = scrollTop;
  }, [text]);
  const show = (line: number, column: number) => {
    const before =
      text
        .split("\n")
        .slice(0, line - 1)
        .join("\n").length + (line > 1 ? 1 : 0);
    const at = before + [...text.slice(before)].slice(0, column - 1).join("").length;
    area.current?.focus();
    area.current?.setSelectionRange(at, at);
  };
  return (
    <section class="editor" aria-label="Scenario">
      <h2>
        Scenario <span class="soft">TOML; a change runs it</span>
      </h2>
      <div class="text">
        <pre ref={gutter} class="gutter" aria-hidden="true">
          {Array.from({ length: lines }, (_, i) => (
            <span key={String(i)} class={wrong.has(i + 1) ? "wrong" : ""}>{`${i + 1}\n`}</span>
          ))}
        </pre>
        <textarea
          ref={area}
          spellcheck={false}
          autocapitalize="off"
          autocomplete="off"
          wrap="off"
          aria-label="Scenario (TOML)"
          aria-invalid={problem?.kind === "scenario"}
          aria-describedby={problem ? "problem" : undefined}
          rows={Math.min(Math.max(lines + 1, 8), 26)}
          onInput={(event) => onText(event.currentTarget.value)}
          onScroll={(event) => {
            gutter.current!.scrollTop = event.currentTarget.scrollTop;
          }}
        />
      </div>
      {problem && (
        <div id="problem" class="problem" role="alert">
          <pre>{problem.message}</pre>
          {problem.errors
            .filter(({ line, column }) => line !== null && column !== null)
            .slice(0, 5)
            .map(({ line, column }) => (
              <button type="button" key={`${line}:${column}`} onClick={() => show(line!, column!)}>
                Go to line {line}
              </button>
            ))}
        </div>
      )}
    </section>
  );
}
