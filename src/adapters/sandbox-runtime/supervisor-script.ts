import type { Reason } from '../../domain/reason.ts';
import type { ExecutionStart, TerminalSize } from '../../ports/sandbox-executions.ts';
import {
  enterDirectory, hiddenCommand, isShellVariable, lineWord, maxHiddenBytes, readStart, shellWord, takeHidden,
} from './shell-functions.ts';

/** The minimum of bytes that the sandbox keeps of each output. */
export const keptBytes = 64 << 20;
/** The minimum size of an output's files. Whole files are deleted to drop the oldest bytes. */
const segmentBytes = 4 << 20;
const tools = ['cat', 'dd', 'mkdir', 'mkfifo', 'rm', 'setsid', 'sleep', 'tail', 'tee', 'wc'];

/**
 * The shell script that runs a command in the sandbox and supervises it, so that the command no longer depends on Skep. `_skep_go`
 * becomes the command; everything around it passes on and keeps its input and output. The script's folder contains:
 *
 * - `kept/begun`: the script's process id and start time, and the id of the sandbox's run.
 * - `kept/out.<offset>`, `kept/err.<offset>`: the command's output, from the offset on. `kept/out.done`: the output is complete.
 * - `kept/out.whole`: no output was lost, except the oldest bytes. It exists from the start, since on a full disk a file can be removed,
 *   but not created.
 * - `kept/exit`: the exit code, or `-` before the end. It is written at the start to reserve its space, for the same reason.
 * - `pids`: the command's process id and start time, and the ids of the process that keeps its input open and of the starter's feeder.
 * - `kept/in`: the input that the command got, if it can be reopened. `feeder`: the present feeder's process id and start time.
 * - `in`, `o`, `r`: FIFOs for the command's input and outputs. `e`: a FIFO for the first errors. `alive`: a FIFO with this script as its
 *   only writer until the command's end, so that a read waits for that.
 *
 * `tee` sends each output to the starter and to `dd`, which writes the files in large blocks. If the starter has ended, `tee` continues
 * without it. If the disk is full, later output is not kept, and the command continues. The command runs in the foreground, since a
 * shell makes background commands ignore SIGINT.
 *
 * The variables have a prefix, so that they do not overwrite variables in the command's environment.
 *
 * | descriptor | in the script itself | in its child processes |
 * |---|---|---|
 * | 3 | `in`, only until 4 is open: the open of a FIFO waits for the other end | `e`, to read the first errors |
 * | 4 | `in`, to write, until the holder and the feeder have it | `e`, both ends, until the first errors are in it |
 * | 5 | the starter's input, which the feeder copies to `in` | in `tee`: the starter's output or errors |
 * | 6, 7 | the starter's errors and output | - |
 * | 8 | - | in `tee`: the pipe to `_skep_keep` |
 * | 9 | `alive`, both ends | - |
 *
 * The processes that wait for the first error have 5, 6 and 7 as the script has them. A child closes the other descriptors that it does
 * not use, since an end of file means something. At the end of `in`, the command's input is over: the holder (`sleep`) and the feeder have
 * ended. At the end of `o` and `r`, no process has the command's outputs any more. At the end of `alive`, the command has ended. At the end
 * of 6 and 7, the starter has the whole output.
 */
