import { randomUUID } from 'node:crypto';
import type { ExecutionRequest } from '../../../ports/sandbox-runtime.ts';

/** The variable by which the processes of an execution are known. */
export const markVariable = 'SKEP_EXECUTION';

/** The beginning of the marks of what ends with the process that started it. */
const attachedMark = 'attached.';

/** The beginning of the marks of all that this process executes so. Executions with another one belong to a process that has ended. */
const ownMark = `${attachedMark}${randomUUID()}.`;

/** A mark that nothing carries. */
const nobody = `${markVariable}=nobody`;

/** Returns the value of the variable for a new execution. */
export function newMark(): string {
  return `${ownMark}${randomUUID()}`;
}

/** Returns the value of the variable for an execution that outlives the process that started it. */
export function keptMark(executionId: string): string {
  return `kept.${executionId}.`;
}

/** Who leads the session of an execution, as the container numbers its processes. */
export interface Leader {
  readonly pid: string;
  /** Its start time, by which it differs from a later process with its number. */
  readonly start: string;
}

/**
 * What an execution begins as, and becomes the command: the engine does not report its process number in the container. It is a
 * shell's and uses what shells have built in, so that an image needs `/bin/sh` and no more. The engine gives it a session of its own.
 */
const beginning = `
_skep_nth() { shift 19; _skep_start=$1; }
read -r _skep_stat < "/proc/$$/stat"
_skep_nth \${_skep_stat##*) }
printf 'skep %s %s\\n' "$$" "$_skep_start"
cd "$1" 2>/dev/null || { printf 'the working directory %s is not there, or may not be entered\\n' "$1" >&2; exit 126; }
shift
exec "$@"
`;

/**
 * Kills what an execution started, until two looks in a row find nothing: what is in its session, what carries its mark, and the
 * descendants of these; what carries the mark `spared` only if it is in its session. Ends with 1 when it can't be done.
 */
const killing = `
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
is_marked() {
  { while read -r line || [ -n "$line" ]; do
    case $line in *"$spared"*) return 1;; *"$mark"*) return 0;; esac
  done < "/proc/$1/environ"; } 2>/dev/null
  return 1
}
known=' ' session_is_own=1 quiet=0 rounds=0
[ "$pid" != none ] || session_is_own=
while [ $quiet -lt 2 ]; do
  if kill_all; then quiet=0; else quiet=$((quiet + 1)); fi
  rounds=$((rounds + 1))
  [ $rounds -lt 2000 ] || exit 1
done
`;

/** The engine's command for a request. */
export function beginCommand({ command }: ExecutionRequest, workingDir: string): string[] {
  return ['/bin/sh', '-c', beginning.trim(), 'skep-execution', workingDir, ...command];
}

/** The engine's command that ends an execution. */
export function killCommand({ pid, start }: Leader, mark: string): string[] {
  return ['/bin/sh', '-c', killing.trim(), 'skep-kill', pid, start, `${markVariable}=${mark}`, nobody];
}

/** The engine's command that ends an execution that outlives the process that started it, and removes its folder. */
export function removeCommand(folder: string, executionId: string): string[] {
  // The sandbox can put anything in the place of the file.
  const leader = `pid=none start=none
if [ -f "$3/pids" ] && [ ! -L "$3/pids" ]; then { read -r pid start rest < "$3/pids"; } 2>/dev/null; fi
case $pid in ''|*[!0-9]*) pid=none start=none;; esac; set -- "$pid" "$start" "$3" "$4"`;
  const script = `${leader}; folder=$3; set -- "$1" "$2" "$4" ${nobody}\n${killing.trim()}\nrm -rf "$folder"`;
  return ['/bin/sh', '-c', script, 'skep-remove', '', '', folder, `${markVariable}=${keptMark(executionId)}`];
}

/** The engine's command that ends what processes of Skep executed that have ended. */
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

/** The engine's command that writes the ids of the executions that were removed while nothing could be run in the sandbox. */
export function listRemovedCommand(folder: string): string[] {
  return ['/bin/sh', '-c', listRemoved.trim(), 'skep-removed', folder];
}

/** Reads the line that an execution begins with. Null if it is another line. */
export function parseBeginning(line: string): Leader | null {
  const [, pid, start] = /^skep (\d+) (\d+)$/.exec(line) ?? [];
  return pid === undefined || start === undefined ? null : { pid, start };
}
