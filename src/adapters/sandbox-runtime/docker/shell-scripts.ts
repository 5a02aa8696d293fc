import { randomUUID } from 'node:crypto';
import type { ExecutionRequest } from '../../../ports/sandbox-runtime.ts';
import { enterDirectory, hasText, readStart } from '../shell-functions.ts';

/** The environment variable that marks the processes of an execution. */
export const markVariable = 'SKEP_EXECUTION';

/** The prefix of the marks of executions that end with the process that started them. */
const attachedMark = 'attached.';

/** The prefix of this process's marks of such executions. Executions with another prefix belong to a process that has ended. */
const ownMark = `${attachedMark}${randomUUID()}.`;

/** A mark that no process has. */
const nobody = `${markVariable}=nobody`;

/** Returns the mark of a new execution. */
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

/**
 * Kills the processes of an execution until two passes in a row find none: the processes in its session, those with its mark, and their
 * descendants. Processes with the mark `spared` are killed only in its session. Exits with 1 if some remain.
 */
const killing = `${hasText}
pid=$1 start=$2 mark=$3 spared=$4
kill_all() {
  members=' ' others=
  for file in /proc/[0-9]*/stat; do
    { read -r stat < "$file"; } 2>/dev/null || continue
    process=\${file#/proc/} process=\${process%/stat}
    set -- \${stat##*) }
    case $1 in Z|X|x) continue;; esac
    [ "$process" = "$$" ] && continue
    shift 1
    parent=$1 session=$3
    shift 18
    if [ "$process" = "$pid" ] && [ "$1" != "$start" ]; then session_is_own=; fi
    if [ -n "$session_is_own" ] && [ "$session" = "$pid" ]; then members="$members$process "
    elif is_known "$process:$1" || is_marked "$process"; then members="$members$process "
    else others="$others $process:$parent:$1"; continue
    fi
    known="$known$process:$1 "
  done
  found=1
  while [ -n "$found" ]; do
    found=
    for other in $others; do
      process=\${other%%:*} parent=\${other#*:} parent=\${parent%%:*}
      case $members in *" $process "*) continue;; *" $parent "*) ;; *) continue;; esac
      members="$members$process " known="$known$process:\${other##*:} " found=1
    done
  done
  [ -z "$session_is_own" ] || kill -KILL "-$pid" 2>/dev/null
  for process in $members; do kill -KILL "$process" 2>/dev/null; done
  [ "$members" != ' ' ]
}
is_known() { case $known in *" $1 "*) return 0;; esac; return 1; }
is_marked() { has_text "$1" "$mark" && ! has_text "$1" "$spared"; }
known=' ' session_is_own=1 quiet=0 rounds=0
[ "$pid" != none ] || session_is_own=
while [ $quiet -lt 2 ]; do
  if kill_all; then quiet=0; else quiet=$((quiet + 1)); fi
  rounds=$((rounds + 1))
  [ $rounds -lt 2000 ] || exit 1
done
`;

/** Returns the engine's command for a request. */
export function beginCommand({ command }: ExecutionRequest, workingDir: string): string[] {
  return ['/bin/sh', '-c', beginning.trim(), 'skep-execution', workingDir, ...command];
}

/** Returns the engine's command that kills an execution. */
export function killCommand({ pid, start }: Leader, mark: string): string[] {
  return ['/bin/sh', '-c', killing.trim(), 'skep-kill', pid, start, `${markVariable}=${mark}`, nobody];
}

/** Returns the engine's command that kills a kept execution and removes its folder. */
export function removeCommand(folder: string, executionId: string): string[] {
  // The sandbox may have replaced the file.
  const leader = `pid=none start=none
if [ -f "$3/pids" ] && [ ! -L "$3/pids" ]; then { read -r pid start rest < "$3/pids"; } 2>/dev/null; fi
case $pid in ''|*[!0-9]*) pid=none start=none;; esac; set -- "$pid" "$start" "$3" "$4"`;
  const script = `${leader}; folder=$3; set -- "$1" "$2" "$4" ${nobody}\n${killing.trim()}\nrm -rf "$folder"`;
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
