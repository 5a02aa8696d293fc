import type { OutputStream, TerminalSize } from '../../ports/sandbox-executions.ts';
import { killing, nobody } from './shell-functions.ts';

/**
 * The shared start of the scripts about an execution. They exit with 4 if it does not exist. The sandbox can replace the files, for example
 * with a FIFO without a writer. So they check the type of a file before they open it.
 */
const prelude = `
d=$1 run=$2
is_file() { [ -f "$1" ] && [ ! -L "$1" ]; }
is_fifo() { [ -p "$1" ] && [ ! -L "$1" ]; }
is_number() { case $1 in ''|*[!0-9]*) return 1;; esac; }
# Reads the first line of a file into variables. Fails if the line is not complete.
line_of() {
  is_file "$1" || return 1
  file=$1
  shift
  { read -r "$@" <"$file"; } 2>/dev/null
}
[ -d "$d" ] && [ ! -e "$d/kept/removed" ] || exit 4
# The supervisor may not have written the file yet.
[ -s "$d/kept/begun" ] || sleep 1
[ -d "$d/kept" ] || exit 4
pid= start= begun=
line_of "$d/kept/begun" pid start begun && is_number "$pid" && is_number "$start" || begun=
# Succeeds for the id of a process that has not ended. Sets session to its session, and since to its start time.
is_process() {
  { read -r stat <"/proc/$1/stat"; } 2>/dev/null || return 1
  set -- \${stat##*) }
  case $1 in Z|X) return 1;; esac
  session=$4
  shift 19
  since=$1
}
alive() { is_process "$pid" && [ "$since" = "$start" ] || { session=; return 1; }; }
has_exited() { code=; line_of "$d/kept/exit" code && is_number "$code" && [ \${#code} -le 3 ] || { code=; return 1; }; }
status() {
  if has_exited; then how=exited
  elif [ -z "$begun" ]; then how=unknown
  elif [ "$begun" != "$run" ]; then how=ended
  elif alive; then how=running
  elif has_exited; then how=exited
  else how=unknown
  fi
}
# Succeeds for a file with a part of an output. Sets n to the offset of that part.
is_segment() {
  is_file "$1" || return 1
  n=\${1##*.}
  [ \${#n} = 20 ] && is_number "$n" || return 1
  n=\${n#"\${n%%[!0]*}"} n=\${n:-0}
}
# Ends this script when its input ends, because then nobody reads its output.
end_with_reader() {
  exec 7<&0
  { read -r rest <&7; kill -KILL $$; } >/dev/null 2>&1 &
  watching=$!
  exec 7<&- </dev/null
  trap 'kill $watching' EXIT
}
is_whole() { [ -e "$d/kept/out.done" ] && [ -e "$d/kept/err.done" ]; }
`;

/** Prints the status, the exit code or `-`, and the oldest offset and the end of each output. With `wait`, waits for the end first. */
const stateScript = `${prelude}
[ "$3" != wait ] || end_with_reader
if [ "$3" = wait ] && is_fifo "$d/alive"; then exec 8<>"$d/alive" 9<"$d/alive" 8>&-; read -r rest <&9; fi
status
tries=0
while [ $how = exited ] && ! is_whole && [ $tries -lt 20 ]; do sleep 0.05; tries=$((tries + 1)); done
printf '%s %s' $how "\${code:--}"
for stream in out err; do
  first= last=
  for file in "$d/kept/$stream".0*; do is_segment "$file" || continue; first=\${first:-$n} last=$file from=$n; done
  if [ -z "$first" ]; then printf ' 0 0'; continue; fi
  printf ' %s %s' $first $((from + $(wc -c <"$last")))
done
echo
`;

/**
 * Prints the bytes of an output from an offset on. With `follow`, continues until the command has ended. Exits with 3 if the next byte is
 * no longer kept, or never was.
 */
