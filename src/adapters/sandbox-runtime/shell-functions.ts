/** Quotes the text as one word for a shell. */
export function shellWord(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`;
}

/** A function of shell scripts: succeeds if the environment of process `$1` contains the text `$2`. */
export const hasText = `
has_text() {
  { while read -r line || [ -n "$line" ]; do
    case $line in *"$2"*) return 0;; esac
  done <"/proc/$1/environ"; } 2>/dev/null
  return 1
}
`;

/** A function of shell scripts: reads the stat of a process from the file `$1` into `_skep_stat`, and its start time into `_skep_start`. */
export const readStart = `
_skep_read_start() { read -r _skep_stat < "$1" && set -- \${_skep_stat##*) } && shift 19 && _skep_start=$1; }
`;

/** A function of shell scripts: enters the working directory `$1` of a command, or exits. */
export const enterDirectory = `
_skep_enter() {
  cd "$1" 2>/dev/null || { printf 'the working directory %s does not exist, or is not accessible\\n' "$1" >&2; exit 126; }
}
`;