export const supervisor = `${takeHidden}${readStart}${enterDirectory}
_skep_announce=$1 _skep_base=$2 _skep_d=$2/$3 _skep_run=$4 _skep_in=$5 _skep_cwd=$6 _skep_fallback=$7 _skep_mark=$8
shift 8
[ -z "$_skep_hidden" ] || eval "set -- $_skep_hidden"
_skep_tty=$1
shift
_skep_go() {
  _skep_enter "$_skep_cwd"
  [ -z "$_skep_vars" ] || eval "$_skep_vars"
  exec "$@"
}
_skep_start=0 _skep_missing=
{ _skep_read_start "/proc/$$/stat"; } 2>/dev/null || _skep_missing=' /proc'
[ -z "$_skep_announce" ] || printf 'skep %s %s\\n' "$$" "$_skep_start"
_skep_vars= _skep_nl='
'
if [ "$_skep_in" = kept ]; then
  while IFS= read -r _skep_line && [ -n "$_skep_line" ]; do _skep_vars="$_skep_vars$_skep_line$_skep_nl"; done
fi
if [ -n "$_skep_tty" ]; then
  for _skep_tool in script stty tty; do command -v $_skep_tool >/dev/null || { printf 'no-terminal %s\\n' $_skep_tool; exit; }; done
fi
for _skep_tool in ${tools.join(' ')}; do command -v $_skep_tool >/dev/null || _skep_missing="$_skep_missing $_skep_tool"; done
# Needs no process: in a sandbox without room for one, a repeated start must still find the command.
[ ! -d "$_skep_d" ] || { printf 'exists\\n'; exit; }
if [ -z "$_skep_missing" ]; then
  [ -d "$_skep_base" ] || mkdir -p -m 700 "$_skep_base" 2>/dev/null
  # If two starts with one id run at once, only one of them can create the folder.
  if mkdir "$_skep_d" 2>/dev/null; then
    mkdir "$_skep_d/kept" 2>/dev/null
    mkfifo "$_skep_d/alive" "$_skep_d/o" "$_skep_d/r" "$_skep_d/e" \${_skep_in:+"$_skep_d/in"} 2>/dev/null || _skep_missing=' fifos'
    {
      printf '%-4s\\n' - > "$_skep_d/kept/exit" && printf '' > "$_skep_d/kept/out.whole" && printf '' > "$_skep_d/kept/err.whole" &&
        printf '%s %s %s\\n' "$$" "$_skep_start" "$_skep_run" > "$_skep_d/kept/begun"
    } 2>/dev/null || _skep_missing=" $_skep_base"
    [ -z "$_skep_missing" ] || rm -rf "$_skep_d"
  elif [ -d "$_skep_d" ]; then printf 'exists\\n'; exit
  else _skep_missing=" $_skep_base"
  fi
fi
if [ "$_skep_missing" = " $_skep_base" ]; then
  # The shell itself may not say why it can't write.
  case $(export LC_ALL=C; { mkdir "$_skep_base.$$" && printf 1 | dd of="$_skep_base.$$/1"; } 2>&1; rm -rf "$_skep_base.$$") in
    *'o space left'*|*'quota exceeded'*) _skep_missing=' full';;
  esac
fi
if [ -n "$_skep_missing" ]; then
  [ -z "$_skep_tty" ] || { printf 'no-terminal%s\\n' "$_skep_missing"; exit; }
  printf 'attached%s\\n' "$_skep_missing"
  [ -z "$_skep_fallback" ] || export "$_skep_fallback"
  _skep_go "$@"
fi
_skep_keep() {
  _n=$_skep_d/kept/$1 _at=0 _seg=$_n.00000000000000000000 _had=0 _count=128
  set -- 0
  while dd bs=65536 count=$_count 2>"$_n.dd" >>"$_seg"; do
    while read -r _blocks _rest; do case $_blocks in [0-9]*+[0-9]*) break;; esac; done <"$_n.dd"
    case $_blocks in [0-9]*+[0-9]*) ;; *) break;; esac
    [ $((\${_blocks%+*} + \${_blocks#*+})) -eq $_count ] || { : >"$_n.done"; exit; }
    _size=$(wc -c <"$_seg")
    # If the output comes in small pieces, dd reads more of them, so fewer processes are started.
    if [ $((_size - _had)) -lt 2097152 ]; then _count=1024; else _count=128; fi
    _had=$_size
    [ $_size -ge ${segmentBytes} ] || continue
    _at=$((_at + _size)) _had=0
    _seg=$_n.$(printf %020d $_at)
    set -- "$@" $_at
    while [ $# -gt 2 ] && [ $((_at - $2)) -ge ${keptBytes} ]; do rm -f "$_n.$(printf %020d $1)"; shift; done
  done
  # The disk is full. The command continues, and its output still goes to the starter.
  rm -f "$_n.whole"
  cat >/dev/null
  printf '' >"$_n.done"
}
_skep_hand_over() {
  [ "$_skep_in" != kept ] || exec tee "$_skep_d/kept/in"
  # While busybox's cat waits for more from a socket, the command can't read what it has got.
  exec dd bs=65536 2>/dev/null
}
exec 5<&0 6>&2 7>&1 9<>"$_skep_d/alive" 2>/dev/null
_skep_hold= _skep_feed=
if [ -n "$_skep_in" ]; then
  # The feeder holds the input open from its start. Otherwise, an input that is closed at once could end before it is passed on.
  exec 3<>"$_skep_d/in" 4>"$_skep_d/in" 3<&-
  sleep 2147483647 </dev/null >&4 4>&- 5<&- 6>&- 7>&- 9>&- &
  _skep_hold=$!
  _skep_hand_over <&5 >"$_skep_d/in" 5<&- 6>&- 7>&- 9>&- &
  _skep_feed=$!
  exec 4>&-
  if [ "$_skep_in" = kept ]; then
    { _skep_read_start "/proc/$_skep_feed/stat"; } 2>/dev/null
    printf '%s %s\\n' $_skep_feed "$_skep_start" >"$_skep_d/feeder"
  fi
else _skep_input=/dev/null
fi
if [ -n "$_skep_tty" ]; then
  _skep_shell=\${SHELL-}
  # Otherwise shells drop typed characters that are not ASCII, or show them as octal.
  [ -n "\${LC_ALL-}\${LC_CTYPE-}\${LANG-}" ] || export LANG=C.UTF-8
  export SHELL=/bin/sh TERM="\${TERM:-xterm-256color}" _skep_shell _skep_cwd _skep_d _skep_tty
  set -- script -qefc 'eval "$_skep_tty"' /dev/null
else set -- setsid -- "$@"
fi
_skep_tee() { trap '' PIPE; exec tee /proc/self/fd/8 8>&1 >&5 5<&- 6>&- 7>&- 9>&-; }
_skep_tee 5>&7 <"$_skep_d/o" | _skep_keep out >/dev/null 5<&- 6>&- 7>&- 9>&- &
# Most commands write no errors, so the processes for errors are started at the first one. A pipe holds at least one page.
{
  exec 4<>"$_skep_d/e"
  case $(dd bs=4096 count=1 2>&1 >&4) in
    0+0*) printf '' >"$_skep_d/kept/err.done";;
    *) exec 3<"$_skep_d/e" 4>&-
    { cat <&3; exec cat; } 5<&- 6>&- 7>&- | { exec 3<&-; _skep_tee 5>&6; } |
      _skep_keep err >/dev/null 3<&- 5<&- 6>&- 7>&-;;
  esac
} <"$_skep_d/r" 2>/dev/null 9>&- &
(
  _skep_read_start /proc/self/stat
  printf '%s %s %s %s\\n' "\${_skep_stat%% *}" "$_skep_start" "$_skep_hold" "$_skep_feed" > "$_skep_d/pids"
  printf 'durable\\n' >&7
  _skep_go "$@" 5<&- 6>&- 7>&- 9>&-
) <"\${_skep_input:-$_skep_d/in}" 2>"$_skep_d/r" >"$_skep_d/o"
_skep_code=$?
printf '%-4s\\n' $_skep_code 1<> "$_skep_d/kept/exit"
[ -z "$_skep_hold" ] || kill $_skep_hold $_skep_feed
if [ -n "$_skep_mark" ]; then
  exec 9>&-
  # busybox gives up a write that waits for the reader when a process in the background ends.
  for _skep_try in 1 2 3 4 5 6 7 8 9; do printf '%s code %s\\n' "$_skep_mark" $_skep_code >&7 2>/dev/null && break; done
  # Waits for the processes that pass on the outputs.
  wait
  exit 0
fi
exit $_skep_code
`.trim();