const readScript = `${prelude}
stream=$3 after=$4 follow=$5 tries=0 seg= from=0 seen=0 nap=0.05
[ -z "$follow" ] || end_with_reader
# Sets "over" if the command has ended and all its output is written.
look() {
  over=
  status
  [ $how != running ] || return 0
  if [ $how = exited ] && ! [ -e "$d/kept/$stream.done" ] && [ $tries -lt 20 ]; then tries=$((tries + 1)) nap=0.05; return 0; fi
  over=1
}
rest() {
  if [ -n "$over" ] || [ -z "$follow" ]; then [ -e "$d/kept/$stream.whole" ] || exit 3; exit 0; fi
  sleep $nap
  # Waits longer each time that there is no new output.
  case $nap in 0.05) nap=0.1;; 0.1) nap=0.2;; *) nap=0.4;; esac
}
while [ -z "$seg" ]; do
  look
  first= last=
  for file in "$d/kept/$stream".0*; do
    is_segment "$file" || continue
    first=\${first:-$n} last=$file
    [ $n -gt $after ] || { seg=$file from=$n; }
  done
  if [ -n "$first" ] && [ -z "$seg" ]; then exit 3; fi
  if [ -n "$seg" ] && [ "$seg" = "$last" ] && [ $(wc -c <"$seg") -lt $((after - from)) ]; then seg=; fi
  [ -n "$seg" ] || rest
done
is_file "$seg" && exec 8<"$seg" || exit 3
tail -c +$((after - from + 1)) <&8
while :; do
  look
  for file in "$d/kept/$stream".0*; do ! is_segment "$file" || last=$file; done
  size=$(wc -c <"/proc/$$/fd/8")
  if [ $size -gt $seen ]; then cat <&8; seen=$size nap=0.05; fi
  if [ "$last" = "$seg" ]; then rest; continue; fi
  from=$((from + $(wc -c <"/proc/$$/fd/8")))
  seg=$d/kept/$stream.$(printf %020d $from)
  is_file "$seg" || exit 3
  exec 8<"$seg"
  seen=0
done
`;

/** Passes its input to the command, unless `$3` is `none`. Closes the command's input if `$4` is set. Exits with 5 if it accepts none. */
const inputScript = `${prelude}
is_fifo "$d/in" && ! has_exited && [ ! -e "$d/closed" ] || exit 5
hold= feed=
line_of "$d/pids" command begin hold feed && is_number "$hold" && is_number "$feed" || feed=
if [ "$3" != none ]; then
  # The feeder of a starter that is gone first passes on the input that it still has.
  tries=0
  while [ -n "$feed" ] && is_process "$feed" && [ $tries -lt 20 ]; do sleep 0.05; tries=$((tries + 1)); done
  ( exec 8<>"$d/in" 9>"$d/in" 8>&-; trap '' PIPE; exec dd bs=65536 >&9 2>/dev/null 9>&- ) ||
    # A dd that is missing or killed does not mean that the command accepts no input.
    { code=$?; [ $code -gt 125 ] && exit $code; exit 5; }
fi
[ -n "$4" ] || exit 0
# On a full disk the input is closed too, only later input is not refused. Without \`command\`, a failure would end the shell.
command : >"$d/closed"
[ -n "$feed" ] || exit 0
# If the starter closes the input, the input that it has sent is passed on first.
if [ "$4" = starter ]; then kill $hold; else kill $hold $feed; fi 2>/dev/null
exit 0
`;

/**
 * Waits until no other feeder is active, and then passes its input to a command whose input is kept. First prints a line: how many bytes
 * the command got before, and `cut` if they end within a line. Exits with 5 if the command accepts no input.
 */
const feedScript = `${prelude}
is_fifo "$d/in" || exit 5
if line_of "$d/feeder" pid start && is_number "$pid" && is_number "$start"; then
  tries=0
  while ! has_exited && alive; do
    # If the engine crashed, nobody ends the input of the other feeder, which only waits for more.
    [ $tries -lt 100 ] || kill -KILL "$pid" 2>/dev/null
    sleep 0.05; tries=$((tries + 1))
  done
fi
! has_exited && is_file "$d/kept/in" || exit 5
is_process $$
printf '%s %s\\n' $$ $since >"$d/feeder"
end=$(tail -c 1 "$d/kept/in")
printf '%s %s\\n' $(wc -c <"$d/kept/in") "\${end:+cut}"
trap '' PIPE
exec 8<>"$d/in" 9>"$d/in" 8>&-
exec tee -a "$d/kept/in" >&9 9>&- 2>/dev/null
`;

