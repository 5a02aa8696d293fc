import { randomUUID } from 'node:crypto';
import { supervisor } from '../supervisor-script.ts';
import { enterDirectory, hiddenCommand, isShellVariable, killing, lineWord, nobody, readStart, takeHidden } from '../shell-functions.ts';

/** The environment variable that marks the processes of an execution. */
export const markVariable = 'SKEP_EXECUTION';

/** The prefix of the marks of executions that end with the process that started them. */
const attachedMark = 'attached.';

/** The prefix of this process's marks of such executions. Executions with another prefix belong to a process that has ended. */
const ownMark = `${attachedMark}${randomUUID()}.`;

export function newMark(): string {
  return `${ownMark}${randomUUID()}`;
}

/** Returns the mark of an execution that outlives the process that started it. */
export function keptMark(executionId: string): string {
  return `kept.${executionId}.`;
}

/** The leader of an execution's session, with its process id in the container. */
export interface Leader {
  readonly pid: string;
  /** Its start time, since a later process may get the same id. */
  readonly start: string;
}

/** No process is in its session. */
export const noLeader: Leader = { pid: 'none', start: 'none' };

/**
 * The start of an execution, which then becomes the command. It prints its process id in the container, since the engine does not report
 * it. It uses only shell built-ins, so an image needs only `/bin/sh`. The engine starts it in a session of its own.
 */
const beginning = `${readStart}${enterDirectory}
_skep_read_start "/proc/$$/stat"
printf 'skep %s %s\\n' "$$" "$_skep_start"
_skep_enter "$1"
shift
exec "$@"
`;

export function beginCommand(command: readonly string[], workingDir: string): string[] {
  return ['/bin/sh', '-c', beginning.trim(), 'skep-execution', workingDir, ...command];
}

/**
 * A shell that runs the commands that it reads as lines, one after the other, and ends with its input. It prints lines that begin with the
 * mark `$1`: `begin 0` before each command, and `end` with the exit code into both outputs after it. `_skep_hidden` is the supervisor's
 * script.
 */
const shell = `${takeHidden}${readStart}
_skep_read_start "/proc/$$/stat"
printf 'skep %s %s\\n' "$$" "$_skep_start"
_skep_nl='
'
while IFS= read -r _skep_line; do
  printf '%s begin 0\\n' "$1"
  # Otherwise, the shell remembers where it found a program.
  hash -r
  eval "$_skep_line"
  _skep_code=$?
  printf '%s end %s\\n' "$1" $_skep_code
  printf '%s end %s\\n' "$1" $_skep_code >&2
done
exit $_skep_code
`;

export function shellCommand(mark: string): string[] {
  return hiddenCommand('skep-shell', shell.trim(), supervisor, [mark]);
}

/** A shell reads byte by byte. A longer line takes about as long as the engine takes to start a process. */
const maxLineBytes = 32 << 10;

/** Returns the line with which such a shell runs a command. Null if a shell can't set the environment, or would read it too slowly. */
export function shellLine(command: readonly string[], env: Readonly<Record<string, string>>): string | null {
  if (!Object.keys(env).every(isShellVariable)) return null;
  const assignments = Object.entries(env).map(([name, value]) => `${name}=${lineWord(value)}`);
  const words = command.map((word) => (word === supervisor ? '"$_skep_hidden"' : lineWord(word)));
  const line = `${[...assignments, ...words].join(' ')} </dev/null\n`;
  return Buffer.byteLength(line) > maxLineBytes ? null : line;
}

export function killCommand({ pid, start }: Leader, mark: string): string[] {
  return ['/bin/sh', '-c', killing.trim(), 'skep-kill', pid, start, `${markVariable}=${mark}`, nobody];
}

/** Returns the engine's command that kills a kept execution and removes its folder. */
export function removeCommand(folder: string, executionId: string): string[] {
  // The sandbox may have replaced the file.
  const leader = `pid=none start=none
if [ -f "$3/pids" ] && [ ! -L "$3/pids" ]; then { read -r pid start rest < "$3/pids"; } 2>/dev/null; fi
case $pid in ''|*[!0-9]*) pid=none start=none;; esac; set -- "$pid" "$start" "$3" "$4"`;
  // Needs no further process: other commands may take up all the room.
  const script = `${leader}; folder=$3; set -- "$1" "$2" "$4" ${nobody}\n${killing.trim()}\nexec rm -rf "$folder"`;
  return ['/bin/sh', '-c', script, 'skep-remove', '', '', folder, `${markVariable}=${keptMark(executionId)}`];
}

/** Returns the engine's command that kills the executions of Skep processes that have ended. */
export function killLeftoversCommand(): string[] {
  return ['/bin/sh', '-c', killing.trim(), 'skep-kill', 'none', 'none', `${markVariable}=${attachedMark}`, `${markVariable}=${ownMark}`];
}

const listRemoved = `
for file in "$1"/*/kept/removed; do
  [ -e "$file" ] || continue
  file=\${file%/kept/removed}
  printf '%s\\n' "\${file##*/}"
done
`;

/** Returns the engine's command that prints the ids of executions that were removed while the sandbox did not run. */
export function listRemovedCommand(folder: string): string[] {
  return ['/bin/sh', '-c', listRemoved.trim(), 'skep-removed', folder];
}

/** Parses the first line of an execution. Null if it is another line. */
export function parseBeginning(line: string): Leader | null {
  const [, pid, start] = /^skep (\d+) (\d+)$/.exec(line) ?? [];
  return pid === undefined || start === undefined ? null : { pid, start };
}
