export function asSentence(text: string): string {
  const begun = text.charAt(0).toUpperCase() + text.slice(1);
  return /[.!?]$/u.test(begun) ? begun : `${begun}.`;
}

/** Returns a text for a code that this version does not know. */
export function textOfCode(code: string): string {
  return asSentence(code.replaceAll('_', ' '));
}

export function quoted(text: string): string {
  return JSON.stringify(text);
}

const units = [['d', 86_400_000], ['h', 3_600_000], ['min', 60_000]] as const;

/** Returns the duration in the largest unit that divides it: `15 min`. */
export function duration(ms: number): string {
  const [name, size] = units.find(([, size]) => ms >= size && ms % size === 0) ?? ['s', 1000];
  return `${ms / size} ${name}`;
}

export function bytesProgress(done: number | null, all: number | null): string {
  return all === null ? '' : `, ${megabytes(done ?? 0)} of ${megabytes(all)} MB`;
}

function megabytes(bytes: number): string {
  const value = bytes / 1e6;
  return value < 10 ? value.toFixed(1) : String(Math.round(value));
}

export function exitText(subject: string, exitCode: number | null, signal: string | null, program: string | null): string {
  if (exitCode === null) return signal === null ? `${subject} ended.` : `${subject} was killed by ${signal}.`;
  const code = `${subject} exited with code ${exitCode}${signal === null ? '' : ` (${signal})`}`;
  if (program !== null && exitCode === 127) return `${code}: the command, or one that it runs, was not found: ${program}`;
  if (program !== null && exitCode === 126) return `${code}: the command, or one that it runs, is not executable: ${program}`;
  return `${code}.`;
}

/** The subject of a sentence about ended processes, by the phase of their sandbox. */
export const subjects = { starting: 'While it started, it', running: 'It', resuming: 'While it was resumed, it' } as const;

export const hints = {
  lasting: 'A sandbox runs only as long as its command. Give its spec a command that does not end, for example sleep infinity.',
  memory: 'Give its spec more resources.memory.',
  probe: 'Its program must listen on all addresses (0.0.0.0) at the port of the spec. If it starts slowly, set a longer ready.within.',
} as const;

/** Joins the sentences, and the last output if it is known. */
export function endText(sentences: readonly (string | null)[], output: string | undefined): string {
  return [...sentences, output === undefined ? null : `Its last output: ${output}`].filter((text) => text !== null).join(' ');
}

export const fileTypeNames = {
  file: 'a file', directory: 'a directory', symlink: 'a link', other: 'neither a file nor a directory',
} as const;