/**
 * Erases the kept input and output before two offsets, and the kept standard error. The files still grow, so the bytes are overwritten with
 * zeros. The file `erased` has the offsets before which an earlier run did that.
 */
const forgetScript = `${prelude}
input=$3 output=$4 errors=0
line_of "$d/erased" in out err && is_number "$in" && is_number "$out" && is_number "$err" || in=0 out=0 err=0
# Erases the bytes of file $1, which begins at offset $2, from offset $3 up to offset $4.
erase() {
  from=$(($3 > $2 ? $3 - $2 : 0)) size=$(wc -c <"$1")
  size=$((($4 - $2 < $size ? $4 - $2 : $size) - $from))
  [ $size -gt 0 ] || return 0
  {
    dd if=/dev/null bs=1 seek=$from
    dd if=/dev/zero bs=65536 count=$((size / 65536))
    [ $((size % 65536)) = 0 ] || dd if=/dev/zero bs=$((size % 65536)) count=1
  } 1<>"$1" 2>/dev/null
}
is_file "$d/kept/in" && erase "$d/kept/in" 0 $in $input
for file in "$d/kept/out".0*; do ! is_segment "$file" || erase "$file" $n $out $output; done
for file in "$d/kept/err".0*; do
  ! is_segment "$file" || { errors=$((n + $(wc -c <"$file"))); erase "$file" $n $err $errors; }
done
rm -f "$d/erased" && printf '%s %s %s\\n' $input $output $errors >"$d/erased"
exit 0
`;

/** Sends a signal to the command. SIGKILL kills all processes with the mark, except those of the supervisor, which records the end. */
const signalScript = `${prelude}
number=$3 mark=$4 session=
status
case $how in exited|ended) exit 0;; esac
command=
line_of "$d/leader" command rest || line_of "$d/pids" command rest
# A command that is just being started leads no process group yet.
is_number "$command" && [ "$command" -gt 1 ] && { kill -$number -"$command" || kill -$number "$command"; } 2>/dev/null
[ "$number" = 9 ] || exit 0
# The sandbox can change the files, so SIGKILL goes by the mark of the processes.
set -- none none "$mark" ${nobody} "$session"
${killing.trim()}
`;

const resizeScript = `${prelude}
status
tries=0
# The terminal may not be open yet.
while [ $how = running ] && [ ! -s "$d/tty" ] && [ $tries -lt 20 ]; do sleep 0.05; tries=$((tries + 1)); status; done
[ $how = running ] && line_of "$d/tty" tty && [ -c "$tty" ] || exit 0
stty cols $3 rows $4 <"$tty" 2>/dev/null
exit 0
`;

/** Returns the command of a script about an execution. Its arguments are the execution's folder and the id of the sandbox's run. */
export type ExecutionScript = (folder: string, runId: string) => readonly string[];

function script(text: string, name: string, ...args: readonly (string | number)[]): ExecutionScript {
  return (folder, runId) => ['/bin/sh', '-c', text.trim(), `skep-${name}`, folder, runId, ...args.map(String)];
}

export const scripts = {
  state: (wait: boolean) => script(stateScript, 'state', wait ? 'wait' : ''),
  read: (stream: OutputStream, after: number, follow: boolean) =>
    script(readScript, 'read', stream === 'stdout' ? 'out' : 'err', after, follow ? 'follow' : ''),
  input: (content: 'any' | 'none', close: '' | 'all' | 'starter') => script(inputScript, 'input', content, close),
  signal: (number: number, mark: string) => script(signalScript, 'signal', number, mark),
  feed: () => script(feedScript, 'feed'),
  forget: (input: number, output: number) => script(forgetScript, 'forget', input, output),
  resize: ({ cols, rows }: TerminalSize) => script(resizeScript, 'resize', cols, rows),
} as const;
