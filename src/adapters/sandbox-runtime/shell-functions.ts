export function shellWord(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`;
}

/** Returns a word of a line that a shell reads. The shell's variable `_skep_nl` must be a line feed. */
export function lineWord(text: string): string {
  return shellWord(text).replaceAll('\n', `'"$_skep_nl"'`);
}

const shellName = /^[A-Za-z_][A-Za-z0-9_]*$/;
/** Variables that bash does not let a script set. */
const constants = new Set([
  'BASHOPTS', 'BASH_ARGC', 'BASH_ARGV', 'BASH_LINENO', 'BASH_SOURCE', 'BASH_VERSINFO',
  'EUID', 'FUNCNAME', 'GROUPS', 'PPID', 'SHELLOPTS', 'UID',
]);

export function isShellVariable(name: string): boolean {
  return shellName.test(name) && !constants.has(name);
}

/** A function of shell scripts: reads the stat of a process from the file `$1` into `_skep_stat`, and its start time into `_skep_start`. */
export const readStart = `
_skep_read_start() { read -r _skep_stat < "$1" && set -- \${_skep_stat##*) } && shift 19 && _skep_start=$1; }
`;

/** A function of shell scripts: enters the working directory `$1` of a command, or exits. */
export const enterDirectory = `
_skep_enter() {
  cd "$1" 2>/dev/null || { printf 'the working directory %s does not exist, or is not accessible\\n' "$1" >&2; exit 126; }
  unset OLDPWD
}
`;

/** A mark that no process has. */
export const nobody = 'SKEP_EXECUTION=nobody';

/**
 * Kills the processes of an execution until two passes in a row find none that it may kill: the processes in the session of its leader
 * (id `$1`, start time `$2`), those with its mark `$3` in their environment, and their descendants. Processes with the mark `$4` are killed
 * only in its session. Processes in the session `$5`, if given, are not killed. Exits with 1 if the last pass found some that it may not
 * kill. Otherwise waits until they are reaped. Processes that replace themselves faster than a pass can remain unseen.
 */
export const killing = `
pid=$1 start=$2 mark=$3 spared=$4 kept=$5
# Succeeds if the environment of process $1 contains the text $2.
has_text() {
  { while read -r line || [ -n "$line" ]; do
    case $line in *"$2"*) return 0;; esac
  done <"/proc/$1/environ"; } 2>/dev/null
  return 1
}
# Sets marked to the environments that contain the mark, and not the one that spares a process. Fails in a shell that reads in blocks, such
# as bash, and without grep or room for a process. dash and busybox read byte by byte, which takes seconds for hundreds of processes, or for
# large environments. In them, \`command\` keeps a failed fork from ending the script. The last file of each list shows that grep has read
# all of them: its own environment, which has the mark, and an empty file, which does not. This does not hold for a replaced grep, but who
# can replace it can replace this shell, too. Without -z, -F of busybox reads only to a NUL.
find_marked() {
  [ -z "$BASH_VERSION" ] || return 1
  marked=
  command eval 'marked=$(PATH=/usr/bin:/bin _skep_mark="$mark" grep -lzF -e "$mark" /proc/[0-9]*/environ /proc/self/environ)' 2>/dev/null
  case $marked in */proc/self/environ) ;; *) return 1;; esac
  command eval 'marked=$(PATH=/usr/bin:/bin grep -LzF -e "$spared" $marked /dev/null)' 2>/dev/null
  case $marked in */dev/null) ;; *) return 1;; esac
}
kill_all() {
  find_marked || marked=unknown
  members=' ' others=
  for file in /proc/[0-9]*/stat; do
    { read -r stat < "$file"; } 2>/dev/null || continue
    process=\${file#/proc/} process=\${process%/stat}
    set -- \${stat##*) }
    case $1 in Z|X|x) continue;; esac
    [ "$process" = "$$" ] && continue
    shift 1
    parent=$1 session=$3
    [ "$session" = "$kept" ] && continue
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
  killed=
  for process in $members; do { kill -KILL "$process" || [ ! -e "/proc/$process" ]; } 2>/dev/null && killed=1; done
  [ -n "$killed" ]
}
is_known() { case $known in *" $1 "*) return 0;; esac; return 1; }
is_marked() {
  case $marked in unknown) has_text "$1" "$mark" && ! has_text "$1" "$spared";; *"/proc/$1/environ"*) ;; *) return 1;; esac
}
known=' ' session_is_own=1 quiet=0 rounds=0
[ "$pid" != none ] || session_is_own=
while [ $quiet -lt 2 ]; do
  if kill_all; then quiet=0; else quiet=$((quiet + 1)); fi
  rounds=$((rounds + 1))
  [ $rounds -lt 2000 ] || exit 1
done
[ "$members" = ' ' ] || exit 1
# What was killed takes up room for processes until its parent reaps it. Waits for that, but not long: some parents never do it.
{ read -r deadline rest </proc/uptime; } 2>/dev/null
deadline=$((\${deadline%.*} + 2))
for process in $known; do
  while { read -r stat <"/proc/\${process%:*}/stat" && read -r now rest </proc/uptime; } 2>/dev/null && [ "\${now%.*}" -lt $deadline ]; do
    set -- \${stat##*) }
    shift 19
    [ "$1" = "\${process#*:}" ] || break
  done
done
`;

const launcher = `export _skep_script="$1" _skep_hidden="$2"; shift 2; exec /bin/sh -c 'eval "$_skep_script"' "$0" "$@"`;

/** Linux limits one variable to 128 KiB. */
export const maxHiddenBytes = 96 << 10;

/**
 * Returns a command that runs a script of Skep with the arguments `$1` and so on. Neither the script nor `hidden` is among the arguments of
 * its process, so programs such as `pkill -f` find only the commands of users. The script gets `hidden` as the variable `_skep_hidden`, and
 * must begin with {@link takeHidden}. At most {@link maxHiddenBytes}.
 */
export function hiddenCommand(name: string, script: string, hidden: string, args: readonly string[]): string[] {
  return ['/bin/sh', '-c', launcher, name, script, hidden, ...args];
}

/** The start of a script of {@link hiddenCommand}: its commands do not get its variables. */
export const takeHidden = `_skep_taken=$_skep_hidden
unset _skep_hidden _skep_script
_skep_hidden=$_skep_taken
unset _skep_taken
`;