/** Returns the script in the terminal. It sets the size, records the terminal's name and the leader, and then becomes the command. */
function inTerminal({ cols, rows }: TerminalSize, command: readonly string[]): string {
  return [
    `stty cols ${cols} rows ${rows} echo`,
    'tty > "$_skep_d/tty"',
    'read -r _skep_stat < "/proc/$$/stat"; set -- ${_skep_stat##*) }; shift 19; printf "%s %s\\n" $$ "$1" > "$_skep_d/leader"',
    'if [ -n "$_skep_shell" ]; then SHELL=$_skep_shell; else unset SHELL; fi',
    'unset _skep_shell _skep_cwd _skep_d _skep_tty _skep_stat',
    `exec ${command.map(shellWord).join(' ')}`,
  ].join('; ');
}

/** How a runtime runs the supervisor. */
export interface SupervisorContext {
  /** The folder of all executions, `ExecutionHost.folder`. The supervisor makes that of this execution in it. */
  readonly folder: string;
  /** Differs after each start of the sandbox. No spaces. */
  readonly runId: string;
  readonly workingDir: string;
  /** True if the first line of the output is `skep`, the process id and the start time, because the runtime can't learn them itself. */
  readonly announce?: boolean;
  /** The mark, if the runtime can't put it into the environment of every command: set for one that is not durable. */
  readonly fallbackMark?: string;
  /** If set, the script prints the line `<mark> code <exit code>` after the command's end, and itself ends with 0 after the outputs. */
  readonly codeMark?: string;
}

