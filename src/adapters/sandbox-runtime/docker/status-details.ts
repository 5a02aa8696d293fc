import { constants } from 'node:os';

const maxCharacters = 300;
const signals = new Map(Object.entries(constants.signals).map(([name, number]) => [number, name]));

/** How a command ended. */
export function describeExit(code: number, program: string): string {
  const signal = code > 128 ? signals.get(code - 128) : undefined;
  if (signal !== undefined) return `exited with code ${code} (${signal})`;
  if (code === 127) return `exited with code 127: the command, or one that it runs, was not found: ${program}`;
  if (code === 126) return `exited with code 126: the command, or one that it runs, is not executable: ${program}`;
  return `exited with code ${code}`;
}

/** Why the engine could not make or start a container, from what it said. */
export function describeRefusal(said: string): string {
  const missing = /exec: "([^"]*)": (executable file not found|stat [^:]*: no such file|permission denied|is a directory)/.exec(said);
  if (missing !== null) return `${/permission|directory/.test(missing[2] ?? '') ? 'command not executable' : 'command not found'}: ${missing[1]}`;
  const user = /unable to find (user|group) ([^:]+)/.exec(said);
  if (user !== null) return `its image has no ${user[1]} ${user[2]}`;
  return `the engine could not run it: ${shorten(said)}`;
}

/** What an engine says has no end, and paths of its host in it. */
export function shorten(said: string): string {
  const line = said.replaceAll(/\s+/g, ' ').trim().replaceAll(/\/(?:var|run|etc|home|root|usr|tmp|mnt|opt|srv|proc|sys)\/[^\s:"',)]+/g, '...');
  return line.length > maxCharacters ? `${line.slice(0, maxCharacters)}...` : line;
}
