/** Commands that do the same outside the page. */

/** A text as one word of a POSIX shell. */
export function word(text: string): string {
  return /^[A-Za-z0-9_./=:-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

/** The name of a file as an argument: one that begins with a dash is no option. */
export function fileWord(name: string): string {
  return word(name.startsWith("-") ? `./${name}` : name);
}

/** The command for a scenario, with its text: the file of a ready one, which a comment names, may not be at hand. */
export function command(text: string, file: string | undefined, seed: number | undefined): string {
  const lines = [...(file ? [`# ${file}`] : []), ...text.trimEnd().split("\n")];
  let end = "END";
  while (lines.includes(end)) end += "_";
  return `anabranch run -${seed === undefined ? "" : ` --seed ${seed}`} <<'${end}'\n${lines.join("\n")}\n${end}`;
}
