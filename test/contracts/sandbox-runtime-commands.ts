/**
 * The commands that cases run in a sandbox beside its program. By default they run in its working directory.
 *
 * - `copies`: copies its standard input to its standard output, and ends with 0 at the end of the input.
 * - `speaks`: writes `out` to its standard output and `err` to its standard error, and ends with 7.
 * - `alternates`: writes the lines `out 0` to `out 499` and `err 0` to `err 499` to its two outputs, in turn.
 * - `tells`: writes the values of the variables `GREETING` and `EXTRA` to its standard output, a line each, and the line `here` to the
 *   file `where`.
 * - `floods`: writes 64 MiB to its standard output, then the line `over` to the file `flooded`.
 * - `beats`: writes the line `begun` to its standard output; its child writes a growing number, from 1, to the
 *   file `beat`. Neither reads anything or ends by itself.
 * - `ends itself`: sends SIGTERM to itself.
 * - `adds`: adds a line `more` to the file `given/file`, makes the directory `given/made`, and ends with 0.
 * - `names in bytes`: writes `work` to the file `given/bad\xFFutf`, whose name is not UTF-8, and ends with 0.
 * - `locates`: writes the path of its working directory to its standard output, as a line.
 * - `counts open files`: writes how many files a process may open to its standard output, as a line.
 * - `writes to the root`: makes a directory in the root directory, and ends with 0 if it could.
 * - `missing`: does not exist.
 */
export type SandboxCommand =
  | 'copies' | 'speaks' | 'alternates' | 'tells' | 'floods' | 'beats' | 'ends itself' | 'adds' | 'names in bytes' | 'locates'
  | 'counts open files' | 'writes to the root' | 'missing';

export type SandboxCommands = Readonly<Record<SandboxCommand, readonly string[]>>;

const beating = 'n=0; while :; do n=$((n+1)); echo $n > beat.new && mv beat.new beat; sleep 0.01; done';

/** The commands for a sandbox with a POSIX shell, `cat`, `dd`, `mkdir`, `mv` and `sleep`. */
export const shellCommands: SandboxCommands = {
  copies: ['cat'],
  speaks: shell('echo out; echo err >&2; exit 7'),
  alternates: shell('n=0; while [ $n -lt 500 ]; do echo out $n; echo err $n >&2; n=$((n+1)); done'),
  tells: shell('printf "%s\\n" "$GREETING" "$EXTRA"; echo here > where'),
  floods: shell('dd if=/dev/zero bs=65536 count=1024 2>/dev/null; echo over > flooded'),
  // If `setsid` exists, the child runs in its own session.
  beats: shell(`if command -v setsid >/dev/null; then setsid sh -c '${beating}' & else sh -c '${beating}' & fi; echo begun; wait`),
  'ends itself': shell('kill -TERM $$; sleep 1000'),
  adds: shell('echo more >> given/file && mkdir given/made'),
  'names in bytes': shell('mkdir -p given && printf work > "$(printf "given/bad\\377utf")"'),
  locates: ['pwd'],
  'counts open files': shell('ulimit -n'),
  'writes to the root': ['mkdir', '/made-in-the-root'],
  missing: ['no-such-program-anywhere'],
};

function shell(script: string): readonly string[] {
  return ['sh', '-c', script];
}
