/** The ready paths: the first as buttons, all in a list. */
import { FIRST, ready, titleOf, topics } from "../model/gallery.ts";

interface Props {
  chosen: string | undefined;
  onChoose(file: string): void;
}

export function Gallery({ chosen, onChoose }: Props) {
  return (
    <nav class="gallery" aria-label="Ready paths">
      <ul>
        {FIRST.filter(([file]) => ready[file]).map(([file, name]) => (
          <li key={file}>
            <button
              type="button"
              class={file === chosen ? "chosen" : ""}
              aria-pressed={file === chosen}
              title={titleOf(ready[file])}
              onClick={() => onChoose(file)}
            >
              {name}
            </button>
          </li>
        ))}
      </ul>
      <select
        aria-label="All ready paths"
        value={chosen ?? ""}
        onChange={(event) => event.currentTarget.value && onChoose(event.currentTarget.value)}
      >
        <option value="">{chosen ? "All ready paths …" : "Own scenario"}</option>
        {topics().map(([topic, files]) => (
          <optgroup key={topic} label={topic}>
            {files.map((file) => (
              <option key={file} value={file}>
                {titleOf(ready[file], file)}
              </option>
            ))}
          </optgroup>
        ))}
      </select>
    </nav>
  );
}