/** What the supervisor does with the command. */
export type SupervisorAnswer =
  /** It runs the command durably, or did so at an earlier start. */
  | { readonly kind: 'durable' | 'exists' }
  /** It runs the command and keeps nothing, or does not run it, because its terminal would need what is missing. */
  | { readonly kind: 'attached' | 'no-terminal'; readonly missing: Reason };

/** Parses the first line of the supervisor's output. Null if it ended without one. */
export function parseSupervisorAnswer(line: string | null): SupervisorAnswer {
  const [kind, ...tools] = line?.split(' ') ?? [];
  if (kind === 'durable' || kind === 'exists') return { kind };
  const missing: Reason = tools[0] === 'full' ? { code: 'disk_full' } : { code: 'execution_tools_missing', tools };
  if (kind === 'attached' || kind === 'no-terminal') return { kind, missing };
  // The script could not run. Its standard error contains the reason.
  return { kind: 'attached', missing: { code: 'execution_attached' } };
}

/** Returns the command that runs a command durably. The first line of its output (after that of `announce`) is the answer. */
export function supervisorCommand(
  { command, executionId, stdin, tty }: ExecutionStart, context: SupervisorContext, keepsInput = false,
): readonly string[] {
  const { folder, runId, workingDir, announce = false, fallbackMark = '', codeMark = '' } = context;
  const input = keepsInput ? 'kept' : stdin ? 'in' : '';
  const terminal = tty === null ? '' : inTerminal(tty, command);
  const flags = [announce ? 'skep' : '', folder, executionId, runId, input, workingDir, fallbackMark, codeMark];
  const words = [terminal, ...command];
  const hidden = words.map(shellWord).join(' ');
  const isHidden = Buffer.byteLength(hidden) <= maxHiddenBytes;
  return hiddenCommand('skep-supervisor', supervisor, isHidden ? hidden : '', isHidden ? flags : [...flags, ...words]);
}

/**
 * Splits the environment of a command that keeps its input. The supervisor reads `lines` before all other input, so that only the command
 * has these variables. `rest` has the names that a shell can't set.
 */
export function environmentLines(env: Readonly<Record<string, string>>): { readonly lines: string; readonly rest: Record<string, string> } {
  const [taken, rest] = [true, false].map((isTaken) => Object.entries(env).filter(([name]) => isShellVariable(name) === isTaken));
  const lines = taken?.map(([name, value]) => `export ${name}=${lineWord(value)}\n`) ?? [];
  return { lines: `${lines.join('')}\n`, rest: Object.fromEntries(rest ?? []) };
}
