/** The command that makes the same run outside the page. */

/** A text as one word of a POSIX shell. */
export function word(text: string): string {
  return /^[A-Za-z0-9_./=:-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

/** The command for a scenario: its file if it is a ready one, and its text otherwise. */
export function command(text: string, file: string | undefined, seed: number | undefined): string {
  const more = seed === undefined ? "" : ` --seed ${seed}`;
  if (file) return `anabranch run ${word(file)}${more}`;
  const lines = text.trimEnd().split("\n");
  let end = "END";
  while (lines.includes(end)) end += "_";
  return `anabranch run -${more} <<'${end}'\n${lines.join("\n")}\n${end}`;
}
